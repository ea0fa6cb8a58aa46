"""The problem meant by what a user has: a Problem, arrays, frames, a file, or a dataset's name."""

from __future__ import annotations

import os
from typing import Any

from reluflow.arrays import frozen_array
from reluflow.errors import ReluflowError
from reluflow.problem.names import array_of, check_names, columns_of, only_column, title_of
from reluflow.problem.problem import Problem
from reluflow.problem.readers import columns_of_arrays


def problem_of(data: Any, y: Any = None, **options: Any) -> Problem:
    """The problem in ``data``: itself, or made of arrays, of a frame or of a table's file.

    Parameters
    ----------
    data : Problem, array (n, d), data frame or path
        Without ``y`` a frame or a file is a table, as :meth:`reluflow.Problem.from_table` reads
        it.
    y : array (n,), series or name, optional
        Labels: numbers, or two classes as text, true/false, 0 and 1, or -1 and +1; or the name of
        the label's column.
    **options
        Those of :class:`reluflow.Problem` (``loss``, ``leak``, ``bias``, ...) and of
        :meth:`reluflow.Problem.from_table` (``standardize``, ``classes``, ...); ``loss`` follows
        the labels by default.

    Returns
    -------
    Problem
    """
    if isinstance(data, Problem):
        if y is not None:
            raise ReluflowError("a Problem holds its labels: leave y out, or give X and y instead")
        if options:
            raise ReluflowError(
                f"{next(iter(options))} belongs to the data: give it to Problem(...), or use "
                "problem.replace(...)"
            )
        return data
    names: dict[str, Any] = {
        k: options.pop(k) for k in ("feature_names", "label_names") if k in options
    }
    name = options.pop("name", None)
    if y is None or isinstance(y, str):
        if not (isinstance(data, str | os.PathLike) or hasattr(data, "columns")):
            raise ReluflowError(
                f"expected a Problem, arrays X and y, a data frame or the path of a table, got "
                f"{type(data).__name__} without labels: give explain(X, y)"
            )
        found = Problem.from_table(data, label=y, **options)
    else:
        found = _from_arrays(data, y, names.get("feature_names"), options)
    changes: dict[str, Any] = {**names, "name": name}
    changes = {k: v for k, v in changes.items() if v is not None}
    return found.replace(**changes) if changes else found


def _from_arrays(data: Any, labels: Any, given: Any, options: dict[str, Any]) -> Problem:
    """The problem of X and y, classes and numbers told apart as in a table."""
    X = frozen_array(data, "X", 2)
    y = array_of(only_column(labels))
    if y.ndim != 1 or len(y) != len(X):
        raise ReluflowError(
            f"y has shape {y.shape} but X has {len(X)} samples: expected y of shape ({len(X)},)"
        )
    if not X.size:
        raise ReluflowError(f"X is empty: expected samples and features, got shape {X.shape}")
    if "label" in options:
        raise ReluflowError("label names a column of a table: leave it out where y is given")
    features = columns_of(data) if given is None else given
    features = check_names(features, "feature_names", (X.shape[1],))
    title = (title_of(labels) or ("y",))[0]
    return Problem.from_table(columns_of_arrays(X, y, features, title), **options)
