"""One panel of the picture of saddles."""

from __future__ import annotations

from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.prediction.process import JumpProcess
from reluflow.report.axes import DATA, HYPERPLANES, NEGATIVE, NEUTRAL, POSITIVE

_MANY = 2000  # dots drawn at most
_PARALLEL = 1e-6  # 1 - cosine of neurons drawn as one


def plane_of(process: JumpProcess) -> Array:
    """Two orthonormal rows to look along: the plane, or the leading one of the last saddle."""
    d = process.problem.d
    if d <= 2:
        return np.eye(2, d)
    W = process.networks[-1].W
    W = W[np.linalg.norm(W, axis=1) > 0]
    if len(W) < 2:  # fill up with samples, and axes
        W = np.vstack([W, 1e-3 * process.problem.X, 1e-6 * np.eye(2, d)])
    return np.linalg.svd(W, full_matrices=False)[2][:2]


def bundles(process: JumpProcess, i: int) -> list[tuple[Array, int]]:
    """(w, sign) of active neurons, those of one direction and sign as one with their joint norm."""
    out: list[tuple[Array, int]] = []
    net = process.networks[i]
    for j in np.flatnonzero(process.active[i]):
        w, sign = net.weights()[0][j], int(np.sign(net.a[j]))
        size = float(np.linalg.norm(w))
        for place, (other, its) in enumerate(out):
            norm = float(np.linalg.norm(other))
            if its == sign and w @ other >= (1.0 - _PARALLEL) * size * norm:
                out[place] = (other * np.hypot(size, norm) / norm, sign)
                break
        else:
            out.append((w, sign))
    return out


def draw_saddle(ax: Any, process: JumpProcess, i: int, plane: Array, top: float) -> None:
    """Neurons of saddle i in the plane, arrows in units of ``top``."""
    turn = np.linspace(0.0, 2.0 * np.pi, 181)
    ax.plot(np.cos(turn), np.sin(turn), color="0.8", lw=0.8, zorder=0)
    _samples(ax, process, plane)
    colours = np.array([NEGATIVE, NEUTRAL, POSITIVE])[np.sign(process.signs).astype(int) + 1]
    dormant = np.flatnonzero(~process.active[i] & process.directions[i].any(axis=1))
    dots = dormant[:: max(1, dormant.size // _MANY)]
    rim = process.directions[i][dots] @ plane.T
    ax.scatter(*rim.T, s=14, c=colours[dots], alpha=0.35, linewidths=0, zorder=2)
    for w, sign in bundles(process, i):
        colour = {-1: NEGATIVE, 0: NEUTRAL, 1: POSITIVE}[sign]
        style = {"arrowstyle": "-|>", "color": colour, "lw": 1.8, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", plane @ w / top, (0.0, 0.0), arrowprops=style, zorder=3)
    ax.set(xlim=(-1.25, 1.25), ylim=(-1.25, 1.25), aspect="equal", xticks=[], yticks=[])
    for side in ax.spines.values():
        side.set_visible(False)


def _samples(ax: Any, process: JumpProcess, plane: Array) -> None:
    """A + for the direction of each sample, dashed hyperplanes in two dimensions."""
    X = process.problem.X @ plane.T
    size = process.problem.norms
    X = X[size > 0] / size[size > 0, None]
    flat = process.problem.d <= 2
    if len(X) > HYPERPLANES:
        return
    ax.scatter(*((1.13 if flat else 1.0) * X).T, marker="+", s=30, color=DATA, lw=1.0, zorder=1)
    if flat:
        for x, y in X:
            ax.plot([-y, y], [x, -x], color=DATA, ls="--", lw=0.7, alpha=0.6, zorder=1)
