"""heddle run, check, compile, inspect, explain, profile, opt: results, streams, exit status."""
import json
import math
import os
import random
import re
import sys
import unittest

from cli import ADD, LOOKUP, MODELS, CliTest, npy, read_npz, write_npz

TWO = ADD + "\n// -----\n\n" + LOOKUP


class RunTest(CliTest):
    def test_values_from_every_source(self):
        model = self.file("add.hlo", ADD)
        y = self.file("y.npy", npy("f", [2, 3], [10, 20, 30, 40, 50, 60]))
        out = self.folder / "out.npz"
        self.ok("run", model, "--input", "arg0=2x3xf32=1 2 3 4 5 6", "--input", f"y={y}",
                "--outputs", out)
        self.assertEqual({"out0": ([2, 3], [11, 22, 33, 44, 55, 66])}, read_npz(out))
        write_npz(self.folder / "in.npz", x=("f", [2, 3], [1] * 6), arg1=("f", [2, 3], [2] * 6))
        self.ok("run", model, "--inputs", self.folder / "in.npz", "--outputs", out)
        self.assertEqual([3] * 6, read_npz(out)["out0"][1])

    def test_indices_out_of_range(self):
        model, given = MODELS / "minilm" / "model.onnx", MODELS / "minilm" / "inputs.npz"
        values = read_npz(given)
        ids = values["input_ids"][1]
        rows = max(ids) + 1  # at least
        bad = self.folder / "bad.npz"
        write_npz(bad, input_ids=("q", [2, 9], ids[:3] + [99999] + ids[4:]),
                  attention_mask=("q", [2, 9], values["attention_mask"][1]))
        program = self.folder / "minilm.heddle"
        self.ok("compile", model, "--shape", "input_ids=2x9", "--shape", "attention_mask=2x9",
                "-o", program)
        wanted = re.compile(r"error: .*input 'input_ids' element \[0,3\] is 99999; node '.*Gather' "
                            r"\(Gather\) takes -(\d+) to (\d+); give indices in that range")
        for command in (["run", model], ["bench", model], ["check", model], ["run", program],
                        ["run", model, "--level", "O0"], ["run", model, "--device", "interp"]):
            said = self.fails(2, *command, "--inputs", bad)
            found = wanted.fullmatch(said)
            self.assertTrue(found, said)
            self.assertEqual(int(found[1]), int(found[2]) + 1)
            self.assertGreaterEqual(int(found[1]), rows)
        # Indices from the end, and random ones, are in range.
        write_npz(bad, input_ids=("q", [2, 9], [-1] * 18),
                  attention_mask=("q", [2, 9], values["attention_mask"][1]))
        self.ok("run", model, "--inputs", bad)
        self.ok("run", program)

    def test_steps_go_over_to_the_program_of_the_background(self):
        model, given = MODELS / "minilm" / "model.onnx", MODELS / "minilm" / "inputs.npz"
        out, once = self.folder / "out.npz", self.folder / "once.npz"
        run = ["run", model, "--inputs", given, "--cache", "off", "--outputs"]
        self.ok(*run, once)
        ran = self.ok(*run, out, "--async", "--steps", "20000", "--json", "-")
        swap = json.loads(ran.stdout)["swap"]
        self.assertEqual("rounding", swap["results"])
        self.assertTrue(0 < swap["step"] < 20000, swap)
        self.assertIn(f"step {swap['step']}: switched to level O2", ran.stderr)
        self.assertEqual(read_npz(once), read_npz(out))
        few = self.ok(*run, out, "--async", "--steps", "1")
        self.assertIn("was not ready within 1 steps", few.stderr)
        self.fails(2, "run", model, "--steps", "0")

    def test_every_extent_of_a_range(self):
        model = MODELS / "minilm" / "model.onnx"
        value = self.json("run", model, "--dim", "sequence=1..16", "--cache", "off", "--threads", 1)
        self.assertEqual((16, "sequence"), (value["shapes"], value["dimension"]))
        self.assertEqual(3, value["compilations"])  # buckets of 1, 4 and 16
        self.assertEqual(list(range(1, 17)), [one["sequence"] for one in value["extents"]])
        for one in value["extents"]:
            self.assertEqual(([1, 32], 0),
                             (one["outputs"][0]["shape"], one["outputs"][0].get("nan", 0)))
        text = self.ok("run", model, "--dim", "sequence=3..15:6", "--cache", "off").stdout
        self.assertIn("sequence=9 output ", text)
        self.assertEqual("3 shapes, 2 compilations", text.splitlines()[-1])
        bench = self.json("bench", model, "--dim", "sequence=5..8:3", "--iterations", 2)
        self.assertEqual([2, 2], [one["iterations"] for one in bench["extents"]])
        self.assertTrue(all(one["latency_ms"]["min"] > 0 for one in bench["extents"]))
        for options in [["--dim", "sequence=4..2"], ["--dim", "sequence=1..8", "--outputs", "o.npz"],
                        ["--dim", "sequence=1..8", "--inputs", MODELS / "minilm" / "inputs.npz"],
                        ["--dim", "sequence=1..8", "--dim", "batch=1..2"]]:
            self.assertIn("error: --dim ", self.fails(2, "run", model, *options))
        self.assertIn("run and bench", self.fails(2, "check", model, "--dim", "sequence=1..8"))

    def test_random_inputs_are_told_and_repeat(self):
        model = self.file("lookup.hlo", LOOKUP)
        first = self.ok("run", model, "--seed", "3")
        self.assertIn("random, seed 3", first.stdout)
        self.assertEqual(first.stdout, self.ok("run", model, "--seed", "3").stdout)
        out = self.folder / "out.npz"
        for seed in range(5):
            self.ok("run", model, "--seed", seed, "--outputs", out)
            values = read_npz(out)
            self.assertEqual([1] * 4, values["out1"][1])  # a mask is ones
            rows = values["out0"][1]
            self.assertTrue(all(rows[i:i + 2] in ([0, 1], [2, 3], [4, 5]) for i in range(0, 8, 2)))

    def test_strict_keeps_scales_out_of_weights(self):
        model = self.file("scale.hlo", """HloModule scale
ENTRY e {
  x = f32[2,2] parameter(0)
  w = f32[2,2] constant({{1, 2}, {3, 4}})
  d = f32[2,2] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  a = f32[2] constant({0.3, 0.7})
  b = f32[2,2] broadcast(a), dimensions={1}
  ROOT r = f32[2,2] multiply(d, b)
}
""")
        self.assertIn("fold_scale_into_weights", self.ok("explain", model).stdout)
        strict = self.ok("explain", model, "--numerics", "strict").stdout
        self.assertNotIn("constant factors per channel", strict)
        # What --stop-after shows is what is compiled.
        stopped = ["run", model, "--stop-after", "optimize", "--numerics"]
        self.assertIn("multiply(", self.ok(*stopped, "strict").stdout)
        self.assertNotIn("multiply(", self.ok(*stopped, "default").stdout)

    def test_devices_levels_and_threads_agree(self):
        model, given = MODELS / "minilm" / "model.onnx", MODELS / "minilm" / "inputs.npz"
        results = {}
        for options in [["--device", "interp"], ["--level", "O0"], ["--level", "O1"],
                        ["--level", "O2"], ["--threads", "1"], ["--threads", "2"],
                        ["--memory", "dynamic"], ["--fuse", "off"], ["--fuse", "greedy"]]:
            out = self.folder / "out.npz"
            self.ok("run", model, "--inputs", given, "--outputs", out, *options)
            results[" ".join(options)] = read_npz(out)["embedding"][1]
        self.assertEqual(results["--threads 1"], results["--threads 2"])
        self.assertEqual(results["--threads 1"], results["--memory dynamic"])
        want = results["--device interp"]
        largest = max(abs(x) for x in want)
        for options, got in results.items():
            worst = max(abs(a - b) for a, b in zip(got, want))
            self.assertLessEqual(worst, 1e-4 * largest, options)

    def test_json_is_alone_on_standard_output(self):
        value = self.json("run", self.file("add.hlo", ADD))
        self.assertEqual(1, value["schema"])
        self.assertEqual("cpu", value["device"])
        self.assertEqual(["arg0", "arg1"], value["random_inputs"])
        self.assertEqual([2, 3], value["outputs"][0]["shape"])
        path = self.folder / "result.json"
        done = self.ok("run", self.file("add.hlo", ADD), "--json", path)
        self.assertIn("output out0", done.stdout)
        self.assertEqual(1, json.loads(path.read_text())["schema"])

    def test_dimensions_come_from_options_or_inputs(self):
        model = MODELS / "minilm" / "model.onnx"
        done = self.ok("run", model)
        self.assertIn("note: dimension 'batch'", done.stdout)
        done = self.ok("run", model, "--dim", "batch=3", "--dim", "sequence=5")
        self.assertIn("f32[3,32]", done.stdout)
        done = self.ok("run", model, "--shape", "input_ids=2x6", "--shape", "attention_mask=2x6")
        self.assertIn("f32[2,32]", done.stdout)
        done = self.ok("run", model, "--inputs", MODELS / "minilm" / "inputs.npz")
        self.assertNotIn("note: dimension", done.stdout)
        self.assertIn("--dim foo", self.fails(2, "run", model, "--dim", "foo=3"))
        self.assertIn("NAME=N", self.fails(2, "run", model, "--dim", "batch"))

    def test_a_dimension_may_have_a_bound(self):
        model = MODELS / "minilm" / "model.onnx"
        self.assertIn("f32[1,32]", self.ok("run", model, "--dim", "sequence=7<=16").stdout)
        self.assertTrue(self.ok("check", model, "--dim", "sequence=7<=16").stdout.endswith("PASS\n"))
        inputs = MODELS / "minilm" / "inputs.npz"
        extent = read_npz(inputs)["input_ids"][0][1]
        value = self.json("bench", model, "--inputs", inputs, "--dim", "sequence=<=16",
                          "--iterations", "2")
        self.assertEqual(1, value["compilations"])
        self.assertEqual(f"sequence={min(b for b in (1, 4, 16) if b >= extent)}", value["bucket"])
        self.ok("explain", model, "--dim", "sequence=7<=16")
        self.assertIn("17 from --dim", self.fails(2, "run", model, "--dim", "sequence=17<=16"))
        self.assertIn("NAME=N<=MOST", self.fails(2, "run", model, "--dim", "sequence=7<="))

    def test_a_file_has_the_programs_of_a_bound(self):
        model, program = MODELS / "minilm" / "model.onnx", self.folder / "bounded.heddle"
        shown = self.json("compile", model, "--dim", "sequence=<=16", "-o", program)
        self.assertEqual(3, shown["compilations"])
        header = self.json("inspect", program, "--header")
        self.assertEqual(("sequence<=16", 3), (header["dimensions"], header["programs"]))
        values, wanted, got = (self.folder / name for name in ("v.npz", "w.npz", "g.npz"))
        for n in (1, 3, 7, 16):
            write_npz(values, input_ids=("q", [1, n], list(range(n))),
                      attention_mask=("q", [1, n], [1] * n))
            self.ok("run", model, "--dim", "sequence=<=16", "--inputs", values, "--outputs", wanted)
            self.ok("run", program, "--inputs", values, "--outputs", got)
            self.assertEqual(read_npz(wanted), read_npz(got))
        self.assertIn("f32[1,32]", self.ok("run", program, "--dim", "sequence=7").stdout)
        self.assertEqual([1, 7], self.json("inspect", program, "--dim", "sequence=7")
                         ["inputs"][0]["shape"])
        self.assertIn("wanted 1 to 16", self.fails(2, "run", program, "--dim", "sequence=17"))
        self.assertIn("sequence<=16", self.fails(2, "run", program, "--dim", "batch=2"))
        self.ok("run", program, "--dim", "sequence=3<=16")
        self.assertIn("at most 16", self.fails(2, "run", program, "--dim", "sequence=3<=17"))
        self.ok("run", program, "--dim", "sequence=1..16")

    def test_one_module_of_several(self):
        both = self.file("two.hlo", TWO)
        self.assertIn("addition, lookup", self.fails(2, "run", both))
        self.assertIn("out1", self.ok("run", both, "--module", "lookup").stdout)
        self.assertIn("addition, lookup", self.fails(2, "run", both, "--module", "other"))

    def test_every_stage_is_dumped(self):
        dump = self.folder / "dump"
        self.ok("run", self.file("add.hlo", ADD), "--dump", dump)
        names = sorted(p.name for p in dump.iterdir())
        for stage in ["0-imported.hlo", "1-optimized.hlo", "2-fused.hlo", "5-program.txt"]:
            self.assertIn(stage, names)
        for end in [".schedule", ".kernel"]:
            self.assertTrue(any(name.endswith(end) for name in names), names)

    def test_stop_after(self):
        model = self.file("add.hlo", ADD)
        for point, content in [("import", "HloModule"), ("cse", "HloModule"), ("fuse", "fusion("),
                               ("stitch", "kernel"), ("plan", "program addition")]:
            for command in ["run", "bench", "check", "profile", "compile", "explain", "inspect"]:
                done = self.ok(command, model, f"--stop-after={point}")
                self.assertIn(content, done.stdout, (command, point))
        self.assertIn("--stop-after nowhere", self.fails(2, "run", model, "--stop-after", "nowhere"))

    def test_the_second_run_opens_no_code_generator(self):
        model = self.file("lookup.hlo", LOOKUP)
        opened = []
        for number in range(2):
            log = self.folder / f"log{number}"
            done = self.json("run", model, env={"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(log)})
            text = "".join(p.read_text() for p in self.folder.glob(f"log{number}.*"))
            self.assertTrue(text, "LD_DEBUG wrote nothing")
            opened.append((done["cache"], "libheddle-llvm" in text))
        self.assertEqual([("cold", True), ("warm", False)], opened)


class CheckTest(CliTest):
    def test_pass_is_the_last_line(self):
        done = self.ok("check", self.file("add.hlo", ADD))
        self.assertEqual("PASS", done.stdout.splitlines()[-1])
        value = self.json("check", self.file("add.hlo", ADD))
        self.assertTrue(value["pass"])
        self.assertEqual(0, value["outputs"][0]["max_error"])

    def test_a_difference_is_status_1_and_shows_the_worst_element(self):
        model = self.file("add.hlo", ADD)
        ones = ["--input", "x=2x3xf32=1", "--input", "y=2x3xf32=1"]
        write_npz(self.folder / "want.npz", out0=("f", [2, 3], [2, 2, 2, 2, 2.5, 2]))
        options = ["check", model, *ones, "--expected", self.folder / "want.npz"]
        done = self.run_heddle(*options)
        self.assertEqual(1, done.returncode)
        self.assertEqual("FAIL", done.stdout.splitlines()[-1])
        self.assertIn("[1,1] got 2 want 2.5", done.stdout)
        done = self.run_heddle(*options, "--json", "-")
        self.assertEqual(1, done.returncode)
        self.assertEqual([1, 1], json.loads(done.stdout)["outputs"][0]["worst"]["index"])
        self.ok(*options, "--atol", "0.5")
        self.ok(*options, "--rtol", "0.2")
        self.assertEqual(1, self.run_heddle(*options, "--rtol", "0.1").returncode)

    def test_nan_equals_nan(self):
        model = self.file("add.hlo", ADD)
        write_npz(self.folder / "want.npz", out0=("f", [2, 3], [math.nan] * 6))
        self.ok("check", model, "--input", "x=2x3xf32=nan", "--input", "y=2x3xf32=1", "--expected",
                self.folder / "want.npz")

    def test_wrong_expectations_are_the_users(self):
        model = self.file("add.hlo", ADD)
        write_npz(self.folder / "a.npz", other=("f", [2, 3], [0] * 6))
        self.assertIn("out0", self.fails(2, "check", model, "--expected", self.folder / "a.npz"))
        write_npz(self.folder / "b.npz", out0=("f", [3, 2], [0] * 6))
        self.assertIn("f32[3,2]", self.fails(2, "check", model, "--expected", self.folder / "b.npz"))
        self.fails(2, "check", model, "--rtol", "-1")

    def test_models_against_another_runtime(self):
        for name in ["bert", "gpt2_decode", "cnn"]:
            folder = MODELS / name
            self.ok("check", folder / "model.onnx", "--inputs", folder / "inputs.npz",
                    "--expected", folder / "expected.npz")


class CompileTest(CliTest):
    def test_a_program_runs_and_tells_the_same(self):
        model, given = MODELS / "vit" / "model.onnx", MODELS / "vit" / "inputs.npz"
        program = self.folder / "vit.heddle"
        self.ok("compile", model, "-o", program, "--shape", "pixel_values=2x3x16x16")
        out, again = self.folder / "out.npz", self.folder / "again.npz"
        self.ok("run", model, "--inputs", given, "--outputs", out)
        self.ok("run", program, "--inputs", given, "--outputs", again)
        self.assertEqual(read_npz(out), read_npz(again))
        self.ok("check", program, "--inputs", given, "--expected", MODELS / "vit" / "expected.npz")
        self.assertIn("--expected", self.fails(2, "check", program))
        value = self.json("inspect", program)
        self.assertEqual("compiled program", value["format"])
        self.assertTrue(value["program"]["kernels"])
        self.assertEqual("warm", self.json("bench", program, "--iterations", "3")["cache"])

    def test_where_it_cannot_be_written(self):
        model = self.file("add.hlo", ADD)
        self.fails(3, "compile", model, "-o", self.folder / "no" / "such" / "f.heddle")
        self.assertIn("-o", self.fails(2, "compile", model))


class LookingTest(CliTest):
    def test_inspect(self):
        value = self.json("inspect", self.file("lookup.hlo", LOOKUP), "--buffers")
        self.assertEqual("HLO text", value["format"])
        self.assertEqual(1, value["operators"]["gather"])
        self.assertEqual(["ids", "keep_mask"], [i["alias"] for i in value["inputs"]])
        self.assertTrue(value["program"]["buffers"])
        done = self.ok("inspect", MODELS / "cnn" / "model.onnx", "--graph")
        self.assertIn("convolution", done.stdout)
        self.assertNotIn("kernels", done.stdout)

    def test_explain_tells_kernels_refusals_and_memory(self):
        done = self.ok("explain", MODELS / "minilm" / "model.onnx", "--dim", "sequence=8")
        for word in ["kernels (", "schedule ", "recompute 1", "patterns refused", "order (", "memory: lower bound"]:
            self.assertIn(word, done.stdout)
        value = self.json("explain", MODELS / "minilm" / "model.onnx", "--dim", "sequence=8")
        self.assertTrue(value["refusals"])
        self.assertTrue(all(r["code"] and r["reason"] for r in value["refusals"]))
        kernel = value["kernels"][0]["name"]
        done = self.ok("explain", MODELS / "minilm" / "model.onnx", "--dim", "sequence=8",
                       "--kernel", kernel)
        self.assertIn("kernel", done.stdout)
        self.assertIn("no kernel", self.fails(2, "explain", MODELS / "minilm" / "model.onnx",
                                              "--kernel", "none"))

    def test_profile(self):
        trace = self.folder / "trace.json"
        value = self.json("profile", MODELS / "minilm" / "model.onnx", "--trace", trace,
                          "--iterations", "5")
        self.assertEqual(5, value["iterations"])
        self.assertTrue(all(k["ms"] > 0 for k in value["kernels"]))
        commands = self.json("profile", MODELS / "minilm" / "model.onnx", "--commands")["commands"]
        self.assertEqual(sum(k["commands"] for k in value["kernels"]), len(commands))
        events = json.loads(trace.read_text())["traceEvents"]
        self.assertIn("run", {event["name"] for event in events})

    def test_opt(self):
        self.assertIn("cse", self.ok("opt", "--list").stdout)
        path = self.file("two.hlo", TWO)
        once = self.ok("opt", path).stdout
        self.assertEqual(once, self.ok("opt", self.file("again.hlo", once)).stdout)
        self.assertIn("// -----", once)
        self.assertNotIn("// -----", self.ok("opt", path, "--module", "addition").stdout)
        twice = ADD.replace("ROOT z = f32[2,3] add(x, y)", "a = f32[2,3] add(x, y)\n  b = f32[2,3] "
                            "add(x, y)\n  ROOT z = f32[2,3] multiply(a, b)")
        path = self.file("twice.hlo", twice)
        self.assertEqual(2, self.ok("opt", path).stdout.count(" add("))
        self.assertEqual(1, self.ok("opt", path, "--passes=cse,dce").stdout.count(" add("))
        self.assertEqual(2, self.ok("opt", path, "--passes=cse,dce", "--disable=cse")
                         .stdout.count(" add("))
        self.assertIn("lunch", self.fails(2, "opt", path, "--passes=lunch"))
        self.assertIn("HloModule", self.ok("opt", MODELS / "cnn" / "model.onnx",
                                           "--passes=O2").stdout)

    def test_cache_and_doctor(self):
        self.ok("run", self.file("add.hlo", ADD))
        self.assertEqual(2, self.json("cache")["entries"])
        self.assertEqual(2, self.json("cache", "clear")["removed"])
        self.assertEqual(0, self.json("cache")["entries"])
        self.fails(2, "cache", "burn")
        value = self.json("doctor")
        self.assertIn("cpu", value["devices"])
        self.assertTrue(value["code_generator"])
        self.assertEqual(value["target"], json.loads(self.ok("doctor", "--target").stdout))


class ErrorTest(CliTest):
    def test_the_users_mistakes_are_one_line_and_status_2(self):
        model = self.file("add.hlo", ADD)
        wrong = [
            ([], "no command"), (["fly"], "unknown command"), (["quantize", model], "no output was named"),
            (["quantize", model, "-o", "q.onnx"], "wanted ONNX"), (["run"], "MODEL"), (["--bogus"], "unknown"),
            (["run", model, "--bogus"], "--bogus"), (["run", "/no/such/file"], "/no/such/file"),
            (["run", str(self.folder)], str(self.folder)), (["run", model, "more"], "more"),
            (["run", model, "--device", "cuda:"], "plugin:FILE, interp"),
            (["run", model, "--device", "virtual:h100"], "h100"),
            (["run", model, "--device", "cuda", "--target", "avx2"], "sm_80 or sm_90"),
            (["run", model, "--target", "sm_90"], "ask for device cuda"),
            (["run", model, "--level", "O9"], "O0, O1, O2"),
            (["run", model, "--precision", "int8"], "f32"),
            (["run", model, "--library", "mkl"], "none, auto, onednn"),
            (["run", model, "--threads", "0"], "--threads"),
            (["run", model, "--threads", "many"], "--threads"),
            (["run", model, "--memory-limit", "-4"], "--memory-limit"),
            (["run", model, "--dim", "batch=2"], "ONNX"),
            (["run", model, "--input", "z=f32=1"], "x"),
            (["run", model, "--input", "x=2x2xf32=1"], "wanted f32[2,3]"),
            (["run", model, "--input", "x=2x3xs32=1"], "s32"),
            (["run", model, "--input", "x"], "NAME=SPEC"),
            (["run", model, "--inputs", model], "add.hlo"),
            (["bench", model, "--vs", "abacus"], "onnxruntime"),
            (["bench", model, "--vs", "onnxruntime"], "ONNX"),
            (["bench", model, "--iterations", "0"], "--iterations"),
            (["conform", "stablehlo", str(self.folder)], "no .mlir or .mlir.bc file inside"),
            (["conform", "hlo", "/no/such/folder"], "/no/such/folder"),
            (["completion", "cmd"], "bash, zsh, fish, man or json"),
            (["explain", model, "--device", "interp"], "use cpu"),
        ]
        for arguments, content in wrong:
            self.assertIn(content, self.fails(2, *arguments), arguments)

    def test_unknown_operators_are_named(self):
        custom = ADD.replace("add(x, y)", 'custom-call(x, y), custom_call_target="Gadget"')
        self.assertIn("Gadget", self.fails(2, "run", self.file("c.hlo", custom)))

    def test_the_machines_limits_are_status_3(self):
        model = self.file("add.hlo", ADD)
        self.fails(3, "run", model, "--outputs", "/no/such/folder/out.npz")
        self.fails(3, "run", model, "--json", "/no/such/folder/out.json")
        with open("/dev/full", "w", encoding="utf-8") as full:
            self.fails(3, "run", model, stdout=full)
        if os.geteuid() != 0:
            self.fails(3, "run", model, "--cache", "/proc/none")

    def test_help_and_version(self):
        self.assertIn("heddle run model.onnx", self.ok("--help").stdout)
        self.assertRegex(self.ok("--version").stdout, r"^heddle \d+\.\d+\.\d+\n$")
        for command in ["run", "bench", "check", "compile", "inspect", "explain", "profile", "opt",
                        "conform", "cache", "doctor", "completion"]:
            self.assertIn("Examples:", self.ok(command, "--help").stdout, command)

    def test_damaged_files_are_refused(self):
        program = self.folder / "p.heddle"
        lookup = self.file("lookup.hlo", LOOKUP)
        self.ok("compile", lookup, "-o", program)
        values = self.folder / "v.npz"
        write_npz(values, ids=("i", [4, 1], [0, 1, 2, 0]), keep_mask=("i", [4], [1] * 4))
        chance = random.Random(7)
        sources = {"p.heddle": program.read_bytes(), "m.hlo": LOOKUP.encode(),
                   "m.onnx": (MODELS / "cnn" / "model.onnx").read_bytes()}
        for number in range(60):
            name, whole = chance.choice(sorted(sources.items()))
            data = bytearray(whole)
            if number % 2:
                del data[chance.randrange(len(data)):]
            else:
                for _ in range(1 + number % 5):
                    data[chance.randrange(min(len(data), 2000))] = chance.randrange(256)
            done = self.run_heddle("run", self.file("bad_" + name, bytes(data)), timeout=60)
            # A flipped byte may leave a model that is right.
            self.assertIn(done.returncode, (0, 2), (number, name, done.stderr))
            if done.returncode == 2:
                self.assertEqual(1, done.stderr.count("error: "), done.stderr)
        whole = values.read_bytes()
        for number in range(20):
            bad = self.file("bad.npz", whole[:chance.randrange(len(whole))])
            self.fails(2, "run", lookup, "--inputs", bad)


if __name__ == "__main__":
    sys.exit(unittest.main())
