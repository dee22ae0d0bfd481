"""A server of examples/serve with a folder of models, and requests to it, for serve_test.py and bench/serve_attack.py."""
import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import struct
import subprocess
import threading
import time

CODES = {"FP32": "f", "INT64": "q", "INT32": "i"}


class Server:
    def __init__(self, program, models, *options, cache="off"):
        self.process = subprocess.Popen(
            [str(program), "--models", str(models), "--port", "0", "--poll-seconds", "0.1", *map(str, options)],
            stderr=subprocess.PIPE, text=True, env={**os.environ, "HEDDLE_CACHE": str(cache)})
        self.lines, self.port = [], None
        for line in self.process.stderr:
            self.lines.append(line)
            found = re.match(r"listening at .*:(\d+)$", line)
            if found:
                self.port = int(found[1])
                break
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.process.stderr))
        self.reader.start()

    def wait_ready(self, seconds=120):
        for _ in range(seconds * 20):
            if self.port is None or self.process.poll() is not None:
                raise AssertionError("the server ended: " + "".join(self.lines))
            if self.ask("GET", "/v2/health/ready")[0] == 200:
                return self
            time.sleep(0.05)
        raise AssertionError("not ready: " + "".join(self.lines))

    def stop(self):
        """Its exit status, by SIGTERM."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=60)
        self.reader.join()
        self.process.stderr.close()
        return status

    def ask(self, method, path, body=None, headers=None):
        """Status, headers, body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()
        finally:
            connection.close()

    def json(self, method, path, body=None):
        status, _, got = self.ask(method, path, None if body is None else json.dumps(body))
        return status, json.loads(got)

    def error(self, method, path, body=None, headers=None):
        """Status and reason of a request that is turned down."""
        status, _, got = self.ask(method, path, body, headers)
        return status, json.loads(got)["error"]

    def infer(self, model, inputs, binary=True):
        """inputs: name -> (datatype, shape, values). The outputs: name -> (shape, values)."""
        status, headers, got = self.ask("POST", f"/v2/models/{model}/infer", *infer_body(inputs, binary))
        if status != 200:
            raise AssertionError(f"{status}: {got[:400]}")
        return read_outputs(headers, got)

    def raw(self, data, seconds=10, half_close=False):
        """What comes back for these bytes until the server closes, or nothing came for `seconds`."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as client:
            got = b""
            try:
                client.sendall(data)
                if half_close:
                    client.shutdown(socket.SHUT_WR)
                while chunk := client.recv(65536):
                    got += chunk
            except OSError:
                pass
            return got

    def metric(self, name):
        """The sum over all labels."""
        text = self.ask("GET", "/metrics")[2].decode()
        return sum(float(line.split()[-1]) for line in text.splitlines()
                   if re.match(re.escape(name) + r"[{ ]", line))

    def memory(self):
        """Resident bytes."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024


def infer_body(inputs, binary):
    """Body and headers."""
    tensors, behind = [], b""
    for name, (datatype, shape, values) in inputs.items():
        tensor = {"name": name, "datatype": datatype, "shape": list(shape)}
        if binary:
            data = struct.pack(f"<{len(values)}{CODES[datatype]}", *values)
            tensor["parameters"] = {"binary_data_size": len(data)}
            behind += data
        else:
            tensor["data"] = list(values)
        tensors.append(tensor)
    head = json.dumps({"inputs": tensors, "parameters": {"binary_data_output": binary}}).encode()
    return head + behind, {"Inference-Header-Content-Length": str(len(head))} if binary else {}


def read_outputs(headers, body):
    head = int(headers.get("Inference-Header-Content-Length", len(body)))
    at, result = head, {}
    for output in json.loads(body[:head])["outputs"]:
        values = output.get("data")
        if values is None:
            size = output["parameters"]["binary_data_size"]
            code = CODES[output["datatype"]]
            values = list(struct.unpack(f"<{size // struct.calcsize(code)}{code}", body[at:at + size]))
            at += size
        result[output["name"]] = (output["shape"], values)
    assert at == len(body), "bytes follow the last output"
    return result


def post(path, body, *headers):
    """The bytes of a request."""
    lines = [f"POST {path} HTTP/1.1", "Host: x", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def damage(server, model, binary, plain, count, seed):
    """Sends damaged requests, each on a connection of its own; how many got which status."""
    chance, counts = random.Random(seed), {}
    for _ in range(count):
        body, headers = chance.choice([binary, plain])
        lines = [f"Content-Length: {len(body)}", *(f"{k}: {v}" for k, v in headers.items())]
        data = bytearray(post(f"/v2/models/{model}/infer", body, *lines))
        kind = chance.randrange(5)
        if kind == 0:  # cut off
            data = data[:chance.randrange(len(data))]
        elif kind == 1:  # bytes that change
            for _ in range(chance.randrange(1, 8)):
                data[chance.randrange(len(data))] = chance.randrange(256)
        elif kind == 2:  # a piece that is missing, or there twice
            at, size = chance.randrange(len(data)), chance.randrange(1, 60)
            data[at:at + size] = data[at:at + size] * chance.choice([0, 2])
        elif kind == 3:  # another number
            digits = [i for i, byte in enumerate(data) if 48 <= byte < 58]
            at = chance.choice(digits)
            data[at:at + 1] = chance.choice([b"-1", b"0", b"99999999999999999999", b"1e400", b"18446744073709551615", b"4294967296"])
        else:  # deeply nested, or very long
            text = chance.choice([b"[" * 5000, b"{\"inputs\":" * 500, b"\"" + b"a" * 50000, b"1" * 5000, b"[1," * 3000])
            data = bytearray(post(f"/v2/models/{model}/infer", text, f"Content-Length: {len(text)}"))
        got = server.raw(bytes(data), half_close=True)
        status = got[9:12].decode() if got.startswith(b"HTTP/1.1 ") else "closed"
        counts[status] = counts.get(status, 0) + 1
    return counts
