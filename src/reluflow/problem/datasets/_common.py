"""What the dataset modules share: checks of arguments, and the hard-margin separator."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.errors import ReluflowError
from reluflow.problem.losses import HalfSquare, Loss, as_loss

Rng = int | np.random.Generator | np.random.SeedSequence | None


def number(
    value: Any, name: str, low: float, high: float, remedy: str, *, closed: str = ""
) -> float:
    """``value`` as a float inside the interval; ``closed`` names the ends ("low", "high") in it."""
    try:
        x = float(value)
    except (TypeError, ValueError):
        x = math.nan
    above = x >= low if "low" in closed else x > low
    below = x <= high if "high" in closed else x < high
    if not (math.isfinite(x) and above and below):
        left, right = "[" if "low" in closed else "(", "]" if "high" in closed else ")"
        raise ReluflowError(
            f"{name} must be a number in {left}{low:g}, {high:g}{right}, got {value!r}: {remedy}"
        )
    return x


def whole(value: Any, name: str, least: int) -> int:
    """``value`` as an int of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ReluflowError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return int(value)


def is_square(loss: str | Loss) -> bool:
    """Whether the loss is a square loss, under which the known end points of regression hold."""
    return isinstance(as_loss(loss), HalfSquare)


def angle_of(v: NDArray[np.floating[Any]]) -> float:
    """Polar angle of a vector of the plane, in (-pi, pi]."""
    return float(np.arctan2(v[1], v[0]))


@dataclass(frozen=True)
class Separator:
    """Unit vector of the largest margin, that margin, and the dual weights (a simplex point)."""

    w: Array
    margin: float
    dual: Array


def hard_margin(X: Array, y: Array) -> Separator:
    r"""Hard-margin separator through the origin, by least-distance programming.

    Maximises :math:`\min_k y_k\langle w, x_k\rangle` over unit w. The dual weights l add up to 1
    and satisfy :math:`\sum_k l_k y_k x_k = \mathrm{margin}\cdot w`.

    Raises
    ------
    ReluflowError
        When no hyperplane through the origin separates the labels.
    """
    from scipy.optimize import nnls  # slow to import, and few datasets need it

    Z = np.asarray(y, dtype=float)[:, None] * np.asarray(X, dtype=float)
    radius = float(np.linalg.norm(Z, axis=1).max())
    if radius == 0.0:
        raise ReluflowError("all samples are zero: no hyperplane separates them")
    system = np.vstack([Z.T / radius, np.ones(len(Z))])
    target = np.append(np.zeros(Z.shape[1]), 1.0)
    weights, distance = nnls(system, target, maxiter=100 * len(Z))
    # the distance vanishes exactly when 0 lies in the convex hull of the y_k x_k
    w = Z.T @ weights
    norm, margin = float(np.linalg.norm(w)), -math.inf
    if distance > 1e-12 and norm > 0.0:
        margin = float((Z @ w).min()) / norm
    if not margin > 0.0:
        raise ReluflowError(
            "the data are not linearly separable through the origin: expected a w with "
            "y_k <w, x_k> > 0 for every sample, append a bias feature or change the labels"
        )
    return Separator(w / norm, margin, weights / weights.sum())
