"""The contestants of a measurement. Each has `round(count)`: lists of wall and CPU nanoseconds of
`count` runs after one unmeasured run. All are idle between their rounds."""
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

import peers

HERE = os.path.dirname(os.path.abspath(__file__))
# Workers may go on spinning for a while after a run. A round starts when nobody has used the
# processor for QUIET_S, and in any case after MOST_QUIET_S.
QUIET_S = 0.02
MOST_QUIET_S = 2
START_LIMIT_S = 600  # a peer that has not compiled the model by then does not take part


class Failed(Exception):
    """A contestant that did not answer; the text says why."""


def used_ns(process):
    """Processor time of all threads of a process so far."""
    total = 0
    tasks = f"/proc/{process}/task"
    for task in os.listdir(tasks):
        try:
            with open(f"{tasks}/{task}/schedstat") as file:
                total += int(file.read().split()[0])
        except (OSError, IndexError):  # the thread ended
            pass
    return total


class Server:
    """A process of its own: a line in, a line out."""

    def __init__(self, *command, name=None, environment=None):
        """`environment`: what is set beside what this process has."""
        self.name = name
        self.command = [str(part) for part in command]
        self.errors = tempfile.TemporaryFile()  # a pipe that nobody reads would stop it when full
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True,
                                        env={**os.environ, **(environment or {})})

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            status = self.process.wait()
            self.errors.seek(0)
            said = self.errors.read().decode(errors="replace").strip()
            raise Failed(f"{' '.join(self.command)}: status {status}: {said[-400:]}")
        return line

    def ask(self, line):
        try:
            self.process.stdin.write(f"{line}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        return json.loads(self.answer())

    def round(self, count):
        return self.ask(count)

    def one_ns(self, measured):
        """How long one run took, of what round() answered."""
        return min(measured["wall_ns"])

    def fall_asleep(self):
        """Returns when no thread of the process runs any more."""
        begin = time.monotonic()
        before = used_ns(self.process.pid)
        while time.monotonic() - begin < MOST_QUIET_S:
            time.sleep(QUIET_S)
            now = used_ns(self.process.pid)
            if now - before < QUIET_S * 1e9 / 50:
                return
            before = now

    def close(self):
        if self.process.poll() is None:
            self.process.communicate("")


class Heddle(Server):
    """A model through heddle's C interface."""

    def __init__(self, probe, model, threads, level="O2", inputs=None, numerics="default", amp="off"):
        given = [inputs, numerics, amp] if inputs else []
        super().__init__(probe, model, threads, level, *given, name="heddle")


class Copy(Server):
    """The yardstick: by every way; `fastest` takes the one with the lowest median."""

    def __init__(self, probe, moved_bytes, threads):
        super().__init__(probe, moved_bytes, threads, name="copy")

    def one_ns(self, measured):
        return min(measured["memcpy"]["wall_ns"])

    @staticmethod
    def fastest(ways, clock):
        name = min(ways, key=lambda way: np.median(ways[way][clock]))
        return name, float(np.median(ways[name][clock]))


class Peer(Server):
    """Another engine, by peers.py."""

    def __init__(self, kind, model, inputs, threads, environment=None):
        super().__init__(sys.executable, os.path.join(HERE, "peers.py"), kind, model, inputs, threads,
                         environment=environment)
        limit = threading.Timer(START_LIMIT_S, self.process.kill)
        limit.start()
        try:
            word, _, text = self.answer().strip().partition(" ")
        finally:
            limit.cancel()
        if word != "ready":
            self.close()
            raise Failed(f"{kind}: {text}")
        self.name = text

    def outputs(self, path):
        self.ask(path)
        return peers.load_npz(path)


def interleave(contestants, rounds, counts):
    """contestant -> list of its rounds. The order turns, so that nobody always runs first. `counts`:
    the runs of a round, by name: a round is about as long for everybody, so that the caches that
    the others took are won back in a small part of it."""
    results = {c.name: [] for c in contestants}
    for turn in range(rounds):
        shift = turn % len(contestants)
        for contestant in contestants[shift:] + contestants[:shift]:
            results[contestant.name].append(contestant.round(counts[contestant.name]))
            contestant.fall_asleep()
    return results


def run_counts(contestants, wanted_s):
    """Name -> how many runs fill about `wanted_s` seconds."""
    counts = {}
    for contestant in contestants:
        measured = contestant.round(2)
        contestant.fall_asleep()
        one_s = contestant.one_ns(measured) / 1e9
        counts[contestant.name] = int(min(50, max(1, wanted_s / max(one_s, 1e-6))))
    return counts


def median_ms(rounds, clock="wall_ns"):
    """Of each round."""
    return np.array([np.median(one[clock]) / 1e6 for one in rounds])


def side_by_side(ways, rounds, round_seconds, clock="wall_ns", as_often=False):
    """{way: milliseconds, a median of each round}, of `ways`: {way: arguments of Heddle}. `as_often`: all
    run as many times in a round."""
    started = []
    try:
        for way, arguments in ways.items():
            started.append(Heddle(*arguments))
            started[-1].name = way
        counts = run_counts(started, round_seconds)
        if as_often:
            counts = dict.fromkeys(counts, max(counts.values()))
        took = interleave(started, rounds, counts)
    finally:
        for one in started:
            one.close()
    return {way: median_ms(took[way], clock) for way in ways}
