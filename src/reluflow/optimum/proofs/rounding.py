"""Rational numbers rounded to floats on the safe side."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array

SMALLEST = 2.0**-290  # the checker refuses numbers below 2^-300


def below(x: Fraction) -> float:
    """The largest float that is not above x."""
    value = float(x)
    return value if Fraction(value) <= x else math.nextafter(value, -math.inf)


def above(x: Fraction) -> float:
    """The smallest float that is not below x."""
    return -below(-x)


def tidy(values: Array) -> Array:
    """Numbers that are too small to be stored become 0."""
    return np.where(np.abs(values) < SMALLEST, 0.0, values)


def exact_outputs(X: Array, W: Array, a: Array, leak: float) -> list[Fraction]:
    """f(x_k) of a network, as rational numbers."""
    rows = [[Fraction(v) for v in w] for w in W.tolist()]
    outer, slope = [Fraction(v) for v in a.tolist()], Fraction(leak)
    out = []
    for x in X.tolist():
        sample, total = [Fraction(v) for v in x], Fraction(0)
        for w, o in zip(rows, outer, strict=True):
            p = sum((u * v for u, v in zip(w, sample, strict=True)), Fraction(0))
            total += o * (p if p > 0 else slope * p)
        out.append(total)
    return out


def sides_of(W: Array, X: Array) -> NDArray[np.int64]:
    """Signs of <w_j, x_k>, shape (m, n): those that rounding leaves in doubt are found exactly."""
    P = W @ X.T
    size = np.linalg.norm(W, axis=1)[:, None] * np.linalg.norm(X, axis=1)
    out = np.sign(P).astype(np.int64)
    for j, k in np.argwhere(np.abs(P) <= 1e-14 * (X.shape[1] + 10) * size):
        pairs = zip(W[j].tolist(), X[k].tolist(), strict=True)
        p = sum((Fraction(u) * Fraction(v) for u, v in pairs), Fraction(0))
        out[j, k] = (p > 0) - (p < 0)
    return out
