"""heddle dryrun, and the device virtual: what a model needs on a device that is not here."""
import json
import sys
import unittest

from cli import ADD, MODELS, ROOT, CliTest, read_npz

BRANCHES = """HloModule branches
ENTRY e {
  x = f32[512,512] parameter(0)
  a = f32[512,512] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[512,512] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  a2 = f32[512,512] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b2 = f32[512,512] dot(b, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[512,512] dot(a2, b2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""

LOOP = """HloModule loop
go { s = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(TRIPS)
  ROOT r = pred[] compare(i, n), direction=LT }
step { s = (s32[], f32[64,64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[64,64] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (s32[], f32[64,64]) tuple(j, y) }
ENTRY e {
  x = f32[64,64] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], f32[64,64]) tuple(zero, x)
  w = (s32[], f32[64,64]) while(s), condition=go, body=step
  ROOT r = f32[64,64] get-tuple-element(w), index=1
}
"""


class DryrunTest(CliTest):
    def test_numbers_are_those_of_the_program(self):
        model = MODELS / "minilm" / "model.onnx"
        dry = self.json("dryrun", model, "--device", "virtual:avx2")
        program = self.folder / "p.heddle"
        self.ok("compile", model, "--target", "avx2", "-o", program)
        real = self.json("inspect", program)
        for key in ["temporaries", "temporaries_lower_bound", "temporaries_unshared", "inputs",
                    "outputs"]:
            self.assertEqual(real["program"]["memory_bytes"][key], dry["memory_bytes"][key], key)
        memory = dry["memory_bytes"]
        self.assertLessEqual(memory["temporaries_lower_bound"], memory["temporaries"])
        self.assertLessEqual(memory["temporaries"], memory["temporaries_unshared"])
        self.assertEqual(memory["total"], sum(memory[k] for k in [
            "constants", "prepared", "inputs", "outputs", "temporaries"]))
        live = max(c["live_bytes"] for c in dry["commands"])
        self.assertLessEqual(live, memory["temporaries"])
        self.assertGreater(live, 0)
        self.assertEqual(live, dry["commands"][dry["peak"]["command"]]["live_bytes"])
        self.assertGreater(dry["predicted_ms"], 0)
        self.assertEqual(1, dry["streams"]["count"])  # a cpu's kernels share its cores

    def test_a_gpu_needs_no_gpu(self):
        model = self.file("branches.hlo", BRANCHES)
        dry = self.json("dryrun", model, "--device", "virtual:sm_90", "--fuse", "off")
        self.assertEqual("sm_90", dry["target"])
        done = self.ok("dryrun", model, "--device", "virtual:sm_90")
        self.assertIn("nothing was run", done.stdout)
        self.assertIn("lower bound", done.stdout)

    def test_streams_where_they_pay(self):
        model = self.file("branches.hlo", BRANCHES)
        options = ["--level", "O0"]
        dry = self.json("dryrun", model, "--device", "virtual:avx2,streams=2", *options)
        self.assertEqual(2, dry["streams"]["count"])
        self.assertLess(dry["predicted_ms"], dry["predicted_one_stream_ms"])
        streams = {c["stream"] for c in dry["commands"]}
        self.assertEqual({0, 1}, streams)
        self.assertEqual(dry["streams"]["events"],
                         len({w for c in dry["commands"] for w in c["waits"]}))
        for command in dry["commands"]:
            for wait in command["waits"]:
                other = dry["commands"][wait]
                self.assertNotEqual(other["stream"], command["stream"])
                self.assertLess(other["start_ns"] + other["ns"], command["start_ns"])
        # Waits are in the clock as in the prediction: the last end is the predicted time.
        last = max(c["start_ns"] + c["ns"] for c in dry["commands"])
        self.assertAlmostEqual(dry["predicted_ms"] * 1e6, last, delta=1e-3)
        one = self.json("dryrun", self.file("add.hlo", ADD), "--device", "virtual:avx2,streams=4")
        self.assertEqual(1, one["streams"]["count"])

    # a, a2 and b, b2 are of 1 MiB each. In sequence three of them live at once.
    def test_memory_is_planned_for_streams(self):
        model = self.file("branches.hlo", BRANCHES)

        def temporaries(device, *options):
            dry = self.json("dryrun", model, "--device", device, "--level", "O0", *options)
            return dry["memory_bytes"]["temporaries"], dry["streams"]["count"]
        two = "virtual:avx2,streams=2"
        self.assertEqual((4 << 20, 2), temporaries(two))
        self.assertEqual((4 << 20, 2), temporaries(two, "--streams", "any"))
        self.assertEqual(3 << 20, temporaries(two, "--streams", "1", "--order", "dfs")[0])
        self.assertEqual(3 << 20, temporaries("virtual:avx2", "--order", "dfs")[0])
        # What does not fit side by side goes one after another.
        limit = ["--memory-limit", str(3 << 20)]
        self.assertEqual(3 << 20, temporaries(two, *limit)[0])
        self.assertIn("--streams", self.fails(2, "dryrun", model, "--device", two, "--streams",
                                              "0"))

    def test_loops_take_their_trips(self):
        def dry(trips, *options):
            model = self.file("loop.hlo", LOOP.replace("TRIPS", str(trips)))
            return self.json("dryrun", model, "--device", "virtual:avx2", "--fuse", "off", *options)
        few, many = dry(10), dry(1000)
        self.assertAlmostEqual(100, many["predicted_ms"] / few["predicted_ms"], delta=15)
        flops = [sum(c["flops"] for c in run["commands"]) for run in (few, many)]
        self.assertAlmostEqual(100, flops[1] / flops[0], delta=15)
        self.assertNotIn("trip", " ".join(many["notes"]))
        model = self.file("loop.hlo", LOOP.replace("TRIPS", "5").replace(
            "direction=LT", "direction=NE").replace("j = s32[] add(i, one)",
                                                    "j = s32[] multiply(i, one)"))
        unknown = self.json("dryrun", model, "--device", "virtual:avx2", "--fuse", "off")
        self.assertIn("trip", " ".join(unknown["notes"]))

    def test_dynamic_memory_is_what_the_pool_takes(self):
        model = self.file("branches.hlo", BRANCHES)
        options = ["--level", "O0", "--memory", "dynamic"]
        dry = self.json("dryrun", model, "--device", "virtual:avx2", *options)["memory_bytes"]
        real = self.json("explain", model, "--target", "avx2", *options)["memory_bytes"]
        self.assertEqual(real["temporaries_pool_peak"], dry["temporaries"])
        self.assertLessEqual(dry["temporaries"], dry["temporaries_unshared"])
        where = ["dryrun", model, "--device", "virtual:avx2", *options, "--memory-limit"]
        self.ok(*where, str(dry["temporaries"]))
        self.assertIn("--memory-limit", self.fails(3, *where, str(dry["temporaries"] - 1)))

    def test_what_does_not_fit(self):
        model = self.file("branches.hlo", BRANCHES)
        done = self.run_heddle("dryrun", model, "--device", "virtual:avx2,capacity=1000000")
        self.assertEqual(1, done.returncode)
        self.assertEqual("DOES NOT FIT", done.stdout.splitlines()[-1])
        self.ok("dryrun", model, "--device", "virtual:avx2,capacity=100000000")
        self.assertIn("--memory-limit", self.fails(3, "dryrun", model, "--device", "virtual:avx2",
                                                   "--memory-limit", "64"))

    def test_a_gpu_has_the_memory_of_its_target(self):
        model = self.file("large.hlo", """HloModule large
ENTRY e {
  x = f32[200000,200000] parameter(0)
  t = f32[200000,200000] tanh(x)
  ROOT c = f32[200000,200000] cosine(t)
}
""")
        for target, gib in [("sm_80", 40), ("sm_90", 80)]:
            where = ["dryrun", model, "--device", f"virtual:{target}", "--fuse", "off"]
            done = self.run_heddle(*where)
            self.assertEqual(1, done.returncode, done.stderr)
            self.assertIn(f"of {gib}.0 GiB", done.stdout)
            self.assertEqual("DOES NOT FIT", done.stdout.splitlines()[-1])
        self.ok("dryrun", model, "--device", f"virtual:sm_90,capacity={200 << 30}", "--fuse", "off")
        # Of a CPU no size is known, which is said.
        small = self.file("add.hlo", ADD)
        self.assertIn("states no memory size", self.ok("dryrun", small, "--device",
                                                       "virtual:avx2").stdout)
        self.assertNotIn("states no memory size", self.ok("dryrun", small, "--device",
                                                          "virtual:sm_90").stdout)

    # 1 GiB each way over PCIe 5.0 x16, of which copies reach 50 GB/s.
    def test_copies_to_a_gpu_go_over_its_link(self):
        model = self.file("large.hlo", """HloModule large
ENTRY e {
  x = f32[16384,16384] parameter(0)
  ROOT t = f32[16384,16384] tanh(x)
}
""")
        dry = self.json("dryrun", model, "--device", "virtual:sm_90")
        copies = [c for c in dry["commands"] if c["kind"] == "copy"]
        self.assertEqual(2, len(copies))
        for copy in copies:
            self.assertGreater(copy["ns"], 20e6)
            self.assertLess(copy["ns"], 25e6)
        self.assertAlmostEqual(sum(c["ns"] for c in dry["commands"]) / 1e6, dry["predicted_ms"])

    # They are commands like others: counted by every command that counts launches and bytes.
    def test_copies_from_inputs_to_outputs_count(self):
        model = self.file("views.hlo", """HloModule views
ENTRY e {
  x = f32[48] parameter(0)
  a = f32[6,8] reshape(x)
  ROOT t = (f32[6,8]) tuple(a)
}
""")
        dry = self.json("dryrun", model, "--device", "virtual:avx2")
        self.assertEqual(["copy"], [c["kind"] for c in dry["commands"]])
        self.assertEqual(2 * 48 * 4, dry["commands"][0]["bytes"])
        self.assertGreater(dry["predicted_ms"], 0)
        bench = self.json("bench", model, "--iterations", "3")
        self.assertEqual(1, bench["launches"])
        self.assertEqual(2 * 48 * 4, bench["min_bytes"])
        parts = self.json("profile", model, "--breakdown", "--iterations", "3")["breakdown"]
        self.assertEqual(1, parts["cpy"]["count"])
        self.assertEqual(1, len(self.json("explain", model)["order"]))
        self.ok("check", model)

    def test_a_target_file_of_ones_own(self):
        data = json.loads((ROOT / "src" / "target" / "data" / "avx2.json").read_text())
        data["name"] = "board"
        data["memory_bandwidth_bytes_per_ns"] /= 8
        data["memory_bandwidth_all_bytes_per_ns"] /= 8
        board = self.file("board.json", json.dumps(data))
        model = self.file("add.hlo", ADD.replace("[2,3]", "[4096,4096]"))
        slow = self.json("dryrun", model, "--device", f"virtual:{board}")
        fast = self.json("dryrun", model, "--device", "virtual:avx2")
        self.assertEqual("board", slow["target"])
        self.assertGreater(slow["predicted_ms"], 4 * fast["predicted_ms"])

    def test_wrong_devices(self):
        model = self.file("add.hlo", ADD)
        self.assertIn("virtual:NAME", self.fails(2, "dryrun", model))
        self.assertIn("h100", self.fails(2, "dryrun", model, "--device", "virtual:h100"))
        self.assertIn("wanted capacity", self.fails(2, "dryrun", model, "--device",
                                                       "virtual:avx2,size=3"))


class VirtualTest(CliTest):
    def test_runs_with_the_bits_of_the_cpu(self):
        model = self.file("branches.hlo", BRANCHES.replace("512", "48"))
        out = self.folder / "out.npz"
        self.ok("run", model, "--outputs", out)
        want = read_npz(out)
        for seed in range(3):
            self.ok("run", model, "--outputs", out, "--device", f"virtual:host,seed={seed}")
            self.assertEqual(want, read_npz(out))
        done = self.ok("check", model, "--device", "virtual:host")
        self.assertIn("virtual:host", done.stdout)

    def test_faults_are_the_machines_errors(self):
        model = self.file("branches.hlo", BRANCHES.replace("512", "48"))
        for keys, words in [("lost=2", "the device is lost"), ("capacity=100", "no memory for")]:
            self.assertIn(words, self.fails(3, "run", model, "--device", f"virtual:host,{keys}"))

    def test_compiled_programs_run_there(self):
        model = self.file("branches.hlo", BRANCHES.replace("512", "48"))
        program = self.folder / "p.heddle"
        self.ok("compile", model, "-o", program)
        self.ok("run", program, "--device", "virtual:host,seed=4")
        self.assertIn("heddle dryrun", self.fails(2, "run", model, "--device", "virtual:sm_90"))


if __name__ == "__main__":
    sys.exit(unittest.main())
