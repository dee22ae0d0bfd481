"""torch.compile(…, backend="heddle"), where torch is installed."""
import copy
import doctest
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import warnings
from unittest import mock

try:
    import torch
    from torch import nn
except ImportError:
    print("torch is not installed")
    sys.exit(77)

import heddle.torch
from heddle.torch import explanation
from heddle.torch.lower import Graph
from heddle.torch.partition import compile_graph


def compiled(function, **options):
    torch._dynamo.reset()
    return torch.compile(function, backend="heddle", fullgraph=True,
                         options={"threads": 1, "level": "O1", **options})


def mlp():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4),
                         nn.Softmax(-1))


def images():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, groups=2), nn.AdaptiveAvgPool2d(2),
                         nn.Flatten(), nn.Linear(32, 4))


class TorchTest(unittest.TestCase):
    def setUp(self):
        self.enterContext(warnings.catch_warnings())
        warnings.simplefilter("error", UserWarning)  # that something runs in PyTorch is one
        self.records = explanation._collecting.records = []

    def check(self, function, *args, **options):
        with torch.no_grad():
            torch.testing.assert_close(compiled(function, **options)(*args), function(*args),
                                       rtol=1e-4, atol=1e-5)

    def test_inference(self):
        x = torch.randn(3, 8)
        self.check(mlp().eval(), x)
        self.check(mlp().eval(), x, level="O2")
        self.check(images().eval(), torch.randn(2, 3, 17, 17))
        self.check(images().eval().to(memory_format=torch.channels_last),
                   torch.randn(2, 3, 17, 17).to(memory_format=torch.channels_last))

    def test_types(self):
        for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.uint8):
            x = (torch.arange(12).reshape(3, 4) % 5).to(dtype)
            got = compiled(lambda x: (x * 2 + 1, x > 3, x.sum(0), x.float().mean()))(x)
            wanted = (x * 2 + 1, x > 3, x.sum(0), x.float().mean())
            for a, b in zip(got, wanted):
                self.assertEqual(a.dtype, b.dtype)
                torch.testing.assert_close(a, b)

    def test_layouts_are_the_graphs(self):
        x = torch.randn(4, 5)
        y = compiled(lambda x: (x.t() * 2, x[:, ::2] + 1, x.exp().unsqueeze(0)))(x.t())
        self.assertEqual([one.stride() for one in y],
                         [one.stride() for one in ((x * 2), x.t()[:, ::2] + 1,
                                                   x.t().exp().unsqueeze(0))])
        torch.testing.assert_close(y[0], x * 2)

    def test_views_and_mutations(self):
        def function(x, y):
            x.add_(1)
            y[1:, 0] = x[:2, 1]
            return y.view(-1)[2:], x
        a, b = torch.randn(3, 4), torch.randn(3, 4)
        c, d = a.clone(), b.clone()
        got, wanted = compiled(function)(a, b), function(c, d)
        for one, other in zip((a, b, *got), (c, d, *wanted)):
            torch.testing.assert_close(one, other)
        self.assertEqual(got[1].data_ptr(), a.data_ptr())

    def test_training(self):
        for model, x in ((mlp(), torch.randn(3, 8)), (images(), torch.randn(2, 3, 17, 17))):
            other = copy.deepcopy(model)
            x = x.requires_grad_()
            compiled(model)(x).square().sum().backward()
            gradient, x.grad = x.grad, None
            other(x).square().sum().backward()
            torch.testing.assert_close(gradient, x.grad, rtol=1e-4, atol=1e-5)
            for a, b in zip(model.parameters(), other.parameters()):
                torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-5)
            for a, b in zip(model.buffers(), other.buffers()):
                torch.testing.assert_close(a, b)

    def test_attention_and_its_gradient(self):
        torch.manual_seed(0)
        mask = torch.randn(5, 5)
        for options in ({}, {"is_causal": True}, {"attn_mask": mask}):
            def function(q, k, v):
                return nn.functional.scaled_dot_product_attention(q, k, v, **options)
            q, k, v = (torch.randn(2, 3, 5, 8, requires_grad=True) for _ in range(3))
            out = compiled(function)(q, k, v)
            got = torch.autograd.grad(out.square().sum(), (q, k, v))
            wanted = torch.autograd.grad(function(q, k, v).square().sum(), (q, k, v))
            torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)

    def test_weights_are_constants_until_they_move(self):
        model = mlp().eval()
        function = compiled(model)
        x = torch.randn(3, 8)
        with torch.no_grad():
            for step in range(5):
                torch.testing.assert_close(function(x), model(x))
                model[0].weight.add_(0.5)
            torch.testing.assert_close(function(x), model(x))
        # Twice made again; then they are inputs, and nothing is compiled any more.
        self.assertEqual(len(self.records[0].parts), 3)

    def test_sizes(self):
        model = mlp().eval()
        function = torch.compile(model, backend="heddle", dynamic=True)
        with torch.no_grad():
            for n in range(2, 20):
                x = torch.randn(n, 8)
                torch.testing.assert_close(function(x), model(x))
        self.assertEqual(len(self.records), 1)

    def test_strides_count_memory(self):
        def overlapping(x):
            y = x.transpose(0, 1) * 2  # its memory is in the order of x
            return y.as_strided([3, 4], [2, 1]), y.as_strided([2, 2], [1, 5], 3)

        def part(x):
            return x[1:].as_strided([2, 2], [1, 1], 0) + 1
        x = torch.randn(4, 5)
        for function in (overlapping, part):
            with self.subTest(function=function.__name__), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                got = torch.compile(function, backend="heddle")(x)
                torch.testing.assert_close(got, function(x))

    def test_positions_out_of_range(self):
        embedding, x = torch.nn.Embedding(20, 8), torch.randn(5, 4)
        first = torch.compile(lambda i: embedding(i.view(-1)) * 2, backend="heddle")
        second = torch.compile(lambda x, i: x[:, i] + 1, backend="heddle")
        third = torch.compile(lambda x, i: torch.gather(x, 1, i), backend="heddle")
        for _ in range(2):
            self.assertEqual(first(torch.tensor([[3, 19]])).shape, (2, 8))
            torch.testing.assert_close(second(x, torch.tensor([1, -4])), x[:, [1, -4]] + 1)
            for wrong in (20, -1):
                with self.assertRaisesRegex(IndexError, f"index {wrong} .* 0 to 19"):
                    first(torch.tensor([[3, wrong]]))
            with self.assertRaisesRegex(IndexError, "index.Tensor: index -5 .* -4 to 3"):
                second(x, torch.tensor([1, -5]))
            with self.assertRaisesRegex(IndexError, "gather.default: index 4 "):
                third(x, torch.tensor([[4]]))

    def sessions(self):
        """Those that are made from now on."""
        made, plain = [], heddle.Session

        def session(*args, **kwargs):
            made.append(plain(*args, **kwargs))
            return made[-1]
        patch = mock.patch.object(heddle, "Session", session)
        patch.start()
        self.addCleanup(patch.stop)
        return made

    def test_sizes_of_a_mask_by_the_number_of_the_sequence(self):
        class Masked(torch.nn.Module):
            def forward(self, x):
                batch, length = x.shape[:2]
                there = (torch.arange(length) % 7 != 3).expand(batch, length)
                rows = torch.arange(batch)[:, None]
                mask = there[rows, torch.arange(length)[None, :]]  # as transformers' masks do
                scores = (x @ x.transpose(1, 2)).masked_fill(~mask[:, None, :], -1e9)
                return scores.softmax(-1) @ x
        made, model = self.sessions(), Masked()
        function = torch.compile(model, backend="heddle")
        with torch.no_grad():
            for batch in (2, 3, 4):
                for length in range(5, 45, 3):
                    x = torch.randn(batch, length, 16)
                    torch.testing.assert_close(function(x), model(x), rtol=1e-4, atol=1e-5)
        self.assertLessEqual(sum(one.info["compilations"] for one in made), 6)

    def test_rows_merged_in_both_orders(self):
        # Attention merges length * batch, its linear layers batch * length.
        layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0)
        other = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0)
        other.load_state_dict(layer.state_dict())
        made = self.sessions()
        function = torch.compile(layer, backend="heddle")
        for batch in (2, 3, 4):
            for length in range(5, 45, 6):
                x = torch.randn(batch, length, 16)
                y, wanted = function(x), other(x)
                torch.testing.assert_close(y, wanted, rtol=1e-4, atol=1e-5)
                y.square().sum().backward()
                wanted.square().sum().backward()
        for a, b in zip(layer.parameters(), other.parameters()):
            torch.testing.assert_close(a.grad, b.grad, rtol=1e-3, atol=1e-3)
        several = [one.info["compilations"] for one in made if len(one.inputs[0].shape) > 0]
        self.assertLess(sum(several), 7 * 3 * 2)  # not one for each size and direction

    def test_sizes_share_programs(self):
        made = self.sessions()
        for training in (False, True):
            with self.subTest(training=training):
                torch._dynamo.reset()
                model, other = mlp(), mlp()
                other.load_state_dict(model.state_dict())
                function = torch.compile(model, backend="heddle")
                made.clear()
                for batch in (2, 3, 4):
                    for length in range(5, 45, 3):
                        x = torch.randn(batch, length, 8)
                        with torch.set_grad_enabled(training):
                            y, wanted = function(x), other(x)
                        torch.testing.assert_close(y, wanted, rtol=1e-4, atol=1e-5)
                        if training:
                            y.square().sum().backward()
                            wanted.square().sum().backward()
                for a, b in zip(model.parameters(), other.parameters()):
                    if training:
                        torch.testing.assert_close(a.grad, b.grad, rtol=1e-3, atol=1e-3)
                if not training:
                    compilations = sum(one.info["compilations"] for one in made)
                    self.assertLessEqual(compilations, 6)

    def test_sizes_in_training(self):
        model, other = images(), images()
        function = torch.compile(model, backend="heddle", dynamic=True)
        for n in (15, 18, 21):
            x = torch.randn(2, 3, n, n + 2)
            function(x).sum().backward()
            other(x).sum().backward()
        for a, b in zip(model.parameters(), other.parameters()):
            torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-5)

    def test_products_of_groups(self):
        grouped = torch.ops.aten._grouped_mm
        torch.manual_seed(0)
        x, y = torch.randn(32, 16), torch.randn(32, 24)
        w = torch.randn(4, 16, 24)
        for ends in ([4, 4, 20, 32], [0, 0, 0, 0], [32, 32, 32, 32], [0, 5, 5, 17], [1, 2, 3, 4]):
            ends, rows = torch.tensor(ends, dtype=torch.int32), ends[-1]
            # PyTorch leaves rows after the last group as they are
            self.check(lambda x, w, ends: grouped(x, w, ends)[:rows], x, w, ends)
            self.check(lambda w, x, ends: grouped(w, x.t(), ends)[:, :rows],
                       w.transpose(1, 2).contiguous(), x, ends)
            self.check(lambda x, y, ends: grouped(x.t(), y, ends), x, y, ends)
            with torch.no_grad():
                rest = compiled(lambda x, w, ends: grouped(x, w, ends))(x, w, ends)[rows:]
            self.assertFalse(rest.any())
        self.check(lambda x, y: grouped(x, y), w, w.transpose(1, 2).contiguous())
        weights = [w.clone().requires_grad_() for _ in range(2)]
        ends = torch.tensor([7, 7, 30, 32], dtype=torch.int32)
        for weight, wrap in zip(weights, (compiled, lambda f: f)):
            wrap(lambda x, w, ends: (grouped(x, w, ends) ** 2).sum())(x, weight, ends).backward()
        torch.testing.assert_close(weights[0].grad, weights[1].grad, rtol=1e-4, atol=1e-3)

    def test_large_groups_that_may_change_are_pytorchs(self):
        w = torch.randn(4, 128, 640)
        x, ends = torch.randn(16, 128), torch.tensor([4, 4, 9, 16], dtype=torch.int32)
        grouped = torch.ops.aten._grouped_mm
        with self.assertWarnsRegex(UserWarning, "_grouped_mm.*may change from call to call"):
            got = compiled(lambda x, w, ends: grouped(x, w, ends) * 2)(x, w, ends)
        torch.testing.assert_close(got, grouped(x, w, ends) * 2)

        class Experts(nn.Module):
            def __init__(self):
                super().__init__()
                self.w = nn.Parameter(w.transpose(1, 2).contiguous())

            def forward(self, x, ends):
                return grouped(x, self.w.transpose(1, 2), ends) * 2
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("error")
            torch.testing.assert_close(compiled(Experts())(x, ends), got, rtol=1e-4, atol=1e-4)

    def test_products_of_groups_in_16_bits(self):
        x, w = torch.randn(20, 16).bfloat16(), torch.randn(3, 16, 8).bfloat16()
        ends = torch.tensor([9, 9, 20], dtype=torch.int32)
        with torch.no_grad():
            got = compiled(torch.ops.aten._grouped_mm)(x, w, ends)
        torch.testing.assert_close(got, torch.ops.aten._grouped_mm(x, w, ends))

    def test_ends_of_groups_out_of_range(self):
        """PyTorch reads other memory there; a program ends, with the groups inside the rows."""
        x, w = torch.randn(8, 4), torch.randn(2, 4, 4)
        with torch.no_grad():
            grouped = compiled(torch.ops.aten._grouped_mm)
            for ends in ([3, 2 ** 31 - 1], [-5, 8], [6, 2]):
                got = grouped(x, w, torch.tensor(ends, dtype=torch.int32))
                self.assertTrue(got.isfinite().all())
            torch.testing.assert_close(grouped(x, w, torch.tensor([3, 99], dtype=torch.int32)),
                                       torch.cat([x[:3] @ w[0], x[3:] @ w[1]]))

    def test_what_has_no_row_runs_in_pytorch(self):
        def function(x):
            return torch.poisson((x @ x.t()).abs() + 1).exp() * 2
        x = torch.randn(4, 4)
        torch.manual_seed(2)
        with self.assertWarnsRegex(UserWarning, r"aten.poisson.default \(1, File .*line"):
            got = compiled(function)(x)
        torch.manual_seed(2)
        torch.testing.assert_close(got, function(x))

    def test_views_of_arguments_stay_views(self):
        seen = []

        @torch.library.custom_op("heddle_tests::product", mutates_args=())
        def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            seen.append(b.data_ptr())
            return a @ b
        product.register_fake(lambda a, b: a.new_empty(a.shape[0], b.shape[1]))

        def function(x, w):
            turned = w[1].t()
            y = product((x + 1).exp(), turned)  # which PyTorch runs
            return product(y.tanh(), y.t()[:, :2]), turned * 2
        warnings.simplefilter("ignore")
        x, w = torch.randn(3, 8), torch.randn(2, 4, 8)
        for one, wanted in zip(compiled(function)(x, w), function(x, w)):
            torch.testing.assert_close(one, wanted)
        self.assertEqual(seen[0], w[1].data_ptr())
        told = heddle.torch.explain(function, x, w)
        self.assertEqual(list(told.graphs[0].eager), ["heddle_tests.product.default"])
        self.assertEqual(len(told.graphs[0].parts), 2)

    def test_explained(self):
        warnings.simplefilter("ignore")
        told = heddle.torch.explain(lambda x: torch.poisson(x + 1).exp(), torch.eye(3))
        self.assertEqual(len(told.graphs), 1)
        self.assertEqual(list(told.graphs[0].eager), ["aten.poisson.default"])
        self.assertEqual(len(told.graphs[0].parts), 2)
        self.assertRegex(str(told), r"1 graphs, 0 breaks\n(.*\n)*  PyTorch: aten.poisson")

    def test_the_entry_point(self):
        with tempfile.TemporaryDirectory() as folder:
            known = pathlib.Path(folder, "heddle-0.dist-info")
            known.mkdir()
            project = pathlib.Path(__file__).parents[2] / "pyproject.toml"
            named = re.search(r'torch_dynamo_backends\]\nheddle = "(.*)"', project.read_text())[1]
            (known / "entry_points.txt").write_text(
                f"[torch_dynamo_backends]\nheddle = {named}\n")
            (known / "METADATA").write_text("Metadata-Version: 2.1\nName: heddle\nVersion: 0\n")
            program = ("import torch; f = torch.compile(torch.cos, backend='heddle'); "
                       "print(f(torch.zeros(2)).tolist())")
            path = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
            done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                                  timeout=120, env={**os.environ, "PYTHONPATH": path})
        self.assertEqual(done.stdout, "[1.0, 1.0]\n", done.stderr)

    def test_options_are_named(self):
        for options, message in (({"thread": 1}, "no option 'thread'"), ({"level": "O9"}, "O9")):
            with self.assertRaisesRegex(Exception, message):
                torch.compile(mlp(), backend="heddle", options=options)(torch.randn(1, 8))

    def test_samples_of_operators(self):
        x = torch.randn(4, 6)
        at = torch.tensor([[0, 2], [3, 1]])
        for function in (
                lambda: torch.sort(x, dim=1, descending=True), lambda: torch.topk(x, 3),
                lambda: x.cumsum(1), lambda: x.median(1), lambda: x.var(0), lambda: x.argmax(1),
                lambda: torch.gather(x, 1, at), lambda: x[at], lambda: x[:, at[0]],
                lambda: x.index_add(0, at[0], x[:2]), lambda: torch.fft.rfft(x).abs(),
                lambda: x.scatter_reduce(1, at, x[:2, :2], "amax"), lambda: torch.special.i1(x),
                lambda: torch.lgamma(x), lambda: x // 0.3, lambda: x.remainder(-0.7),
                lambda: torch.special.chebyshev_polynomial_t(x, 4), lambda: x.unfold(1, 3, 2),
                lambda: torch.linalg.cholesky_ex(x @ x.t() + torch.eye(4))[0],
                lambda: nn.functional.conv_transpose2d(
                    x[None, None], x[None, None, :3, :3], stride=2, output_padding=1),
                lambda: nn.functional.avg_pool2d(x[None], 3, 2, 1, ceil_mode=True)):
            torch.testing.assert_close(compiled(function)(), function(), rtol=1e-4, atol=1e-5)


class LowerTest(unittest.TestCase):
    def test_text(self):
        g = Graph("sum")
        x, y = g.parameter("f32", (2, 3)), g.parameter("f32", (3,))
        z = g.sum(g.mul(x, y), [1])
        self.assertIs(g.mul(x, y), g.mul(x, y))  # once
        session = heddle.Session(g.text([z]).encode())
        got, = session.run(None, [torch.ones(2, 3).numpy(), torch.arange(3.).numpy()])
        self.assertEqual(got.tolist(), [3, 3])

    def test_a_graph_of_fx(self):
        gm = torch.fx.symbolic_trace(lambda x: torch.ops.aten.add.Tensor(x, 1.5))
        example = torch.zeros(2)
        for node, value in zip(gm.graph.nodes, (example, example)):
            node.meta["val"] = value
        got = compile_graph(gm, "inference", {})(torch.ones(2))
        self.assertEqual(got.tolist(), [2.5, 2.5])

    def test_docstrings(self):
        for name in ["backend", "explanation"]:
            result = doctest.testmod(sys.modules["heddle.torch." + name],
                                     extraglobs={"heddle": heddle, "torch": torch})
            self.assertEqual(0, result.failed, name)
            self.assertGreater(result.attempted, 1, name)


if __name__ == "__main__":
    unittest.main()
