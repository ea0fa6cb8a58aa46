"""[TLB26]_ Figures 2 and 4: the phases of a jump, and where six neurons point around the first."""

from __future__ import annotations

import numpy as np

from reluflow.claims.verdict import at_least, at_most, equals
from reluflow.network import Network
from reluflow.papers.figure import Drawn, figure
from reluflow.papers.tlb26.claims.jumps import rise_time
from reluflow.papers.tlb26.claims.lemmas import NEURON, hitting_time
from reluflow.papers.tlb26.figures.six_neurons import (
    COLOURS,
    GUESSES,
    INSTANTS,
    L,
    lag,
    runs_of_six,
    setting,
)
from reluflow.papers.tlb26.runs import Course, golden_course
from reluflow.plot.traces import Line, Panel, Picture, Points, Rule, Trace


@figure(
    "TLB26",
    "F2",
    title="One jump: slow growth, rapid fitting, realignment",
    quick={"scale": 80.0},
    full={"scale": 400.0},
    claims=("TLB26-L1", "TLB26-L2", "TLB26-P3"),
)
def figure2(*, scale: float, seed: int = 0) -> Drawn:
    """Figure 2: the second jump of the golden case, with the ends of its phases."""
    c, smaller = golden_course(-scale), golden_course(-2 * scale)
    process, t = c.process, c.run.times
    grown, fitted, aligned = phases(c)
    share = np.exp(2 * c.log_norms[:, 1]) / process.sizes[1]
    gap = _gap(c)
    window = (c.half_fits[1] - 0.1 * scale - 20, c.half_fits[1] + 40)
    at = (t >= window[0]) & (t <= window[1])

    ends = [Rule(x, dash="--") for x in (grown, fitted, aligned)]
    named = [
        Rule(grown, text="slow\ngrowth", place=0.62, dash="--"),
        Rule(fitted, text="fit", place=0.62, dash="--"),
        Rule(aligned, text="re-\nalign", place=0.62, dash="--"),
    ]
    norms: list[Trace] = [
        Line(t[at], c.log_norms[at, j], f"neuron {j + 1}", f"C{j}") for j in range(3)
    ]
    cosine = np.sum(c.directions[:, 2] * process.directions[1][2], axis=1)
    turns: list[Trace] = [
        Line(t[at], share[at], "|w|^2 / v of the jumping neuron 2", "C1"),
        Line(t[at], 1 - gap[at], "cosine of neuron 3, new direction", "C2"),
        Line(t[at], cosine[at], "cosine of neuron 3, old direction", "C2", ":"),
    ]
    panels = [
        Panel([*named, *norms], "log-norms", "time", "log |w|", legend="lower right"),
        Panel(
            [*ends, *turns], "fit and directions", "time", ylim=(-0.05, 1.5), legend="upper left"
        ),
    ]
    fit, turn = rise_time(c, 1, 0.1, 0.9), aligned - fitted
    first, second = (_durations(run) for run in (c, smaller))
    growth = (second[0] - first[0]) / scale / (process.times[1] - process.times[0])
    seen = [
        at_least(aligned, fitted, what="realignment after fitting (time)"),
        equals(
            growth,
            1.0,
            tolerance=0.01,
            what="from a start squared: slow growth longer by L (tau_2 - tau_1), over that",
        ),
        equals(
            second[1] / first[1],
            1.0,
            tolerance=0.01,
            what="from a start squared: time to fit, over that shown",
        ),
        equals(
            second[2] / first[2],
            1.0,
            tolerance=0.01,
            what="from a start squared: time to realign, over that shown",
        ),
        at_most((fitted - grown) / (grown - c.half_fits[0]), 1.0, what="fitting over slow growth"),
        at_least(cosine[np.searchsorted(t, grown)], 0.999, what="old cosine when growth ends"),
        at_most(cosine[-1], 0.95, what="old cosine at the end"),
    ]
    numbers = {
        "grown": grown,
        "fitted": fitted,
        "aligned": aligned,
        "rise_10_90": fit,
        "durations": first,
        "durations_from_the_start_squared": second,
    }
    summary = [
        f"Neuron 2 grows slowly to norm {NEURON:g} by time {grown:.1f}, fits its point by "
        f"{fitted:.1f}, and neuron 3 has turned {turn:.1f} later; only the first of these three "
        f"durations grows as the start (here e^-{scale:.0f}) shrinks: they are "
        f"{_join_durations(first)}, and {_join_durations(second)} from e^-{2 * scale:.0f}."
    ]
    caption = (
        "The paper's figure is a drawing; this one is a run of the golden case, at its second "
        "jump. Dashed: end of slow growth (norm 1e-3), 99 % of the fit, 1 - cosine below 1e-3. A "
        "second run, from the start squared, is not drawn."
    )
    picture = Picture(panels, 2, "The phases of a jump", width=6.0, height=3.8)
    return Drawn([picture], numbers, summary, seen, caption)


def phases(c: Course) -> tuple[float, float, float]:
    """Times at which neuron 2 has grown to 1e-3 and fits to 99 %, and neuron 3 has turned."""
    grown = hitting_time(c, 1)[0]
    fitted = grown + rise_time(c, 1, NEURON**2 / float(c.process.sizes[1]), 0.99)
    gap, t = np.log(_gap(c) / 1e-3), c.run.times
    k = int(np.flatnonzero((t > grown) & (gap < 0))[0])
    aligned = float(t[k - 1] + (t[k] - t[k - 1]) * gap[k - 1] / (gap[k - 1] - gap[k]))
    return grown, fitted, aligned


def _gap(c: Course) -> np.ndarray:
    """1 - cosine of neuron 3 with the direction it turns to."""
    turned = c.directions[:, 2] - c.process.directions[2][2]
    return np.asarray(0.5 * np.square(turned).sum(axis=1))


def _durations(c: Course) -> tuple[float, float, float]:
    """Of slow growth since the first jump, of the fit, of what realignment takes after it."""
    grown, fitted, aligned = phases(c)
    return grown - float(c.half_fits[0]), fitted - grown, aligned - fitted


def _join_durations(durations: tuple[float, float, float]) -> str:
    return ", ".join(f"{x:.1f}" for x in durations)


@figure(
    "TLB26",
    "F4",
    title="Norm and direction of six neurons around the first jump",
    quick={"descent": False},
    full={"descent": True},
    claims=("TLB26-L5", "TLB26-L6", "TLB26-L7"),
)
def figure4(*, descent: bool, seed: int = 0) -> Drawn:
    """Figure 4: one neuron jumps, the others turn to what it left."""
    six = runs_of_six(descent)[-1]
    process = setting()[2]
    stretch = 1.0 if descent else lag()
    states = [six.state(epoch / stretch) for epoch in INSTANTS]
    plane = np.linalg.qr(np.random.default_rng(seed).standard_normal((64, 2)))[0]
    dormant = np.flatnonzero(~process.active[1] & (process.rates[1] > 0))
    cosines = [
        np.array([np.sum(net.directions * process.directions[i], axis=1)[dormant] for i in (0, 1)])
        for net in states
    ]
    panels = []
    for k, (epoch, net) in enumerate(zip(INSTANTS, states, strict=True)):
        old, new = cosines[k].min(axis=1)
        title = f"({'abcdef'[k]}) epoch {epoch:,}\nleast cosine: old {old:.4f}, new {new:.4f}"
        panels.append(_compass(net, plane, int(k >= 3), title, legend="" if k else "below"))
    norms = np.array([np.exp(net.log_norms) for net in states])
    seen = [
        equals((norms[2] > 1e-2).sum(), 1, tolerance=0, what="neurons above 0.01 at 506,000"),
        at_least(cosines[2][0].min(), 0.999, what="old cosines at 506,000"),
        at_least(cosines[3][1].min(), 0.915, what="new cosines at 508,000, least (known: 0.92)"),
        at_most(cosines[3][1].max(), 0.985, what="new cosines at 508,000, largest (known: 0.98)"),
        at_least(cosines[4][1].min(), 0.99, what="new cosines at 510,000"),
        at_least(cosines[5][1].min(), 0.9999, what="new cosines at 538,000"),
    ]
    numbers = {
        "norm_of_jumping_neuron": norms.max(axis=1).tolist(),
        "least_cosines": [c.min(axis=1).tolist() for c in cosines],
        "epochs_over_flow_epochs": stretch,
    }
    summary = [
        f"At epoch {epoch:,} the largest norm is {_size(net)}; least cosine of dormant "
        f"neurons with their old direction {c[0].min():.4f}, with the new one {c[1].min():.4f}."
        for epoch, net, c in zip(INSTANTS, states, cosines, strict=True)
    ]
    how = (
        ""
        if descent
        else f" By gradient flow, whose clock is stretched by {lag():.6f}, the delay of finite "
        "steps at the first jump."
    )
    caption = (
        "Angle: direction projected on a random plane; radius: 1 + log|w|/1000; "
        "crosses, outside: the direction predicted for the plateau. Instants (a) and (b) are "
        f"ours, not the paper's. {GUESSES}{how}"
    )
    picture = Picture(panels, 3, "Six neurons at six instants", width=4.0, height=4.2)
    return Drawn([picture], numbers, summary, seen, caption)


def _size(net: Network) -> str:
    """The largest norm, which may be no float."""
    log = float(net.log_norms.max())
    return f"{np.exp(log):.3g}" if log > -7 else f"e^{log:.0f}"


def _compass(net: Network, plane: np.ndarray, plateau: int, title: str, legend: str = "") -> Panel:
    def angle(V: np.ndarray) -> np.ndarray:
        x, y = (V @ plane).T
        return np.asarray(np.arctan2(y, x))

    turn, radius = angle(net.directions), np.clip(1 + net.log_norms / L, 0.0, 1.05)
    wanted = angle(setting()[2].directions[plateau])
    lines: list[Trace] = [
        Line([turn[j], turn[j]], [0.0, radius[j]], f"neuron {j + 1}", COLOURS[j], width=1.2)
        for j in range(6)
    ]
    return Panel(
        [
            *lines,
            Points(wanted, np.full(6, 1.1), color=COLOURS, marker="x", size=30, clip=False),
            Points(turn, radius, color=COLOURS, size=30, clip=False),
        ],
        title,
        polar=True,
        ylim=(0.0, 1.15),
        legend=legend,
    )
