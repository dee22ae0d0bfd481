"""Pools, transforms, linear algebra and functions of mathematics."""
import math

from .lower import Unsupported, is_float, lowest
from .ops_products import _each, _window
from .ops_reductions import first_place, mean_of
from .table import ROWS, row, type_of


# ---- pools ----

def _ceil_more(extents, out, sizes, strides, pads, dilations):
    """How far windows reach behind the padding, of each dimension (ceil_mode)."""
    return [max(0, (o - 1) * s + (k - 1) * d + 1 - n - 2 * p)
            for n, o, k, s, p, d in zip(extents, out, sizes, strides, pads, dilations)]


def _reduce_window(g, x, op, start, sizes, strides, pads, dilations, out):
    outer = x.rank - len(sizes)
    one = [1] * outer
    window = _window([*one, *sizes], [*one, *strides], [(0, 0)] * outer + list(pads),
                     [1] * x.rank, [*one, *dilations])
    return g.add("reduce-window", x.type, out, [x, g.scalar(start, x.type)],
                 f"{window}, to_apply={g.combiner(op, x.type)}")


def _avg_pool(count):
    def lower(g, r, x, size, stride=(), padding=0, ceil=False, include_pad=True, divisor=None):
        if not is_float(x.type):
            raise Unsupported(f"a pool of {x.type}")
        size, padding = _each(size, count), _each(padding or [0], count)
        stride = _each(stride or size, count)
        space, out = x.shape[-count:], r.shape[-count:]
        ones = [1] * count
        more = _ceil_more(space, out, size, stride, padding, ones)
        # Rows that no window reaches are cut by a negative padding.
        pads = [(p, p + m) for p, m in zip(padding, more)]
        total = _reduce_window(g, x, "add", 0, size, stride, pads, ones, r.shape)
        if divisor is not None:
            return g.div(total, divisor)
        if include_pad and not any(more):
            return g.div(total, math.prod(size))
        counts = _counts(space, out, size, stride, padding, include_pad)
        lines = None
        for d, values in enumerate(counts):
            line = g.broadcast(g.array(values, [len(values)], x.type), out, [d])
            lines = line if lines is None else g.mul(lines, line)
        return g.div(total, g.broadcast(lines, r.shape))
    return lower


def _counts(space, out, size, stride, padding, include_pad):
    result = []
    for n, o, k, s, p in zip(space, out, size, stride, padding):
        low, high = (-p, n + p) if include_pad else (0, n)
        result.append([min(i * s - p + k, high) - max(i * s - p, low) for i in range(o)])
    return result


ROWS["avg_pool2d"], ROWS["avg_pool3d"] = _avg_pool(2), _avg_pool(3)
ROWS["avg_pool1d"] = _avg_pool(1)


def windows(g, x, sizes, strides, pads, more, dilations, out, fill):
    """[..., out..., elements of a window], by slices of a padded x."""
    count = len(sizes)
    outer = x.rank - count
    low = [0] * outer + list(pads)
    high = [0] * outer + [p + m for p, m in zip(pads, more)]
    x = g.pad(x, fill, low, high)
    pieces = []
    for number in range(math.prod(sizes)):
        starts, rest = [], number
        for k in reversed(sizes):
            starts.insert(0, rest % k)
            rest //= k
        starts = [0] * outer + [i * d for i, d in zip(starts, dilations)]
        ends = list(x.shape[:outer]) + [
            s + (o - 1) * t + 1 for s, o, t in zip(starts[outer:], out, strides)]
        piece = g.slice(x, starts, ends, [1] * outer + list(strides))
        pieces.append(g.reshape(piece, [*piece.shape, 1]))
    return g.concat(pieces, x.rank)


def _max_pool(count):
    def lower(g, r, x, size, stride=(), padding=0, dilation=1, ceil=False):
        size, padding = _each(size, count), _each(padding or [0], count)
        stride, dilation = _each(stride or size, count), _each(dilation or [1], count)
        space, out = x.shape[-count:], r[0].shape[-count:]
        if math.prod(size) > 256:
            raise Unsupported("positions of maxima in large windows")
        more = _ceil_more(space, out, size, stride, padding, dilation)
        pads = [(p, p + m) for p, m in zip(padding, more)]
        value = _reduce_window(g, x, "maximum", lowest(x.type), size, stride, pads, dilation,
                               r[0].shape)
        each = windows(g, x, size, stride, padding, more, dilation, out, lowest(x.type))
        place = g.reshape(first_place(g, each, each.rank - 1, False)[1], r[1].shape)
        # The number in the window as a position in the image.
        flat, rest = g.scalar(0, "s64"), place
        parts = []
        for k in reversed(size):
            parts.insert(0, g.binary("remainder", rest, k))
            rest = g.div(rest, k)
        outer = x.rank - count
        for d in range(count):
            at = g.mul(g.iota(place.shape, outer + d), stride[d])
            at = g.add_(g.sub(at, padding[d]), g.mul(parts[d], dilation[d]))
            flat = g.add_(g.mul(flat, space[d]), at)
        return [value, flat]
    return lower


ROWS["max_pool2d_with_indices"] = _max_pool(2)
ROWS["max_pool3d_with_indices"] = _max_pool(3)


@row("max_pool2d_with_indices_backward")
def max_pool_backward(g, r, grad, x, size, stride, padding, dilation, ceil, at):
    from .ops_indexing import scatter_rows, vectors
    space = math.prod(x.shape[-2:])
    outer = x.count // space
    grad = g.reshape(grad, [outer, grad.count // outer])
    at = g.reshape(at, grad.shape)
    where = vectors(g, [g.iota(at.shape, 0), at])
    y = scatter_rows(g, g.full([outer, space], 0, x.type), where, grad, [0, 1], "add")
    return g.reshape(y, x.shape)


def _adaptive(count, pick):
    def lower(g, r, x, out):
        first = r[0] if isinstance(r, (list, tuple)) else r
        space, out = x.shape[-count:], first.shape[-count:]
        for step, (n, o) in enumerate(zip(space, out)):
            dim = x.rank - count + step
            x = pick(g, x, dim, [(i * n // o, -(-(i + 1) * n // o)) for i in range(o)])
        return x
    return lower


def _mean_pieces(g, x, dim, ranges):
    widths = {end - start for start, end in ranges}
    n, o = x.shape[dim], len(ranges)
    if len(widths) == 1 and n == o * next(iter(widths)):
        y = g.reshape(x, [*x.shape[:dim], o, n // o, *x.shape[dim + 1:]])
        return mean_of(g, y, [dim + 1])
    return g.concat([mean_of(g, g.slice_dim(x, dim, *ends), [dim], True) for ends in ranges], dim)


ROWS["_adaptive_avg_pool2d"] = _adaptive(2, _mean_pieces)
ROWS["_adaptive_avg_pool3d"] = _adaptive(3, _mean_pieces)


def _maximum_pieces(count):
    def lower(g, r, x, out):
        """Window by window: they need not be of one size."""
        space, to = x.shape[-count:], r[0].shape[-count:]
        if math.prod(to) > 256:
            raise Unsupported("so many windows of different sizes")
        outer = x.rank - count
        numbers = g.reshape(g.iota([math.prod(space)], 0), space)
        numbers = g.broadcast(numbers, x.shape)
        values, places = [], []
        for number in range(math.prod(to)):
            at, rest = [], number
            for o in reversed(to):
                at.insert(0, rest % o)
                rest //= o
            starts = [0] * outer + [i * n // o for i, n, o in zip(at, space, to)]
            ends = list(x.shape[:outer]) + [-(-(i + 1) * n // o)
                                            for i, n, o in zip(at, space, to)]
            shape = [*x.shape[:outer], math.prod(e - s for s, e in zip(starts[outer:],
                                                                       ends[outer:]))]
            piece = g.reshape(g.slice(x, starts, ends), shape)
            names = g.reshape(g.slice(numbers, starts, ends), shape)
            best, at = first_place(g, piece, outer, False)
            values.append(best)
            hit = g.compare("EQ", g.iota(shape, outer), at)
            places.append(g.sum(g.select(hit, names, g.scalar(0, "s64")), [outer], True))
        return [g.concat(values, outer), g.concat(places, outer)]
    return lower


ROWS["adaptive_max_pool2d"], ROWS["adaptive_max_pool3d"] = _maximum_pieces(2), _maximum_pieces(3)


def _avg_pool_backward(count):
    def lower(g, r, grad, x, size, stride, padding, ceil, include_pad, divisor=None):
        size, padding = _each(size, count), _each(padding or [0], count)
        stride = _each(stride or size, count)
        space, out = x.shape[-count:], grad.shape[-count:]
        if divisor is not None:
            grad = g.div(grad, divisor)
        else:
            counts = _counts(space, out, size, stride, padding, include_pad)
            for d, values in enumerate(counts):
                line = g.array(values, [len(values)], x.type)
                grad = g.div(grad, g.broadcast(line, grad.shape, [x.rank - count + d]))
        outer = x.rank - count
        low = [0] * outer + [k - 1 - p for k, p in zip(size, padding)]
        high = [0] * outer + [n + p - 1 - (o - 1) * s for n, p, o, s in zip(
            space, padding, out, stride)]
        wide = g.pad(grad, 0, low, high, [0] * outer + [s - 1 for s in stride])
        return _reduce_window(g, wide, "add", 0, size, [1] * count, [(0, 0)] * count, [1] * count,
                              x.shape)
    return lower


ROWS["avg_pool2d_backward"], ROWS["avg_pool3d_backward"] = (_avg_pool_backward(2),
                                                            _avg_pool_backward(3))


def _adaptive_backward(count):
    def lower(g, r, grad, x):
        for step in range(count):
            dim = x.rank - count + step
            n, o = x.shape[dim], grad.shape[dim]
            share = [0.0] * (o * n)
            for i in range(o):
                start, end = i * n // o, -(-(i + 1) * n // o)
                for k in range(start, end):
                    share[i * n + k] = 1 / (end - start)
            grad = g.dot(grad, g.array(share, [o, n], grad.type), ([dim], [0]))
            order = list(range(grad.rank - 1))
            grad = g.transpose(grad, [*order[:dim], grad.rank - 1, *order[dim:]])
        return grad
    return lower


ROWS["_adaptive_avg_pool2d_backward"] = _adaptive_backward(2)
ROWS["_adaptive_avg_pool3d_backward"] = _adaptive_backward(3)


# ---- transforms ----

def _scaled(g, x, normalization, count):
    factor = {0: None, 1: 1 / math.sqrt(count), 2: 1 / count}[normalization]
    if factor is None:
        return x
    part = {"c64": "f32", "c128": "f64"}.get(x.type, x.type)
    return g.mul(x, g.convert(g.scalar(factor, part), x.type))


def _fft_last(g, x, kind, dim, length, shape, type):
    """Along one dimension, which is brought to the end and back."""
    order = [d for d in range(x.rank) if d != dim] + [dim]
    back = [order.index(d) for d in range(x.rank)]
    x = g.transpose(x, order)
    shape = [shape[d] for d in order]
    y = g.add("fft", type, shape, [x], f"fft_type={kind}, fft_length={{{length}}}")
    return g.transpose(y, back)


@row("_fft_c2c")
def fft_c2c(g, r, x, dims, normalization, forward):
    for dim in dims:
        x = _fft_last(g, x, "FFT" if forward else "IFFT", dim % x.rank, x.shape[dim], x.shape,
                      x.type)
    count = math.prod(x.shape[d] for d in dims)
    if not forward:  # HLO's inverse divides already
        x = _times(g, x, count)
    return _scaled(g, x, normalization, count)


def _times(g, x, factor):
    part = {"c64": "f32", "c128": "f64"}.get(x.type, x.type)
    return g.mul(x, g.convert(g.scalar(factor, part), x.type))


@row("_fft_r2c")
def fft_r2c(g, r, x, dims, normalization, onesided):
    if not onesided:
        type = type_of(r)
        return fft_c2c(g, r, g.convert(x, type), dims, normalization, True)
    last = dims[-1] % x.rank
    count = math.prod(x.shape[d] for d in dims)
    y = _fft_last(g, x, "RFFT", last, x.shape[last],
                  [n // 2 + 1 if d == last else n for d, n in enumerate(x.shape)], type_of(r))
    for dim in dims[:-1]:
        y = _fft_last(g, y, "FFT", dim % x.rank, y.shape[dim], y.shape, y.type)
    return _scaled(g, y, normalization, count)


@row("_fft_c2r")
def fft_c2r(g, r, x, dims, normalization, size):
    count = math.prod(r.shape[d] for d in dims)
    for dim in dims[:-1]:
        x = _fft_last(g, x, "IFFT", dim % x.rank, x.shape[dim], x.shape, x.type)
    last = dims[-1] % x.rank
    x = g.slice_dim(x, last, 0, size // 2 + 1)
    y = _fft_last(g, x, "IRFFT", last, size, list(r.shape), type_of(r))
    return _scaled(g, _times(g, y, count), normalization, count)


# ---- linear algebra ----

def _lower_part(g, x):
    from .ops_movement import _banded
    return _banded("LE")(g, None, x)


@row("linalg_cholesky_ex")
def cholesky(g, r, x, upper=False, check=False):
    if check or not is_float(x.type):
        raise Unsupported("a check while it runs")
    swap = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    if upper:
        x = g.transpose(x, swap)
    y = _lower_part(g, g.add("cholesky", x.type, x.shape, [x], "lower=true"))
    bad = g.reduce("or", g.is_nan(y), [x.rank - 2, x.rank - 1], False)
    return [g.transpose(y, swap) if upper else y, g.convert(bad, "s32")]


def solve(g, a, b, lower, unit=False, transposed=False, left=True):
    way = "TRANSPOSE" if transposed else "NO_TRANSPOSE"
    flags = ", ".join(f"{name}={str(bool(value)).lower()}" for name, value in (
        ("left_side", left), ("lower", lower), ("unit_diagonal", unit)))
    return g.add("triangular-solve", b.type, b.shape, [a, b], f"{flags}, transpose_a={way}")


def _batched(g, x, batch):
    return g.broadcast(x, [*batch, *x.shape[-2:]])


@row("linalg_solve_triangular")
def solve_triangular(g, r, a, b, upper, left=True, unitriangular=False):
    if 0 in r.shape or not is_float(b.type):
        raise Unsupported("an empty or complex system")
    batch = r.shape[:-2]
    return solve(g, _batched(g, a, batch), _batched(g, b, batch), not upper, unitriangular,
                 left=left)


@row("triangular_solve")
def triangular_solve(g, r, b, a, upper=True, transpose=False, unitriangular=False):
    if 0 in r[0].shape or not is_float(b.type):
        raise Unsupported("an empty or complex system")
    batch = r[0].shape[:-2]
    return [solve(g, _batched(g, a, batch), _batched(g, b, batch), not upper, unitriangular,
                  transpose), g.broadcast(a, r[1].shape)]


@row("cholesky_solve")
def cholesky_solve(g, r, b, factor, upper=False):
    if 0 in r.shape or not is_float(b.type):
        raise Unsupported("an empty or complex system")
    batch = r.shape[:-2]
    factor, b = _batched(g, factor, batch), _batched(g, b, batch)
    y = solve(g, factor, b, not upper, transposed=upper)
    return solve(g, factor, y, not upper, transposed=not upper)


@row("cholesky_inverse")
def cholesky_inverse(g, r, factor, upper=False):
    rows, columns = (g.iota(factor.shape[-2:], d, "s32") for d in (0, 1))
    unit = g.convert(g.compare("EQ", rows, columns), factor.type)
    return cholesky_solve(g, r, unit, factor, upper)


@row("_trilinear")
def trilinear(g, r, a, b, c, expand1, expand2, expand3, sumdim, unroll=1):
    rank = a.rank + len(expand1)
    total = None
    for x, more in ((a, expand1), (b, expand2), (c, expand3)):
        shape, at = [], iter(x.shape)
        for d in range(rank):
            shape.append(1 if d in more else next(at))
        x = g.reshape(x, shape)
        total = x if total is None else g.mul(total, x)
    return g.sum(total, sumdim)


@row("_pdist_forward")
def pdist(g, r, x, p=2.0):
    n = x.shape[0]
    if p != 2 or n < 2 or n > 64:
        raise Unsupported(f"pairs of {n} rows, norm {p}")
    from .ops_indexing import gather_rows
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    first, second = (gather_rows(g, x, g.array([pair[k] for pair in pairs], [len(pairs), 1],
                                               "s64"), [0]) for k in (0, 1))
    away = g.sub(first, second)
    return g.unary("sqrt", g.sum(g.mul(away, away), [1]))


@row("frexp")
def frexp(g, r, x):
    if x.type != "f32":
        raise Unsupported(f"the parts of {x.type}")
    tiny = g.compare("LT", g.unary("abs", x), 2.0 ** -126)
    scaled = g.bitcast(g.select(tiny, g.mul(x, 2.0 ** 24), x), "s32")
    exponent = g.both(g.binary("shift-right-logical", scaled, 23), 255)
    mantissa = g.bitcast(g.either(g.both(scaled, -0x7F800001), 126 << 23), "f32")
    exponent = g.sub(exponent, g.select(tiny, g.scalar(126 + 24, "s32"), g.scalar(126, "s32")))
    plain = g.both(g.compare("NE", x, 0), g.unary("is-finite", x, "pred"))
    return [g.select(plain, mantissa, x), g.select(plain, exponent, g.scalar(0, "s32"))]
