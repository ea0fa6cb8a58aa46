"""Pictures of the limit process: staircase, exponents and saddles, with a simulation over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reluflow.arrays import Array
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.plot.palette import GREY, PREDICTED, cycle_colour
from reluflow.plot.render import ink_of, new_axes
from reluflow.plot.traces import DATA, HYPERPLANES, NEGATIVE, NEUTRAL, POSITIVE
from reluflow.prediction.process import JumpProcess, log_inverse
from reluflow.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DORMANT = GREY
_DOTS = 2000  # dormant directions drawn at most
_PARALLEL = 1e-6  # 1 - cosine of neurons drawn as one
_LINES = 200  # exponents drawn at most; the title says how many were left out


def _log_norms(run: Trajectory) -> Array | None:
    """Log-norms of every record, (records, m), if the run has them."""
    if "log_norms" in run.observables:
        return run["log_norms"]
    if run.networks is not None:
        return np.array([net.log_norms for net in run.networks])
    return None


def _clock(run: Trajectory, scale: float | None, log_scale: float | None) -> float:
    """L = log(1/scale) of a run: given, or from the largest inner weight of its first record."""
    if scale is not None or log_scale is not None:
        return log_inverse(scale, log_scale)
    logs = _log_norms(run)
    if logs is None or len(run) == 0 or run.times[0] > 0.0 or not logs[0].max() < 0.0:
        raise ReluflowError(
            "the scale of the run's start is unknown: give scale= or log_scale=, or record "
            "networks or 'log_norms' from time 0 on"
        )
    return -float(logs[0].max())


def _end(process: JumpProcess, run: Trajectory | None, L: float | None) -> float:
    """Right end of the time axis."""
    end = 1.15 * float(process.times[-1]) if process.n_jumps else 1.0
    if run is not None and L is not None and len(run):
        end = max(end, min(float(run.times[-1]) / L, 1.5 * end))
    return end


def _finish(ax: Any, process: JumpProcess, end: float, ylabel: str) -> None:
    for time in process.times:
        ax.axvline(time, color=GREY, lw=0.5, alpha=0.5, zorder=0)
    ax.set(xlim=(0.0, end), xlabel="time / log(1/scale)", ylabel=ylabel)


@check_arguments
def jumps(
    process: JumpProcess,
    run: Trajectory | None = None,
    *,
    scale: float | None = None,
    log_scale: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """The predicted staircase of the loss against time over log(1/scale), and a run over it.

    Parameters
    ----------
    process : JumpProcess
        What :func:`reluflow.limit` or :func:`reluflow.algorithm1` predicts.
    run : Trajectory, optional
        A simulation; its scale is read from its first record if none is given.
    scale, log_scale : float, optional
        Largest inner weight at the start, or its logarithm. With known constants of the jumps
        (``process.offsets``) the staircase at this scale is drawn too, dashed.
    ax : Axes, optional
        A new figure by default.

    Returns
    -------
    Axes
    """
    axes: Axes = new_axes(ax, size=(6.4, 3.6))
    L = None
    if run is not None:
        L = _clock(run, scale, log_scale)
    elif scale is not None or log_scale is not None:
        L = log_inverse(scale, log_scale)
    end = _end(process, run, L)

    def stairs(times: Array, **style: Any) -> None:
        edges = np.concatenate([[0.0], times, [max(end, times.max(initial=0.0))]])
        axes.stairs(process.losses, edges, baseline=None, **style)

    if run is not None and L is not None:
        label = f"simulated, scale {_power(L)}"
        axes.plot(run.times / L, run.loss, color=ink_of(axes), lw=2.4, label=label)
    stairs(process.times, color=PREDICTED, lw=1.4, label="predicted, scale to 0")
    if L is not None and process.offsets is not None and np.isfinite(process.offsets).all():
        times = process.jump_times(log_scale=-L) / L
        stairs(times, color=PREDICTED, lw=1.2, ls="--", label=f"predicted, scale {_power(L)}")
    _finish(axes, process, end, "loss")
    axes.set_ylim(bottom=min(0.0, float(np.nanmin(process.losses))))
    axes.legend(frameon=False, fontsize="small", loc="upper right")
    return axes


def _power(L: float) -> str:
    """1e-40, also where floats end."""
    return f"1e{-L / np.log(10.0):.0f}"


def _group_colours(process: JumpProcess) -> dict[int, str]:
    """A colour for every neuron that jumps, one for each jump in turn."""
    return {int(j): cycle_colour(i) for i, who in enumerate(process.neurons) for j in who}


@check_arguments
def exponents(
    process: JumpProcess,
    run: Trajectory | None = None,
    *,
    scale: float | None = None,
    log_scale: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Exponents log|w_j| / log(1/scale) of all neurons, piecewise linear from -1 up to 0.

    Neurons that jump have the colour of their jump, the others are grey. With a run its
    log-norms are drawn as dots; active ones end at log|w_j| / log(1/scale), which tends to 0.

    Parameters
    ----------
    process : JumpProcess
        The prediction.
    run : Trajectory, optional
        A simulation that recorded networks or the observable "log_norms".
    scale, log_scale : float, optional
        Largest inner weight at the run's start, by default read from its first record.
    ax : Axes, optional
        A new figure by default.

    Returns
    -------
    Axes
    """
    axes: Axes = new_axes(ax, size=(6.4, 3.8))
    L = None if run is None else _clock(run, scale, log_scale)
    end = _end(process, run, L)
    nodes = np.concatenate([[0.0], process.times, [end]])
    beta = process.exponents_at(nodes)
    colours = _group_colours(process)
    others = np.setdiff1d(np.arange(process.m), list(colours))
    shown = [*np.array(list(colours), dtype=int)[:_LINES], *others[:_LINES]]
    for j in shown:
        colour = colours.get(int(j), _DORMANT)
        axes.plot(nodes, beta[:, j], color=colour, lw=1.3, zorder=2 if j in colours else 1)
    if run is not None and L is not None:
        logs = _log_norms(run)
        if logs is None:
            raise ReluflowError(
                "the run recorded no sizes: run it with observe=['log_norms'] or states=True"
            )
        pick = np.unique(np.linspace(0, len(run) - 1, 120).astype(int))
        for j in shown:
            colour = colours.get(int(j), _DORMANT)
            axes.plot(run.times[pick] / L, logs[pick, j] / L, ".", ms=3.5, color=colour, alpha=0.6)
        axes.plot([], [], ".", color=ink_of(axes), label=f"simulated, scale {_power(L)}")
    axes.plot([], [], color=ink_of(axes), lw=1.3, label="predicted, scale to 0")
    axes.axhline(0.0, color=GREY, lw=0.8, zorder=0)
    _finish(axes, process, end, "log|w| / log(1/scale)")
    low = float(beta[:, shown].min()) if shown else -1.0
    axes.set_ylim(min(-1.08, 1.05 * low), 0.12)
    axes.legend(frameon=False, fontsize="small", loc="lower right")
    if len(shown) < process.m:
        axes.set_title(f"{len(shown)} of {process.m} neurons drawn", fontsize="medium")
    return axes


def plot_saddles(process: JumpProcess, *, most: int = 8) -> Any:
    """The neurons at each saddle: active ones as strong arrows, dormant directions as light dots.

    In two dimensions the plane itself, dashed lines being the hyperplanes of the samples; in
    more the plane of the two leading directions of the last saddle, as the title says. Neurons of
    one direction and sign are one arrow, of the length of their joint norm on the scale of the
    largest; red for positive outer weights, blue for negative.

    Parameters
    ----------
    process : JumpProcess
        The prediction.
    most : int
        Panels at most; of more saddles the first ones and the last are drawn.

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.figure import Figure

    if most < 2:
        raise ReluflowError(f"most must be at least 2 panels, got {most}")
    K = process.n_jumps
    shown = [*range(min(K, most - 1)), K]
    columns = min(len(shown), 4)
    rows = -(-len(shown) // columns)
    figure = Figure(figsize=(2.7 * columns, 3.2 * rows), layout="compressed")
    plane = _plane_of(process)
    sizes = [float(np.linalg.norm(plane @ w)) for i in shown for w, _ in bundles(process, i)]
    top = max(sizes, default=0.0)
    for place, i in enumerate(shown):
        ax = figure.add_subplot(rows, columns, place + 1)
        _draw_saddle(ax, process, i, plane, top if top > 0.0 else 1.0)
        when = "start" if i == 0 else f"after jump {i}, time {process.times[i - 1]:.4g}"
        ax.set_title(f"{when}\nloss {process.losses[i]:.4g}", fontsize="small")
    notes = []
    if process.problem.d > 2:
        notes.append("projected on the leading plane of the last saddle")
    if len(shown) < K + 1:
        notes.append(f"{len(shown)} of {K + 1} saddles")
    if notes:
        figure.suptitle(", ".join(notes), fontsize="small", color=DATA)
    return figure


def _plane_of(process: JumpProcess) -> Array:
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


def _draw_saddle(ax: Any, process: JumpProcess, i: int, plane: Array, top: float) -> None:
    """Neurons of saddle i in the plane, arrows in units of ``top``."""
    turn = np.linspace(0.0, 2.0 * np.pi, 181)
    ax.plot(np.cos(turn), np.sin(turn), color=GREY, lw=0.8, zorder=0)
    _samples(ax, process, plane)
    colours = np.array([NEGATIVE, NEUTRAL, POSITIVE])[np.sign(process.signs).astype(int) + 1]
    dormant = np.flatnonzero(~process.active[i] & process.directions[i].any(axis=1))
    dots = dormant[:: max(1, dormant.size // _DOTS)]
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
