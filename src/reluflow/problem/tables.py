"""Problems from tables as people have them: which column is the label, what its values mean.

Whatever is assumed on the way is said in a sentence; the sentences travel with the problem as
``known["notes"]``, the first of them naming label, classes, loss and scaling. ``known`` also has
``features`` (names of a header), ``scaling`` (standardised columns) and ``unseen`` (rows that are
kept for testing, a problem of their own).
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from reluflow.arrays import Array, generator_of
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.problem.labels import Meaning, decide_meaning
from reluflow.problem.losses import Loss, as_loss
from reluflow.problem.readers import Columns, is_number, read_columns
from reluflow.runtime.words import count, join, number, plural

if TYPE_CHECKING:
    from reluflow.network import Network
    from reluflow.problem.problem import Problem

#: Factor between sizes of columns from which on a sentence says what that does.
UNEVEN = 10.0


@dataclass(frozen=True)
class TableNotes:
    """What was assumed when a table was read.

    Attributes
    ----------
    label : str
        Name of the label's column.
    positive, negative : str or None
        Classes whose labels are +1 and -1; None where the labels are numbers.
    sentences : tuple of str
        All of it in words; the first one names label, classes, loss and scaling.
    """

    label: str
    positive: str | None
    negative: str | None
    sentences: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Scaling:
    """Units of standardised columns: a value of the file is ``mean + scale * value``.

    Attributes
    ----------
    mean, scale : array
        Mean and standard deviation of each feature, the bias not counted; a constant column has
        scale 1.
    label_mean, label_scale : float
        The same of the label; 0 and 1 for classes.
    """

    mean: Array
    scale: Array
    label_mean: float = 0.0
    label_scale: float = 1.0


class FileDirection(NamedTuple):
    """A direction in the units of the file: the neuron sees ``weights @ x + offset``.

    Attributes
    ----------
    weights, offset : array
    """

    weights: Array
    offset: Array


@dataclass(frozen=True)
class UnseenScores:
    """How a network does on rows it was not trained on.

    Attributes
    ----------
    rows : int
    loss : float
    accuracy : float or None
        Share of rows on the right side of 0, for classes.
    error : float or None
        Root mean square error in the units of the file, for numbers.
    """

    rows: int
    loss: float
    accuracy: float | None
    error: float | None

    @property
    def sentence(self) -> str:
        """The scores in words."""
        said = f"loss {number(self.loss)}"
        if self.accuracy is not None:
            said += f", {100 * self.accuracy:.1f} % right"
        if self.error is not None:
            said += f", root mean square error {number(self.error)}"
        return f"On {count(self.rows, 'unseen row')}: {said}."


@check_arguments
def notes_of(problem: Problem) -> tuple[str, ...]:
    """What was assumed when the data were read, in sentences; none for data given as arrays.

    Parameters
    ----------
    problem : Problem
        Made by :meth:`reluflow.Problem.from_table`, or not.

    Returns
    -------
    tuple of str
    """
    notes = problem.known.get("notes")
    return notes.sentences if isinstance(notes, TableNotes) else ()


@check_arguments
def to_file_units(problem: Problem, W: Array) -> FileDirection:
    r"""Directions of a problem with standardised columns, in the units of the file.

    With :math:`z_i = (x_i - \mu_i) / \sigma_i` and b the value of the constant feature,

    .. math:: \langle w, (z, b)\rangle = \sum_i \frac{w_i}{\sigma_i} x_i
              + \Big(w_b b - \sum_i \frac{w_i \mu_i}{\sigma_i}\Big).

    Parameters
    ----------
    problem : Problem
        As :meth:`reluflow.Problem.from_table` makes it; without ``standardize`` the weights are
        those of ``W`` and the offset is what the bias gives.
    W : array, shape (..., d)
        Inner weights or directions, the entry of the bias last if the problem has one.

    Returns
    -------
    FileDirection
        ``weights`` (..., number of features) and ``offset`` (...).
    """
    W = np.asarray(W, dtype=float)
    offset = np.zeros(W.shape[:-1])
    if problem.bias is not None:
        W, offset = W[..., :-1], problem.bias * W[..., -1]
    scaling = problem.known.get("scaling")
    if scaling is None:
        return FileDirection(W, offset)
    weights = W / scaling.scale
    return FileDirection(weights, offset - weights @ scaling.mean)


@check_arguments
def unseen_scores(problem: Problem, net: Network) -> UnseenScores | None:
    """Loss and accuracy or error of a network on the rows kept for testing.

    Parameters
    ----------
    problem : Problem
        Made by :meth:`reluflow.Problem.from_table` with ``test=`` or ``holdout=``.
    net : Network
        Of the problem's dimension.

    Returns
    -------
    UnseenScores, or None where no rows were kept
    """
    unseen: Problem | None = problem.known.get("unseen")
    if unseen is None:
        return None
    f = unseen.outputs(net)
    loss, notes = float(unseen.value(f)), problem.known.get("notes")
    if unseen.several and unseen.loss.classes:
        right = float(np.mean(np.argmax(f, axis=1) == unseen.labels))
        return UnseenScores(unseen.n, loss, right, None)
    if unseen.loss.margin or (isinstance(notes, TableNotes) and notes.positive is not None):
        return UnseenScores(unseen.n, loss, float(np.mean(f * unseen.y > 0)), None)
    scaling = problem.known.get("scaling")
    unit = 1.0 if scaling is None else scaling.label_scale
    return UnseenScores(unseen.n, loss, None, unit * float(np.sqrt(np.mean((f - unseen.y) ** 2))))


@dataclass(frozen=True)
class Choices:
    """What was asked for: the options of :meth:`reluflow.Problem.from_table` that read a table."""

    loss: str | Loss | None
    label: str | int | None
    classes: str | Sequence[Any] | None
    one_vs_rest: Any
    standardize: bool
    drop_missing: bool
    test: Any
    holdout: float | None
    split_seed: int
    max_bytes: int


class Rows(NamedTuple):
    """Samples, and what is to be said about how they were chosen."""

    X: Array
    y: Array
    notes: tuple[str, ...] = ()

    def standardize(self, by: Scaling) -> Rows:
        """The rows in units of mean and standard deviation."""
        X, y = (self.X - by.mean) / by.scale, (self.y - by.label_mean) / by.label_scale
        return Rows(X, y, self.notes)


def read_problem(make: type[Problem], source: Any, asked: Choices, **options: Any) -> Problem:
    """The problem in a table; ``options`` are those of the problem itself, such as ``bias``."""
    if asked.test is not None and asked.holdout is not None:
        raise ReluflowError("test and holdout contradict each other: give one of them")
    table = read_columns(source, asked.max_bytes)
    column = _label_column(table, asked.label)
    given = None if asked.loss is None else as_loss(asked.loss)
    meaning, remarks = decide_meaning(table, column, asked.classes, asked.one_vs_rest, given)
    usual = "softmax" if meaning.names else "logistic" if meaning.classes else "half_square"
    options["loss"] = loss = given or as_loss(usual)
    rows, held = _read_rows(table, column, meaning, asked.drop_missing), None
    if asked.test is not None:
        held = _read_test(table, column, meaning, asked)
    elif asked.holdout is not None:
        rows, held = _hold_out(rows, asked.holdout, asked.split_seed, meaning.classes)
    _check_both_classes(table, rows.y, loss)
    remarks += table.notes + rows.notes + (() if held is None else held.notes)
    known: dict[str, Any] = {}
    if asked.standardize:
        scaling, constant = _scaling_of(rows, labels=not (loss.margin or meaning.classes))
        known["scaling"] = scaling
        rows = rows.standardize(scaling)
        held = None if held is None else held.standardize(scaling)
        if constant:
            titles = [_feature_title(table, column, i) for i in constant]
            remarks += (f"Constant and hence 0 after centring: {join(titles)}.",)
    else:
        remarks += _warn_of_uneven_columns(table, column, rows.X)
    if table.names is not None:
        known["features"] = table.names[:column] + table.names[column + 1 :]
    first = _first_sentence(table, column, meaning, loss, asked, known.get("scaling"))
    title = table.title(column) if table.names is None else table.names[column]
    known["notes"] = TableNotes(title, meaning.positive, meaning.negative, (first, *remarks))
    options["feature_names"] = known.get("features")
    pair = (meaning.negative, meaning.positive) if meaning.classes else (title,)
    options["label_names"] = meaning.names or pair
    name = _name_of(source)
    if meaning.names:
        known["classes"] = meaning.names
        rows, held = _one_hot(rows, meaning), None if held is None else _one_hot(held, meaning)
    if held is not None:
        known["unseen"] = make(held.X, held.y, name=f"{name}, unseen rows", **options)
    return make(rows.X, rows.y, name=name, known=known, **options)


def _one_hot(rows: Rows, meaning: Meaning) -> Rows:
    """Rows whose labels are one-hot instead of places among the classes."""
    return rows._replace(y=np.eye(len(meaning.names))[rows.y.astype(int)])


def _name_of(source: Any) -> str:
    if isinstance(source, Columns):
        return "data"
    return "table" if hasattr(source, "columns") else Path(source).stem


def _label_column(table: Columns, label: str | int | None) -> int:
    """Position of the label, the last column by default."""
    width = len(table.cells)
    if label is None:
        return width - 1
    if isinstance(label, int) and not isinstance(label, bool):
        if not -width <= label < width:
            raise ReluflowError(f"{table.source} has no column {label}: it has {width} columns")
        return label % width
    if table.names is None:
        if str(label).isdigit() and 1 <= int(label) <= width:
            return int(label) - 1
        raise ReluflowError(
            f"{table.source} has no names of columns: give the label by its number, 1 to {width}, "
            f"got {label!r}"
        )
    places = [i for i, name in enumerate(table.names) if name == label]
    if len(places) == 1:
        return places[0]
    if places:
        raise ReluflowError(f"{table.source} has {len(places)} columns {label!r}: rename one")
    close = difflib.get_close_matches(str(label), table.names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"the columns are {join(table.names)}"
    raise ReluflowError(f"{table.source} has no column {label!r}: {hint}")


def _read_rows(table: Columns, column: int, meaning: Meaning, drop: bool) -> Rows:
    """The rows of a table that belong to the problem."""
    y, here = meaning.labels(table.cells[column], table.source)
    features = [i for i in range(len(table.cells)) if i != column]
    notes: tuple[str, ...] = ()
    if not here.all():
        notes += (f"{np.sum(~here):,} of {len(here):,} rows are of other classes: left out.",)
    X = np.empty((len(table), len(features)))
    for place, i in enumerate(features):
        X[:, place] = _numbers(table, i)
    blank = np.isnan(X)
    blank_label = np.isnan(y)
    rows = (blank.any(axis=1) | blank_label) & here
    if rows.any() and not drop:
        cells = int(blank[here].sum() + blank_label[here].sum())
        row = int(np.flatnonzero(rows)[0])
        at = column if blank_label[row] else features[int(np.flatnonzero(blank[row])[0])]
        raise ReluflowError(
            f"{table.source} has {cells:,} blank {plural(cells, 'cell')} in {rows.sum():,} "
            f"{plural(int(rows.sum()), 'row')}, the first at {_short_place(table, row, at)}: fill "
            f"{plural(cells, 'it', 'them')}, or leave such rows out with drop_missing=True "
            "(--drop-missing)"
        )
    if rows.any():
        notes += (f"{rows.sum():,} of {here.sum():,} rows have blank cells: left out.",)
    keep = here & ~rows
    if not keep.any():
        raise ReluflowError(
            f"{table.source} has no row without a blank cell: remove the columns that are empty"
        )
    return Rows(X[keep], y[keep], notes)


def _short_place(table: Columns, row: int, column: int) -> str:
    return (
        table.place(row, column).removeprefix(f"{table.source} ").removeprefix(f"{table.source}: ")
    )


def _numbers(table: Columns, column: int) -> Array:
    """A feature as numbers; true and false are 1 and 0."""
    cells = table.cells[column]
    if cells.dtype != object:
        return cells.astype(float)
    for row, cell in enumerate(cells):
        if isinstance(cell, str) and not is_number(cell):
            raise ReluflowError(
                f"{table.place(row, column)} holds {cell[:40]!r}: expected a number, drop that "
                "column or encode it"
            )
    return np.array([np.nan if cell is None else float(cell) for cell in cells])


def _read_test(table: Columns, column: int, meaning: Meaning, asked: Choices) -> Rows:
    """The rows of a table to test on, its columns in the order of the first table."""
    other = read_columns(asked.test, asked.max_bytes)
    if table.names is not None and other.names is not None:
        missing = [name for name in table.names if name not in other.names]
        if missing:
            raise ReluflowError(
                f"{other.source} has no column {missing[0]!r}: expected those of {table.source}"
            )
        order = [other.names.index(name) for name in table.names]
        cells = tuple(other.cells[i] for i in order)
        other = replace(other, names=table.names, cells=cells)
    elif len(other.cells) != len(table.cells):
        raise ReluflowError(
            f"{other.source} has {len(other.cells)} columns, expected {len(table.cells)} as in "
            f"{table.source}"
        )
    rows = _read_rows(other, column, meaning, asked.drop_missing)
    note = f"{len(rows.y):,} unseen rows are those of {other.source}."
    return rows._replace(notes=(note, *rows.notes))


def _hold_out(rows: Rows, share: Any, seed: int, by_class: bool) -> tuple[Rows, Rows]:
    """Rows to train on and rows to test on, the same share of each class."""
    X, y, notes = rows
    try:
        held = float(share)
    except (TypeError, ValueError):
        held = np.nan
    if not 0.0 < held < 1.0:
        raise ReluflowError(f"holdout is a share of the rows between 0 and 1, got {share!r}")
    rng = generator_of(seed)
    out: list[int] = []
    for label in np.unique(y) if by_class else [None]:
        members = np.flatnonzero(y == label) if by_class else np.arange(len(y))
        out += rng.permutation(members)[: round(held * len(members))].tolist()
    if not 0 < len(out) < len(y):
        raise ReluflowError(
            f"holdout={held:g} of {count(len(y), 'row')} leaves {len(y) - len(out)} to train on "
            f"and {len(out)} to test: give another share"
        )
    out.sort()
    note = f"{len(out):,} of {len(y):,} rows are held out, drawn with split_seed {seed}."
    return Rows(np.delete(X, out, 0), np.delete(y, out), notes), Rows(X[out], y[out], (note,))


def _check_both_classes(table: Columns, y: Array, loss: Loss) -> None:
    if loss.margin and not loss.classes and abs(y[0]) == 1.0 and (y == y[0]).all():
        raise ReluflowError(
            f"{table.source} has one class only, all labels are {y[0]:+g}: expected -1 and +1 for "
            f"the {loss.name} loss, or use loss='half_square'"
        )


def _scaling_of(rows: Rows, labels: bool) -> tuple[Scaling, list[int]]:
    """Means and standard deviations, those of labels too if asked for; which columns are constant.

    A column whose deviation is a rounding error of its size counts as constant.
    """
    X, y, _ = rows
    mean, scale = X.mean(axis=0), X.std(axis=0)
    constant = scale <= 1e-13 * np.abs(X).max(axis=0)
    scale = np.where(constant, 1.0, scale)
    found = np.flatnonzero(constant).tolist()
    spread = float(y.std())
    if not labels or not spread > 1e-13 * float(np.abs(y).max()):
        return Scaling(mean, scale), found
    return Scaling(mean, scale, float(y.mean()), spread), found


def _feature_title(table: Columns, column: int, feature: int) -> str:
    """Title of a feature by its place among the features."""
    return table.title(feature + (feature >= column))


def _warn_of_uneven_columns(table: Columns, column: int, X: Array) -> tuple[str, ...]:
    """A sentence where columns differ in size so much that it decides what is learned first."""
    with np.errstate(over="ignore"):
        sizes = np.sqrt(np.mean(X * X, axis=0))
    there = np.flatnonzero((sizes > 0) & np.isfinite(sizes))
    if there.size < 2:
        return ()
    large, small = there[np.argmax(sizes[there])], there[np.argmin(sizes[there])]
    ratio = sizes[large] / sizes[small]
    if not ratio > UNEVEN:
        return ()
    return (
        f"Columns differ in size by a factor {float(f'{ratio:.3g}'):,g} "
        f"({_feature_title(table, column, int(large))} {sizes[large]:.3g}, "
        f"{_feature_title(table, column, int(small))} {sizes[small]:.3g} in quadratic mean): "
        "neurons turn first to the large ones, whatever these say about the label; "
        "--standardize centres and scales all columns.",
    )


def _first_sentence(
    table: Columns,
    column: int,
    meaning: Meaning,
    loss: Loss,
    asked: Choices,
    scaling: Scaling | None,
) -> str:
    """Label, classes, loss and scaling."""
    where = ", the last column" if asked.label is None and not table.arrays else ""
    follows = asked.loss is None
    said = f"Label {table.title(column)}{where}: "
    if meaning.names:
        said += f"{count(len(meaning.names), 'class', 'classes')} ({join(list(meaning.names), 10)})"
        said += f", so the loss is {loss.name}" if follows else f"; loss {loss.name}"
    elif meaning.classes:
        said += f"{meaning.positive} is +1, {meaning.negative} is -1; "
        said += f"two classes, so the loss is {loss.name}" if follows else f"loss {loss.name}"
    else:
        said += f"numbers, so the loss is {loss.name}" if follows else f"numbers, loss {loss.name}"
    if scaling is None:
        return f"{said}; columns as they are."
    plain = (scaling.label_mean, scaling.label_scale) == (0.0, 1.0)
    scaled = "columns" if plain else "columns and label"
    return f"{said}; {scaled} centred and scaled by standard deviations."
