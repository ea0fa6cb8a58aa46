"""Panels people expect: the function on one feature, neurons in the plane, curves of a run."""

from __future__ import annotations

import numpy as np

from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.report.axes import DATA, HYPERPLANES, NEGATIVE, NEUTRAL, POSITIVE
from reluflow.report.traces import Line, Panel, Points, Trace

MANY = 20_000  # neurons drawn at most; more are thinned and the title says so
_RIM = 1.12  # radius of the rim, in units of the largest norm shown


def function_panel(
    net: Network,
    problem: Problem,
    *,
    span: tuple[float, float] | None = None,
    line: bool = True,
    title: str = "",
    ylim: tuple[float, float] | None = None,
    legend: str = "",
) -> Panel:
    """f(x) against x with the samples, for data with one feature and a bias.

    Parameters
    ----------
    net, problem
        The network and the data it was trained on.
    span : (low, high), optional
        Range of x; a little more than the data by default.
    line : bool
        Whether to draw the least-squares line, dashed.
    title, ylim, legend
        As in :class:`reluflow.report.traces.Panel`.
    """
    if problem.d != 2 or problem.bias is None:
        raise ReluflowError(
            f"plot_function draws one feature with a bias, got d={problem.d} and "
            f"bias={problem.bias}: use plot_neurons or a decision boundary"
        )
    x = problem.X[:, 0]
    low, high = span or (x.min() - 0.2 * np.ptp(x), x.max() + 0.2 * np.ptp(x))
    grid = np.linspace(low, high, 401)
    traces: list[Trace] = []
    if line:
        beta = np.linalg.lstsq(problem.X, problem.y, rcond=None)[0]
        fit = beta[0] * grid + beta[1] * problem.bias
        traces.append(Line(grid, fit, "least squares", "crimson", "--", 1.5))
    traces.append(Line(grid, net(grid[:, None]), "network", "tab:blue", width=2.0))
    traces.append(Points(x, problem.y, "data", DATA, size=36))
    return Panel(
        traces, title, "x", "f(x)", xlim=(float(low), float(high)), ylim=ylim, legend=legend
    )


def neurons_panel(
    net: Network,
    problem: Problem | None = None,
    *,
    most: int = MANY,
    size: float | None = None,
    title: str = "",
) -> Panel:
    """Inner weights in the plane by angle and norm, as in Figure 2 of [BF24]_.

    The inner circle is norm 0, so that the angles of small neurons can be seen. Violet: positive
    outer weight, red: negative, black: zero. With a problem, + marks the direction of each sample
    at the rim and dashed rays its hyperplane.

    Parameters
    ----------
    net : Network
        With two features.
    problem : Problem, optional
        Adds samples and hyperplanes.
    most : int
        More neurons than this are thinned to an even subsample (the largest always kept), which
        the title then says.
    size : float, optional
        Largest norm shown, to compare several pictures; in true units, or relative to the largest
        neuron if weights are too small for floats.
    title : str
    """
    if net.d != 2:
        raise ReluflowError(f"plot_neurons draws neurons with 2 features, got d={net.d}")
    if problem is not None:
        net.check_fits(problem.d)
    log = net.log_norms
    top = float(log.max())
    unit = top if not -600.0 < top < 600.0 else 0.0  # norms in units of the largest neuron
    norm = np.exp(log - unit) if np.isfinite(top) else np.zeros(net.m)
    rows = np.arange(net.m)
    if net.m > most:
        step = np.linspace(0, net.m - 1, most).astype(int)
        rows = np.union1d(step, np.argsort(norm)[-100:])
        drawn = f"{rows.size} of {net.m} neurons drawn"
        title = f"{title}\n{drawn}" if title else drawn
    outer = float(norm.max()) if size is None else float(size)
    outer = outer if outer > 0 else 1.0
    theta = np.arctan2(net.W[:, 1], net.W[:, 0])
    colours = np.array([NEGATIVE, NEUTRAL, POSITIVE])[np.sign(net.a).astype(int) + 1]
    dense = rows.size > 500
    neurons = Points(
        theta[rows],
        norm[rows],
        color=colours[rows].tolist(),
        marker="." if dense else "*",
        size=6 if dense else 28,
        alpha=0.5 if dense else 0.9,
        clip=size is not None,
    )
    traces: list[Trace] = [neurons]
    if problem is not None:
        traces += _samples(problem, _RIM * outer)
    return Panel(traces, title, ylim=(0.0, _RIM * outer), polar=True, hole=0.35 / _RIM)


def _samples(problem: Problem, rim: float) -> list[Trace]:
    """A + at the rim for each sample and dashed rays for its hyperplane."""
    X = problem.X[problem.norms > 0]
    theta = np.arctan2(X[:, 1], X[:, 0])
    marks = Points(theta, np.full(len(X), rim), color=DATA, marker="+", size=60, clip=False)
    traces: list[Trace] = [marks]
    if len(X) <= HYPERPLANES:
        for ray in np.concatenate([theta + np.pi / 2, theta - np.pi / 2]):
            traces.append(Line([ray, ray], [0.0, rim], color=DATA, dash="--", width=0.9))
    return traces
