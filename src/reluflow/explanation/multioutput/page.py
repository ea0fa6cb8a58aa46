"""The report on several outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reluflow.explanation.multioutput.quantities import GAP, SEPARATE, confusion
from reluflow.explanation.multioutput.words import how_simulated, told
from reluflow.plot.images import directions_picture
from reluflow.plot.palette import PREDICTED, SIMULATED
from reluflow.plot.traces import Line, Panel, Picture, Rule, Trace
from reluflow.report.page import Page
from reluflow.runtime.words import count

if TYPE_CHECKING:
    from reluflow.explanation.multioutput.explanation import VectorExplanation

_CONFUSIONS = 5  # pairs of a class and what it is taken for that are drawn over time


def page_of(e: VectorExplanation) -> Page:
    """The whole report."""
    p, s = e.problem, e.settings
    how = how_simulated(e)
    page = Page(
        f"What a network learns from {p.name}",
        f"{p.n:,} samples, {count(p.d, 'feature')}, {count(p.K, 'output')}, "
        f"{p.loss.name.replace('_', '-')} loss ({p.reduction}), leak {p.leak:g}; {s.m:,} neurons "
        f"from weights of size {s.scale:g} (seed {s.seed}). {how}.",
        terms=True,
    )
    (_, lead), *rest = e.verdict
    page.text(lead, kind="lead")
    page.points([f"{topic}: {text}" for topic, text in rest])
    if e.skipped:
        page.heading("Not computed", 3)
        page.points(e.missing)
    page.heading("What happens")
    panels = [_loss_panel(e)]
    if p.classes is not None:
        panels += [_pairs_panel(e), _confusion_panel(e)]
    page.figure(Picture(panels, columns=2, height=3.2), "What is told apart and confused when.")
    if e.comparison is not None:
        page.heading("Predicted and seen", 3)
        page.table(
            [
                {
                    "jump": row.jump,
                    "predicted": f"{row.predicted:.4g}",
                    "seen": "not seen" if row.simulated is None else f"{row.simulated:.4g}",
                    "neurons": row.neurons,
                    "loss after": f"{row.loss:.4g}",
                }
                for row in e.comparison.rows
            ]
        )
    if s.image_shape is not None and len(e.landscape):
        titles = [
            f"{told(e, b).removeprefix('tells ')}\nrate {value:.3g}"
            for b, value in zip(e.landscape.outer[:8], e.landscape.values, strict=False)
        ]
        picture = directions_picture(
            e.landscape.vectors[:8], s.image_shape, titles=titles, bias=p.bias, most=8
        )
        page.figure(picture, "Directions to which small neurons turn, and what each tells apart.")
    if p.classes is not None:
        page.heading("When two classes are told apart")
        page.text(
            f"Times, from which on {100 * SEPARATE:.0f} % of both prefer their own by {GAP:g}."
        )
        page.table(_times_table(e))
        page.heading("Confusion at the end")
        page.text("Samples of the class of a row, counted in the column of their largest output.")
        table = confusion(p, e.outputs)
        rows = [
            {"class": e.names[c], **{e.names[d]: int(table[c, d]) for d in range(p.K)}}
            for c in range(p.K)
        ]
        page.table(rows)
    if e.claims:
        page.heading("Theorems that carry over to several outputs")
        page.table(
            [{"claim": v.id, "statement": v.statement, "verdict": v.status.name} for v in e.claims]
        )
    return page.definitions()


def _time_axis(e: VectorExplanation) -> dict[str, Any]:
    """One axis for all panels: from shortly before the loss begins to fall to the end.

    Before that the outputs are next to nothing, and which is largest says little. Logarithmic where
    the end is late.
    """
    times, loss = e.run.flow_times, e.run.loss
    begun = float(times[int(np.argmax(loss <= loss[0] - 0.01 * (loss[0] - loss.min())))])
    scale = "log" if 0.0 < 6.0 * begun < times[-1] else "linear"
    return {"xlabel": "time", "xscale": scale, "xlim": (0.5 * begun, float(times[-1]))}


def _loss_panel(e: VectorExplanation) -> Panel:
    """The loss, and the times of the jumps that were predicted."""
    times, loss = e.run.flow_times, e.run.loss
    traces: list[Trace] = []
    if e.process is not None:
        jumps = e.process.jump_times(log_scale=float(e.net.log_norms.max()))
        traces += [
            Rule(float(t), "x", "" if i else "predicted jump", color=PREDICTED, dash="--")
            for i, t in enumerate(jumps)
            if t <= times[-1]
        ]
    traces.append(Line(times, loss, "loss", SIMULATED, width=2.2))
    deep = 0.0 < loss[-1] < 0.02 * loss[0]
    return Panel(
        traces,
        "loss",
        ylabel="loss",
        yscale="log" if deep else "linear",
        ylim=None if deep else (0.0, 1.05 * float(loss.max())),
        legend="below" if len(traces) > 1 else "",
        **_time_axis(e),
    )


def _times_table(e: VectorExplanation) -> list[dict[str, str]]:
    """For each pair of classes, when it is told apart."""
    times = {pair: when for when, *two in e.separated for pair in (tuple(two), tuple(two[::-1]))}
    rows = []
    for c in range(e.problem.K):
        cells = [times.get((c, d), np.nan) for d in range(e.problem.K)]
        words = ["" if np.isnan(t) else "not yet" if np.isinf(t) else f"{t:.3g}" for t in cells]
        rows.append({"class": e.names[c], **dict(zip(e.names, words, strict=True))})
    return rows


def _pairs_panel(e: VectorExplanation) -> Panel:
    """Share of each pair that is told apart, the first and the last few pairs named."""
    shares, times = e.run["separations"], e.run.flow_times
    shown = e.separated if len(e.separated) <= 6 else [*e.separated[:3], *e.separated[-3:]]
    traces = [Line(times, shares[:, c, d], f"{e.names[c]}, {e.names[d]}") for _, c, d in shown]
    return Panel(
        traces,
        "pairs of classes told apart",
        ylabel="share on its own side",
        ylim=(0.0, 1.05),
        legend="below",
        **_time_axis(e),
    )


def _confusion_panel(e: VectorExplanation) -> Panel:
    """Shares of classes that are taken for another, those that are largest on the way."""
    tables, times = np.asarray(e.run["confusion"]), e.run.flow_times
    shares = tables / np.maximum(tables.sum(axis=2, keepdims=True), 1.0)
    grown = e.run.loss < 0.98 * e.run.loss[0]  # before that outputs are next to nothing
    most = shares[grown].mean(axis=0) if grown.any() else shares.mean(axis=0)
    np.fill_diagonal(most, 0.0)
    top = [np.unravel_index(i, most.shape) for i in np.argsort(-most, axis=None)[:_CONFUSIONS]]
    traces = [
        Line(times, shares[:, c, d], f"{e.names[c]} as {e.names[d]}")
        for c, d in top
        if most[c, d] > 0.0
    ]
    return Panel(
        traces,
        "what is taken for what",
        ylabel="share of the class",
        ylim=(0.0, 1.05),
        legend="below",
        **_time_axis(e),
    )
