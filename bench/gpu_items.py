"""Runs one item of gpu_rows.py, in a separate process: its last line is a JSON object."""
import json
import os
import re
import subprocess
import sys
import tempfile

import gpu_peers
import gpu_programs

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
MANY_TENSORS = ["l7", "l8"]  # written by a program at full extents
STAND_IN = "libhost_gpu.so"


def program_folder(root):
    """Of gpu_probe: the root of a kit, or the release build of a checkout."""
    if os.path.exists(os.path.join(root, "gpu_probe")):
        return root
    return os.path.join(root, "build", "release")


def environment(root, programs, out, dry):
    result = dict(os.environ, HEDDLE_ROOT=root,
                  TORCHINDUCTOR_CACHE_DIR=os.path.join(out, "cache", "torch"),
                  TORCHINDUCTOR_FX_GRAPH_CACHE="1",
                  JAX_COMPILATION_CACHE_DIR=os.path.join(out, "cache", "jax"),
                  JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
                  XLA_PYTHON_CLIENT_PREALLOCATE="false")
    if dry:
        result["HEDDLE_CUDA_DRIVER"] = result["HEDDLE_NVRTC"] = os.path.join(programs, STAND_IN)
    return result


# ---- rows ----

def row_names():
    kept = os.listdir(os.path.join(HERE, "rows"))
    return sorted([name[:-4] for name in kept if name.endswith(".hlo")] + MANY_TENSORS)


def small(text):
    """With the extents that the text names for tests."""
    named = re.search(r"^// small: (.*)$", text, re.MULTILINE)
    words = dict(pair.split("=") for pair in named[1].split()) if named else {}
    return re.sub(r"\w+", lambda word: words.get(word[0], word[0]), text)


def row_text(row, dry):
    if row in MANY_TENSORS:
        if dry:
            with open(os.path.join(ROOT, "tests", "testdata", "rows", f"{row}.hlo")) as file:
                return small(file.read())
        import many_tensors
        return many_tensors.text(row, many_tensors.shapes(**many_tensors.FULL))
    with open(os.path.join(HERE, "rows", f"{row}.hlo")) as file:
        text = file.read()
    return small(text) if dry else text


def inputs_of(row):
    """From a fixed seed, or None without NumPy."""
    try:
        import catalogue
    except ImportError:
        return None
    return catalogue.ROWS[row].make_inputs()


# ---- items: each returns (exit status, what it tells) ----

def ask(command):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    sys.stderr.write(done.stderr)
    if done.returncode < 0:  # a fault is this item's
        os.kill(os.getpid(), -done.returncode)
    return done


def facts(programs):
    done = ask([os.path.join(programs, "gpu_probe"), "facts"])
    return done.returncode, json.loads(done.stdout)


def test(programs, row):
    """Every kernel of a row at small extents, on the GPU, against the reference interpreter."""
    pattern = {"streams": "GpuRunStreams.*", "hal": "GpuRunHal.*"}.get(row, f"Rows/GpuRun.*/{row}")
    done = ask([os.path.join(programs, "gpu_run_test"), f"--gtest_filter={pattern}"])
    confirmed = re.findall(r"^confirmed (.*)$", done.stdout, re.MULTILINE)
    told = {"confirmed": confirmed}
    if done.returncode == 0 and confirmed:
        return 0, told
    said = " ".join(done.stdout.split())
    first = said.find(": Failure")  # else why it was skipped, at the end
    told["error"] = (said[first:first + 600] if first >= 0 else said[-600:]) or "nothing was confirmed"
    return (1 if confirmed or done.returncode else 3), told


def row(programs, name, dry):
    """The row, checked and timed. In a dry run small, and with other inputs."""
    text = row_text(name, dry)
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, f"{name}.hlo")
        with open(model, "w") as file:
            file.write(text)
        command = [os.path.join(programs, "gpu_probe"), "time", model]
        if name not in MANY_TENSORS:  # which take long to compile
            command.append("--whole")
        inputs = None if dry else inputs_of(name)
        if inputs is not None:
            import numpy as np
            path = os.path.join(folder, "inputs.npz")
            np.savez(path, **inputs)
            del inputs
            command += ["--inputs", path]
        elif re.search(r"^// positive$", text, re.MULTILINE):
            command.append("--positive")
        done = ask(command + (["--untimed"] if dry else []))
    return done.returncode, json.loads(done.stdout)


def run(name, programs, out, dry):
    """The item of that name; its exit status."""
    kind, *rest = name.split(":")
    if kind == "facts":
        status, told = facts(programs)
    elif kind == "test":
        status, told = test(programs, rest[0])
    elif kind == "row":
        status, told = row(programs, rest[0], dry)
    elif kind in ("suite", "model", "network"):
        status, told = gpu_programs.run(kind, rest, programs, out, dry)
    else:
        status, told = gpu_peers.run(kind, rest[0].split("+"), inputs_of, out, dry)
    print(json.dumps(told), flush=True)
    return status
