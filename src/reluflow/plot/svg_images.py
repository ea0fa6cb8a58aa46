"""Arrays as colours in a panel written as SVG: pixels, filled contours, and a bar of the colours.

Only the scale from blue over white to red is known here, with white at 0, and only arrays that have
an ``extent``; others are left to `reluflow.plot.render`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from reluflow.arrays import Array
from reluflow.plot.traces import Image

PIXELS = 2_000  # that are written one by one, at most
BAR = 52.0  # room that a bar takes beside the axes
_WIDE = 11.0  # width of the bar itself
_SCALE = "RdBu_r"
#: RdBu of ColorBrewer 2.0 (C. Brewer, Apache licence 2.0) with eleven classes, blue first.
_COLOURS = np.array(
    [
        (5, 48, 97),
        (33, 102, 172),
        (67, 147, 195),
        (146, 197, 222),
        (209, 229, 240),
        (247, 247, 247),
        (253, 219, 199),
        (244, 165, 130),
        (214, 96, 77),
        (178, 24, 43),
        (103, 0, 31),
    ],
    dtype=float,
)
Place = Callable[[object], Array]  # from values of an axis to the units of the picture


def can_colour(trace: Image) -> bool:
    """Whether an image is written here."""
    few = trace.levels is not None or np.size(trace.values) <= PIXELS
    known = trace.colors == _SCALE and trace.symmetric and trace.extent is not None
    return known and few and bool(np.isfinite(trace.values).all())


def colour_of(share: float) -> str:
    """Colour of a value, -1 (blue) to 1 (red) of the largest."""
    at = np.clip(0.5 + 0.5 * share, 0.0, 1.0) * (len(_COLOURS) - 1)
    mixed = (np.interp(at, np.arange(len(_COLOURS)), part) for part in _COLOURS.T)
    return "#" + "".join(f"{round(part):02x}" for part in mixed)


def largest(trace: Image) -> float:
    """The absolute value that has the strongest colour."""
    shown = trace.values if trace.levels is None else trace.levels
    return float(np.abs(np.asarray(shown, dtype=float)).max(initial=0.0)) or 1.0


def write_image(trace: Image, x: Place, y: Place) -> list[str]:
    """An image inside the frame (``clip-path`` c)."""
    shapes = _pixels(trace, x, y) if trace.levels is None else _contours(trace, x, y)
    # neighbours of one colour scale: without anti-aliasing no seams of the page show between them
    return [f'<g clip-path="url(#c)" shape-rendering="crispEdges">{"".join(shapes)}</g>']


def _pixels(trace: Image, x: Place, y: Place) -> list[str]:
    values = np.asarray(trace.values, dtype=float)
    assert trace.extent is not None
    left, right, bottom, top = trace.extent
    px = x(np.linspace(left, right, values.shape[1] + 1))
    ends = (bottom, top) if trace.origin == "lower" else (top, bottom)
    py = y(np.linspace(*ends, values.shape[0] + 1))
    size = largest(trace)
    return [
        f'<path fill="{colour_of(value / size)}" d="M{px[j]:.1f} {py[i]:.1f}H{px[j + 1]:.1f}'
        f'V{py[i + 1]:.1f}H{px[j]:.1f}z"/>'
        for i, row in enumerate(values)
        for j, value in enumerate(row)
    ]


def _contours(trace: Image, x: Place, y: Place) -> list[str]:
    """Polygons between levels; holes are cut out by the rule of even and odd."""
    from contourpy import contour_generator

    values = np.asarray(trace.values, dtype=float)
    rows = values if trace.origin == "lower" else values[::-1]
    assert trace.extent is not None
    assert trace.levels is not None
    left, right, bottom, top = trace.extent
    across = np.linspace(left, right, rows.shape[1])
    up = np.linspace(bottom, top, rows.shape[0])
    made = contour_generator(across, up, rows, fill_type="OuterOffset")
    levels = np.asarray(trace.levels, dtype=float)
    cuts = np.concatenate([[-np.inf], levels, [np.inf]])
    size, shapes = largest(trace), []
    for low, high in pairwise(cuts):
        places = [
            part[start:end]
            for part, offsets in zip(*made.filled(low, high), strict=True)
            for start, end in pairwise(offsets)
        ]
        if places:
            middle = 0.5 * (max(low, levels[0]) + min(high, levels[-1]))
            outline = "".join(_outline(x(ring[:, 0]), y(ring[:, 1])) for ring in places)
            fill = colour_of(float(middle) / size)
            shapes.append(f'<path fill="{fill}" fill-rule="evenodd" d="{outline}"/>')
    return shapes


def _outline(x: Array, y: Array) -> str:
    """A polygon with one decimal, without vertices that fall on the one before."""
    at = np.round(np.column_stack([x, y]), 1)
    new = np.concatenate([[True], (np.diff(at, axis=0) != 0.0).any(axis=1)])
    return "M" + "L".join(f"{a:g} {b:g}" for a, b in at[new].tolist()) + "z"


def write_bar(trace: Image, left: float, top: float, bottom: float) -> tuple[list[str], Array]:
    """The colours from bottom to top beside the axes, and what its two ends stand for."""
    parts = 48
    edges = np.linspace(bottom, top, parts + 1)
    shares = np.linspace(-1.0, 1.0, 2 * parts + 1)[1::2]
    body = [
        f'<path fill="{colour_of(share)}" d="M{left:.1f} {low:.2f}h{_WIDE}V{high:.2f}h-{_WIDE}z"/>'
        for share, low, high in zip(shares, edges[:-1], edges[1:], strict=True)
    ]
    frame = f'<rect x="{left:.1f}" y="{top:.1f}" width="{_WIDE}" height="{bottom - top:.1f}"'
    body = [
        f'<g shape-rendering="crispEdges">{"".join(body)}</g>',
        f'{frame} fill="none" stroke="currentColor" stroke-width=".8"/>',
    ]
    size = largest(trace)
    return body, np.array([-size, size])
