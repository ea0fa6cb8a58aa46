"""From objects to the arrays that the kernels take."""

from __future__ import annotations

from functools import cache

import numpy as np

from reluflow.errors import ReluflowError
from reluflow.gradientflow.tableaux import dormand_prince_8
from reluflow.kernels.flow_types import N_NODES, Data, Method
from reluflow.problem import Problem


def check_decay(clock: str, decay: float) -> None:
    """Raise where weights decay and the clock is that of the loss."""
    if clock == "loss" and decay:
        raise ReluflowError(
            f"clock='loss' is for weights that grow for ever, got weight_decay={decay:g}: use "
            "clock='time'"
        )


def data_of(problem: Problem, clock: str, decay: float = 0.0) -> Data:
    """Arrays of a problem; ``clock="loss"`` divides the pull by the loss.

    With weight decay weights stay finite and the clock is time.
    """
    if clock not in ("time", "loss"):
        raise ReluflowError(f"clock must be 'time' or 'loss', got {clock!r}")
    if clock == "loss" and not problem.loss.margin:
        raise ReluflowError(
            f"clock='loss' is for losses that vanish at infinity (logistic, exponential), "
            f"got {problem.loss.name}: use clock='time'"
        )
    check_decay(clock, decay)
    if problem.loss.kernel < 0:
        raise ReluflowError(f"flow has no kernel for the loss {problem.loss.name!r}")
    return Data(
        np.ascontiguousarray(problem.X),
        problem.X.T.copy(),  # of one feature a view would do, but a frozen one: another signature
        problem.norms,
        np.ascontiguousarray(problem.y),
        problem.loss.kernel,
        float(problem.loss.kernel_factor),
        float(problem.weight),
        float(problem.leak),
        clock == "loss",
    )


@cache
def method() -> Method:
    """The Runge-Kutta pair with nodes for sampling the pull within a step."""
    table = dormand_prince_8()
    angle = np.pi * np.arange(N_NODES) / (N_NODES - 1)
    nodes = 0.5 * (1.0 - np.cos(angle))
    fit = np.linalg.inv(np.polynomial.chebyshev.chebvander(2.0 * nodes - 1.0, N_NODES - 1))
    times = np.concatenate([table.c, nodes])
    return Method(table.A, table.E3, table.E5, table.D, table.c, times, nodes, fit)
