"""Neurons in the plane, by angle and norm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.report.axes import DATA, HYPERPLANES, NEGATIVE, NEUTRAL, POSITIVE, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MANY = 20_000  # neurons drawn at most; more are thinned and the title says so


def plot_neurons(
    net: Network,
    problem: Problem | None = None,
    *,
    ax: Axes | None = None,
    most: int = _MANY,
    size: float | None = None,
) -> Axes:
    """Inner weights in the plane, as in Figure 2 of [BF24]_.

    Angle of w against |w|; the inner circle is norm 0, so that the angles of small neurons can be
    seen. Violet: positive outer weight, red: negative, black: zero. With a problem, + marks the
    direction of each sample at the rim and dashed rays its hyperplane.

    Parameters
    ----------
    net : Network
        With two features.
    problem : Problem, optional
        Adds samples and hyperplanes.
    ax : Axes, optional
        Of projection "polar"; a new figure by default.
    most : int
        More neurons than this are thinned to an even subsample (the largest always kept), which
        the title then says.
    size : float, optional
        Largest norm shown, to compare several pictures; in true units, or relative to the largest
        neuron if weights are too small for floats.

    Returns
    -------
    Axes
    """
    if net.d != 2:
        raise ReluflowError(f"plot_neurons draws neurons with 2 features, got d={net.d}")
    if problem is not None:
        net.check_fits(problem.d)
    polar = new_axes(ax, "polar", (4.6, 4.6))
    log = net.log_norms
    top = float(log.max())
    unit = top if not -600.0 < top < 600.0 else 0.0  # norms in units of the largest neuron
    norm = np.exp(log - unit) if np.isfinite(top) else np.zeros(net.m)
    rows = np.arange(net.m)
    if net.m > most:
        step = np.linspace(0, net.m - 1, most).astype(int)
        rows = np.union1d(step, np.argsort(norm)[-100:])
    outer = float(norm.max()) if size is None else float(size)
    outer = outer if outer > 0 else 1.0
    theta = np.arctan2(net.W[:, 1], net.W[:, 0])
    colours = np.array([NEGATIVE, NEUTRAL, POSITIVE])[np.sign(net.a).astype(int) + 1]
    dense = rows.size > 500
    polar.scatter(
        theta[rows],
        norm[rows],
        c=colours[rows],
        marker="." if dense else "*",
        s=6 if dense else 28,
        linewidths=0,
        alpha=0.5 if dense else 0.9,
        rasterized=True,
        zorder=3,
        clip_on=size is not None,
    )
    polar.set_rlim(0.0, 1.12 * outer)
    polar.set_rorigin(-0.35 * outer)
    if problem is not None:
        _samples(polar, problem, 1.12 * outer)
    polar.set_yticks([])
    polar.set_xticks(np.radians(np.arange(0, 360, 45)))
    polar.grid(color="0.9", lw=0.5)
    if rows.size < net.m:
        polar.set_title(f"{rows.size} of {net.m} neurons drawn", fontsize="medium")
    return polar


def _samples(ax: Any, problem: Problem, rim: float) -> None:
    """A + at the rim for each sample and dashed rays for its hyperplane."""
    X = problem.X[np.linalg.norm(problem.X, axis=1) > 0]
    theta = np.arctan2(X[:, 1], X[:, 0])
    ax.scatter(theta, np.full(len(X), rim), marker="+", s=60, color=DATA, clip_on=False, zorder=5)
    if len(X) <= HYPERPLANES:
        for ray in np.concatenate([theta + np.pi / 2, theta - np.pi / 2]):
            ax.plot([ray, ray], [0.0, rim], color=DATA, ls="--", lw=0.9, zorder=1)
