"""Names of features and labels: what a data frame or a series brings along."""

from __future__ import annotations

from typing import Any

import numpy as np

from reluflow.arrays import AnyArray
from reluflow.errors import ReluflowError
from reluflow.runtime.words import count


def columns_of(X: Any) -> tuple[str, ...] | None:
    """Names of the columns of a data frame, None for anything else.

    A frame made of an array has the numbers 0, 1, ... for columns; these are no names.
    """
    columns = getattr(X, "columns", None)
    if columns is None or callable(columns):
        return None
    names = list(columns)
    return None if names == list(range(len(names))) else tuple(str(name) for name in names)


def title_of(y: Any) -> tuple[str, ...] | None:
    """The name of a series, or that of a frame's only column, as the name of a label."""
    columns = columns_of(y)
    if columns is not None:
        return columns if len(columns) == 1 else None
    name = getattr(y, "name", None)
    return (name,) if isinstance(name, str) and name else None


def dimensions_of(y: Any) -> int:
    """Dimensions of what an array can be made of; 1 for rows that differ in length.

    Whoever makes the array then says what is wrong with them.
    """
    try:
        return np.ndim(y)
    except ValueError:
        return 1


def array_of(y: Any) -> AnyArray:
    """Labels of any type as an array; rows that differ in length are refused."""
    try:
        return np.asarray(y)
    except ValueError:
        raise ReluflowError(
            "y has rows that differ in length: expected a number, a class, or as many numbers in "
            "each row"
        ) from None


def only_column(y: Any) -> Any:
    """The column itself where a frame or matrix (n, 1) has a single one: that is one output."""
    if dimensions_of(y) == 2 and np.shape(y)[1] == 1:
        return np.asarray(y)[:, 0]
    return y


def check_names(given: Any, what: str, lengths: tuple[int, ...]) -> tuple[str, ...] | None:
    """Names as text, of an allowed number; None stays None."""
    if given is None:
        return None
    if isinstance(given, str):
        given = (given,)
    try:
        names = tuple(str(name) for name in given)
    except TypeError:
        raise ReluflowError(f"{what} must be a list of names, got {given!r}") from None
    if len(names) not in lengths:
        expected = " or ".join(count(length, "name") for length in lengths)
        raise ReluflowError(f"{what} has {count(len(names), 'name')}, expected {expected}")
    return names
