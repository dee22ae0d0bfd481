"""Schedules, kernels, launches, memory and predictions of all models, by commit, and what differs between two
commits. Nothing is run and no machine code is made, so the machine does not matter: targets are named.

  replay.py record [--models GLOB] [--heddle PATH] [--as NAME] [COMMIT] [-- OPTION ...]
  replay.py diff A B [--models GLOB] [--only PART,...] [--texts N]
  replay.py list [NAME]

record: this checkout, or COMMIT (built under build/against); options after -- go to `heddle explain`.
        A record of the same name is replaced; with --models, only those models.
diff:   NAMEs or commits. A kernel is "changed" where one of the same operators has another text; names of
        kernels and stages do not count. --texts: unified diffs of the first N. Exit status 1: something
        differs. Compile times are shown, never compared.
list:   the recordings; with NAME its models.

Models: networks of models/, bench/rows, bench/products, tests/testdata, and everything below the folders of
--folder and HEDDLE_REPLAY_MODELS (exported networks; separated by colons), named "FOLDER/PLACE".
"""
import argparse
import concurrent.futures
import difflib
import fnmatch
import hashlib
import json
import os
import shutil
import sys
import time

import other_build
import replay_diff
import replay_models
import replay_record

ROOT = replay_models.ROOT
DEFAULT_STORE = os.environ.get("HEDDLE_REPLAY") or os.path.join(ROOT, "build", "replay")
FEW_LINES = 40


class Failed(Exception):
    """The line says why; status 2."""


def wanted(name, globs):
    return not globs or any(fnmatch.fnmatch(name, glob) for glob in globs)


def set_wanted(group, globs):
    return not globs or any(fnmatch.fnmatch(group, glob.split("/")[0]) for glob in globs)


def find_models(options, write_models):
    folder = os.path.join(options.store, "models")
    all_models = {**replay_models.kept(),
                  **replay_models.made(folder, write_models, lambda group: set_wanted(group, options.models)),
                  **replay_models.given(options.folder)}
    found = {name: model for name, model in sorted(all_models.items()) if wanted(name, options.models)}
    if not found:
        raise Failed(f"--models {' '.join(options.models)}: no model of that name")
    return found


def programs(options):
    """(heddle, write_models): of --heddle, of COMMIT, or of this checkout; built where it must be."""
    if options.heddle:
        folder = os.path.dirname(os.path.abspath(options.heddle))
    elif options.commit:
        folder = other_build.build_commit(options.commit, ["heddle", "write_models"])
    else:
        folder = os.path.join(ROOT, "build", "release")
        replay_models.run(os.path.join(ROOT, "script", "build"), "release", "heddle", "write_models")
    return options.heddle or os.path.join(folder, "heddle"), os.path.join(folder, "write_models")


def file_hash(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()[:20]


def record_models(options, heddle, models, texts, folder):
    """Writes FOLDER/MODEL.json for each; the number of compilations that failed."""
    failed = done = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = {name: {variant: pool.submit(replay_record.explain, heddle, model, variant, options.more, texts)
                          for variant in options.variants} for name, model in models.items()}
        for name, variants in waiting.items():
            records = {variant: future.result() for variant, future in variants.items()}
            failed += sum("error" in record for record in records.values())
            path = os.path.join(folder, name.replace("/", "@") + ".json")
            with open(path, "w") as file:
                json.dump({"model": file_hash(models[name].path), "variants": records}, file)
            done += 1
            if done % 50 == 0:
                print(f"replay: {done} of {len(models)} models", file=sys.stderr, flush=True)
    return failed


def record(options):
    begin = time.time()
    heddle, write_models = programs(options)
    name = options.name or (other_build.short(options.commit) if options.commit else other_build.this_commit())
    models = find_models(options, write_models)
    folder = os.path.join(options.store, name)
    if not options.models:
        shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder, exist_ok=True)
    texts = replay_record.Texts(os.path.join(options.store, "texts.db"))
    failed = record_models(options, heddle, models, texts, folder)
    texts.close()
    seconds = time.time() - begin
    with open(os.path.join(folder, "about"), "w") as file:
        json.dump({"name": name, "date": time.strftime("%Y-%m-%d %H:%M"), "seconds": round(seconds, 1),
                   "options": options.more}, file)
    print(f"{name}: {len(models)} models, {len(options.variants)} variants, {failed} compilations refused; "
          f"{seconds:.0f} s; {folder}")
    return 0


def folder_of(store, name):
    """Of a recording, by its name or by a commit."""
    candidates = [name]
    try:
        candidates.append(other_build.short(name))
    except other_build.Failed:
        pass
    for candidate in candidates:
        if os.path.exists(os.path.join(store, candidate, "about")):
            return os.path.join(store, candidate)
    raise Failed(f"{name}: nothing is recorded under this name in {store}; script/replay list names all")


def load(folder, globs):
    loaded = {}
    for file in sorted(os.listdir(folder)):
        name = file.removesuffix(".json").replace("@", "/")
        if file.endswith(".json") and wanted(name, globs):
            with open(os.path.join(folder, file)) as opened:
                loaded[name] = json.load(opened)
    return loaded


def differences(a, b, parts):
    """[(model, variant, Difference)], of what both have."""
    found = []
    for name in a:
        for variant, before in a[name]["variants"].items():
            after = b[name]["variants"].get(variant) if name in b else None
            if after is None:
                continue
            difference = replay_diff.compare(before, after, parts)
            if difference:
                found.append((name, variant, difference))
    return found


def print_texts(found, texts, most):
    """Unified diffs of the first `most` pairs that differ, each pair once."""
    seen = set()
    for name, variant, difference in found:
        pairs = [(one, two, "text") for one, two in difference.changed]
        pairs += [(one, two, "schedule") for one, two in difference.schedules]
        for one, two, what in pairs:
            key = one[what], two[what]
            if key in seen or len(seen) >= most:
                continue
            seen.add(key)
            print(f"\n{name} {variant}: {what} of {one['operators']}")
            before, after = (texts.find(x).splitlines(keepends=True) for x in key)
            sys.stdout.writelines(difflib.unified_diff(before, after, "before", "after", n=2))


def compile_seconds(loaded):
    return sum(sum(record["steps_ms"].values()) for model in loaded.values()
               for record in model["variants"].values() if "steps_ms" in record) / 1e3


def diff(options):
    a, b = (load(folder_of(options.store, name), options.models) for name in [options.a, options.b])
    found = differences(a, b, options.only)
    for name in sorted(set(a) ^ set(b)):
        print(f"note: {name}: only in {options.a if name in a else options.b}")
    for name in sorted(set(a) & set(b)):
        if a[name]["model"] != b[name]["model"]:
            print(f"note: {name}: the model itself is another one")
    for name, variant, difference in found[:None if options.all else FEW_LINES]:
        print(f"{name} {variant}: {replay_diff.text_of(difference)}")
    if len(found) > FEW_LINES and not options.all:
        print(f"... and {len(found) - FEW_LINES} more (--all)")
    if options.texts:
        print_texts(found, replay_record.Texts(os.path.join(options.store, "texts.db")), options.texts)
    counts = {word: sum(len(getattr(d, word)) for _, _, d in found) for word in ["changed", "added", "gone"]}
    kernels = sum(len(r["kernels"]) for m in a.values() for r in m["variants"].values() if "kernels" in r)
    print(f"{options.a} -> {options.b}: {len({name for name, _, _ in found})} of {len(set(a) & set(b))} models "
          f"differ; of {kernels} kernels {counts['changed']} changed, {counts['added']} added, "
          f"{counts['gone']} gone; compile times {compile_seconds(a):.1f} s -> {compile_seconds(b):.1f} s")
    if not set(a) & set(b):
        raise Failed("the recordings have no model in common")
    return 1 if found else 0


def show_list(options):
    if options.name:
        for name, model in load(folder_of(options.store, options.name), options.models).items():
            for variant, r in model["variants"].items():
                print(f"{name} {variant}: " + (r["error"] if "error" in r else
                      f"{len(r['kernels'])} kernels, {r['launches']} launches, arena "
                      f"{r['arena']['temporaries']}, predicted {r['predicted_ns'] / 1e6:.3f} ms"))
        return 0
    for name in sorted(os.listdir(options.store)) if os.path.isdir(options.store) else []:
        about = os.path.join(options.store, name, "about")
        if os.path.exists(about):
            with open(about) as file:
                one = json.load(file)
            models = len(os.listdir(os.path.dirname(about))) - 1
            print(f"{name}: {models} models, {one['date']}, {one['seconds']:.0f} s")
    return 0


def comma(known):
    def read(text):
        parts = text.split(",")
        unknown = set(parts) - set(known)
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: take of {', '.join(known)}")
        return parts
    return read


def read_options(arguments):
    more = []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, more = arguments[:at], arguments[at + 1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", default=DEFAULT_STORE, help="folder (HEDDLE_REPLAY, or build/replay)")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("record")
    one.add_argument("commit", nargs="?")
    one.add_argument("--heddle")
    one.add_argument("--as", dest="name")
    one.add_argument("--folder", action="append",
                     default=[x for x in os.environ.get("HEDDLE_REPLAY_MODELS", "").split(":") if x])
    one.add_argument("--variants", type=comma(replay_record.VARIANTS), default=replay_record.VARIANTS)
    one.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    two = commands.add_parser("diff")
    two.add_argument("a")
    two.add_argument("b")
    two.add_argument("--only", type=comma(replay_diff.PARTS), default=replay_diff.PARTS)
    two.add_argument("--texts", type=int, default=0, metavar="N")
    two.add_argument("--all", action="store_true", help="a line for every model and variant that differs")
    three = commands.add_parser("list")
    three.add_argument("name", nargs="?")
    for command in [one, two, three]:
        command.add_argument("--models", action="append", default=[], metavar="GLOB")
    options = parser.parse_args(arguments)
    options.more = more
    return options


def main(arguments):
    options = read_options(arguments)
    try:
        return {"record": record, "diff": diff, "list": show_list}[options.command](options)
    except (Failed, replay_models.Failed, other_build.Failed) as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
