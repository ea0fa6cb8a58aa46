"""f as it is drawn: on a line, or on a square of the plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.network import Network
from reluflow.problem import Problem

_LINE = 201  # places on a line
_SIDE = 41  # places along each side of a square
_MARGIN = 0.35  # of the data's extent on each side of them
_WORK = 4e9  # products <w_j, x> of all frames of a square


@dataclass(frozen=True, eq=False)
class Field:
    """Places at which f is drawn.

    Attributes
    ----------
    kind : {"line", "plane", "none"}
        One feature, two features (the bias not counted), or neither.
    extent : x0, x1 (and y0, y1)
        Of the drawing.
    places : array (k, d)
        Where f is computed, the bias feature included.
    """

    kind: str
    extent: tuple[float, ...]
    places: Array

    @property
    def side(self) -> int:
        """Places along a side."""
        return _LINE if self.kind == "line" else _SIDE

    def every(self, frames: int, m: int) -> int:
        """Of how many frames one has f, so that all of them are affordable."""
        return max(1, int(np.ceil(frames * m * len(self.places) / _WORK)))

    def values(self, net: Network) -> Array:
        """f at the places; in the plane of two features by angles, so that width hardly counts."""
        if net.d == 2 and net.m > 2 * len(self.places):
            return _by_angle(net, self.places)
        return net.evaluate(self.places, net.leak, net.smoothing)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"kind": self.kind, "extent": list(self.extent), "side": self.side}


def field_of(problem: Problem) -> Field:
    """The field of a problem: features without the bias."""
    free = problem.d - (problem.bias is not None)
    X = problem.X[:, :free]
    if free not in (1, 2):
        return Field("none", (), np.empty((0, problem.d)))
    if free == 1:
        low, high = _widen(X[:, 0])
        places = np.linspace(low, high, _LINE)[:, None]
        extent: tuple[float, ...] = (low, high)
    else:
        reach = (1.0 + _MARGIN) * max(float(np.abs(X).max()), 1e-12)
        if problem.bias is None:  # rays from the origin: keep it in the middle
            extent = (-reach, reach, -reach, reach)
        else:
            (x0, x1), (y0, y1) = _widen(X[:, 0]), _widen(X[:, 1])
            half = 0.5 * max(x1 - x0, y1 - y0)
            x, y = 0.5 * (x0 + x1), 0.5 * (y0 + y1)
            extent = (x - half, x + half, y - half, y + half)
        first = np.linspace(extent[0], extent[1], _SIDE)
        second = np.linspace(extent[2], extent[3], _SIDE)
        places = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
    if problem.bias is not None:
        places = np.column_stack([places, np.full(len(places), problem.bias)])
    return Field("line" if free == 1 else "plane", extent, places)


def _widen(values: Array) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    if high - low < 1e-12 * max(abs(high), 1.0):
        low, high = low - max(abs(low), 1.0), high + max(abs(high), 1.0)
    more = _MARGIN * (high - low)
    return low - more, high + more


def _by_angle(net: Network, X: Array) -> Array:
    r"""f at rows of X for two features, by sums over half circles of directions.

    Neuron j is active on x iff the angle of w_j is within a quarter turn of that of x. With
    neurons sorted by angle, the sum of a_j w_j over an arc is a difference of running sums, and
    :math:`f(x) = \langle S_{on}, x\rangle + leak \langle S_{all} - S_{on}, x\rangle`.
    """
    if net.smoothing:
        return net.evaluate(X, net.leak, net.smoothing)
    angle = np.arctan2(net.W[:, 1], net.W[:, 0])
    order = np.argsort(angle)
    angle = angle[order]
    outer = net.a * np.exp(2.0 * net.log_factors)
    weights = (outer[:, None] * net.W)[order]
    twice = np.concatenate([np.zeros((1, 2)), np.cumsum(np.vstack([weights, weights]), axis=0)])
    turns = np.concatenate([angle, angle + 2.0 * np.pi])
    middle = np.arctan2(X[:, 1], X[:, 0])
    middle = np.where(middle < 0.5 * np.pi - np.pi, middle + 2.0 * np.pi, middle)
    low = np.searchsorted(turns, middle - 0.5 * np.pi, side="right")
    high = np.searchsorted(turns, middle + 0.5 * np.pi, side="left")
    on = twice[np.maximum(high, low)] - twice[low]
    everything = twice[net.m]
    value: Array = np.sum((on + net.leak * (everything - on)) * X, axis=1)
    return value
