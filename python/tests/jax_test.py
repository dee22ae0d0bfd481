"""JAX on the platform "heddle": small programs against JAX's own CPU platform and numpy."""
import os
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
import warnings

os.environ.setdefault("JAX_PLATFORMS", "heddle")
try:
    import jax
except ImportError:
    print("jax is not installed")
    sys.exit(77)
import jax.numpy as jnp
import numpy as np
from jax import lax

try:
    DEVICE, CPU = jax.devices("heddle")[0], jax.devices("cpu")[0]
except RuntimeError as error:
    print(f"the plug-in is not built: {error}")
    sys.exit(77)


def numbers(*shape, seed=0, dtype=np.float32):
    return np.random.RandomState(seed).randn(*shape).astype(dtype)


class Case(unittest.TestCase):
    def same(self, function, *arguments, rtol=2e-5, atol=2e-5):
        """Both platforms give the same."""
        wanted = jax.jit(function)(*jax.device_put(arguments, CPU))
        got = jax.jit(function)(*jax.device_put(arguments, DEVICE))
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
            self.assertEqual((a.shape, a.dtype), (b.shape, b.dtype))
            self.assertEqual(a.device.platform, "heddle")
            wide = np.complex128 if jnp.iscomplexobj(a) else np.float64
            np.testing.assert_allclose(np.asarray(a, wide), np.asarray(b, wide), rtol=rtol,
                                       atol=atol)


class ProgramTest(Case):
    def test_it_is_the_default_platform(self):
        self.assertEqual(jax.default_backend(), "heddle")
        self.assertEqual(DEVICE.device_kind, "cpu")

    def test_elementwise(self):
        self.same(lambda x, y: jnp.tanh(x) * y + jnp.exp(-x * x), numbers(4, 5), numbers(4, 5))

    def test_integers_and_booleans(self):
        x = np.arange(-6, 6, dtype=np.int32)
        self.same(lambda x: (x // 4, x % 4, x > 2, x << 1, lax.population_count(x)), x)

    def test_products(self):
        self.same(lambda x, y: jnp.einsum("bij,bkj->bik", x, y), numbers(3, 4, 5), numbers(3, 6, 5))

    def test_convolution(self):
        self.same(lambda x, w: lax.conv(x, w, (2, 2), "SAME"), numbers(1, 3, 8, 8),
                  numbers(4, 3, 3, 3))

    def test_reductions_and_sort(self):
        self.same(lambda x: (x.sum(0), x.max(1), jnp.argmax(x), jnp.sort(x), jnp.cumsum(x, 1),
                             lax.top_k(x, 2)), numbers(5, 7))

    def test_sorts_of_all_kinds_of_numbers(self):
        x = np.array([0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1, -1] * 50, np.float32)
        self.same(lambda x: (jnp.sort(x), jnp.argsort(x), jnp.sort(x, descending=True),
                             jnp.argsort(x.astype(jnp.bfloat16)),
                             jnp.searchsorted(jnp.sort(x), x)), x)

    def test_approximate_top_k(self):
        x = numbers(3, 40, 2)
        for find in (lax.approx_max_k, lax.approx_min_k):
            self.same(lambda x, find=find: find(x, 5, reduction_dimension=1), x)

    def test_gather_and_scatter(self):
        self.same(lambda x, i: (x[i], x.at[i].add(1), x.at[i].set(2, mode="drop")), numbers(6, 2),
                  np.array([0, 3, 3, 9]))

    def test_windows_that_stick_out_are_dropped(self):
        numbers_of = lax.ScatterDimensionNumbers((1,), (), (0,))
        self.same(lambda x, y: lax.scatter_add(x, np.array([[9], [2]]), y, numbers_of),
                  numbers(10), numbers(2, 2))

    def test_grad(self):
        self.same(jax.grad(lambda w, x: jnp.sum(jax.nn.softmax(x @ w) ** 2)), numbers(5, 4),
                  numbers(3, 5))

    def test_hessian(self):
        self.same(jax.hessian(lambda x: jnp.sum(jnp.sin(x) * x[::-1])), numbers(4))

    def test_vmap(self):
        self.same(jax.vmap(lambda x, y: jnp.dot(x, y) * x), numbers(4, 3), numbers(4, 3))

    def test_scan(self):
        self.same(lambda w, x: lax.scan(lambda c, _: (jnp.tanh(c @ w), c.sum()), x, None, 10),
                  numbers(4, 4) * 0.3, numbers(2, 4))

    def test_while_and_cond(self):
        self.same(lambda x: lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2, x),
                  np.array([1.0, 2.0], np.float32))
        for p in (True, False):
            self.same(lambda p, x: lax.cond(p, jnp.sin, jnp.cos, x), p, numbers(3))

    def test_random(self):
        self.same(lambda k: (jax.random.normal(k, (5,)), jax.random.permutation(k, 9)),
                  np.array([1, 2], np.uint32))

    def test_lower_precision(self):
        self.same(lambda x: jnp.tanh(x) + 1, numbers(8).astype(jnp.bfloat16), rtol=1e-2)
        self.same(lambda x: (x.astype(jnp.int8), (x + x).astype(jnp.int8)),
                  np.array([1, -2, -4, 3]).astype(jnp.int4))

    def test_complex(self):
        self.same(lambda x: jnp.abs(jnp.fft.fft(x)), numbers(8))

    def test_sizes_of_zero(self):
        self.same(lambda x: (x + 1, x.sum()), np.zeros((0, 3), np.float32))

    def test_jit_of_jit_and_static_arguments(self):
        inner = jax.jit(lambda x, n: x * n, static_argnums=1)
        self.same(lambda x: inner(x, 3) + inner(x, 4), numbers(3))

    def test_double_precision(self):
        from jax import experimental
        x64 = jax.enable_x64 if hasattr(jax, "enable_x64") else experimental.enable_x64
        with x64(True):
            self.same(lambda x: jnp.sin(x) ** 2, numbers(5, dtype=np.float64), rtol=1e-12,
                      atol=1e-12)


class LinalgTest(Case):
    def test_decompositions(self):
        a = numbers(2, 4, 4)
        with jax.default_device(DEVICE):
            q, r = jnp.linalg.qr(a)
            np.testing.assert_allclose(q @ r, a, atol=1e-5)
            u, s, v = jnp.linalg.svd(a)
            np.testing.assert_allclose((u * s[:, None]) @ v, a, atol=1e-5)
            w, v = jnp.linalg.eig(a)
            np.testing.assert_allclose(a @ v, v * w[:, None], atol=1e-5)
            symmetric = a + a.swapaxes(1, 2)
            np.testing.assert_allclose(jnp.linalg.eigvalsh(symmetric),
                                       np.linalg.eigvalsh(symmetric), atol=1e-5)

    def test_numbers_that_lapack_lacks_are_refused(self):
        with self.assertRaisesRegex(NotImplementedError, "Unsupported dtype float16"):
            jax.jit(jnp.linalg.qr)(jax.device_put(numbers(4, 4, dtype=np.float16), DEVICE))

    def test_tridiagonal_forms_of_single_numbers(self):
        self.same(jax.lax.linalg.tridiagonal, (numbers(1, 1) + 2j).astype(np.complex64))

    def test_solve(self):
        a, b = numbers(4, 4), numbers(4, 2)
        self.same(lambda a, b: (jnp.linalg.solve(a, b), jnp.linalg.inv(a), jnp.linalg.det(a)), a, b,
                  rtol=1e-3, atol=1e-4)
        self.same(lambda a: jnp.linalg.cholesky(a @ a.T + jnp.eye(4)), a)


class BufferTest(Case):
    def test_numpy_sees_the_memory_itself(self):
        x = jnp.arange(100.0)
        self.assertEqual(np.asarray(x).ctypes.data, x.unsafe_buffer_pointer())

    def test_between_devices(self):
        x = jax.device_put(numbers(3), CPU)
        y = jax.device_put(x, DEVICE)
        np.testing.assert_array_equal(x, y)
        np.testing.assert_array_equal(x, jax.device_put(y, CPU))

    def test_donation(self):
        f = jax.jit(lambda x: x * 2, donate_argnums=0)
        x = jnp.ones((1000,)) + 1
        address = x.unsafe_buffer_pointer()
        y = f(x)
        self.assertTrue(x.is_deleted())
        self.assertEqual(y.unsafe_buffer_pointer(), address)
        with self.assertRaisesRegex((RuntimeError, ValueError), "deleted"):
            x + 1

    def test_from_dlpack(self):
        x = jax.device_put(jnp.from_dlpack(np.arange(6.0, dtype=np.float32)), DEVICE)
        np.testing.assert_array_equal(x + 1, np.arange(6) + 1)

    def test_numpy_and_torch_see_the_memory_itself(self):
        x = jax.device_put(numbers(8, 4), DEVICE) + 1
        view = np.from_dlpack(x)
        self.assertEqual(view.ctypes.data, x.unsafe_buffer_pointer())
        np.testing.assert_array_equal(view, numbers(8, 4) + 1)
        with self.assertRaisesRegex(BufferError, "host's memory"):
            x.__dlpack__(dl_device=(2, 0))
        y = jax.dlpack.from_dlpack(x, device=CPU)
        self.assertEqual(y.unsafe_buffer_pointer(), x.unsafe_buffer_pointer())
        try:
            import torch
        except ImportError:
            return
        for dtype in (np.float32, jnp.bfloat16, np.int8, np.complex64, np.bool_):
            x = jax.device_put(np.arange(6).astype(dtype), DEVICE)
            t = torch.from_dlpack(x)
            self.assertEqual(t.data_ptr(), x.unsafe_buffer_pointer())
            self.assertEqual(str(t.dtype), f"torch.{np.dtype(dtype).name}")
            y = jax.dlpack.from_dlpack(torch.ones(64, dtype=t.dtype), device=DEVICE, copy=False)
            self.assertEqual((y.device, y.dtype), (DEVICE, dtype))
            self.assertEqual(int(y.sum().real), 64)

    def test_what_is_shared_is_not_overwritten(self):
        x = jax.device_put(numbers(1000), DEVICE)
        view = np.from_dlpack(x)
        y = jax.jit(lambda x: x * 2, donate_argnums=0)(x)
        self.assertTrue(x.is_deleted())
        np.testing.assert_array_equal(view, numbers(1000))
        np.testing.assert_array_equal(y, numbers(1000) * 2)

    def test_what_is_taken_over_has_to_be_aligned(self):
        memory = np.zeros(4 * 64 + 64, np.uint8)
        at = -memory.ctypes.data % 64
        whole = memory[at:at + 256].view(np.float32)
        x = jax.dlpack.from_dlpack(whole, device=DEVICE, copy=False)
        self.assertEqual(x.unsafe_buffer_pointer(), whole.ctypes.data)
        if jax.__version_info__ >= (0, 10):  # JAX 0.7 copies without a word
            with self.assertRaisesRegex(ValueError, "aligned"):
                jax.dlpack.from_dlpack(whole[1:], device=DEVICE, copy=False)
        self.assertEqual(jax.dlpack.from_dlpack(whole[1:], device=DEVICE).shape, (63,))

    def test_memory_statistics(self):
        before = DEVICE.memory_stats()["bytes_in_use"]
        x = jnp.zeros((1 << 20,), np.uint8) + 1
        x.block_until_ready()
        self.assertGreaterEqual(DEVICE.memory_stats()["bytes_in_use"] - before, 1 << 20)


class AsyncTest(Case):
    def test_a_call_returns_before_the_run_is_over(self):
        x = jax.device_put(numbers(64, 64) * 0.1, DEVICE)
        f = jax.jit(lambda x: lax.fori_loop(0, 3000, lambda _, c: jnp.tanh(c @ x), x))
        g = jax.jit(lambda x: x + 1)
        wanted = f(x).block_until_ready()
        g(x).block_until_ready()
        start = time.perf_counter()
        y = f(x)
        called = time.perf_counter() - start
        z = g(y)  # waits behind it
        self.assertFalse(z.is_ready())
        y.block_until_ready()
        self.assertLess(called, 0.5 * (time.perf_counter() - start))
        np.testing.assert_array_equal(y, wanted)
        np.testing.assert_array_equal(z, wanted + 1)

    def test_steps_with_donation(self):
        f = jax.jit(lambda x: x + 1, donate_argnums=0)
        x = jax.device_put(np.zeros((512, 512), np.float32), DEVICE) + 0
        address = x.unsafe_buffer_pointer()
        for _ in range(100):
            x = f(x)
        self.assertEqual(x.unsafe_buffer_pointer(), address)
        np.testing.assert_array_equal(x, np.full((512, 512), 100))

    def test_the_process_may_end_before_the_run(self):
        program = textwrap.dedent("""
            import jax, jax.numpy as jnp
            x = jnp.ones((256, 256)) * 1e-3
            f = jax.jit(lambda x: jax.lax.fori_loop(0, 300, lambda _, c: c @ x, x))
            f(x).block_until_ready()
            y = f(f(x))
            print(y.is_ready())
            """)
        done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True,
                              text=True, env=dict(os.environ, JAX_PLATFORMS="heddle"))
        self.assertEqual(done.stdout, "False\n")


class CallbackTest(Case):
    def test_pure(self):
        f = jax.jit(lambda x: 2 * jax.pure_callback(np.sin, jax.ShapeDtypeStruct((3,), np.float32),
                                                    x))
        np.testing.assert_allclose(f(numbers(3)), 2 * np.sin(numbers(3)), rtol=1e-6)

    def test_ordered(self):
        seen = []

        @jax.jit
        def f(x):
            def body(i, c):
                jax.experimental.io_callback(lambda v: seen.append(int(v)), None, i, ordered=True)
                return c + i
            return lax.fori_loop(0, 4, body, x)
        self.assertEqual(f(1), 7)
        jax.effects_barrier()
        self.assertEqual(seen, [0, 1, 2, 3])

    def test_what_it_raises_is_told(self):
        def bad(x):
            raise ValueError("no such thing")
        f = jax.jit(lambda x: jax.pure_callback(bad, jax.ShapeDtypeStruct((), np.float32), x))
        with self.assertRaisesRegex(Exception, "no such thing"):
            f(1.0)


class CompileTest(Case):
    def test_options(self):
        f = jax.jit(lambda x: x + 1, compiler_options={"level": "O0"})
        self.assertEqual(f(1.0), 2)
        with self.assertRaisesRegex(Exception, "No such compile option: 'nonsense'"):
            jax.jit(lambda x: x + 1, compiler_options={"nonsense": "1"})(1.0)

    def test_what_is_told_of_a_program(self):
        compiled = jax.jit(lambda x: x @ x).lower(numbers(8, 8)).compile()
        self.assertGreaterEqual(compiled.cost_analysis()["flops"], 2 * 8**3)
        self.assertEqual(compiled.memory_analysis().output_size_in_bytes, 256)
        self.assertIn("dot", compiled.as_text())

    def test_ahead_of_time(self):
        from jax.experimental import serialize_executable
        compiled = jax.jit(lambda x: x + 1).lower(numbers(3)).compile()
        again = serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))
        np.testing.assert_array_equal(again(numbers(3)), numbers(3) + 1)

    def test_the_cache_of_programs(self):
        program = textwrap.dedent("""
            import jax, jax.numpy as jnp
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
            jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
            hits = []
            jax.monitoring.register_event_listener(lambda e, **_: hits.append(e))
            print(jax.jit(lambda x: jnp.sin(x) + 1)(0.0))
            print(sum(e == "/jax/compilation_cache/cache_hits" for e in hits))
            """)
        with tempfile.TemporaryDirectory() as folder:
            environment = dict(os.environ, JAX_COMPILATION_CACHE_DIR=folder)
            texts = [subprocess.run([sys.executable, "-c", program], env=environment, check=True,
                                    capture_output=True, text=True).stdout.split()
                     for _ in range(2)]
        self.assertEqual([t[0] for t in texts], ["1.0", "1.0"])
        self.assertEqual(texts[0][1], "0")
        self.assertGreater(int(texts[1][1]), 0)


class PluginTest(unittest.TestCase):
    def test_without_the_library_jax_works(self):
        environment = dict(os.environ, HEDDLE_PJRT_LIBRARY="/nowhere.so", JAX_PLATFORMS="")
        done = subprocess.run([sys.executable, "-c", "import jax; print(jax.devices()[0].platform)"],
                              env=environment, capture_output=True, text=True, check=True)
        self.assertNotIn("heddle", done.stdout + done.stderr)

    def test_an_unknown_option_is_named(self):
        environment = dict(os.environ, HEDDLE_JAX_OPTIONS="leval=O1")
        done = subprocess.run([sys.executable, "-c", "import jax; jax.devices('heddle')"],
                              env=environment, capture_output=True, text=True, check=False)
        self.assertIn("No such compile option: 'leval'", done.stderr)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main()
