"""What each pass of fuse earns: every model is compiled with one pass left out, where that pass changes something.

  pass_ablation.py --heddle PATH --store FOLDER [--variants V,...] [--passes P,...] [--models GLOB]... [--seconds S]
                   [--search PATH]
  pass_ablation.py --store FOLDER --report FILE.json

Models and variants are those of replay.py; a variant that ends in "-relaxed" is compiled with --numerics relaxed.
Nothing is run, the figures are those of `heddle explain`: launches, predicted nanoseconds and bytes of temporaries
(deterministic), and the user time of the compilations (not). --search: what fuse_ablation says of the steps of the
search, over kernels without a template. FOLDER keeps what was done; a second call goes on with the rest, so
--seconds ends one early. --report writes and prints the geometric means over all models of "without the pass" by
"with it", in parentheses how many models change by 1 %, and the three models that change most.
"""
import argparse
import fnmatch
import json
import math
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

import replay_models

KEYS = ["launches", "ns", "bytes"]
ALWAYS = {"open_cover", "make_kernels", "measure_memory"}  # they are no choice


def figures(explained):
    once = {kernel["name"] for kernel in explained["kernels"] if kernel["once"]}
    ns = sum(kernel["predicted_ns"] * len(kernel["commands"]) for kernel in explained["kernels"]
             if kernel["name"] not in once)
    return {"launches": explained["launches"], "ns": round(ns, 1), "bytes": explained["memory_bytes"]["temporaries"]}


def explain(heddle, model, variant, *more):
    """Figures and user seconds; None where it does not compile."""
    target, level, *relaxed = variant.split("-")
    more += ("--numerics", "relaxed") if relaxed else ()
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run([heddle, "explain", model.path, *model.arguments, "--target", target, "--level", level,
                           "--cache", "off", "--threads", "1", "--random-constants", "--json", "-", *more],
                          capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        return None
    found = figures(json.loads(done.stdout))
    found["user"] = round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, 3)
    return found


def passes_of(heddle):
    """The passes of fuse, by `heddle opt --list`."""
    text = subprocess.run([heddle, "opt", "--list"], capture_output=True, text=True, check=True).stdout
    rows = re.search(r"^Fusing:\n(.*?)\n\n", text, flags=re.MULTILINE | re.DOTALL)[1]
    return [row.split()[0] for row in rows.splitlines()]


def changing(heddle, model, variant, passes):
    """The figures with every pass, and the passes that change the module."""
    with tempfile.TemporaryDirectory() as folder:
        found = explain(heddle, model, variant, "--dump", folder)
        names = " ".join(name for _, _, files in os.walk(folder) for name in files)
        if found:
            del found["user"]  # dumps are slow
            found = {**found, **explain(heddle, model, variant)}
    return found, [name for name in passes if re.search(rf"_\d+_{name}\.", names)]


def measure_search(options, model, variant):
    """{variant of the search: figures}, {} where the module is not read."""
    with tempfile.TemporaryDirectory() as folder:
        explain(options.heddle, model, variant, "--dump", folder)
        done = subprocess.run([options.search, "--target", variant.split("-")[0], os.path.join(folder, "1-optimized.hlo")],
                              capture_output=True, text=True, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["variant"]: {"launches": row["kernels"], "ns": row["ns"], "bytes": row["peak_bytes"] or None,
                             "user": row["seconds"]} for row in rows}


def measure_passes(options, name, model, variant, record, end):
    """Adds what is not in the record yet."""
    if "with" not in record:
        record["with"], record["changed"] = changing(options.heddle, model, variant, options.known)
        record["without"] = {}
    for left_out in options.chosen:
        if time.time() > end:
            return
        if record["with"] and left_out in record["changed"] and left_out not in record["without"]:
            record["without"][left_out] = explain(options.heddle, model, variant, "--disable", left_out)


def measure(options):
    options.known = [name for name in passes_of(options.heddle) if name not in ALWAYS]
    options.chosen = options.passes.split(",") if options.passes else options.known
    models = {**replay_models.kept(),
              **replay_models.made(os.path.join(options.store, "models"), options.write_models, lambda group: True)}
    models = {name: model for name, model in sorted(models.items())
              if not options.models or any(fnmatch.fnmatch(name, glob) for glob in options.models)}
    end = time.time() + options.seconds
    path = os.path.join(options.store, "done.json")
    done = load(path) if os.path.exists(path) else {}
    for variant in options.variants.split(","):
        records = done.setdefault(("search " if options.search else "") + variant, {})
        for number, (name, model) in enumerate(models.items()):
            if time.time() > end:
                break
            record = records.setdefault(name, {})
            if not options.search:
                measure_passes(options, name, model, variant, record, end)
            elif "with" not in record:
                record["without"] = measure_search(options, model, variant)
                record["with"] = record["without"].pop("search", None)
            if number % 20 == 0:
                save(path, done)
        save(path, done)
    return 0


def load(path):
    with open(path) as file:
        return json.load(file)


def save(path, what):
    with open(path, "w") as file:
        json.dump(what, file, indent=1)
        file.write("\n")


def ratio(without, with_it, key):
    """Of bytes with a page more on both sides: what is less than that is nothing. What is not known has not changed."""
    if without[key] is None or with_it[key] is None:
        return 1.0
    more = 4096 if key == "bytes" else 0
    return (without[key] + more) / (with_it[key] + more) if with_it[key] + more > 0 else 1.0


def row_of(records, left_out):
    touched = {name: record for name, record in records.items() if record["without"].get(left_out)}
    row = {"left_out": left_out, "models": len(records), "changed": len(touched),
           "user_s": [round(sum(record["with"]["user"] for record in touched.values()), 1),
                      round(sum(record["without"][left_out]["user"] for record in touched.values()), 1)]}
    for key in KEYS:
        ratios = {name: ratio(record["without"][left_out], record["with"], key) for name, record in touched.items()}
        logs = {name: math.log(x) for name, x in ratios.items() if x > 0}
        row[key] = round(math.exp(sum(logs.values()) / len(records)), 4)
        most = sorted((name for name in logs if logs[name]), key=lambda name: (-abs(logs[name]), name))
        row[key + "_most"] = {name: round(ratios[name], 3) for name in most[:3]}
        row["changed_" + key] = sum(abs(x) >= math.log(1.01) for x in logs.values())
    return row


def text_of(row):
    def most(key):
        return ", ".join(f"{name} {x:g}" for name, x in row[key + "_most"].items()) or "-"

    cells = [row["left_out"], str(row["changed"])]
    cells += [f"{row[key]:.4f} ({row['changed_' + key]})" for key in KEYS]
    cells += [f"{row['user_s'][0]} -> {row['user_s'][1]}", "; ".join(f"{key}: {most(key)}" for key in KEYS)]
    return "| " + " | ".join(cells) + " |"


def report(options):
    found = {}
    for variant, records in load(os.path.join(options.store, "done.json")).items():
        records = {name: record for name, record in records.items() if record.get("with")}
        names = dict.fromkeys(name for record in records.values() for name in record["without"])
        found[variant] = [row_of(records, name) for name in names]
        print(f"\n### {variant}, {len(records)} models\n")
        print("| without | models | launches | predicted ns | bytes | user s | most |\n|---|---|---|---|---|---|---|")
        for row in found[variant]:
            print(text_of(row))
    save(options.report, found)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle")
    parser.add_argument("--write-models", dest="write_models")
    parser.add_argument("--store", required=True)
    parser.add_argument("--variants", default="spr-O2,avx2-O2,sm_90-O2")
    parser.add_argument("--passes")
    parser.add_argument("--search")
    parser.add_argument("--models", action="append")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--report")
    options = parser.parse_args()
    return report(options) if options.report else measure(options)


if __name__ == "__main__":
    sys.exit(main())
