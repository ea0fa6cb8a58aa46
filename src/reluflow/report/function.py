"""The function a network computes on one-dimensional data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.report.panels import function_panel
from reluflow.report.render import draw

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
    return draw(function_panel(net, problem, span=span, line=line), ax)
