"""A queue of measurements on a machine that is available for minutes only.

Every item is a child process with its own time limit, so that a fault or a hang costs one item. Its
last line of output is a JSON object; that, its status and its seconds are written to the results
file at once, as one line, so whatever ends the queue loses nothing. Items in the file are skipped: the same
command resumes. Background items run beside the others, `lanes` at a time, and are paused while an item runs
that must be alone because it measures time. An item that needs another one waits for it, and is not run
if that one failed.
"""
import dataclasses
import json
import os
import signal
import subprocess
import threading
import time

LEAST_SECONDS = 3  # left of the budget, for an item to be started
DONE, WRONG, FAILED, FAULT, TIMEOUT = "done", "wrong", "failed", "fault", "timeout"
NOT_RUN = "not run"  # what it needs is not done
BUDGET = "budget"  # ended by the budget or a signal: it runs again
FINAL = {DONE, WRONG, FAILED, FAULT, TIMEOUT, NOT_RUN}


@dataclasses.dataclass
class Item:
    name: str
    command: list
    limit: float = 60
    needs: str = ""
    background: bool = False
    alone: bool = False


def read_results(path):
    """The last record of every item. A line that was cut off is left out."""
    records = {}
    if os.path.exists(path):
        with open(path) as file:
            for line in file:
                try:
                    record = json.loads(line)
                    records[record["item"]] = record
                except (ValueError, KeyError, TypeError):
                    continue
    return records


def last_object(text):
    for line in reversed(text.strip().splitlines()):
        try:
            told = json.loads(line)
        except ValueError:
            continue
        if isinstance(told, dict):
            return told
    return {}


def status_of(code):
    if code < 0:
        return FAULT
    return {0: DONE, 1: WRONG}.get(code, FAILED)


class Queue:
    def __init__(self, items, path, budget, again=False, say=print, environment=None, lanes=1):
        self.items, self.path, self.say = items, path, say
        self.environment, self.lanes = environment, lanes
        self.end = time.monotonic() + budget
        self.records = {name: record for name, record in read_results(path).items()
                        if record["status"] == DONE or (record["status"] in FINAL and not again)}
        self.lock = threading.Lock()
        self.alone = threading.RLock()  # held while an item is alone
        self.children = {}
        self.behind = {}  # the children of the background, by item
        self.stood = 0.0  # seconds that the background stood still
        self.stopped = False

    def left(self):
        return 0 if self.stopped else self.end - time.monotonic()

    def stop(self, *_):
        """From a signal handler: what runs is ended, nothing more is started."""
        self.stopped = True
        for child in list(self.children.values()):
            self.kill(child)

    @staticmethod
    def kill(child):
        try:
            os.killpg(child.pid, signal.SIGKILL)  # with its own children
        except ProcessLookupError:
            pass

    def keep(self, record):
        with self.lock:
            if record["status"] in FINAL:
                self.records[record["item"]] = record
            text = json.dumps(record) + "\n"
            with open(self.path, "a+b") as file:
                file.seek(0, os.SEEK_END)
                if file.tell():  # after a line that was cut off
                    file.seek(-1, os.SEEK_END)
                    text = text if file.read(1) == b"\n" else "\n" + text
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
        why = record.get("error") or record.get("us", "")
        self.say(f"{record['item']}: {record['status']} {record['seconds']:.1f} s {why}")

    def start(self, item):
        child = subprocess.Popen(item.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True, errors="replace", start_new_session=True,
                                 env=self.environment)
        self.children[item.name] = child
        if self.stopped:
            self.kill(child)
        return child

    def wait_for(self, child, item, begin):
        """(output, errors, whether it ran past its limit or the budget, which of the two)."""
        before = self.stood
        while True:
            stood = self.stood
            extra = stood - before if item.background else 0
            limit = min(item.limit + extra - (time.monotonic() - begin), self.left())
            try:
                return *child.communicate(timeout=max(0, limit)), ""
            except subprocess.TimeoutExpired:
                if item.background:
                    with self.alone:  # if it stands still: until it goes on
                        pass
                if self.left() <= 0:
                    ended = BUDGET
                elif item.background and stood != self.stood:
                    continue
                else:
                    ended = TIMEOUT
                self.kill(child)
                return *child.communicate(), ended

    def run_alone(self, item):
        """What runs in the background stands still meanwhile."""
        with self.alone:
            begin = time.monotonic()
            self.signal_behind(signal.SIGSTOP)
            try:
                self.run_child(item, self.start(item))
            finally:
                self.stood += time.monotonic() - begin
                self.signal_behind(signal.SIGCONT)

    def signal_behind(self, number):
        for child in list(self.behind.values()):
            try:
                os.killpg(child.pid, number)
            except ProcessLookupError:
                pass

    def run_item(self, item):
        if item.alone:
            self.run_alone(item)
        elif item.background:
            with self.alone:
                child = self.behind[item.name] = self.start(item)
            self.run_child(item, child)
            del self.behind[item.name]
        else:
            self.run_child(item, self.start(item))

    def run_child(self, item, child):
        begin = time.monotonic()
        output, errors, ended = self.wait_for(child, item, begin)
        del self.children[item.name]
        status = status_of(child.returncode)
        if self.stopped or ended:
            status = BUDGET if self.stopped else ended
        told = last_object(output)
        record = {"item": item.name, "status": status,
                  "seconds": round(time.monotonic() - begin, 2), **told}
        record["status"] = status
        if status == FAULT:
            record["error"] = f"signal {-child.returncode}"
        elif status == TIMEOUT:
            record["error"] = f"not done after {item.limit:.0f} s"
        if status != DONE:
            record["stderr"] = errors.strip()[-600:]
        self.keep(record)

    def next_item(self, background):
        """(item, whether others may become ready)."""
        waiting = False
        names = {item.name for item in self.items}
        for item in self.items:
            if item.background != background or item.name in self.records:
                continue
            if item.name in self.tried:
                continue
            if item.needs in names:
                needed = self.records.get(item.needs)
                if needed is None and (item.needs in self.running or item.needs not in self.tried):
                    waiting = True
                    continue
                if needed is None or needed["status"] != DONE:
                    if needed is not None:
                        self.keep({"item": item.name, "status": NOT_RUN, "seconds": 0,
                                   "error": f"{item.needs} is {needed['status']}"})
                    self.tried.add(item.name)
                    continue
            return item, True
        return None, waiting

    def lane(self, background):
        while self.left() >= LEAST_SECONDS:
            with self.choosing:
                item, more = self.next_item(background)
                if item is not None:
                    self.tried.add(item.name)
                    self.running.add(item.name)
            if item is None:
                if not more:
                    return
                time.sleep(0.05)
                continue
            self.run_item(item)
            self.running.discard(item.name)

    def run(self):
        """The records by item. Items that the budget left are not among them."""
        self.tried, self.running, self.choosing = set(), set(), threading.Lock()
        beside = [threading.Thread(target=self.lane, args=(True,)) for _ in range(self.lanes)]
        for lane in beside:
            lane.start()
        self.lane(False)
        for lane in beside:
            lane.join()
        return self.records
