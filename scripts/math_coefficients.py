#!/usr/bin/python3
"""Makes lower/math_coefficients.def: minimax polynomials of the functions that lower/math_*.c expand.

    scripts/math_coefficients.py > lower/math_coefficients.def

Each polynomial minimises the largest weighted error over its interval (Remez's exchange on a dense grid of Chebyshev points),
with 60 digits, and is then rounded to the format that it is used in. The degree is the smallest whose error, before rounding, is
under the bound.
"""
from decimal import Decimal as D, getcontext
import struct

getcontext().prec = 60
GRID = 900


def pi():
    def arctan_inverse(n):
        total = term = D(1) / n
        k, sign = 1, -1
        while abs(term) > D(10) ** -62:
            term /= n * n
            k += 2
            total += sign * term / k
            sign = -sign
        return total
    return 4 * (4 * arctan_inverse(5) - arctan_inverse(239))


PI = pi()
LN2 = D(2).ln()


def series(first, step):
    """first + first*step(1) + first*step(1)*step(2) + ..., until nothing changes."""
    total = term = first
    k = 1
    while abs(term) > D(10) ** -70:
        term *= step(k)
        total += term
        k += 1
    return total


def sin(x):
    return series(x, lambda k: -x * x / ((2 * k) * (2 * k + 1)))


def cos(x):
    return series(D(1), lambda k: -x * x / ((2 * k - 1) * (2 * k)))


def erf(x):
    total = term = x
    k = 0
    while abs(term) > D(10) ** -70:
        k += 1
        term *= -x * x / k
        total += term / (2 * k + 1)
    return 2 * total / PI.sqrt()


def erfc(x):
    """By a series whose terms are all positive, to keep the digits that 1 - erf(x) would lose; 110 digits make that safe."""
    getcontext().prec = 110
    result = 1 - erf(x)
    getcontext().prec = 60
    return +result


def tanh(x):
    e = (2 * x).exp()
    return (e - 1) / (e + 1)


def atan(x):
    halvings = 0
    while abs(x) > D("0.05"):
        x = x / (1 + (1 + x * x).sqrt())
        halvings += 1
    total = term = x
    k = 0
    while abs(term) > D(10) ** -66:
        k += 1
        term *= -x * x
        total += term / (2 * k + 1)
    return total * 2 ** halvings


def sinh(x):
    return series(x, lambda k: x * x / ((2 * k) * (2 * k + 1)))


def solve(a, b):
    n = len(b)
    a = [row[:] + [b[i]] for i, row in enumerate(a)]
    for c in range(n):
        p = max(range(c, n), key=lambda r: abs(a[r][c]))
        a[c], a[p] = a[p], a[c]
        for r in range(c + 1, n):
            f = a[r][c] / a[c][c]
            if f:
                a[r] = [x - f * y for x, y in zip(a[r], a[c])]
    x = [D(0)] * n
    for r in range(n - 1, -1, -1):
        x[r] = (a[r][n] - sum(a[r][k] * x[k] for k in range(r + 1, n))) / a[r][r]
    return x


def horner(c, x):
    v = D(0)
    for k in reversed(c):
        v = v * x + k
    return v


def grid(lo, hi):
    """Chebyshev points, none of them an end: functions may be undefined there."""
    mid, half = (lo + hi) / 2, (hi - lo) / 2
    return [mid - half * cos(PI * (2 * i + 1) / (2 * GRID)) for i in range(GRID)]


def remez(points, values, weights, degree):
    """Coefficients, lowest first, and the largest weighted error."""
    n = degree + 2
    at = [round((GRID - 1) * (1 - float(cos(PI * i / (n - 1)))) / 2) for i in range(n)]
    for _ in range(12):
        rows = [[points[j] ** k for k in range(degree + 1)] + [(-1) ** i / weights[j]] for i, j in enumerate(at)]
        c = solve(rows, [values[j] for j in at])[:-1]
        error = [(values[j] - horner(c, points[j])) * weights[j] for j in range(GRID)]
        runs, best = [], 0
        for j in range(1, GRID + 1):
            if j == GRID or (error[j] > 0) != (error[best] > 0):
                runs.append(best)
                best = j
            elif abs(error[j]) > abs(error[best]):
                best = j
        while len(runs) > n:
            runs.pop(0 if abs(error[runs[0]]) < abs(error[runs[-1]]) else -1)
        if len(runs) < n or runs == at:
            break
        at = runs
    return c, max(abs(e) for e in error)


def f32(x):
    return struct.unpack("f", struct.pack("f", float(x)))[0]


def text(x, single):
    v = f32(x) if single else float(x)
    return v.hex()


def polynomial(name, what, g, weight, lo, hi, bits, single):
    """The smallest degree whose weighted error is under 2^-bits."""
    points = grid(lo, hi)
    values, weights = [g(x) for x in points], [abs(weight(x)) for x in points]
    for degree in range(2, 40):
        c, error = remez(points, values, weights, degree)
        if error < D(2) ** -bits:
            break
    print(f"/* {what}, {float(lo):.4g} .. {float(hi):.4g}; error 2^{float(error.ln() / LN2):.1f} */")
    show(name, [text(x, single) for x in c])


def show(name, numbers):
    print(wrap(f"MATH_TABLE({name}, {len(numbers)}, {', '.join(numbers)})") + "\n")


def wrap(line, width=128):
    out = ""
    while len(line) > width:
        cut = line.rfind(", ", 0, width) + 1
        out += line[:cut] + "\n   "
        line = line[cut:]
    return out + line


def constants():
    """ln 2, pi/2 as sums of few parts: the high ones end in zeros, so that a product with a small integer is exact."""
    def split(name, what, value, bits, single):
        parts, rest = [], value
        for b in bits:
            if b:
                scale = D(2) ** (b - 1 - int((abs(rest).ln() / LN2).to_integral_value(rounding="ROUND_FLOOR")))
                part = (rest * scale).to_integral_value(rounding="ROUND_FLOOR") / scale
            else:
                part = D(f32(rest) if single else float(rest))
            parts.append(float(part).hex())
            rest -= part
        print(f"/* {what} */")
        show(name, parts)
    split("LN2_F32", "ln 2 in two parts", LN2, [15, 0], True)
    split("LN2_F64", "ln 2 in two parts", LN2, [41, 0], False)
    split("LN2_DD", "ln 2 as two doubles", LN2, [0, 0], False)
    split("LOG2E_DD", "1 / ln 2 as two doubles", 1 / LN2, [0, 0], False)
    split("THIRD_DD", "1/3 as two doubles", D(1) / 3, [0, 0], False)
    split("HALF_PI_DD", "pi / 2 as two doubles", PI / 2, [0, 0], False)
    split("HALF_PI_F64", "pi / 2 in four parts", PI / 2, [33, 33, 33, 0], False)
    getcontext().prec = 90
    split("TWO_OVER_PI", "2 / pi in parts of 28 bits", 2 / pi_long(), [28] * 7, False)
    getcontext().prec = 60


def pi_long():
    """pi to 85 digits."""
    def arctan_inverse(n):
        total = term = D(1) / n
        k, sign = 1, -1
        while abs(term) > D(10) ** -92:
            term /= n * n
            k += 2
            total += sign * term / k
            sign = -sign
        return total
    return 4 * (4 * arctan_inverse(5) - arctan_inverse(239))


def main():
    half_ln2, root = LN2 / 2 + D("1e-4"), D(2).sqrt()
    log_lo, log_hi = 1 / root - 1, root - 1
    s_max = (root - 1) / (root + 1)
    print("/* lower/math_coefficients.def -- made by scripts/math_coefficients.py: minimax polynomials, lowest coefficient first, and")
    print(" * constants in parts. MATH_TABLE(name, count, numbers...)")
    print(" */")
    constants()
    for single in (True, False):
        s = "F32" if single else "F64"
        small = D("0.625") if single else D("0.55")
        polynomial(f"EXP_{s}", "(e^r - 1 - r) / r^2", lambda r: (r.exp() - 1 - r) / r ** 2, lambda r: r ** 2 / r.exp(),
                   -half_ln2, half_ln2, 27 if single else 57, single)
        polynomial(f"EXP2_{s}", "(2^r - 1) / r", lambda r: ((r * LN2).exp() - 1) / r, lambda r: r / (r * LN2).exp(),
                   D("-0.5001"), D("0.5001"), 27 if single else 57, single)
        polynomial(f"TANH_{s}", "(tanh(x)/x - 1) / x^2 in x^2", lambda z: (tanh(z.sqrt()) / z.sqrt() - 1) / z, lambda z: z,
                   D(0), small ** 2, 27 if single else 57, single)
        polynomial(f"SIN_{s}", "(sin(r)/r - 1) / r^2 in r^2", lambda z: (sin(z.sqrt()) / z.sqrt() - 1) / z, lambda z: z,
                   D(0), (PI / 4) ** 2 + D("1e-3"), 27 if single else 57, single)
        polynomial(f"COS_{s}", "(cos(r) - 1 + r^2/2) / r^4 in r^2", lambda z: (cos(z.sqrt()) - 1 + z / 2) / z ** 2,
                   lambda z: z ** 2, D(0), (PI / 4) ** 2 + D("1e-3"), 27 if single else 57, single)
    polynomial("LOG_F32", "(ln(1+f) - f + f^2/2) / f^3", lambda f: ((1 + f).ln() - f + f * f / 2) / f ** 3,
               lambda f: f ** 3 / (1 + f).ln(), log_lo, log_hi, 27, True)
    polynomial("LOG2_F32", "log2(1+f) / f", lambda f: (1 + f).ln() / LN2 / f, lambda f: f * LN2 / (1 + f).ln(),
               log_lo, log_hi, 27, True)
    polynomial("LOG_F64", "(ln((1+s)/(1-s))/s - 2) / s^2 in s^2",
               lambda z: (((1 + z.sqrt()) / (1 - z.sqrt())).ln() / z.sqrt() - 2) / z, lambda z: z / 2, D(0), s_max ** 2, 60, False)
    polynomial("LOG_TAIL_F64", "(ln((1+s)/(1-s))/2s - 1 - s^2/3) / s^4 in s^2",
               lambda z: (((1 + z.sqrt()) / (1 - z.sqrt())).ln() / z.sqrt() / 2 - 1 - z / 3) / z ** 2, lambda z: z ** 2,
               D(0), s_max ** 2, 66, False)
    polynomial("LOG2_WIDE", "log2(1+f) / f, enough for a float32 power", lambda f: (1 + f).ln() / LN2 / f,
               lambda f: f * LN2 / (1 + f).ln(),
               log_lo, log_hi, 38, False)
    polynomial("EXP2_WIDE", "2^r, enough for a float32 power", lambda r: (r * LN2).exp(), lambda r: 1 / (r * LN2).exp(),
               D("-0.5001"), D("0.5001"), 29, False)
    polynomial("ATAN_F64", "(atan(x)/x - 1) / x^2 in x^2", lambda z: (atan(z.sqrt()) / z.sqrt() - 1) / z, lambda z: z,
               D(0), (root - 1) ** 2 + D("1e-4"), 57, False)
    polynomial("SINH_F64", "(sinh(x)/x - 1) / x^2 in x^2", lambda z: (sinh(z.sqrt()) / z.sqrt() - 1) / z, lambda z: z,
               D(0), D(1), 57, False)
    for s, bits in (("F32", 27), ("F64", 56)):
        polynomial(f"ERF_{s}", "erf(x)/x - 1 in x^2", lambda z: erf(z.sqrt()) / z.sqrt() - 1, lambda z: PI.sqrt() / 2,
                   D(0), D(1), bits, s == "F32")
    polynomial("ERFC_F32", "-ln(erfc(x))/x in x", lambda x: -erfc(x).ln() / x, lambda x: x * erfc(x), D(1), D("3.95"), 27, True)
    polynomial("ERFC_F64", "-ln(erfc(x))/x in x", lambda x: -erfc(x).ln() / x, lambda x: x * erfc(x), D(1), D("5.95"), 55, False)
    print("#undef MATH_TABLE")


main()
