"""Many damaged, oversized, slow and broken-off requests to the server of examples/serve, by hand:

    python tests/fuzz/serve_attack.py SERVE [REQUESTS] [CLIENTS]        (100000, 8)

It prints how many got which status and the server's memory on the way, and exits 1 where the server ended, a status is
none of 200, 4xx and 503, memory grew by more than 32 MiB after the first tenth, or a good request is answered differently in the end."""
import collections
import concurrent.futures
import json
import pathlib
import random
import shutil
import socket
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from cli import MODELS  # noqa: E402
from serve_client import Server, damage, infer_body, post  # noqa: E402
from serve_test import CONFIG, sentence  # noqa: E402

PATH = "/v2/models/bert/infer"
MOST_BODY = 65536
GROWTH = 32 << 20


def oversized(server, chance):
    if chance.random() < 0.5:
        return server.raw(post(PATH, b"x" * 1000, f"Content-Length: {chance.choice([MOST_BODY + 1, 10 ** 9, 2 ** 63 - 1, 2 ** 64])}"))
    return server.raw(post(PATH, (b"8000\r\n" + b"x" * 32768 + b"\r\n") * 3, "Transfer-Encoding: chunked"))


def broken_off(server, chance):
    """Goes before the reply, in the middle of the body or right behind it."""
    body, headers = infer_body(sentence(9, 2), True)
    data = post(PATH, body, f"Content-Length: {len(body)}", *(f"{k}: {v}" for k, v in headers.items()))
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(data[:chance.choice([len(data), chance.randrange(len(data))])])
        if chance.random() < 0.5:  # with a reset
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    return b""


def slow(server, chance):
    """A byte now and then, until the server has had enough."""
    data = post(PATH, b"{" * 3000, "Content-Length: 5000")
    got = b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=0.1) as client:
        client.sendall(data[:chance.randrange(1, len(data))])
        for _ in range(100):
            try:
                client.sendall(b"x")
                got = client.recv(4096)
                break
            except TimeoutError:
                continue
            except OSError:
                break
    return got


def some(server, count, seed):
    """`count` requests, one after another."""
    chance, counts = random.Random(seed), collections.Counter()
    for _ in range(count):
        kind = chance.choices(["damaged", "oversized", "broken off", "slow"], [70, 15, 14.9, 0.1])[0]
        try:
            if kind == "damaged":
                binary, plain = infer_body(sentence(9, 2), True), infer_body(sentence(9, 2), False)
                status = next(iter(damage(server, "bert", binary, plain, 1, chance.random())))
            else:
                got = {"oversized": oversized, "broken off": broken_off, "slow": slow}[kind](server, chance)
                status = got[9:12].decode() if got.startswith(b"HTTP/1.1 ") else "closed"
        except OSError as error:
            status = type(error).__name__
        counts[f"{kind}: {status}"] += 1
    return counts


def main(program, requests=100000, clients=8):
    requests, clients = int(requests), int(clients)
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder, "models", "bert")
        model.mkdir(parents=True)
        shutil.copy(MODELS / "minilm" / "model.onnx", model)
        (model / "config.json").write_text(json.dumps({**CONFIG, "delay_ms": 0}))
        server = Server(program, model.parent, "--body-bytes", MOST_BODY, "--request-seconds", 2,
                        cache=pathlib.Path(folder, "cache")).wait_ready()
        wanted = server.infer("bert", sentence(9, 2))
        counts, memory, begin = collections.Counter(), [], time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(clients) as pool:
            for tenth in range(10):
                for one in pool.map(lambda c: some(server, requests // 10 // clients, 1000 * tenth + c), range(clients)):  # pylint: disable=cell-var-from-loop
                    counts += one
                memory.append(server.memory())
                print(f"{sum(counts.values())} requests, {time.monotonic() - begin:.0f} s, {memory[-1] >> 20} MiB resident, "
                      f"{server.metric('heddle_connections'):.0f} connections", flush=True)
        for what, count in sorted(counts.items()):
            print(f"{count:7} {what}")
        good = server.infer("bert", sentence(9, 2)) == wanted
        status = server.stop()
        statuses = {what.split(": ")[1] for what in counts}
        wrong = sorted(s for s in statuses if not (s in ("200", "503", "closed") or s.startswith("4")))
        print(f"good request answered as before: {good}; exit status {status}; statuses that should not be: {wrong}")
        return 0 if good and status == 0 and not wrong and memory[-1] - memory[0] < GROWTH else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
