"""The function a network computes on one-dimensional data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.report.axes import DATA, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_function(
    net: Network,
    problem: Problem,
    *,
    ax: Axes | None = None,
    span: tuple[float, float] | None = None,
    line: bool = True,
) -> Axes:
    """f(x) against x with the samples, for data with one feature and a bias.

    Parameters
    ----------
    net, problem
        The network and the data it was trained on.
    ax : Axes, optional
        A new figure by default.
    span : (low, high), optional
        Range of x; a little more than the data by default.
    line : bool
        Whether to draw the least-squares line, dashed.
    """
    if problem.d != 2 or problem.bias is None:
        raise ReluflowError(
            f"plot_function draws one feature with a bias, got d={problem.d} and "
            f"bias={problem.bias}: use plot_neurons or a decision boundary"
        )
    axes = new_axes(ax, size=(5, 3.4))
    x = problem.X[:, 0]
    low, high = span or (x.min() - 0.2 * np.ptp(x), x.max() + 0.2 * np.ptp(x))
    grid = np.linspace(low, high, 401)
    if line:
        beta = np.linalg.lstsq(problem.X, problem.y, rcond=None)[0]
        axes.plot(
            grid,
            beta[0] * grid + beta[1] * problem.bias,
            "--",
            color="crimson",
            label="least squares",
        )
    axes.plot(grid, net(grid[:, None]), color="tab:blue", lw=2, label="network")
    axes.scatter(x, problem.y, color=DATA, zorder=3, label="data")
    axes.set_xlim(low, high)
    axes.set_xlabel("x")
    axes.set_ylabel("f(x)")
    return axes
