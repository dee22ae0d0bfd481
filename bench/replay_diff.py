"""What differs between two records of one model (replay_record.record_of)."""
import collections
import dataclasses

PARTS = ["kernels", "schedules", "launches", "arena", "predicted", "errors"]
# Predictions are sums of many terms: what is below this share is no difference.
LEAST_SHARE = 1e-3


@dataclasses.dataclass
class Difference:
    """Of one model and variant; empty where nothing differs."""
    changed: list = dataclasses.field(default_factory=list)    # pairs of kernels: same operators, other text
    added: list = dataclasses.field(default_factory=list)
    gone: list = dataclasses.field(default_factory=list)
    schedules: list = dataclasses.field(default_factory=list)  # pairs of kernels: same text, other schedule
    uses: list = dataclasses.field(default_factory=list)       # pairs of kernels: other number of commands
    predictions: list = dataclasses.field(default_factory=list)  # pairs of kernels: same text, other time
    numbers: dict = dataclasses.field(default_factory=dict)    # name -> (before, after)

    def __bool__(self):
        return any(getattr(self, field.name) for field in dataclasses.fields(self))


def close(a, b):
    return abs(a - b) <= LEAST_SHARE * max(abs(a), abs(b))


def paired(left, right, key):
    """([pairs that agree in key, in order], rest of left, rest of right)."""
    waiting = collections.defaultdict(collections.deque)
    for one in right:
        waiting[key(one)].append(one)
    pairs, alone = [], []
    for one in left:
        if waiting[key(one)]:
            pairs.append((one, waiting[key(one)].popleft()))
        else:
            alone.append(one)
    taken = {id(two) for _, two in pairs}
    return pairs, alone, [two for two in right if id(two) not in taken]


def compare_kernels(a, b, found):
    # Of those with one text the same schedule first.
    same, left, right = paired(a, b, lambda k: (k["text"], k["schedule"], k["once"], k["uses"]))
    alike, left, right = paired(left, right, lambda k: (k["text"], k["once"]))
    for one, two in same + alike:
        if one["schedule"] != two["schedule"]:
            found.schedules.append((one, two))
        if one["uses"] != two["uses"]:
            found.uses.append((one, two))
        if not close(one["ns"], two["ns"]):
            found.predictions.append((one, two))
    found.changed, found.gone, found.added = paired(left, right, lambda k: (k["operators"], k["once"]))


def compare(a, b, parts=PARTS):
    """The Difference of two records, in `parts` of PARTS."""
    found = Difference()
    if "error" in a or "error" in b:
        said = tuple(one.get("error", "compiles") for one in (a, b))
        if "errors" in parts and said[0] != said[1]:
            found.numbers["error"] = said
        return found
    compare_kernels(a["kernels"], b["kernels"], found)
    numbers = {("launches", "launches"): (a["launches"], b["launches"]),
               ("predicted", "predicted ns"): (a["predicted_ns"], b["predicted_ns"])}
    for key in a["arena"]:
        numbers["arena", f"arena {key}"] = a["arena"][key], b["arena"].get(key)
    for (part, name), (before, after) in numbers.items():
        equal = close(before, after) if part == "predicted" else before == after
        if part in parts and not equal:
            found.numbers[name] = before, after
    if "kernels" not in parts:
        found.changed, found.added, found.gone, found.uses = [], [], [], []
    if "schedules" not in parts:
        found.schedules = []
    if "predicted" not in parts:
        found.predictions = []
    return found


def text_of(found):
    """A line about a Difference."""
    said = [f"{len(items)} {word}" for word, items in
            [("changed", found.changed), ("added", found.added), ("gone", found.gone)] if items]
    said = [f"kernels {', '.join(said)}"] if said else []
    if found.uses:
        said.append(f"{len(found.uses)} kernels used more or less often")
    if found.schedules:
        said.append(f"{len(found.schedules)} schedules of equal kernels")
    if found.predictions and "predicted ns" not in found.numbers:
        said.append(f"{len(found.predictions)} predictions of equal kernels")
    for name, (before, after) in found.numbers.items():
        said.append(f"{name} {before} -> {after}")
    return "; ".join(said)
