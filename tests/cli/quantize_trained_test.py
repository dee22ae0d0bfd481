"""heddle quantize on networks that were trained (tests/testdata/trained): the same class for 99 of 100 samples
or more, and less than a point of the accuracy lost."""
import json
import sys
import unittest

try:
    import numpy as np
except ImportError:
    np = None

from cli import ROOT, CliTest

FOLDER = ROOT / "tests" / "testdata" / "trained"
NETWORKS = ["cnn", "mobile", "transformer"]
LEAST_AGREEMENT = 0.99
MOST_LOST = 0.01


@unittest.skipIf(np is None, "the package numpy is missing")
class QuantizeTrainedTest(CliTest):
    def unpacked(self, name, what):
        """The arrays of NAME.WHAT.npz, and a file with x as the model takes it."""
        arrays = dict(np.load(FOLDER / f"{name}.{what}.npz"))
        x = arrays["x"]  # bytes
        x = (x.astype(np.float32) - 128) / 32 if x.ndim == 4 else x.astype(np.int64)
        path = self.folder / f"{name}.{what}.npz"
        np.savez(path, x=x)
        return arrays, path

    def logits(self, model, inputs, count):
        out = self.folder / "out.npz"
        self.ok("run", model, "--dim", f"N={count}", "--inputs", inputs, "--outputs", out)
        return np.load(out)["logits"]

    def quantize(self, model, out, *more):
        return json.loads(self.ok("quantize", model, "-o", out, "--json", "-", *more).stdout)

    def test_the_class_stays(self):
        for name in NETWORKS:
            with self.subTest(model=name):
                model, small = FOLDER / f"{name}.onnx", self.folder / f"{name}.q.onnx"
                wanted, inputs = self.unpacked(name, "eval")
                labels, count = wanted["labels"], len(wanted["labels"])
                report = self.quantize(model, small, "--calib", self.unpacked(name, "calib")[1])
                self.assertEqual({layer["type"] for layer in report["layers"]}, {"int8"})
                plain = self.logits(model, inputs, count)
                # The file is what the step trained: its logits are those of NAME_forward.hlo.
                np.testing.assert_allclose(plain, wanted["logits"], rtol=0, atol=1e-4 * abs(plain).max())
                classes, kept = plain.argmax(1), self.logits(small, inputs, count).argmax(1)
                agreement, right = (kept == classes).mean(), (classes == labels).mean()
                lost = right - (kept == labels).mean()
                print(f"{name}: agreement {agreement:.2%}, right {right:.2%}, lost {lost:.2%}, cosine "
                      f"{report['agreement']['cosine']:.5f}, {model.stat().st_size} bytes to {small.stat().st_size}")
                self.assertGreater(right, 0.9)
                self.assertGreaterEqual(agreement, LEAST_AGREEMENT)
                self.assertLess(lost, MOST_LOST)


if __name__ == "__main__":
    sys.exit(unittest.main())
