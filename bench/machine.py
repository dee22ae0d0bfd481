"""What a result was measured on and with, and how results are written."""
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import time

import numpy as np

ISA = ["avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile"]


def output_of(*command, folder=None):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True,
                              cwd=folder).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def version_of(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def machine_class():
    text = output_of("lscpu")
    found = dict(re.findall(r"^([^:\n]+):\s+(.+)$", text, re.MULTILINE))
    flags = found.get("Flags", "").split()
    keys = {"processor": "Model name", "model": "Model", "family": "CPU family", "L2": "L2 cache",
            "L3": "L3 cache", "hypervisor": "Hypervisor vendor"}
    result = {key: found[name] for key, name in keys.items() if name in found}
    result["cores"] = os.cpu_count()
    result["isa"] = [flag for flag in ISA if flag in flags]
    result["system"] = platform.platform()
    return result


def about(source):
    """The header of a result: machine, versions, command, commit of `source`, load at the start."""
    packages = ["onnxruntime", "openvino", "torch", "jax", "torchvision", "transformers", "onnx", "numpy"]
    versions = {p: version_of(p) for p in packages if version_of(p)}
    versions["python"] = platform.python_version()
    versions["c++"] = output_of("c++", "--version").split("\n")[0]
    return {"machine": machine_class(), "versions": versions,
            "commit": output_of("git", "rev-parse", "--short=10", "HEAD", folder=source),
            "command": " ".join([os.path.basename(sys.executable), *sys.argv]),
            "date": time.strftime("%Y-%m-%d"), "load_at_start": list(os.getloadavg())}


def as_markdown(header):
    machine = header["machine"]
    load = ", ".join(f"{x:.1f}" for x in header["load_at_start"])
    versions = ", ".join(f"{name} {version}" for name, version in header["versions"].items())
    return (f"Machine: {machine.get('processor', '?')} (model {machine.get('model', '?')}), "
            f"{machine['cores']} cores, {', '.join(machine['isa'])}, L2 {machine.get('L2', '?')}, "
            f"L3 {machine.get('L3', '?')}.\n"
            f"Versions: {versions}; heddle at {header['commit'] or 'no commit'}.\n"
            f"Command: `{header['command']}`; load average at the start: {load}.\n")


def spread(values):
    return {"median": float(np.median(values)), "min": float(min(values)),
            "max": float(max(values)), "rounds": len(values)}


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def write(out, header, rounds, results, text):
    """OUT.md and OUT.json; nothing without OUT."""
    if not out:
        return
    os.makedirs(os.path.dirname(out) or ".", exist_ok=True)
    with open(out + ".md", "w") as file:
        file.write(text)
    with open(out + ".json", "w") as file:
        json.dump({**header, "rounds": rounds, "results": results}, file, indent=1)
        file.write("\n")
