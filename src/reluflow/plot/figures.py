"""The public pictures: what a user has in hand goes in, ``ax=`` says where, axes come out."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from reluflow.arrays import Array, real_number
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.landscape.align import Alignment
from reluflow.landscape.extremal import ExtremalVectors, extremal_vectors
from reluflow.network import Network
from reluflow.plot.curves import clock_of, cosines_panel, log_norms_panel, loss_panel, margins_panel
from reluflow.plot.palette import (
    GREEN,
    GREY,
    NEGATIVE,
    NEUTRAL,
    ORANGE,
    POSITIVE,
    SIMULATED,
    VIOLET,
)
from reluflow.plot.panels import (
    MANY,
    Extent,
    boundary_panel,
    function_panel,
    leading_plane,
    neurons_panel,
)
from reluflow.plot.process import jumps
from reluflow.plot.render import draw
from reluflow.plot.sphere import plot_alignment_circle, plot_alignment_sphere, plot_values
from reluflow.plot.traces import Line, Panel, Points, Rule, Trace
from reluflow.prediction.process import JumpProcess
from reluflow.problem import Problem
from reluflow.runtime.words import count
from reluflow.trajectory import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from reluflow.explanation.explanation import Explanation

_TRAILS = 60  # paths of neurons drawn at most
_FEW = 10  # records below which each is marked
_TITLE = 58  # letters in a line of a title


@check_arguments
def loss(
    run: Trajectory,
    process: JumpProcess | None = None,
    *,
    log_scale: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Loss of a run against time or steps, with the jumps and plateaus that are predicted.

    Parameters
    ----------
    run : Trajectory
        What :func:`reluflow.flow` or :func:`reluflow.descend` returned.
    process : JumpProcess, optional
        Adds its jump times at the scale of the run (dashed) and the losses of its plateaus
        (dotted).
    log_scale : float, optional
        Logarithm of the largest inner weight at the start; read from the first record by default.
    ax : Axes, optional
        A new figure by default.

    Returns
    -------
    Axes
    """
    panel = loss_panel(run, process, log_scale=log_scale)
    if len(run) < _FEW:  # straight lines between records could be taken for the course
        records = Points(clock_of(run)[0], run.loss, "record", SIMULATED, clip=False)
        title = f"loss at {len(run)} records: save= of the run sets how many"
        panel = replace(panel, traces=[*panel.traces, records], title=title, legend="below")
    axes: Axes = draw(panel, ax)
    return axes


@check_arguments
def sizes(
    run: Trajectory,
    process: JumpProcess | None = None,
    *,
    log_scale: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """log10 of every |w_j| along a run: straight lines while neurons grow, flat when they carry f.

    Parameters
    ----------
    run, process, log_scale, ax
        As in :func:`loss`; the run has networks or the observable "log_norms".

    Returns
    -------
    Axes
    """
    axes: Axes = draw(log_norms_panel(run, process, log_scale=log_scale), ax)
    return axes


@check_arguments
def neurons(
    net: Network | Trajectory,
    problem: Problem | None = None,
    *,
    most: int = MANY,
    size: float | None = None,
    legend: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """Inner weights by angle and norm; of a run the last ones, with the paths that led there.

    The inner circle is norm 0, so that the angles of small neurons can be seen. In more than two
    dimensions the neurons are projected on the two leading directions of their weights, which the
    title says.

    Parameters
    ----------
    net : Network or Trajectory
        A run with networks also gives the problem.
    problem : Problem, optional
        Adds a cross for the direction of each sample and dashed rays for its hyperplane, in two
        dimensions.
    most : int
        Neurons drawn at most; the title says when there are more.
    size : float, optional
        Largest norm shown, to compare several pictures.
    legend : bool
        Whether to name the marks below the axes; several small pictures need it once.
    ax : Axes, optional
        Of projection "polar"; a new figure by default.

    Returns
    -------
    Axes
    """
    run = net if isinstance(net, Trajectory) else None
    last = net if isinstance(net, Network) else net.final
    _check_one_output(last)
    problem = run.problem if run is not None and problem is None else problem
    title, plane = "", None
    if last.d != 2:
        plane, problem = leading_plane(last), None
        title = f"projected from {last.d} dimensions\non two leading directions"
    flat, named = _project(last, plane), "below" if legend else ""
    panel = neurons_panel(flat, problem, most=most, size=size, title=title, legend=named)
    if run is not None and run.networks is not None and len(run) > 1:
        trails = _trails(run, plane, flat)
        panel = replace(panel, traces=[*trails, *panel.traces])
    axes: Axes = draw(panel, ax)
    return axes


def _project(net: Network, plane: Array | None) -> Network:
    """The neurons in the plane of two orthonormal columns."""
    return net if plane is None else Network(net.W @ plane, net.a, net.log_scale)


def _trails(run: Trajectory, plane: Array | None, last: Network) -> list[Trace]:
    """Paths of the largest neurons at the end, in polar coordinates."""
    logs = last.log_norms
    top = float(logs.max())
    unit = top if not -600.0 < top < 600.0 else 0.0
    traces: list[Trace] = []
    states = [_project(net, plane) for net in run.path()]
    for j in np.argsort(-logs, kind="stable")[:_TRAILS]:
        angle = np.unwrap([np.arctan2(s.W[j, 1], s.W[j, 0]) for s in states])
        radius = np.exp([s.log_norms[j] - unit for s in states])
        colour = {1: POSITIVE, -1: NEGATIVE}.get(int(np.sign(last.a[j])), NEUTRAL)
        traces.append(Line(angle, radius, "" if traces else "path of a neuron", colour, width=0.7))
    return traces


@check_arguments
def function(
    net: Network | Trajectory,
    problem: Problem | None = None,
    *,
    span: tuple[float, float] | None = None,
    line: bool = True,
    ax: Axes | None = None,
) -> Axes:
    """f(x) against x with the samples, for data with one feature and a bias.

    Parameters
    ----------
    net : Network or Trajectory
        Of a run the last network; its problem is then known.
    problem : Problem, optional
        The data.
    span : (low, high), optional
        Range of x; a little more than the data by default.
    line : bool
        Whether to draw the least-squares line, dashed.
    ax : Axes, optional
        A new figure by default.

    Returns
    -------
    Axes
    """
    last, data = _network_and_data(net, problem)
    axes: Axes = draw(function_panel(last, data, span=span, line=line, legend="best"), ax)
    return axes


@check_arguments
def boundary(
    net: Network | Trajectory,
    problem: Problem | None = None,
    *,
    extent: Extent | None = None,
    resolution: int = 201,
    ax: Axes | None = None,
) -> Axes:
    """f over the plane and the decision boundary f = 0, for two features and labels -1 and +1.

    Late in a run on a margin loss no float holds the outputs: f is drawn for the weights over the
    largest of them, which leaves the boundary where it is.

    Parameters
    ----------
    net, problem
        As in :func:`function`.
    extent : (left, right, bottom, top), optional
        A square around the samples by default.
    resolution : int
        Grid points along each side.
    ax : Axes, optional
        A new figure by default.

    Returns
    -------
    Axes
    """
    last, data = _network_and_data(net, problem)
    log = last.log_m_norm
    unit = last.scaled(-log) if np.isfinite(log) else last
    panel = boundary_panel(unit, data, extent=extent, resolution=resolution, legend="below")
    axes: Axes = draw(panel, ax)
    return axes


def _network_and_data(
    net: Network | Trajectory, problem: Problem | None
) -> tuple[Network, Problem]:
    if isinstance(net, Trajectory):
        problem, net = net.problem if problem is None else problem, net.final
    if problem is None:
        raise ReluflowError("a network alone has no samples: give plot the problem too")
    _check_one_output(net)
    return net, problem


def _check_one_output(net: Network) -> None:
    """Raise where there is no sign of an outer weight, and no graph of a function, to draw."""
    if net.a.ndim > 1:
        raise ReluflowError(
            f"this picture is for one output, the network has {net.a.shape[1]}: plot.sizes and "
            "plot.loss take several"
        )


@check_arguments
def landscape(
    problem: Problem,
    pull: ArrayLike | None = None,
    *,
    extremal: ExtremalVectors | None = None,
    ax: Axes | None = None,
) -> Axes:
    """G of the silent network, which small neurons climb, and its critical points.

    On the circle for d = 2, on the sphere (Mollweide projection) for d = 3, as bars of the
    critical values otherwise; a bias counts as a feature.

    Parameters
    ----------
    problem : Problem
        The data.
    pull : array (n,), optional
        Another pull than that of the silent network.
    extremal : ExtremalVectors, optional
        Computed if not given.
    ax : Axes, optional
        Of projection "mollweide" for d = 3; a new figure by default.

    Returns
    -------
    Axes
    """
    plots = {2: plot_alignment_circle, 3: plot_alignment_sphere}
    return plots.get(problem.d, plot_values)(problem, pull, ax=ax, extremal=extremal)


@check_arguments
def alignment(
    what: Trajectory | Alignment,
    directions: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Cosines with extremal directions along a run, or when and how fast neurons align.

    Parameters
    ----------
    what : Trajectory or Alignment
        A run with networks: the cosine of each neuron with the direction it is nearest to at the
        end. What :func:`reluflow.align` returned: growth rate against the time of alignment of
        each neuron that grows.
    directions : array (k, d), optional
        Unit rows; by default the extremal vectors of the run's problem.
    ax : Axes, optional
        A new figure by default.

    Returns
    -------
    Axes
    """
    if isinstance(what, Alignment):
        panel = alignment_panel(what)
    else:
        if directions is None:
            directions = extremal_vectors(what.problem).vectors
        panel = cosines_panel(what, directions)
    axes: Axes = draw(panel, ax)
    return axes


def alignment_panel(found: Alignment) -> Panel:
    """A point for each neuron that grows: when it is aligned, and its rate from then on."""
    traces: list[Trace] = []
    for sign, name, colour in ((1, "positive output", POSITIVE), (-1, "negative output", NEGATIVE)):
        rows = found.growing & (found.sign == sign)
        if rows.any():
            traces.append(Points(found.time[rows], found.growth[rows], name, colour, alpha=0.9))
    grows, m = int(found.growing.sum()), found.growing.size
    title = f"{grows:,} of {count(m, 'neuron')} {'grows' if grows == 1 else 'grow'}"
    xlabel = f"time from which the cosine is at least {found.cosine:g}"
    return Panel(traces, title, xlabel, "growth rate of log|w|", legend="below" if traces else "")


@check_arguments
def margins(
    run: Trajectory,
    best: Any = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    r"""Normalised margin min_k y_k f(x_k) / |theta|^2 along a run, for labels -1 and +1.

    Parameters
    ----------
    run : Trajectory
        With networks or the observable "normalized_margin".
    best : result of :func:`reluflow.max_margin`, number, or mapping of names to these, optional
        Drawn as level lines. A hyperplane of margin gamma is drawn as the network it is:
        two neurons w and -w, of normalised margin :math:`(1 + \mathrm{leak}) \gamma / 4`.
    ax : Axes, optional
        A new figure by default.

    Returns
    -------
    Axes
    """
    panel = margins_panel(run)
    named = best if isinstance(best, Mapping) else {} if best is None else {"": best}
    levels: list[Trace] = []
    for (name, given), colour in zip(named.items(), (ORANGE, GREEN, VIOLET, GREY), strict=False):
        level, usual = _margin_level(given, run.problem.leak)
        levels.append(Rule(level, "y", str(name) or usual, color=colour, dash="--"))
    if levels:
        panel = replace(panel, traces=[*panel.traces, *levels], legend="below")
    axes: Axes = draw(panel, ax)
    return axes


def _margin_level(best: Any, leak: float) -> tuple[float, str]:
    """A margin as that of a network, and what to call it."""
    if hasattr(best, "margin") and hasattr(best, "w"):
        return 0.25 * (1.0 + leak) * float(best.margin), "best hyperplane, as a network"
    if hasattr(best, "margin"):
        return float(best.margin), "best network of any width"
    return real_number(best, "best"), "best"


@check_arguments
def verdict(explanation: Explanation, *, ax: Axes | None = None) -> Axes:
    """The figure of an explanation: the simulated loss, and the jumps predicted without training.

    Parameters
    ----------
    explanation : Explanation
        What :func:`reluflow.explain` returned; the first sentence of its verdict is the title.
    ax : Axes, optional
        A new figure by default.

    Returns
    -------
    Axes
    """
    panel = verdict_panel(explanation)
    axes: Axes = draw(panel, ax)
    axes.set_title(axes.get_title(), fontsize="small")
    return axes


def verdict_panel(explanation: Explanation) -> Panel:
    """Loss and predicted jumps; the first sentence of the verdict as title."""
    run, process = getattr(explanation, "run", None), getattr(explanation, "process", None)
    if not isinstance(run, Trajectory):
        raise ReluflowError(
            f"explanation must be an Explanation, got {type(explanation).__name__}: give what "
            "explain(problem) returned"
        )
    if run.settings.get("clock") == "loss":
        run = replace(run, times=run.flow_times, settings={**run.settings, "clock": "time"})
    panel = loss_panel(run, process, log_scale=float(explanation.net.log_norms.max()))
    first = explanation.verdict[0][1].split(". ")[0].rstrip(".") + "."
    return replace(panel, title=textwrap.fill(first, _TITLE))


def usual_picture(what: Any, **options: Any) -> Axes:
    """The picture that ``.plot()`` of an object draws."""
    if isinstance(what, Problem):
        axes: Axes = draw(samples_panel(what), **options)
        return axes
    if isinstance(what, Network):
        return neurons(what, **options)
    if isinstance(what, Trajectory):
        return loss(what, **options)
    if isinstance(what, JumpProcess):
        return jumps(what, **options)
    if isinstance(what, Alignment):
        return alignment(what, **options)
    return verdict(what, **options)


def samples_panel(problem: Problem, most: int = 5000) -> Panel:
    """Samples of one or two features; more are projected on their two leading directions.

    Of more than ``most`` samples an even choice is shown, which the title says.
    """
    plain = problem.X if problem.bias is None else problem.X[:, :-1]
    names, title, y = problem.axis_names, "", problem.y
    if plain.shape[1] > 2:
        middle = plain - plain.mean(axis=0)
        plain = middle @ np.linalg.svd(middle, full_matrices=False)[2][:2].T
        title = "projected on the two leading directions of the samples"
        names = ["first direction", "second direction"]
    if len(y) > most:
        rows = np.linspace(0, len(y) - 1, most).astype(int)
        plain, y = plain[rows], y[rows]
        title = f"{title}{', ' if title else ''}{most} of {problem.n} samples"
    if plain.shape[1] == 1:
        points = Points(plain[:, 0], y, "data", GREEN)
        return Panel([points], title, names[0], problem.label_name)
    traces: list[Trace] = []
    if np.isin(y, (-1.0, 1.0)).all():
        for label, colour, marker in ((1.0, POSITIVE, "o"), (-1.0, NEGATIVE, "s")):
            rows = y == label
            if rows.any():
                name = problem.class_name(label)
                x, z = plain[rows].T
                traces.append(Points(x, z, name, colour, marker))
    else:
        traces.append(Points(plain[:, 0], plain[:, 1], "data", GREEN))
    return Panel(traces, title, names[0], names[1], legend="best" if len(traces) > 1 else "")
