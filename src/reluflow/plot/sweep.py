"""Pictures of sweeps: lines with bands, and maps over two fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reluflow.errors import ReluflowError
from reluflow.plot.render import compose, draw
from reluflow.plot.traces import Band, Image, Line, Panel, Picture, Points

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

KINDS = ("lines", "map")
MANY = 8  # facets, and lines in one panel, beyond which a picture cannot be read
_COLORS = ("#3b6fb6", "#c44e52", "#55a868", "#8172b2", "#ccb974", "#64b5cd", "#8c8c8c", "#da8bc3")


def plot_sweep(
    frame: pandas.DataFrame,
    *,
    kind: str = "",
    x: str = "",
    y: Sequence[str] = (),
    value: str = "",
    by: str = "",
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    xscale: str = "",
    yscale: str = "",
) -> Figure:
    """A picture of the finished points of a sweep.

    Parameters
    ----------
    frame : DataFrame
        Rows with status "ok".
    kind : {"lines", "map"}
        "lines": median of the columns ``y`` against ``x`` with the band from the 10th to the 90th
        percentile over repetitions (for true/false columns, the share and two standard errors),
        one colour for each value of ``by``. "map": mean of ``value`` over the fields ``x`` and
        ``y``, one panel for each value of ``by``.
    x, y, value, by : names of columns
    title, xlabel, ylabel : str
    xscale, yscale : {"linear", "log"}
        By default logarithmic where the values are positive and spaced so.

    Returns
    -------
    Figure
        Of matplotlib; :func:`reluflow.plot.render.write_picture` writes it.
    """
    y = [y] if isinstance(y, str) else list(y)
    if kind not in KINDS:
        raise ReluflowError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    needed = [x, *y, *([value] if kind == "map" else []), *([by] if by else [])]
    if not x or not y or (kind == "map" and (not value or len(y) != 1)):
        raise ReluflowError("lines need x and y; a map needs x, one y and a value")
    for name in needed:
        if name not in frame.columns:
            raise ReluflowError(f"no column {name!r}: the table has {', '.join(frame.columns)}")
    labels: dict[str, Any] = {"title": title, "xlabel": xlabel or x}
    if kind == "map":
        return _maps(frame, x, y[0], value, by, {**labels, "ylabel": ylabel or y[0]})
    panel = _lines(frame, x, y, by, {**labels, "ylabel": ylabel or ", ".join(y)}, xscale, yscale)
    return compose(Picture([panel], width=6.4, height=4.2))


def _lines(
    frame: pandas.DataFrame,
    x: str,
    y: Sequence[str],
    by: str,
    labels: dict[str, Any],
    xscale: str,
    yscale: str,
) -> Panel:
    groups = _groups(frame, by)
    traces: list[Any] = []
    for i, (label, part) in enumerate(groups):
        for k, name in enumerate(y):
            color = _COLORS[(i if by else k) % len(_COLORS)]
            at, middle, low, high = _bands(part, x, name)
            said = " ".join(word for word in (label, name if len(y) > 1 or not by else "") if word)
            dash = ("-", "--", ":", "-.")[k % 4] if by or _exact(low, high) else "-"
            if not _exact(low, high):
                traces.append(Band(at, low, high, color=color, alpha=0.18))
                traces.append(Points(at, middle, color=color, size=14.0))
            traces.append(Line(at, middle, said, color=color, dash=dash, width=1.6))
    return Panel(
        traces,
        xscale=xscale or _scale(np.sort(frame[x].unique())),
        yscale=yscale or "linear",
        legend="best" if len(groups) * len(y) > 1 else "",
        **labels,
    )


def _exact(low: NDArray[Any], high: NDArray[Any]) -> bool:
    """Whether a column does not vary over repetitions: a bound, say."""
    return bool(np.all(low == high))


def _bands(frame: pandas.DataFrame, x: str, name: str) -> tuple[NDArray[Any], ...]:
    """Places, middles, and the ends of a band around them."""
    at, middle, low, high = [], [], [], []
    shares = frame[name].dropna().map(type).isin((bool, np.bool_)).all()
    for place, part in frame.groupby(x, sort=True):
        values = np.asarray(part[name].dropna(), dtype=float)
        if not values.size:
            continue
        at.append(place)
        if shares:
            middle.append(values.mean())
            share = (values.sum() + 1) / (values.size + 2)
            error = 2 * np.sqrt(share * (1 - share) / values.size)
            low.append(max(0.0, middle[-1] - error))
            high.append(min(1.0, middle[-1] + error))
        else:
            middle.append(np.median(values))
            low.append(np.quantile(values, 0.1))
            high.append(np.quantile(values, 0.9))
    return np.array(at), np.array(middle), np.array(low), np.array(high)


def _maps(
    frame: pandas.DataFrame, x: str, y: str, value: str, by: str, labels: dict[str, Any]
) -> Figure:
    from matplotlib.figure import Figure as Canvas

    title = labels.pop("title")
    groups = _groups(frame, by)
    columns = min(len(groups), 3)
    rows = -(-len(groups) // columns)
    canvas = Canvas(figsize=(4.8 * columns, 3.8 * rows + 0.4), layout="constrained")
    numbers = frame[value].astype(float)
    for i, (label, part) in enumerate(groups):
        wide = part.assign(**{value: numbers[part.index]}).pivot_table(
            index=y, columns=x, values=value, aggfunc="mean"
        )
        # each value has a cell of its own, whatever its distance to the next
        extent = (-0.5, len(wide.columns) - 0.5, -0.5, len(wide.index) - 0.5)
        image = Image(wide.to_numpy(), extent, colors="viridis", symmetric=False, origin="lower")
        panel = Panel([image], title=label if by else title, **labels)
        ax = draw(panel, canvas.add_subplot(rows, columns, i + 1))
        ax.set_xticks(*_ticks(wide.columns))
        ax.set_yticks(*_ticks(wide.index))
        ax.images[0].set_clim(numbers.min(), numbers.max())
    bar = canvas.colorbar(ax.images[0], ax=canvas.axes)
    bar.set_label(f"mean of {value}")
    if by:
        canvas.suptitle(title)
    return canvas


def _ticks(values: Any, most: int = 8) -> tuple[list[int], list[str]]:
    places = list(range(0, len(values), -(-len(values) // most)))
    return places, [_short(values[i]) for i in places]


def _short(value: Any) -> str:
    if isinstance(value, int | np.integer | str | bool):
        return str(value)
    return f"{value:.2g}"


def _groups(frame: pandas.DataFrame, by: str) -> list[tuple[str, pandas.DataFrame]]:
    if not by:
        return [("", frame)]
    found = [(_short(key), part) for key, part in frame.groupby(by, sort=True)]
    if len(found) > MANY:
        raise ReluflowError(f"{by} has {len(found)} values: a picture shows at most {MANY}")
    return found


def _scale(values: NDArray[Any]) -> str:
    """Logarithmic where positive values grow by factors rather than steps."""
    if values.dtype.kind not in "if" or len(values) < 3 or values[0] <= 0:
        return "linear"
    steps, factors = np.diff(values), np.diff(np.log(values))
    return "log" if np.ptp(factors) / factors.mean() < np.ptp(steps) / steps.mean() else "linear"
