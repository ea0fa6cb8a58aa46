"""Traces drawn by matplotlib: onto axes, into a file, or as SVG that fits light and dark pages."""

from __future__ import annotations

import io
import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reluflow.errors import ReluflowError
from reluflow.plot.palette import INK
from reluflow.plot.traces import Band, Image, Line, Panel, Picture, Points, Rule, Trace
from reluflow.runtime import beside

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MANY = 2_000  # points beyond which a scatter is stored as pixels inside a vector picture
# stand for the page's colours of text, grid and background in SVG
_INK, _FAINT, _PAPER = "#010203", "#010204", "#010205"
STYLE = (
    "<style>svg{color:#1c2024;--faint:#d5d9de;--paper:#fff}"
    "@media (prefers-color-scheme:dark){svg{color:#d7dbe0;--faint:#3a4048;--paper:#15181c}}</style>"
)


def new_axes(
    ax: Axes | None, projection: str | None = None, size: tuple[float, float] = (6, 4)
) -> Any:
    """``ax``, or the axes of a new figure.

    It is one of pyplot's where pyplot is imported, so that ``plt.show()`` shows it; otherwise no
    global state knows of it.
    """
    if ax is None:
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is not None:
            return pyplot.figure(figsize=size, layout="constrained").add_subplot(
                projection=projection
            )
        from matplotlib.figure import Figure

        figure = Figure(figsize=size, layout="constrained")
        axes: Any = figure.add_subplot(projection=projection)
        # pyplot does not know this figure: notebooks show it as any object with a picture
        axes._repr_png_ = figure._repr_png_ = partial(_png_of, figure)  # type: ignore[attr-defined]
        return axes
    if projection is not None and ax.name != projection:
        raise ReluflowError(
            f"ax has the projection {ax.name!r}, expected {projection!r}: "
            f"make it with fig.add_subplot(projection={projection!r}) or leave ax out"
        )
    return ax


def _png_of(figure: Figure) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110)
    return out.getvalue()


def ink_of(ax: Any) -> Any:
    """The colour of the text of axes: that of lines which stand for themselves."""
    return ax.xaxis.label.get_color()


def draw(
    panel: Panel,
    ax: Axes | None = None,
    ink: str | None = None,
    faint: str | None = None,
    paper: str | None = None,
) -> Any:
    """Draw a panel on ``ax`` (a new figure by default) and return the axes.

    Text and black traces have the colour ``ink``, the grid ``faint``, legends the background
    ``paper``: by default those of matplotlib's settings, so that a dark style makes a dark picture.
    """
    axes = new_axes(ax, "polar" if panel.polar else None, (4.6, 4.6 if panel.polar else 3.4))
    ink, faint, paper = _page_colours(ink, faint, paper)
    for trace in panel.traces:
        _draw_trace(axes, _in_ink(trace, ink))
    axes.set_title(panel.title, fontsize="medium", color=ink)
    if panel.polar:
        _polar(axes, panel, faint)
        _draw_legend(axes, panel, ink, paper)
        return axes
    axes.set(xlabel=panel.xlabel, ylabel=panel.ylabel, xscale=panel.xscale, yscale=panel.yscale)
    _count_in_integers(axes, panel)
    if panel.xlim is not None:
        axes.set_xlim(*panel.xlim)
    if panel.ylim is not None:
        axes.set_ylim(*panel.ylim)
    if panel.equal:
        axes.set_aspect("equal")
    if not panel.axes:
        axes.set_axis_off()
    if panel.xnames:
        axes.set_xticks(range(len(panel.xnames)), panel.xnames)
        long = sum(map(len, panel.xnames)) > 40
        axes.tick_params(axis="x", labelrotation=60.0 if long else 0.0)
    if panel.ynames:
        axes.set_yticks(range(len(panel.ynames)), panel.ynames)
    _draw_legend(axes, panel, ink, paper)
    return axes


def _page_colours(ink: str | None, faint: str | None, paper: str | None) -> tuple[str, str, str]:
    """Colours of text, grid and background, those of matplotlib's settings where none is given."""
    from matplotlib import rcParams
    from matplotlib.colors import to_hex

    ink = to_hex(rcParams["text.color"]) if ink is None else ink
    if paper is None:
        paper = to_hex(rcParams["axes.facecolor"])
    if faint is None:
        faint = "0.3" if float(np.mean(_rgb(paper))) < 0.5 else "0.88"
    return ink, faint, paper


def _rgb(colour: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    return to_rgb(colour)


def _in_ink(trace: Trace, ink: str) -> Trace:
    """A trace whose black is the colour of text."""
    if isinstance(trace, Image) or trace.color is None:
        return trace
    if isinstance(trace.color, str):
        return replace(trace, color=ink) if trace.color == INK else trace
    assert isinstance(trace, Points)
    return replace(trace, color=[ink if colour == INK else colour for colour in trace.color])


def _draw_legend(axes: Any, panel: Panel, ink: str, paper: str) -> None:
    if not panel.legend:
        return
    where: dict[str, Any] = {"loc": panel.legend}
    if panel.legend == "below":
        columns, drop = (2, -0.1) if panel.polar else (3, -0.2)
        where = {"loc": "upper center", "bbox_to_anchor": (0.5, drop), "ncols": columns}
    frame = {"facecolor": paper, "edgecolor": "none", "framealpha": 0.8, "fancybox": False}
    axes.legend(fontsize="small", labelcolor=ink, **frame, **where)


def _count_in_integers(axes: Any, panel: Panel) -> None:
    """No ticks at 2.5 neurons: linear axes on which all points are integers."""
    from matplotlib.ticker import MaxNLocator

    shown = [trace for trace in panel.traces if isinstance(trace, (Line, Points))]
    sides = (("x", axes.xaxis, panel.xscale), ("y", axes.yaxis, panel.yscale))
    for name, axis, scale in sides:
        whole = all(np.issubdtype(np.asarray(getattr(t, name)).dtype, np.integer) for t in shown)
        if shown and whole and scale == "linear":
            axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))


def _polar(axes: Any, panel: Panel, faint: str) -> None:
    if panel.ylim is not None:
        axes.set_rlim(*panel.ylim)
        axes.set_rorigin(panel.ylim[0] - panel.hole * panel.ylim[1])
    axes.set_yticks([])
    axes.set_xticks(np.radians(np.arange(0, 360, 45)))
    axes.grid(color=faint, lw=0.5)


def _draw_trace(ax: Any, trace: Trace) -> None:
    if isinstance(trace, Line):
        how = {"color": trace.color} if trace.color else {}
        ax.plot(trace.x, trace.y, ls=trace.dash, lw=trace.width, label=trace.label or None, **how)
    elif isinstance(trace, Points):
        _draw_points(ax, trace)
    elif isinstance(trace, Band):
        how = {"color": trace.color} if trace.color else {}
        ax.fill_between(
            trace.x,
            trace.low,
            trace.high,
            alpha=trace.alpha,
            lw=0,
            label=trace.label or None,
            **how,
        )
    elif isinstance(trace, Rule):
        _draw_rule(ax, trace)
    else:
        _draw_image(ax, trace)


def _draw_points(ax: Any, trace: Points) -> None:
    x = np.asarray(trace.x)
    how: dict[str, Any] = {} if trace.color is None else {"c": trace.color}
    if isinstance(trace.color, str):
        how = {"color": trace.color}
    ax.scatter(
        x,
        trace.y,
        marker=trace.marker,
        s=trace.size,
        alpha=trace.alpha,
        linewidths=1.2 if trace.marker in "+x" else 0.0,
        label=trace.label or None,
        rasterized=x.size > MANY,
        clip_on=trace.clip,
        zorder=3,
        **how,
    )


def _draw_rule(ax: Any, trace: Rule) -> None:
    across = ax.axvline if trace.axis == "x" else ax.axhline
    across(trace.at, color=trace.color, ls=trace.dash, lw=1, label=trace.label or None)
    if trace.text:
        upright, left = trace.axis == "x", trace.axis == "y" or trace.side == "left"
        ax.annotate(
            trace.text,
            (trace.at, trace.place) if upright else (0.98, trace.at),
            xycoords=ax.get_xaxis_transform() if upright else ax.get_yaxis_transform(),
            xytext=(-4 if left else 4, 0),
            textcoords="offset points",
            fontsize="small",
            color=ax.xaxis.label.get_color(),
            ha="right" if left else "left",
            va="top" if upright else "bottom",
        )


def _draw_image(ax: Any, trace: Image) -> None:
    values = np.asarray(trace.values, dtype=float)
    top = float(np.nanmax(np.abs(values))) or 1.0
    limits = {"vmin": -top, "vmax": top} if trace.symmetric else {}
    extent, flip = trace.extent, "lower" if trace.origin == "lower" else "upper"
    if trace.levels is not None:
        if extent is None:
            raise ReluflowError("contours need an extent: pass Image(extent=(x0, x1, y0, y1))")
        x = np.linspace(extent[0], extent[1], values.shape[1])
        y = np.linspace(extent[2], extent[3], values.shape[0])
        rows = values if flip == "lower" else values[::-1]
        shown = ax.contourf(x, y, rows, levels=list(trace.levels), cmap=trace.colors, extend="both")
    else:
        shown = ax.imshow(
            values, extent=extent, cmap=trace.colors, origin=flip, aspect="auto", **limits
        )
    if trace.bar:
        ax.figure.colorbar(shown, ax=ax)


def compose(picture: Picture) -> Figure:
    """The whole picture as one matplotlib figure, for a PNG or PDF file."""
    from matplotlib.figure import Figure as Canvas

    size = (picture.width * picture.columns, picture.height * picture.rows + 0.4)
    canvas = Canvas(figsize=size, layout="constrained")
    for i, panel in enumerate(picture.panels):
        projection = "polar" if panel.polar else None
        draw(panel, canvas.add_subplot(picture.rows, picture.columns, i + 1, projection=projection))
    if picture.title:
        canvas.suptitle(picture.title)
    return canvas


def make_folder(folder: Path) -> Path:
    """Make an output folder and those above it, or say why not."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReluflowError(f"cannot write into {folder}: {error.strerror}") from None
    return folder


def write_picture(figure: Any, path: Path, dpi: int = 150) -> Path:
    """Save a Picture or a matplotlib figure beside and rename: no half-written file is left."""
    canvas = compose(figure) if isinstance(figure, Picture) else figure
    metadata = {"Software": None} if path.suffix == ".png" else None
    with beside(path) as part:
        canvas.savefig(part, dpi=dpi, format=path.suffix[1:], metadata=metadata)
    return path


def to_svg(panel: Panel, width: float = 4.6, height: float = 3.4) -> str:
    """One panel as SVG: axes take the colours of a light or a dark page, the same input gives the
    same text."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    style: dict[Any, Any] = {
        name: _INK
        for name in (
            "text.color",
            "axes.labelcolor",
            "axes.edgecolor",
            "xtick.color",
            "ytick.color",
            "grid.color",
        )
    }
    size = (width, 0.92 * width if panel.polar else height)
    with matplotlib.rc_context({**style, "svg.fonttype": "path", "svg.hashsalt": "reluflow"}):
        canvas = Canvas(figsize=size, layout="constrained")
        canvas.patch.set_alpha(0.0)
        ax = canvas.add_subplot(projection="polar" if panel.polar else None)
        ax.patch.set_alpha(0.0)
        draw(panel, ax, _INK, _FAINT, _PAPER)
        out = io.StringIO()
        canvas.savefig(out, format="svg", dpi=160, metadata={"Date": None, "Creator": None})
    return _portable(out.getvalue())


def _portable(svg: str) -> str:
    """Page colours for ink, ids by order of appearance, no XML prologue."""
    svg = svg[svg.index("<svg") :].replace(_INK, "currentColor")
    svg = svg.replace(_FAINT, "var(--faint)").replace(_PAPER, "var(--paper)")
    names = dict.fromkeys(re.findall(r'\bid="([^"]+)"', svg))
    short = {name: f"i{i}" for i, name in enumerate(names)}
    svg = re.sub(r'\bid="([^"]+)"', lambda m: f'id="{short[m[1]]}"', svg)
    svg = re.sub(r'(url\(|href=")#([^")]+)', lambda m: f"{m[1]}#{short.get(m[2], m[2])}", svg)
    end = svg.index(">") + 1
    return svg[:end] + STYLE + svg[end:]
