"""Hinted data of [LLWA21]_ Section 6: three points that lead training to a smaller margin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from reluflow.arrays import Array, frozen_array
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.problem.datasets._common import hard_margin, number
from reluflow.problem.losses import Logistic, Loss, as_loss
from reluflow.problem.problem import Problem

#: Base data of Figure 1 right (ours): inputs and labels.
BASE_X = ((0.5, 0.3), (0.6, -0.4), (0.9, 0.5), (-0.5, 0.35), (-0.7, -0.3), (-0.45, -0.1))
BASE_Y = (1.0, 1.0, 1.0, -1.0, -1.0, -1.0)


def _perpendicular(w: Array, given: ArrayLike | None) -> Array:
    """A unit vector orthogonal to w: the given one checked, or the axis least aligned made so."""
    if given is None:
        v = np.zeros_like(w)
        v[int(np.argmin(np.abs(w)))] = 1.0
        v -= w * (w @ v)
        return v / np.linalg.norm(v)
    v = frozen_array(given, "perpendicular", 1)
    if v.shape != w.shape or abs(np.linalg.norm(v) - 1) > 1e-9 or abs(v @ w) > 1e-9:
        raise ReluflowError(
            f"perpendicular must be a unit vector of {w.size} entries orthogonal to w*: "
            "subtract its part along w* and divide by the norm, or leave it out"
        )
    return v


def _thresholds(X: Array, y: Array, w: Array, leak: float) -> tuple[float, float]:
    """H0 and H3 of the samples other than the first hint (which drops out of both)."""
    along = y * (X @ w)
    across = np.linalg.norm(X - np.outer(X @ w, w), axis=1)
    H0 = across.max() * across.sum() / (leak * along.min()) - along.sum()
    Z = y[:, None] * X
    plus, minus = np.where(y > 0, 1.0, leak) @ Z, np.where(y > 0, leak, 1.0) @ Z
    return float(H0), float((np.linalg.norm(plus) + np.linalg.norm(minus)) / (1 - leak))


@check_arguments
def hinted(
    X: ArrayLike = BASE_X,
    y: ArrayLike = BASE_Y,
    *,
    eps: float | None = None,
    K: float | None = None,
    H: float | None = None,
    perpendicular: ArrayLike | None = None,
    loss: str | Loss = "logistic",
    leak: float = 0.5,
    reduction: str = "mean",
) -> Problem:
    r"""Separable data plus three hints that make training end in one neuron ([LLWA21]_ Thm 6.2).

    The hints, all of label +1, come first: H w*, eps w* + K v and eps w* - K v, with w* the
    max-margin separator of (X, y) and v a unit vector orthogonal to it.

    Parameters
    ----------
    X, y : arrays, shapes (n, d) and (n,)
        Any linearly separable data, d >= 2; by default our base of Figure 1 right.
    eps : float, optional
        Below leak * gamma*; a fifth of that bound by default.
    K : float, optional
        Positive; twice ``K_threshold`` by default. The theorem asks for a large K: the limit is
        suboptimal above ``K_threshold`` (our bound).
    H : float, optional
        Above ``H_min``; 1.05 times that by default.
    perpendicular : array, shape (d,), optional
        The unit vector v.
    loss, leak, reduction
        The paper's loss is the mean logistic one, with 0 < leak < 1.

    Returns
    -------
    Problem
        ``known``: ``w_star``, ``gamma_star`` (of the base data), ``eps``, ``K``, ``H``,
        ``perpendicular``; ``H0``, ``H3`` and ``H_min`` = max(eps, H0, H3); ``K_threshold`` =
        eps sqrt((3 + leak)/(1 - leak)) and ``suboptimal`` (K above it); ``w_plus`` = w*,
        ``gamma_plus`` = eps, ``limit_margin`` = eps/2; ``mu_plus``, ``mu_minus``; ``radius``.

    Notes
    -----
    The paper's last condition on H has H on both sides; H3 is its explicit form,
    (\|sum y x+\| + \|sum y x-\|)/(1 - leak) over the samples other than the first hint.

    Examples
    --------
    >>> known = hinted(eps=0.05, K=0.5).known
    >>> round(known["H0"], 1), known["suboptimal"], known["limit_margin"]
    (51.8, True, 0.025)
    """
    base_X, base_y = frozen_array(X, "X", 2), frozen_array(y, "y", 1)
    Problem(base_X, base_y, Logistic())  # checks labels and shapes
    if base_X.shape[1] < 2:
        raise ReluflowError("hints need a direction orthogonal to w*: expected d >= 2, got d=1")
    leak = number(leak, "leak", 0.0, 1.0, "the hints need a leaky ReLU, 0.5 is the paper's")
    best = hard_margin(base_X, base_y)
    w, bound = best.w, leak * best.margin
    eps = bound / 5 if eps is None else eps
    eps = number(eps, "eps", 0.0, bound, f"leak * gamma* is {bound:.4g}")
    K_threshold = eps * math.sqrt((3 + leak) / (1 - leak))
    K = number(2 * K_threshold if K is None else K, "K", 0.0, math.inf, "use a positive K")
    v = _perpendicular(w, perpendicular)

    rest_X = np.vstack([eps * w + K * v, eps * w - K * v, base_X])
    rest_y = np.append([1.0, 1.0], base_y)
    H0, H3 = _thresholds(rest_X, rest_y, w, leak)
    H_min = max(eps, H0, H3)
    H = number(1.05 * H_min if H is None else H, "H", H_min, math.inf, "raise H or leave it out")

    all_X, all_y = np.vstack([H * w, rest_X]), np.append(1.0, rest_y)
    Z = all_y[:, None] * all_X / len(all_y)
    known: dict[str, Any] = {
        "w_star": w,
        "gamma_star": best.margin,
        "eps": eps,
        "K": K,
        "H": H,
        "perpendicular": v,
        "H0": H0,
        "H3": H3,
        "H_min": H_min,
        "K_threshold": K_threshold,
        "suboptimal": K_threshold < K,
        "w_plus": w,
        "gamma_plus": eps,
        "limit_margin": eps / 2,
        "mu_plus": np.where(all_y > 0, 1.0, leak) @ Z,
        "mu_minus": np.where(all_y > 0, leak, 1.0) @ Z,
        "radius": float(np.linalg.norm(all_X, axis=1).max()),
    }
    return Problem(all_X, all_y, as_loss(loss), leak, reduction, name="hinted", known=known)


@check_arguments
def figure1_right(
    *,
    eps: float = 0.05,
    K: float = 0.5,
    loss: str | Loss = "logistic",
    leak: float = 0.5,
    reduction: str = "mean",
) -> Problem:
    """Six planar points plus three hints ([LLWA21]_ Figure 1 right; coordinates are ours).

    :func:`hinted` on its default base with H 5 % above its threshold; ``known`` as there.

    Parameters
    ----------
    eps, K, loss, leak, reduction
        As for :func:`hinted`.

    Returns
    -------
    Problem
    """
    problem = hinted(eps=eps, K=K, loss=loss, leak=leak, reduction=reduction)
    return problem.replace(name="figure1-right")
