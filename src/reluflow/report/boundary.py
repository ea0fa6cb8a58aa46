"""Decision boundaries: f over the plane of two features, and the line where it is zero."""

from __future__ import annotations

import numpy as np

from reluflow.arrays import Array
from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.report.traces import Image, Line, Panel, Points, Trace

Extent = tuple[float, float, float, float]

_PLUS, _MINUS = "#b2182b", "#2166ac"
_LEVELS = 11


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
    """f over the plane, red where it is positive, and the decision boundary f = 0 in black.

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
        As in :class:`reluflow.report.traces.Panel`.
    """
    if not has_boundary(problem):
        raise ReluflowError(
            "a decision boundary needs two features (besides a bias) and labels -1 and +1, got "
            f"d={problem.d} and bias={problem.bias}: use the function or the neurons"
        )
    net.check_fits(problem.d)
    extent = extent_of(problem) if extent is None else extent
    x, y, f = field_of(net, extent, resolution)
    size = float(np.abs(f).max()) if top is None else float(top)
    traces: list[Trace] = []
    if size > 0.0 and np.isfinite(size):
        levels = np.linspace(-size, size, _LEVELS + 1)
        traces.append(Image(f, extent, levels.tolist(), "RdBu_r", origin="lower"))
        traces += _zero_line(x, y, f)
    for label, colour, marker in ((1.0, _PLUS, "o"), (-1.0, _MINUS, "s")):
        rows = problem.y == label
        if rows.any():
            at = problem.X[rows]
            for shade, grow, name in (("white", 26.0, ""), (colour, 0.0, f"label {label:+.0f}")):
                traces.append(Points(at[:, 0], at[:, 1], name, shade, marker, 30.0 + grow))
    return Panel(
        traces,
        title,
        "feature 0 (circles: label +1, squares: -1)",
        "feature 1",
        xlim=extent[:2],
        ylim=extent[2:],
        legend=legend,
        equal=True,
    )


def _zero_line(x: Array, y: Array, f: Array) -> list[Trace]:
    """The boundary as one line with gaps."""
    from contourpy import contour_generator

    pieces = contour_generator(x, y, f).lines(0.0)
    if not pieces:
        return []
    gap = np.full((1, 2), np.nan)
    path = np.concatenate([part for piece in pieces for part in (piece, gap)])
    return [Line(path[:, 0], path[:, 1], "f = 0", "black", width=1.6)]
