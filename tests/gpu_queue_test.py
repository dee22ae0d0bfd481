"""The queue of bench/gpu_queue.py: faults, limits, the budget, and going on after an end."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))

import gpu_queue  # noqa: E402
from gpu_queue import Item, Queue  # noqa: E402


def shell(text):
    return ["bash", "-c", text]


class QueueTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "results.jsonl")
        self.mark = os.path.join(folder.name, "mark")

    def run_queue(self, items, budget=60, again=False):
        queue = Queue(items, self.path, budget, again, say=lambda text: None)
        return {name: record["status"] for name, record in queue.run().items()}

    def test_a_fault_costs_one_item(self):
        told = self.run_queue([
            Item("right", shell("echo noise; echo '{\"us\": 3}'")),
            Item("wrong", shell("echo '{\"error\": \"off\"}'; exit 1")),
            Item("broken", shell("kill -SEGV $$")),
            Item("hangs", shell("sleep 60"), limit=0.5),
            Item("failed", shell("echo why >&2; exit 3")),
            Item("last", shell("echo '{}'"))])
        self.assertEqual(told, {"right": "done", "wrong": "wrong", "broken": "fault",
                                "hangs": "timeout", "failed": "failed", "last": "done"})
        records = gpu_queue.read_results(self.path)
        self.assertEqual(records["right"]["us"], 3)
        self.assertEqual(records["broken"]["error"], "signal 11")
        self.assertEqual(records["failed"]["stderr"], "why")

    def test_a_hanging_item_leaves_no_child(self):
        self.run_queue([Item("hangs", shell(f"(sleep 2; touch {self.mark}) & wait"), limit=0.3)])
        time.sleep(2.2)
        self.assertFalse(os.path.exists(self.mark))

    def test_what_is_done_is_skipped(self):
        counted = shell(f"echo x >> {self.mark}; echo '{{}}'")
        failing = shell(f"echo y >> {self.mark}; exit 3")
        items = [Item("one", counted), Item("two", failing)]
        self.run_queue(items)
        with open(self.path, "a") as file:
            file.write('{"item": "thr')  # a line that was cut off
        items.append(Item("three", counted))
        self.assertEqual(self.run_queue(items),
                         {"one": "done", "two": "failed", "three": "done"})
        self.assertEqual(pathlib.Path(self.mark).read_text(), "x\ny\nx\n")
        self.assertIn("three", gpu_queue.read_results(self.path))
        self.run_queue(items, again=True)
        self.assertEqual(pathlib.Path(self.mark).read_text(), "x\ny\nx\ny\n")

    def test_the_budget_ends_it(self):
        begin = time.monotonic()
        items = [Item("quick", shell("echo '{}'")), Item("long", shell("sleep 60"), limit=50),
                 Item("never", shell("echo '{}'"))]
        self.assertEqual(self.run_queue(items, budget=gpu_queue.LEAST_SECONDS + 1),
                         {"quick": "done"})
        self.assertLess(time.monotonic() - begin, 20)
        self.assertEqual(gpu_queue.read_results(self.path)["long"]["status"], "budget")
        items[1].command = shell("echo '{}'")
        self.assertEqual(self.run_queue(items),
                         {"quick": "done", "long": "done", "never": "done"})

    def test_the_background_runs_beside_and_is_waited_for(self):
        told = self.run_queue([
            Item("compile", shell(f"sleep 1; echo x >> {self.mark}; echo '{{}}'"), background=True),
            Item("first", shell(f"echo first >> {self.mark}; echo '{{}}'")),
            Item("timed", shell(f"cat {self.mark} >&2; echo '{{}}'"), needs="compile"),
            Item("bad", shell("exit 3"), background=True),
            Item("after bad", shell("echo '{}'"), needs="bad")])
        self.assertEqual(told, {"compile": "done", "first": "done", "timed": "done",
                                "bad": "failed", "after bad": "not run"})
        self.assertEqual(pathlib.Path(self.mark).read_text(), "first\nx\n")

    def test_timed_items_are_alone(self):
        ticks = (f"for i in $(seq 60); do date +%s.%N >> {self.mark}; sleep 0.05; done; "
                 "echo '{}'")
        told = self.run_queue([
            Item("compile", shell(ticks), limit=4.5, background=True),
            Item("beside", shell("sleep 0.5")),
            Item("timed", shell("date +%s.%N; sleep 2; echo \"{\\\"end\\\": $(date +%s.%N)}\""),
                 alone=True),
            Item("after", shell("true"), needs="compile")])
        # Its own 3 seconds and those that it stood are more than its limit.
        self.assertEqual(set(told.values()), {"done"})
        end = gpu_queue.read_results(self.path)["timed"]["end"]
        times = [float(line) for line in pathlib.Path(self.mark).read_text().split()]
        self.assertEqual([x for x in times if end - 1.9 < x < end], [])
        self.assertTrue([x for x in times if x < end - 2])
        self.assertTrue([x for x in times if x > end])

    def test_a_signal_ends_it_cleanly(self):
        program = f"""
import signal, sys
sys.path.insert(0, {str(ROOT / "bench")!r})
from gpu_queue import Item, Queue
queue = Queue([Item("one", ["true"]), Item("long", ["sleep", "60"]), Item("two", ["true"])],
              {self.path!r}, 90)
signal.signal(signal.SIGTERM, queue.stop)
print(sorted(queue.run()), flush=True)
"""
        child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        while "one" not in gpu_queue.read_results(self.path):
            time.sleep(0.05)
        time.sleep(0.5)
        child.send_signal(signal.SIGTERM)
        output, _ = child.communicate(timeout=20)
        self.assertTrue(output.endswith("['one']\n"), output)
        lines = pathlib.Path(self.path).read_text().splitlines()
        statuses = [json.loads(line)["status"] for line in lines]
        self.assertEqual(statuses, ["done", "budget"])


if __name__ == "__main__":
    unittest.main()
