"""What commands write: never a file that they read, all or nothing, checked before the work."""
import json
import os
import shutil
import subprocess
import sys
import threading
import unittest

from cli import ADD, HEDDLE, MODELS, CliTest, npy, read_npz, write_npz

ONES = ["--input", "x=2x3xf32=1", "--input", "y=2x3xf32=1"]


class OverwriteTest(CliTest):
    def refused(self, path, *arguments):
        """Status 2 before the work, and the file is as it was."""
        before = path.read_bytes()
        self.assertIn("is read", self.fails(2, *arguments))
        self.assertEqual(before, path.read_bytes(), arguments)

    def setUp(self):
        super().setUp()
        self.model = self.folder / "m.onnx"
        shutil.copy(MODELS / "minilm" / "model.onnx", self.model)

    def test_the_model_is_no_output_of_any_command(self):
        os.symlink(self.model, self.folder / "link")
        os.link(self.model, self.folder / "hard")
        (self.folder / "sub").mkdir()
        names = [self.model, self.folder / "link", self.folder / "hard",
                 self.folder / "sub" / ".." / "m.onnx"]
        for name in names:
            self.refused(self.model, "compile", self.model, "-o", name)
        for command, option in [
                ("compile", "--json"), ("run", "--outputs"), ("run", "--json"), ("bench", "--json"),
                ("check", "--json"), ("inspect", "--json"), ("explain", "--json"),
                ("explain", "--html"), ("report", "-o"), ("profile", "--trace"), ("profile", "--json"),
                ("tune", "--export"), ("tune", "--json"), ("advise", "--json"),
                ("dryrun", "--json"), ("reduce", "-o"), ("reduce", "--json")]:
            for name in names[:2]:
                self.refused(self.model, command, self.model, option, name)

    def test_other_files_that_are_read(self):
        model = self.file("add.hlo", ADD)
        values = self.folder / "in.npz"
        write_npz(values, x=("f", [2, 3], [1] * 6), y=("f", [2, 3], [1] * 6))
        one = self.folder / "x.npy"
        one.write_bytes(npy("f", [2, 3], [1] * 6))
        self.refused(values, "run", model, "--inputs", values, "--outputs", values)
        self.refused(one, "run", model, "--input", f"x={one}", "--random-rest", "--outputs", one)
        self.refused(values, "check", model, "--expected", values, "--json", values)
        profile = self.folder / "p.json"
        self.ok("profile", model, "--json", profile, "--iterations", "1")
        self.refused(profile, "explain", model, "--profile", profile, "--html", profile)
        records = self.folder / "r.txt"
        records.write_text("heddle tuning records 1\n")
        self.refused(records, "tune", model, "--import", records, "--export", records)
        target = self.folder / "t.json"
        target.write_text(self.ok("doctor", "--target").stdout)
        self.refused(target, "run", model, "--target", target, "--json", target)
        # The default of -o counts, too.
        here = self.folder / "reduced.hlo"
        here.write_text(ADD)
        done = subprocess.run([HEDDLE, "reduce", "reduced.hlo"], cwd=self.folder, check=False,
                              capture_output=True, text=True)
        self.assertEqual((2, ADD), (done.returncode, here.read_text()), done.stderr)

    def test_a_folder_of_a_dump_holds_nothing_that_is_read(self):
        dump = self.folder / "dump"
        self.ok("run", self.file("add.hlo", ADD), "--dump", dump)
        again = next(dump.glob("*.hlo"))
        self.refused(again, "run", again, "--dump", dump)
        self.refused(again, "opt", again, "--passes=cse", "--dump", dump)
        # Also where a link leads into it.
        os.symlink(again, self.folder / "link.hlo")
        self.refused(again, "run", self.folder / "link.hlo", "--dump", dump)

    def test_a_dump_does_not_write_through_links(self):
        model, dump = self.file("add.hlo", ADD), self.folder / "dump"
        self.ok("run", model, "--dump", dump)
        names = sorted(path.name for path in dump.iterdir() if path.is_file())
        for link in [os.symlink, os.link]:
            shutil.rmtree(dump)
            dump.mkdir()
            for name in names:
                link(self.folder / "add.hlo", dump / name)
            self.ok("run", model, "--dump", dump)
            self.ok("opt", model, "--passes=O2", "--dump", dump)
            self.assertEqual(ADD, (self.folder / "add.hlo").read_text())
            self.assertLessEqual(set(names), {path.name for path in dump.iterdir()})
            self.assertFalse((dump / names[0]).is_symlink())

    def test_a_dump_that_cannot_be_written(self):
        model, dump = self.file("add.hlo", ADD), self.folder / "dump"
        dump.mkdir()
        (dump / "lower").write_text("in the way")
        self.assertIn("dump/lower", self.fails(3, "run", model, "--dump", dump))

    def test_tuning_records_of_the_cache(self):
        model, cache = self.file("add.hlo", ADD), self.folder / "c"
        self.ok("tune", model, "--cache", cache)
        for option in ["--export", "--json"]:
            self.refused(cache / "tuning.db", "tune", model, "--cache", cache, option,
                         cache / "tuning.db")

    def test_the_files_of_a_scoreboard(self):
        folder = self.folder / "hlo"
        folder.mkdir()
        (folder / "a.hlo").write_text(ADD)
        self.refused(folder / "a.hlo", "conform", "hlo", folder, "--json", folder / "a.hlo")
        test = self.folder / "onnx" / "a"
        data = test / "test_data_set_0"
        data.mkdir(parents=True)
        shutil.copy(MODELS / "minilm" / "model.onnx", test / "model.onnx")
        (data / "output_0.pb").write_bytes(b"")
        for path in [test / "model.onnx", data / "output_0.pb"]:
            self.refused(path, "conform", "onnx", self.folder / "onnx", "--json", path)
        # What was written before is replaced.
        for _ in range(2):
            self.run_heddle("conform", "hlo", folder, "--json", folder / "board.json")
        self.assertEqual("hlo", json.loads((folder / "board.json").read_text())["suite"])

    def test_external_data(self):
        # float tensor x + w, w [2] in ok.bin.
        def field(number, data):
            return bytes([number << 3 | 2, len(data)]) + data
        def text(number, value):
            return field(number, value.encode())
        entry = text(1, "location") + text(2, "w.bin")
        weight = bytes([1 << 3, 2, 2 << 3, 1]) + text(8, "w") + field(13, entry) + bytes([14 << 3, 1])
        shape = field(2, field(1, bytes([1 << 3, 2])))
        value = lambda name: text(1, name) + field(2, field(1, bytes([1 << 3, 1]) + shape))
        node = text(1, "x") + text(1, "w") + text(2, "y") + text(4, "Add")
        graph = (field(1, node) + text(2, "g") + field(5, weight) + field(11, value("x")) +
                 field(12, value("y")))
        model = self.file("external.onnx", bytes([1 << 3, 8]) + field(7, graph) +
                          field(8, bytes([2 << 3, 17])))
        data = self.folder / "w.bin"
        data.write_bytes(npy("f", [2], [1, 2])[-8:])
        self.ok("run", model, "--outputs", self.folder / "out.npz")
        self.refused(data, "compile", model, "-o", data)
        self.refused(data, "run", model, "--json", data)


class WriteTest(CliTest):
    def left(self):
        return sorted(path.name for path in self.folder.iterdir() if path.name != "cache")

    def test_what_cannot_be_written_is_told_before_the_work(self):
        model = self.file("add.hlo", ADD)
        nowhere = self.folder / "no" / "such"
        for command, option in [("run", "--outputs"), ("run", "--json"), ("compile", "-o"),
                                ("explain", "--html"), ("profile", "--trace"), ("tune", "--export"),
                                ("reduce", "-o"), ("check", "--json")]:
            # The model does not exist either: the output is looked at first.
            self.assertIn(str(nowhere), self.fails(3, command, "/no/such/model", option,
                                                   nowhere / "f"))
            self.fails(2, command, model, option, self.folder)
            self.fails(2, command, model, option, self.folder / ("n" * 300))
        self.fails(3, "calibrate", "-o", nowhere / "f", timeout=5)
        self.fails(3, "run", "/no/such/model", "--dump", "/proc/none/dump")
        self.fails(2, "run", "/no/such/model", "--dump", model)
        self.assertEqual(["add.hlo"], self.left())

    def test_nothing_is_left_after_an_error(self):
        model = self.file("add.hlo", ADD)
        old = self.folder / "old.npz"
        old.write_text("old")
        self.fails(2, "run", model, "--input", "z=f32=1", "--outputs", old, "--json",
                   self.folder / "j.json")
        self.assertEqual(("old", ["add.hlo", "old.npz"]), (old.read_text(), self.left()))

    def test_permissions_and_links_stay(self):
        model = self.file("add.hlo", ADD)
        real = self.folder / "real.json"
        real.write_text("{}")
        real.chmod(0o640)
        os.symlink("real.json", self.folder / "link.json")
        os.symlink("new.json", self.folder / "dangling.json")
        self.ok("run", model, "--json", self.folder / "link.json")
        self.ok("run", model, "--json", self.folder / "dangling.json")
        self.assertTrue((self.folder / "link.json").is_symlink())
        self.assertEqual(0o640, real.stat().st_mode & 0o777)
        for name in ["real.json", "new.json"]:
            self.assertEqual(1, json.loads((self.folder / name).read_text())["schema"])

    def test_two_outputs_are_two_files(self):
        model = self.file("add.hlo", ADD)
        same = ["--outputs", self.folder / "o", "--json", f"{self.folder}/./o"]
        self.assertIn("same file", self.fails(2, "run", model, *same))

    def test_outputs_that_are_no_regular_files(self):
        model = self.file("add.hlo", ADD)
        null = os.stat("/dev/null")
        for command, option in [("run", "--outputs"), ("run", "--json"), ("compile", "-o"),
                                ("profile", "--trace"), ("explain", "--html")]:
            self.ok(command, model, option, "/dev/null")
        self.assertEqual(null.st_rdev, os.stat("/dev/null").st_rdev)
        done = self.ok("explain", model, "--html", "/dev/stdout")
        self.assertIn("</html>", done.stdout)
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        got = []
        reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
        reader.start()
        self.ok("run", model, *ONES, "--outputs", pipe)
        reader.join()
        (self.folder / "got.npz").write_bytes(got[0])
        self.assertEqual([2] * 6, read_npz(self.folder / "got.npz")["out0"][1])
        # Standard output may be a regular file, to which other lines go, too.
        with open(self.folder / "all", "w", encoding="utf-8") as out:
            self.ok("run", model, "--json", "/dev/stdout", stdout=out)
        text = (self.folder / "all").read_text()
        self.assertIn("output out0", text)
        self.assertEqual(1, json.loads(text[text.index("{\n"):])["schema"])

    def test_unknown_kinds_are_refused(self):
        model = self.file("add.hlo", ADD)
        self.assertIn("--emit banana: wanted one of program, cuda",
                      self.fails(2, "compile", model, "--emit", "banana", "-o", self.folder / "x"))
        self.assertEqual(["add.hlo"], self.left())


if __name__ == "__main__":
    sys.exit(unittest.main())
