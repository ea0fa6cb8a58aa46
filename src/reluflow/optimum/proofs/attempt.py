"""Certificates that are written, put to the checker, and kept when it proves them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.network import Network
from reluflow.optimum.certificate_file import Certificate
from reluflow.optimum.proofs.rounding import exact_outputs, tidy
from reluflow.problem import Problem

ROOM = (1e-13, 1e-11, 1e-9, 1e-7)  # by how much bounds are widened, tried in turn
MOST_PRODUCTS = 300_000  # products of weights and samples done exactly; beyond them CHECKED


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
