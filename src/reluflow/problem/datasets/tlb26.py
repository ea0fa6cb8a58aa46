"""Data of [TLB26]_: orthonormal inputs, on which a network learns one neuron at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from reluflow.arrays import Array, frozen_array, generator_of
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.problem.datasets._common import Rng, is_square, whole
from reluflow.problem.losses import Loss, as_loss
from reluflow.problem.problem import Problem

LABEL_LAWS = ("half_normal", "normal", "ones", "signs")


def _draw_labels(law: str, n: int, rng: np.random.Generator) -> Array:
    if law == "half_normal":
        return np.abs(rng.standard_normal(n))
    if law == "normal":
        return rng.standard_normal(n)
    if law == "ones":
        return np.ones(n)
    if law == "signs":
        return rng.choice(np.array([-1.0, 1.0]), n)
    raise ReluflowError(
        f"unknown law of labels {law!r}: expected one of {', '.join(LABEL_LAWS)}, or give y"
    )


def _rate(problem: Problem) -> float:
    """c / n: pull of a sample on a silent network over its label."""
    ratio = problem.loss.slope_at_zero(np.ones(1))[0]
    return -problem.weight * float(ratio)


def _orthonormal_known(problem: Problem) -> dict[str, Any]:
    y = problem.y
    plus, minus = float(np.linalg.norm(y[y > 0])), float(np.linalg.norm(y[y < 0]))
    known: dict[str, Any] = {
        "min_norm2": 2.0 * (plus + minus),
        "rate": _rate(problem),
        "start_loss": problem.silent_loss,
    }
    if is_square(problem.loss) and y.any():
        # a neuron active on every point of a sign jumps first, one active on the smallest last
        known["first_jump_at_least"] = 1.0 / (known["rate"] * max(plus, minus))
        known["last_jump_at_most"] = 1.0 / (known["rate"] * float(np.abs(y[y != 0]).min()))
    return known


@check_arguments
def orthonormal(
    n: int | None = None,
    y: ArrayLike | None = None,
    *,
    law: str = "half_normal",
    d: int | None = None,
    rotate: bool = False,
    rng: Rng = 0,
    loss: str | Loss = "half_square",
    reduction: str = "mean",
) -> Problem:
    r"""Orthonormal inputs with any labels ([TLB26]_ Figures 1 and 3-6).

    Parameters
    ----------
    n : int, optional
        Number of samples: 64 as in Figure 1, or the length of ``y``.
    y : array, shape (n,), optional
        Labels; drawn by ``law`` when missing.
    law : {"half_normal", "normal", "ones", "signs"}
        \|N(0,1)\| (Figures 1, 3, 4), N(0,1) (Figures 5, 6), all 1, or fair signs.
    d : int, optional
        Number of features, at least n; n by default.
    rotate : bool
        Draw the inputs as random orthonormal vectors instead of unit vectors. The dynamics
        do not depend on it.
    rng : int, Generator, SeedSequence or None
        Source of randomness; the same sample every time by default, None for a fresh one.
    loss, reduction
        Half-square mean by default, our reading of the theory. "square" is PyTorch's
        MSELoss, on which the figures were run.

    Returns
    -------
    Problem
        Always ReLU, to which the theory is limited. ``known``: ``min_norm2``, the smallest
        squared norm of an interpolating network, 2(\|y+\| + \|y-\|); ``rate``, the factor c/n of
        growth exponents; ``start_loss``; and, in time divided by log(1/scale), bounds
        ``first_jump_at_least`` and ``last_jump_at_most`` on the jump times of any start.

    Examples
    --------
    >>> problem = orthonormal(y=[3.0, 4.0])
    >>> problem.known["min_norm2"], problem.known["first_jump_at_least"]
    (10.0, 0.4)
    """
    generator = generator_of(rng)
    if y is None:
        n = whole(64 if n is None else n, "n", 1)
        labels = _draw_labels(law, n, generator)
    else:
        labels = frozen_array(y, "y", 1)
        if n is not None and n != len(labels):
            raise ReluflowError(f"n is {n} but y has {len(labels)} labels: drop n or change y")
        n = whole(len(labels), "the number of labels", 1)
    d = whole(n if d is None else d, "d", n)
    if rotate:
        Q, R = np.linalg.qr(generator.standard_normal((d, n)))
        X = (Q * np.sign(np.diagonal(R))).T
    else:
        X = np.eye(n, d)
    problem = Problem(X, labels, as_loss(loss), 0.0, reduction, name="orthonormal")
    return problem.replace(known=_orthonormal_known(problem))


@check_arguments
def golden(*, loss: str | Loss = "half_square", reduction: str = "mean") -> Problem:
    r"""Four unit vectors and three given neurons, with every jump known ([TLB26]_ Algorithm 1).

    The instance is ours: X = I_4, y = (4, 3, 2, 1), neurons of outer sign +1 with the unit
    directions ``known["W0"]``. Each jump time is when the exponent of a neuron, which grows by
    (c/n) times the norm of its unfitted labels, reaches zero from -1.

    Parameters
    ----------
    loss, reduction
        As for :class:`reluflow.Problem`.

    Returns
    -------
    Problem
        ``known``: ``W0`` (3, 4), ``signs``, ``order`` and ``sets`` (which neuron jumps, on which
        samples), ``jump_times`` in units of log(1/scale), ``exponents`` of the three neurons
        after each jump, ``norm2`` of the limit, ``first_half_fit_offset`` (the first sample set
        is half fitted at log(1/scale) * jump_times[0] + offset as scale tends to 0; half-square
        and square losses), and what :func:`orthonormal` lists.

    Examples
    --------
    >>> golden().known["jump_times"].round(7)
    array([0.8      , 1.3577795, 2.3216923])
    """
    y = np.array([4.0, 3.0, 2.0, 1.0])
    problem = Problem(np.eye(4), y, as_loss(loss), 0.0, reduction, name="golden")
    rate = _rate(problem)
    W0 = 0.5 * np.array([[1, 1, -1, -1], [-1, 1, 1, -1], [-1, -1, 1, 1]], dtype=float)
    # Plateau 0: active sets {1,2}, {2,3}, {3,4}. Neuron 1 is fastest.
    v = math.hypot(4, 3)
    t1 = 1 / (rate * v)
    beta2, beta3 = -1 + t1 * rate * math.hypot(3, 2), -1 + t1 * rate * math.hypot(2, 1)
    # Plateau 1, samples 1 and 2 fitted: {3} for neuron 2 and {3,4} for neuron 3.
    t2 = t1 - beta2 / (rate * 2)
    beta3_after = beta3 + (t2 - t1) * rate * math.hypot(2, 1)
    # Plateau 2, sample 3 fitted too: {4} for neuron 3.
    t3 = t2 - beta3_after / (rate * 1)
    cosine = (4 + 3) / 2 / v  # of neuron 1 at the start with the direction it turns to
    known = {
        "W0": W0,
        "signs": np.ones(3),
        "order": (0, 1, 2),
        "sets": ((0, 1), (2,), (3,)),
        "jump_times": np.array([t1, t2, t3]),
        "exponents": np.array([[0.0, beta2, beta3], [0.0, 0.0, beta3_after], [0.0, 0.0, 0.0]]),
        "norm2": 2.0 * (v + 2 + 1),
        "first_half_fit_offset": (math.log(v) / 2 - math.log((1 + cosine) / 2)) / (rate * v),
    }
    return problem.replace(known={**_orthonormal_known(problem), **known})
