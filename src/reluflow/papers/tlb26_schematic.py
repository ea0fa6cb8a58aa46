"""[TLB26]_ Figure 2: the three phases of a jump, measured on the golden case."""

from __future__ import annotations

import numpy as np

from reluflow.claims.tlb26_jumps import rise
from reluflow.claims.tlb26_lemmas import NEURON, hitting
from reluflow.claims.tlb26_runs import golden_course
from reluflow.claims.verdict import at_least, at_most
from reluflow.papers.figure import Drawn, figure
from reluflow.report.traces import Line, Panel, Picture, Rule, Trace


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
    c = golden_course(-scale)
    process, t = c.process, c.run.times
    grown = hitting(c, 1)[0]
    share = np.exp(2 * c.log_norms[:, 1]) / process.sizes[1]
    fitted = float(t[np.argmax(share >= 0.99)])
    gap = 0.5 * np.square(c.directions[:, 2] - process.directions[2][2]).sum(axis=1)
    aligned = float(t[(t > grown) & (gap < 1e-3)][0])
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
    fit, turn = rise(c, 1, 0.1, 0.9), aligned - fitted
    seen = [
        at_least(fitted, grown, what="fitting after growth to 1e-3 (time)"),
        at_least(aligned, fitted, what="realignment after fitting (time)"),
        at_most((fitted - grown) / (grown - c.half_fits[0]), 1.0, what="fitting over slow growth"),
        at_least(cosine[np.searchsorted(t, grown)], 0.999, what="old cosine when growth ends"),
        at_most(cosine[-1], 0.95, what="old cosine at the end"),
    ]
    numbers = {"grown": grown, "fitted": fitted, "aligned": aligned, "rise_10_90": fit}
    summary = [
        f"Neuron 2 grows slowly to norm {NEURON:g} by time {grown:.1f}, fits its point by "
        f"{fitted:.1f}, and neuron 3 has turned {turn:.1f} later; only the first of these three "
        f"durations grows as the start (here e^-{scale:.0f}) shrinks.",
    ]
    caption = (
        "The paper's figure is a drawing; this one is a run of the golden case, at its second "
        "jump. Dashed: end of slow growth (norm 1e-3), 99 % of the fit, 1 - cosine below 1e-3."
    )
    picture = Picture(panels, 2, "The phases of a jump", width=6.0, height=3.8)
    return Drawn([picture], numbers, summary, seen, caption)
