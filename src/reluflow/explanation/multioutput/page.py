"""The report on several outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from reluflow.explanation.multioutput.quantities import confusion
from reluflow.explanation.multioutput.words import told_apart
from reluflow.plot.curves import loss_panel
from reluflow.plot.images import directions_picture
from reluflow.plot.traces import Line, Panel, Picture
from reluflow.report.page import Page
from reluflow.runtime.words import count

if TYPE_CHECKING:
    from reluflow.explanation.multioutput.explanation import VectorExplanation

_CONFUSIONS = 5  # pairs of a class and what it is taken for that are drawn over time


def page_of(e: VectorExplanation) -> Page:
    """The whole report."""
    p, s = e.problem, e.settings
    how = "gradient flow" if "rtol" in e.run.settings else "gradient descent"
    page = Page(
        f"What a network learns from {p.name}",
        f"{p.n:,} samples, {count(p.d, 'feature')}, {count(p.K, 'output')}, "
        f"{p.loss.name.replace('_', '-')} loss ({p.reduction}), leak {p.leak:g}; {s.m:,} neurons "
        f"from weights of size {s.scale:g} (seed {s.seed}), {how}.",
        terms=True,
    )
    (_, lead), *rest = e.verdict
    page.text(lead, kind="lead")
    page.points([f"{topic}: {text}" for topic, text in rest])
    if e.skipped:
        page.heading("Not computed", 3)
        page.points(e.missing)
    page.heading("What happens")
    panels = [loss_panel(e.run, e.process, log_scale=float(e.net.log_norms.max()))]
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
        titles = [told_apart(e.names, b) for b in e.landscape.outer[:8]]
        picture = directions_picture(
            e.landscape.vectors[:8], s.image_shape, titles=titles, bias=p.bias, most=8
        )
        page.figure(picture, "Directions to which small neurons turn, as images.")
    if p.classes is not None:
        page.heading("Confusion at the end")
        table = confusion(p, e.outputs)
        rows = [
            {"class": e.names[c], **{e.names[d]: int(table[c, d]) for d in range(p.K)}}
            for c in range(p.K)
        ]
        page.table(rows)
    return page.definitions()


def _pairs_panel(e: VectorExplanation) -> Panel:
    """Share of each pair that is told apart, the first and the last few pairs named."""
    shares, times = e.run["separations"], np.maximum(e.run.flow_times, 1e-300)
    shown = e.separated if len(e.separated) <= 6 else [*e.separated[:3], *e.separated[-3:]]
    traces = [Line(times, shares[:, c, d], f"{e.names[c]}, {e.names[d]}") for _, c, d in shown]
    return Panel(
        traces,
        "pairs of classes told apart",
        xlabel="time",
        ylabel="share on its own side",
        ylim=(0.0, 1.05),
        legend="below",
    )


def _confusion_panel(e: VectorExplanation) -> Panel:
    """Shares of classes that are taken for another, those that are largest on the way."""
    tables, times = np.asarray(e.run["confusion"]), np.maximum(e.run.flow_times, 1e-300)
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
        xlabel="time",
        ylabel="share of the class",
        ylim=(0.0, 1.05),
        legend="below",
    )
