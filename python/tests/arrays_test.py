"""Arrays in and out: of any kind, without copies where that can be."""
import array
import gc
import unittest
import weakref

import heddle
import models
import numpy as np


def echo(type_number, dims):
    return heddle.Session(models.identity(type_number, dims))


class InputTest(unittest.TestCase):
    def test_types(self):
        numbers = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6,
                   "int64": 7, "bool": 9, "float16": 10, "float64": 11, "uint32": 12,
                   "uint64": 13, "complex64": 14, "complex128": 15}
        for name, number in numbers.items():
            with self.subTest(name):
                x = np.array([0, 1, 2, 100]).astype(name)
                session = echo(number, [4])
                self.assertEqual(session.inputs[0].dtype, x.dtype)
                got = session(x)
                self.assertEqual(got.dtype, x.dtype)
                np.testing.assert_array_equal(got, x)

    def test_types_of_ml_dtypes(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("ml_dtypes is not installed")
        numbers = {"bfloat16": 16, "float8_e4m3fn": 17, "float8_e5m2": 19, "uint4": 21, "int4": 22}
        for name, number in numbers.items():
            with self.subTest(name):
                lowest = 0 if name[0] == "u" else -4
                x = np.array([lowest, 1, 2, 6]).astype(getattr(ml_dtypes, name))
                got = echo(number, [4])(x)
                self.assertEqual(got.dtype, x.dtype)
                np.testing.assert_array_equal(got.astype(np.float32), x.astype(np.float32))
                cast = models.model([models.node("Cast", ["x"], ["y"], to=models.F32)],
                                    [("x", number, [4])], [("y", models.F32, [4])], opset=23)
                np.testing.assert_array_equal(heddle.Session(cast)(x), [lowest, 1, 2, 6])

    def test_whatever_way_it_lies_in_memory(self):
        session = echo(models.F32, [3, 4])
        x = np.arange(12, dtype=np.float32).reshape(3, 4)
        wide = np.zeros((6, 8), np.float32)
        wide[::2, 1::2] = x
        for other in [np.asfortranarray(x), wide[::2, 1::2], x[::-1][::-1], x.astype(">f4"),
                      np.broadcast_to(x, (1, 3, 4))[0]]:
            np.testing.assert_array_equal(session(other), x)
        frozen = x.copy()
        frozen.flags.writeable = False
        np.testing.assert_array_equal(session(frozen), x)
        row = echo(models.F32, [3, 4])(np.broadcast_to(np.float32([1, 2, 3, 4]), (3, 4)))
        np.testing.assert_array_equal(row, [[1, 2, 3, 4]] * 3)

    def test_unaligned(self):
        session = echo(models.F32, [5])
        memory = np.zeros(64, np.uint8)
        for offset in range(0, 9):
            x = memory[offset:offset + 20].view(np.float32)
            x[:] = [1, 2, 3, 4, 5]
            np.testing.assert_array_equal(session(x), [1, 2, 3, 4, 5])

    def test_other_kinds(self):
        session = echo(models.F32, [2])

        class WithArray:
            def __array__(self, dtype=None, copy=None):
                return np.array([1, 2], np.float32)

        class WithDlpack:
            def __init__(self):
                self.array = np.array([1, 2], np.float32)

            def __dlpack__(self, **options):
                return self.array.__dlpack__(**options)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        for x in [array.array("f", [1, 2]), memoryview(array.array("f", [1, 2])), WithArray(),
                  WithDlpack(), [1, 2], (1.0, 2.0), range(1, 3),
                  [np.float32(1), np.float32(2)]]:
            np.testing.assert_array_equal(session(x), [1, 2])
        self.assertEqual(echo(models.F32, [])(3).shape, ())
        self.assertEqual(echo(models.F32, [])(np.float32(3)), 3)
        self.assertRaises(heddle.InputError, echo(models.I64, [2]), [1.5, 2])
        self.assertRaises(heddle.InputError, session, [[1], [2, 3]])
        np.testing.assert_array_equal(echo(2, [3])(b"abc"), [97, 98, 99])

    def test_another_device(self):
        class Elsewhere:
            def __dlpack_device__(self):
                return (2, 0)

            def __dlpack__(self, **_):
                raise AssertionError("not to be asked")
        with self.assertRaisesRegex(heddle.InputError, "move it to the host"):
            echo(models.F32, [2])(Elsewhere())

    def test_torch_and_jax(self):
        found = 0
        try:
            import torch
            found += 1
            x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
            session = echo(models.F32, [3, 2])
            np.testing.assert_array_equal(session(x.T), x.T.numpy())
            np.testing.assert_array_equal(session(x.reshape(3, 2).requires_grad_()),
                                          x.reshape(3, 2).numpy())
            got = echo(models.BF16, [2])(torch.tensor([1.5, 2], dtype=torch.bfloat16))
            np.testing.assert_array_equal(got.astype(np.float32), [1.5, 2])
            self.assertEqual(torch.from_dlpack(session(x.T)).shape, (3, 2))
        except ImportError:
            pass
        try:
            import jax.numpy
            found += 1
            np.testing.assert_array_equal(echo(models.F32, [2])(jax.numpy.ones(2)), [1, 1])
            got = echo(models.BF16, [2])(jax.numpy.ones(2, "bfloat16"))
            np.testing.assert_array_equal(got.astype(np.float32), [1, 1])
            import jax.export
            exported = jax.export.export(jax.jit(lambda a, b: a - b))(1.0, jax.numpy.ones(2))
            np.testing.assert_array_equal(heddle.Session(exported)(3, [1, 2]), [2, 1])
        except ImportError:
            pass
        if not found:
            self.skipTest("neither torch nor jax is installed")

    def test_nothing_is_kept(self):
        session = echo(models.F32, [4])

        class Own(np.ndarray):
            pass
        x = np.arange(4, dtype=np.float32).view(Own)
        gone = weakref.ref(x)
        session(x)
        del x
        gc.collect()
        self.assertIsNone(gone())


class OutputTest(unittest.TestCase):
    def test_own_their_memory(self):
        session = echo(models.F32, [1000])
        x = np.arange(1000, dtype=np.float32)
        first = session(x)
        for k in range(20):
            np.testing.assert_array_equal(session(x + k), x + k)
        del session
        gc.collect()
        np.testing.assert_array_equal(first, x)
        first += 1
        np.testing.assert_array_equal(first, x + 1)
        self.assertFalse(np.shares_memory(first, x))

    def test_are_dense_and_aligned(self):
        for dims in [[3], [2, 5], [1, 1, 7]]:
            got = echo(models.F32, dims)(np.ones(dims, np.float32))
            self.assertEqual(got.ctypes.data % 64, 0)
            self.assertTrue(got.flags.c_contiguous and got.flags.writeable)

    def test_empty(self):
        got = echo(models.F32, [0, 3])(np.zeros((0, 3), np.float32))
        self.assertEqual(got.shape, (0, 3))


class TextTest(unittest.TestCase):
    def test_strings(self):
        session = echo(models.STRING, [2, 2])
        words = [["ä", "b"], ["", "ä"]]
        self.assertEqual(session.inputs[0].type, "string")
        for x in [words, np.array(words), np.array(words, dtype=object)]:
            got = session(x)
            self.assertEqual(got.dtype, object)
            self.assertEqual(got.tolist(), words)
        self.assertRaises(heddle.InputError, session, np.ones((2, 2), np.float32))
        self.assertRaises(heddle.InputError, session, [["a", 1], ["b", None]])
        self.assertRaises(heddle.ShapeError, session, ["a", "b"])

    def test_labels(self):
        table = models.node("LabelEncoder", ["x"], ["y"], "ai.onnx.ml", keys_int64s=[1, 2],
                            values_int64s=[10, 20], default_int64=-1)
        session = heddle.Session(models.model([table], [("x", models.I64, ["n"])],
                                              [("y", models.I64, ["n"])]))
        np.testing.assert_array_equal(session(np.array([2, 1, 7])), [20, 10, -1])


if __name__ == "__main__":
    unittest.main()
