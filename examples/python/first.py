"""Runs a model once on zeros and prints its outputs.

    python first.py model.onnx
"""
import sys

import heddle
import numpy as np


def main():
    try:
        session = heddle.Session(sys.argv[1])
    except heddle.UnsupportedOperators as error:
        sys.exit(f"error: not all of it is supported: {error}")
    except heddle.Error as error:
        sys.exit(f"error: {error}")
    feed = {port.name: np.zeros([extent if isinstance(extent, int) else 1 for extent in port.shape],
                                port.dtype) for port in session.inputs}
    for port, array in zip(session.outputs, session.run(None, feed)):
        print(port.name, array.dtype, array.shape)


if __name__ == "__main__":
    main()
