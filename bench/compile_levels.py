"""Compares the levels by the processor time of `heddle compile`, which a busy machine changes little.

    compile_levels.py [--rounds 3] [--before HEDDLE] [--heddle PATH] [--out OUT.md] [NAME ...]

Networks: those of models/ (write_models, next to heddle: -DHEDDLE_BENCH=ON) and of bench/models/plain.py, written to
build/levels. User and system seconds of the whole command on one thread, nothing cached, the least of the
rounds.
--before: another build, measured in turn. Exit status 1: on some network a higher level takes no longer
than the one below it.
"""
import argparse
import os
import resource
import subprocess
import sys

import machine

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(ROOT, "build", "levels")
LEVELS = ["O0", "O1", "O2"]
NETWORKS = ["mobilenet_v3", "resnet18", "resnet50", "squeezenet", "efficientnet_b0", "vgg16",
            "repvgg_a0_deploy", "minilm_1x128", "bert_base_1x128", "transformer", "gpt2_decode",
            "conformer", "crnn", "dien", "dlrm"]


def seconds_of(*command):
    """User and system time of a command."""
    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = used()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()[-300:]}")
    return used() - before


def find(name, write_models):
    for path in [os.path.join(FOLDER, name + suffix) for suffix in (".onnx", ".hlo")]:
        if os.path.exists(path):
            return path
    plain = [sys.executable, os.path.join(ROOT, "bench", "models", "plain.py"), FOLDER, name]
    if subprocess.run(plain, capture_output=True, check=False).returncode != 0:
        subprocess.run([write_models, FOLDER, name], check=True)
    return find(name, write_models)


def measure(heddle, path, rounds):
    """{"O0", "O1", "O2": seconds}, the least of the rounds, in turn."""
    invented = ["--random-constants"] if path.endswith(".hlo") else []
    compiling = [heddle, "compile", path, *invented, "--threads", "1", "--cache", "off", "-o",
                 os.path.join(FOLDER, "x.heddle"), "--level"]
    ways = {level: [*compiling, level] for level in LEVELS}
    least = {}
    for _ in range(rounds):
        for way, command in ways.items():
            least[way] = min(least.get(way, float("inf")), seconds_of(*command))
    return least


def faults_of(name, seconds):
    return [f"{name}: {high} takes {seconds[high]:.2f} s, {low} {seconds[low]:.2f} s"
            for low, high in zip(LEVELS, LEVELS[1:]) if seconds[high] <= seconds[low]]


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
    lines, faults = [], []
    for name in options.names:
        path = find(name, write_models)
        measured = [measure(heddle, path, options.rounds)
                    for heddle in [options.before, options.heddle] if heddle]
        faults += faults_of(name, measured[-1])
        lines.append([name, *(f"{seconds[column]:.2f}" for seconds in measured for column in columns)])
        print(" ".join(lines[-1]), file=sys.stderr, flush=True)
    text = machine.table(head, lines) + "\n" + "".join(f"- {fault}\n" for fault in faults)
    print(text)
    if options.out:
        with open(options.out, "w") as file:
            file.write(text)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
