"""Curves of a run as panels: loss, sizes, cosines, stable rank, margins; and its end."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow.arrays import Array
from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.plot.palette import GREY, PREDICTED, SIMULATED, cycle_colour
from reluflow.plot.panels import boundary_panel, function_panel, has_boundary, neurons_panel
from reluflow.plot.render import make_folder, write_picture
from reluflow.plot.traces import (
    NEGATIVE,
    NEUTRAL,
    POSITIVE,
    Line,
    Panel,
    Picture,
    Rule,
    Trace,
)
from reluflow.problem import Problem
from reluflow.trajectory import Trajectory
from reluflow.trajectory.observables import OBSERVABLES

if TYPE_CHECKING:
    from reluflow.prediction.process import JumpProcess


LINES = 120  # neurons drawn at most, the largest at the end; the title says how many
_REACHED = 0.95  # cosine from which a neuron has its direction
_GONE = GREY  # neurons that end nowhere in particular


def clock_of(run: Trajectory) -> tuple[Array, str]:
    """Where the records stand and what to call it: steps of a descent, times of a flow."""
    if run.settings.get("method") == "descend":
        return np.asarray(run.steps, dtype=float), "step"
    loss_clock = run.settings.get("clock") == "loss"
    return run.times, "s, ds = loss dt" if loss_clock else "time"


def _axis(run: Trajectory) -> dict[str, Any]:
    """The common horizontal axis: cut a while after the loss has settled, logarithmic for margin
    losses, whose loss never settles."""
    x, label = clock_of(run)
    if len(x) < 2:
        remedy = "record more often"
        if run.status.code == "stationary":
            remedy = "the run ended where it began, there is nothing to draw"
        raise ReluflowError(f"curves need at least 2 records, got {len(x)}: {remedy}")
    if run.problem.loss.margin and (x > 0).sum() > 1:
        first = x[x > 0][0]
        return {"xlabel": label, "xscale": "log", "xlim": (float(first), float(x[-1]))}
    drop = run.loss[0] - run.loss[-1]
    moving = np.flatnonzero(np.abs(run.loss - run.loss[-1]) > 1e-3 * abs(drop))
    last = x[min(moving[-1] + 1, len(x) - 1)] if moving.size else x[-1]
    return {"xlabel": label, "xlim": (0.0, float(min(x[-1], 1.5 * last)))}


def observable_of(run: Trajectory, name: str) -> Array:
    """An observable of every record, measured on the networks if it was not recorded."""
    if name in run.observables:
        return run[name]
    if run.networks is None:
        raise ReluflowError(
            f"the run recorded neither networks nor {name!r}: run it with observe=[{name!r}]"
        )
    return np.array([OBSERVABLES[name](run.problem, net) for net in run.networks])


def _jumps(run: Trajectory, process: JumpProcess | None, log_scale: float | None) -> list[Trace]:
    """Predicted jumps as vertical lines, in the run's clock."""
    x, label = clock_of(run)
    if process is None or process.n_jumps == 0 or label.startswith("s,"):
        return []
    if log_scale is None:
        log_scale = float(observable_of(run, "log_norms")[0].max())
    times = process.jump_times(log_scale=log_scale)
    where = np.interp(times, run.times, x, right=np.nan)
    return [
        Rule(float(at), "x", "predicted jump" if i == 0 else "", color=PREDICTED, dash="--")
        for i, at in enumerate(where)
        if np.isfinite(at)
    ]


def loss_panel(
    run: Trajectory, process: JumpProcess | None = None, *, log_scale: float | None = None
) -> Panel:
    """Loss against time or steps, with the predicted jumps and plateaus.

    Parameters
    ----------
    run : Trajectory
    process : JumpProcess, optional
        Adds its jump times, as predicted for the scale of the run, and the losses of its
        plateaus.
    log_scale : float, optional
        Logarithm of the largest inner weight at the start; read from the first record by default.
    """
    x, _ = clock_of(run)
    axis = _axis(run)
    margin = run.problem.loss.margin
    traces: list[Trace] = _jumps(run, process, log_scale)
    if process is not None and not margin:
        traces += [
            Rule(float(level), "y", "predicted plateau" if i == 0 else "", color=GREY, dash=":")
            for i, level in enumerate(process.losses)
        ]
    traces.append(Line(x, run.loss, "loss", SIMULATED, width=2.2))
    positive = run.loss[run.loss > 0]
    scale = "log" if margin and positive.size else "linear"
    top = 1.05 * float(run.loss.max()) if scale == "linear" else None
    return Panel(
        traces,
        "loss",
        ylabel="loss",
        yscale=scale,
        ylim=None if not top else (0.0, top),
        legend="below" if len(traces) > 1 else "",
        **axis,
    )


def _rows_to_draw(sizes: Array) -> NDArray[np.intp]:
    """The largest neurons and, among the others, an even choice."""
    order = np.argsort(-sizes, kind="stable")
    if order.size <= LINES:
        return order
    half = LINES // 2
    rest = order[half:]
    return np.concatenate([order[:half], rest[:: -(-rest.size // half)]])


def _title(title: str, shown: int, m: int) -> str:
    return title if shown == m else f"{title} ({shown} of {m:,} neurons)"


def log_norms_panel(
    run: Trajectory, process: JumpProcess | None = None, *, log_scale: float | None = None
) -> Panel:
    """log10 of every |w_j|; red positive outer weights, blue negative ones.

    With several outputs a neuron has the colour of the output it adds most to.

    Parameters
    ----------
    run, process, log_scale
        As in :func:`loss_panel`.
    """
    x, _ = clock_of(run)
    logs = observable_of(run, "log_norms") / np.log(10.0)
    side, names = _sides(run)
    rows = _rows_to_draw(logs[-1])
    traces: list[Trace] = _jumps(run, process, log_scale)
    seen: set[int] = set()
    for j in rows[::-1]:
        label, colour = names[side[j]]
        shown = label if side[j] not in seen else ""
        seen.add(side[j])
        y = np.where(np.isfinite(logs[:, j]), logs[:, j], np.nan)
        traces.append(Line(x, y, shown, colour, width=0.9))
    title = _title("sizes of neurons", rows.size, logs.shape[1])
    return Panel(traces, title, ylabel="log10 |w|", legend="below", **_axis(run))


def _sides(run: Trajectory) -> tuple[list[int], dict[int, tuple[str, str]]]:
    """What each neuron adds to, and the name and colour of that: a sign, or one of the outputs."""
    a = run.final.a
    if a.ndim == 1:
        signs = {1: ("positive output", POSITIVE), -1: ("negative output", NEGATIVE)}
        return np.sign(a).astype(int).tolist(), {**signs, 0: ("", NEUTRAL)}
    classes = run.problem.classes or [f"output {k}" for k in range(a.shape[1])]
    names = {k: (f"mostly {name}", cycle_colour(k)) for k, name in enumerate(classes)}
    return np.argmax(np.abs(a), axis=1).tolist(), names


def cosines_panel(run: Trajectory, directions: ArrayLike, *, most: int = 8) -> Panel:
    """Cosine of each neuron with that of the given directions it is nearest to at the end.

    Parameters
    ----------
    run : Trajectory
        With networks, or with an observable "cosines" of these directions.
    directions : array (k, d)
        Unit rows, such as ``extremal_vectors(problem).vectors``.
    most : int
        Directions named in the legend.
    """
    V = np.atleast_2d(np.asarray(directions, dtype=float))
    if V.shape[1] != run.problem.d:
        raise ReluflowError(
            f"directions have {V.shape[1]} columns, the problem has d={run.problem.d}"
        )
    if run.networks is not None:
        cosine = np.array([net.directions @ V.T for net in run.networks])
    else:
        cosine = observable_of(run, "cosines")
    x, _ = clock_of(run)
    nearest = np.argmax(cosine[-1], axis=1)
    rows = _rows_to_draw(run.final.log_norms)
    reached = np.take_along_axis(cosine[-1], nearest[:, None], axis=1)[:, 0] >= _REACHED
    traces: list[Trace] = []
    for k in sorted(set(nearest[rows][reached[rows]].tolist()))[:most]:
        traces.append(Line([], [], f"to direction {k}", cycle_colour(k)))
    for j in rows[::-1]:
        colour = cycle_colour(int(nearest[j])) if reached[j] else _GONE
        traces.append(Line(x, cosine[:, j, nearest[j]], "", colour, width=0.8))
    if not reached[rows].all():
        traces.append(Line([], [], f"ends below {_REACHED}", _GONE))
    title = _title("cosine with the nearest direction", rows.size, cosine.shape[1])
    return Panel(
        traces, title, ylabel="cosine", ylim=(-1.05, 1.05), legend="lower right", **_axis(run)
    )


def stable_rank_panel(run: Trajectory) -> Panel:
    """Stable rank |W|_F^2 / |W|_2^2 of the inner weights, between 1 and d.

    Parameters
    ----------
    run : Trajectory
        With networks or the observable "stable_rank".
    """
    x, _ = clock_of(run)
    rank = observable_of(run, "stable_rank")
    top = max(2.0, 1.08 * float(np.nanmax(rank)))
    curve = Line(x, rank, color=SIMULATED, width=2.0)
    return Panel([curve], "stable rank of W", ylabel="stable rank", ylim=(0.9, top), **_axis(run))


def margins_panel(run: Trajectory) -> Panel:
    """Normalised margin min_k y_k f(x_k) / |theta|^2, for labels -1 and +1.

    Parameters
    ----------
    run : Trajectory
        With networks or the observable "normalized_margin".
    """
    if not np.isin(run.problem.y, (-1.0, 1.0)).all():
        raise ReluflowError("margins need labels -1 and +1: this is a regression problem")
    x, _ = clock_of(run)
    margin = observable_of(run, "normalized_margin")
    traces: list[Trace] = [
        Rule(0.0, "y"),
        Line(x, margin, "network", SIMULATED, width=2.0),
    ]
    return Panel(traces, "normalised margin", ylabel="min y f / |theta|²", **_axis(run))


def end_panels(problem: Problem, net: Network) -> list[Panel]:
    """The function or decision boundary and the neurons at the end, where they can be drawn.

    A boundary is that of the network over its largest weight: late in a run on a margin loss no
    float holds its outputs. Several outputs have no such pictures.
    """
    panels: list[Panel] = []
    if problem.several:
        return panels
    if problem.d == 2 and problem.bias is not None:
        panels.append(function_panel(net, problem, title="function at the end", legend="best"))
    elif has_boundary(problem):
        unit = net.scaled(-net.log_m_norm)
        panels.append(boundary_panel(unit, problem, title="f at the end, in units of its size"))
    if problem.d == 2:
        panels.append(neurons_panel(net, problem, title="neurons at the end", legend="below"))
    return panels


def curve_panels(
    run: Trajectory,
    process: JumpProcess | None = None,
    directions: ArrayLike | None = None,
    *,
    log_scale: float | None = None,
) -> list[Panel]:
    """Every curve that the records of a run allow.

    Parameters
    ----------
    run, process, log_scale
        As in :func:`loss_panel`.
    directions : array (k, d), optional
        Adds the cosines with these.
    """
    made: list[Callable[[], Panel]] = [
        lambda: loss_panel(run, process, log_scale=log_scale),
        lambda: log_norms_panel(run, process, log_scale=log_scale),
        lambda: stable_rank_panel(run),
    ]
    if directions is not None and len(np.atleast_2d(directions)):
        made.insert(2, lambda: cosines_panel(run, directions))
    if not run.problem.several and np.isin(run.problem.y, (-1.0, 1.0)).all():
        made.append(lambda: margins_panel(run))
    panels = []
    for make in made:
        try:
            panels.append(make())
        except ReluflowError:  # not recorded
            if not panels:
                raise
    return panels


def write_curves(
    run: Trajectory,
    folder: str | os.PathLike[str],
    process: JumpProcess | None = None,
    directions: ArrayLike | None = None,
) -> list[Path]:
    """Write curves.png and, in two dimensions, end.png.

    Parameters
    ----------
    run, process, directions
        As in :func:`curve_panels`.
    folder : path
        Made if needed.
    """
    target = Path(folder)
    curves = curve_panels(run, process, directions)
    pictures = [Picture(curves, 2, name="curves")]
    ends = end_panels(run.problem, run.final)
    if ends:
        pictures.append(Picture(ends, len(ends), name="end", height=3.8))
    return write_pictures(pictures, target)


def write_pictures(pictures: Sequence[Picture], folder: Path) -> list[Path]:
    """PNG files named after the pictures, in a folder made if needed."""
    make_folder(folder)
    return [write_picture(picture, folder / f"{picture.name}.png") for picture in pictures]
