"""The server of examples/serve: answers, batches, what it turns down, models that change, clients that go."""
import json
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from cli import MODELS, ROOT, CliTest, read_npz
from serve_client import Server, damage, infer_body, post

BUILD = pathlib.Path(os.environ.get("HEDDLE_BUILD", ROOT / "build" / "release"))
SERVE = pathlib.Path(os.environ.get("HEDDLE_SERVE", BUILD / "serve"))
CONFIG = {"batch_dimension": "batch", "padded_dimension": "sequence", "bounds": {"sequence": 16}, "most_rows": 4,
          "delay_ms": 20, "pad": {"input_ids": 0, "attention_mask": 0}}
HIDDEN = "/model/encoder/layer.1/output/LayerNorm/Add_1_output_0"  # of the sentence model: as long as its inputs
# Runs for as many trips as the client says.
LOOP = """HloModule loop
go { s = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=1
  ROOT r = pred[] compare(i, n), direction=LT }
step { s = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  n = s32[] get-tuple-element(s), index=1
  ROOT r = (s32[], s32[]) tuple(j, n) }
ENTRY main {
  n = s32[] parameter(0)
  zero = s32[] constant(0)
  start = (s32[], s32[]) tuple(zero, n)
  loop = (s32[], s32[]) while(start), condition=go, body=step
  ROOT done = s32[] get-tuple-element(loop), index=0
}
"""


def sentence(length, seed, words=30):
    chance = random.Random(seed)
    ids = [chance.randrange(words) for _ in range(length)]
    return {"input_ids": ("INT64", (1, length), ids), "attention_mask": ("INT64", (1, length), [1] * length)}


def write_with_hidden_states(path):
    try:
        import onnx
    except ImportError as error:
        raise unittest.SkipTest(f"onnx is not installed: {error}")
    model = onnx.load(MODELS / "minilm" / "model.onnx")
    model.graph.output.append(onnx.helper.make_tensor_value_info(HIDDEN, onnx.TensorProto.FLOAT, ["batch", "sequence", 32]))
    onnx.save(model, path)


def trips(n):
    return {"arg0": ("INT32", (), [n])}


class ServeTest(CliTest):
    @classmethod
    def setUpClass(cls):
        if not SERVE.exists():
            raise unittest.SkipTest(f"{SERVE} is not built: libcpp-httplib-dev is missing")
        cls.cache = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="heddle-serve-"))

    def setUp(self):
        super().setUp()
        self.models = self.folder / "models"
        self.models.mkdir()

    def put(self, name, model, config=None):
        """As a folder, in one step."""
        new = self.folder / f"new-{name}"
        new.mkdir()
        if model == "hidden":
            write_with_hidden_states(new / "model.onnx")
        else:
            shutil.copy(MODELS / model / "model.onnx", new)
        if config is not None:
            (new / "config.json").write_text(json.dumps(config))
        old = self.folder / f"old-{name}-{time.monotonic_ns()}"
        if (self.models / name).exists():
            (self.models / name).rename(old)
        new.rename(self.models / name)

    def put_loop(self):
        self.ok("compile", self.file("loop.hlo", LOOP), "-o", self.folder / "loop.heddle")
        shutil.move(self.folder / "loop.heddle", self.models / "loop.heddle")

    def serve(self, *options):
        server = Server(SERVE, self.models, *options, cache=self.cache)
        self.addCleanup(server.stop)
        return server.wait_ready()

    def wait_for(self, condition):
        for _ in range(1000):
            if condition():
                return
            time.sleep(0.02)
        self.fail("it did not come to that")

    def occupy(self, server, waiting=0):
        """A client whose request does not end: it runs, or is the last of those that wait."""
        body, headers = infer_body(trips(2 ** 31 - 1), True)
        client = socket.create_connection(("127.0.0.1", server.port))
        accepted = server.metric("heddle_accepted_total")
        client.sendall(post("/v2/models/loop/infer", body, f"Content-Length: {len(body)}", *(f"{k}: {v}" for k, v in headers.items())))
        self.wait_for(lambda: server.metric("heddle_accepted_total") > accepted and server.metric("heddle_queue_requests") == waiting)
        return client

    def close(self, wanted, got):
        self.assertEqual([tuple(wanted[0]), len(wanted[1])], [tuple(got[0]), len(got[1])])
        largest = max(abs(value) for value in wanted[1])
        for a, b in zip(wanted[1], got[1]):
            self.assertLessEqual(abs(a - b), 1e-5 * largest)

    def recorded(self, model):
        """Inputs as for infer(), and the outputs as recorded from another engine."""
        names = {int: "INT64", float: "FP32"}
        return ({name: (names[type(values[0])], dims, values)
                 for name, (dims, values) in read_npz(MODELS / model / "inputs.npz").items()},
                read_npz(MODELS / model / "expected.npz"))


class AnswersTest(ServeTest):
    def test_models_as_they_are(self):
        """Without a config: any shapes, one request a run; and what is said about them."""
        self.put("bert", "bert_dynamic")
        shutil.copy(MODELS / "cnn" / "model.onnx", self.models / "cnn.onnx")
        (self.models / "broken.onnx").write_bytes(b"no model")
        server = self.serve()
        self.assertEqual({"name": "bert", "versions": ["1"], "platform": "heddle"},
                         {k: v for k, v in server.json("GET", "/v2/models/bert/versions/1")[1].items()
                          if k not in ("inputs", "outputs")})
        self.assertEqual([{"name": "image", "datatype": "FP32", "shape": [-1, 3, 16, 16]}],
                         server.json("GET", "/v2/models/cnn")[1]["inputs"])
        for model, recorded in [("bert", "bert_dynamic"), ("cnn", "cnn")]:
            self.assertEqual(200, server.ask("GET", f"/v2/models/{model}/ready")[0])
            inputs, expected = self.recorded(recorded)
            for binary in (False, True):
                outputs = server.infer(model, inputs, binary)
                self.assertEqual(set(expected), set(outputs))
                for name in expected:
                    self.close(expected[name], outputs[name])
        self.assertIn("binary_tensor_data", server.json("GET", "/v2")[1]["extensions"])
        status, reason = server.error("GET", "/v2/models/broken/ready")
        self.assertEqual(503, status)
        self.assertIn("model 'broken' could not be loaded: ", reason)
        states = {m["name"]: m["state"] for m in server.json("POST", "/v2/repository/index", {})[1]}
        self.assertEqual({"bert": "READY", "cnn": "READY", "broken": "UNAVAILABLE"}, states)
        metrics = server.ask("GET", "/metrics")[2].decode()
        self.assertIn('heddle_requests_total{model="bert",code="200"} 2\n', metrics)
        self.assertIn('heddle_request_seconds_bucket{model="cnn",le="+Inf"} 2\n', metrics)
        self.assertEqual(0, server.stop())

    def test_batches_give_what_each_request_gives_alone(self):
        self.put("bert", "hidden", CONFIG)
        self.put_loop()
        server = self.serve("--runners", 1)
        inputs, expected = self.recorded("minilm")
        outputs = server.infer("bert", inputs)  # three rows, for which there is no program
        for name in expected:
            self.close(expected[name], outputs[name])
        lengths = [n for n in range(1, 17)] * 3
        alone = [server.infer("bert", sentence(n, seed)) for seed, n in enumerate(lengths)]
        runs, rows = server.metric("heddle_run_seconds_count"), server.metric("heddle_rows_total")
        self.assertEqual(len(lengths) + 1, runs)
        together = [None] * len(lengths)
        bad = []

        def ask(seed, n):
            together[seed] = server.infer("bert", sentence(n, seed), binary=seed % 2 == 0)

        def ask_wrong(n):  # joined to others; only this one is at fault
            body = infer_body(sentence(n, 1, words=10 ** 6), True)
            bad.append(server.error("POST", "/v2/models/bert/infer", *body))

        busy = self.occupy(server)  # until all of them wait
        threads = [threading.Thread(target=ask, args=a) for a in enumerate(lengths)]
        threads += [threading.Thread(target=ask_wrong, args=(n,)) for n in (3, 9, 15)]
        for thread in threads:
            thread.start()
        self.wait_for(lambda: server.metric("heddle_queue_requests") == len(threads))
        busy.close()
        for thread in threads:
            thread.join()
        for one, other in zip(alone, together):
            for name in one:
                self.close(one[name], other[name])
        self.assertEqual([400] * 3, [status for status, _ in bad])
        self.assertIn("give indices in that range", bad[0][1])
        per_run = (server.metric("heddle_rows_total") - rows) / (server.metric("heddle_run_seconds_count") - runs)
        self.assertGreater(per_run, 1.5)

    def test_one_program_has_all_batches_where_nothing_else_is_dynamic(self):
        self.put("cnn", "cnn", {"batch_dimension": "batch", "most_rows": 8})
        self.put_loop()
        server = self.serve("--runners", 1)
        inputs, expected = self.recorded("cnn")
        self.close(expected["out"], server.infer("cnn", inputs)["out"])
        size = len(inputs["image"][2]) // 2
        images = [("FP32", (1, 3, 16, 16), inputs["image"][2][i % 2 * size:][:size]) for i in range(12)]
        runs, results = server.metric("heddle_run_seconds_count"), [None] * len(images)

        def ask(i):
            results[i] = server.infer("cnn", {"image": images[i]})["out"]

        busy = self.occupy(server)
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(images))]
        for thread in threads:
            thread.start()
        self.wait_for(lambda: server.metric("heddle_queue_requests") == len(threads))
        busy.close()
        for thread in threads:
            thread.join()
        for i, result in enumerate(results):
            self.close(([1, 10], expected["out"][1][i % 2 * 10:][:10]), result)
        self.assertEqual(3, server.metric("heddle_run_seconds_count") - runs)  # 8, 4, and the busy one
        status, reason = server.error("POST", "/v2/models/cnn/infer", *infer_body({"image": ("FP32", (9, 3, 16, 16), [0.0] * 9 * size)}, True))
        self.assertEqual(400, status)
        self.assertIn("wanted batch from 1 to 8", reason)

    def test_wrong_options_are_one_line(self):
        server = self.serve()
        for options in [("--models", self.folder / "none"), ("--models", self.models, "--port", "70000"), (),
                        ("--models", self.models, "--port", server.port), ("--models", self.models, "--most-rows", "0"),
                        ("--models", self.models, "--port", "0", "--host", "256.1.1.1")]:
            done = subprocess.run([SERVE, *map(str, options)], capture_output=True, text=True, timeout=20, check=False)
            self.assertEqual((2, 1), (done.returncode, done.stderr.count("error: ")), done.stderr)

    def test_configs_that_do_not_fit(self):
        wrong = {"a": {"batch_dimension": "rows"}, "b": {"most": 3}, "c": {**CONFIG, "pad": {"input_ids": 0}},
                 "d": {**CONFIG, "bounds": {}}, "e": {**CONFIG, "bounds": {"sequence": "16"}},
                 "f": {**CONFIG, "pad": {"input_ids": 0.5, "attention_mask": 0}}}
        for name, config in wrong.items():
            self.put(name, "minilm", config)
        server = self.serve()
        reasons = {m["name"]: m["reason"] for m in server.json("POST", "/v2/repository/index", {})[1]}
        for name, part in [("a", "no dynamic dimension 'rows'"), ("b", "unknown key 'most'"), ("c", "no value for input 'attention_mask'"),
                           ("d", "padded_dimension: it needs"), ("e", "config: "), ("f", "got 0.5 in the data, wanted INT64")]:
            self.assertIn(part, reasons[name])

    def test_reasons(self):
        self.put("bert", "minilm", CONFIG)
        server = self.serve("--body-bytes", 20000)
        path = "/v2/models/bert/infer"
        good = sentence(3, 0)

        def wrong(**changed):
            return infer_body({**good, **changed}, True)

        two = ("INT64", (2, 3), [0] * 6)
        for part, (body, headers) in [
                ("the model has no 'x'", wrong(x=two)),
                ("batch 1 as in another input", wrong(attention_mask=two)),
                ("its datatype is \"INT32\", wanted INT64", wrong(input_ids=("INT32", (1, 3), [0] * 3))),
                ("wanted 2 dimensions", wrong(input_ids=("INT64", (3,), [0] * 3))),
                ("wanted sequence from 1 to 16", infer_body(sentence(17, 0), True)),
                ("its data has 16 bytes, wanted 24", wrong(input_ids=("INT64", (1, 3), [0] * 2))),
                ("input 'attention_mask' is missing", infer_body({"input_ids": good["input_ids"]}, True)),
                ("got 1.5 in the data, wanted INT64", infer_body({**good, "input_ids": ("INT64", (1, 3), [0, 1, 1.5])}, False)),
                ("got 9223372036854775808 in the data", infer_body({**good, "input_ids": ("INT64", (1, 3), [0, 1, 2 ** 63])}, False)),
                ("bytes follow the last tensor", (infer_body(good, True)[0] + b"x", infer_body(good, True)[1])),
                ("is no number up to", (b"{}", {"Inference-Header-Content-Length": "3"})),
                ("is no number up to", (b"{}", {"Inference-Header-Content-Length": "-1"})),
                ("more than 24 levels deep", (b"[" * 15000, {})),
                ("parse error", (b"{\"inputs\":", {})),
                ("key 'inputs' not found", (b"{}", {})),
        ]:
            status, reason = server.error("POST", path, body, headers)
            self.assertEqual(400, status, reason)
            self.assertIn(part, reason)
        self.assertEqual((404, "there is no model 'x'"), server.error("POST", "/v2/models/x/infer", "{}"))
        self.assertEqual(404, server.error("GET", "/v2/models/bert/versions/2")[0])
        self.assertEqual(405, server.error("PUT", path, "{}")[0])
        self.assertEqual(413, server.error("POST", path, b"x" * 20001)[0])
        for expected, data in [
                (b"411", post(path, b"")),
                (b"400", post(path, b"{}", "Content-Length: 2", "Content-Length: 3")),
                (b"400", post(path, b"{}", "Content-Length: two")),
                (b"400", post(path, b"{}", "Content-Length: -2")),
                (b"400", post(path, b"2\r\n{}\r\n0\r\n\r\n", "Content-Length: 2", "Transfer-Encoding: chunked")),
                (b"413", post(path, b"", "Content-Length: 99999999999999")),
                (b"413", post(path, b"4000\r\n" + b"x" * 16384 + b"\r\n4000\r\n" + b"x" * 16384, "Transfer-Encoding: chunked")),
                (b"400", post(path, b"zz\r\n", "Transfer-Encoding: chunked")),
                (b"400", post(path, b"{", "Content-Length: 9")),
                (b"415", post(path, b"", "Content-Length: 0", "Content-Type: multipart/form-data; boundary=x")),
                (b"400", b"GET /v2 HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd"),
                (b"400", b"nonsense\r\n\r\n"),
                (b"400", b"GET /v2 HTTP/1.1\r\n" + b"a: b\r\n" * 10000 + b"\r\n"),
                (b"414", b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n"),
                (b"416", b"GET /v2 HTTP/1.1\r\nRange: bytes=9-1\r\n\r\n"),
        ]:
            got = server.raw(data, half_close=True)
            self.assertEqual(b"HTTP/1.1 " + expected, got[:12], (data[:80], got[:200]))
        # What asks for a part of a reply gets the whole.
        self.assertIn(b"binary_tensor_data", server.raw(b"GET /v2 HTTP/1.1\r\nRange: bytes=0-3\r\nConnection: close\r\n\r\n"))
        self.assertEqual(server.infer("bert", good), server.infer("bert", good))


class ChangesTest(ServeTest):
    def test_a_model_that_changes_under_load(self):
        self.put("m", "minilm", CONFIG)
        server = self.serve()
        stop, seen, failures = threading.Event(), set(), []

        def ask():
            while not stop.is_set():
                try:
                    (outputs,) = [server.infer("m", sentence(5, 0))]
                    seen.add(tuple(sorted((n, tuple(o[0]), round(o[1][0], 4)) for n, o in outputs.items())))
                except AssertionError as error:  # of the other model's inputs
                    if not str(error).startswith("400: "):
                        failures.append(str(error))
                except Exception as error:  # pylint: disable=broad-except
                    failures.append(repr(error))

        def loads():
            return server.metric("heddle_loads_total")

        def wait_load(before):
            for _ in range(400):
                if loads() > before:
                    return
                time.sleep(0.05)
            self.fail("not loaded: " + "".join(server.lines))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            time.sleep(0.3)
            before = loads()
            (self.models / "m" / "model.onnx").write_bytes(b"cut off")  # in place: it is a copy that runs
            wait_load(before)
            self.assertEqual(200, server.ask("GET", "/v2/models/m/ready")[0])
            server.infer("m", sentence(5, 0))
            before = loads()
            self.put("m", "bert_dynamic")
            wait_load(before)
            inputs, _ = self.recorded("bert_dynamic")
            self.assertEqual({"hidden", "pooled"}, set(server.infer("m", inputs)))
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual([], failures)
        self.assertEqual(1, len(seen), seen)
        (self.models / "m").rename(self.folder / "gone")
        for _ in range(100):
            if server.ask("GET", "/v2/models/m")[0] == 404:
                break
            time.sleep(0.05)
        self.assertEqual((404, "there is no model 'm'"), server.error("GET", "/v2/models/m"))
        self.assertEqual(0, server.stop())

    def test_clients_that_go_and_a_server_that_stops(self):
        self.put_loop()
        server = self.serve("--runners", 1, "--queue", 2)
        start = time.monotonic()
        self.assertEqual({"out0": ([], [1000])}, server.infer("loop", trips(1000)))
        clients = [self.occupy(server)]
        clients += [self.occupy(server, waiting=1), self.occupy(server, waiting=2)]
        status, reply, _ = server.ask("POST", "/v2/models/loop/infer", *infer_body(trips(1), True))
        self.assertEqual((503, "1"), (status, reply.get("Retry-After")))
        for client in clients:
            client.close()
        self.wait_for(lambda: server.metric("heddle_abandoned_total") == 3 and server.metric("heddle_queue_requests") == 0)
        self.assertEqual({"out0": ([], [5])}, server.infer("loop", trips(5)))
        self.assertLess(time.monotonic() - start, 20)  # the endless run alone would take longer
        # One that is under way is answered, then the server ends; no other comes in between.
        result = []
        running = threading.Thread(target=lambda: result.append(server.infer("loop", trips(3 * 10 ** 7))))
        running.start()
        time.sleep(0.2)
        self.assertEqual(0, server.stop())
        running.join()
        self.assertEqual([{"out0": ([], [3 * 10 ** 7])}], result)

    def test_a_run_that_does_not_end_is_cancelled_at_last(self):
        self.put_loop()
        server = self.serve("--runners", 1, "--drain-seconds", 0.3)
        result = []
        body = infer_body(trips(2 ** 31 - 1), True)
        running = threading.Thread(target=lambda: result.append(server.error("POST", "/v2/models/loop/infer", *body)))
        running.start()
        time.sleep(0.5)
        self.assertEqual(0, server.stop())
        running.join()
        self.assertEqual(503, result[0][0])


class AttacksTest(ServeTest):
    def test_slow_and_many_clients(self):
        shutil.copy(MODELS / "cnn" / "model.onnx", self.models / "cnn.onnx")
        server = self.serve("--request-seconds", 0.5, "--connections", 8, "--idle-seconds", 5)

        def drip(start):
            got, begin = b"", time.monotonic()
            with socket.create_connection(("127.0.0.1", server.port)) as client:
                client.settimeout(0.05)
                client.sendall(start)
                while time.monotonic() - begin < 5:
                    try:
                        client.sendall(b"x")
                        got = client.recv(1000)
                        break
                    except TimeoutError:
                        continue
                    except OSError:
                        break
            return got[:12], time.monotonic() - begin

        for start, replies in [(b"GET /v2", [b""]), (b"GET /v2 HTTP/1.1\r\na: ", [b"HTTP/1.1 400"]),
                               (post("/v2/models/cnn/infer", b"{", "Content-Length: 5000"), [b"HTTP/1.1 408"])]:
            got, seconds = drip(start)
            self.assertIn(got, replies)
            self.assertLess(seconds, 2)
        time.sleep(0.2)
        held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(8)]
        time.sleep(0.2)
        self.assertEqual(b"HTTP/1.1 503", server.raw(b"GET /v2 HTTP/1.1\r\n\r\n")[:12])
        time.sleep(1.5)  # idle ones make room
        self.assertEqual(200, server.ask("GET", "/v2")[0])
        for client in held:
            client.close()

    def test_damaged_requests(self):
        self.put("bert", "minilm", CONFIG)
        server = self.serve("--request-seconds", 2)
        wanted = server.infer("bert", sentence(7, 1))
        damage(server, "bert", infer_body(sentence(7, 1), True), infer_body(sentence(7, 1), False), 500, 0)
        before = server.memory()
        counts = damage(server, "bert", infer_body(sentence(7, 1), True), infer_body(sentence(7, 1), False), 1500, 1)
        self.assertLess(server.memory() - before, 8 << 20)
        self.assertGreater(counts["400"], 500)
        self.assertEqual(set(), set(counts) - {"200", "400", "404", "405", "408", "411", "413", "414", "415", "416", "closed"})
        for name, output in server.infer("bert", sentence(7, 1)).items():
            self.close(wanted[name], output)
        self.assertEqual(0, server.stop())


class TritonClientTest(ServeTest):
    def test_its_http_client(self):
        try:
            import numpy
            import tritonclient.http as triton
        except ImportError as error:
            self.skipTest(f"tritonclient[http] is not installed: {error}")
        self.put("bert", "minilm", CONFIG)
        server = self.serve()
        client = triton.InferenceServerClient(f"127.0.0.1:{server.port}")
        self.assertTrue(client.is_server_live() and client.is_server_ready() and client.is_model_ready("bert"))
        self.assertEqual("heddle", client.get_server_metadata()["name"])
        self.assertEqual([-1, 32], client.get_model_metadata("bert")["outputs"][0]["shape"])
        self.assertEqual("READY", client.get_model_repository_index()[0]["state"])
        inputs, expected = self.recorded("minilm")
        for binary in (False, True):
            given = []
            for name, (datatype, shape, values) in inputs.items():
                given.append(triton.InferInput(name, shape, datatype))
                given[-1].set_data_from_numpy(numpy.array(values, numpy.int64).reshape(shape), binary_data=binary)
            wanted = [triton.InferRequestedOutput(name, binary_data=binary) for name in expected]
            for outputs, compression in [(wanted, None), (None, "gzip"), (wanted, "deflate")]:
                result = client.infer("bert", given, outputs=outputs, request_id="7", request_compression_algorithm=compression)
                self.assertEqual("7", result.get_response()["id"])
                for name in expected:
                    array = result.as_numpy(name)
                    self.close(expected[name], (array.shape, array.ravel().tolist()))
        given[0].set_data_from_numpy(numpy.full(inputs["input_ids"][1], 10 ** 6, numpy.int64))
        with self.assertRaisesRegex(triton.InferenceServerException, "indices"):
            client.infer("bert", given)
        client.close()


if __name__ == "__main__":
    sys.exit(unittest.main())
