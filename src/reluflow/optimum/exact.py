"""Rational numbers, and balls of them that enclose roots, exponentials and logarithms.

The arithmetic of `checker.py`, which see. Floats occur as a number to display and as the guess of a
logarithm that is confirmed afterwards, nowhere else.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

Q: Any = Fraction
try:
    from flint import fmpq

    Q = fmpq
except ImportError:
    pass

ZERO, ONE, HALF = Q(0), Q(1), Q(1, 2)


class Reject(Exception):
    """A step of a proof that does not go through."""


def fraction(x: Any) -> Fraction:
    """A rational number of either library as a Fraction."""
    return x if isinstance(x, Fraction) else Fraction(int(x.p), int(x.q))


def nearest(x: Any) -> float:
    """The nearest float, for display alone."""
    try:
        return float(fraction(x))
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def root(x: Any) -> Ball:
    """Encloses the square root of x >= 0 between neighbours, 2^-200 / denominator apart."""
    f = fraction(x)
    low = math.isqrt((f.numerator * f.denominator) << 400)
    return Ball(Q(2 * low + 1, f.denominator << 201), Q(1, f.denominator << 201))


def exponential(x: Any) -> Ball:
    """Encloses e^x, x <= 600, by its series in whole multiples of 2^-1500.

    Each of the 2000 terms is off by 2 of these, times at most e^600 < 2^866 until the end; the
    terms left out are smaller still. All is less than 2^-300.
    """
    if x > 600:
        raise Reject("an exponential is beyond e^600")
    if x < -600:
        return Ball.between(ZERO, exponential(Q(-600)).hi)
    f, total, term = fraction(x), 0, 1 << 1500
    argument = (f.numerator << 1500) // f.denominator
    for i in range(1, 2000):
        total, term = total + term, (term * argument >> 1500) // i
    return Ball(Q(total, 1 << 1500), Q(1, 1 << 300))


def log_one_plus(x: Ball) -> Ball:
    """Encloses log(1 + x), x > 0: a float's guess is widened, and confirmed by exponentials."""
    if x.hi < Q(1, 1 << 200):
        return Ball.between(ZERO, x.hi)
    guess = Q(*math.log1p(nearest(x.mid)).as_integer_ratio())
    low, high = guess * (1 - Q(1, 1 << 45)), guess * (1 + Q(1, 1 << 45))
    if not exponential(low).hi <= 1 + x.lo or not 1 + x.hi <= exponential(high).lo:
        raise Reject("a logarithm is not enclosed")
    return Ball.between(low, high)


def logarithm(x: Any) -> Ball:
    """Encloses log x, x > 0."""
    if x == 1:
        return Ball(ZERO)
    return log_one_plus(Ball(x - 1)) if x > 1 else log_one_plus(Ball(1 / x - 1)) * -ONE


def entropy(p: Any) -> Ball:
    """Encloses -p log p, p >= 0."""
    return Ball(ZERO) if p == 0 else logarithm(p) * -p


class Ball:
    """Every number within `rad` of `mid`."""

    __slots__ = ("mid", "rad")

    def __init__(self, mid: Any, rad: Any = ZERO) -> None:
        self.mid, self.rad = mid, rad

    @classmethod
    def between(cls, low: Any, high: Any) -> Ball:
        """Every number from low to high."""
        return cls((low + high) * HALF, (high - low) * HALF)

    lo = property(lambda self: self.mid - self.rad)
    hi = property(lambda self: self.mid + self.rad)

    def __add__(self, other: Any) -> Ball:
        o = other if isinstance(other, Ball) else Ball(other)
        return Ball(self.mid + o.mid, self.rad + o.rad)

    def __mul__(self, other: Any) -> Ball:
        o = other if isinstance(other, Ball) else Ball(other)
        rad = abs(self.mid) * o.rad + self.rad * (abs(o.mid) + o.rad)
        return Ball(self.mid * o.mid, rad)

    __radd__, __rmul__ = __add__, __mul__
