"""Neurons in the plane, by angle and norm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.report.panels import MANY, neurons_panel
from reluflow.report.render import draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_neurons(
    net: Network,
    problem: Problem | None = None,
    *,
    ax: Axes | None = None,
    most: int = MANY,
    size: float | None = None,
) -> Axes:
    """Inner weights in the plane on a polar plot: :func:`reluflow.report.panels.neurons_panel`.

    Parameters
    ----------
    net : Network
        With two features.
    problem : Problem, optional
        Adds samples and hyperplanes.
    ax : Axes, optional
        Of projection "polar"; a new figure by default.
    most : int
        More neurons than this are thinned, which the title then says.
    size : float, optional
        Largest norm shown, to compare several pictures.

    Returns
    -------
    Axes
    """
    return draw(neurons_panel(net, problem, most=most, size=size), ax)
