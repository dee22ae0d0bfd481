#!/usr/bin/env python3
"""Prints the coefficient tables of math_tables.h: near-minimax polynomials by Chebyshev fits.

Needs mpmath. Each row: name, function, interval, coefficients; the error printed beside a table is
that of the polynomial in exact arithmetic, absolute unless it says otherwise.
"""
from mpmath import mp, mpf, chebyfit, erf, erfc, exp, log, sqrt, sin, cos, asin, atan, tanh, expm1, taylor

mp.dps = 60




def table(name, f, low, high, n, why):
    coefficients, error = chebyfit(f, [low, high], n, error=True)
    coefficients = coefficients[::-1]
    print(f"// {why}; within {mp.nstr(error, 2)} on [{mp.nstr(mpf(low), 5)}, {mp.nstr(mpf(high), 5)}].")
    print(f"inline constexpr double {name}[] = {{")
    row = "   "
    for c in coefficients:
        text = " " + repr(float(c)) + ","
        if len(row) + len(text) > 98:
            print(row)
            row = "   "
        row += text
    print(row[:-1] + "};")
    print()


def removable(f, at_zero, terms):
    """f(x), by its power series (a list of coefficients) where |x| is tiny."""
    def g(x):
        x = mpf(x)
        if abs(x) < mpf(10) ** -6:
            return sum(c * x ** i for i, c in enumerate(terms))
        return f(x)
    return g


half_ln2 = log(mpf(2)) / 2
fact = lambda k: mp.factorial(k)

# exp(r) = 1 + r + r^2 E(r)
exp_tail = removable(lambda r: (exp(r) - 1 - r) / r ** 2, None, [1 / fact(k + 2) for k in range(8)])
table("kExpF32", exp_tail, -half_ln2 * 1.01, half_ln2 * 1.01, 5, "(exp(r) - 1 - r) / r^2")
table("kExpF64", exp_tail, -half_ln2 * 1.01, half_ln2 * 1.01, 11, "(exp(r) - 1 - r) / r^2")
table("kExp2Reduced", lambda r: mpf(2) ** r, 0, 1, 6, "2^r")
table("kExp2Fast", lambda r: mpf(2) ** r, -0.5, 0.5, 6, "2^r")

# log(1 + f) = f - f^2/2 + f^3 L(f)
log_tail = removable(lambda f: (log(1 + f) - f + f * f / 2) / f ** 3, None,
                     [(-1) ** k / mpf(k + 3) for k in range(12)])
table("kLogF32", log_tail, sqrt(mpf(0.5)) - 1, sqrt(mpf(2)) - 1, 9, "(log(1+f) - f + f^2/2) / f^3")
# log((1+s)/(1-s)) = 2s + s z A(z), z = s^2
atanh_tail = removable(lambda z: (log((1 + sqrt(z)) / (1 - sqrt(z))) / sqrt(z) - 2) / z, None,
                       [2 / mpf(2 * k + 3) for k in range(12)])
table("kLogF64", atanh_tail, mpf(0), mpf("0.02945"), 8, "(log((1+s)/(1-s)) / s - 2) / z, z = s^2")
atanh_tail2 = removable(lambda z: ((log((1 + sqrt(z)) / (1 - sqrt(z))) / sqrt(z) - 2) / z - mpf(2) / 3) / z, None,
                        [2 / mpf(2 * k + 5) for k in range(12)])
table("kLogPow", atanh_tail2, mpf(0), mpf("0.02945"), 8, "the same without its first term, by z")

# sin(r) = r + r z S(z), cos(r) = 1 - z/2 + z^2 C(z), z = r^2
quarter = (mp.pi / 4 * 1.01) ** 2
sin_tail = removable(lambda z: (sin(sqrt(z)) / sqrt(z) - 1) / z, None,
                     [(-1) ** (k + 1) / fact(2 * k + 3) for k in range(8)])
cos_tail = removable(lambda z: (cos(sqrt(z)) - 1 + z / 2) / z ** 2, None,
                     [(-1) ** k / fact(2 * k + 4) for k in range(8)])
table("kSinF64", sin_tail, mpf(0), quarter, 7, "(sin(r)/r - 1) / z, z = r^2")
table("kCosF64", cos_tail, mpf(0), quarter, 7, "(cos(r) - 1 + z/2) / z^2, z = r^2")

# asin(x) = x + x z A(z), z = x^2
asin_series = []
c = mpf(1)
for k in range(1, 14):
    c = c * (2 * k - 1) / (2 * k)
    asin_series.append(c / (2 * k + 1))
asin_tail = removable(lambda z: (asin(sqrt(z)) / sqrt(z) - 1) / z, None, asin_series)
table("kAsinF64", asin_tail, mpf(0), mpf("0.2501"), 13, "(asin(x)/x - 1) / z, z = x^2")
atan_tail = removable(lambda z: (atan(sqrt(z)) / sqrt(z) - 1) / z, None,
                      [(-1) ** (k + 1) / mpf(2 * k + 3) for k in range(12)])
table("kAtanF64", atan_tail, mpf(0), mpf("0.1717"), 12, "(atan(x)/x - 1) / z, z = x^2")

# erf
erf_head = removable(lambda z: erf(sqrt(z)) / sqrt(z), None,
                     [2 / sqrt(mp.pi) * (-1) ** k / (fact(k) * (2 * k + 1)) for k in range(10)])
table("kErfSmallF32", erf_head, mpf(0), mpf(1), 7, "erf(x)/x by x^2")
table("kErfSmallF64", erf_head, mpf(0), mpf(1), 14, "erf(x)/x by x^2")
table("kErfLargeF32", lambda x: log(erfc(x)), mpf(1), mpf(4), 9, "log(erfc(x))")
# exp(x^2) erfc(x) on [1, 6.5] by t = (x - 2) / (x + 2)
table("kErfLargeF64", lambda t: exp(4 * ((1 + t) / (1 - t)) ** 2) * erfc(2 * (1 + t) / (1 - t)),
      mpf(-1) / 3, mpf("4.5") / mpf("8.5"), 22, "exp(x^2) erfc(x) by (x - 2)/(x + 2), x in [1, 6.5]")
table("kErfFast", lambda u: erf(sqrt(8 * (u + 1))) / sqrt(8 * (u + 1)) if u > mpf("-0.9999999") else 2 / sqrt(mp.pi),
      mpf(-1), mpf(1), 16, "erf(x)/x by u = x^2/8 - 1, |x| <= 4")
