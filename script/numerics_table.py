"""The table of function bounds in docs/numerics.md, from the rows of the test that checks them.

numerics_table.py prints it; numerics_table.py --write puts it into the document.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEST = ROOT / "src" / "emit" / "llvm" / "math_test.cc"
DOCUMENT = ROOT / "docs" / "numerics.md"
HEADER = "| function | f32 | f64 |"
ROW = re.compile(r"\{Op::(\w+), ([0-9.e]+), ([0-9.e]+), HEDDLE_L\((?:[^{}]*?)\)((?:, [-\w.]+)*)\}")


def ulp(text):
    return f"{float(text):g} ulp"


def rows():
    """(function, f32 bound, f64 bound) of every row of the test."""
    for name, f32, f64, rest in ROW.findall(TEST.read_text()):
        numbers = [word for word in rest.split(", ") if word]
        absolute = float(numbers[0]) if numbers else 0
        bound = ulp(f32) if float(f32) < 1e6 else ""
        if absolute:
            bound = f"{bound}, or {absolute:g} absolute" if bound else f"{absolute:g} absolute"
        yield name, bound, ulp(f64)


def table():
    lines = [HEADER, "|---|---|---|"]
    lines += [f"| `{name}` | {f32} | {f64} |" for name, f32, f64 in rows()]
    return "\n".join(lines)


def with_table(text):
    """The document with its table as it should be."""
    old = re.search(re.escape(HEADER) + r"\n(\|.*\n)*", text)
    return text[:old.start()] + table() + "\n" + text[old.end():] if old else text


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        DOCUMENT.write_text(with_table(DOCUMENT.read_text()))
    else:
        print(table())
