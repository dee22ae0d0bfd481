"""The pages of docs/reference that list operators by front end, from the importers' own tables."""
import importlib
import importlib.machinery
import pathlib
import re
import sys
import types

ROOT = pathlib.Path(__file__).resolve().parent.parent
IMPORT = ROOT / "src" / "import"
NEWEST_OPSET = re.compile(r"opsets (\d+) to (\d+)")


def onnx_rows():
    """Name -> (least, most inputs) of each row of the operator tables."""
    rows = {}
    for path in sorted(IMPORT.glob("onnx_*.cc")):
        for name, least, most in re.findall(r'\{"([A-Za-z0-9_.]+)",\s*(-?\d+),\s*(-?\d+),\s*', path.read_text()):
            rows[name] = (int(least), int(most))
    return rows


def inputs_text(least, most):
    if most < 0:
        return f"{least} or more"
    return str(least) if least == most else f"{least} to {most}"


def onnx_page(made):
    domains = {}
    for name, inputs in onnx_rows().items():
        domain, _, word = name.rpartition(".")
        domains.setdefault(domain, []).append((word, inputs))
    least, most = NEWEST_OPSET.search((IMPORT / "README.md").read_text()).groups()
    lines = ["# Operators of ONNX", "", made.format("the tables in src/import/onnx_*.cc"),
             f"Opsets {least} to {most} of `ai.onnx`, in the forms that each opset has. Control flow (`If`, `Loop`, `Scan`) and functions of the model are read, too. "
             "`heddle inspect --supported model.onnx` lists all that a model has and heddle cannot read, with its places and a way out; what is known about single operators is in "
             "[trees-and-strings.md](../trees-and-strings.md) and [numerics.md](../numerics.md#edges-of-onnx-operators).", ""]
    for domain, rows in sorted(domains.items()):
        lines += [f"## {domain or 'ai.onnx'}", "", f"{len(rows)} operators.", "", "| operator | inputs |", "|---|---|"]
        lines += [f"| `{word}` | {inputs_text(*inputs)} |" for word, inputs in sorted(rows)]
        lines += [""]
    return "\n".join(lines)


def stablehlo_rows():
    names = set()
    for path in IMPORT.glob("*.cc"):
        names |= set(re.findall(r'\{"((?:stablehlo|chlo|check|func|interpreter)\.[a-z_0-9]+)",\s*[A-Za-z_]', path.read_text()))
    return names


def hlo_rows():
    text = (ROOT / "src" / "hlo" / "ops.def").read_text()
    return re.findall(r'^HEDDLE_OP\(\w+, "([a-z0-9-]+)", (-?\d+), (-?\d+),', text, re.MULTILINE)


def hlo_page(made):
    lines = ["# Operators of HLO and StableHLO", "", made.format("src/hlo/ops.def and the tables in src/import/stablehlo_*.cc"),
             "What the readers of HLO text, HLO protos, StableHLO text and portable bytecode know ([stablehlo.md](../stablehlo.md)). "
             "JAX's programs come as StableHLO ([jax.md](../jax.md)).", "",
             "## HLO", "", "| operator | operands |", "|---|---|"]
    lines += [f"| `{name}` | {inputs_text(int(least), int(most))} |" for name, least, most in sorted(hlo_rows())]
    titles = {"stablehlo": "StableHLO", "chlo": "chlo", "check": "check (tests)", "func": "func",
              "interpreter": "interpreter (tests)"}
    for dialect, title in titles.items():
        names = sorted(name for name in stablehlo_rows() if name.startswith(dialect + "."))
        lines += ["", f"## {title}", "", ", ".join(f"`{name}`" for name in names) + "."]
    return "\n".join(lines) + "\n"


class _Nothing:
    """Stands for any value of torch or numpy: the tables of operators only name them."""

    def __init__(self, *args, **options):
        pass

    def __call__(self, *args, **options):
        return _Nothing()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Nothing()

    def __getitem__(self, key):
        return _Nothing()

    def __iter__(self):
        return iter(())


class _Module(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (_Nothing,), {})


class _Finder:
    """Makes `import torch` give names and nothing else, so that no PyTorch is needed to list rows."""

    def find_spec(self, name, path=None, target=None):
        del path, target
        ours = name.split(".")[0] in ("torch", "numpy")
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if ours else None

    def create_module(self, spec):
        return _Module(spec.name)

    def exec_module(self, module):
        pass


def torch_rows():
    """The rows of heddle.torch's tables, without PyTorch. Leaves no module behind."""
    before = dict(sys.modules)
    folder = ROOT / "python" / "heddle" / "torch"
    package = types.ModuleType("heddle_torch_rows")
    package.__path__ = [str(folder)]
    finder = _Finder()
    for name in [name for name in sys.modules if name.split(".")[0] in ("torch", "numpy")]:
        del sys.modules[name]
    sys.modules[package.__name__] = package
    sys.meta_path.insert(0, finder)
    try:
        table = importlib.import_module(package.__name__ + ".table")
        for path in sorted(folder.glob("ops_*.py")):
            importlib.import_module(f"{package.__name__}.{path.stem}")
        return sorted({*table.ROWS, *table.BOUNDED})
    finally:
        sys.meta_path.remove(finder)
        sys.modules.clear()
        sys.modules.update(before)


def torch_page(made):
    names = torch_rows()
    lines = ["# Operators of PyTorch", "", made.format("python/heddle/torch/ops_*.py"),
             f"The {len(names)} operators (of ATen where no other name space is given) that `torch.compile(model, backend=\"heddle\")` computes itself. A name without an overload stands for all of its overloads. "
             "PyTorch's decompositions bring others down to these, and what is left runs in PyTorch ([pytorch.md](../pytorch.md#what-runs-in-pytorch)).", "",
             ", ".join(f"`{name}`" for name in names) + "."]
    return "\n".join(lines) + "\n"


def pages(made):
    yield "operators-onnx.md", onnx_page(made)
    yield "operators-hlo.md", hlo_page(made)
    yield "operators-pytorch.md", torch_page(made)
