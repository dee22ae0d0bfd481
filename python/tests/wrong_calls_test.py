"""Wrong calls of the Python package: each raises an exception of the right class, whose message names
what is wrong, and the session works afterwards."""
import tempfile
import unittest

import heddle
import models
import numpy as np

F32, F64, S32 = np.float32, np.float64, np.int32
X = np.ones((2, 3), F32)


def opened(**options):
    return heddle.Session(models.linear("batch"), **{"device": "interp", **options})


def rows():
    """(class, in the message, call of a session)."""
    Error, Input, Shape = heddle.Error, heddle.InputError, heddle.ShapeError
    linear = models.linear("batch")
    files = [
        (Error, "/no/such/model", lambda s: heddle.Session("/no/such/model")),
        (Error, "/tmp", lambda s: heddle.Session("/tmp")),
        (Error, "size", lambda s: heddle.Session(b"")),
        (Error, "not a model", lambda s: heddle.Session(b"nonsense")),
        (Error, "model", lambda s: heddle.Session(linear[:50])),
        (Error, "", lambda s: heddle.load("/no/such/program")),
        (Error, "nothing", lambda s: heddle.Session(
            b"HloModule m\nENTRY e { ROOT x = f32[2] nothing(0) }\n")),
        (heddle.UnsupportedOperators, "MatFoo", lambda s: heddle.Session(
            linear.replace(b"MatMul", b"MatFoo"))),
        (TypeError, "", lambda s: heddle.Session(None)),
        (TypeError, "", lambda s: heddle.Session(3.5)),
        (TypeError, "", lambda s: heddle.Session()),
    ]
    options = [
        ((Error, TypeError), "nonsense", lambda s: opened(nonsense=1)),
        (Error, "level", lambda s: opened(level="O9")),
        (Error, "fuse", lambda s: opened(fuse="all")),
        (Error, "numerics", lambda s: opened(numerics="sloppy")),
        (Error, "precision", lambda s: opened(device="cpu", precision="f31")),
        (Error, "order", lambda s: opened(order="random")),
        (Error, "library", lambda s: opened(library="mkl")),
        (Error, "threads", lambda s: opened(threads=-1)),
        (Error, "threads", lambda s: opened(threads=5000)),
        ((Error, TypeError), "", lambda s: opened(threads="two")),
        ((Error, TypeError), "", lambda s: opened(level=2)),
        (Error, "memory_limit_bytes", lambda s: opened(memory_limit=-1)),
        (Error, "nonsense", lambda s: opened(device="nonsense")),
        (heddle.DeviceError, "", lambda s: opened(device="cuda:99")),
        (Error, "target", lambda s: opened(device="cpu", target="nothing")),
        (Error, "dims", lambda s: opened(dims={"batch": -1})),
        ((Error, TypeError), "", lambda s: opened(dims={"batch": "many"})),
        ((Error, TypeError), "", lambda s: opened(dims=3)),
        (Error, "bounds", lambda s: opened(bounds={"batch": 0})),
        (Error, "width", lambda s: opened(bounds={"width": 8})),
        (Error, "dims", lambda s: opened(shapes={"x": (-2, 3)})),
        (Error, "x", lambda s: opened(shapes={"x": (2, 3, 4)})),
        (Error, "", lambda s: opened(fix={"nothing": X})),
        (Error, "kv", lambda s: opened(kv_cache="nonsense")),
    ]
    runs = [
        (heddle.MissingInput, "no value for x", lambda s: s.run(None, {})),
        (heddle.MissingInput, "no value for x", lambda s: s.run(None, {"z": X})),
        (heddle.UnknownName, "'z'", lambda s: s.run(None, {"x": X, "z": X})),
        (heddle.MissingInput, "2 inputs; wanted 1", lambda s: s.run(None, [X, X])),
        (heddle.MissingInput, "0 inputs; wanted 1", lambda s: s.run(None, [])),
        (heddle.UnknownName, "'z'", lambda s: s.run(["z"], {"x": X})),
        (TypeError, "list", lambda s: s.run("y", {"x": X})),
        (Input, "wanted f32", lambda s: s.run(None, {"x": X.astype(S32)})),
        (Input, "wanted f32", lambda s: s.run(None, {"x": X.astype(F64)})),
        (Input, "", lambda s: s.run(None, {"x": None})),
        (Input, "", lambda s: s.run(None, {"x": "words"})),
        (Input, "", lambda s: s.run(None, {"x": object()})),
        (Shape, "f32[2,4]; wanted f32[batch,3]", lambda s: s.run(None, {"x": X[:, [0, 0, 0, 0]]})),
        (Shape, "f32[3]", lambda s: s.run(None, {"x": X[0]})),
        (Shape, "f32[1,2,3]", lambda s: s.run(None, {"x": X[None]})),
        (Shape, "out for y", lambda s: s.run(
            None, {"x": X}, [np.zeros((3, 4), F32)])),
        (Shape, "out for y", lambda s: s.run(None, {"x": X}, [np.zeros((2, 4), F64)])),
        (Input, "2 arrays for 1", lambda s: s.run(
            None, {"x": X}, [np.zeros((2, 4), F32), np.zeros((2, 4), F32)])),
        ((Input, ValueError), "", lambda s: s.run(None, {"x": X}, [read_only()])),
        (TypeError, "", lambda s: s.run(None, 3)),
        (TypeError, "", lambda s: s.run()),
        (TypeError, "both", lambda s: s(X, x=X)),
        (heddle.UnknownName, "z", lambda s: s(x=X, z=X)),
        (Error, "", lambda s: s.save("")),
        (Error, "", lambda s: s.save("/tmp/x.heddle")),  # interpreted
        (TypeError, "", lambda s: s.save(None)),
        (Error, "most_ms", lambda s: s.wait(-1)),
    ]
    return files + options + runs


def read_only():
    array = np.zeros((2, 4), F32)
    array.flags.writeable = False
    return array


class WrongCallsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)

    def test_each_raises_the_right_class(self):
        all_rows = rows()
        self.assertGreater(len(all_rows), 55)
        session = opened()
        wanted = session.run(None, {"x": X})[0]
        for number, (kind, told, call) in enumerate(all_rows):
            with self.subTest(row=number, told=told):
                with self.assertRaises(kind) as caught:
                    call(session)
                self.assertIn(told, str(caught.exception))
                self.assertNotIn("\n", str(caught.exception).split(" arguments")[0]
                                 if isinstance(caught.exception, heddle.Error) else "")
                np.testing.assert_array_equal(session.run(None, {"x": X})[0], wanted)

    def test_what_is_not_supported_is_listed(self):
        model = models.linear("batch").replace(b"MatMul", b"MatFoo")
        with self.assertRaises(heddle.UnsupportedOperators) as caught:
            heddle.Session(model)
        one, = caught.exception.unsupported
        self.assertEqual((one["kind"], one["count"]), ("operator", 1))
        self.assertEqual(one["what"], "MatFoo")
        self.assertTrue(one["way_out"])
        self.assertEqual(heddle.UnsupportedOperators("other").unsupported, [])


if __name__ == "__main__":
    unittest.main()
