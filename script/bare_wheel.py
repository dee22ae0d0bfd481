"""Inside a bare Debian (script/check_bare): installs the wheel of /check/wheels and uses it."""
import pathlib
import re
import statistics
import subprocess
import sys
import time

CHECK = pathlib.Path("/check")
HOME = pathlib.Path("/opt/home")
PYTHON = HOME / "bin" / "python"
MOST_SECONDS, MOST_BYTES, MOST_IMPORT = 20, 60_000_000, 0.2

faults = []


def expect(fine, text):
    print(("" if fine else "error: ") + text, flush=True)
    if not fine:
        faults.append(text)


def call(*command, status=0, **environment):
    """What the command writes; its status has to be that."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False,
                          env={"PATH": f"{HOME}/bin:/usr/bin:/bin", "HOME": "/root", **environment})
    if done.returncode != status:
        expect(False, f"{' '.join(map(str, command))[:200]}: status {done.returncode}, wanted {status}: "
               f"{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def python(program, **more):
    return call(PYTHON, "-c", program, **more)


def seconds(program):
    begin = time.monotonic()
    python(program)
    return time.monotonic() - begin


def installed():
    subprocess.run([sys.executable, "-m", "venv", HOME], check=True)
    wheel = next((CHECK / "wheels").glob("heddle-*.whl"))
    begin = time.monotonic()
    call(PYTHON, "-m", "pip", "install", "--no-index", "--find-links", CHECK / "wheels", "heddle")
    took = time.monotonic() - begin
    expect(took <= MOST_SECONDS, f"installed in {took:.1f} s with numpy ({wheel.stat().st_size / 1e6:.1f} MB packed)")
    site = next(HOME.glob("lib/python3*/site-packages"))
    files = [f for name in ("heddle", "jax_plugins") for f in (site / name).rglob("*") if f.is_file()]
    size = sum(f.stat().st_size for f in files)
    expect(size <= MOST_BYTES, f"{size / 1e6:.1f} MB on disk, with what Python compiled")
    return site / "heddle"


def imported():
    """In turns; medians of 15, after one that brings the files into memory."""
    pairs = [(seconds("import numpy"), seconds("import numpy, heddle")) for _ in range(16)][1:]
    alone = statistics.median(first for first, _ in pairs)
    more = statistics.median(both - first for first, both in pairs)
    expect(more <= MOST_IMPORT, f"import heddle: {more:.3f} s beyond numpy's {alone:.3f}")


def trained():
    told = python("""
import heddle, numpy as np
data = np.load("/check/trained/cnn.eval.npz")
logits, = heddle.Session("/check/trained/cnn.onnx").run(None, {"x": (data["x"].astype(np.float32) - 128) / 32})
print(abs(logits - data["logits"]).max(), (logits.argmax(1) == data["labels"]).mean())
""", HEDDLE_CACHE="off")
    found = re.fullmatch(r"(\S+) (\S+)\n", told)
    expect(found and float(found[1]) < 1e-4 and float(found[2]) > 0.9,
           f"a trained network: {told.strip()} (largest difference from its logits, accuracy)")


def commanded():
    model, want = CHECK / "trained" / "cnn.onnx", f"heddle {python('import heddle; print(heddle.__version__)')}"
    expect(call("heddle", "--version") == want, "heddle --version")
    expect(call(PYTHON, "-m", "heddle", "--version") == want, "python -m heddle --version")
    expect("output logits" in call("heddle", "run", model, "--dim", "N=4"), "heddle run")
    expect("PASS" in call("heddle", "check", model, "--dim", "N=4"), "heddle check")
    expect("output logits" in call("heddle", "run", model, "--dim", "N=4", "--outputs", "/tmp/out.npz"),
           "heddle run --outputs (npz)")
    expect("error: " in call("heddle", "run", "/no/such/model", status=2), "heddle run of no file")
    times = []
    for command in (("heddle",), (HOME_PROGRAM,)):
        took = []
        for _ in range(15):
            begin = time.monotonic()
            call(*command, "--version")
            took.append(time.monotonic() - begin)
        times.append(statistics.median(took) * 1000)
    print(f"heddle --version: {times[0]:.0f} ms, of it the program {times[1]:.0f}")


def one_line(told, *words):
    """The last line is no traceback's, and says that."""
    lines = told.strip().splitlines() or [""]
    expect(all(word in lines[-1] for word in words), f"told: {lines[-1]}")


def lacking(package):
    """What is not there is said in one line; `import heddle` works all the same."""
    one_line(python("import heddle.torch", status=1), "torch")
    one_line(python("import heddle, jax_plugins.heddle as p; p.initialize()"), "No module named 'jax'")
    generator = package / "libheddle-llvm.so"
    generator.rename("/tmp/away.so")
    program = "import heddle\nprint(heddle.__version__)\nheddle.Session('/check/trained/cnn.onnx', dims={'N': 1}, cache='off')"
    one_line(python(program, status=1), "MachineError", "libheddle-llvm.so")
    one_line(call("heddle", "run", CHECK / "trained/cnn.onnx", "--dim", "N=4", status=3, HEDDLE_CACHE="off"), "error: ", "libheddle-llvm.so")
    pathlib.Path("/tmp/away.so").rename(generator)
    for part, program in [("libheddle.so.0", "import heddle"), ("bin/heddle", None)]:
        (package / part).rename("/tmp/away")
        one_line(python(program, status=1) if program else call("heddle", "--version", status=3), part)
        pathlib.Path("/tmp/away").rename(package / part)


def removed(package):
    call(PYTHON, "-m", "pip", "uninstall", "-y", "heddle")
    left = [str(f) for f in package.rglob("*")] if package.exists() else []
    left += [str(f) for f in (HOME / "bin").glob("heddle*")]
    expect(not left, f"pip uninstall leaves nothing {left[:3] if left else ''}")


folder = installed()
HOME_PROGRAM = folder / "bin" / "heddle"
imported()
trained()
commanded()
lacking(folder)
removed(folder)
sys.exit(1 if faults else 0)
