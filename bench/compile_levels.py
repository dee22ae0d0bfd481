"""Compares the levels by the time that a compilation takes once the model is read.

    compile_levels.py [--rounds 3] [--before HEDDLE] [--heddle PATH] [--out OUT.md] [NAME ...]

Networks: those of models/ (write_models, next to heddle: -DHEDDLE_BENCH=ON) and of bench/models/plain.py, written to
build/levels. Milliseconds as `heddle compile --json` reports them (`compile_ms`: without reading the model and
inventing its weights), one thread, nothing cached, the least of the rounds, which are taken in turn.
--before: another build, measured in turn. Exit status 1: on some network a higher level takes no longer
than the one below it.
"""
import argparse
import json
import os
import subprocess
import sys

import machine

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, "build", "levels")
LEVELS = ["O0", "O1", "O2"]
NETWORKS = ["mobilenet_v3", "resnet18", "resnet50", "squeezenet", "efficientnet_b0", "vgg16",
            "repvgg_a0_deploy", "minilm_1x128", "bert_base_1x128", "transformer", "gpt2_decode",
            "conformer", "crnn", "dien", "dlrm"]


def compile_ms(*command):
    done = subprocess.run([*command, "--json", "-"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)["compile_ms"]


def find(name, write_models):
    for path in [os.path.join(FOLDER, name + suffix) for suffix in (".onnx", ".hlo")]:
        if os.path.exists(path):
            return path
    plain = [sys.executable, os.path.join(ROOT, "bench", "models", "plain.py"), FOLDER, name]
    if subprocess.run(plain, capture_output=True, check=False).returncode != 0:
        subprocess.run([write_models, FOLDER, name], check=True)
    return find(name, write_models)


def measure(heddle, path, rounds):
    """{"O0", "O1", "O2": milliseconds}, the least of the rounds, in turn."""
    invented = ["--random-constants"] if path.endswith(".hlo") else []
    compiling = [heddle, "compile", path, *invented, "--threads", "1", "--cache", "off", "-o",
                 os.path.join(FOLDER, "x.heddle"), "--level"]
    ways = {level: [*compiling, level] for level in LEVELS}
    least = {}
    for _ in range(rounds):
        for way, command in ways.items():
            least[way] = min(least.get(way, float("inf")), compile_ms(*command))
    return least


def faults_of(name, ms):
    return [f"{name}: {high} takes {ms[high]:.0f} ms, {low} {ms[low]:.0f} ms"
            for low, high in zip(LEVELS, LEVELS[1:]) if ms[high] <= ms[low]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NETWORKS, metavar="NAME")
    parser.add_argument("--heddle", default=os.path.join(ROOT, "build", "bench", "heddle"))
    parser.add_argument("--before")
    parser.add_argument("--write-models", help="default: beside heddle")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out")
    options = parser.parse_args()
    write_models = options.write_models or os.path.join(os.path.dirname(options.heddle), "write_models")
    os.makedirs(FOLDER, exist_ok=True)
    columns = LEVELS
    head = ["network", *([f"{column} before" for column in columns] if options.before else []),
            *([f"{column} now" for column in columns] if options.before else columns)]
    header, lines, faults = machine.about(ROOT), [], []
    for name in options.names:
        path = find(name, write_models)
        measured = [measure(heddle, path, options.rounds)
                    for heddle in [options.before, options.heddle] if heddle]
        faults += faults_of(name, measured[-1])
        lines.append([name, *(f"{ms[column]:.0f}" for ms in measured for column in columns)])
        print(" ".join(lines[-1]), file=sys.stderr, flush=True)
    text = machine.as_markdown(header) + "\n" + machine.table(head, lines) + "\n" + "".join(f"- {fault}\n" for fault in faults)
    print(text)
    if options.out:
        with open(options.out, "w") as file:
            file.write(text)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
