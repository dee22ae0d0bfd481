"""Threads, forks and Ctrl-C."""
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

import heddle
import models
import numpy as np

SIZE = 384
LONG = {"x": np.eye(SIZE, dtype=np.float32), "w": np.eye(SIZE, dtype=np.float32)}

INTERRUPTED = """
import threading, time, os, signal, sys
import heddle, models, numpy
x = numpy.eye(384, dtype=numpy.float32)
session = heddle.Session(models.long_run(20000), threads=1, level="O0")
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
begin = time.monotonic()
try:
    session.run(None, {"x": x, "w": x})
    print("it ended by itself")
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - begin < 20)
session = heddle.Session(models.linear())
print(session(numpy.ones((2, 3), numpy.float32)).shape)
"""

FORKED = """
import os, sys
import heddle, models, numpy
x = numpy.ones((2, 3), numpy.float32)
session = heddle.Session(models.linear())
session(x)
child = os.fork()
if child == 0:
    try:
        session(x)
        print("it ran")
    except heddle.Error as error:
        print(str(error))
    print(heddle.Session(models.linear())(x).shape)
    del session
    sys.exit(0)
os.waitpid(child, 0)
print(session(x).shape)
"""


def run_script(text):
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True,
                          timeout=120, cwd=os.path.dirname(os.path.abspath(__file__)))


class ThreadsTest(unittest.TestCase):
    def test_many_threads_on_one_session(self):
        for options in [{}, {"bounds": {"batch": 16}}]:
            session = heddle.Session(models.linear("batch"), **options)

            def work(seed):
                random = np.random.default_rng(seed)
                for _ in range(50):
                    x = random.normal(size=(random.integers(1, 6), 3)).astype(np.float32)
                    np.testing.assert_allclose(session(x), models.linear_value(x), rtol=1e-5,
                                               atol=1e-6)
                return True
            with ThreadPoolExecutor(8) as pool:
                self.assertEqual(list(pool.map(work, range(16))), [True] * 16)

    def test_other_threads_go_on(self):
        session = heddle.Session(models.long_run(400), threads=1)
        session.run(None, LONG)
        counted, done = 0, threading.Event()

        def work():
            session.run(None, LONG)
            done.set()
        thread = threading.Thread(target=work)
        thread.start()
        while not done.is_set():
            counted += 1
        thread.join()
        self.assertGreater(counted, 1000)

    def test_cancelled(self):
        session = heddle.Session(models.long_run(5000), threads=1, level="O0")
        failed = []

        def work():
            try:
                session.run(None, LONG)
            except heddle.Cancelled as error:
                failed.append(error)
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        session.cancel()
        for thread in threads:
            thread.join()
        self.assertEqual(len(failed), 2)
        session.cancel()  # nothing runs
        small = heddle.Session(models.linear())
        small.cancel()
        self.assertEqual(small(np.ones((2, 3), np.float32)).shape, (2, 4))


class ProcessTest(unittest.TestCase):
    def test_ctrl_c_ends_a_run(self):
        done = run_script(INTERRUPTED)
        self.assertEqual((done.stdout, done.stderr, done.returncode),
                         ("interrupted True\n(2, 4)\n", "", 0))

    def test_ctrl_c_keeps_its_handler(self):
        before = signal.getsignal(signal.SIGINT)
        heddle.Session(models.linear())(np.ones((2, 3), np.float32))
        self.assertIs(signal.getsignal(signal.SIGINT), before)

    def test_forked(self):
        done = run_script(FORKED)
        self.assertEqual(done.stderr, "")
        lines = done.stdout.splitlines()
        self.assertIn("before the process forked", lines[0])
        self.assertEqual(lines[1:], ["(2, 4)", "(2, 4)"])


if __name__ == "__main__":
    unittest.main()
