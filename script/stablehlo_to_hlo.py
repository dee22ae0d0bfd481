#!/usr/bin/env python3
"""Writes StableHLO test files as HLO text, through XLA's own converter (Python with jax).

    stablehlo_to_hlo.py FROM TO

Every function in FROM's .mlir files that takes no arguments and checks what it computes becomes one
.hlo file: the checked values become results, and its inputs (the results of @inputs, or its constants)
become parameters, so that nothing is known before the run. The expected values are dropped: the files
are for comparisons with the interpreter. Prints what was left out, and why.
"""

import collections
import pathlib
import re
import sys

CHECK = re.compile(
    r"^ *(?:check\.expect_\w+|stablehlo\.custom_call @check\.\w+\() *"
    r"(%[\w#]+)(?:, *(%[\w#]+))?[^\n]*?: \(?(tensor<[^\n]*?>)(?:, tensor<[^\n]*>)?\)?(?: -> \(\))? *$",
    re.M)
FUNCTION = re.compile(r"func\.func (?:public |private )?@(\w+)\(\)(?: -> [^\n]*)? (?:attributes [^\n]*)?\{\n(.*?)\n  ?\}|"
                      r"func\.func (?:public |private )?@(\w+)\(\)(?: -> [^\n]*)? \{\n(.*?)\n\}", re.S)


def result_types(text):
    """tensor<..> of a list of result types."""
    return re.findall(r"tensor<[^<>]*(?:<[^<>]*>[^<>]*)*>", text)


def main_of(body, lift):
    """(parameters, result types, body) of what a function computes; None: it checks nothing."""
    checks = list(CHECK.finditer(body))
    if not checks:
        return None
    results = {}
    for check in checks:
        results.setdefault(check[1], check[3])
    body = CHECK.sub("", body)
    parameters = []
    inputs = re.search(r"^ *(%\w+)(?::\d+)? = (?:func\.)?call @inputs\(\) : \(\) -> (.*)$", body, re.M)
    body = re.sub(r"^ *%\w+(?::\d+)? = (?:func\.)?call @expected\(\).*$", "", body, flags=re.M)
    if inputs:
        types = result_types(inputs[2])
        body = body.replace(inputs[0], "")
        for i, one in enumerate(types):
            name = f"%input{i}"
            body = re.sub(re.escape(inputs[1]) + (f"#{i}" if len(types) > 1 else "") + r"(?!\w)", name, body)
            parameters.append((name, one))
    if lift:
        def constant(match):
            parameters.append((match[1], match[2]))
            return ""
        body = re.sub(r"^ *(%\w+) = stablehlo\.constant dense<[^\n]*> : (tensor<[^\n]*>) *$", constant, body,
                      flags=re.M)
    body = re.sub(r"^ *(?:func\.)?return\b.*$", "", body, flags=re.M)
    return parameters, results, body


def module_of(name, text, body, lift):
    made = main_of(body, lift)
    if made is None:
        return None
    parameters, results, body = made
    if not results:
        return None
    head = ", ".join(f"{p}: {t}" for p, t in parameters)
    tail = ", ".join(results)
    types = ", ".join(results.values())
    main = (f"func.func public @main({head}) -> ({types}) {{\n{body}\n"
            f"  func.return {tail} : {types}\n}}\n")
    # What it calls.
    others = [m[0] for m in re.finditer(r"^ *func\.func (?:private |public )?@(\w+)\(.*?\n *\}$", text, re.M | re.S)
              if m[1] != name and f"@{m[1]}" in body]
    return "module @" + re.sub(r"\W", "_", name) + " {\n" + main + "\n".join(others) + "\n}\n"


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, target = map(pathlib.Path, sys.argv[1:])
    import jaxlib.mlir.ir as ir
    from jax._src.interpreters import mlir as jax_mlir
    from jaxlib import xla_client

    target.mkdir(parents=True, exist_ok=True)
    written, left, names = 0, collections.Counter(), set()
    for path in sorted(source.rglob("*.mlir")):
        for piece in path.read_text(errors="replace").split("// -----"):
            for match in FUNCTION.finditer(piece):
                name, body = match[1] or match[3], match[2] or match[4]
                if name in ("inputs", "expected"):
                    continue
                why = "checks nothing that is known here"
                for lift in (True, False):
                    text = module_of(name, piece.replace(match[0], ""), body, lift)
                    if text is None:
                        break
                    try:
                        with jax_mlir.make_ir_context() as context:
                            parsed = str(ir.Module.parse(text, context))
                        hlo = xla_client._xla.mlir.mlir_module_to_xla_computation(
                            parsed, use_tuple_args=False, return_tuple=False).as_hlo_text(True)
                    except Exception as error:  # of many kinds
                        why = str(error).strip().split("\n")[-1][:70] or type(error).__name__
                        continue
                    stem = path.stem if name == "main" else f"{path.stem}__{name}"
                    out = target / f"{stem}.hlo"
                    if out in names:  # functions of several pieces of a file
                        out = target / f"{stem}__{written}.hlo"
                    names.add(out)
                    out.write_text(hlo)
                    written += 1
                    why = None
                    break
                if why:
                    left[why] += 1
    print(f"{written} files; left out: {sum(left.values())}")
    for why, count in left.most_common(12):
        print(f"{count:6} {why}")


if __name__ == "__main__":
    main()
