"""--kv-cache: a decoder's step with its cache in bf16 or int8 computes nearly what it does in f32, over several steps
that hand the cache on."""
import math
import random
import struct
import sys
import unittest
import zipfile

from cli import CliTest, write_npz

HEADS, LENGTH, SIZE = 4, 24, 16
STEP = f"""HloModule step, input_output_alias={{ {{1}}: (1, {{}}, may-alias), {{2}}: (2, {{}}, may-alias) }}
largest {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }}
sum {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
ENTRY e {{
  q = f32[{HEADS},1,{SIZE}] parameter(0)
  keys = f32[{HEADS},{LENGTH},{SIZE}] parameter(1)
  values = f32[{HEADS},{LENGTH},{SIZE}] parameter(2)
  key = f32[{HEADS},1,{SIZE}] parameter(3)
  value = f32[{HEADS},1,{SIZE}] parameter(4)
  at = s32[] parameter(5)
  zero = s32[] constant(0)
  k = f32[{HEADS},{LENGTH},{SIZE}] dynamic-update-slice(keys, key, zero, at, zero)
  v = f32[{HEADS},{LENGTH},{SIZE}] dynamic-update-slice(values, value, zero, at, zero)
  s = f32[{HEADS},1,{LENGTH}] dot(q, k), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{2}}
  low = f32[] constant(-inf)
  m = f32[{HEADS},1] reduce(s, low), dimensions={{2}}, to_apply=largest
  mb = f32[{HEADS},1,{LENGTH}] broadcast(m), dimensions={{0,1}}
  d = f32[{HEADS},1,{LENGTH}] subtract(s, mb)
  e = f32[{HEADS},1,{LENGTH}] exponential(d)
  f = f32[] constant(0)
  t = f32[{HEADS},1] reduce(e, f), dimensions={{2}}, to_apply=sum
  tb = f32[{HEADS},1,{LENGTH}] broadcast(t), dimensions={{0,1}}
  p = f32[{HEADS},1,{LENGTH}] divide(e, tb)
  y = f32[{HEADS},1,{SIZE}] dot(p, v), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
  ROOT r = (f32[{HEADS},1,{SIZE}], f32[{HEADS},{LENGTH},{SIZE}], f32[{HEADS},{LENGTH},{SIZE}]) tuple(y, k, v)
}}
"""
# Inputs of the next step by outputs of this one; in int8 the scales, too.
CARRIED = {"keys": "out1", "values": "out2"}


def cosine(a, b):
    dot = sum(x * y for x, y in zip(a, b))
    return dot / math.sqrt(sum(x * x for x in a) * sum(y * y for y in b))


class KvCacheTest(CliTest):
    def decode(self, kind):
        """The attention's output at every step; the caches go on as they are written."""
        model = self.file("step.hlo", STEP)
        draw = random.Random(1)
        given, results = self.folder / "in.npz", self.folder / "out.npz"
        found, caches = [], {}
        for step in range(LENGTH):
            arrays = {name: ("f", [HEADS, 1, SIZE], [draw.gauss(0, 1) for _ in range(HEADS * SIZE)])
                      for name in ["q", "key", "value"]}
            write_npz(given, at=("i", [], [step]), **arrays)
            with zipfile.ZipFile(given, "a") as archive:
                for name, array in caches.items():
                    archive.writestr(name + ".npy", array)
            rest = [] if caches else ["--random-rest"]
            self.ok("run", model, "--kv-cache", kind, "--inputs", given, "--outputs", results, *rest)
            with zipfile.ZipFile(results) as archive:
                found.append(self.floats(archive.read("out0.npy")))
                names = {name.removesuffix(".npy") for name in archive.namelist()}
                caches = {to + end: archive.read(f"{source}{end}.npy") for to, source in CARRIED.items()
                          for end in ["", ".scale"] if source + end in names}
            self.assertEqual(len(caches), 4 if kind == "int8" else 2)
        return found[-1]

    @staticmethod
    def floats(npy):
        length = struct.unpack("<H", npy[8:10])[0]
        return struct.unpack(f"<{HEADS * SIZE}f", npy[10 + length:])

    def test_steps_stay_near_those_in_f32(self):
        wanted = self.decode("f32")
        self.assertGreater(cosine(self.decode("bf16"), wanted), 0.9999)
        self.assertGreater(cosine(self.decode("int8"), wanted), 0.9999)

    def test_what_is_no_cache(self):
        model = self.file("add.hlo", "HloModule a\nENTRY e { x = f32[2,3,4] parameter(0) ROOT y = f32[2,3,4] add(x, x) }\n")
        self.assertIn("--kv-cache bf16: no cache: wanted an output that is an f32 input",
                      self.fails(2, "run", model, "--kv-cache", "bf16"))
        self.assertIn("--kv-cache f8: wanted one of f32, bf16, int8", self.fails(2, "run", model, "--kv-cache", "f8"))


if __name__ == "__main__":
    sys.exit(unittest.main())
