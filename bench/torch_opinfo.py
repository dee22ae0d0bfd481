#!/usr/bin/env python3
"""PyTorch's own operator samples (OpInfo, f32) through torch.compile(backend="heddle").

    PYTHONPATH=build/release/python python bench/torch_opinfo.py [-j 2] [--samples 3] [--level O1]
        [--only REGEX] [--grad] [--json results.json]

Each operator is compiled with fullgraph=True, dynamic=False, for its first samples, and compared
with eager by PyTorch's tolerance for it (or no further from eager in double than eager is).
right: all of them, nothing ran in PyTorch but
the drawing of random numbers ahead (their entries are counted); fallback:
right, with operators that PyTorch ran; wrong; crash: an exception of heddle's or a dead process;
none: Dynamo or eager itself refuses all samples. --grad: gradients of a weighted sum of the results
are compared, too. Needs expecttest.
"""
import argparse
import collections
import json
import os
import re
import signal
import subprocess
import sys
import time
import types
import warnings

TIMEOUT = 120
# Their results' values are whatever was in memory; types and shapes are compared.
UNSPECIFIED = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty",
               "new_empty_strided")


def names_of(infos):
    return {info.name + ("." + info.variant_test_name if info.variant_test_name else ""): info
            for info in infos}


def all_infos():
    import torch
    from torch.testing._internal import common_methods_invocations as common
    # Seeds are set outside of what is compiled.
    common.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
    op_db = common.op_db
    return names_of(one for one in op_db if one.supports_dtype(torch.float32, "cpu"))


def tensors(value):
    import torch
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value)
            if isinstance(leaf, torch.Tensor)]


def tolerance(info):
    import torch
    override = {}
    for decorator in info.decorators:
        for one in getattr(decorator, "decorators", [decorator]):
            found = getattr(one, "d", None) or getattr(one, "tol", None)
            override = found if isinstance(found, dict) else override
    found = override.get(torch.float32)
    if isinstance(found, float):  # precisionOverride: of the absolute difference
        return 1e-5, found
    return None if found is None else (found.rtol, found.atol)


def as_near(info, sample, got, wanted, grad):
    """Whether got is no further than wanted from what eager computes in double."""
    import torch

    def wide(value):
        if isinstance(value, torch.Tensor) and value.dtype == torch.float32:
            return value.detach().double().requires_grad_(value.requires_grad)
        return value
    try:
        input, args, kwargs = torch.utils._pytree.tree_map(
            wide, (sample.input, sample.args, sample.kwargs))
        truth = tensors(info(input, *args, **kwargs))
        if grad:
            truth += gradients(types.SimpleNamespace(input=input, args=args, kwargs=kwargs), truth)
        for a, b, t in zip(tensors(got), tensors(wanted), truth, strict=True):
            if not a.is_floating_point() or t.dtype != torch.float64 or a.shape != t.shape:
                return False
            ours, theirs = (torch.nan_to_num((x.double() - t).abs(), nan=torch.inf).max()
                            for x in (a, b))
            if ours > theirs:
                return False
        return True
    except Exception:
        return False


def gradients(sample, outputs):
    """Of a sum of the outputs, each element with a weight of its own, for the sample's tensors."""
    import torch
    inputs = [one for one in tensors((sample.input, sample.args, sample.kwargs))
              if one.requires_grad]
    total = 0
    for one in tensors(outputs):
        if one.requires_grad and one.is_floating_point():
            total = total + (one * torch.arange(one.numel()).reshape(one.shape).cos()).sum()
    if not inputs or not isinstance(total, torch.Tensor):
        return []
    return [torch.zeros(()) if one is None else one
            for one in torch.autograd.grad(total, inputs, allow_unused=True)]


def check(info, samples, options, grad):
    """(class, detail, operators that PyTorch ran, those it drew numbers with ahead)"""
    import torch
    from heddle.torch import explanation
    eager, outcomes, messages, drawn = collections.Counter(), collections.Counter(), [], set()
    within = tolerance(info)
    grad = grad and info.supports_autograd
    for number, sample in enumerate(info.sample_inputs("cpu", torch.float32, requires_grad=grad)):
        if number >= samples:
            break
        run = lambda: info(sample.input, *sample.args, **sample.kwargs)  # noqa: E731
        torch._dynamo.reset()
        records = explanation._collecting.records = []
        try:
            torch.manual_seed(0)
            wanted = run()
            if grad:
                wanted = [*tensors(wanted), *gradients(sample, wanted)]
        except Exception:
            continue
        def function(input, args, kwargs):  # noqa: E306
            return info(input, *args, **kwargs)
        try:
            torch.manual_seed(0)
            compiled = torch.compile(function, backend="heddle", fullgraph=True, dynamic=False,
                                     options=options)
            with torch.set_grad_enabled(grad):
                got = compiled(sample.input, sample.args, sample.kwargs)
            if grad:
                got = [*tensors(got), *gradients(sample, got)]
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            ours = "heddle" in text or "/heddle/" in "".join(
                __import__("traceback").format_tb(error.__traceback__)[-1:])
            outcomes["crash" if ours else "none"] += 1
            messages.append(" ".join(text.split())[:300])
            continue
        for record in records:
            drawn.update(record.drawn)
            eager.update(f"{name}{'' if why == 'no row' else ': ' + why}"
                         for name, (why, _) in record.eager.items())
            if any(part[0] == 0 for part in record.parts):
                eager.update(["(graph) " + part[2] for part in record.parts if part[0] == 0])
        try:
            for a, b in zip(tensors(got), tensors(wanted), strict=True):
                limits = {} if within is None else {"rtol": within[0], "atol": within[1]}
                if info.name in UNSPECIFIED:
                    a, b = torch.zeros_like(a), torch.zeros_like(b)
                torch.testing.assert_close(a, b, equal_nan=True, check_stride=False,
                                           **limits)
            outcomes["right"] += 1
        except AssertionError as error:
            if as_near(info, sample, got, wanted, grad):
                outcomes["right"] += 1
                continue
            outcomes["wrong"] += 1
            messages.append(f"sample {number}: " + " ".join(str(error).split())[:250])
        except Exception as error:
            outcomes["wrong"] += 1
            messages.append(f"sample {number}: " + " ".join(str(error).split())[:250])
    for kind in ("crash", "wrong"):
        if outcomes[kind]:
            return kind, "; ".join(messages[:2]), sorted(eager), sorted(drawn)
    if not outcomes["right"]:
        return "none", "; ".join(messages[:1]), sorted(eager), []
    return ("fallback" if eager else "right"), "", sorted(eager), sorted(drawn)


def work(options, samples, grad):
    warnings.filterwarnings("ignore")
    infos = all_infos()
    def late(*_):  # noqa: E306
        raise TimeoutError
    signal.signal(signal.SIGALRM, late)
    for line in sys.stdin:
        name = line.strip()
        signal.alarm(TIMEOUT)
        try:
            outcome = check(infos[name], samples, options, grad)
        except TimeoutError:
            outcome = "crash", "timeout", [], []
        except Exception as error:
            outcome = "none", f"{type(error).__name__}: {error}"[:200], [], []
        signal.alarm(0)
        print("RESULT " + json.dumps([name, *outcome]), flush=True)


def shard(names, args, results):
    """One worker at a time; a name that killed it is a crash. Results are written as they come."""
    todo = list(names)
    while todo:
        process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "--worker", "--samples",
             str(args.samples), "--level", args.level] + ["--grad"] * args.grad,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        while todo:
            try:
                process.stdin.write(todo[0] + "\n")
                process.stdin.flush()
            except BrokenPipeError:
                pass
            line = ""
            for line in process.stdout:
                if line.startswith("RESULT "):
                    break
            if not line.startswith("RESULT "):
                results[todo[0]] = ("crash", f"the process died ({process.wait()})", [], [])
                todo.pop(0)
                break
            name, *outcome = json.loads(line[7:])
            results[name] = outcome
            save(args.json, results)
            todo.pop(0)
        process.stdin.close()
        process.wait()


def save(path, results):
    if path:
        with open(path, "w") as file:
            json.dump(dict(results), file, indent=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-j", type=int, default=2)
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--level", default="O1")
    parser.add_argument("--only", default="")
    parser.add_argument("--grad", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--worker", action="store_true")
    args = parser.parse_args()
    options = {"level": args.level, "threads": 1}
    if args.worker:
        return work(options, args.samples, args.grad)
    import threading
    names = [name for name in all_infos() if re.search(args.only, name)]
    results, start = {}, time.time()
    threads = [threading.Thread(target=shard, args=(names[i::args.j], args, results))
               for i in range(args.j)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts = collections.Counter(kind for kind, *_ in results.values())
    print(f"{len(results)} operators in {time.time() - start:.0f} s: "
          + ", ".join(f"{kind} {count}" for kind, count in counts.most_common()))
    drawing = sum(kind == "right" and bool(drawn) for kind, _, _, drawn in results.values())
    print(f"of the right ones {drawing} with random numbers that PyTorch's generator drew ahead")
    missing = collections.Counter(name for _, _, eager, _ in results.values() for name in eager)
    for kind in ("crash", "wrong", "none"):
        for name, (got, detail, *_) in sorted(results.items()):
            if got == kind:
                print(f"{kind}: {name}: {detail}")
    for name, count in missing.most_common():
        print(f"in PyTorch: {name}: {count}")
    save(args.json, results)


if __name__ == "__main__":
    sys.exit(main())
