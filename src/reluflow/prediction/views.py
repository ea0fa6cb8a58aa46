"""A jump process as text and as HTML."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING

from reluflow.arrays import Indices
from reluflow.runtime.words import plural

if TYPE_CHECKING:
    from reluflow.prediction.process import JumpProcess

_HEAD, _TAIL = 8, 3  # jumps shown at the start and end of a long table
_NAMES = 6  # indices shown of a long list
NOTHING = 1e-25  # loss over the first loss that is rounding
_TITLES = ("jump", "time / log(1/scale)", "neurons", "samples", "loss after", "gap")


def _names(index: Indices) -> str:
    """``0, 3, 5`` or ``0, 1, 2, 3, 4, 5, ... (40)``."""
    shown = ", ".join(str(int(j)) for j in index[:_NAMES])
    return shown if len(index) <= _NAMES else f"{shown}, ... ({len(index)})"


def _time(value: float) -> str:
    return f"{value:.7f}" if 1e-3 <= value < 1e7 else f"{value:.8g}"


def _number(value: float, digits: int = 6) -> str:
    return "none" if math.isinf(value) else f"{value:.{digits}g}"


def _loss(process: JumpProcess, i: int) -> str:
    """Loss of plateau i; 0 where it is rounding."""
    loss, first = float(process.losses[i]), float(process.losses[0])
    return "0" if loss <= NOTHING * first else _number(loss)


def _rows(process: JumpProcess) -> list[tuple[str, ...]]:
    """Cells of the table; a row of dots where jumps are left out."""
    rows: list[tuple[str, ...]] = [
        ("0", "0", "", "", _loss(process, 0), ""),
    ]
    K = process.n_jumps
    for i in range(K):
        if K > _HEAD + _TAIL and _HEAD <= i < K - _TAIL:
            if i == _HEAD:
                rows.append(("...",) * len(_TITLES))
            continue
        rows.append(
            (
                str(i + 1),
                _time(process.times[i]),
                _names(process.neurons[i]),
                _names(process.samples[i]),
                _loss(process, i + 1),
                _number(process.gaps[i], 3),
            )
        )
    return rows


def _notes(process: JumpProcess) -> list[str]:
    notes = [process.status]
    if process.branches:
        notes.append(f"{len(process.branches)} continuations are in .branches.")
    if process.undetermined:
        notes.append("Not determined by the limit: " + "; ".join(process.undetermined) + ".")
    notes.append(f"Start: {process.view}.")
    return notes


def _title(process: JumpProcess) -> str:
    jumps = plural(process.n_jumps, "jump")
    return (
        f"{type(process).__name__}({process.problem.name}: {process.m} neurons, "
        f"{process.n_jumps} {jumps})"
    )


def as_text(process: JumpProcess) -> str:
    """A title, the table of jumps and the status, in plain text."""
    rows = [_TITLES, *_rows(process)]
    widths = [max(len(row[c]) for row in rows) for c in range(len(_TITLES))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
    return "\n".join([_title(process), *(line.rstrip() for line in lines), *_notes(process)])


def as_html(process: JumpProcess) -> str:
    """The same as an HTML table for notebooks; every text is escaped."""

    def cells(tag: str, row: tuple[str, ...]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) + "</tr>"

    body = "".join(cells("td", row) for row in _rows(process))
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in _notes(process))
    return (
        f"<div class='reluflow-process'><p><b>{html.escape(_title(process))}</b></p>"
        f"<table><thead>{cells('th', _TITLES)}</thead><tbody>{body}</tbody></table>{notes}</div>"
    )
