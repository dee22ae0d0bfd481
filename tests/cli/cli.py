"""What the tests of the command share: running it, small models, npz without numpy."""
import json
import os
import pathlib
import re
import struct
import subprocess
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HEDDLE = os.environ.get("HEDDLE", str(ROOT / "build" / "release" / "heddle"))
MODELS = ROOT / "tests" / "testdata" / "onnx"

ADD = """HloModule addition
ENTRY main {
  x = f32[2,3] parameter(0)
  y = f32[2,3] parameter(1)
  ROOT z = f32[2,3] add(x, y)
}
"""
LOOKUP = """HloModule lookup
ENTRY main {
  ids = s32[4,1] parameter(0)
  keep_mask = s32[4] parameter(1)
  table = f32[3,2] constant({{0,1},{2,3},{4,5}})
  rows = f32[4,2] gather(table, ids), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,2}
  ROOT out = (f32[4,2], s32[4]) tuple(rows, keep_mask)
}
"""
FORMATS = {"f": "<f4", "i": "<i4", "q": "<i8"}


def with_values(text):
    """HLO text whose constants {...} have values: halves between -1.5 and 2."""
    def literal(dims, at):
        if not dims:
            return str((at % 8 - 3) / 2)
        step = 1
        for d in dims[1:]:
            step *= d
        return "{" + ",".join(literal(dims[1:], at + i * step) for i in range(dims[0])) + "}"

    def value(match):
        return match[1] + literal([int(d) for d in match[2].split(",")], 0) + ")"
    return re.sub(r"(f32\[([\d,]+)\] constant\()\{\.\.\.\}\)", value, text)


def npy(code, dims, values):
    """The bytes of a .npy file; `code` as of struct."""
    shape = "(" + "".join(f"{d}," for d in dims) + ")"
    header = f"{{'descr': '{FORMATS[code]}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    start = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
    return start + struct.pack(f"<{len(values)}{code}", *values)


def write_npz(path, **arrays):
    """arrays: name -> (code, dims, values)."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            archive.writestr(name + ".npy", npy(*array))


def read_npz(path):
    """name -> (dims, values) of f32, i32 and i64 arrays."""
    result = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            length = struct.unpack("<H", data[8:10])[0]
            header = data[10:10 + length].decode()
            descr = re.search(r"'descr': '([^']*)'", header)[1]
            shape = re.search(r"'shape': \(([^)]*)\)", header)[1]
            code = {text: code for code, text in FORMATS.items()}[descr]
            dims = [int(d) for d in shape.split(",") if d.strip()]
            body = data[10 + length:]
            values = struct.unpack(f"<{len(body) // struct.calcsize(code)}{code}", body)
            result[name[:-len(".npy")]] = (dims, list(values))
    return result


class CliTest(unittest.TestCase):
    """A test with a folder of its own, which is also where caches go."""
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="heddle-cli-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    def run_heddle(self, *arguments, env=None, timeout=300, stdout=subprocess.PIPE):
        environment = {**os.environ, "HEDDLE_CACHE": str(self.folder / "cache"), **(env or {})}
        return subprocess.run([HEDDLE, *map(str, arguments)], stdin=subprocess.DEVNULL,
                              stdout=stdout, stderr=subprocess.PIPE, env=environment,
                              timeout=timeout, text=True, errors="replace")

    def ok(self, *arguments, **options):
        done = self.run_heddle(*arguments, **options)
        self.assertEqual(0, done.returncode, f"{arguments}: {done.stderr}{done.stdout}")
        return done

    def fails(self, status, *arguments, **options):
        """Exactly one error line, on standard error; its text."""
        done = self.run_heddle(*arguments, **options)
        self.assertEqual(status, done.returncode, f"{arguments}: {done.stderr}")
        errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        self.assertEqual(1, len(errors), f"{arguments}: {done.stderr}")
        return errors[0]

    def json(self, *arguments, **options):
        """--json -: standard output is one JSON value and nothing else."""
        return json.loads(self.ok(*arguments, "--json", "-", **options).stdout)
