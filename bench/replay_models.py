"""The models that replay.py compiles: those that every checkout can make without packages, and those in the
folders given. {name: Model}; a name is a set and a model, such as "network/resnet50"."""
import dataclasses
import glob
import os
import re
import subprocess
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
TESTDATA = os.path.join(ROOT, "tests", "testdata")
SUFFIXES = (".onnx", ".hlo", ".mlir")


class Failed(Exception):
    """The line says why."""


@dataclasses.dataclass
class Model:
    path: str
    arguments: list[str]  # of `heddle explain`: extents of dynamic dimensions


def run(*command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{os.path.basename(str(command[0]))}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def shapes_in(npz):
    """name -> extents, read from the headers alone."""
    shapes = {}
    with zipfile.ZipFile(npz) as archive:
        for name in archive.namelist():
            with archive.open(name) as file:
                head = file.read(1024).decode("latin-1")
            found = re.search(r"'shape': \(([^)]*)\)", head)
            if found:
                shapes[name.removesuffix(".npy")] = [int(x) for x in found[1].split(",") if x.strip()]
    return shapes


def with_shapes(path):
    """An ONNX model with dynamic dimensions has the extents of the inputs beside it."""
    arguments = []
    npz = os.path.join(os.path.dirname(path), "inputs.npz")
    if path.endswith(".onnx") and os.path.exists(npz):
        for name, shape in shapes_in(npz).items():
            if shape:
                arguments += ["--shape", f"{name}={'x'.join(map(str, shape))}"]
    return Model(path, arguments)


def kept():
    """Those of the repository."""
    found = {}
    for group, pattern in {"row": os.path.join(HERE, "rows", "*.hlo"),
                           "training": os.path.join(TESTDATA, "training", "*.hlo"),
                           "kind": os.path.join(TESTDATA, "kinds", "*.hlo"),
                           "control": os.path.join(TESTDATA, "control", "*.hlo")}.items():
        for path in glob.glob(pattern):
            found[f"{group}/{os.path.basename(path).removesuffix('.hlo')}"] = Model(path, [])
    for group in ["onnx", "onnx_contrib", "onnx_operators"]:
        for path in glob.glob(os.path.join(TESTDATA, group, "*", "model.onnx")):
            found[f"{group}/{os.path.basename(os.path.dirname(path))}"] = with_shapes(path)
    return found


def write_rows(folder):
    os.makedirs(folder, exist_ok=True)
    for row in ["l7", "l8"]:
        text = run(sys.executable, os.path.join(HERE, "rows", "many_tensors.py"), row)
        with open(os.path.join(folder, row + ".hlo"), "w") as file:
            file.write(text)


def made(folder, write_models, is_wanted):
    """Those that programs write, into `folder`: of the sets that are wanted."""
    writers = {"network": lambda place: run(write_models, place),
               "product": lambda place: run(sys.executable, os.path.join(HERE, "products", "as_hlo.py"), place),
               "row": write_rows}
    found = {}
    for group, write in writers.items():
        if is_wanted(group):
            place = os.path.join(folder, group)
            write(place)
            for path in glob.glob(os.path.join(place, "*.hlo")):
                found[f"{group}/{os.path.basename(path).removesuffix('.hlo')}"] = Model(path, [])
    return found


def given(folders):
    """All models below the folders that were named: "FOLDER/PLACE"."""
    found = {}
    for folder in folders:
        if not os.path.isdir(folder):
            raise Failed(f"{folder}: no such folder")
        top = os.path.realpath(folder)
        for path in glob.glob(os.path.join(top, "**", "*"), recursive=True):
            if path.endswith(SUFFIXES):
                place = os.path.relpath(path, top).rsplit(".", 1)[0].removesuffix("/model")
                found[f"{os.path.basename(top)}/{place}"] = with_shapes(path)
    return found
