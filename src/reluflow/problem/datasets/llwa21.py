"""Data of [LLWA21]_: separable classes on which training does or does not maximise the margin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from reluflow.arrays import Array, generator_of
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.problem.datasets._common import Rng, hard_margin, number, whole
from reluflow.problem.losses import Loss, as_loss
from reluflow.problem.problem import Problem


def _symmetric_known(problem: Problem) -> dict[str, Any]:
    """Linear separator, the largest margin of any network (Theorem 4.2) and the early rate."""
    best = hard_margin(problem.X, problem.y)
    D = (1 + problem.leak) / 2 * (problem.X.T @ problem.pull)
    return {
        "w_star": best.w,
        "gamma_star": best.margin,
        "max_margin": (1 + problem.leak) / 4 * best.margin,
        "D": D,
        "growth_rate": float(np.linalg.norm(D)),
        "radius": float(problem.norms.max()),
    }


def symmetric_problem(
    plus: Array, name: str, loss: str | Loss, leak: float, reduction: str, **known: Any
) -> Problem:
    """Points of label +1 followed by their negatives of label -1, with what is known of them."""
    X = np.vstack([plus, -plus])
    y = np.repeat([1.0, -1.0], len(plus))
    problem = Problem(X, y, as_loss(loss), leak, reduction, name=name)
    return problem.replace(known={**_symmetric_known(problem), **known})


@check_arguments
def symmetric_separable(
    pairs: int = 8,
    d: int = 3,
    gap: float = 0.3,
    rng: Rng = 0,
    *,
    loss: str | Loss = "logistic",
    leak: float = 0.5,
    reduction: str = "mean",
) -> Problem:
    r"""Separable data closed under (x, y) -> (-x, -y) ([LLWA21]_ Theorems 4.2, 4.3).

    Gaussian points, folded to the side of e_1 and moved away from it by ``gap``, have label +1;
    their negatives have label -1. The law is ours: the paper asks only for the symmetry.

    Parameters
    ----------
    pairs, d : int
        Number of pairs (n is twice that) and of features.
    gap : float
        Positive; a lower bound on the margin of the linear separator.
    rng : int, Generator, SeedSequence or None
        Source of randomness; the same sample every time by default, None for a fresh one.
    loss, leak, reduction
        The paper's loss is the mean logistic one with a leak in (0, 1); 1/2 is Figure 1's.

    Returns
    -------
    Problem
        ``known``: ``w_star`` and ``gamma_star`` (unit separator and its margin), ``max_margin``
        = (1 + leak)/4 gamma_star, the largest normalised margin of any network; ``D``, the
        direction small neurons turn to (or away from), and its norm ``growth_rate``; ``radius``.

    Notes
    -----
    The paper assumes inputs in the unit ball. With R = ``radius``, the data X/R with weights
    times sqrt(R) and time times R give the same outputs. Its rate prints (1 + leak)/2 times the
    mean of y x; (1 + leak)/4 is right for the logistic loss.

    Examples
    --------
    >>> problem = symmetric_separable(leak=0.0)
    >>> bool(problem.known["max_margin"] == problem.known["gamma_star"] / 4)
    True
    """
    gap = number(gap, "gap", 0.0, math.inf, "the margin must be positive")
    shape = whole(pairs, "pairs", 1), whole(d, "d", 1)
    plus = generator_of(rng).standard_normal(shape)
    plus[:, 0] = np.abs(plus[:, 0]) + gap
    return symmetric_problem(plus, "symmetric-separable", loss, leak, reduction)


@check_arguments
def figure1_left(
    *, loss: str | Loss = "logistic", leak: float = 0.5, reduction: str = "mean"
) -> Problem:
    r"""Six symmetric points with a nonlinear KKT direction ([LLWA21]_ Figure 1 left).

    Inputs (1, cot b), (1, 0), (1, -cot b) and their negatives, b chosen by the leak so that a
    three-neuron network with a bent boundary satisfies the KKT conditions of margin
    maximisation without the largest margin. Leak 0 gives b = 45 degrees.

    Parameters
    ----------
    loss, leak, reduction
        As for :class:`reluflow.Problem`.

    Returns
    -------
    Problem
        ``known`` as for :func:`symmetric_separable`, and ``beta`` (b), ``kkt_W``, ``kkt_a``,
        ``kkt_multipliers`` (all margins at least 1) and ``kkt_margin``.

    Notes
    -----
    cos b solves cos 2b = leak (2 sin^2 b + cos b), in closed form. The third neuron's sign is the
    one that makes all margins 1: w_3 = |a_3| (-1, 0).

    Examples
    --------
    >>> known = figure1_left(leak=0.5).known
    >>> round(known["kkt_margin"], 6), known["max_margin"]
    (0.356107, 0.375)
    """
    leak = number(leak, "leak", 0.0, 1.0, "0.5 is the paper's", closed="low")
    root = math.sqrt(leak**2 + 8 * (1 + leak) * (1 + 2 * leak))
    cos = (leak + root) / (4 * (1 + leak))
    b = math.acos(cos)
    sin, cot = math.sin(b), cos / math.sin(b)
    side, third = (2 * (1 + leak) * cos) ** -0.5, (1 + leak) ** -0.5
    outer = sin**2 / (cos * (1 - leak))
    problem = symmetric_problem(
        np.array([[1.0, cot], [1.0, 0.0], [1.0, -cot]]), "figure1-left", loss, leak, reduction
    )
    known = {
        "beta": b,
        "kkt_W": np.array([[side * cos, side * sin], [side * cos, -side * sin], [-third, 0.0]]),
        "kkt_a": np.array([side, side, -third]),
        "kkt_multipliers": np.array([outer, 0.0, outer, 0.0, 1 - 2 * leak * outer, 0.0]),
        "kkt_margin": (1 + leak) / 4 * 2 * cos / (1 + cos),
        "w_star": np.array([1.0, 0.0]),
        "gamma_star": 1.0,
        "max_margin": (1 + leak) / 4,
    }
    return problem.replace(known={**problem.known, **known})


@check_arguments
def figure1_middle(
    *,
    positive: ArrayLike = (0.1, 6.0, 12.0),
    negative: ArrayLike = (1.0, 3.0),
    height: float = 0.05,
    loss: str | Loss = "logistic",
    leak: float = 0.5,
    reduction: str = "mean",
) -> Problem:
    r"""Data where one neuron wins and two would have more margin ([LLWA21]_ Figure 1 middle).

    Inputs (x, 1, c) and (x, -1, c) with label +1 and (-x, 0, c) with label -1. The paper gives
    the pattern; the numbers are ours. With e and e' the smallest x of either class, the one-neuron
    solution has support (e, +-1, c) when leak (e e' - c^2) > e^2 + c^2.

    Parameters
    ----------
    positive, negative : array of floats
        The x of either class, positive. (0.1, 10, 20) with (1, 5) is a harder variant that
        needs a smaller initial scale to end in one neuron.
    height : float
        The constant third feature c, positive.
    loss, leak, reduction
        The paper's are the mean logistic loss and leak 1/2.

    Returns
    -------
    Problem
        ``known``: ``w_plus`` = (e, 0, c)/norm and its one-neuron margin ``gamma_plus``, the
        limit's normalised margin ``limit_margin`` = gamma_plus/2, ``mu_plus`` and ``mu_minus``
        (mean of y x with inputs of the other class multiplied by the leak), and ``radius``.
    """
    up, down = _positive(positive, "positive"), _positive(negative, "negative")
    c = number(height, "height", 0.0, math.inf, "0.05 is the default")
    e, e2 = float(up.min()), float(down.min())
    if not leak * (e * e2 - c**2) > e**2 + c**2:
        raise ReluflowError(
            f"leak (e e' - c^2) = {leak * (e * e2 - c**2):.4g} must exceed e^2 + c^2 = "
            f"{e**2 + c**2:.4g}: lower the smallest positive x ({e:g}) or height ({c:g})"
        )
    rows = [(x, s, c) for x in up for s in (1.0, -1.0)] + [(-x, 0.0, c) for x in down]
    y = np.repeat([1.0, -1.0], [2 * len(up), len(down)])
    problem = Problem(
        np.array(rows),
        y,
        as_loss(loss),
        leak,
        reduction,
        name="figure1-middle",
    )
    gamma = math.hypot(e, c)
    plus, minus = y > 0, y < 0
    Z = y[:, None] * problem.X
    known = {
        "w_plus": np.array([e, 0.0, c]) / gamma,
        "gamma_plus": gamma,
        "limit_margin": gamma / 2,
        "mu_plus": np.where(plus, 1.0, leak) @ Z / problem.n,
        "mu_minus": np.where(minus, 1.0, leak) @ Z / problem.n,
        "radius": float(problem.norms.max()),
    }
    return problem.replace(known=known)


def _positive(values: ArrayLike, name: str) -> Array:
    """Positive numbers as a non-empty array."""
    array = np.asarray(values, dtype=float).ravel()
    if array.size == 0 or not (np.isfinite(array).all() and (array > 0).all()):
        raise ReluflowError(f"{name} must hold positive numbers, got {values!r}")
    return array


@check_arguments
def gaussian_teacher(
    n: int = 100,
    d: int = 50,
    shift: float = 0.4,
    rng: Rng = 0,
    *,
    symmetric: bool = False,
    bias: float | None = 0.1,
    loss: str | Loss = "logistic",
    leak: float = 0.5,
    reduction: str = "mean",
) -> Problem:
    r"""Gaussian points labelled by a hyperplane and moved away from it ([LLWA21]_ Table 1).

    Parameters
    ----------
    n : int
        Number of samples, 10, 20, ..., 100 in the table; ``symmetric`` doubles it.
    d : int
        Number of features before the bias coordinate.
    shift : float
        How far points move along the normal e_1 of the teacher; the paper says "mildly",
        0.4 to 0.45 reproduces its column of linear errors.
    rng : int, Generator, SeedSequence or None
        Source of randomness; the same sample every time by default, None for a fresh one.
    symmetric : bool
        Add (-x, -y) for every sample and drop the bias coordinate: then the network does end in
        the linear max-margin classifier, which it does not on the paper's data (our finding).
    bias : float or None
        Value of the constant coordinate.
    loss, leak, reduction
        The paper's leak is not stated; 1/2 is the one of its Figure 1.

    Returns
    -------
    Problem
        ``known``: ``teacher`` (unit normal, bias coordinate included), ``shift``, ``w_star`` and
        ``gamma_star`` (hard-margin separator, without intercept beyond the bias coordinate); the
        symmetric variant has all that ``symmetric_separable`` lists.
        :func:`gaussian_teacher_test` draws a test set from the same law.
    """
    shift = number(shift, "shift", 0.0, math.inf, "0.4 is the default", closed="low")
    X, y = _teacher_sample(whole(n, "n", 1), whole(d, "d", 1), shift, rng)
    if symmetric:
        plus = y[:, None] * X
        teacher = np.eye(1, d)[0]
        return symmetric_problem(
            plus, "gaussian-teacher", loss, leak, reduction, teacher=teacher, shift=shift
        )
    problem = Problem(X, y, as_loss(loss), leak, reduction, bias, name="gaussian-teacher")
    best = hard_margin(problem.X, problem.y)
    known = {
        "teacher": np.eye(1, problem.d)[0],
        "shift": shift,
        "w_star": best.w,
        "gamma_star": best.margin,
    }
    return problem.replace(known=known)


@check_arguments
def gaussian_teacher_test(problem: Problem, n: int = 10_000, rng: Rng = 1) -> Problem:
    """A test set from the law of a :func:`gaussian_teacher` problem, with the same options.

    Parameters
    ----------
    problem : Problem
        Made by :func:`gaussian_teacher`.
    n : int
        Samples.
    rng : seed or Generator
        Other than that of the training set.

    Returns
    -------
    Problem
    """
    if "shift" not in problem.known:
        raise ReluflowError(
            f"problem {problem.name!r} has no teacher: expected one made by gaussian_teacher()"
        )
    d = problem.d - (problem.bias is not None)
    X, y = _teacher_sample(whole(n, "n", 1), d, problem.known["shift"], rng)
    known = {key: problem.known[key] for key in ("teacher", "shift")}
    return problem.replace(X=X, y=y, name="gaussian-teacher-test", known=known)


def _teacher_sample(n: int, d: int, shift: float, rng: Rng) -> tuple[Array, Array]:
    X = generator_of(rng).standard_normal((n, d))
    y = np.where(X[:, 0] >= 0, 1.0, -1.0)
    X[:, 0] += shift * y
    return X, y
