"""Items of gpu_rows.py that run whole programs on the GPU through the command `heddle`: test suites and
small models compared with recorded or interpreted results, and full networks, timed.
ONNX's own backend tests are run where HEDDLE_ONNX_TESTS names their folder."""
import glob
import json
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
DATA = os.path.join(ROOT, "tests", "testdata")
SHARDS = 8  # of a suite with hundreds of files: each is an item


def suite_folder(suite):
    """(kind of `heddle conform`, folder), or None where it is not here."""
    if suite == "backend":  # ONNX's own tests
        folder = os.environ.get("HEDDLE_ONNX_TESTS")
        return ("onnx", folder) if folder else None
    folder = os.path.join(DATA, suite)
    if not os.path.isdir(folder):
        return None
    return ("onnx" if suite.startswith("onnx") else "hlo", folder)


def suites():
    return [suite for suite in ["control", "kinds", "onnx_operators", "onnx_contrib", "backend"]
            if suite_folder(suite)]


def small_models():
    found = [os.path.basename(os.path.dirname(path)) for path in glob.glob(f"{DATA}/onnx/*/expected.npz")]
    steps = [os.path.basename(path)[:-4] for path in glob.glob(f"{DATA}/training/*.hlo")]
    return sorted(found) + sorted(steps)


def network_texts(programs):
    return {os.path.basename(path)[:-4]: path for path in
            sorted(glob.glob(os.path.join(programs, "networks", "*.hlo")))}


def names(programs):
    """Items that may run beside others, and those that measure time."""
    checked = [f"suite:{suite}:{shard}" for suite in suites() for shard in range(SHARDS)]
    checked += [f"model:{name}" for name in small_models()]
    return checked, [f"network:{name}" for name in network_texts(programs)]


def heddle(programs, *words):
    libraries = os.path.join(programs, "lib")  # of a kit
    return subprocess.run([os.path.join(programs, "heddle"), *words], capture_output=True, text=True,
                          errors="replace", env=dict(os.environ, LD_LIBRARY_PATH=libraries))


def suite(programs, name, shard, out):
    """One of SHARDS parts of a suite, in a copy of every SHARDS-th of its entries."""
    kind, folder = suite_folder(name)
    part = os.path.join(out, "suites", f"{name}-{shard}")
    os.makedirs(part, exist_ok=True)
    for entry in sorted(os.listdir(folder))[int(shard)::SHARDS]:
        source, copy = os.path.join(folder, entry), os.path.join(part, entry)
        if os.path.isdir(source):
            shutil.copytree(source, copy, dirs_exist_ok=True)
        else:
            shutil.copy(source, copy)
    board = f"{part}.json"
    done = heddle(programs, "conform", kind, part, "--device", "cuda", "--threads", "1", "--json", board)
    if not os.path.exists(board):
        return 3, {"error": done.stderr.strip()[-300:]}
    with open(board) as file:
        told = json.load(file)
    wrong = [f"{line.get('file', line.get('test', ''))}: {line['outcome']}: {line.get('reason', '')}"[:200]
             for line in told.get("lines", told.get("tests", []))
             if line.get("outcome") not in ("equal", "pass")]
    result = {"outcomes": told.get("outcomes", {}), "pass": told.get("pass", done.returncode == 0)}
    if wrong:
        result["lines"] = wrong[:40]
    if done.returncode != 0:
        result["error"] = "; ".join(wrong[:3]) or done.stdout.strip()[-300:]
    return done.returncode, result


def model(programs, name):
    folder = os.path.join(DATA, "onnx", name)
    files = [os.path.join(folder, file) for file in ("model.onnx", "inputs.npz", "expected.npz")]
    if not os.path.exists(files[0]):
        base = os.path.join(DATA, "training", name)
        files = [f"{base}.hlo", f"{base}.inputs.npz", f"{base}.expected.npz"]
    done = heddle(programs, "check", files[0], "--inputs", files[1], "--expected", files[2],
                  "--device", "cuda")
    told = {"said": done.stdout.strip().splitlines()[-1:]}
    if done.returncode:
        told["error"] = (done.stderr.strip() or done.stdout.strip())[-400:]
    return done.returncode, told


def network(programs, name, dry):
    """Weights stay on the GPU; inputs and outputs are the host's, so that both cross the link."""
    if dry:
        return 0, {"us": "not measured"}
    done = heddle(programs, "bench", network_texts(programs)[name], "--random-constants", "--device",
                  "cuda", "--duration", "1", "--json", "-")
    if done.returncode:
        return done.returncode, {"error": done.stderr.strip()[-300:]}
    told = json.loads(done.stdout)
    return 0, {"us": told["latency_ms"]["median"] * 1e3, "launches": told["launches"],
               "compile_ms": told["compile_ms"], "constants": told["memory_bytes"]["constants"]}


def run(kind, rest, programs, out, dry):
    if kind == "suite":
        return suite(programs, rest[0], rest[1], out)
    if kind == "model":
        return model(programs, rest[0])
    return network(programs, rest[0], dry)
