"""What replay.py keeps of a model: a compilation down to kernel text, without the names in it."""
import hashlib
import json
import os
import re
import sqlite3
import subprocess
import threading
import zlib

# Targets by name, never this machine's, with a level: what is compared.
VARIANTS = ["avx2-O2", "spr-O2", "zen5-O2", "sm_90-O2", "spr-O1"]
LIMIT_S = 600


class Texts:
    """hash -> text, each once; any thread."""

    def __init__(self, path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.lock = threading.Lock()
        self.base = sqlite3.connect(path, timeout=60, check_same_thread=False)
        self.base.execute("create table if not exists texts (hash text primary key, body blob)")

    def keep(self, text):
        key = hashlib.sha256(text.encode()).hexdigest()[:20]
        with self.lock:
            self.base.execute("insert or ignore into texts values (?, ?)",
                              (key, zlib.compress(text.encode(), 3)))
        return key

    def find(self, key):
        with self.lock:
            row = self.base.execute("select body from texts where hash = ?", (key,)).fetchone()
        return zlib.decompress(row[0]).decode() if row else f"(the text {key} is not kept)\n"

    def commit(self):
        with self.lock:
            self.base.commit()

    def close(self):
        self.commit()
        self.base.close()


def renamed(text, names, prefix):
    """`text` with each of `names`, where it stands as a word, as prefix0, prefix1, ... in their order."""
    if not names:
        return text
    new = {name: f"{prefix}{number}" for number, name in enumerate(dict.fromkeys(names))}
    words = "|".join(re.escape(name) for name in sorted(new, key=len, reverse=True))
    return re.sub(rf"(?<![\w.\-])(?:{words})(?![\w\-])", lambda found: new[found[0]], text)


def plain_kernel(text):
    """A kernel's text without its name and those of the kernels inside."""
    text = re.sub(r"^kernel .* \{$", "kernel _ {", text, count=1, flags=re.MULTILINE)
    text = re.sub(r'^ *strategy "\w+"\n', "", text, flags=re.MULTILINE)
    inner = re.findall(r"^ *inner (\S+) \{$", text, flags=re.MULTILINE)
    return renamed(text, inner, "inner")


def stages_in(text):
    """The names of stages in a schedule ("a & b : vector d0;", one row) and in places ("a: phase 0, ...")."""
    stages = []
    for row, place in re.findall(r"^ +(\S+(?: & \S+)*)(?: : .*)?;$|^(\S+): phase ", text, flags=re.MULTILINE):
        stages += row.split(" & ") if row else [place]
    return stages


def plain_schedule(schedule, places):
    """Schedule and places; stages are numbered in the order that they come in."""
    text = re.sub(r"^schedule \S+ on ", "schedule _ on ", f"{schedule}\n{places}", flags=re.MULTILINE)
    text = re.sub(r"^(part \d+): .*$", r"\1", text, flags=re.MULTILINE)
    return renamed(text, stages_in(text), "s")


def record_of(explained, texts):
    """What is kept of `heddle explain --json`."""
    kernels = []
    for kernel in explained["kernels"]:
        kernels.append({"text": texts.keep(plain_kernel(kernel["text"])),
                        "schedule": texts.keep(plain_schedule(kernel["schedule"], kernel["places"])),
                        "uses": len(kernel["commands"]), "once": kernel["once"],
                        "operators": kernel["operators"], "ns": round(kernel["predicted_ns"], 1)})
    memory = explained["memory_bytes"]
    return {"kernels": kernels, "launches": explained["launches"],
            "arena": {key: memory[key] for key in ["temporaries", "temporaries_lower_bound",
                                                   "temporaries_pool_peak"]},
            "predicted_ns": round(sum(k["ns"] * k["uses"] for k in kernels if not k["once"]), 1),
            "steps_ms": {step: round(ms, 2) for step, ms in explained["steps_ms"].items()}}


def explain(heddle, model, variant, more, texts):
    """The record of one model for one variant; {"error": ...} where it does not compile."""
    target, level = variant.rsplit("-", 1)
    command = [heddle, "explain", model.path, *model.arguments, "--target", target, "--level", level,
               "--cache", "off", "--threads", "1", "--random-constants", "--json", "-", *more]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return {"error": f"more than {LIMIT_S} s"}
    if done.returncode != 0:
        line = next((x for x in done.stderr.splitlines() if x.startswith(("error: ", "heddle bug: "))), "")
        return {"error": f"status {done.returncode}: {line.replace(model.path, 'MODEL')}"}
    return record_of(json.loads(done.stdout), texts)
