"""Data of [MMV24]_: classes correlated positively within and negatively across."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reluflow.arrays import Array, generator_of
from reluflow.checks import check_arguments
from reluflow.problem.datasets._common import Rng, number, whole
from reluflow.problem.losses import Loss, as_loss
from reluflow.problem.problem import Problem


def _alignment_known(problem: Problem) -> dict[str, Any]:
    """Constants of Theorem 1 that depend on the data alone, and the growth rate of each class."""
    X, y = problem.X, problem.y
    norms = np.linalg.norm(X, axis=1)
    Z = y[:, None] * X / norms[:, None]
    correlation = float((Z @ Z.T).min())
    known: dict[str, Any] = {
        "correlation": correlation,  # mu
        "x_plus": X[y > 0].sum(axis=0),
        "x_minus": X[y < 0].sum(axis=0),
        "X_max": float(norms.max()),
        "X_min": float(norms.min()),
    }
    cosines = []
    for label, name in ((1.0, "x_plus"), (-1.0, "x_minus")):
        center = known[name]
        size = float(np.linalg.norm(center))
        # neurons in S_+ (S_-) are active on one class alone
        slopes = np.where(y == label, 1.0, problem.leak)
        rate = float(np.linalg.norm((problem.pull * slopes) @ X))
        known["growth_rate_" + name[2:]] = rate
        if size > 0.0:
            cosines.append(label * (Z @ center) / size)
    if correlation > 0.0:
        known["zeta_1"] = float(np.concatenate(cosines).min()) ** 2
        known["xi"] = correlation**2
        known["rate_alpha"] = (correlation * known["X_min"]) ** 2 / (32 * known["X_max"])
    return known


def _problem(
    X: Array, y: Array, name: str, loss: str | Loss, leak: float, reduction: str, **known: Any
) -> Problem:
    problem = Problem(X, y, as_loss(loss), leak, reduction, name=name)
    return problem.replace(known={**_alignment_known(problem), **known})


@check_arguments
def toy6(
    *, loss: str | Loss = "exponential", leak: float = 0.0, reduction: str = "mean"
) -> Problem:
    """Six points of the plane with two drops of the loss (stands for [MMV24]_ Figure 6).

    The paper shows its data only as a picture; these coordinates are proposed by us and keep
    what it shows: four positive and two negative points, a dead cone, two separate drops.

    Parameters
    ----------
    loss, leak, reduction
        The paper's theory adds the losses ("sum"); the iteration counts it states for its runs
        need the mean, and a loss of slope 1 at zero (exponential, or ``Logistic(factor=2)``).

    Returns
    -------
    Problem
        ``known``: ``correlation`` (mu, the smallest y_i y_j cos), ``x_plus`` and ``x_minus``
        (sums of the inputs of each class), ``growth_rate_plus`` and ``growth_rate_minus`` of small
        neurons active on one class alone, ``X_max``, ``X_min``, and where mu > 0 the constants
        ``zeta_1``, ``xi`` (= mu^2) and ``rate_alpha`` of Theorem 1.
    """
    X = np.array([(1, 0.6), (0.7, 1), (0.9, 0.9), (1.2, 0.4), (-0.8, -1.4), (-0.2, -1.5)])
    y = np.array([1.0, 1.0, 1.0, 1.0, -1.0, -1.0])
    return _problem(X, y, "toy6", loss, leak, reduction)


@check_arguments
def two_points(
    angle: float = 0.1,
    *,
    loss: str | Loss = "exponential",
    leak: float = 0.0,
    reduction: str = "mean",
) -> Problem:
    """Two positive points at a right angle less a small one ([MMV24]_ Figures 7-9).

    Parameters
    ----------
    angle : float
        x_1 = (1, 0) and x_2 = (sin angle, cos angle), in [0, pi/2): 0.1 in Figure 7, 0.001 in
        Figure 8, 0 in Figure 9, where the points are orthogonal and the theory is silent.
    loss, leak, reduction
        As for :func:`toy6`.

    Returns
    -------
    Problem
        ``known`` as for :func:`toy6`, with mu = sin(angle).

    Examples
    --------
    >>> round(two_points(0.001).known["correlation"], 9)
    0.001
    """
    angle = number(
        angle, "angle", 0.0, math.pi / 2, "0.1, 0.001 and 0 are the paper's", closed="low"
    )
    c, s = math.cos(angle), math.sin(angle)
    X = np.array([[1.0, 0.0], [s, c]])
    return _problem(X, np.ones(2), "two-points", loss, leak, reduction, angle=angle)


@check_arguments
def separable(
    rho: float = 0.5,
    n: int = 20,
    d: int = 5,
    rng: Rng = 0,
    *,
    loss: str | Loss = "exponential",
    leak: float = 0.0,
    reduction: str = "sum",
) -> Problem:
    r"""Random data that satisfy the correlation assumption of [MMV24]_ by construction.

    y_k x_k = s_k (e_1 + rho g_k) with g_k uniform on the unit sphere orthogonal to e_1 and s_k
    uniform in [0.5, 2]; the first half of the samples, rounded up, has label +1. The family is
    ours; it guarantees mu >= (1 - rho^2) / (1 + rho^2).

    Parameters
    ----------
    rho : float
        Spread, in [0, 1): 0 puts all y_k x_k on one ray.
    n, d : int
        Number of samples and of features (d >= 2).
    rng : int, Generator, SeedSequence or None
        Source of randomness; the same sample every time by default, None for a fresh one.
    loss, leak, reduction
        By default those of the paper's theory: the sum of exponential losses.

    Returns
    -------
    Problem
        ``known`` as for :func:`toy6`, plus ``correlation_at_least``, the guarantee.
    """
    rho = number(rho, "rho", 0.0, 1.0, "mu > 0 is guaranteed below 1", closed="low")
    n, d = whole(n, "n", 1), whole(d, "d", 2)
    generator = generator_of(rng)
    G = generator.standard_normal((n, d))
    G[:, 0] = 0.0
    G /= np.linalg.norm(G, axis=1)[:, None]
    Z = rho * G
    Z[:, 0] = 1.0
    Z *= generator.uniform(0.5, 2.0, (n, 1))
    y = np.where(np.arange(n) < (n + 1) // 2, 1.0, -1.0)
    bound = (1 - rho**2) / (1 + rho**2)
    return _problem(
        y[:, None] * Z, y, "separable", loss, leak, reduction, correlation_at_least=bound
    )
