"""--library: a vendor library as a candidate, by name, by records, and where there is none."""
import sys
import unittest

from cli import ADD, CliTest, with_values

DOT = with_values("""HloModule product
ENTRY main {
  x = f32[96,64] parameter(0)
  y = f32[64,48] parameter(1)
  w = f32[48,80] constant({...})
  b = f32[80] constant({...})
  p = f32[96,48] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d = f32[96,80] dot(p, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  bb = f32[96,80] broadcast(b), dimensions={1}
  s = f32[96,80] add(d, bb)
  zero = f32[] constant(0)
  zeros = f32[96,80] broadcast(zero), dimensions={}
  ROOT r = f32[96,80] maximum(s, zeros)
}
""")
TURNED = with_values("""HloModule turned
ENTRY main {
  x = f32[64,40] parameter(0)
  y = f32[5,33,64] parameter(1)
  w = f32[90,64] constant({...})
  a = f32[40,90] dot(x, w), lhs_contracting_dims={0}, rhs_contracting_dims={1}
  z = f32[5,17,64] parameter(2)
  q = f32[5,33,17] dot(y, z), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}
  ROOT all = (f32[40,90], f32[5,33,17]) tuple(a, q)
}
""")


def convolution(window, groups=1, out="1,32,{h},{h}", layout="bf01_oi01->bf01", size=14):
    """16 features of size x size pixels to 32."""
    kernel, stride, dilation, pad = window
    h = (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
    result = "f32[" + out.format(h=h) + "]"
    return with_values(f"""HloModule conv
ENTRY main {{
  x = f32[1,16,{size},{size}] parameter(0)
  w = f32[32,{16 // groups},{kernel},{kernel}] constant({{...}})
  b = f32[32] parameter(1)
  c = {result} convolution(x, w), window={{size={kernel}x{kernel} stride={stride}x{stride} pad={pad}_{pad}x{pad}_{pad} rhs_dilate={dilation}x{dilation}}}, dim_labels={layout}, feature_group_count={groups}
  bb = {result} broadcast(b), dimensions={{1}}
  ROOT s = {result} add(c, bb)
}}
""")


class LibraryTest(CliTest):
    def need_library(self):
        """oneDNN is optional: skips, with the reason that doctor gives, where there is none."""
        said = self.json("doctor")
        if not said["libdnnl"]:
            self.skipTest(said["onednn"])

    def calls(self, model, *options, **more):
        return self.json("explain", model, *options, **more)["library_calls"]

    def test_by_name_it_does_what_it_can(self):
        self.need_library()
        model = self.file("dot.hlo", DOT)
        calls = self.calls(model, "--library", "onednn")
        self.assertEqual(2, len(calls))
        for call in calls:
            self.assertTrue(call["library"].startswith("onednn "), call)
            self.assertEqual("asked for", call["why"])
        self.assertEqual([], self.calls(model))
        text = self.ok("explain", model, "--library", "onednn").stdout
        self.assertIn("library calls (2):", text)
        self.assertIn("library: 2 products by onednn", text)
        profile = self.json("profile", model, "--library", "onednn")
        self.assertIn("library", [row["kind"] for row in profile["kernels"]])

    def test_agrees_with_the_interpreter(self):
        self.need_library()
        models = {"dot": DOT, "turned": TURNED}
        for i, window in enumerate([(3, 1, 1, 1), (3, 2, 1, 1), (3, 1, 2, 2), (1, 1, 1, 0),
                                    (5, 2, 1, 2)]):
            models[f"conv{i}"] = convolution(window)
        models["grouped"] = convolution((3, 1, 1, 1), groups=4)
        models["depthwise"] = convolution((3, 2, 1, 1), groups=16)
        for name, text in models.items():
            model = self.file(name + ".hlo", text)
            for level in ["O0", "O1", "O2"]:
                for threads in [1, 2]:
                    self.ok("check", model, "--library", "onednn", "--level", level, "--threads",
                            threads)

    def test_threads_do_not_change_bits(self):
        self.need_library()
        model = self.file("big.hlo", DOT.replace("96", "1024").replace("64", "256"))
        files = []
        for threads in [1, 2, 3]:
            files.append(self.folder / f"{threads}.npz")
            self.ok("run", model, "--library", "onednn", "--threads", threads, "--outputs",
                    files[-1])
        for other in files[1:]:
            self.assertEqual(files[0].read_bytes(), other.read_bytes())

    def test_a_saved_program_needs_it(self):
        self.need_library()
        model, saved = self.file("dot.hlo", DOT), self.folder / "dot.heddle"
        self.ok("compile", model, "--library", "onednn", "-o", saved)
        self.ok("run", saved)
        self.assertIn("by onednn in 1 tasks", self.ok("inspect", saved).stdout)
        self.assertIn("needs the library onednn",
                      self.fails(2, "run", saved, env={"HEDDLE_ONEDNN": "off"}))
        self.assertIn("library-absent",
                      self.fails(2, "run", saved, env={"HEDDLE_ONEDNN": "/no/such/file.so"}))

    def test_without_it_auto_is_our_own(self):
        model = self.file("dot.hlo", DOT)
        absent = {"HEDDLE_ONEDNN": "off"}
        said = self.json("explain", model, "--library", "auto", env=absent)
        self.assertEqual([], said["library_calls"])
        self.assertIn("library-absent", [refusal["code"] for refusal in said["refusals"]])
        self.ok("check", model, "--library", "auto", env=absent)
        self.ok("tune", model, "--library", "auto", "--candidates", "1", env=absent)
        self.assertIn("library-absent", self.ok("doctor", env=absent).stdout)

    def test_bad_values(self):
        model = self.file("add.hlo", ADD)
        self.assertIn("none, auto, onednn", self.fails(2, "run", model, "--library", "mkl"))
        self.assertIn("library-absent", self.fails(2, "run", model, "--library", "onednn",
                                                   env={"HEDDLE_ONEDNN": "off"}))
        # A library of another interface is no crash.
        self.assertIn("library-version", self.fails(2, "run", model, "--library", "onednn",
                                                    env={"HEDDLE_ONEDNN": "libm.so.6"}))

    def test_tuning_measures_it(self):
        self.need_library()
        model = self.file("dot.hlo", DOT)
        done = self.json("tune", model, "--library", "auto", "--candidates", "2", "--threads", "1")
        records = {task["key"]: task["record"] for task in done["tasks"]
                   if task["key"].startswith("library ")}
        self.assertEqual(2, len(records), done)
        for record in records.values():
            self.assertIn(record, ["own", "onednn", "onednn whole"])
        calls = self.calls(model, "--library", "auto")
        self.assertEqual(sum(record != "own" for record in records.values()), len(calls))
        for call in calls:
            self.assertIn("measured", call["why"])
        # Without the option records of the library change nothing.
        self.assertEqual([], self.calls(model))


if __name__ == "__main__":
    sys.exit(unittest.main())
