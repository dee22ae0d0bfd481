"""LU factorisations of small matrices and what follows from them."""
from .lower import Unsupported, is_float
from .ops_indexing import gather
from .ops_linalg import solve
from .ops_movement import tril, triu
from .ops_reductions import first_place
from .table import row

# Larger ones are LAPACK's.
_MOST = 64


def decompose(g, x):
    """(LU, pivots from 0, the order of rows, their sign) with partial pivoting, column by column."""
    *batch, m, n = x.shape
    if not is_float(x.type) or max(m, n) > _MOST:
        raise Unsupported("a factorisation that is LAPACK's")
    rank = x.rank
    rows, columns = g.iota(x.shape, rank - 2, "s32"), g.iota(x.shape, rank - 1, "s32")
    line = g.iota([*batch, m], rank - 2, "s64")
    order, sign, pivots = line, g.full([*batch], 1, x.type), []
    if 0 in x.shape:
        return x, g.full([*batch, min(m, n)], 0, "s64"), order, sign
    for k in range(min(m, n)):
        column = g.reshape(g.slice_dim(x, rank - 1, k, k + 1), [*batch, m])
        size = g.select(g.compare("GE", line, k), g.unary("abs", column), g.scalar(-1, x.type))
        at = first_place(g, size, rank - 2, False)[1]            # [..., 1]
        pivots.append(at)
        from_row, order = _exchanged(g, line, order, k, at)
        wide = g.broadcast(from_row, x.shape, list(range(rank - 1)))
        x = gather(g, None, x, rank - 2, wide)
        same = g.reshape(g.compare("EQ", at, k), [*batch])
        sign = g.select(same, sign, g.neg(sign))
        pivot = g.slice_dim(g.slice_dim(x, rank - 2, k, k + 1), rank - 1, k, k + 1)
        column = g.slice_dim(x, rank - 1, k, k + 1)
        pivot = g.select(g.compare("EQ", pivot, 0), g.scalar(1, x.type), pivot)
        below = g.compare("GT", g.slice_dim(rows, rank - 1, k, k + 1), k)
        column = g.select(below, g.div(column, pivot), column)
        row_ = g.slice_dim(x, rank - 2, k, k + 1)
        rest = g.both(g.compare("GT", rows, k), g.compare("GT", columns, k))
        update = g.sub(x, g.mul(column, row_))
        x = g.select(rest, update, x)
        x = g.select(g.compare("EQ", columns, k), column, x)
    return x, g.concat(pivots, rank - 2), order, sign


def _exchanged(g, line, order, k, at):
    """(where each row comes from, the order) when rows k and at [..., 1] change places."""
    here, there = g.compare("EQ", line, k), g.compare("EQ", line, at)
    from_row = g.select(here, at, g.select(there, g.scalar(k, "s64"), line))
    return from_row, gather(g, None, order, line.rank - 1, from_row)


def order_of_rows(g, pivots, rows):
    """What the pivots, from 1, make of rows that stood in order."""
    if rows > _MOST:
        raise Unsupported("a factorisation that is LAPACK's")
    shape = [*pivots.shape[:-1], rows]
    line = order = g.iota(shape, len(shape) - 1, "s64")
    for k in range(pivots.shape[-1]):
        at = g.sub(g.convert(g.slice_dim(pivots, pivots.rank - 1, k, k + 1), "s64"), 1)
        order = _exchanged(g, line, order, k, at)[1]
    return order


def _unit(g, shape):
    rows, columns = (g.iota(shape[-2:], d, "s32") for d in (0, 1))
    return g.compare("EQ", rows, columns)


def parts_of(g, lu):
    """(L, U) of a factorisation in one matrix."""
    *_, m, n = lu.shape
    k, rank = min(m, n), lu.rank
    left = tril(g, None, g.slice_dim(lu, rank - 1, 0, k), -1)
    left = g.add_(left, g.convert(_unit(g, left.shape), lu.type))
    upper = triu(g, None, g.slice_dim(lu, rank - 2, 0, k))
    return left, upper


def permutation(g, order, type):
    """P of A = P L U."""
    n = order.shape[-1]
    shape = [*order.shape, n]
    columns = g.broadcast(g.reshape(order, [*order.shape[:-1], 1, n]), shape)
    rows = g.iota(shape, len(shape) - 2, "s64")
    return g.convert(g.compare("EQ", rows, columns), type)


@row("linalg_lu")
def lu_(g, r, x, pivot=True):
    if not pivot:
        raise Unsupported("a factorisation without pivots")
    lu, _, order, _ = decompose(g, x)
    return [permutation(g, order, x.type), *parts_of(g, lu)]


@row("lu_unpack")
def lu_unpack(g, r, lu, pivots, with_data=True, with_pivots=True):
    if not is_float(lu.type):
        raise Unsupported("a complex factorisation")
    empty = g.full([0], 0, lu.type)
    left, upper = parts_of(g, lu) if with_data else (empty, empty)
    order = order_of_rows(g, pivots, lu.shape[-2]) if with_pivots else None
    return [permutation(g, order, lu.type) if with_pivots else empty, left, upper]


@row("linalg_lu_solve")
def lu_solve(g, r, lu, pivots, b, left=True, adjoint=False):
    if not left or adjoint or not is_float(b.type):
        raise Unsupported("a system that is LAPACK's")
    batch = list(r.shape[:-2])
    order = order_of_rows(g, pivots, lu.shape[-1])
    order = g.broadcast(order, [*batch, order.shape[-1]])
    return _solved(g, g.broadcast(lu, [*batch, *lu.shape[-2:]]), order, g.broadcast(b, r.shape))


def _diagonal(g, lu):
    value = g.sum(g.select(_unit(g, lu.shape), lu, g.scalar(0, lu.type)), [lu.rank - 1])
    return g.slice_dim(value, value.rank - 1, 0, min(lu.shape[-2:]))


def _singular(g, lu):
    """The number of the first zero on the diagonal, from 1; 0: there is none."""
    diagonal = _diagonal(g, lu)
    n = diagonal.shape[-1]
    if diagonal.count == 0:
        return g.full(diagonal.shape[:-1], 0, "s32")
    at = g.select(g.compare("EQ", diagonal, 0), g.iota(diagonal.shape, diagonal.rank - 1, "s32"),
                  g.scalar(n, "s32"))
    first = g.least(at, [diagonal.rank - 1])
    return g.select(g.compare("EQ", first, n), g.scalar(0, "s32"), g.add_(first, 1))


def _solved(g, lu, order, b):
    """x of A x = b, for b [..., n, k]."""
    wide = g.broadcast(order, b.shape, list(range(b.rank - 1)))
    y = solve(g, lu, gather(g, None, b, b.rank - 2, wide), lower=True, unit=True)
    return solve(g, lu, y, lower=False)


@row("linalg_lu_factor_ex")
def lu_factor(g, r, x, pivot=True, check=False):
    if not pivot:
        raise Unsupported("a factorisation that is LAPACK's")
    lu, pivots, _, _ = decompose(g, x)
    return [lu, g.add_(g.convert(pivots, "s32"), 1), _singular(g, lu)]


@row("linalg_inv_ex")
def inverse(g, r, x, check=False):
    lu, _, order, _ = decompose(g, x)
    unit = g.convert(_unit(g, x.shape), x.type)
    return [_solved(g, lu, order, g.broadcast(unit, x.shape)), _singular(g, lu)]


@row("_linalg_det")
def det(g, r, x):
    lu, pivots, _, sign = decompose(g, x)
    value = g.mul(sign, g.reduce("multiply", _diagonal(g, lu), [x.rank - 2], 1))
    return [value, lu, g.add_(g.convert(pivots, "s32"), 1)]


@row("_linalg_slogdet")
def slogdet(g, r, x):
    lu, pivots, _, sign = decompose(g, x)
    diagonal = _diagonal(g, lu)
    last = [diagonal.rank - 1]
    signs = g.reduce("multiply", g.unary("sign", diagonal), last, 1)
    size = g.sum(g.unary("log", g.unary("abs", diagonal)), last)
    return [g.mul(sign, signs), size, lu, g.add_(g.convert(pivots, "s32"), 1)]


@row("_linalg_solve_ex")
def solve_ex(g, r, a, b, left=True, check=False):
    if not left:
        raise Unsupported("a system that is LAPACK's")
    lu, pivots, order, _ = decompose(g, a)
    shape = list(r[0].shape)
    if b.rank == 1 or b.rank == a.rank - 1 and b.shape == a.shape[:-1]:  # vectors
        shape.append(1)
        b = g.reshape(b, [*b.shape, 1])
    batch = shape[:-2]
    b = g.broadcast(b, shape)
    wide = g.broadcast(lu, [*batch, *lu.shape[-2:]])
    x = _solved(g, wide, g.broadcast(order, [*batch, order.shape[-1]]), b)
    return [x, lu, g.add_(g.convert(pivots, "s32"), 1), _singular(g, lu)]
