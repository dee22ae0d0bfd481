"""Orthogonal polynomials whose degree is a value: a loop over the degrees."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .lower import Graph, Unsupported, Value
from .ops_elementwise import truncated
from .table import ROWS, Row, type_of

if TYPE_CHECKING:
    from .lower import Operand


def _degrees(g: Graph, n: Value, x: Value, first: Value, step: Callable[[str], list[str]]) -> Value:
    """step(lines, x, k, p, before): the lines and the name of the next."""
    shape = x.shape
    dims = ",".join(map(str, shape))
    tensor = f"f64[{dims}]"
    state = f"(f64[], f64[], {', '.join([tensor] * 5)})"
    names = ["k", "end", "n", "x", "before", "p", "result"]
    types = ["f64[]", "f64[]"] + [tensor] * 5
    unpack = [f"{name} = {type} get-tuple-element(a0), index={i}"
              for i, (name, type) in enumerate(zip(names, types))]

    def computation(lines: list[str], root: str) -> str:
        body = "\n  ".join([f"a0 = {state} parameter(0)", *lines, "ROOT " + root])
        return g.helpers.setdefault(body, f"f{len(g.helpers)}")
    more = computation(unpack[:2], "r = pred[] compare(k, end), direction=LT")
    lines = [*unpack, "one = f64[] constant(1)", "next = f64[] add(k, one)",
             f"kk = {tensor} broadcast(k), dimensions={{}}",
             f"new = {tensor} broadcast(next), dimensions={{}}"]
    lines += step(tensor)
    lines += [f"hit = pred[{dims}] compare(n, new), direction=EQ",
              f"kept = {tensor} select(hit, q, result)"]
    body = computation(lines, f"r = {state} tuple(next, end, n, x, p, q, kept)")
    zero, one = g.full(shape, 0, "f64"), g.full(shape, 1, "f64")
    result = g.select(g.compare("EQ", n, 0), one, g.select(g.compare("EQ", n, 1), first, zero))
    end = g.reduce("maximum", n, list(range(n.rank)), 0)
    start = [g.scalar(1, "f64"), end, n, x, one, first, result]
    whole = g.add_tuple("while", [(v.type, v.shape) for v in start],
                        [_tuple(g, start)], f"condition={more}, body={body}")
    return whole[6]


def _tuple(g: Graph, values: Sequence[Value]) -> Value:
    from .lower import Value, shape_text
    name = f"v{len(g.lines)}"
    shapes = ", ".join(shape_text(v.type, v.shape) for v in values)
    g.lines.append(f"{name} = ({shapes}) tuple({', '.join(v.name for v in values)})")
    return Value(name, "tuple", ())


def _constant(tensor: str, name: str, value: int) -> list[str]:
    return [f"{name}0 = f64[] constant({value})",
            f"{name} = {tensor} broadcast({name}0), dimensions={{}}"]


def _three_terms(slope: str, other: str, divided: bool = False,
                 weight: list[str] | None = None) -> Callable[[str], list[str]]:
    """q = (slope x p - other before), each a line of names; divided by k + 1."""
    def step(t: str) -> list[str]:
        lines = _constant(t, "two", 2) + _constant(t, "unit", 1)
        lines += [f"twok = {t} add(kk, kk)", f"odd = {t} add(twok, unit)"]
        lines += [line.format(t=t) for line in weight or []]
        lines += [f"s = {t} multiply({slope}, p)", f"o = {t} multiply({other}, before)"]
        if divided:
            return lines + [f"d = {t} subtract(s, o)", f"q = {t} divide(d, new)"]
        return lines + [f"q = {t} subtract(s, o)"]
    return step


_TWO_X = ["w = {t} multiply(two, x)"]
_ROWS = {
    "chebyshev_polynomial_t": ((1, 0), _three_terms("w", "unit", weight=_TWO_X)),
    "chebyshev_polynomial_u": ((2, 0), _three_terms("w", "unit", weight=_TWO_X)),
    "chebyshev_polynomial_v": ((2, -1), _three_terms("w", "unit", weight=_TWO_X)),
    "chebyshev_polynomial_w": ((2, 1), _three_terms("w", "unit", weight=_TWO_X)),
    "hermite_polynomial_h": ((2, 0), _three_terms("w", "twok", weight=_TWO_X)),
    "hermite_polynomial_he": ((1, 0), _three_terms("x", "kk")),
    "laguerre_polynomial_l": ((-1, 1), _three_terms("w", "kk", True,
                                                    ["w = {t} subtract(odd, x)"])),
    "legendre_polynomial_p": ((1, 0), _three_terms("w", "kk", True, ["w = {t} multiply(odd, x)"])),
}


def _row(first: tuple[int, int], step: Callable[[str], list[str]], shifted: bool) -> Row:
    def lower(g: Graph, r: Any, x: Operand, n: Operand) -> Value:
        if type_of(r) == "f64":
            raise Unsupported("in double, which it is not precise enough for")
        x, n = g.together(g.like(x, "f64"), g.like(n, "f64"))
        n = truncated(g, n)
        if 0 in x.shape:
            return x
        if shifted:
            x = g.sub(g.mul(x, 2), 1)
        start = g.add_(g.mul(x, first[0]), first[1])
        return _degrees(g, n, x, start, step)
    return lower


for _name, (_first, _step) in _ROWS.items():
    ROWS["special_" + _name] = _row(_first, _step, False)
    ROWS["special_shifted_" + _name] = _row(_first, _step, True)
