"""What bounds a product: the processor's rate of fma and of reading memory, by roof_probe in the same
rounds; the columns of `compare.py models` for cases that state their `flops` and `bytes`."""
import os

import numpy as np

import contestants
import machine

READ_BYTES = 48 << 20  # as much as the copies of a case: from where their weights come
HEAD = ["GF/s", "of fma peak", "of read bandwidth"]


class Roof(contestants.Server):
    def __init__(self, folder, case, threads):
        super().__init__(os.path.join(folder, "roof_probe"), case.get("bytes", READ_BYTES), threads,
                         name="roof")

    def one_ns(self, measured):
        return min(measured["fma"]["wall_ns"]) + 2 * min(measured["loads"]["wall_ns"])


def rates(measured, clock):
    """(flops, bytes) a nanosecond of one round."""
    read_ns = min(np.median(measured[way][clock]) for way in ["loads", "prefetched"])
    return (measured["flops"] / np.median(measured["fma"][clock]), measured["bytes"] / read_ns)


def shares(case, ours_ms, rounds, clock):
    """How much of both roofs our rounds took; a share is taken inside a round."""
    peak, read = (np.array(values) for values in zip(*(rates(r, clock) for r in rounds)))
    ns = ours_ms * 1e6
    result = {"gflops": machine.spread(case["flops"] / ns), "peak_gflops": machine.spread(peak),
              "of_peak": machine.spread(case["flops"] / ns / peak),
              "read_bytes_per_ns": machine.spread(read)}
    if "bytes" in case:
        result["of_read"] = machine.spread(case["bytes"] / ns / read)
    return result


def cells(found):
    """Of one line of the table; `found`: what shares() gave, or None."""
    if not found:
        return ["-"] * len(HEAD)
    of_read = f"{found['of_read']['median']:.2f}" if "of_read" in found else "-"
    return [f"{found['gflops']['median']:.0f}", f"{found['of_peak']['median']:.3f}", of_read]


def geomeans(results):
    """A line of text for every number of threads."""
    lines = []
    for threads in sorted({row["threads"] for row in results}):
        found = [row["result"]["roof"] for row in results
                 if row["threads"] == threads and "roof" in row["result"]]
        if found:
            mean = np.exp(np.mean([np.log(roof["of_peak"]["median"]) for roof in found]))
            peak = np.median([roof["peak_gflops"]["median"] for roof in found])
            lines.append(f"{threads} thread(s): {mean:.3f} of the fma peak ({peak:.0f} GF/s) in "
                         f"geometric mean over {len(found)} cases.")
    return lines
