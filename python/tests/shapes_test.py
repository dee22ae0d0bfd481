"""Shapes that are known when a model runs: nothing has to be said about them."""
import unittest

import heddle
import models
import numpy as np


class LateTest(unittest.TestCase):
    def test_other_shapes_from_run_to_run(self):
        session = heddle.Session(models.linear("batch"))
        for batch in [1, 3, 2, 3, 0, 1, 1]:
            x = np.random.default_rng(batch).normal(size=(batch, 3)).astype(np.float32)
            got, = session.run(None, {"x": x})
            self.assertEqual(got.shape, (batch, 4))
            np.testing.assert_allclose(got, models.linear_value(x), rtol=1e-5, atol=1e-6)

    def test_other_counts_from_run_to_run(self):
        session = heddle.Session(models.positives())
        for x in [[1, -1, 2], [1, 1, 1], [-1, -1, -1], [-1, -1, 5, 6], [1, -1, 2], [1, -1, 3]]:
            got = session(np.array(x, np.float32))
            np.testing.assert_array_equal(got, [np.flatnonzero(np.array(x) > 0)])

    def test_an_input_decides(self):
        session = heddle.Session(models.reshaped())
        x = np.arange(6, dtype=np.float32)
        for shape in [(2, 3), (3, 2), (6, 1), (3, 2), (-1, 2)]:
            np.testing.assert_array_equal(session(x, np.array(shape)), x.reshape(shape))
        with self.assertRaises(heddle.Error):
            session(x, np.array([4, 4]))
        np.testing.assert_array_equal(session(x, np.array([2, 3])), x.reshape(2, 3))

    def test_an_input_that_is_fixed(self):
        session = heddle.Session(models.reshaped(), fix={"shape": np.array([3, 2])})
        self.assertEqual([port.name for port in session.inputs], ["x"])
        self.assertEqual(session.outputs[0].shape, (3, 2))
        self.assertEqual(session(np.arange(6, dtype=np.float32)).shape, (3, 2))

    def test_values_of_a_first_run(self):
        session = heddle.Session(models.reshaped(), values={"shape": np.array([3, 2])})
        self.assertEqual([port.name for port in session.inputs], ["x", "shape"])
        x = np.arange(6, dtype=np.float32)
        for shape in [(3, 2), (2, 3)]:
            np.testing.assert_array_equal(session(x, np.array(shape)), x.reshape(shape))

    def test_what_was_told_not_to_be_late(self):
        session = heddle.Session(models.linear("batch"), late=False)
        self.assertEqual(session(np.ones((1, 3), np.float32)).shape, (1, 4))
        self.assertRaises(heddle.ShapeError, session, np.ones((2, 3), np.float32))
        with self.assertRaisesRegex(heddle.Error, "shape"):
            heddle.Session(models.reshaped(), late=False)

    def test_wrong_shapes(self):
        session = heddle.Session(models.linear("batch"))
        for x in [np.ones(3), np.ones((2, 2)), np.ones((2, 3, 1))]:
            self.assertRaises(heddle.Error, session, x.astype(np.float32))
        self.assertEqual(session(np.ones((2, 3), np.float32)).shape, (2, 4))
        with self.assertRaisesRegex(heddle.ShapeError, r"f32\[2,2\]; wanted f32\[batch,3\]"):
            session(np.ones((2, 2), np.float32))

    def test_dimensions_without_a_name(self):
        relu = models.model([models.node("Relu", ["x"], ["y"])], [("x", models.F32, ["", 2])],
                            [("y", models.F32, ["", 2])])
        session = heddle.Session(relu)
        self.assertEqual(session.inputs[0].shape, (None, 2))
        self.assertEqual(session.outputs[0].shape, (None, 2))
        for rows in [1, 4]:
            self.assertEqual(session(np.ones((rows, 2), np.float32)).shape, (rows, 2))
        with self.assertRaisesRegex(heddle.ShapeError, r"wanted f32\[\?,2\]"):
            session(np.ones((4, 3), np.float32))

    def test_outputs_that_the_model_does_not_describe(self):
        nodes = [models.node("Flatten", ["x"], ["y"], axis=1),
                 models.node("Shape", ["x"], ["z"])]
        described = [("y", models.F32, ["", ""]), ("z", models.I64, [""])]
        flat = models.model(nodes, [("x", models.F32, ["n", 2, "k"])], described)
        session = heddle.Session(flat)
        self.assertEqual([port.shape for port in session.outputs], [(None, None), (3,)])
        session = heddle.Session(flat, dims={"k": 5})
        self.assertEqual([port.shape for port in session.outputs], [(None, 10), (3,)])
        self.assertEqual(session.inputs[0].shape, ("n", 2, 5))
        self.assertEqual(session(np.ones((3, 2, 5), np.float32))[0].shape, (3, 10))
        self.assertRaises(heddle.ShapeError, session, np.ones((3, 2, 4), np.float32))
        self.assertIsNone(heddle.Session(models.positives()).outputs[0].shape)

    def test_goes_on_after_failed_runs(self):
        for options in [{}, {"bounds": {"batch": 8}}]:
            session = heddle.Session(models.linear("batch"), **options)
            for batch in [3, 5, 3, 5, 3]:
                x = np.ones((batch, 3), np.float32)
                with self.assertRaises(heddle.Error):
                    session.run(None, {"x": x}, [np.zeros((9, 9), np.float32)])
                with self.assertRaises(heddle.Error):
                    session.run(["z"], {"x": x})
                np.testing.assert_allclose(session(x), models.linear_value(x), rtol=1e-5)

    def test_into_arrays_of_the_caller(self):
        session = heddle.Session(models.linear("batch"))
        for batch in [2, 3, 3]:
            out = np.empty((batch, 4), np.float32)
            x = np.ones((batch, 3), np.float32)
            self.assertIs(session.run(None, {"x": x}, [out])[0], out)
            np.testing.assert_allclose(out, models.linear_value(x), rtol=1e-6)
            self.assertRaises(heddle.ShapeError, session.run, None, {"x": x},
                              [np.empty((batch + 1, 4), np.float32)])

    def test_exports_of_pytorch(self):
        for name in ["yolo_traced", "t5_decoder_captured", "speech_traced", "experts_captured"]:
            folder = models.DATA / "exports" / name
            session = heddle.Session(folder / "model.onnx")
            for size in range(5):
                inputs = dict(np.load(folder / f"inputs_{size}.npz"))
                expected = dict(np.load(folder / f"expected_{size}.npz"))
                for _ in range(2):
                    got = session.run(list(expected), inputs)
                    for value, want in zip(got, expected.values()):
                        self.assertEqual((value.shape, value.dtype), (want.shape, want.dtype))
                        np.testing.assert_allclose(value, want, rtol=2e-4, atol=2e-5)


class BoundTest(unittest.TestCase):
    def test_a_few_programs_for_all_extents(self):
        session = heddle.Session(models.linear("batch"), bounds={"batch": 64})
        for batch in [*range(1, 65), 5, 1]:
            x = np.random.default_rng(batch).normal(size=(batch, 3)).astype(np.float32)
            np.testing.assert_allclose(session(x), models.linear_value(x), rtol=1e-5, atol=1e-6)
        self.assertLessEqual(session.info["compilations"], 4)
        with self.assertRaisesRegex(heddle.ShapeError, r"f32\[65,3\]; wanted f32\[batch<=64,3\]"):
            session(np.ones((65, 3), np.float32))

    def test_growing_caches(self):
        for total, bounds in [("past + 1", {"past": 16}), ("total", {"past": 16, "total": 17})]:
            session = heddle.Session(models.cache(total), bounds=bounds)
            random = np.random.default_rng(0)
            first = 0 if total == "past + 1" else 1  # a bounded `total` is 2 at least
            past = np.zeros((2, first, 3), np.float32)
            for step in range(first, 16):
                x = random.normal(size=(2, 1, 3)).astype(np.float32)
                mask = np.ones((2, step + 1), np.float32)
                y, present = session.run(None, {"past": past, "x": x, "mask": mask})
                past = np.concatenate([past, x], 1)
                np.testing.assert_array_equal(present, past)
                np.testing.assert_allclose(y, (past @ models.WEIGHTS).sum(1), rtol=1e-4, atol=1e-5)
            self.assertEqual(session.info["compilations"], 1)
            for wrong in [mask[:, 1:], mask[:1]]:
                self.assertRaises(heddle.Error, session.run, None,
                                  {"past": past[:, :15], "x": x, "mask": wrong})

    def test_saved(self):
        import pathlib
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "bounded.heddle"
            heddle.Session(models.linear("batch"), bounds={"batch": 16}).save(path)
            session = heddle.load(path)
            self.assertEqual(session.inputs[0].shape, ("batch", 3))
            for batch in [16, 1, 7]:
                x = np.ones((batch, 3), np.float32)
                np.testing.assert_allclose(session(x), models.linear_value(x), rtol=1e-5)


if __name__ == "__main__":
    unittest.main()
