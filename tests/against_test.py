"""bench/against.py and bench/levels.py: what they make of times, without a clock."""
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
try:
    import against
    import contestants
    import levels
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)


def result(case, ratio, threads=1):
    spread = {"median": ratio, "min": ratio, "max": ratio, "rounds": 15}
    return {"case": case, "threads": threads, "ratio": spread, "before_ms": spread, "after_ms": spread}


class AgainstTest(unittest.TestCase):
    def test_ratios_are_taken_inside_rounds(self):
        # A machine that becomes three times as slow half way is no difference.
        before = [{"wall_ns": [2e6 * slow, 2.2e6 * slow, 9e6 * slow]} for slow in [1, 1, 3, 3, 3]]
        after = [{"wall_ns": [1e6 * slow, 1.1e6 * slow, 1.2e6 * slow]} for slow in [1, 1, 3, 3, 3]]
        ratio = against.ratio_of(contestants.median_ms(before), contestants.median_ms(after))
        self.assertAlmostEqual(2.0, ratio["median"])
        self.assertAlmostEqual(2.0, ratio["min"])
        self.assertEqual(5, ratio["rounds"])

    def test_the_floors_hold(self):
        self.assertAlmostEqual(1.0, against.geomean([0.5, 2.0]))
        ok, lines = against.verdict([result("a", 0.99), result("b", 1.02), result("a", 0.97, 2)], 0.96, 0.95)
        self.assertTrue(ok)
        self.assertIn("1 thread(s): 1.005 in geometric mean over 2 models", lines[0])
        self.assertIn("worst 0.990 a", lines[0])
        ok, lines = against.verdict([result("a", 0.94), result("b", 1.5)], 0.98, 0.95)
        self.assertFalse(ok)
        self.assertIn("below the floor: a, 1 thread(s): 0.940", lines)
        self.assertFalse(against.verdict([result("a", 0.97), result("b", 0.98)], 0.98, 0.95)[0])
        self.assertFalse(against.verdict([result("a", 1.0), {"case": "b", "threads": 1, "failed": "x"}], 0.9, 0.9)[0])
        self.assertFalse(against.verdict([], 0.9, 0.9)[0])

    def test_levels_that_do_not_pay_are_named(self):
        def level(compile_ms, gains):
            spread = [{"median": gain, "min": gain, "max": gain, "rounds": 15} for gain in gains]
            return {"case": "n", "threads": 1, "compile_ms": dict(zip(levels.LEVELS, compile_ms)),
                    "run_ms": dict(zip(levels.LEVELS, [spread[0]] * 3)),
                    "faster": {"O0/O1": spread[0], "O1/O2": spread[1]}}

        self.assertEqual([], levels.faults_of(level([1, 2, 3], [1.5, 0.97]), 0.04))
        self.assertEqual(2, len(levels.faults_of(level([2, 1, 3], [1.5, 0.95]), 0.04)))


if __name__ == "__main__":
    sys.exit(unittest.main())
