"""heddle.backend, as ONNX's test runner uses it."""
import unittest

import heddle.backend
import models
import numpy as np

X = np.array([[1, 2, 3], [-1, 0.5, 2]], np.float32)


class BackendTest(unittest.TestCase):
    def test_prepared(self):
        prepared = heddle.backend.prepare(models.linear("batch"), "CPU")
        for x in [X, X[:1]]:
            got, = prepared.run([x])
            np.testing.assert_allclose(got, models.linear_value(x), rtol=1e-6)
        np.testing.assert_allclose(heddle.backend.run_model(models.linear(), X)[0],
                                   models.linear_value(X), rtol=1e-6)

    def test_devices(self):
        self.assertTrue(heddle.backend.supports_device("CPU"))
        self.assertFalse(heddle.backend.supports_device("ABACUS"))

    def test_nodes_of_onnx(self):
        try:
            import onnx.backend.test
            from onnx import helper
        except ImportError:
            self.skipTest("onnx is not installed")
        got, = heddle.backend.run_node(helper.make_node("Abs", ["x"], ["y"]), [-X])
        np.testing.assert_array_equal(got, np.abs(X))
        tests = onnx.backend.test.BackendTest(heddle.backend, __name__)
        tests.include("test_(relu|gemm_all_attributes|nonzero_example|cast_INT4_to_FLOAT|"
                      "adam_multiple|string_concat|reshape_extended_dims|top_k)_cpu")
        suite = unittest.TestSuite()
        for case in tests.test_cases.values():
            suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
        result = unittest.TestResult()
        suite.run(result)
        self.assertEqual([], [text for _, text in result.failures + result.errors])
        self.assertEqual(result.testsRun - len(result.skipped), 8)


if __name__ == "__main__":
    unittest.main()
