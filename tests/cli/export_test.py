"""heddle opt --emit: HLO protos and StableHLO text, what they hold, and HLO protos as models."""
import pathlib
import sys
import unittest
import zipfile

from cli import ADD, LOOKUP, MODELS, CliTest, read_npz

TESTDATA = MODELS.parent
PROTOS = TESTDATA / "hlo_protos.zip"
# Small models of many operators whose values come back to the bit.
PLAIN = ["bert", "residual", "convnext", "conformer"]
NETWORKS = ["cnn", "residual", "bert", "gpt2_decode", "llama_block"]


class ExportTest(CliTest):
    def test_every_format_of_a_small_module(self):
        model = self.file("add.hlo", ADD)
        text = self.ok("opt", model).stdout
        self.assertEqual(text, self.ok("opt", model, "--emit", "hlo").stdout)
        for format in ("hlo", "stablehlo", "proto"):
            made = self.folder / f"made.{format}"
            self.ok("opt", model, "--emit", format, "-o", made)
            self.ok("run", made, "--input", "arg0=2x3xf32=1 2 3 4 5 6",
                    "--input", "arg1=2x3xf32=10 20 30 40 50 60", "--outputs", self.folder / "out.npz")
            self.assertEqual({"out0": ([2, 3], [11, 22, 33, 44, 55, 66])},
                             read_npz(self.folder / "out.npz"))
            self.ok("check", made)
            self.ok("inspect", made)
        # Names of parameters are those of the text.
        self.ok("run", self.folder / "made.proto", "--input", "x=2x3xf32=1 2 3 4 5 6", "--random-rest")

    def test_the_input_is_never_written_over(self):
        model = self.file("add.hlo", ADD)
        self.fails(2, "opt", model, "--emit", "proto", "-o", model)
        self.assertEqual(ADD, pathlib.Path(model).read_text())

    def test_constants_are_whole_in_files(self):
        model = MODELS / "cnn" / "model.onnx"
        self.assertIn("constant({...})", self.ok("opt", model).stdout)
        made = self.folder / "cnn.hlo"
        self.ok("opt", model, "-o", made)
        self.assertNotIn("{...}", made.read_text())

    def test_what_cannot_be_said_is_an_error_by_name(self):
        model = self.file("m.hlo", """HloModule m
ENTRY e {
  a = s32[4] parameter(0)
  ROOT r = s32[4] mulhi(a, a)
}
""")
        self.assertIn("%r (mulhi): StableHLO has no such operation",
                      self.fails(2, "opt", model, "--emit", "stablehlo"))
        two = self.file("two.hlo", ADD + "\n" + LOOKUP)
        self.assertIn("choose one with --module",
                      self.fails(2, "opt", two, "--emit", "proto", "-o", self.folder / "x.pb"))
        self.ok("opt", two, "--module", "lookup", "--emit", "proto", "-o", self.folder / "x.pb")

    def inputs_by_place(self, model, names):
        """The values beside a model, for inputs of other names: --input arguments."""
        given = []
        for port, name in zip(self.json("inspect", model)["inputs"], names):
            path = self.folder / f"{name}.npy"
            with zipfile.ZipFile(model.parent / "inputs.npz") as file:
                path.write_bytes(file.read(port["name"] + ".npy"))
            given += ["--input", f"{name}={path}"]
        return given

    def same_values(self, model, made):
        """Runs both on the same inputs; the values agree to the bit."""
        self.ok("run", model, "--inputs", model.parent / "inputs.npz", "--device", "interp",
                "--outputs", self.folder / "a.npz")
        given = self.inputs_by_place(model, [f"arg{i}" for i in range(20)])
        self.ok("run", made, *given, "--device", "interp", "--outputs", self.folder / "b.npz")
        with zipfile.ZipFile(self.folder / "a.npz") as a, zipfile.ZipFile(self.folder / "b.npz") as b:
            self.assertEqual([a.read(n) for n in a.namelist()], [b.read(n) for n in b.namelist()])

    def test_networks_compute_the_same(self):
        for name in NETWORKS:
            model = MODELS / name / "model.onnx"
            shapes = []
            inputs = read_npz(model.parent / "inputs.npz")
            for key, (dims, _) in inputs.items():
                if dims:
                    shapes += ["--shape", f"{key}=" + "x".join(map(str, dims))]
            for format in ("stablehlo", "proto"):
                made = self.folder / f"{name}.{format}"
                self.ok("opt", model, *shapes, "--emit", format, "-o", made)
                self.same_values(model, made)

    def test_onnx_of_networks_computes_the_same(self):
        # All of it has plain nodes; only the order of sums is another.
        for name in PLAIN:
            model = MODELS / name / "model.onnx"
            inputs = read_npz(model.parent / "inputs.npz")
            shapes = []
            for key, (dims, _) in inputs.items():
                if dims:
                    shapes += ["--shape", f"{key}=" + "x".join(map(str, dims))]
            made = self.folder / f"{name}.onnx"
            done = self.ok("opt", model, *shapes, "--emit", "onnx", "-o", made)
            self.assertNotIn("no equal in ONNX", done.stderr)
            self.ok("run", model, "--inputs", model.parent / "inputs.npz", "--device", "interp",
                    "--outputs", self.folder / "a.npz")
            given = self.inputs_by_place(model, [p["name"] for p in self.json("inspect", made)["inputs"]])
            self.ok("run", made, *given, "--device", "interp", "--outputs", self.folder / "b.npz")
            a, b = (read_npz(self.folder / f"{x}.npz").values() for x in "ab")
            for (dims, left), (others, right) in zip(a, b):
                self.assertEqual(dims, others)
                scale = max(1, *map(abs, left))
                self.assertLess(max(abs(x - y) for x, y in zip(left, right)), 1e-5 * scale)

    def test_fusions_are_functions_of_onnx(self):
        model = self.file("m.hlo", """HloModule m
f {
  p = f32[4,8] parameter(0)
  e = f32[4,8] exponential(p)
  ROOT n = f32[4,8] negate(e)
}
ENTRY e {
  x = f32[4,8] parameter(0)
  y = f32[4,8] fusion(x), kind=kLoop, calls=f
  ROOT s = f32[4,8] sort(y), dimensions={1}, to_apply=less
}
""".replace("ENTRY", "less {\n a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
            " ROOT c = pred[] compare(a, b), direction=LT\n}\nENTRY"))
        made = self.folder / "m.onnx"
        done = self.ok("opt", model, "--emit", "onnx", "-o", made)
        self.assertIn("1 nodes have no equal in ONNX", done.stderr)
        data = made.read_bytes()
        for word in (b"ai.heddle", b"Sort", b"Exp", b"Neg"):
            self.assertIn(word, data)
        # Where all is plain the functions run.
        plain = self.file("p.hlo", pathlib.Path(model).read_text().replace(
            "ROOT s = f32[4,8] sort(y), dimensions={1}, to_apply=less", "ROOT s = f32[4,8] abs(y)"))
        self.ok("opt", plain, "--emit", "onnx", "-o", made)
        self.ok("run", made)

    def test_stablehlo_of_stablehlo(self):
        for name in ("control", "indexing", "network_gradient"):
            model = TESTDATA / "stablehlo" / f"{name}.mlir"
            made = self.folder / f"{name}.mlir"
            self.ok("opt", model, "--emit", "stablehlo", "-o", made)
            inputs = TESTDATA / "stablehlo" / f"{name}.inputs.npz"
            for file in (model, made):
                self.ok("run", file, "--inputs", inputs, "--device", "interp",
                        "--outputs", self.folder / (file.parent.name + ".npz"))
            a, b = (self.folder / (p.parent.name + ".npz") for p in (model, made))
            self.assertEqual(read_npz(a), read_npz(b))

    def test_protos_of_xla_are_its_texts(self):
        with zipfile.ZipFile(PROTOS) as file:
            names = [n[:-3] for n in file.namelist() if n.endswith(".pb") and "/" not in n]
            self.assertGreater(len(names), 150)
            for name in names:
                proto, text = self.folder / "x.pb", self.folder / "x.hlo"
                proto.write_bytes(file.read(name + ".pb"))
                text.write_bytes(file.read(name + ".hlo"))
                with self.subTest(name):
                    # The header's counts of replicas are no part of a proto.
                    a, b = (self.ok("opt", each).stdout.partition("\n")[2] for each in (proto, text))
                    self.assertEqual(b, a)

    def test_a_snapshot_brings_its_values(self):
        with zipfile.ZipFile(PROTOS) as file:
            for name in ("right", "wrong"):
                (self.folder / f"{name}.pb").write_bytes(file.read(f"snapshot/{name}.pb"))
        right, wrong = self.folder / "right.pb", self.folder / "wrong.pb"
        done = self.ok("run", right, "--outputs", self.folder / "out.npz")
        self.assertIn("of the snapshot", done.stdout)
        self.assertEqual({"out0": ([3], [11, 22, 33])}, read_npz(self.folder / "out.npz"))
        self.assertIn("against the snapshot's result", self.ok("check", right).stdout)
        done = self.run_heddle("check", wrong)
        self.assertEqual(1, done.returncode)
        self.assertIn("FAIL", done.stdout)
        # Values that are given win, and then there is nothing stored to compare with.
        self.ok("check", wrong, "--input", "arg0=3xf32=1 1 1", "--input", "arg1=3xf32=2 2 2")

    def test_damaged_protos(self):
        model = self.file("add.hlo", ADD)
        made = self.folder / "add.pb"
        self.ok("opt", model, "--emit", "proto", "-o", made)
        whole = made.read_bytes()
        for size in range(len(whole) // 2, len(whole), 7):
            made.write_bytes(whole[:size])
            self.assertIn(self.run_heddle("run", made).returncode, (0, 2))


if __name__ == "__main__":
    sys.exit(unittest.main())
