"""The compile cache over processes: cold starts at once, kill -9 at any moment, damage.

Longer: python3 tests/cli/cache_test.py --kills 200   (HEDDLE names the command; the default is
build/release/heddle)
"""
import os
import random
import signal
import subprocess
import sys
import time
import unittest

from cli import HEDDLE, CliTest, read_npz

PROCESSES = 8
kills = 6

# A few kernels, so that a compilation takes a while.
MODEL = """HloModule stack
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY main {
  x = f32[16,64] parameter(0)
  w = f32[64,64] parameter(1)
  a = f32[16,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[16,64] tanh(a)
  c = f32[16,64] dot(b, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d = f32[16,64] exponential(c)
  zero = f32[] constant(0)
  ROOT e = f32[16] reduce(d, zero), dimensions={1}, to_apply=add
}
"""
# The same with 5 MB of weights that are prepared once.
PREPARED = MODEL.replace("  ROOT e =", "  e =").replace("\n}", """
  ids = s32[64,20000] iota(), iota_dimension=1
  many = f32[64,20000] convert(ids)
  f = f32[16,20000] dot(b, many), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  g = f32[16] reduce(f, zero), dimensions={1}, to_apply=add
  ROOT h = f32[16] add(e, g)
}""")


class CacheTest(CliTest):
    def start(self, model, outputs, cache):
        environment = {**os.environ, "HEDDLE_CACHE": str(cache)}
        command = [HEDDLE, "run", model, "--threads", "1", "--seed", "7", "--outputs", outputs,
                   "--json", "-"]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=environment, text=True)

    def entries(self, cache):
        return sorted(path.name for path in cache.rglob("*")
                      if path.is_file() and len(path.parent.name) == 2)

    def test_eight_cold_processes_compile_once(self):
        model = self.file("stack.hlo", PREPARED)
        for attempt in range(2):
            cache = self.folder / f"cache{attempt}"
            running = [self.start(model, self.folder / f"{i}.npz", cache)
                       for i in range(PROCESSES)]
            cold = 0
            for process in running:
                out, err = process.communicate(timeout=120)
                self.assertEqual(0, process.returncode, err)
                cold += '"cache": "cold"' in out
            self.assertEqual(1, cold)
            results = [read_npz(self.folder / f"{i}.npz") for i in range(PROCESSES)]
            self.assertTrue(all(result == results[0] for result in results))
            names = self.entries(cache)
            self.assertFalse([name for name in names if not name.endswith((".o", ".w"))])
            self.assertEqual(1, sum(name.endswith(".w") for name in names))

    def test_killed_at_any_moment(self):
        """Never a wrong result, a stuck process, or a half entry used."""
        model = self.file("stack.hlo", PREPARED)
        wanted_file, got_file = self.folder / "wanted.npz", self.folder / "got.npz"
        begin = time.monotonic()
        process = self.start(model, wanted_file, self.folder / "first")
        self.assertEqual(0, process.wait(120), process.stderr.read())
        took = time.monotonic() - begin
        process.stdout.close()
        process.stderr.close()
        wanted = read_npz(wanted_file)
        rng = random.Random(os.environ.get("HEDDLE_SEED", "1"))
        died, slowest = 0, 0.0
        cache = self.folder / "cache0"
        for number in range(kills):
            if number % 4 == 0:  # the others begin with what those before have left
                cache = self.folder / f"cache{number}"
            victims = [self.start(model, self.folder / f"v{i}.npz", cache) for i in range(2)]
            time.sleep(rng.random() * took * 1.2)
            for victim in victims:
                victim.send_signal(signal.SIGKILL)
            for victim in victims:
                victim.communicate(timeout=60)
                died += victim.returncode == -signal.SIGKILL
            got_file.unlink(missing_ok=True)
            begin = time.monotonic()
            after = self.start(model, got_file, cache)
            _, err = after.communicate(timeout=60)
            slowest = max(slowest, time.monotonic() - begin)
            self.assertEqual(0, after.returncode, err)
            self.assertEqual(wanted, read_npz(got_file))
        self.assertGreater(died, 0)
        if kills > 50:
            print(f"{kills} rounds of two killed processes: {died} died at work; the one after "
                  f"them took {slowest:.2f} s at most")

    def test_damaged_entries_are_compiled_anew(self):
        model, cache = self.file("stack.hlo", PREPARED), self.folder / "cache"
        outputs = self.folder / "out.npz"
        self.ok("run", model, "--seed", "7", "--outputs", outputs)
        wanted = read_npz(outputs)
        rng = random.Random(3)
        for number in range(4):
            for path in cache.glob("??/*.[ow]"):
                data = bytearray(path.read_bytes())
                if number % 2 == 0:
                    data = data[:rng.randrange(len(data))]
                else:
                    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
                path.write_bytes(data)
            shown = self.json("run", model, "--seed", "7", "--outputs", outputs)
            self.assertEqual("cold", shown["cache"])
            self.assertEqual(wanted, read_npz(outputs))
            self.assertEqual("warm", self.json("run", model)["cache"])
            self.assertEqual(1, self.json("cache")["weight_entries"])

    def test_shows_and_clears(self):
        model = self.file("stack.hlo", PREPARED)
        self.assertEqual(0, self.json("cache")["entries"])
        self.ok("run", model)
        full = self.json("cache")
        self.assertGreater(full["entries"], 0)
        self.assertGreater(full["bytes"], full["weight_bytes"])
        self.assertGreater(full["weight_bytes"], 5_000_000)
        cleared = self.json("cache", "clear")
        self.assertEqual((full["entries"], 0, 0),
                         (cleared["removed"], cleared["entries"], cleared["bytes"]))
        self.assertEqual("cold", self.json("run", model)["cache"])


if __name__ == "__main__":
    if "--kills" in sys.argv:
        at = sys.argv.index("--kills")
        kills = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    sys.exit(unittest.main())
