"""Data of [BF24]_: small regression sets on which training stops at the least-squares line."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from reluflow.arrays import Array, generator_of
from reluflow.checks import check_arguments
from reluflow.problem.datasets._common import Rng, angle_of, is_square, number, whole
from reluflow.problem.losses import Loss, as_loss
from reluflow.problem.problem import Problem

#: Knots (x, y) of the piecewise-linear teacher of Figure 3.
STEWART_KNOTS = (
    (-1.0, 0.0),
    (-0.7, 0.7),
    (-0.55, 0.5),
    (-0.4, 1.0),
    (0.0, 0.0),
    (0.5, 1.0),
    (0.6, 0.6),
    (0.7, 0.7),
    (1.0, 0.0),
)


def blow_up_time(growth_rate: float, scale: float) -> float:
    """log(1/scale) / growth_rate: when weights that start at ``scale`` reach order one."""
    return -math.log(scale) / growth_rate


def _least_squares_known(problem: Problem) -> dict[str, Any]:
    """Where neurons turn first (D*), and the line where training of a ReLU network stops."""
    X, y = problem.X, problem.y
    D: Array = X.T @ problem.pull
    rate = float(np.linalg.norm(D))
    known: dict[str, Any] = {
        "D_star": D,
        "D_angle": angle_of(D),
        "growth_rate": rate,
        "blow_up_time": partial(blow_up_time, rate),
    }
    if is_square(problem.loss) and problem.leak == 0.0:
        beta = np.linalg.solve(X.T @ X, X.T @ y)
        residuals = y - X @ beta
        known |= {
            "beta_star": beta,
            "beta_angle": angle_of(beta),
            "residuals": residuals,
            "limit_outputs": X @ beta,
            "limit_mse": float(np.mean(residuals**2)),
            "limit_loss": float(problem.value(X @ beta)),
        }
    return known


def _problem(
    X: Array,
    y: Array,
    name: str,
    loss: str | Loss,
    leak: float,
    reduction: str,
    bias: float | None = 1.0,
) -> Problem:
    problem = Problem(X, y, as_loss(loss), leak, reduction, bias, name=name)
    return problem.replace(known=_least_squares_known(problem))


@check_arguments
def three_points(
    *, loss: str | Loss = "half_square", leak: float = 0.0, reduction: str = "mean"
) -> Problem:
    r"""Three points in one dimension that a wide network fails to fit ([BF24]_ Figure 2).

    Small neurons with a positive outer weight turn to D*, grow as one, and stop at the
    least-squares line although two neurons interpolate the data.

    Parameters
    ----------
    loss : str or Loss
        The paper analyses the half-square; its code trains on "square", twice as fast in time.
    leak : float
        Negative slope; the known limit is listed for ReLU (0) only.
    reduction : {"mean", "sum"}
        The paper's is the mean.

    Returns
    -------
    Problem
        n=3, d=2 (a constant feature 1 is appended). ``known``: ``D_star`` with ``D_angle``
        (radians) and norm ``growth_rate``, ``blow_up_time(scale)``, and for square losses with
        ReLU ``beta_star``, ``beta_angle``, ``residuals``, ``limit_outputs``, ``limit_mse``,
        ``limit_loss``.

    Notes
    -----
    The data satisfy Assumption 3 for no box size (y_3 < 1) and fail Assumption 5: the figure
    illustrates Theorem 2 without being covered by it. The network equals the line only where
    all its active neurons are active, not for every x.

    Examples
    --------
    >>> problem = three_points()
    >>> problem.known["beta_star"].round(4)
    array([-0.0615,  0.6436])
    >>> round(problem.known["limit_mse"], 8)
    0.17504274
    """
    x, y = np.array([-0.75, -0.5, 0.125]), np.array([1.1, 0.1, 0.8])
    return _problem(x[:, None], y, "three-points", loss, leak, reduction)


@check_arguments
def a3c(*, loss: str | Loss = "half_square", leak: float = 0.0, reduction: str = "mean") -> Problem:
    """Three symmetric points inside Assumption 3 of [BF24]_, with a constant least-squares fit.

    The coordinates are ours: x = -0.95, 0, 0.95 and y = 1.05, 0.05, 1.05 with a constant feature
    1. By symmetry beta* is the constant mean(y), so the limit MSE is the variance of y.

    Parameters
    ----------
    loss, leak, reduction
        As for :class:`reluflow.Problem`.

    Returns
    -------
    Problem
    """
    x, y = np.array([-0.95, 0.0, 0.95]), np.array([1.05, 0.05, 1.05])
    return _problem(x[:, None], y, "a3c", loss, leak, reduction)


@check_arguments
def assumption3_box(
    box_eta: float = 0.1,
    rng: Rng = 0,
    *,
    loss: str | Loss = "half_square",
    leak: float = 0.0,
    reduction: str = "mean",
) -> Problem:
    """Three points of the plane drawn from the boxes of Assumption 3 of [BF24]_.

    Parameters
    ----------
    box_eta : float
        Size of the boxes, in (0, 1/6]; Theorem 2 asks for less than 1/6.
    rng : int, Generator, SeedSequence or None
        Source of randomness; the same sample every time by default, None for a fresh one.
    loss, leak, reduction
        As for :func:`three_points`.

    Returns
    -------
    Problem
        n=3, d=2, no constant feature (the second coordinates vary); ``known`` as for
        :func:`three_points`, plus ``box_eta``.

    Notes
    -----
    The uniform law is ours: the paper only asks for points in the boxes. Assumption 3 is said to
    imply Assumption 5; it fails near some corners from box_eta of about 0.098 on.
    """
    e = number(box_eta, "box_eta", 0.0, 1 / 6, "Theorem 2 covers boxes below 1/6", closed="high")
    u = 1.0 - generator_of(rng).random(9)  # in (0, 1], as the half-open boxes ask
    X = np.array(
        [
            [-1 + e * u[0], 1 + e * u[1]],
            [e * (2 * u[2] - 1), 1 + e * (2 * u[3] - 1)],
            [1 - e * u[4], 1 + e * u[5]],
        ]
    )
    y = np.array([1 + e * u[6], e * u[7], 1 + e * u[8]])
    problem = _problem(X, y, "assumption3", loss, leak, reduction, bias=None)
    return problem.replace(known={**problem.known, "box_eta": e})


@check_arguments
def stewart(
    n: int = 40,
    rng: Rng = 0,
    *,
    loss: str | Loss = "half_square",
    leak: float = 0.0,
    reduction: str = "mean",
) -> Problem:
    r"""Samples of a piecewise-linear teacher with eight ReLU neurons ([BF24]_ Figure 3).

    Parameters
    ----------
    n : int
        Number of x, uniform on [-1, 1]; the paper has 40 and does not list them.
    rng : int, Generator, SeedSequence or None
        Source of randomness; the same sample every time by default, None for a fresh one.
    loss, leak, reduction
        As for :func:`three_points`; the paper's code trains on "square".

    Returns
    -------
    Problem
        d=2 (a constant feature 1 is appended), x ascending. ``known``: ``knots`` (9, 2) and the
        teacher as a network on (x, 1), ``teacher_W`` (8, 2) and ``teacher_a`` (8,).

    Examples
    --------
    >>> import numpy as np
    >>> problem = stewart()
    >>> W, a = problem.known["teacher_W"], problem.known["teacher_a"]
    >>> bool(np.allclose(np.maximum(problem.X @ W.T, 0) @ a, problem.y))
    True
    """
    x = np.sort(generator_of(rng).uniform(-1.0, 1.0, whole(n, "n", 1)))
    knots = np.array(STEWART_KNOTS)
    slopes = np.diff(knots[:, 1]) / np.diff(knots[:, 0])
    bends = knots[:-1, 0]  # neuron i starts at knot i and changes the slope there
    known = {
        "knots": knots,
        "teacher_W": np.column_stack([np.ones_like(bends), -bends]),
        "teacher_a": np.diff(slopes, prepend=0.0),
    }
    y = np.interp(x, knots[:, 0], knots[:, 1])
    return Problem(
        x[:, None],
        y,
        as_loss(loss),
        leak,
        reduction,
        1.0,
        name="stewart",
        known=known,
    )
