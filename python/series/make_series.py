#!/usr/bin/env python3
"""Writes python/heddle/torch/series.py: Chebyshev series of special functions, fitted to SciPy's.

    python python/series/make_series.py

A series is good to about 1e-13 of the largest value in its interval: for results in float32.
"""
import pathlib

import numpy as np
from scipy import special as s

OUT = pathlib.Path(__file__).parents[2] / "python/heddle/torch/series.py"


def fit(function, low, high, terms=40):
    """Coefficients in t from -1 to 1, of u from low to high; those that matter."""
    t = np.cos(np.pi * (np.arange(4 * terms) + 0.5) / (4 * terms))
    u = (t * (high - low) + high + low) / 2
    coefficients = np.polynomial.chebyshev.chebfit(t, function(u), terms)
    least = 1e-14 * np.abs(coefficients).max()
    while abs(coefficients[-1]) < least:
        coefficients = coefficients[:-1]
    return coefficients


def bessel(order, sign):
    """P (sign 1) or Q (-1) of Hankel's form, of u = (8 / x)^2; Q times x."""
    def function(u):
        x = 8 / np.sqrt(u)
        j, y = (s.j0(x), s.y0(x)) if order == 0 else (s.j1(x), s.y1(x))
        at = x - (2 * order + 1) * np.pi / 4
        size = np.sqrt(np.pi * x / 2)
        if sign > 0:
            return size * (j * np.cos(at) + y * np.sin(at))
        return size * (y * np.cos(at) - j * np.sin(at)) * x
    return function


def airy(sign):
    """The same for Airy's function of -z, of u = (6 / z)^3; Q divided by sqrt(u)."""
    def function(u):
        z = 6 / np.cbrt(u)
        a, _, b, _ = s.airy(-z)
        at = 2 / 3 * z ** 1.5 + np.pi / 4
        size = np.sqrt(np.pi) * z ** 0.25
        if sign > 0:
            return size * (a * np.sin(at) + b * np.cos(at))
        return size * (b * np.sin(at) - a * np.cos(at)) / np.sqrt(u)
    return function


def over_root(function, edge):
    """sqrt(x) f(x), of u = edge / x."""
    return lambda u: np.sqrt(edge / u) * function(edge / u)


def root(u):
    return np.sqrt(u)


TABLES = {
    "I0E_SMALL": (s.i0e, 0, 8), "I0E_LARGE": (over_root(s.i0e, 8), 1e-12, 1),
    "I1E_SMALL": (lambda x: s.i1e(x) / x, 1e-12, 8), "I1E_LARGE": (over_root(s.i1e, 8), 1e-12, 1),
    "K0_SMALL": (lambda u: s.k0(root(u)) + np.log(root(u) / 2) * s.i0(root(u)), 1e-12, 4),
    "K0E_LARGE": (over_root(s.k0e, 2), 1e-12, 1),
    "K1_SMALL": (lambda u: root(u) * (s.k1(root(u)) - np.log(root(u) / 2) * s.i1(root(u))),
                 1e-12, 4),
    "K1E_LARGE": (over_root(s.k1e, 2), 1e-12, 1),
    "J0_SMALL": (lambda u: s.j0(root(u)), 0, 64),
    "J1_SMALL": (lambda u: s.j1(root(u)) / root(u), 1e-12, 64),
    "Y0_SMALL": (lambda u: s.y0(root(u)) - 2 / np.pi * np.log(root(u)) * s.j0(root(u)), 1e-12, 64),
    "Y1_SMALL": (lambda u: (s.y1(root(u)) - 2 / np.pi * (np.log(root(u)) * s.j1(root(u))
                                                        - 1 / root(u))) / root(u), 1e-6, 64),
    "P0": (bessel(0, 1), 1e-4, 1), "Q0": (bessel(0, -1), 1e-4, 1),
    "P1": (bessel(1, 1), 1e-4, 1), "Q1": (bessel(1, -1), 1e-4, 1),
    "AIRY_MIDDLE": (lambda x: s.airy(x)[0], -6, 3),
    "AIRY_LARGE": (lambda u: s.airye(3 / u ** (2 / 3))[0] * (3 / u ** (2 / 3)) ** 0.25, 1e-9, 1),
    "AIRY_P": (airy(1), 1e-4, 1), "AIRY_Q": (airy(-1), 1e-4, 1),
    "ERFCX": (lambda t: (1 + 2 * 3.75 * (1 + t) / (1 - t)) * s.erfcx(3.75 * (1 + t) / (1 - t)),
              -1, 1),
    "NDTRI_TAIL": (lambda u: 1 / u + s.ndtri(np.exp(-0.5 / u ** 2)), 0.06, 0.52),
}


def main():
    lines = ['"""Chebyshev series of special functions: (low, high, coefficients).',
             "", "Written by python/series/make_series.py.", '"""']
    for name, (function, low, high) in TABLES.items():
        values = fit(function, low, high)
        lines.append(f"{name} = ({low!r}, {high!r}, (")
        text = [f"{value:.17g}," for value in values]
        for i in range(0, len(text), 4):
            lines.append("    " + " ".join(text[i:i + 4]))
        lines.append("))")
        t = np.linspace(-0.999, 0.999, 999)
        u = (t * (high - low) + high + low) / 2
        error = np.abs(np.polynomial.chebyshev.chebval(t, values) - function(u)).max()
        print(f"{name}: {len(values)} terms, error {error:.1e} of {np.abs(function(u)).max():.1e}")
    OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
