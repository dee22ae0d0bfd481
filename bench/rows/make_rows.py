"""Makes what measuring the rows needs: inputs, expected outputs, and the peers' models.

    python make_rows.py [-o DIR] [ROW ...]

Writes DIR/ROW.inputs.npz (arg0, arg1, ...: the names heddle gives HLO parameters), DIR/ROW.expected.npz
(out0, ...: computed in f64 by torch, rounded to the types of the row), DIR/ROW.FORM.onnx for every form
of torch_rows.py, the HLO text of the rows that are too long to be kept, and DIR/rows.json with the
minimal bytes of each row. A form that cannot be exported is named there with the reason. When rows are
named, existing entries of the others are kept.
"""
import argparse
import json
import os
import re
import sys
import time

import numpy as np
import torch

import catalogue
import many_tensors
import torch_rows

HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT_FOLDER = os.path.realpath(os.path.join(HERE, "..", "..", "build", "bench-rows"))
OPSET = 20
# The forms for Inductor alone: nothing of them is left in an exported graph.
TORCH_ONLY = {"foreach"}
# torch's simplification of an exported graph takes an epsilon of 1e-8 or less for zero.
TINY_EPSILON = {"d4", "e1", "l7"}
# The forms that an operator set after that has an operator for.
LATER_OPSETS = {("l1", "op"): 23, ("l4", "op"): 23}


class AsModule(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *arguments):
        return self.function(*arguments)


def tensors_of(inputs, float_type=torch.float32):
    tensors = [torch.from_numpy(x) for x in inputs.values()]
    return [x.to(float_type) if x.is_floating_point() else x for x in tensors]


def as_list(results):
    return [results] if isinstance(results, torch.Tensor) else list(results)


def expected_of(row, inputs):
    first = next(iter(torch_rows.forms_of(row).values()))
    with torch.no_grad():
        results = as_list(first(*tensors_of(inputs, torch.float64)))
    return {f"out{i}": (x.to(torch.float32) if x.is_floating_point() else x).numpy()
            for i, x in enumerate(results)}


def export(function, inputs, output_count, path, opset, simplify):
    with torch.no_grad():
        torch.onnx.export(AsModule(function).eval(), tuple(tensors_of(inputs)), path, dynamo=True,
                          opset_version=opset, external_data=False, verbose=False,
                          optimize=simplify,
                          input_names=list(inputs),
                          output_names=[f"out{i}" for i in range(output_count)])


def hlo_path(row, folder=DEFAULT_FOLDER):
    """The row's HLO: kept beside this file, or written where the rows are made."""
    kept = os.path.join(HERE, f"{row}.hlo")
    return kept if os.path.exists(kept) else os.path.join(folder, f"{row}.hlo")


def make(row, folder):
    """The entry of rows.json."""
    inputs = catalogue.ROWS[row].make_inputs()
    np.savez(os.path.join(folder, f"{row}.inputs.npz"), **inputs)
    expected = expected_of(row, inputs)
    np.savez(os.path.join(folder, f"{row}.expected.npz"), **expected)
    if row in ["l7", "l8"]:
        with open(hlo_path(row, folder), "w") as file:
            file.write(many_tensors.text(row, catalogue.TENSORS))
    made = {"row": row, "what": catalogue.ROWS[row].what, "onnx_forms": [],
            "torch_forms": list(torch_rows.forms_of(row)), "failed": {},
            "bytes": catalogue.ROWS[row].moved_bytes(inputs, expected.values())}
    for form, function in torch_rows.forms_of(row).items():
        if form in TORCH_ONLY:
            continue
        try:
            export(function, inputs, len(expected), os.path.join(folder, f"{row}.{form}.onnx"),
                   LATER_OPSETS.get((row, form), OPSET), row not in TINY_EPSILON)
            made["onnx_forms"].append(form)
        except Exception as error:  # whatever the exporter cannot do
            said = re.sub(r"\x1b\[\d*m", "", str(error))
            made["failed"][form] = f"{type(error).__name__}: {' '.join(said.split())[:200]}"
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--folder", default=DEFAULT_FOLDER)
    parser.add_argument("rows", nargs="*", help=f"of {', '.join(catalogue.ROWS)} (default: all)")
    options = parser.parse_args()
    unknown = set(options.rows) - set(catalogue.ROWS)
    if unknown:
        sys.exit(f"make_rows: no row {', '.join(sorted(unknown))}")
    os.makedirs(options.folder, exist_ok=True)
    listing = os.path.join(options.folder, "rows.json")
    listed = {}
    if options.rows and os.path.exists(listing):
        with open(listing) as file:
            listed = {entry["row"]: entry for entry in json.load(file)}
    for row in options.rows or catalogue.ROWS:
        begin = time.perf_counter()
        listed[row] = entry = make(row, options.folder)
        print(f"{row}: {', '.join(entry['onnx_forms'])}; {entry['bytes'] / 1e6:.2f} MB; "
              f"{time.perf_counter() - begin:.1f} s", flush=True)
        for form, reason in entry["failed"].items():
            print(f"  {form} is not exported: {reason}", flush=True)
        with open(listing, "w") as file:
            json.dump([listed[r] for r in catalogue.ROWS if r in listed], file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
