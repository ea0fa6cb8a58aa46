"""What a view begins with: a built-in set by name, or a file."""

from __future__ import annotations

import json
from pathlib import Path

from reluflow.errors import ReluflowError
from reluflow.problem import Problem, datasets
from reluflow.problem.readers import SUFFIXES
from reluflow.studio.settings import MOST_POINTS, MOST_TEXT


def opening_data(source: str) -> str:
    """DATA of the command line as the settings (JSON) of a first view.

    A built-in name is checked; a text file is handed on as it is; an .npz, .xlsx or .parquet file
    becomes points if it is small enough.
    """
    path = Path(source)
    if source not in datasets.names() and (path.suffix.lower() in SUFFIXES or path.exists()):
        problem = Problem.from_table(path, max_bytes=MOST_TEXT)
        if path.suffix.lower() in (".csv", ".tsv"):
            text = path.read_bytes().decode("utf-8-sig", errors="replace")
            return json.dumps({"data": {"source": "table", "name": path.name, "text": text}})
        return json.dumps(settings_of(problem))
    if source not in datasets.names():
        datasets.load(source)  # raises the sentence that names what is close
    return json.dumps({"data": {"source": "built-in", "name": source}})


def settings_of(problem: Problem) -> dict[str, object]:
    """Settings whose points are the samples of a problem."""
    free = problem.d - (problem.bias is not None)
    if problem.n > MOST_POINTS or free > 64:
        raise ReluflowError(
            f"{problem.name} has {problem.n:,} samples of {free} features: the studio takes up to "
            f"{MOST_POINTS} of 64; a text table (.csv) may be larger"
        )
    rows = [[*x, y] for x, y in zip(problem.X[:, :free].tolist(), problem.y.tolist(), strict=True)]
    return {
        "data": {"source": "points", "rows": rows},
        "loss": problem.loss.name,
        "leak": problem.leak,
        "bias": problem.bias or 0.0,
    }
