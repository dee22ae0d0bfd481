"""Engines that run a row as a Python function of bench/rows: XLA:CPU through JAX, and Inductor. They behave
like the engines of peers.py; the model is ROW for JAX and ROW.FORM for Inductor."""
import os
import sys

import numpy as np

ROWS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rows")


def named(results):
    results = results if isinstance(results, (tuple, list)) else [results]
    return {f"out{i}": np.array(x) for i, x in enumerate(results)}


class Xla:
    """jax.jit; as many threads as processors that the process may use, so it is bound to them."""

    def __init__(self, model, inputs, threads):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
        os.environ["JAX_PLATFORMS"] = "cpu"
        sys.path.insert(0, ROWS)
        import jax
        import jax_rows
        self.name = "xla, jax " + jax.__version__
        self.wait = jax.block_until_ready
        self.function = jax_rows.compiled(model)
        self.arguments = [jax.device_put(x) for x in inputs.values()]
        self.outputs = named(self.run())

    def run(self):
        return self.wait(self.function(*self.arguments))


class InductorRow:
    """torch.compile."""

    def __init__(self, model, inputs, threads):
        sys.path.insert(0, ROWS)
        import torch
        import torch_rows
        row, form = model.split(".")
        self.torch = torch
        self.name = "inductor " + torch.__version__.split("+")[0]
        torch.set_num_threads(threads)
        self.function = torch.compile(torch_rows.forms_of(row)[form], dynamic=False)
        self.arguments = [torch.from_numpy(x) for x in inputs.values()]
        self.outputs = named(self.run())

    def run(self):
        with self.torch.no_grad():
            return self.function(*self.arguments)


KINDS = {"xla": Xla, "inductor_row": InductorRow}
