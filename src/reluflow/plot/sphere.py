"""Pictures of the landscape: G on the circle or the sphere, and its critical points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from reluflow.arrays import Array
from reluflow.errors import ReluflowError
from reluflow.landscape.alignment import G
from reluflow.landscape.extremal import ExtremalVectors, extremal_vectors
from reluflow.plot.palette import GREY, ORANGE
from reluflow.plot.render import ink_of, new_axes
from reluflow.plot.traces import DATA, HYPERPLANES, NEGATIVE, POSITIVE
from reluflow.problem import Problem

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# kind -> (marker, colour, name in legends); degenerate kinds are drawn hollow
KINDS = {
    "max": ("^", POSITIVE, "maximum"),
    "min": ("v", NEGATIVE, "minimum"),
    "saddle": ("D", ORANGE, "saddle"),
    "weak max": ("^", GREY, "weak maximum (D = 0)"),
    "weak min": ("v", GREY, "weak minimum (D = 0)"),
    "flat": ("o", GREY, "flat cone (D = 0)"),
    "degenerate saddle": ("D", GREY, "degenerate saddle (D = 0)"),
}
_OTHER = ("s", GREY, "other")


def _need(problem: Problem, d: int, name: str, other: str) -> None:
    if problem.d != d:
        raise ReluflowError(
            f"{name} draws problems with {d} features, got d={problem.d}: use {other}"
        )


def _mark(ax: Any, vectors: ExtremalVectors, x: Array, y: Array) -> None:
    """Critical points at (x, y), one legend entry per kind."""
    kinds = np.array(vectors.kinds, dtype=object)
    for kind in dict.fromkeys(vectors.kinds):
        marker, colour, label = KINDS.get(kind, _OTHER)
        rows = kinds == kind
        hollow = colour == GREY
        ax.scatter(
            x[rows],
            y[rows],
            s=48,
            marker=marker,
            facecolors="none" if hollow else colour,
            edgecolors=colour if hollow else "white",
            linewidths=1.0 if hollow else 0.7,
            label=label,
            zorder=4,
            clip_on=False,
        )


def plot_alignment_circle(
    problem: Problem,
    pull: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
    extremal: ExtremalVectors | None = None,
) -> Axes:
    """G on the unit circle against the angle, with its critical points and cones (d = 2).

    Dashed lines are the hyperplanes <w, x_k> = 0; between two of them G is a sinusoid.

    Parameters
    ----------
    problem : Problem
        With two features, the bias feature included.
    pull : array (n,), optional
        The pull c; by default that of a silent network.
    ax : Axes, optional
        Where to draw; a new figure by default.
    extremal : ExtremalVectors, optional
        Computed if not given.

    Returns
    -------
    Axes
    """
    _need(problem, 2, "plot_alignment_circle", "plot_alignment_sphere (d=3) or plot_values")
    vectors = extremal_vectors(problem, pull) if extremal is None else extremal
    ax = new_axes(ax, size=(6.4, 3.6))
    angle = np.arctan2(problem.X[:, 1], problem.X[:, 0])
    angle = angle[problem.norms > 0]
    turn = np.degrees(np.concatenate([angle + np.pi / 2, angle - np.pi / 2]))
    turn = np.unique(np.round(np.mod(turn + 180.0, 360.0) - 180.0, 9))
    grid = np.union1d(np.linspace(-180.0, 180.0, 1441), turn)
    circle = np.column_stack([np.cos(np.radians(grid)), np.sin(np.radians(grid))])
    ax.axhline(0.0, color=GREY, lw=0.8, zorder=0)
    if turn.size <= 2 * HYPERPLANES:
        for place in turn:
            ax.axvline(place, color=DATA, ls="--", lw=0.8, zorder=1)
        ax.plot([], [], color=DATA, ls="--", lw=0.8, label="hyperplane of a sample")
    ax.plot(grid, G(problem, circle, pull), color=ink_of(ax), lw=1.6, label="G", zorder=3)
    where = np.degrees(np.arctan2(vectors.vectors[:, 1], vectors.vectors[:, 0]))
    _mark(ax, vectors, where, vectors.values)
    ax.set(xlim=(-180, 180), xlabel="angle of w (degrees)", ylabel="G(w), |w| = 1")
    ax.set_xticks(np.arange(-180, 181, 60))
    ax.margins(y=0.12)
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize="small")
    ax.set_title(_title(vectors), fontsize="medium", pad=10)
    return ax


def _title(vectors: ExtremalVectors) -> str:
    count = len(vectors.vectors)
    word = "all" if vectors.exact else "found"
    return f"{count} critical point{'' if count == 1 else 's'} of G ({word})"


def _planes(X: Array) -> Array:
    """Unit normals of the distinct hyperplanes of the samples."""
    X = X[np.linalg.norm(X, axis=1) > 0]
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    first = X[np.arange(len(X)), np.argmax(np.abs(X) > 1e-9, axis=1)]
    return np.unique(np.round(X * np.sign(first)[:, None], 9), axis=0)


def _great_circle(x: Array) -> tuple[Array, Array]:
    """Longitude and latitude on the plane orthogonal to a unit x, broken at the map's edge."""
    first = np.cross(x, np.eye(3)[np.argmin(np.abs(x))])
    first /= np.linalg.norm(first)
    t = np.linspace(0.0, 2 * np.pi, 361)[:, None]
    w = np.cos(t) * first + np.sin(t) * np.cross(x, first)
    longitude, latitude = np.arctan2(w[:, 1], w[:, 0]), np.arcsin(np.clip(w[:, 2], -1.0, 1.0))
    longitude[1:][np.abs(np.diff(longitude)) > np.pi] = np.nan
    return longitude, latitude


def plot_alignment_sphere(
    problem: Problem,
    pull: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
    extremal: ExtremalVectors | None = None,
    resolution: int = 241,
) -> Axes:
    """G on the unit sphere in the equal-area Mollweide projection (d = 3).

    Longitude is the angle of (w_1, w_2), latitude that of w_3. Dashed great circles are the
    hyperplanes of the samples.

    Parameters
    ----------
    problem : Problem
        With three features, the bias feature included.
    pull, extremal
        As in :func:`plot_alignment_circle`.
    ax : Axes, optional
        Of projection "mollweide"; a new figure by default.
    resolution : int
        Grid points in longitude; half as many in latitude.

    Returns
    -------
    Axes
    """
    _need(problem, 3, "plot_alignment_sphere", "plot_alignment_circle (d=2) or plot_values")
    vectors = extremal_vectors(problem, pull) if extremal is None else extremal
    ax = new_axes(ax, "mollweide", (7.2, 4.2))
    longitude = np.linspace(-np.pi, np.pi, resolution)
    latitude = np.linspace(-np.pi / 2, np.pi / 2, resolution // 2 + 1)
    lon, lat = np.meshgrid(longitude, latitude)
    w = np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=-1)
    values = G(problem, w, pull)
    top = float(np.abs(values).max()) or 1.0
    mesh = ax.pcolormesh(
        lon, lat, values, cmap="RdBu_r", vmin=-top, vmax=top, shading="gouraud", rasterized=True
    )
    planes = _planes(problem.X)
    if len(planes) <= HYPERPLANES // 2:
        for x in planes:
            ax.plot(*_great_circle(x), color=DATA, ls="--", lw=0.6)
        ax.plot([], [], color=DATA, ls="--", lw=0.8, label="hyperplane of a sample")
    v = vectors.vectors
    _mark(ax, vectors, np.arctan2(v[:, 1], v[:, 0]), np.arcsin(np.clip(v[:, 2], -1.0, 1.0)))
    ax.set_xticks(np.radians(np.arange(-120, 121, 60)), [])
    ax.set_yticks(np.radians(np.arange(-60, 61, 30)), [])
    ax.grid(color="0.5", lw=0.3, alpha=0.6)
    ax.figure.colorbar(mesh, ax=ax, orientation="vertical", shrink=0.75, label="G(w), |w| = 1")
    ax.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=3, frameon=False, fontsize="small"
    )
    ax.set_title(_title(vectors), fontsize="medium", pad=10)
    return ax


def plot_values(
    problem: Problem,
    pull: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
    extremal: ExtremalVectors | None = None,
    most: int = 60,
) -> Axes:
    """Bars of G at its critical points, by falling value and coloured by kind (any d).

    Points with D = 0 have no bar and are counted in the title; of more than ``most`` others the
    largest in size are drawn, and the title says so.

    Parameters
    ----------
    problem : Problem
        Any number of features.
    pull, ax, extremal
        As in :func:`plot_alignment_circle`.
    most : int
        Number of bars at most.

    Returns
    -------
    Axes
    """
    vectors = extremal_vectors(problem, pull) if extremal is None else extremal
    ax = new_axes(ax, size=(6.4, 3.6))
    value = np.asarray(vectors.values)
    live = np.flatnonzero(
        np.abs(value) > 1e-12 * max(1e-300, float(np.abs(value).max(initial=0.0)))
    )
    kept = live[np.argsort(-np.abs(value[live]), kind="stable")][:most]
    kept = kept[np.argsort(-value[kept], kind="stable")]
    kinds = np.array(vectors.kinds, dtype=object)[kept]
    for kind in dict.fromkeys(kinds):
        _, colour, label = KINDS.get(kind, _OTHER)
        rows = np.flatnonzero(kinds == kind)
        ax.bar(rows, value[kept][rows], width=0.75, color=colour, label=label)
    ax.axhline(0.0, color=GREY, lw=0.8)
    ax.set(ylabel="G at the critical point", xlabel="critical points, by value", xticks=[])
    title = _title(vectors)
    if live.size < value.size:
        title += f", {value.size - live.size} with D = 0 not drawn"
    if kept.size < live.size:
        title += f", the {kept.size} largest of {live.size}"
    ax.set_title(title, fontsize="medium")
    if kept.size:
        ax.legend(frameon=False, fontsize="small")
    return ax
