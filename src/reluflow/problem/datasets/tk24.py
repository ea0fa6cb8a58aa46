"""Data of [TK24]_: XOR patterns, whose classes lie along two axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from reluflow.arrays import Array, frozen_array, generator_of
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.problem.datasets._common import Rng, number, whole
from reluflow.problem.losses import Loss, as_loss
from reluflow.problem.problem import Problem

#: Points whose orbit makes :func:`xor_orbit`.
ORBIT_POINTS = ((0.88, 0.05, 0.06), (0.85, 0.08, -0.03), (0.9, 0.045, 0.1))


def _cloud(rng: Rng, draws: int, std: float, radius: float) -> Array:
    """Gaussian points of the plane that fall inside a disc, moved to e1."""
    draws = whole(draws, "draws", 1)
    points = std * generator_of(rng).standard_normal((draws, 2))
    kept = points[np.linalg.norm(points, axis=1) < radius]
    if not len(kept):
        raise ReluflowError(
            f"none of {draws} draws of standard deviation {std:g} fell within radius {radius:g}: "
            "raise draws or radius, or change rng"
        )
    around_e1: Array = kept + np.array([1.0, 0.0])
    return around_e1


def _with_mirror(X: Array, column: int) -> Array:
    """X followed by its mirror image in one coordinate."""
    mirror = X.copy()
    mirror[:, column] *= -1.0
    return np.vstack([X, mirror])


def _swap(X: Array) -> Array:
    """Coordinates 1 and 2 exchanged."""
    return np.hstack([X[:, [1, 0]], X[:, 2:]])


def _xor_known(problem: Problem) -> dict[str, Any]:
    """The four directions of exactly symmetric XOR data, their rate and the largest margin."""
    size = np.abs(problem.X[:, :2])
    main, off = size.max(axis=1), size.min(axis=1)
    directions = np.zeros((4, problem.d))
    directions[[0, 1, 2, 3], [0, 1, 0, 1]] = (1.0, 1.0, -1.0, -1.0)
    distance = np.sqrt((main - 1.0) ** 2 + off**2 + np.sum(problem.X[:, 2:] ** 2, axis=1))
    first = problem.X[:, 0]
    known: dict[str, Any] = {
        "directions": directions,
        "signs": np.array([1.0, -1.0, 1.0, -1.0]),
        "delta": float(distance.max()),
        "growth_rate": float(problem.pull @ np.maximum(first, problem.leak * first)),
    }
    if problem.leak == 0.0:
        known["max_margin"] = float((main - off).min()) / 8
    return known


def _xor(
    plus: Array, name: str, loss: str | Loss, leak: float, reduction: str, **known: Any
) -> Problem:
    X = np.vstack([plus, _swap(plus)])
    y = np.repeat([1.0, -1.0], len(plus))
    problem = Problem(X, y, as_loss(loss), leak, reduction, name=name)
    return problem.replace(known={**_xor_known(problem), **known})


@check_arguments
def symmetric_xor(
    rng: Rng = 0,
    *,
    draws: int = 16,
    std: float = 0.005,
    radius: float = 0.01,
    duplicates: bool = True,
    loss: str | Loss = "logistic",
    leak: float = 0.0,
    reduction: str = "mean",
) -> Problem:
    r"""Four tight clusters around +-e1 (label +1) and +-e2 (label -1) ([TK24]_ Figures 1, 5-7).

    Gaussian points kept inside a disc are moved to e1, mirrored in both coordinates, and swapped
    into the other class, so the labelled set has every symmetry of Assumption 5.1.

    Parameters
    ----------
    rng : int, Generator, SeedSequence or None
        Source of randomness; the same sample every time by default, None for a fresh one.
    draws, std, radius : int, float, float
        Points drawn, their standard deviation, and the disc they must fall in.
    duplicates : bool
        Whether every point occurs twice, as in the paper's code, where a third mirror changes
        nothing in the plane. The mean loss does not depend on it.
    loss, leak, reduction
        The paper's are the logistic loss, ReLU and the mean.

    Returns
    -------
    Problem
        d=2, n = 16 times the number of kept points (8 times without duplicates). ``known``: the
        four ``directions`` with outer ``signs``, the ``growth_rate`` G(e1) of neurons along
        them, ``delta`` (largest distance to a cluster centre), and ``max_margin`` (ReLU only),
        the margin of four equal neurons.

    Notes
    -----
    Labels follow the paper's text; its code has the opposite sign. The paper prints cluster
    indices that disagree with its proofs; these are the proofs'. ``growth_rate`` is the largest
    one while delta < 1/6 (Lemma 5.2).

    Examples
    --------
    >>> problem = symmetric_xor()
    >>> problem.n == 16 * (problem.n // 16), bool(problem.known["delta"] < 0.01)
    (True, True)
    """
    cloud = _cloud(rng, draws, std, radius)
    plus = _with_mirror(_with_mirror(cloud, 0), 1)
    if duplicates:
        plus = np.vstack([plus, plus])
    return _xor(plus, "xor", loss, leak, reduction)


@check_arguments
def skewed_xor(
    alpha: float = math.pi / 2,
    rng: Rng = 0,
    *,
    draws: int = 128,
    std: float = 0.1 / math.sqrt(2),
    radius: float = 0.2,
    loss: str | Loss = "logistic",
    leak: float = 0.0,
    reduction: str = "mean",
) -> Problem:
    r"""Two pairs of opposite clusters whose axes meet at an angle alpha ([TK24]_ Figure 2).

    Parameters
    ----------
    alpha : float
        Angle between the axis of the +1 class (e1) and that of the -1 class, in (0, pi); the
        paper has pi/2 and pi/3.
    rng : int, Generator, SeedSequence or None
        Source of randomness; the same sample every time by default, None for a fresh one.
    draws, std, radius : int, float, float
        Points drawn, their standard deviation, and the disc they must fall in.
    loss, leak, reduction
        The paper's are the logistic loss, ReLU and the mean.

    Returns
    -------
    Problem
        d=2, n = 4 times the number of kept points. ``known``: ``positive_angles`` and
        ``negative_angles``, where neurons of either outer sign gather when clusters shrink to
        points (each perpendicular to the other class), and ``point_growth_rate`` for such
        clusters (ReLU). A sample with wide clusters moves the angles by a few hundredths.
    """
    alpha = number(alpha, "alpha", 0.0, math.pi, "the paper has pi/2 and pi/3")
    plus = _with_mirror(_cloud(rng, draws, std, radius), 0)
    c, s = math.cos(alpha), math.sin(alpha)
    X = np.vstack([plus, plus @ np.array([[c, s], [s, -c]])])
    y = np.repeat([1.0, -1.0], len(plus))
    problem = Problem(X, y, as_loss(loss), leak, reduction, name="skewed-xor")
    known: dict[str, Any] = {
        "alpha": alpha,
        "positive_angles": np.array([alpha - math.pi / 2, alpha + math.pi / 2]),
        "negative_angles": np.array([-math.pi / 2, math.pi / 2]),
    }
    if problem.leak == 0.0:
        # a quarter of the samples pull on such a neuron, each with product sin(alpha)
        known["point_growth_rate"] = float(problem.pull[0]) * problem.n / 4 * s
    return problem.replace(known=known)


@check_arguments
def ideal_xor(
    *, loss: str | Loss = "logistic", leak: float = 0.0, reduction: str = "mean"
) -> Problem:
    """The four points +-e1 (label +1) and +-e2 (label -1), the XOR of [TK24]_ without spread.

    Every extremum of G sits on a kink here (each direction is orthogonal to the other class), so
    the theorems on regular directions do not apply; a fixture of ours.

    Parameters
    ----------
    loss, leak, reduction
        As for :class:`reluflow.Problem`.

    Returns
    -------
    Problem
    """
    return _xor(np.array([[1.0, 0.0], [-1.0, 0.0]]), "ideal-xor", loss, leak, reduction)


@check_arguments
def xor_orbit(
    points: ArrayLike = ORBIT_POINTS,
    *,
    loss: str | Loss = "logistic",
    leak: float = 0.0,
    reduction: str = "mean",
) -> Problem:
    """Orbit of a few points under the XOR symmetries, in any dimension ([TK24]_ Theorem 4.1).

    The symmetries of Assumption 5.1: sign flips of coordinate 1, of coordinate 2 and of all
    others jointly, and the swap of coordinates 1 and 2, which negates the label. The three
    default points near e1 in three dimensions are ours.

    Parameters
    ----------
    points : array, shape (p, d)
        With label +1, in two dimensions or more.
    loss, leak, reduction
        As for :class:`reluflow.Problem`.

    Returns
    -------
    Problem
        ``known`` as for :func:`symmetric_xor`.
    """
    base = frozen_array(points, "points", 2)
    if base.shape[0] == 0 or base.shape[1] < 2:
        raise ReluflowError(
            f"points must hold at least one point of at least 2 coordinates, got {base.shape}"
        )
    plus = _with_mirror(_with_mirror(base, 0), 1)
    if base.shape[1] > 2:
        plus = np.vstack([plus, plus * np.array([1.0, 1.0] + [-1.0] * (base.shape[1] - 2))])
    return _xor(plus, "xor-orbit", loss, leak, reduction)


@check_arguments
def remaining_fixture(
    *, loss: str | Loss = "logistic", leak: float = 0.0, reduction: str = "mean"
) -> Problem:
    """Six points whose neurons grow at seven different rates, for the slower group R of [TK24]_.

    On exact XOR data nearly every neuron grows at the top rate; here most do not. The points are
    ours. ``known`` (ReLU only): ``growth_rates``, in descending order, and ``directions`` where
    neurons of the outer ``signs`` come to rest; each rate is the norm of the pull of the active
    samples after projection off the sample that lies on the kink, if any. The third direction is
    exactly orthogonal to the third sample and attracts only from the side where that is active;
    the fifth is orthogonal to the first sample and attracts from both.

    Parameters
    ----------
    loss, leak, reduction
        As for :class:`reluflow.Problem`.

    Returns
    -------
    Problem
    """
    X = np.array(
        [
            (0.9, 0.1, 0.2),
            (0.2, -0.8, 0.1),
            (-0.5, 0.3, 0.6),
            (0.1, 0.5, -0.7),
            (-0.6, -0.4, -0.2),
            (0.3, 0.3, 0.3),
        ]
    )
    y = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    problem = Problem(X, y, as_loss(loss), leak, reduction, name="remaining")
    if problem.leak > 0.0:
        return problem
    # (outer sign, active samples, samples on the kink)
    ends: list[tuple[int, list[int], list[int]]] = [
        (1, [0, 1], [5]),
        (-1, [3, 4], []),
        (1, [0, 1, 5], [2]),
        (-1, [3, 5], [0]),
        (-1, [3], [0]),
        (1, [2, 5], [4]),
        (1, [0, 2, 5], []),
    ]
    directions = np.empty((len(ends), 3))
    rates = np.empty(len(ends))
    for i, (sign, active, kink) in enumerate(ends):
        D = sign * problem.pull[active] @ X[active]
        for k in kink:
            D = D - X[k] * (D @ X[k]) / (X[k] @ X[k])
        rates[i] = np.linalg.norm(D)
        directions[i] = D / rates[i]
    signs = np.array([float(sign) for sign, _, _ in ends])
    return problem.replace(known={"growth_rates": rates, "signs": signs, "directions": directions})
