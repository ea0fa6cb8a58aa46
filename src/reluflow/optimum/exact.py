"""Exact rational arithmetic on floats: signs that rounding leaves in doubt.

Every float is a rational number, so inner products, outputs of networks and square losses are
rational too. python-flint does the arithmetic when it is installed, `fractions` otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

try:
    from flint import fmpq

    def rational(x: float) -> Any:
        """The number that the float is."""
        return fmpq(*float(x).as_integer_ratio())

except ImportError:

    def rational(x: float) -> Any:
        """The number that the float is."""
        return Fraction(float(x))


def dot(u: Iterable[float], v: Iterable[float]) -> Any:
    """<u, v>."""
    return sum((rational(p) * rational(q) for p, q in zip(u, v, strict=True)), rational(0.0))


def sign(x: Any) -> int:
    """-1, 0 or 1."""
    return int(x > 0) - int(x < 0)


def output(W: Any, a: Any, x: Any, leak: float) -> Any:
    """f(x) of the network with rows W and outer weights a."""
    total = rational(0.0)
    for w, outer in zip(W, a, strict=True):
        p = dot(w, x)
        total += rational(outer) * (p if p > 0 else rational(leak) * p)
    return total


def square_sum(outputs: Iterable[Any], y: Iterable[float]) -> Any:
    """sum_k (f_k - y_k)^2 of rational outputs."""
    return sum(((f - rational(t)) ** 2 for f, t in zip(outputs, y, strict=True)), rational(0.0))
