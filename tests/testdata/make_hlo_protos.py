"""Writes hlo_protos.zip: HLO protos as XLA writes them, with XLA's text of the same modules: the HLO
texts of src/ and functions of JAX; and snapshots. With --check HEDDLE it also lets XLA read what
`HEDDLE opt --emit proto` writes of each of them (and of the texts in more folders), and compares.
Needs jax, numpy and protobuf: python make_hlo_protos.py [--check HEDDLE [FOLDER...]]"""
import pathlib
import subprocess
import sys
import tempfile
import zipfile

import jax
import jax.numpy as jnp
from jax import lax
from jaxlib import _hlo

HERE = pathlib.Path(__file__).parent
SOURCE = HERE.parent.parent / "src"
MOST_BYTES = 40_000  # of one proto


def text_of(module, canonical=False):
    options = _hlo.HloPrintOptions.canonical() if canonical else _hlo.HloPrintOptions.short_parsable()
    options.print_metadata = True
    return module.to_string(options)


def modules_of_texts(folder):
    for path in sorted(folder.rglob("*.hlo")):
        text = path.read_text()
        if text.count("HloModule ") > 1 or "// -----" in text:
            continue
        try:
            yield path.stem, path, _hlo.hlo_module_from_text(text)
        except Exception:  # what XLA does not read
            continue


def functions():
    x, key = jnp.ones((4, 8)), jax.random.PRNGKey(0)
    yield "softmax", jax.nn.softmax, (x,)
    yield "gradient", jax.grad(lambda w, x: jnp.tanh(x @ w).sum()), (jnp.ones((8, 3)), x)
    yield "random", lambda k: jax.random.normal(k, (3, 5)), (key,)
    yield "loop", lambda x: lax.fori_loop(0, 5, lambda i, v: v * 2 + i, x), (x,)
    yield "branches", lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda v: v + 1], x), (1, x)
    yield "scan", lambda x: lax.scan(lambda c, v: (c + v, c * v), x[0], x), (x,)
    yield "sorted", lambda x: jnp.sort(x, axis=1)[:, ::-1], (x,)
    yield "top", lambda x: lax.top_k(x, 3), (x,)
    yield "fft", lambda x: jnp.abs(jnp.fft.fft(x)), (x,)
    yield "scattered", lambda x, i: x.at[i].add(1.0), (x, jnp.array([1, 2]))
    yield "conv", lambda x, w: lax.conv_general_dilated(x, w, (1, 2), "SAME"), (
        jnp.ones((1, 3, 9, 9)), jnp.ones((4, 3, 3, 3)))
    yield "pool", lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID"), (x,)
    yield "solve", lambda x: jnp.linalg.cholesky(x.T @ x + 9 * jnp.eye(8)), (x,)
    yield "words", lambda x: x.astype(jnp.bfloat16) @ x.astype(jnp.bfloat16).T, (x,)
    yield "numbers", lambda x: x.astype(jnp.float8_e4m3fn).astype(jnp.int4), (x,)


def modules_of_jax():
    for name, function, arguments in functions():
        text = jax.jit(function).lower(*arguments).as_text("hlo")
        yield f"jax_{name}", None, _hlo.hlo_module_from_text(text)


def field(number, value):
    """A length-delimited field of a message."""
    out = bytearray([number << 3 | 2])
    size = len(value)
    while size >= 0x80:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes(out) + bytes([size]) + value


def literal(*values):
    """LiteralProto of f32[n]."""
    import struct
    shape = b"\x10\x0b" + field(3, bytes([len(values)])) + field(5, field(1, b"\0"))
    return field(1, shape) + field(8, struct.pack(f"<{len(values)}f", *values))


def snapshot(result):
    text = "HloModule s\nENTRY e { x = f32[3] parameter(0)\n y = f32[3] parameter(1)\n ROOT z = f32[3] add(x, y) }"
    module = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    return (field(1, field(1, module)) + field(2, literal(1, 2, 3)) + field(2, literal(10, 20, 30)) +
            field(3, literal(*result)) + field(4, b"Host"))


def write():
    modules = [*modules_of_texts(SOURCE), *modules_of_jax()]
    with zipfile.ZipFile(HERE / "hlo_protos.zip", "w", zipfile.ZIP_DEFLATED) as out:
        names = set()
        for name, _, module in modules:
            proto = module.as_serialized_hlo_module_proto()
            if name in names or len(proto) > MOST_BYTES:
                continue
            names.add(name)
            out.writestr(f"{name}.pb", proto)
            out.writestr(f"{name}.hlo", text_of(module))
        out.writestr("snapshot/right.pb", snapshot((11, 22, 33)))
        out.writestr("snapshot/wrong.pb", snapshot((11, 22, 34)))
    print(len(names), "modules,", (HERE / "hlo_protos.zip").stat().st_size, "bytes")


def check(heddle, folders):
    same = different = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / "made.pb"
        for root in folders:
            for name, path, module in modules_of_texts(root):
                made.unlink(missing_ok=True)
                if subprocess.run([heddle, "opt", path, "--emit", "proto", "-o", made],
                                  capture_output=True).returncode != 0:
                    refused += 1
                    continue
                ours = _hlo.HloModule.from_serialized_hlo_module_proto(made.read_bytes())
                a, b = (text_of(m, canonical=True).partition("\n")[2] for m in (module, ours))
                same, different = same + (a == b), different + (a != b)
                if a != b:
                    print("differs:", path)
    print(same, "the same to XLA,", different, "not,", refused, "refused")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        check(sys.argv[2], [SOURCE, *map(pathlib.Path, sys.argv[3:])])
    else:
        write()
