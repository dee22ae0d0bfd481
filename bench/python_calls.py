"""What a call from Python costs: microseconds of session.run on a network that takes none itself.

    PYTHONPATH=build/release/python python bench/python_calls.py

Compares with onnxruntime where it is installed. The best of seven rounds of 20,000 calls.
"""
import pathlib
import sys
import time

import heddle
import heddle.ort
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python" / "tests"))
import models  # noqa: E402: it lies beside the tests


def microseconds(call, calls=20000, rounds=7):
    best = float("inf")
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, time.perf_counter() - begin)
    return best / calls * 1e6


def main():
    x = np.ones((2, 3), np.float32)
    feed = {"x": x}
    out = [np.empty((2, 4), np.float32)]
    fixed = heddle.Session(models.linear(), threads=1)
    late = heddle.Session(models.linear("batch"), threads=1)
    bounded = heddle.Session(models.linear("batch"), bounds={"batch": 16}, threads=1)
    options = heddle.ort.SessionOptions()
    options.intra_op_num_threads = 1
    shim = heddle.ort.InferenceSession(models.linear(), options)
    rows = {"session.run": lambda: fixed.run(None, feed),
            "session.run, out=": lambda: fixed.run(None, feed, out),
            "session(x)": lambda: fixed(x),
            "dynamic batch": lambda: late.run(None, feed),
            "bounded batch": lambda: bounded.run(None, feed),
            "heddle.ort": lambda: shim.run(None, feed)}
    try:
        import onnxruntime
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        peer = onnxruntime.InferenceSession(models.linear(), options)
        rows[f"onnxruntime {onnxruntime.__version__}"] = lambda: peer.run(None, feed)
    except ImportError:
        pass
    for name, call in rows.items():
        print(f"{name:24} {microseconds(call):6.2f}")


if __name__ == "__main__":
    main()
