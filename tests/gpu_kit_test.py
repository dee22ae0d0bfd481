"""script/gpu_kit: small, complete, and running wherever it is copied to; a dry run with its files."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("HEDDLE", ROOT / "build/release/heddle")).parent
MOST_BYTES = 55_000_000
NEEDS_NOTHING = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}


def run(*command, environment=(), **more):
    clean = {name: value for name, value in os.environ.items()
             if not name.startswith(("HEDDLE", "LD_", "VIRTUAL_ENV"))}
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=600, env={**clean, "LD_LIBRARY_PATH": "", **dict(environment)}, **more)


class GpuKitTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        made = pathlib.Path(cls.temporary.name) / "made"
        done = run(ROOT / "script/gpu_kit", "--no-build", "-o", made, BUILD.name)
        if done.returncode != 0:
            raise AssertionError(done.stderr)
        cls.kit = pathlib.Path(cls.temporary.name) / "elsewhere" / "a kit"
        cls.kit.parent.mkdir()
        shutil.move(made, cls.kit)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def rows(self, *arguments, environment=()):
        return run(sys.executable, self.kit / "bench/gpu_rows.py", *arguments,
                   environment=environment, cwd="/")

    def test_it_is_small(self):
        size = sum(file.stat().st_size for file in self.kit.rglob("*") if file.is_file())
        self.assertLessEqual(size, MOST_BYTES)
        self.assertGreater(size, 1_000_000)

    def test_programs_use_the_libraries_beside_them(self):
        for program in ["gpu_probe", "gpu_run_test", "heddle"]:
            libraries = {"LD_LIBRARY_PATH": str(self.kit / "lib")} if program == "heddle" else {}
            for line in run("ldd", self.kit / program, environment=libraries).stdout.splitlines():
                name = line.split()[0]
                if "=>" in line and name not in NEEDS_NOTHING:
                    self.assertIn(str(self.kit / "lib"), line)
                self.assertNotIn("not found", line)

    def test_rows_are_found_beside_the_program(self):
        listed = run(self.kit / "gpu_run_test", "--gtest_list_tests", cwd="/").stdout
        wanted = {file.stem for folder in ["bench/rows", "tests/testdata/rows"]
                  for file in (self.kit / folder).glob("*.hlo")}
        found = {line.split("/")[1].split()[0] for line in listed.splitlines()
                 if line.startswith("  EqualsTheInterpreter/")}
        self.assertEqual(found, wanted)
        os.rename(self.kit / "bench/rows/b1.hlo", self.kit / "b1")
        listed = run(self.kit / "gpu_run_test", "--gtest_list_tests", cwd="/").stdout
        os.rename(self.kit / "b1", self.kit / "bench/rows/b1.hlo")
        self.assertNotIn("EqualsTheInterpreter/b1", listed)

    def test_without_a_gpu_it_says_so(self):
        out = self.kit / "none"
        done = self.rows("--out", out, "--only", "b1",
                         environment={"HEDDLE_CUDA_DRIVER": "libcuda_that_is_not_there.so"})
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("no NVIDIA driver is installed", done.stderr)
        self.assertTrue((out / "summary.txt").exists())

    def test_a_dry_run_has_the_files_and_no_times(self):
        out = self.kit / "dry"
        # d4: several launches; t1: long rows held in scratch.
        arguments = ["--dry", "--out", out, "--only", "b1,d4,t1,test:streams,test:hal"]
        done = self.rows(*arguments, environment={"HEDDLE_GPU_BUDGET": "500"})
        self.assertEqual(done.returncode, 0, done.stderr)
        records = {record["item"]: record for record in
                   map(json.loads, (out / "results.jsonl").read_text().splitlines())}
        wanted = {"facts", "test:streams", "test:hal"} | {
            f"{kind}:{row}" for row in ["b1", "d4", "t1"]
            for kind in ["test", "row"]}
        # A peer's process compiles a share of the rows.
        shares = {name for name in records if name.startswith(("torch:", "jax:"))}
        self.assertEqual(set(records) - shares, wanted)
        for peer in ["torch", "jax"]:
            rows = [row for name in shares if name.startswith(peer)
                    for row in name.removeprefix(peer + ":").split("+")]
            self.assertEqual(len(rows), len(set(rows)), rows)
            self.assertLessEqual({"b1", "d4", "t1"}, set(rows))
        for name, record in records.items():
            self.assertEqual(record["status"], "done", record)
            for time in ["us", "least_us", "apart_us", "copy_us", "run_us"]:
                self.assertEqual(record.get(time, "not measured"), "not measured")
        self.assertEqual(records["row:b1"]["reference"], "interpreter")
        self.assertTrue(records["row:d4"]["records"])
        self.assertEqual(records["facts"]["device"], "stand-in GPU (host)")
        self.assertTrue(records["test:t1"]["confirmed"])
        summary = (out / "summary.txt").read_text()
        self.assertIn("| b1 | done | done |", summary)
        self.assertIn("not measured", summary)
        # Again: nothing is left to do.
        before = (out / "results.jsonl").read_text()
        self.assertEqual(self.rows(*arguments).returncode, 0)
        self.assertEqual((out / "results.jsonl").read_text(), before)

    def test_wrong_results_are_told(self):
        # A compiler whose launches leave the last block out.
        compiler = self.kit / "compiler"
        compiler.write_text("#!/bin/sh\nfor last; do :; done\n"
                            "sed -i 's/, a, blocks, threads)/, a, blocks - 1, threads)/' \"$last\"\n"
                            "exec c++ \"$@\"\n")
        compiler.chmod(0o755)
        out = self.kit / "wrong"
        done = self.rows("--dry", "--out", out, "--only", "test:b1,row:d4",
                         environment={"HEDDLE_HOST_COMPILER": f"'{compiler}'"})
        self.assertEqual(done.returncode, 1, done.stderr)
        records = {record["item"]: record for record in
                   map(json.loads, (out / "results.jsonl").read_text().splitlines())}
        for name in ["test:b1", "row:d4"]:
            self.assertEqual(records[name]["status"], "wrong", records[name])
            self.assertIn("output 0", records[name]["error"])

    def test_the_list(self):
        done = self.rows("--list", "--only", "b1")
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()],
                         ["facts", "test:b1", "row:b1", "torch:b1+b5+d3+l2+l7+u1",
                          "jax:b1+b5+d3+l2+l7+u1"])


if __name__ == "__main__":
    if not (BUILD / "gpu_probe").exists():
        print(f"{BUILD}/gpu_probe is not built")
        sys.exit(77)
    unittest.main()
