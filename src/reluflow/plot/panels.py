"""Pictures of a network: its function, its neurons in the plane, its decision boundary."""

from __future__ import annotations

from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.plot.palette import GREY, ORANGE, SIMULATED
from reluflow.plot.traces import (
    DATA,
    HYPERPLANES,
    NEGATIVE,
    NEUTRAL,
    POSITIVE,
    Image,
    Line,
    Panel,
    Points,
    Trace,
)
from reluflow.problem import Problem

Extent = tuple[float, float, float, float]

MANY = 20_000  # neurons drawn at most; more are thinned and the title says so
_LEVELS = 11  # of f in the picture of a decision boundary
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
        As in :class:`reluflow.plot.traces.Panel`.
    """
    if problem.d != 2 or problem.bias is None:
        raise ReluflowError(
            f"plot.function draws one feature with a bias, got d={problem.d} and "
            f"bias={problem.bias}: use plot.neurons or plot.boundary"
        )
    x, name = problem.X[:, 0], problem.axis_names[0]
    low, high = span or (x.min() - 0.2 * np.ptp(x), x.max() + 0.2 * np.ptp(x))
    grid = np.linspace(low, high, 401)
    traces: list[Trace] = []
    if line:
        beta = np.linalg.lstsq(problem.X, problem.y, rcond=None)[0]
        fit = beta[0] * grid + beta[1] * problem.bias
        traces.append(Line(grid, fit, "least squares", ORANGE, "--", 1.5))
    traces.append(Line(grid, net(grid[:, None]), "network", SIMULATED, width=2.0))
    traces.append(Points(x, problem.y, "data", DATA, size=36))
    return Panel(
        traces, title, name, "f(x)", xlim=(float(low), float(high)), ylim=ylim, legend=legend
    )


def neurons_panel(
    net: Network,
    problem: Problem | None = None,
    *,
    most: int = MANY,
    size: float | None = None,
    title: str = "",
    legend: str = "",
) -> Panel:
    """Inner weights in the plane by angle and norm, as in Figure 2 of [BF24]_.

    The inner circle is norm 0, so that the angles of small neurons can be seen. Red: positive
    outer weight, blue: negative, black: zero. With a problem, + marks the direction of each sample
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
    title, legend
        As in :class:`reluflow.plot.traces.Panel`.
    """
    if net.d != 2:
        raise ReluflowError(f"neurons_panel draws neurons with 2 features, got d={net.d}")
    if problem is not None:
        net.check_fits(problem.d)
    if most < 1 or not (size is None or 0.0 < size < np.inf):
        raise ReluflowError(f"most and size must be positive, got {most} and {size}")
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
    traces += _names_of_neurons(net, neurons.marker)
    rim = (0.0, _RIM * outer)
    return Panel(traces, title, ylim=rim, polar=True, hole=0.35 / _RIM, legend=legend)


def leading_plane(net: Network) -> Array:
    """Two orthonormal columns (d, 2): the leading right singular vectors of the weights."""
    logs = net.log_norms
    top = float(logs.max())
    W = net.directions * (np.exp(logs - top)[:, None] if np.isfinite(top) else 1.0)
    W = np.vstack([W, 1e-9 * np.eye(2, net.d)])  # two directions in any case
    plane = np.zeros((net.d, 2))
    found = np.linalg.svd(W, full_matrices=False)[2][:2].T
    plane[:, : found.shape[1]] = found
    return plane


def _names_of_neurons(net: Network, marker: str) -> list[Trace]:
    """What the marks of neurons and the inner circle mean, for the legend."""
    signs = ((1.0, "positive output", POSITIVE), (-1.0, "negative output", NEGATIVE))
    traces: list[Trace] = [
        Points([], [], name, colour, marker, 28.0)
        for sign, name, colour in (*signs, (0.0, "output 0", NEUTRAL))
        if (np.sign(net.a) == sign).any()
    ]
    return [*traces, Line([], [], "inner circle: size 0", NEUTRAL, width=0.8)]


def _samples(problem: Problem, rim: float) -> list[Trace]:
    """A + at the rim for each sample and dashed rays for its hyperplane."""
    X = problem.X[problem.norms > 0]
    theta = np.arctan2(X[:, 1], X[:, 0])
    rims = np.full(len(X), rim)
    marks = Points(theta, rims, "sample", DATA, "+", size=60, clip=False)
    traces: list[Trace] = [marks]
    if len(X) <= HYPERPLANES:
        for i, ray in enumerate(np.concatenate([theta + np.pi / 2, theta - np.pi / 2])):
            name = "hyperplane of a sample" if i == 0 else ""
            traces.append(Line([ray, ray], [0.0, rim], name, DATA, "--", 0.9))
    return traces


def has_boundary(problem: Problem) -> bool:
    """Whether labels are -1 and +1 and the samples have two features besides a bias."""
    features = problem.d - (problem.bias is not None)
    return features == 2 and bool(np.isin(problem.y, (-1.0, 1.0)).all())


def extent_of(problem: Problem) -> Extent:
    """A square around the samples."""
    X = problem.X[:, :2]
    middle = 0.5 * (X.min(axis=0) + X.max(axis=0))
    half = 0.65 * float(np.ptp(X, axis=0).max()) or 1.0
    x, y = middle.tolist()
    return x - half, x + half, y - half, y + half


def _check_extent(given: Any) -> Extent:
    """Four finite numbers left < right, bottom < top, or a sentence."""
    try:
        left, right, bottom, top = (float(side) for side in given)
    except (TypeError, ValueError, OverflowError):
        raise ReluflowError(
            f"extent must be four numbers (left, right, bottom, top), got {given!r}"
        ) from None
    if not (np.isfinite([left, right, bottom, top]).all() and left < right and bottom < top):
        raise ReluflowError(f"extent must have left < right and bottom < top, got {given!r}")
    return left, right, bottom, top


def field_of(net: Network, extent: Extent, resolution: int) -> tuple[Array, Array, Array]:
    """Grid of two features and f on it, rows from bottom to top."""
    x = np.linspace(extent[0], extent[1], resolution)
    y = np.linspace(extent[2], extent[3], resolution)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    return x, y, net(grid).reshape(resolution, resolution)


def boundary_panel(
    net: Network,
    problem: Problem,
    *,
    extent: Extent | None = None,
    top: float | None = None,
    resolution: int = 201,
    title: str = "",
    legend: str = "",
) -> Panel:
    """f over the plane, red where it is positive, and the decision boundary f = 0 in grey.

    Parameters
    ----------
    net, problem
        The network and its data, with two features (a bias not counted) and labels -1, +1.
    extent : (left, right, bottom, top), optional
        A square around the samples by default.
    top : float, optional
        |f| of the strongest colour, by default the largest in the picture.
    resolution : int
        Grid points along each side.
    title, legend
        As in :class:`reluflow.plot.traces.Panel`.
    """
    if not has_boundary(problem):
        raise ReluflowError(
            "a decision boundary needs two features (besides a bias) and labels -1 and +1, got "
            f"d={problem.d} and bias={problem.bias}: use the function or the neurons"
        )
    net.check_fits(problem.d)
    extent = extent_of(problem) if extent is None else _check_extent(extent)
    if not 2 <= resolution <= MANY:
        raise ReluflowError(f"resolution must lie between 2 and {MANY}, got {resolution}")
    x, y, f = field_of(net, extent, resolution)
    size = float(np.abs(f).max()) if top is None else float(top)
    names = problem.axis_names
    title_of = {label: _label_title(problem, label) for label in (1.0, -1.0)}
    traces: list[Trace] = []
    if size > 0.0 and np.isfinite(size):
        levels = np.linspace(-size, size, _LEVELS + 1)
        traces.append(Image(f, extent, levels.tolist(), "RdBu_r", origin="lower"))
        traces += _zero_line(x, y, f)
    for label, colour, marker in ((1.0, POSITIVE, "o"), (-1.0, NEGATIVE, "s")):
        rows = problem.y == label
        if rows.any():
            at = problem.X[rows]
            for shade, grow, name in (("white", 26.0, ""), (colour, 0.0, title_of[label])):
                traces.append(Points(at[:, 0], at[:, 1], name, shade, marker, 30.0 + grow))
    return Panel(
        traces,
        title,
        f"{names[0]} (circles: {title_of[1.0]}, squares: {title_of[-1.0]})",
        names[1],
        xlim=extent[:2],
        ylim=extent[2:],
        legend=legend,
        equal=True,
    )


def _label_title(problem: Problem, label: float) -> str:
    """A class by its name, or "label +1"."""
    named = problem.label_names is not None and len(problem.label_names) == 2
    return problem.class_name(label) if named else f"label {label:+.0f}"


def _zero_line(x: Array, y: Array, f: Array) -> list[Trace]:
    """The boundary as one line with gaps."""
    from contourpy import contour_generator

    pieces = contour_generator(x, y, f).lines(0.0)
    if not pieces:
        return []
    gap = np.full((1, 2), np.nan)
    path = np.concatenate([part for piece in pieces for part in (piece, gap)])
    return [Line(path[:, 0], path[:, 1], "f = 0", GREY, width=2.0)]
