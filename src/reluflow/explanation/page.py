"""The page of an explanation: verdict, pictures, numbers, certificates, claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from reluflow.explanation.replay import replay_of
from reluflow.explanation.verdict.words import feature_names, loss_number, samples, strengths
from reluflow.landscape.alignment import G
from reluflow.plot.curves import (
    clock_of,
    end_panels,
    log_norms_panel,
    loss_panel,
    margins_panel,
)
from reluflow.plot.images import directions_picture
from reluflow.plot.palette import GREEN, INK, NEGATIVE, ORANGE, POSITIVE
from reluflow.plot.traces import (
    Image,
    Line,
    Panel,
    Picture,
    Points,
    Rule,
    Trace,
)
from reluflow.problem.tables import to_file_units
from reluflow.report.page import Page, law_rows
from reluflow.runtime.words import count, number, percent
from reluflow.trajectory import Trajectory

if TYPE_CHECKING:
    from reluflow.claims.verdict import Verdict
    from reluflow.explanation.end import Group
    from reluflow.explanation.explanation import Explanation
    from reluflow.explanation.unseen import Unseen
    from reluflow.prediction.process import JumpProcess

_ROWS = 40  # of a table
_LATE = 1e9  # time beyond which margins are drawn against its logarithm
_FEATURES = 30  # beyond it directions are not drawn feature by feature


def page_of(e: Explanation) -> Page:
    """The whole report."""
    p, s = e.problem, e.settings
    how = "gradient flow" if s.lr is None else f"gradient descent with step size {s.lr:g}"
    page = Page(
        f"What a network learns from {p.name}",
        f"{p.n:,} samples, {count(p.d, 'feature')}, {p.loss.name.replace('_', '-')} loss "
        f"({p.reduction}), leak {p.leak:g}; {s.m:,} neurons from weights of size {s.scale:g} "
        f"(seed {s.seed}), {how}. Samples are numbered from 0; times are those of gradient flow.",
        terms=True,
    )
    if e.notes:
        page.text(" ".join(e.notes), kind="soft")
    (_, lead), *rest = e.verdict
    page.text(lead, kind="lead")
    if e.failed:
        page.text(_failures(e.failed), kind="lead bad")
    page.points([f"{topic}: {text}" for topic, text in rest])
    if e.skipped:
        page.heading("Not computed", 3)
        page.points(e.missing)
    _pictures(page, e)
    _jumps(page, e)
    _directions(page, e)
    _proofs(page, e)
    return page.definitions()


def _failures(failed: Sequence[Verdict]) -> str:
    """Claims of the papers that this run contradicts, for the top of the page."""
    said = [f"{v.label} ({v.statement})" for v in failed]
    verb = "FAILS" if len(said) == 1 else "FAIL"
    return f"{count(len(said), 'claim').capitalize()} of the papers {verb} here: {'; '.join(said)}."


def in_real_time(run: Trajectory) -> Trajectory:
    """A run on the clock of the loss with the times of its records instead."""
    if run.settings.get("clock") != "loss":
        return run
    return replace(run, times=run.flow_times, settings={**run.settings, "clock": "time"})


def _pictures(page: Page, e: Explanation) -> None:
    run, process = in_real_time(e.run), e.process if e.comparison is not None else None
    page.heading("What happens")
    if len(run) < 2:
        page.text("Nothing moves: the simulation ends where it begins.")
    else:
        _curves(page, e, run, process)
    played = replay_of(e)
    if played:
        page.heading("The run, to be played", 3)
        page.embed(played)
    ends = _ends(e)
    if ends:
        page.figure(
            Picture(ends, columns=min(len(ends), 2), height=3.6),
            "The network at the end"
            + (", and the landscape G that small neurons climb." if e.problem.d == 2 else "."),
        )
    if e.settings.image_shape is not None and e.groups:
        titles = [f"{'+' if g.sign > 0 else '-'}, {100 * g.share:.3g} %" for g in e.groups]
        vectors = np.array([g.direction for g in e.groups])
        page.figure(
            directions_picture(
                vectors, e.settings.image_shape, titles=titles, bias=e.problem.bias, most=8
            ),
            "Directions of the neurons at the end as images: output sign and share of the output.",
        )


def _curves(page: Page, e: Explanation, run: Trajectory, process: JumpProcess | None) -> None:
    """Loss, sizes and margins against time."""
    scale = float(e.net.log_norms.max())
    curves = [_with_unseen(e, run, _loss(e, run))]
    if run.networks is not None or "log_norms" in run.observables:
        curves.append(_until_last_jump(e, log_norms_panel(run, process, log_scale=scale)))
    if e.problem.loss.margin and (
        run.networks is not None or "normalized_margin" in run.observables
    ):
        curves.append(_margins(e, run))
    if e.unseen is not None and e.unseen.loss.size:
        curves.append(_unseen_score(e, e.unseen, run))
    words = "Dashed: jump times predicted without training. " if process is not None else ""
    words += "Each line of sizes is a neuron: those that grow do so at a constant rate until they "
    words += "carry the function."
    shown, end = curves[0].xlim, float(e.run.flow_times[-1])
    if shown is not None and end > 1.5 * shown[1]:
        words += f" Loss and sizes are drawn up to time {shown[1]:.4g}; the run goes on"
        words += f" to {end:.4g}." if end < _LATE else " for much longer."
    page.figure(Picture(curves, columns=min(len(curves), 2), height=3.2), words)


def _margins(e: Explanation, run: Trajectory) -> Panel:
    """Margins against log10 of time where the run goes on beyond any axis of time."""
    if float(e.run.flow_times[-1]) < _LATE or "log_time" not in e.run.observables:
        return margins_panel(run)
    logs = np.asarray(e.run["log_time"], dtype=float) / np.log(10.0)
    first = logs[np.isfinite(logs)].min(initial=0.0)
    late = replace(run, times=np.maximum(logs, first))
    ends = (float(first), float(logs[-1]))
    return replace(margins_panel(late), xlabel="log10 of time", xscale="linear", xlim=ends)


def _loss(e: Explanation, run: Trajectory) -> Panel:
    process = e.process if e.comparison is not None else None
    panel = _until_last_jump(e, loss_panel(run, process, log_scale=float(e.net.log_norms.max())))
    if process is None or not e.problem.loss.margin:
        return panel
    # as far as it is shown the loss falls in steps, not to the smallest float
    return replace(panel, yscale="linear", ylim=(0.0, 1.05 * float(run.loss.max())))


def _with_unseen(e: Explanation, run: Trajectory, panel: Panel) -> Panel:
    """The loss on unseen rows beside the loss."""
    if e.unseen is None or not e.unseen.loss.size:
        return panel
    line = Line(clock_of(run)[0], e.unseen.loss, "loss on unseen rows", GREEN, width=1.8)
    top = panel.ylim and (panel.ylim[0], max(panel.ylim[1], 1.05 * float(e.unseen.loss.max())))
    return replace(panel, traces=[*panel.traces, line], ylim=top, legend="below")


def _unseen_score(e: Explanation, u: Unseen, run: Trajectory) -> Panel:
    """Accuracy or error on unseen rows against time, with the levels predicted."""
    title = "unseen rows on the right side" if u.classes else "error on unseen rows"
    levels = [s.accuracy if u.classes else s.error for s in u.plateaus]
    traces: list[Trace] = [
        Rule(float(level or 0.0), "y", "" if i else "predicted plateau", color="0.6", dash=":")
        for i, level in enumerate(levels)
    ]
    traces.append(Line(clock_of(run)[0], u.score, title, GREEN, width=2.0))
    panel = replace(loss_panel(run), traces=traces, title=title, legend="below" if levels else "")
    label = "share" if u.classes else "root mean square error"
    high = 1.02 if u.classes else 1.05 * float(u.score.max())
    panel = replace(panel, ylabel=label, yscale="linear", ylim=(0.0, high))
    return _until_last_jump(e, panel)


def _until_last_jump(e: Explanation, panel: Panel) -> Panel:
    """Margin losses in real time: the jumps, not the eternity after them."""
    if not e.problem.loss.margin or e.settings.lr is not None:
        return panel
    times = [
        t for r in (e.comparison.rows if e.comparison else ()) for t in (r.predicted, r.simulated)
    ]
    last = max([t for t in times if t is not None], default=0.0)
    end = float(e.run.flow_times[-1])
    top = min(2.0 * last, end) if last > 0.0 else end
    return replace(panel, xscale="linear", xlim=(0.0, top))


def _ends(e: Explanation) -> list[Panel]:
    """The network at the end, and the landscape or what its directions read."""
    made = end_panels(e.problem, e.run.final)
    if e.problem.d == 2:
        made.append(_circle(e))
    elif e.problem.d <= _FEATURES and e.groups:
        made.append(_heat(e))
    return made


def _circle(e: Explanation) -> Panel:
    """G against the angle, with its critical points."""
    angle = np.linspace(-np.pi, np.pi, 721)
    height = G(e.problem, np.column_stack([np.cos(angle), np.sin(angle)]))
    traces: list[Trace] = [Rule(0.0, "y"), Line(np.degrees(angle), height, color=INK)]
    for kind, marker, colour, name in (
        ("max", "^", POSITIVE, "maximum"),
        ("min", "v", NEGATIVE, "minimum"),
        ("saddle", "D", ORANGE, "saddle"),
    ):
        rows = e.landscape.of_kind(kind)
        if rows.size:
            v = e.landscape.vectors[rows]
            where = np.degrees(np.arctan2(v[:, 1], v[:, 0]))
            traces.append(Points(where, e.landscape.values[rows], name, colour, marker, 40.0))
    return Panel(
        traces,
        "landscape of the silent network",
        "angle of w (degrees)",
        "G(w)",
        xlim=(-180.0, 180.0),
        legend="best" if len(traces) > 2 else "",
    )


def _heat(e: Explanation) -> Panel:
    """How strongly each direction at the end reads each feature."""
    groups = e.groups[:12]
    values = np.array([strengths(e.problem, g.direction) * np.sign(g.direction) for g in groups])
    extent = (-0.5, e.problem.d - 0.5, len(groups) - 0.5, -0.5)
    return Panel(
        [Image(values, extent, bar=True)],
        "what the directions at the end read",
        "feature",
        "direction",
        xnames=feature_names(e.problem),
        ynames=[str(i + 1) for i in range(len(groups))],
    )


def _jumps(page: Page, e: Explanation) -> None:
    c = e.comparison
    if c is None or e.process is None:
        return
    page.heading("Predicted and simulated")
    page.table(
        [
            {
                "jump": r.jump,
                "time": r.predicted,
                "time (run)": "not seen" if r.simulated is None else r.simulated,
                "difference": "" if r.difference is None else percent(r.difference),
                "samples": samples(e.process.samples[i].tolist(), e.problem.n),
                "loss after": loss_number(r.loss, e.first_loss),
                "loss (run)": ""
                if r.simulated_loss is None
                else loss_number(r.simulated_loss, e.first_loss),
                "gap": "" if r.gap is None else f"{100 * r.gap:.3g} %",
            }
            for i, r in enumerate(c.rows[:_ROWS])
        ]
    )
    page.text(e.process.status)
    if e.process.undetermined:
        page.text("The limit leaves open: " + "; ".join(e.process.undetermined) + ".", kind="soft")


def _directions(page: Page, e: Explanation) -> None:
    names = feature_names(e.problem)
    page.heading("Directions")
    which = "All" if e.landscape.exact else "Found, perhaps not all,"
    share = e.landscape.basin_fractions
    starts = "neurons of the start" if "estimated" in e.landscape.basins else "random starts"
    page.text(
        f"{which} critical directions of the silent network, by growth rate"
        + ("." if share is None else f"; the share is that of {starts}, with positive and ")
        + ("" if share is None else "negative output weight, that turn there:")
    )
    rows: list[dict[str, Any]] = []
    for i in range(min(len(e.landscape), 12)):
        row: dict[str, Any] = {
            "kind": e.landscape.kinds[i],
            "G": float(e.landscape.values[i]),
            "direction": _vector(e.landscape.vectors[i], names),
        }
        if share is not None:
            row["share +, -"] = f"{share[i, 0]:.3f}, {share[i, 1]:.3f}"
        rows.append(row)
    page.table(rows)
    if len(e.landscape) > 12:
        page.text(f"And {len(e.landscape) - 12} more in report.json.", kind="soft")
    if e.groups:
        page.text("Directions that carry the network at the end:")
        page.table(
            [
                {
                    "direction": i + 1,
                    "output": "+" if g.sign > 0 else "-",
                    "neurons": g.neurons,
                    "share": f"{100 * g.share:.3g}\u00a0%",
                    "active on": samples(g.active, e.problem.n),
                    "weights": _vector(g.direction, names),
                    **_in_file_units(e, g),
                }
                for i, g in enumerate(e.groups[:_ROWS])
            ]
        )


def _in_file_units(e: Explanation, g: Group) -> dict[str, str]:
    """What a direction sees in the units of the file, where columns were centred and scaled."""
    if e.problem.known.get("scaling") is None:
        return {}
    weights, offset = to_file_units(e.problem, g.direction)
    plain = e.problem.d - (e.problem.bias is not None)
    # strongest first in what they do, whatever their units
    order = np.argsort(-np.abs(g.direction[:plain]), kind="stable")[: 5 if plain > 8 else plain]
    names = feature_names(e.problem)
    shown = ", ".join(f"{names[i]} {weights[i]:+.3g}" for i in order)
    more = ", ..." if plain > 8 else ""
    return {"in units of the file": f"{shown}{more}; offset {float(offset):+.3g}"}


def _vector(v: np.ndarray, names: list[str]) -> str:
    if len(v) > 8:
        top = np.argsort(-np.abs(v), kind="stable")[:5]
        return ", ".join(f"{names[i]} {v[i]:+.3f}" for i in top) + ", ..."
    return ", ".join(f"{name} {x:+.4f}" for name, x in zip(names, v, strict=True))


def _proofs(page: Page, e: Explanation) -> None:
    page.heading("Certificates")
    if e.certificates:
        page.text(
            "Each is a file in the folder certificates. PROVED: it holds the data and a proof, "
            "every step of which reluflow.check_certificate (two files, for a bare Python) repeats "
            "in exact arithmetic. CHECKED: numerical only."
        )
        page.table(
            [
                {
                    "certificate": c.kind,
                    "grade": c.grade,
                    "states": [f"{name}: {number(value)}" for name, value in c.claim.items()],
                }
                for c in e.certificates
            ]
        )
    else:
        page.text("None applies to this end.")
    if e.claims:
        page.heading("Theorems that apply here")
        page.text(
            "Claims of the five papers whose hypotheses this run meets, or might meet; one that "
            "several papers make is one row."
        )
        page.table(law_rows(e.claims))
