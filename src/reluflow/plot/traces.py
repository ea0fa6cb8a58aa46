"""Figures as plain data: traces in panels, panels in a picture. Nothing here draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from reluflow.plot.palette import DATA, GREY, NEGATIVE, NEUTRAL, POSITIVE
from reluflow.runtime.plain import to_plain

__all__ = [
    "DATA",
    "NEGATIVE",
    "NEUTRAL",
    "POSITIVE",
    "Band",
    "Image",
    "Line",
    "Panel",
    "Picture",
    "Points",
    "Rule",
    "Trace",
]

HYPERPLANES = 60  # beyond it, hyperplanes hide the picture and are left out


@dataclass(frozen=True)
class Line:
    """A curve; ``dash`` is "-", "--", ":" or "-."."""

    x: ArrayLike
    y: ArrayLike
    label: str = ""
    color: str | None = None
    dash: str = "-"
    width: float = 1.8


@dataclass(frozen=True)
class Points:
    """Separate points; ``color`` is one colour or one for each point. ``clip`` False lets those on
    the rim show whole."""

    x: ArrayLike
    y: ArrayLike
    label: str = ""
    color: str | Sequence[str] | None = None
    marker: str = "o"
    size: float = 24.0
    alpha: float = 1.0
    clip: bool = True


@dataclass(frozen=True)
class Band:
    """The area between two curves."""

    x: ArrayLike
    low: ArrayLike
    high: ArrayLike
    label: str = ""
    color: str | None = None
    alpha: float = 0.25


@dataclass(frozen=True)
class Rule:
    """A straight line across the panel at ``at`` on ``axis`` "x" or "y".

    ``text`` stands beside it, on its ``side`` "left" or "right" for a vertical line, at the
    height ``place`` (0 the bottom of the panel, 1 its top).
    """

    at: float
    axis: str = "x"
    label: str = ""
    text: str = ""
    side: str = "left"
    place: float = 0.96
    color: str = GREY
    dash: str = "-"


@dataclass(frozen=True)
class Image:
    """An array as pixels or, with ``levels``, as filled contours over ``extent``.

    ``extent`` is (left, right, bottom, top); row 0 is at the top unless ``origin`` is "lower".
    """

    values: ArrayLike
    extent: tuple[float, float, float, float] | None = None
    levels: Sequence[float] | None = None
    colors: str = "RdBu_r"
    symmetric: bool = True
    origin: str = "upper"
    bar: bool = False


Trace = Line | Points | Band | Rule | Image


@dataclass(frozen=True)
class Panel:
    """One set of axes.

    Attributes
    ----------
    traces : sequence of Trace
    title, xlabel, ylabel : str
    xscale, yscale : {"linear", "log", "symlog"}
    xlim, ylim : (low, high), optional
        In a polar panel ``ylim`` is the range of the radius.
    polar : bool
        x is an angle, y a radius.
    hole : float
        Polar: radius of the inner circle that stands for 0, relative to the upper limit.
    legend : str
        Where the legend stands ("best", "lower right", "below" the axes, ...); "" for none.
    xnames, ynames : sequences of str
        Names of the ticks 0, 1, 2, ... of an axis; its numbers if empty.
    equal : bool
        Same unit on both axes.
    axes : bool
        Whether ticks and labels are shown.
    """

    traces: Sequence[Trace]
    title: str = ""
    xlabel: str = ""
    ylabel: str = ""
    xscale: str = "linear"
    yscale: str = "linear"
    xlim: tuple[float, float] | None = None
    ylim: tuple[float, float] | None = None
    polar: bool = False
    hole: float = 0.0
    legend: str = ""
    equal: bool = False
    xnames: Sequence[str] = ()
    ynames: Sequence[str] = ()
    axes: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; each trace says its ``type``."""
        traces = [
            {"type": type(trace).__name__.lower(), **to_plain(trace)} for trace in self.traces
        ]
        return {"type": "panel", **to_plain(self), "traces": traces}


@dataclass(frozen=True)
class Picture:
    """Panels in rows of ``columns``, each ``width`` by ``height`` inches.

    ``name`` is added to the names of its files.
    """

    panels: Sequence[Panel]
    columns: int = 1
    title: str = ""
    name: str = ""
    width: float = 4.6
    height: float = 3.4

    @property
    def rows(self) -> int:
        """Number of rows."""
        return -(-len(self.panels) // self.columns)
