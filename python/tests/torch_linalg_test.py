"""Linear algebra and results of unknown extent through torch.compile(…, backend="heddle")."""
import sys
import unittest
import warnings

try:
    import torch
except ImportError:
    print("torch is not installed")
    sys.exit(77)

import heddle.torch  # noqa: F401 registers the backend
from heddle.torch import explanation

L = torch.linalg


def compiled(function):
    torch._dynamo.reset()
    return torch.compile(function, backend="heddle", fullgraph=True, dynamic=False,
                         options={"threads": 1, "level": "O1"})


class Base(unittest.TestCase):
    def setUp(self):
        self.enterContext(warnings.catch_warnings())
        warnings.simplefilter("error", UserWarning)  # that something runs in PyTorch is one
        self.records = explanation._collecting.records = []
        torch.manual_seed(0)

    def check(self, function, *args, rtol=1e-3, atol=1e-4):
        got = compiled(function)(*args)
        torch.testing.assert_close(got, function(*args), rtol=rtol, atol=atol,
                                   equal_nan=True)
        return got


class FactorTest(Base):
    def setUp(self):
        super().setUp()
        self.x = torch.randn(3, 7, 7) + torch.eye(7)
        self.definite = self.x @ self.x.mT + torch.eye(7)

    def test_lu(self):
        x, b = self.x, torch.randn(3, 7, 2)
        for function in (L.inv, L.det, L.slogdet, L.lu, L.lu_factor, lambda x: L.solve(x, b),
                         lambda x: L.solve(x, b.mT, left=False), lambda x: L.solve(x, b[..., 0]),
                         lambda x: L.solve(x[0], b[0, :, 0]), lambda x: L.matrix_power(x, -2),
                         lambda x: L.lu_factor(x[:, :5]), lambda x: L.lu(x[:, :, :4])):
            self.check(function, x)
        lu = L.lu_factor(x)
        for options in ({}, {"adjoint": True}, {"left": False}, {"left": False, "adjoint": True}):
            side = b if options.get("left", True) else b.mT
            self.check(lambda lu, p: L.lu_solve(lu, p, side, **options), *lu)

    def test_an_exchange_in_each_column(self):
        x = torch.flip(torch.eye(6), [0]) * torch.arange(1., 7)
        self.check(L.inv, x)
        self.check(L.lu_factor, x)

    def test_cholesky_and_triangles(self):
        b = torch.randn(3, 7, 2)
        for function in (L.cholesky, lambda x: L.cholesky(x, upper=True),
                         lambda x: torch.cholesky_solve(b, x), torch.cholesky_inverse,
                         lambda x: torch.cholesky_inverse(x, upper=True),
                         lambda x: L.solve_triangular(x, b, upper=True),
                         lambda x: L.solve_triangular(x, b.mT, upper=False, left=False)):
            self.check(function, self.definite)

    def test_qr(self):
        for x in (self.x, self.x[:, :4], self.x[:, :, :4]):
            for mode in ("reduced", "complete", "r"):
                self.check(lambda x: L.qr(x, mode), x)
            self.check(torch.geqrf, x)
        self.check(L.qr, torch.zeros(4, 3))
        q, tau = torch.geqrf(self.x)
        self.check(L.householder_product, q, tau)
        for options in ({}, {"left": False}, {"transpose": True}):
            self.check(lambda q, tau: torch.ormqr(q, tau, self.x, **options), q, tau)

    def test_singular_values(self):
        low = torch.randn(6, 2) @ torch.randn(2, 5)
        for x in (self.x, self.x[:, :4], self.x[:, :, :4], low, torch.zeros(3, 3), torch.ones(1, 1)):
            self.check(L.svdvals, x)
            self.check(L.pinv, x)
        self.check(L.matrix_rank, low)
        self.check(L.cond, self.x[0], rtol=1e-2)
        self.check(lambda x: L.matrix_norm(x, "nuc"), self.x)
        tiny = torch.randn(5, 5) * 1e-25  # whose squares are none in float
        torch.testing.assert_close(compiled(L.svdvals)(tiny) * 1e25, L.svdvals(tiny * 1e25))

    def test_eigenvalues(self):
        for x in (self.definite, self.x + self.x.mT, torch.diag(torch.tensor([2., -2., 0.]))):
            self.check(L.eigvalsh, x)
            self.check(lambda x: L.eigvalsh(x, UPLO="U"), x)
            self.check(lambda x: L.pinv(x, hermitian=True), x, rtol=1e-2)
        self.check(torch.matrix_exp, self.x)
        self.check(lambda x: L.ldl_factor(x)[0].tril(), self.x + self.x.mT)

    def test_polar_factor_of_a_matrix_without_full_rank(self):
        if not hasattr(L, "polar"):
            self.skipTest("an older PyTorch")
        for x in (self.x, torch.zeros(4, 3), torch.ones(4, 4)):
            u, h = compiled(L.polar)(x)
            torch.testing.assert_close(u @ h, x, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(u.mT @ u, torch.eye(x.shape[-1]).expand_as(u.mT @ u))

    def test_failures_are_raised(self):
        singular = torch.ones(3, 3)
        for function, x, message in (
                (L.inv, singular, "singular"), (lambda x: L.solve(x, x), singular, "singular"),
                (L.cholesky, torch.diag(torch.tensor([1., 1., -1., 1.])), "minor of order 3")):
            run = compiled(function)
            run(torch.eye(len(x)))
            with self.assertRaisesRegex(L.LinAlgError, message):
                run(x)
            torch.testing.assert_close(run(torch.eye(len(x))), function(torch.eye(len(x))))

    def test_gradients(self):
        b = torch.randn(3, 7, 2)
        for function in (L.inv, L.det, lambda x: L.solve(x, b), L.cholesky, L.slogdet,
                         lambda x: L.qr(x), torch.matrix_exp):
            grads = []
            for run in (compiled(function), function):
                x = (self.definite / 20 + torch.eye(7)).requires_grad_()
                leaves = torch.utils._pytree.tree_leaves(run(x))
                sum((one * one.detach().cos()).sum() for one in leaves
                    if one.requires_grad).backward()
                grads.append(x.grad)
            torch.testing.assert_close(*grads, rtol=2e-3, atol=1e-3)

    def test_what_stays_lapacks(self):
        warnings.simplefilter("ignore")
        for function, x in ((L.inv, torch.randn(150, 150)), (L.svd, torch.randn(4, 4)),
                            (L.eigh, self.definite), (L.svdvals, torch.randn(40, 40))):
            self.records.clear()
            self.check(function, x)
            self.assertEqual(len(self.records[0].eager), 1)


class ExtentTest(Base):
    def test_what_data_decides(self):
        x = torch.randn(4, 6).round()
        for one in (x, torch.zeros(3, 2), torch.zeros(0, 2)):
            self.check(torch.argwhere, one)
            self.check(lambda x: x.nonzero(as_tuple=True), one)
            self.check(lambda x: torch.masked_select(x * 2, x > 0), one)
            self.check(lambda x: x.unique(return_inverse=True, return_counts=True), one)
            self.check(lambda x: x.unique_consecutive(return_inverse=True, return_counts=True), one)
        for dim in (0, 1):
            self.check(lambda x: x.unique(dim=dim, return_inverse=True, return_counts=True), x % 2)
            self.check(lambda x: x.unique_consecutive(dim=dim, return_counts=True), x % 2)

    def test_what_reads_one(self):
        warnings.simplefilter("ignore")
        x = torch.randn(4, 6)
        with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
            self.check(lambda x: torch.masked_select(x + 1, x > 0).exp().sum(), x)

    def test_sizes(self):
        warnings.simplefilter("ignore")  # 300 elements run in PyTorch
        with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
            for function, sizes in ((L.inv, (3, 5, 12, 17)), (torch.argwhere, (3, 5, 12)),
                                    (lambda x: x.round().flatten().unique(), (3, 8, 18))):
                torch._dynamo.reset()
                run = torch.compile(function, backend="heddle", dynamic=True)
                for n in sizes:
                    x = torch.randn(n, n) + 3 * torch.eye(n)
                    torch.testing.assert_close(run(x), function(x), rtol=1e-3, atol=1e-4)

    def test_an_item(self):
        with torch._dynamo.config.patch(capture_scalar_outputs=True):
            self.assertEqual(compiled(lambda x: x.sum().item())(torch.ones(3)), 3)


class CountTest(Base):
    def test_histograms(self):
        x, weight = torch.randn(40), torch.rand(40)
        self.check(lambda x: torch.histc(x, 7), x)
        self.check(lambda x: torch.histc(x, 7, -1, 1), x)
        self.check(lambda x: torch.histogram(x, 5, range=(-1., 1.), weight=weight), x)
        self.check(lambda x: torch.histogram(x, 5, density=True), x)
        self.check(lambda x: torch.histogram(x, torch.tensor([-1., 0, 0.5, 2])), x)
        self.check(lambda x: torch.histogramdd(x.view(20, 2), [3, 4]), x)

    def test_others(self):
        x = torch.randn(5, 9).round()
        self.check(lambda x: x.mode(1), x)
        self.check(lambda x: x.mode(0)[0], x)
        self.check(torch.hash_tensor, x) if hasattr(torch, "hash_tensor") else None
        a, b = torch.rand(50) * 30, torch.rand(50) * 30
        self.check(torch.special.gammainc, a, b)
        self.check(torch.special.gammaincc, a, b)
        self.check(lambda x: torch.segment_reduce(x, "mean", lengths=torch.tensor([2, 0, 3])), x)

    def test_samples(self):
        F, x = torch.nn.functional, torch.randn(2, 3, 4, 5, 6)
        grid = torch.rand(2, 3, 2, 2, 3) * 2.4 - 1.2
        for padding in ("zeros", "border", "reflection"):
            self.check(lambda x, grid: F.grid_sample(x, grid, padding_mode=padding,
                                                     align_corners=False), x, grid)
        torch.manual_seed(1)
        got = compiled(lambda x: F.fractional_max_pool2d(x, 2, (3, 3), return_indices=True))(x[0])
        torch.manual_seed(1)
        torch.testing.assert_close(
            got, F.fractional_max_pool2d(x[0], 2, (3, 3), return_indices=True))
        for size in ((2, 3), (9, 8)):
            self.check(lambda x: F.interpolate(x, size, mode="bilinear", antialias=True), x[0])


if __name__ == "__main__":
    unittest.main()
