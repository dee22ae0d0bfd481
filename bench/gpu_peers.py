"""Peers of gpu_rows.py: many rows or networks in one process, since importing torch or JAX costs seconds.
What is compiled beside others is timed one at a time, under a lock; after every row the process prints all
that it has measured, so that a fault costs the rest of its share only."""
import contextlib
import fcntl
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SHARES = 5  # processes of a peer
ROUNDS, RUNS = 15, 20
BOUND = 1e-3  # of max|b|, and the share of integers that may differ: beyond it a peer is wrong


@contextlib.contextmanager
def alone(out):
    """While nothing else is timed."""
    with open(os.path.join(out, "timing.lock"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def median(values):
    return sorted(values)[len(values) // 2]


def error_of(results, expected):
    worst = 0.0
    for got, want in zip(results, expected, strict=True):
        if want.is_floating_point():
            difference = (got.double() - want.double()).abs().max().item()
            worst = max(worst, difference / max(want.double().abs().max().item(), 1e-37))
        else:
            worst = max(worst, (got.long() != want.long()).double().mean().item())
    return worst


def graph_us(function, runs):
    """Of one call in a CUDA graph of `runs` of them: without the host's time."""
    import torch
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        function()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(runs):
            kept = function()
    graph.replay()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    rounds = []
    for _ in range(ROUNDS):
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        rounds.append(begin.elapsed_time(end) * 1e3 / runs)
    del kept
    return median(rounds)


def torch_row(name, inputs, out):
    """The fastest form by torch.compile, checked against torch in f64."""
    import torch
    import torch_rows
    torch.set_default_device("cuda")  # also of constants
    arguments = [torch.as_tensor(x).cuda() for x in inputs.values()]
    wide = [x.double() if x.is_floating_point() else x for x in arguments]

    def listed(results):
        return list(results) if isinstance(results, (tuple, list)) else [results]

    forms = torch_rows.forms_of(name)
    best = None
    with torch.no_grad():
        expected = listed(next(iter(forms.values()))(*wide))
        for form, function in forms.items():
            torch._dynamo.reset()
            compiled = torch.compile(function, dynamic=False)
            error = error_of(listed(compiled(*arguments)), expected)
            if not error <= BOUND:
                return {"error": f"{form}: off by {error:.1e} of max|b|"}
            with alone(out):
                us = graph_us(lambda: compiled(*arguments), RUNS)
            if best is None or us < best["us"]:
                best = {"us": us, "form": form, "error_of_max": error, "version": torch.__version__}
    return best


def jax_row(name, inputs, out):
    """By the host's clock behind RUNS calls: below some 30 us that is the time of a call."""
    import jax
    import jax_rows
    if jax.default_backend() != "gpu":
        raise RuntimeError("jax has no GPU")
    function = jax_rows.compiled(name)
    arguments = [jax.device_put(x) for x in inputs.values()]
    jax.block_until_ready(function(*arguments))
    rounds = []
    with alone(out):
        for _ in range(ROUNDS):
            begin = time.perf_counter()
            for _ in range(RUNS):
                last = function(*arguments)
            jax.block_until_ready(last)
            rounds.append((time.perf_counter() - begin) * 1e6 / RUNS)
    return {"us": median(rounds), "version": jax.__version__}


def torch_network(name, out):
    """The module of bench/models in eager mode and by torch.compile with graphs; f32 without tf32.
    Inputs and outputs are the host's, as for heddle."""
    import torch
    sys.path.insert(0, os.path.join(HERE, "models"))
    import language
    import vision
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(0)
    spec = {**vision.MODELS, **language.MODELS}[name]()
    module = spec["module"].cuda()
    values = [x.pin_memory() for x in next(iter(spec["inputs"].values())).values()]

    def timed(function):
        def once():
            results = function(*(x.cuda(non_blocking=True) for x in values))
            leaves = torch.utils._pytree.tree_leaves(results)
            return [x.cpu() for x in leaves if isinstance(x, torch.Tensor)]
        for _ in range(3):
            once()
        rounds = []
        with alone(out):
            for _ in range(ROUNDS):
                begin = time.perf_counter()
                once()
                rounds.append((time.perf_counter() - begin) * 1e6)
        return median(rounds)

    with torch.no_grad():
        result = {"version": torch.__version__, "eager_us": timed(module)}
        try:
            result["us"] = timed(torch.compile(module, mode="reduce-overhead"))
        except Exception as problem:  # a peer may fail in any way
            result.update(us=result["eager_us"], error=f"{type(problem).__name__}: {problem}"[:200])
    return result


def run(peer, names, inputs_of, out, dry):
    """The results by name; every state of them is printed."""
    found = {}
    for name in names:
        try:
            if dry:
                found[name] = {"us": "not measured"}
            elif peer == "torchnet":
                found[name] = torch_network(name, out)
            else:
                found[name] = {"torch": torch_row, "jax": jax_row}[peer](name, inputs_of(name), out)
        except Exception as problem:  # a peer may fail in any way
            found[name] = {"error": f"{type(problem).__name__}: {problem}"[:300]}
        print(json.dumps({"measured": found}), flush=True)
    return 0, {"measured": found}
