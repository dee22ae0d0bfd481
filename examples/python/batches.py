"""Runs a model on requests of different sizes from several threads: one session, a few programs.

    python batches.py model.onnx batch=64       # the dynamic dimension and its bound
"""
import sys
import threading
import time

import heddle
import numpy as np


def request(session, size, random):
    """Random inputs with this extent for every dimension that has a name."""
    feed = {}
    for port in session.inputs:
        shape = [size if isinstance(extent, str) else extent for extent in port.shape]
        feed[port.name] = random.normal(size=shape).astype(port.dtype)
    return feed


def main():
    name, bound = sys.argv[2].split("=")
    try:
        session = heddle.Session(sys.argv[1], bounds={name: int(bound)})
    except heddle.Error as error:
        sys.exit(f"error: {error}")
    print(session)
    counted, lock, until = {}, threading.Lock(), time.monotonic() + 1

    def serve(seed):
        random = np.random.default_rng(seed)
        while time.monotonic() < until:
            size = int(random.integers(1, int(bound) + 1))
            outputs = session.run(None, request(session, size, random))
            with lock:
                counted[size] = counted.get(size, 0) + 1
        del outputs  # arrays of their own: they may outlive the session

    threads = [threading.Thread(target=serve, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{sum(counted.values())} requests of {len(counted)} sizes, "
          f"{session.info['compilations']} compilations")


if __name__ == "__main__":
    main()
