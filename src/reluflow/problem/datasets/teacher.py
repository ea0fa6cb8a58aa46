"""The Gaussian teacher of [LLWA21]_ Table 1 and Figure 4."""

from __future__ import annotations

import math

import numpy as np

from reluflow.arrays import Array
from reluflow.errors import ReluflowError
from reluflow.problem.datasets._common import Rng, hard_margin, number, whole
from reluflow.problem.datasets.llwa21 import symmetric_problem
from reluflow.problem.losses import Loss, as_loss
from reluflow.problem.problem import Problem


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


def gaussian_teacher_test(problem: Problem, n: int = 10_000, rng: Rng = 1) -> Problem:
    """A test set from the law of a :func:`gaussian_teacher` problem, with the same options."""
    if "shift" not in problem.known:
        raise ReluflowError(
            f"problem {problem.name!r} has no teacher: expected one made by gaussian_teacher()"
        )
    d = problem.d - (problem.bias is not None)
    X, y = _teacher_sample(whole(n, "n", 1), d, problem.known["shift"], rng)
    known = {key: problem.known[key] for key in ("teacher", "shift")}
    return problem.replace(X=X, y=y, name="gaussian-teacher-test", known=known)


def _teacher_sample(n: int, d: int, shift: float, rng: Rng) -> tuple[Array, Array]:
    X = np.random.default_rng(rng).standard_normal((n, d))
    y = np.where(X[:, 0] >= 0, 1.0, -1.0)
    X[:, 0] += shift * y
    return X, y
