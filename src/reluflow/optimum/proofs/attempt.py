"""Certificates that are written, put to the checker, and kept when it proves them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.network import Network
from reluflow.optimum.certificate_file import Certificate
from reluflow.problem import Problem

SMALLEST = 2.0**-290  # the checker refuses numbers below 2^-300
WIDENINGS = (1e-13, 1e-11, 1e-9, 1e-7)  # by how much bounds are widened, tried in turn
MOST_PRODUCTS = 300_000  # products of weights and samples done exactly; beyond them CHECKED


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


def box_radius(J: Array, Y: Array, error: Array) -> Array:
    r"""Half widths of a box that Krawczyk's operator maps into itself, rounding allowed for.

    :math:`r = 2 |Y| e + 2 |1 - Y J| r`, with Y an inverse of J up to rounding and e the size of the
    equations at the centre, their rounding included.
    """
    eps = float(np.finfo(float).eps)
    reach = 2.0 * np.abs(Y) @ error
    wrong = np.abs(np.eye(len(J)) - Y @ J) + 4 * eps * len(J) * np.abs(Y) @ np.abs(J)
    radius = reach
    for _ in range(30):
        radius = reach + 2.0 * wrong @ radius
    return np.asarray(np.maximum(radius, 1e-6 * radius.max()))


def make_certificate(
    kind: str, problem: Problem, claim: dict[str, Any], arrays: dict[str, Array], grade: str
) -> Certificate:
    """A certificate about a problem, unproved as yet."""
    about = {
        "name": problem.name,
        "loss": problem.loss.name,
        "factor": float(problem.loss.factor),
        "leak": problem.leak,
        "reduction": problem.reduction,
    }
    claims = {name: float(value) for name, value in claim.items()}
    return Certificate(kind, about, claims, {"X": problem.X, "y": problem.y, **arrays}, grade)


def prove(
    kind: str, problem: Problem, claim: dict[str, Any], arrays: dict[str, Array]
) -> Certificate | None:
    """The certificate if the checker proves it."""
    made = make_certificate(kind, problem, claim, arrays, "PROVED")
    return made if made.check().ok else None


def is_small(problem: Problem, a: Array) -> bool:
    """Whether the outputs of a network are computed exactly."""
    return problem.X.size * len(a) <= MOST_PRODUCTS


def plain_weights(net: Network) -> tuple[Array, Array, NDArray[np.intp]]:
    """Weights as plain floats without the neurons that are zero, and the places of the rest."""
    W, a = (tidy(each) for each in net.weights())
    kept = np.flatnonzero((W != 0.0).any(axis=1) | (a != 0.0))
    kept = kept if len(kept) else np.arange(1)
    return W[kept], a[kept], kept


def outputs_of(problem: Problem, W: Array, a: Array) -> Array:
    """f(x_k) of a network given by its weights."""
    return problem.outputs(Network(W, a))


def exact_norm2(W: Array, a: Array) -> Fraction:
    """|W|^2 + |a|^2, as a rational number."""
    return sum((Fraction(v) ** 2 for v in [*W.ravel().tolist(), *a.tolist()]), Fraction(0))


def exact_margin(problem: Problem, W: Array, a: Array) -> Fraction:
    """min_k y_k f(x_k) / |theta|^2, as a rational number; 0 for the zero network."""
    f = exact_outputs(problem.X, W, a, problem.leak)
    q = min(Fraction(t) * v for t, v in zip(problem.y.tolist(), f, strict=True))
    return q / (exact_norm2(W, a) or 1)
