"""Files of a view: the run, the report, curves as a table, the Python that does the same."""

from __future__ import annotations

import csv
import io
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from reluflow.errors import ReluflowError
from reluflow.studio.settings import script_of

if TYPE_CHECKING:
    from reluflow.studio.worker import Side


class File(NamedTuple):
    """A file in memory; nothing is written to disk but by the browser."""

    name: str
    media: str
    content: bytes


def make_file(kind: str, side: Side) -> File:
    """A file of one of the kinds "nc", "csv", "html" and "py"."""
    name = side.problem.name.replace(" ", "-")
    if kind == "py":
        text = script_of(side.settings, side.t_end)
        return File(f"{name}.py", "text/x-python", text.encode())
    if kind == "html":
        return _report(name, side)
    if kind not in ("nc", "csv"):
        raise ReluflowError(f"no file of the kind {kind!r}: expected nc, csv, html or py")
    if side.run is None:
        raise ReluflowError("there is no run yet: press play first")
    if kind == "csv":
        return File(f"{name}.csv", "text/csv", _curves(side).encode())
    with tempfile.TemporaryDirectory(prefix="reluflow-studio-") as folder:
        path = Path(folder) / f"{name}.nc"
        side.run.save(path)
        return File(path.name, "application/x-netcdf", path.read_bytes())


def _curves(side: Side) -> str:
    """Time, loss and predicted loss of every record."""
    run, process = side.run, side.process
    if run is None:
        return ""
    header = ["time", "loss"] + (["predicted_loss"] if process is not None else [])
    columns = [run.times, run.loss]
    if process is not None:
        scale = float(side.net.log_norms.max())
        columns.append(process.predicted_loss(run.times, log_scale=scale))
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(header)
    table.writerows([repr(float(value)) for value in row] for row in zip(*columns, strict=True))
    return text.getvalue()


def _report(name: str, side: Side) -> File:
    if side.explanation is None:
        raise ReluflowError("the report needs the full answer: ask for it first")
    from reluflow.explanation.page import page_of

    return File(f"{name}-report.html", "text/html", page_of(side.explanation).html.encode())
