"""The programs by name; a program is made when it is asked for, as a function and its arguments."""
import numpy as np

PROGRAMS = {}


def program(kind):
    """Registers a function without arguments that returns (function to jit, arguments). `kind` is
    "inference", "training" or "science"."""
    def register(make):
        PROGRAMS[make.__name__] = (kind, make)
        return make
    return register


def normal(*shape, seed=0, scale=1.0, dtype=np.float32):
    return (np.random.RandomState(seed).randn(*shape) * scale).astype(dtype)


def integers(high, *shape, seed=0):
    return np.random.RandomState(seed).randint(0, high, shape).astype(np.int32)
