"""Panels of curves and points as SVG, written directly: a page of them loads no drawing library.

`matplotlib` takes a third of the time of a short explanation, most of it to be imported and to
lay out axes. What the pages of this library show is simple: lines, points, bands, rules and arrays
as colours on linear or logarithmic axes, or around a pole. Panels with anything else (other colour
scales, very many points) are left to `reluflow.plot.render`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from reluflow.arrays import Array
from reluflow.plot.render import MANY, STYLE
from reluflow.plot.svg_images import BAR, can_colour, write_bar, write_image
from reluflow.plot.traces import Band, Image, Line, Panel, Points, Rule, Trace

INCH = 72.0  # units of the picture
_SIZE, _SMALL = 10.0, 8.4  # of letters
_LETTER = 0.56  # width of a letter over its size, about
_SLANTED = 40  # letters of all names of ticks beyond which they are slanted
_FLAT = 0.03  # distance from the chord below which a vertex of a line is left out
_TAB = {
    "blue": "#1f77b4",
    "orange": "#ff7f0e",
    "green": "#2ca02c",
    "red": "#d62728",
    "purple": "#9467bd",
    "brown": "#8c564b",
    "pink": "#e377c2",
    "gray": "#7f7f7f",
    "olive": "#bcbd22",
    "cyan": "#17becf",
}
_CYCLE = tuple(_TAB.values())  # of traces without a colour
_DASHES = {"--": "5 3", ":": "1.5 2.5", "-.": "6 2.5 1.5 2.5"}
_SHAPES = {
    "o": "M-.5 0a.5 .5 0 1 0 1 0a.5 .5 0 1 0 -1 0z",
    ".": "M-.25 0a.25 .25 0 1 0 .5 0a.25 .25 0 1 0 -.5 0z",
    "s": "M-.44 -.44h.88v.88h-.88z",
    "D": "M0 -.6L.6 0L0 .6L-.6 0z",
    "^": "M0 -.5L.5 .5H-.5z",
    "v": "M0 .5L.5 -.5H-.5z",
    "*": "M0 -.5L.12 -.16H.48L.19 .06L.3 .41L0 .19L-.3 .41L-.19 .06L-.48 -.16H-.12z",
    "+": "M-.5 0H.5M0 -.5V.5",
    "x": "M-.4 -.4L.4 .4M-.4 .4L.4 -.4",
}
Entry = tuple[Trace, str, str]  # of a legend: trace, colour, name
_CORNERS = ("upper right", "upper left", "lower left", "lower right")


def can_write(panel: Panel) -> bool:
    """Whether a panel holds only what is written here."""
    scales = {panel.xscale, panel.yscale} <= {"linear", "log"}
    return scales and panel.axes and all(_is_simple(trace, panel) for trace in panel.traces)


def _is_simple(trace: Trace, panel: Panel) -> bool:
    if isinstance(trace, Points):
        return np.size(trace.x) <= MANY and trace.marker in _SHAPES
    return not isinstance(trace, Image) or (can_colour(trace) and not panel.polar)


def write_svg(panel: Panel, width: float = 4.6, height: float = 3.4) -> str:
    """One panel as SVG text; see `can_write`. The same panel gives the same text."""
    wide, high = width * INCH, (0.92 * width if panel.polar else height) * INCH
    if panel.polar:
        high += _room_below(panel, wide)
    body = _polar(panel, wide, high) if panel.polar else _cartesian(panel, wide, high)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_n(wide)}pt" height="{_n(high)}pt" '
        f'viewBox="0 0 {_n(wide)} {_n(high)}" font-family="system-ui,DejaVu Sans,sans-serif" '
        f'font-size="{_n(_SIZE)}" fill="currentColor">{STYLE}{"".join(body)}</svg>'
    )


class Axis(NamedTuple):
    """From values to places: low and high in the scale's own units, at first and last."""

    low: float
    high: float
    first: float
    last: float
    log: bool

    def place(self, values: object) -> Array:
        """Where values stand; those that a logarithm does not take are nan."""
        v = np.asarray(values, dtype=float)
        if self.log:
            with np.errstate(divide="ignore", invalid="ignore"):
                v = np.where(v > 0.0, np.log10(v), np.nan)
        share = (v - self.low) / (self.high - self.low)
        return np.clip(self.first + share * (self.last - self.first), -1e5, 1e5)


def _limits(values: Sequence[object], given: tuple[float, float] | None, log: bool) -> Array:
    """Ends of an axis, lower first: those given, or a little more than the data."""
    parts = [given] if given is not None else values
    shown = np.concatenate([np.ravel(np.asarray(v, dtype=float)) for v in (*parts, [])])
    if log:
        shown = np.log10(shown[shown > 0.0])
    shown = shown[np.isfinite(shown)]
    if not shown.size:
        return np.array([0.0, 1.0])
    low, high = float(shown.min()), float(shown.max())
    if given is not None:
        return np.array([low, high if high > low else low + 1.0])
    edge = 0.05 * (high - low) or 0.5 * abs(high) or 0.5
    return np.array([low - edge, high + edge])


def _ticks(axis: Axis, most: int, whole: bool) -> list[tuple[float, str]]:
    """Places in the scale's own units and what is written there."""
    if axis.log and axis.high - axis.low >= 1.0:
        every = max(1, math.ceil((axis.high - axis.low) / most))
        powers = range(math.ceil(axis.low - 1e-9), math.floor(axis.high + 1e-9) + 1, every)
        return [(float(k), f'10<tspan dy="-4" font-size="7">{k}</tspan>') for k in powers]
    low, high = sorted((axis.low, axis.high))  # rows of an image may be counted downwards
    if axis.log:
        low, high = 10.0**low, 10.0**high
    raw = (high - low) / most
    unit: float = 10.0 ** math.floor(math.log10(raw))
    step = next(k * unit for k in (1.0, 2.0, 2.5, 5.0, 10.0) if k * unit >= raw * (1 - 1e-9))
    if whole:
        step = max(1.0, math.ceil(step - 1e-9))
    first = math.ceil(low / step - 1e-9)
    values = [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]
    digits = max(0, -math.floor(math.log10(step) + 1e-9) + (1 if step / unit == 2.5 else 0))
    large = max(abs(low), abs(high)) >= 1e5 or step < 1e-4
    names = [f"{v:.3g}" if large else f"{v:.{digits}f}" for v in values]
    places = [math.log10(v) if axis.log else v for v in values]
    return list(zip(places, (name.replace("-", "−") for name in names), strict=True))


def _cartesian(panel: Panel, wide: float, high: float) -> list[str]:
    entries = _legend_entries(panel) if panel.legend else []
    below = _room_below(panel, wide)
    logs = (panel.xscale == "log", panel.yscale == "log")
    x, y = (_values(panel, side) for side in "xy")
    image = next((trace for trace in panel.traces if isinstance(trace, Image)), None)
    ends = (None, None) if image is None or image.extent is None else _ends_of(image.extent)
    (x0, x1), (y0, y1) = (
        _limits(values, given, log) if given is not None or end is None else end
        for values, given, log, end in zip(
            (x, y), (panel.xlim, panel.ylim), logs, ends, strict=True
        )
    )
    slanted = sum(map(len, panel.xnames)) > _SLANTED
    deep = 0.87 * _SMALL * _LETTER * max(map(len, panel.xnames)) if slanted else 0.0
    top, bottom = 20.0 if panel.title else 8.0, high - (34.0 if panel.xlabel else 20.0) - below
    bottom -= deep
    vertical = Axis(y0, y1, bottom, top, logs[1])
    yticks = _named(panel.ynames) or _ticks(
        vertical, max(3, int((bottom - top) / 32)), _all_whole(panel, "y")
    )
    longest = max((len(name.split("<")[0]) + 2 * ("<" in name) for _, name in yticks), default=1)
    left = 10.0 + _SIZE * _LETTER * longest + (15.0 if panel.ylabel else 4.0)
    right = wide - 12.0 - (BAR if image is not None and image.bar else 0.0)
    if panel.equal:
        unit = min((right - left) / (x1 - x0), (bottom - top) / (y1 - y0))
        spare = (right - left) - unit * (x1 - x0)
        left, right = left + spare / 2, right - spare / 2
        bottom = top + unit * (y1 - y0)
        vertical = vertical._replace(first=bottom)
    horizontal = Axis(x0, x1, left, right, logs[0])
    xticks = _named(panel.xnames) or _ticks(
        horizontal, max(3, int((right - left) / 52)), _all_whole(panel, "x")
    )
    box = f'x="{_n(left)}" y="{_n(top)}" width="{_n(right - left)}" height="{_n(bottom - top)}"'
    body = [f'<clipPath id="c"><rect {box}/></clipPath>']
    colours = _colours(panel)
    for trace, colour in zip(panel.traces, colours, strict=True):
        body += _trace(trace, colour, horizontal, vertical)
    body.append(f'<rect {box} fill="none" stroke="currentColor" stroke-width=".8"/>')
    for value, name in xticks:
        at = _n(left + (value - x0) / (x1 - x0) * (right - left))
        body.append(_stroke(f"M{at} {_n(bottom)}v3.5"))
        if slanted:
            turned = f'transform="translate({at} {_n(bottom + 10.0)}) rotate(-60)"'
            shown = f'{turned} text-anchor="end" font-size="{_n(_SMALL)}"'
            body.append(f"<text {shown}>{name}</text>")
        else:
            body.append(_text(name, at, bottom + 13.0, "middle", plain=False))
    for value, name in yticks:
        at = bottom + (value - y0) / (y1 - y0) * (top - bottom)
        body.append(_stroke(f"M{_n(left)} {_n(at)}h-3.5"))
        body.append(_text(name, left - 5.5, at + 3.4, "end", plain=False))
    middle = 0.5 * (left + right)
    body.append(_text(panel.title, middle, 13.0, "middle", size=11.0))
    body.append(_text(panel.xlabel, middle, bottom + 27.0 + deep, "middle"))
    if image is not None and image.bar:
        body += _bar(image, right + 10.0, top, bottom)
    if panel.ylabel:
        turned = f'transform="translate(11 {_n(0.5 * (top + bottom))}) rotate(-90)"'
        body.append(f'<text {turned} text-anchor="middle">{escape(panel.ylabel)}</text>')
    if entries:
        frame = (left, right, top, bottom)
        if below:
            body += _legend_below(entries, wide, high - below + 9.0)
        else:
            body += _legend(panel, entries, frame, horizontal, vertical)
    return body


def _ends_of(extent: tuple[float, float, float, float]) -> tuple[Array, Array]:
    """Ends of both axes around an image, as they stand: rows may be counted downwards."""
    return np.array(extent[:2], dtype=float), np.array(extent[2:], dtype=float)


def _named(names: Sequence[str]) -> list[tuple[float, str]]:
    """Ticks 0, 1, 2, ... with names."""
    return [(float(i), escape(name)) for i, name in enumerate(names)]


def _bar(image: Image, left: float, top: float, bottom: float) -> list[str]:
    """What the colours of an image stand for."""
    body, (low, high) = write_bar(image, left, top, bottom)
    axis = Axis(low, high, bottom, top, False)
    for value, name in _ticks(axis, 4, False):
        at = float(axis.place(value))
        body.append(_stroke(f"M{_n(left + 11.0)} {_n(at)}h3"))
        body.append(_text(name, left + 16.0, at + 3.0, "start", _SMALL, plain=False))
    return body


def _polar(panel: Panel, wide: float, high: float) -> list[str]:
    """Angles as x, radii as y; the inner circle stands for radius 0."""
    below = _room_below(panel, wide)
    high -= below
    top = 20.0 * (1 + panel.title.count("\n")) if panel.title else 6.0
    radius = min(0.5 * wide - 24.0, 0.5 * (high - top) - 18.0)
    cx, cy = 0.5 * wide, top + 15.0 + radius
    low, most = panel.ylim or tuple(_limits(_values(panel, "y"), None, False))
    origin = low - panel.hole * most

    def places(angle: object, r: object) -> tuple[Array, Array]:
        a, share = np.asarray(angle, dtype=float), np.asarray(r, dtype=float)
        share = radius * (share - origin) / (most - origin)
        return cx + share * np.cos(a), cy - share * np.sin(a)

    inner = radius * (low - origin) / (most - origin)
    body = [f'<clipPath id="c"><circle cx="{_n(cx)}" cy="{_n(cy)}" r="{_n(radius)}"/></clipPath>']
    for angle in range(0, 360, 45):
        (x0, x1), (y0, y1) = places(np.radians([angle, angle]), [low, most])
        body.append(_stroke(f"M{_n(x0)} {_n(y0)}L{_n(x1)} {_n(y1)}", "var(--faint)", 0.6))
        ax = cx + (radius + 12.0) * math.cos(math.radians(angle))
        ay = cy - (radius + 12.0) * math.sin(math.radians(angle)) + 3.4
        body.append(_text(f"{angle}°", ax, ay, "middle", size=_SMALL))
    for r in (inner, radius):
        body.append(
            f'<circle cx="{_n(cx)}" cy="{_n(cy)}" r="{_n(r)}" fill="none" '
            'stroke="currentColor" stroke-width=".8"/>'
        )
    for trace, colour in zip(panel.traces, _colours(panel), strict=True):
        if isinstance(trace, Line):
            body.append(_line(trace, colour[0], *places(trace.x, trace.y)))
        elif isinstance(trace, Points):
            body += _points(trace, colour, *places(trace.x, trace.y))
    for i, part in enumerate(panel.title.split("\n")):
        body.append(_text(part, cx, 13.0 + 13.0 * i, "middle", size=11.0))
    if below:
        body += _legend_below(_legend_entries(panel), wide, high + 9.0)
    return body


def _trace(trace: Trace, colour: Sequence[str], x: Axis, y: Axis) -> list[str]:
    if isinstance(trace, Line):
        return [_line(trace, colour[0], x.place(trace.x), y.place(trace.y))]
    if isinstance(trace, Points):
        return _points(trace, colour, x.place(trace.x), y.place(trace.y))
    if isinstance(trace, Band):
        px = x.place(trace.x)
        ends = [np.concatenate([px, px[::-1]])]
        ends.append(np.concatenate([y.place(trace.low), y.place(trace.high)[::-1]]))
        fill = f'fill="{colour[0]}" fill-opacity="{trace.alpha:g}"'
        return [f'<path d="{_path(*ends)}z" {fill} clip-path="url(#c)"/>']
    if isinstance(trace, Image):
        return write_image(trace, x.place, y.place)
    return _rule(trace, colour[0], x, y)


def _line(trace: Line, colour: str, x: Array, y: Array) -> str:
    return _stroke(_path(x, y), colour, trace.width, trace.dash, clip=True)


def _points(trace: Points, colours: Sequence[str], x: Array, y: Array) -> list[str]:
    """One group for each colour, a marker of the given area at each point."""
    side = math.sqrt(trace.size)
    each = list(colours) if len(colours) == x.size else [colours[0]] * x.size
    body = []
    for colour in dict.fromkeys(each):
        paint = f'fill="{colour}" fill-opacity="{trace.alpha:g}"'
        if trace.marker in "+x":
            paint = f'fill="none" stroke="{colour}" stroke-width="{_n(1.2 / side)}"'
        shape = _SHAPES[trace.marker]
        marks = "".join(
            f'<path d="{shape}" transform="translate({_n(a)} {_n(b)}) scale({_n(side)})"/>'
            for a, b, own in zip(x, y, each, strict=True)
            if own == colour and math.isfinite(a) and math.isfinite(b)
        )
        clip = ' clip-path="url(#c)"' if trace.clip else ""
        body.append(f"<g {paint}{clip}>{marks}</g>")
    return body


def _rule(trace: Rule, colour: str, x: Axis, y: Axis) -> list[str]:
    upright = trace.axis == "x"
    at = float((x if upright else y).place(trace.at))
    path = f"M{_n(at)} {_n(y.first)}V{_n(y.last)}"
    if not upright:
        path = f"M{_n(x.first)} {_n(at)}H{_n(x.last)}"
    body = [_stroke(path, colour, 1.0, trace.dash, clip=True)]
    if trace.text and math.isfinite(at):
        left = not upright or trace.side == "left"
        tx = at + (-4.0 if left else 4.0) if upright else x.last - 6.0
        ty = y.first + trace.place * (y.last - y.first) + 8.0 if upright else at - 3.0
        body.append(_text(trace.text, tx, ty, "end" if left else "start", size=_SMALL))
    return body


def _legend_entries(panel: Panel) -> list[Entry]:
    pairs = zip(panel.traces, _colours(panel), strict=True)
    return [(t, c[0], t.label) for t, c in pairs if not isinstance(t, Image) and t.label]


def _room_below(panel: Panel, wide: float) -> float:
    """Height of a legend below the axes, 0 where there is none."""
    entries = _legend_entries(panel) if panel.legend == "below" else []
    return 6.0 + 13.0 * math.ceil(len(entries) / _columns(entries, wide)[0]) if entries else 0.0


def _width(label: str) -> float:
    """Of a sample with its name."""
    return 26.0 + _SMALL * _LETTER * len(label)


def _columns(entries: list[Entry], wide: float) -> tuple[int, float]:
    """How many columns a legend below the axes has, and how wide they are."""
    column = max(_width(label) for _, _, label in entries) + 8.0
    return max(1, min(3, len(entries), int((wide - 8.0) / column))), column


def _legend_below(entries: list[Entry], wide: float, first: float) -> list[str]:
    """Samples and names in columns."""
    columns, column = _columns(entries, wide)
    left = 0.5 * (wide - columns * column) + 4.0
    body: list[str] = []
    for i, entry in enumerate(entries):
        body += _entry(entry, left + column * (i % columns), first + 13.0 * (i // columns))
    return body


def _legend(
    panel: Panel,
    entries: list[Entry],
    frame: tuple[float, float, float, float],
    x: Axis,
    y: Axis,
) -> list[str]:
    """Samples and names in a corner, by default the one with the fewest points."""
    left, right, top, bottom = frame
    w = max(_width(label) for _, _, label in entries) + 6.0
    h = 13.0 * len(entries) + 4.0
    spots = {
        name: (
            left + 5.0 if "left" in name else right - w - 5.0,
            top + 5.0 if "upper" in name else bottom - h - 5.0,
        )
        for name in _CORNERS
    }
    name = panel.legend if panel.legend in spots else _emptiest(panel, spots, (w, h), x, y)
    at, above = spots[name]
    body = [
        f'<rect x="{_n(at)}" y="{_n(above)}" width="{_n(w)}" height="{_n(h)}" '
        'fill="var(--paper)" fill-opacity=".8"/>'
    ]
    for i, entry in enumerate(entries):
        body += _entry(entry, at + 3.0, above + 11.0 + 13.0 * i)
    return body


def _entry(entry: Entry, x: float, y: float) -> list[str]:
    trace, colour, label = entry
    name = _text(label, x + 23.0, y, "start", size=_SMALL)
    middle = y - 3.0
    if isinstance(trace, Points):
        mark = Points([0.0], [0.0], marker=trace.marker, size=min(trace.size, 40.0), clip=False)
        return [*_points(mark, [colour], np.array([x + 9.0]), np.array([middle])), name]
    if isinstance(trace, Band):
        paint = f'fill="{colour}" fill-opacity="{trace.alpha:g}"'
        return [f'<path d="M{_n(x)} {_n(middle - 3.0)}h18v6h-18z" {paint}/>', name]
    dash = "-" if isinstance(trace, Image) else trace.dash
    return [_stroke(f"M{_n(x)} {_n(middle)}h18", colour, 1.6, dash), name]


def _emptiest(
    panel: Panel,
    spots: dict[str, tuple[float, float]],
    size: tuple[float, float],
    x: Axis,
    y: Axis,
) -> str:
    """The corner whose legend hides the fewest vertices of lines and points."""
    hidden = dict.fromkeys(spots, 0)
    for trace in panel.traces:
        if isinstance(trace, Line | Points):
            px, py = x.place(trace.x), y.place(trace.y)
            for name, (a, b) in spots.items():
                inside = (px >= a) & (px <= a + size[0]) & (py >= b) & (py <= b + size[1])
                hidden[name] += int(inside.sum()) * (8 if isinstance(trace, Points) else 1)
    return min(spots, key=lambda name: hidden[name])


def _values(panel: Panel, side: str) -> list[object]:
    """What an axis must show."""
    found: list[object] = []
    for trace in panel.traces:
        if isinstance(trace, Rule):
            found += [trace.at] if trace.axis == side else []
        elif isinstance(trace, Band):
            found += [trace.x] if side == "x" else [trace.low, trace.high]
        elif isinstance(trace, Line | Points):
            found.append(getattr(trace, side))
    return found


def _all_whole(panel: Panel, side: str) -> bool:
    """Whether an axis counts: no ticks at 2.5 neurons."""
    shown = [t for t in panel.traces if isinstance(t, Line | Points)]
    kinds = [np.asarray(getattr(t, side)).dtype for t in shown]
    return bool(kinds) and all(np.issubdtype(kind, np.integer) for kind in kinds)


def _colours(panel: Panel) -> list[list[str]]:
    """Colours of each trace; traces without one take the next of ten."""
    found, used = [], 0
    for trace in panel.traces:
        given = None if isinstance(trace, Image) else trace.color
        if given is None:
            given, used = f"C{used}", used + 1
        found.append([_css(given)] if isinstance(given, str) else [_css(c) for c in given])
    return found


def _css(name: str) -> str:
    """A colour as a page knows it: of the ten, a grey between 0 and 1, or a name."""
    if name.startswith("tab:"):
        return _TAB[name[4:]]
    if name[:1] == "C" and name[1:].isdigit():
        return _CYCLE[int(name[1:]) % len(_CYCLE)]
    if name == "black":
        return "currentColor"
    try:
        grey = round(255 * float(name))
    except ValueError:
        return escape(name, quote=True)
    return f"rgb({grey},{grey},{grey})"


def _path(x: Array, y: Array) -> str:
    """Moves and lines; a gap where a number is missing, no vertices on straight stretches."""
    keep = np.isfinite(x) & np.isfinite(y)
    parts = []
    for piece in np.split(np.arange(x.size), np.flatnonzero(np.diff(keep)) + 1):
        if piece.size and keep[piece[0]]:
            places = _without_flat(np.column_stack([x[piece], y[piece]]))
            parts.append("M" + "L".join(f"{_n(a)} {_n(b)}" for a, b in places))
    return "".join(parts)


def _without_flat(places: Array) -> Array:
    """Vertices without every other one that lies on its neighbours' chord, again and again.

    Each pass asks for half the distance of the one before: together they move the line by less
    than twice the first.
    """
    near = _FLAT
    while len(places) > 2:
        chord = places[2:] - places[:-2]
        rest = places[1:-1] - places[:-2]
        length = np.maximum(np.hypot(*chord.T), 1e-9)
        off = np.abs(chord[:, 0] * rest[:, 1] - chord[:, 1] * rest[:, 0]) / length
        drop = (off < near) & (np.einsum("ij,ij->i", chord, rest) >= 0.0)
        drop[1::2] &= ~drop[:-1][::2][: drop[1::2].size]
        if not drop.any():
            break
        places = places[np.concatenate([[True], ~drop, [True]])]
        near *= 0.5
    return places


def _stroke(
    path: str,
    colour: str = "currentColor",
    width: float = 0.8,
    dash: str = "-",
    clip: bool = False,
) -> str:
    more = f' stroke-dasharray="{_DASHES[dash]}"' if dash in _DASHES else ""
    more += ' clip-path="url(#c)"' if clip else ""
    return (
        f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{_n(width)}" '
        f'stroke-linejoin="round"{more}/>'
    )


def _text(
    text: str, x: float | str, y: float, anchor: str, size: float = _SIZE, plain: bool = True
) -> str:
    if not text:
        return ""
    where = x if isinstance(x, str) else _n(x)
    letters = "" if size == _SIZE else f' font-size="{_n(size)}"'
    shown = escape(text) if plain else text
    return f'<text x="{where}" y="{_n(y)}" text-anchor="{anchor}"{letters}>{shown}</text>'


def _n(value: float) -> str:
    """Two decimals at most."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value else "0"
