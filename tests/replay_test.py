"""bench/replay.py: names are no difference, all else is; and a recording of the command here."""
import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import replay
import replay_diff
import replay_record

HEDDLE = os.environ.get("HEDDLE", str(ROOT / "build" / "release" / "heddle"))
KERNEL = """heddle.kernel 1
kernel {name} {{
  buffer in0 f32[64]
  inner {inner} {{
    phase {{
    }}
  }}
  phase {{
    table {inner} 3
    out0[t0] = in0[t0]*{factor}:f32
  }}
}}
"""
SCHEDULE = """schedule {name} on avx2
phase {{
  group lanes 8 {{
    for t0 parallel {stage}.d0 {{
      {stage} & {stage}.12 : vector d1/8;
    }}
  }}
}}
"""
PLACES = """{stage}: phase 0, reg, need [t0+:{need}], recompute 1, 0 bytes
{stage}.12: phase 0, reg, need [t0+:1], recompute 1, 0 bytes
"""


def kernel(name, stage, factor=2.0, need=1, ns=100.0, commands=("a", "b"), operators="add, dot"):
    return {"name": name, "text": KERNEL.format(name=name, inner=name + "_in", factor=factor),
            "schedule": SCHEDULE.format(name=name, stage=stage), "operators": operators,
            "places": PLACES.format(stage=stage, need=need), "commands": list(commands), "once": False,
            "predicted_ns": ns}


def explained(kernels, launches=4, temporaries=1000):
    return {"kernels": kernels, "launches": launches, "steps_ms": {"fuse": 1.0},
            "memory_bytes": {"temporaries": temporaries, "temporaries_lower_bound": 900,
                             "temporaries_pool_peak": 1000}}


class ReplayTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="heddle-replay-")
        self.addCleanup(folder.cleanup)
        self.store = folder.name
        self.texts = replay_record.Texts(os.path.join(self.store, "texts.db"))
        self.addCleanup(self.texts.close)

    def compare(self, a, b, parts=replay_diff.PARTS):
        return replay_diff.compare(*(replay_record.record_of(x, self.texts) for x in [a, b]), parts)

    def test_names_are_no_difference(self):
        a = explained([kernel("k1234", "add"), kernel("k77", "mul", 3.0)])
        b = explained([kernel("softmax_rows", "encoder/layer_0/attention"), kernel("k1", "x", 3.0)])
        self.assertFalse(self.compare(a, b))
        self.assertFalse(self.compare(a, explained(list(reversed(a["kernels"])))))
        # The kernels of a table have no places.
        for one in [a["kernels"][0], b["kernels"][0]]:
            one["places"] = one["schedule"]
        self.assertFalse(self.compare(a, b))

    def test_planted_differences_are_found(self):
        a = explained([kernel("k1", "add"), kernel("k2", "mul", 3.0, operators="exponential")])
        changed = self.compare(a, explained([kernel("k1", "add", 2.5), a["kernels"][1]]))
        self.assertEqual((1, 0, 0), (len(changed.changed), len(changed.added), len(changed.gone)))
        other = self.compare(a, explained([kernel("k1", "add"), kernel("k3", "mul", 4.0, operators="tanh")]))
        self.assertEqual((0, 1, 1), (len(other.changed), len(other.added), len(other.gone)))
        placed = self.compare(a, explained([kernel("k1", "add", need=2), a["kernels"][1]]))
        self.assertEqual((0, 1), (len(placed.changed), len(placed.schedules)))
        priced = self.compare(a, explained([kernel("k1", "add", ns=101.0), a["kernels"][1]]))
        self.assertEqual(1, len(priced.predictions))
        self.assertIn("predicted ns", priced.numbers)
        used = self.compare(a, explained([kernel("k1", "add", commands="a"), a["kernels"][1]]))
        self.assertEqual(1, len(used.uses))
        self.assertEqual({"launches": (4, 5)}, self.compare(a, explained(a["kernels"], launches=5)).numbers)
        self.assertEqual({"arena temporaries": (1000, 999)},
                         self.compare(a, explained(a["kernels"], temporaries=999)).numbers)
        self.assertFalse(self.compare(a, explained(a["kernels"], launches=5), ["kernels"]))

    def test_what_is_refused_is_compared(self):
        good, bad = {"kernels": []}, {"error": "status 2: error: MODEL"}
        self.assertTrue(replay_diff.compare(good, bad))
        self.assertFalse(replay_diff.compare(bad, dict(bad)))
        self.assertTrue(replay_diff.compare(bad, {"error": "status 134: "}))

    def run_replay(self, *arguments):
        said, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
            status = replay.main(["--store", self.store, *arguments])
        return status, said.getvalue(), errors.getvalue()

    def write(self, name, kernels):
        folder = pathlib.Path(self.store) / name
        folder.mkdir()
        record = {"model": "x", "variants": {"avx2-O2": replay_record.record_of(explained(kernels), self.texts)}}
        (folder / "row@a.json").write_text(json.dumps(record))
        (folder / "about").write_text(json.dumps({"name": name, "date": "2026-01-01", "seconds": 1}))
        self.texts.commit()

    def test_the_command_says_what_differs(self):
        self.write("one", [kernel("k1", "add")])
        self.write("two", [kernel("k2", "sub")])
        self.write("three", [kernel("k1", "add", 2.5)])
        status, said, _ = self.run_replay("diff", "one", "two")
        self.assertEqual((0, 1), (status, len(said.splitlines())))
        status, said, _ = self.run_replay("diff", "one", "three", "--texts", "1")
        self.assertEqual(1, status)
        self.assertIn("row/a avx2-O2: kernels 1 changed\n", said)
        self.assertIn("-    out0[t0] = in0[t0]*2.0:f32\n+    out0[t0] = in0[t0]*2.5:f32\n", said)
        status, said, _ = self.run_replay("list")
        self.assertEqual(3, len(said.splitlines()))
        self.assertIn("1 kernels, 4 launches", self.run_replay("list", "one")[1])
        self.assertEqual(2, self.run_replay("diff", "one", "none")[0])

    @unittest.skipUnless(os.path.exists(HEDDLE), "no command is built")
    def test_a_recording_repeats_and_shows_another_fusion(self):
        models = ["--models", "control/lstm", "--models", "kind/softmax_b*", "--models", "onnx/bert_dynamic"]
        for name, more in {"a": [], "again": [], "off": ["--", "--fuse", "off"]}.items():
            status, said, errors = self.run_replay("record", *models, "--heddle", HEDDLE, "--as", name, *more)
            self.assertEqual(0, status, errors)
            self.assertIn(" 0 compilations refused", said)
        status, said, _ = self.run_replay("diff", "a", "again")
        self.assertEqual(0, status, said)
        status, said, _ = self.run_replay("diff", "a", "off")
        self.assertEqual(1, status)
        for variant in replay_record.VARIANTS:
            self.assertIn(f"kind/softmax_both {variant}: kernels", said)


if __name__ == "__main__":
    sys.exit(unittest.main())
