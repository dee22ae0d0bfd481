"""Writes stablehlo/: functions of JAX as StableHLO text, with inputs and what JAX computes of them.
Needs jax and numpy: python make_stablehlo.py"""
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from jax import export, lax
from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
from jax.sharding import Mesh, NamedSharding, PartitionSpec

FOLDER = pathlib.Path(__file__).parent / "stablehlo"
KEY = jax.random.PRNGKey(0)


def write(name, text, inputs, outputs):
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.mlir").write_text(text.replace(f"{FOLDER.parent}/", ""))  # in locations
    for kind, values in (("arg", inputs), ("out", outputs)):
        leaves = {f"{kind}{i}": np.asarray(x) for i, x in enumerate(jax.tree.leaves(values))}
        np.savez(FOLDER / f"{name}.{'inputs' if kind == 'arg' else 'outputs'}.npz", **leaves)


# As portable bytecode: the oldest version, those with another container, the newest.
VERSIONS = ("0.9.0", "0.12.0", "0.14.0", "1.0.0", stablehlo.get_current_version())


def write_bytecode():
    folder = FOLDER / "bytecode"
    folder.mkdir(exist_ok=True)
    for path in sorted(FOLDER.glob("*.mlir")):
        mixed = path.stem in ("indexing", "sharded", "special")  # operations of sdy and chlo stay
        with mlir.make_ir_context():
            module = ir.Module.parse(path.read_text())
            for version in VERSIONS:
                (folder / f"{path.stem}.{version}.mlir.bc").write_bytes(
                    stablehlo.serialize_portable_artifact(module, version, allow_other_dialects=mixed))


def save(name, function, *inputs, locations=False):
    lowered = jax.jit(function).lower(*inputs)
    write(name, lowered.as_text(debug_info=locations), inputs, jax.jit(function)(*inputs))


def network(weights, x):
    for w, b in weights:
        x = jax.nn.gelu(x @ w + b)
    return jax.nn.log_softmax(x)


def main():
    x = jax.random.normal(KEY, (4, 8))
    weights = [(jax.random.normal(KEY, (8, 6)), jnp.zeros(6)), (jax.random.normal(KEY, (6, 5)), jnp.ones(5))]
    save("network_gradient", jax.grad(lambda w, x: network(w, x).sum()), weights, x, locations=True)
    save("control", lambda i, x: (
        lax.switch(i, [lambda x: x, lambda x: x + 1, jnp.sin], x),
        lax.cond(i > 1, lambda x: x * 2, lambda x: x, x),
        lax.scan(lambda c, v: (c * 0.5 + v, jnp.sin(c)), jnp.zeros(8), x),
        lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * x), (0, x))), jnp.int32(2), x)
    save("indexing", lambda x, i: (x[i], x.at[i].add(1.0), jnp.argsort(x, axis=0), lax.top_k(x, 3),
                                   jnp.cumsum(x, 1), lax.dynamic_slice(x, (i[0], 2), (2, 3))),
         x, jnp.array([1, 3, 1]))
    save("special", lambda x: (lax.lgamma(x), lax.digamma(x), lax.erf_inv(jnp.tanh(x)), lax.bessel_i1e(x),
                               lax.nextafter(x, -x), jax.scipy.special.polygamma(1, jnp.abs(x) + 1),
                               jax.scipy.special.zeta(jnp.abs(x) + 1.5, 2.0)), x)
    mesh = NamedSharding(Mesh(np.array(jax.devices()[:1]), ("x",)), PartitionSpec("x"))
    save("sharded", lambda x: lax.with_sharding_constraint(x * 2, mesh), jax.device_put(x, mesh))
    rows, = export.symbolic_shape("rows,")
    polymorphic = jax.jit(lambda x: (x @ x.T).reshape(-1) + x.shape[0])
    exported = export.export(polymorphic)(jax.ShapeDtypeStruct((rows, 8), jnp.float32))
    write("polymorphic", exported.mlir_module(), x, polymorphic(x))
    write_bytecode()


if __name__ == "__main__":
    main()
