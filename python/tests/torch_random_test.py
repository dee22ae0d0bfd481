"""Random numbers of torch.compile(…, backend="heddle"): those of eager PyTorch under the same seed."""
import sys
import unittest
import warnings

try:
    import torch
    from torch import nn
except ImportError:
    print("torch is not installed")
    sys.exit(77)

import heddle.torch
from heddle.torch import explanation

F = nn.functional


class RandomTest(unittest.TestCase):
    def setUp(self):
        self.enterContext(warnings.catch_warnings())
        warnings.simplefilter("error", UserWarning)  # that something runs in PyTorch is one
        self.records = explanation._collecting.records = []

    def same(self, function, *args, dynamic=False, drawn=1):
        """Compiled and eager: results, and the generator's state after them."""
        torch._dynamo.reset()
        self.records.clear()
        one = torch.compile(function, backend="heddle", fullgraph=True, dynamic=dynamic,
                            options={"threads": 1, "level": "O1"})
        for seed in range(3):
            outcomes = []
            for run in (one, function):
                torch.manual_seed(seed)
                outcomes.append((run(*args), torch.get_rng_state()))
            (got, state), (wanted, wanted_state) = outcomes
            torch.testing.assert_close(got, wanted)
            self.assertTrue(torch.equal(state, wanted_state))
        self.assertEqual(sum(self.records[0].drawn.values()), drawn)

    def test_dropout(self):
        x = torch.randn(20, 30)
        for one in (x, x.t(), x[:, ::2], x.bfloat16()):
            self.same(lambda x: F.dropout(x, 0.3) + 1, one)
        self.same(lambda x: F.dropout(F.dropout(x, 0.3).exp(), 0.7), x, drawn=2)
        for p in (0.0, 1.0):
            self.same(lambda x: F.dropout(x, p) + 1, x, drawn=0)
        self.same(lambda x: F.dropout(x, 0.3, False) + 1, x, drawn=0)
        self.same(lambda x: F.dropout2d(x, 0.3), x.view(1, 20, 5, 6))

    def test_whatever_is_drawn(self):
        x = torch.randn(4, 6)
        for function in (
                lambda x: x + torch.rand(4, 6), lambda x: torch.randn_like(x),
                lambda x: x[torch.randperm(4)], lambda x: torch.randint(2, 9, (40,)),
                lambda x: x.clone().uniform_(2, 3), lambda x: x.clone().exponential_(2),
                lambda x: x.clone().normal_(2, 3), lambda x: x.clone().log_normal_(),
                lambda x: x.clone().cauchy_(), lambda x: x.clone().geometric_(0.3)):
            self.same(function, x)
            self.same(function, x.t().contiguous().t())

    def test_by_values_that_are_computed(self):
        x, p = torch.randn(9, 20), torch.rand(9, 20)
        for function in (
                lambda x, p: torch.bernoulli(p * p), lambda x, p: torch.bernoulli(p.double()),
                lambda x, p: torch.bernoulli(p.t()), lambda x, p: x.clone().bernoulli_(p),
                lambda x, p: torch.normal(x + 1, p), lambda x, p: torch.normal(x, 2.0),
                lambda x, p: torch.normal(2.0, p), lambda x, p: torch.normal(x[0], p.double()),
                lambda x, p: torch.multinomial(p * 2, 5), lambda x, p: torch.multinomial(p, 1),
                lambda x, p: torch.multinomial(p, 30, replacement=True),
                lambda x, p: torch.multinomial(p[0], 7, replacement=True)):
            self.same(function, x, p)

    def test_sizes(self):
        model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 4))
        compiled = torch.compile(model, backend="heddle", dynamic=True)
        for n in range(3, 8):
            x = torch.randn(n, 8, requires_grad=True)
            results = []
            for run in (compiled, model):
                torch.manual_seed(n)
                y = run(x)
                results.append((y, *torch.autograd.grad(y.square().sum(), x)))
            torch.testing.assert_close(*results)
        self.assertEqual([record.kind for record in self.records], ["forward", "backward"])

    def test_what_has_to_wait(self):
        # How often rrelu draws is known when it has run; so what comes after is drawn after it.
        def function(x):
            return torch.rand(3) + F.rrelu(x, training=True)[0, :3] * torch.rand(3)
        warnings.simplefilter("ignore")
        self.same(function, torch.randn(4, 6))
        self.assertEqual(list(self.records[0].eager),
                         ["aten.rrelu_with_noise_functional.default", "aten.rand.default"])

    def test_told(self):
        told = heddle.torch.explain(nn.Dropout(0.5), torch.ones(4))
        self.assertEqual(told.graphs[0].eager, {})
        self.assertIn("drawn by PyTorch's generator ahead: aten.bernoulli.p, 1", str(told))


if __name__ == "__main__":
    unittest.main()
