"""What a notebook shows of an object: a small table, sentences, and its usual picture.

Pictures are SVG inside an ``img``, on paper of their own: their style touches nothing else on the
page, and they can be read whatever the theme of the notebook.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np

from reluflow.claims.verdict import Verdicts
from reluflow.errors import ReluflowError
from reluflow.landscape.align import Alignment
from reluflow.landscape.extremal import ExtremalVectors
from reluflow.network import Network
from reluflow.plot.curves import loss_panel
from reluflow.plot.figures import alignment_panel, samples_panel, verdict_panel
from reluflow.plot.palette import PREDICTED
from reluflow.plot.panels import neurons_panel
from reluflow.plot.render import STYLE, to_svg
from reluflow.plot.svg import can_write, write_svg
from reluflow.plot.traces import Line, Panel
from reluflow.prediction.process import JumpProcess
from reluflow.prediction.views import as_html as process_table
from reluflow.problem import Problem
from reluflow.problem.tables import notes_of
from reluflow.report.page import verdict_rows
from reluflow.runtime.words import count, join, number
from reluflow.trajectory import Trajectory

_ROWS = 12  # of a table
_ENTRIES = 6  # of a vector
_POINTS = 600  # samples or neurons in a picture
_WIDTH = 460  # of a picture, in pixels of the page


def as_html(what: Any) -> str:
    """HTML of an object of the library, every text escaped."""
    for kind, make in _MAKERS.items():
        if isinstance(what, kind):
            return _box(make(what))
    if hasattr(what, "verdict"):
        return _box(_explanation(what))
    return _box([_heading(type(what).__name__), _facts(_numbers_of(what))])


def _box(parts: Sequence[str]) -> str:
    return f"<div class='reluflow' style='max-width:60em'>{''.join(parts)}</div>"


def _heading(text: str) -> str:
    return f"<p style='margin:.3em 0'><b>{escape(text)}</b></p>"


def _paragraph(text: str) -> str:
    return f"<p style='margin:.3em 0'>{escape(text)}</p>" if text else ""


def _facts(facts: Mapping[str, Any]) -> str:
    """A table of two columns."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(_text(value))}</td></tr>"
        for name, value in facts.items()
        if value is not None
    )
    return f"<table>{rows}</table>"


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    """A table with the names of the first row as its header."""
    if not rows:
        return ""
    head = "".join(f"<th style='text-align:left'>{escape(name)}</th>" for name in rows[0])
    body = "".join(
        "<tr>"
        + "".join(f"<td style='text-align:left'>{escape(_text(v))}</td>" for v in row.values())
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{int(value):,}"
    if isinstance(value, float | np.floating):
        return number(float(value))
    if isinstance(value, list | tuple):
        return "; ".join(str(item) for item in value)
    return str(value)


def _picture(panel: Panel, alt: str) -> str:
    svg = write_svg(panel) if can_write(panel) else to_svg(panel)
    paper = '<rect width="100%" height="100%" fill="var(--paper)"/>'
    svg = svg.replace(STYLE, STYLE + paper, 1)
    data = base64.b64encode(svg.encode()).decode()
    source = f"data:image/svg+xml;base64,{data}"
    return f"<img alt='{escape(alt, quote=True)}' width='{_WIDTH}' src='{source}'/>"


def _problem(problem: Problem) -> list[str]:
    names = problem.axis_names
    shown = join(names, 8) if problem.d <= 30 else f"{problem.d}"
    classes = None
    if np.isin(problem.y, (-1.0, 1.0)).all():
        plus = int((problem.y > 0).sum())
        classes = f"{plus} {problem.class_name(1.0)}, {problem.n - plus} {problem.class_name(-1.0)}"
    facts = {
        "samples": problem.n,
        "features": shown,
        "labels": classes or f"{number(problem.y.min())} to {number(problem.y.max())}",
        "loss": f"{problem.loss.name} ({problem.reduction})",
        "leak": problem.leak or None,
        "constant feature": problem.bias,
    }
    notes = [_paragraph(sentence) for sentence in notes_of(problem)]
    picture = _picture(samples_panel(problem, _POINTS), f"samples of {problem.name}")
    return [_heading(f"Problem: {problem.name}"), _facts(facts), *notes, picture]


def _network(net: Network) -> list[str]:
    top = net.log_m_norm
    size = "0" if not np.isfinite(top) else number(float(np.exp(top)))
    if np.isfinite(top) and not -700.0 < top < 700.0:
        size = f"exp({top:.6g})"
    facts = {
        "neurons": net.m,
        "features": net.d,
        "output weights": f"{int((net.a > 0).sum())} positive, {int((net.a < 0).sum())} negative",
        "largest weight": size,
        "leak": net.leak or None,
        "constant feature": net.bias,
    }
    parts = [_heading("Network"), _facts(facts)]
    if net.d == 2:
        panel = neurons_panel(net, most=_POINTS, legend="below")
        parts.append(_picture(panel, "neurons by angle and norm"))
    return parts


def _trajectory(run: Trajectory) -> list[str]:
    how = "gradient descent" if run.settings.get("method") == "descend" else "gradient flow"
    facts = {
        "problem": run.problem.name,
        "records": len(run),
        "time": f"{number(float(run.times[0]))} to {number(float(run.times[-1]))}",
        "loss": f"{number(float(run.loss[0]))} to {number(float(run.loss[-1]))}",
        "recorded": "networks" if run.networks is not None else ", ".join(run.observables),
        "steps": run.cost.get("steps"),
    }
    parts = [_heading(f"Trajectory: {how}"), _facts(facts), _paragraph(str(run.status))]
    with suppress(ReluflowError):  # too few records for a curve
        parts.append(_picture(loss_panel(run), "loss against time"))
    return parts


def _process(process: JumpProcess) -> list[str]:
    end = 1.15 * float(process.times[-1]) if process.n_jumps else 1.0
    edges = np.concatenate([[0.0], np.repeat(process.times, 2), [end]])
    stairs = Line(edges, np.repeat(process.losses, 2), "", PREDICTED, width=2.0)
    top = 1.05 * float(np.nanmax(process.losses)) or 1.0
    panel = Panel(
        [stairs],
        "predicted loss, scale to 0",
        "time / log(1/scale)",
        "loss",
        xlim=(0.0, end),
        ylim=(0.0, top),
    )
    return [process_table(process), _picture(panel, "staircase of the predicted loss")]


def _vector(v: Any) -> str:
    shown = " ".join(f"{x:.4f}" for x in v[:_ENTRIES])
    return shown + (" ..." if len(v) > _ENTRIES else "")


def _extremal(found: ExtremalVectors) -> list[str]:
    title = f"{count(len(found), 'critical point')} of G ({'all' if found.exact else 'found'})"
    share = found.basin_fractions
    rows = []
    for i in range(min(len(found), _ROWS)):
        row: dict[str, Any] = {
            "kind": found.kinds[i],
            "G": float(found.values[i]),
            "direction": _vector(found.vectors[i]),
        }
        if share is not None:
            row["share +, -"] = f"{share[i, 0]:.3f}, {share[i, 1]:.3f}"
        rows.append(row)
    more = f"And {len(found) - _ROWS} more." if len(found) > _ROWS else ""
    return [_heading(title), _table(rows), _paragraph(more)]


def _alignment(found: Alignment) -> list[str]:
    states = ("growing", "dead", "anti_aligned", "resting", "unresolved")
    rows = [
        {"neurons": name.replace("_", "-"), "number": int(getattr(found, name).sum())}
        for name in states
        if getattr(found, name).any()
    ]
    times = found.time[found.growing]
    last = (
        f"The last of them is aligned at time {number(float(times.max()))}." if times.size else ""
    )
    parts = [_heading(f"Early alignment of {count(found.growing.size, 'neuron')}"), _table(rows)]
    parts.append(_paragraph(last))
    if times.size <= _POINTS and times.size:
        parts.append(_picture(alignment_panel(found), "growth rate against alignment time"))
    return parts


def _verdicts(verdicts: Verdicts) -> list[str]:
    return [_heading(count(len(verdicts), "verdict")), _table(verdict_rows(verdicts))]


def _explanation(explanation: Any) -> list[str]:
    parts = [_heading(f"What a network learns from {explanation.problem.name}")]
    parts += [_facts(dict(explanation.verdict))]
    parts += [_paragraph(f"Not computed, {line}") for line in explanation.missing]
    with suppress(ReluflowError):  # nothing moves
        panel = replace(verdict_panel(explanation), title="loss, with the predicted jumps")
        parts.append(_picture(panel, panel.title))
    return parts


def _numbers_of(what: Any) -> dict[str, Any]:
    """Fields that are numbers, flags or text."""
    names = getattr(what, "__dataclass_fields__", {})
    values = {name: getattr(what, name) for name in names}
    plain = bool | int | float | str | np.number
    return {name.replace("_", " "): v for name, v in values.items() if isinstance(v, plain)}


_MAKERS: dict[type, Any] = {
    Problem: _problem,
    Network: _network,
    Trajectory: _trajectory,
    JumpProcess: _process,
    ExtremalVectors: _extremal,
    Alignment: _alignment,
    Verdicts: _verdicts,
}
