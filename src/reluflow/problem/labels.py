"""What the values of a label mean: numbers, or two classes, and which of them is +1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from reluflow.arrays import AnyArray, Array, Mask
from reluflow.errors import ReluflowError
from reluflow.problem.losses import Loss
from reluflow.problem.readers import Columns, blank_cells, is_number
from reluflow.runtime.words import join

_FEW = 10  # different labels that are still listed one by one
_REST = "the rest"
MOST_OUTPUTS = 100  # classes of a table


@dataclass(frozen=True)
class Meaning:
    """What the values of a label mean: numbers, two classes, or several (``names``).

    ``others`` says what becomes of rows of a third class: they are refused, left out, or belong to
    the negative class.
    """

    positive: str | None = None
    negative: str | None = None
    others: str = "refuse"  # or "leave out", "negative"
    names: tuple[str, ...] = ()  # of several classes, each an output of the network

    @property
    def classes(self) -> bool:
        """Whether the labels are classes, two or more."""
        return self.positive is not None or bool(self.names)

    def labels(self, cells: AnyArray, source: str) -> tuple[Array, Mask]:
        """Labels y, NaN where blank, and which rows belong to the problem."""
        if not self.classes:
            if cells.dtype == object:
                raise ReluflowError(f"{source} has text as labels: expected numbers")
            return cells.astype(float), np.ones(len(cells), dtype=bool)
        texts, blank = class_names(cells), blank_cells(cells)
        if self.names:
            return self._places(texts, blank, source), np.ones(len(cells), dtype=bool)
        plus = texts == self.positive
        minus = ~plus & ~blank if self.others == "negative" else texts == self.negative
        y = np.where(plus, 1.0, np.where(minus, -1.0, np.nan))
        third = ~(plus | minus | blank)
        if third.any() and self.others == "refuse":
            raise ReluflowError(
                f"{source} has the class {str(texts[third][0])!r}: expected {self.positive} or "
                f"{self.negative}, the classes trained on"
            )
        return y, ~third

    def _places(self, texts: AnyArray, blank: Mask, source: str) -> Array:
        """Place of each row's class among the names, NaN where blank."""
        place = {name: float(i) for i, name in enumerate(self.names)}
        y = np.array(
            [np.nan if b else place.get(t, -1.0) for t, b in zip(texts, blank, strict=True)]
        )
        if (y == -1.0).any():
            raise ReluflowError(
                f"{source} has the class {str(texts[y == -1.0][0])!r}: expected one of "
                f"{join(list(self.names), _FEW)}, the classes trained on"
            )
        return y


def class_names(cells: AnyArray) -> AnyArray:
    """Labels as text, None where blank: 1 and 1.0 are "1"."""
    if cells.dtype != object:
        return np.array([None if v != v else f"{v:.12g}" for v in cells], dtype=object)
    return np.array([None if v is None else str(v) for v in cells], dtype=object)


def decide_meaning(
    table: Columns, column: int, classes: Any, one_vs_rest: Any, loss: Loss | None
) -> tuple[Meaning, tuple[str, ...]]:
    """What the labels mean, and a remark where that could be taken otherwise."""
    cells = table.cells[column]
    plain = cells.dtype != object and classes is None and one_vs_rest is None
    plain = plain and not (loss is not None and loss.classes)
    if plain and len(np.unique(cells)) > 2 * _FEW:  # numbers, and too many to list
        return Meaning(), ()
    texts = class_names(cells)
    found = {str(t): int(n) for t, n in zip(*_count_classes(texts), strict=True)}
    if classes is not None and one_vs_rest is not None:
        raise ReluflowError("classes and one_vs_rest contradict each other: give one of them")
    if one_vs_rest is not None:
        positive = _class_named(one_vs_rest, found, table, column)
        rest = [name for name in found if name != positive]
        negative = rest[0] if len(rest) == 1 else _REST
        return Meaning(positive, negative, "negative"), ()
    if classes is not None:
        named = classes.split(",") if isinstance(classes, str) else list(classes)
        if len(named) != 2 or str(named[0]).strip() == str(named[1]).strip():
            raise ReluflowError(f"classes are two names, that of label +1 first, got {classes!r}")
        positive, negative = (_class_named(name, found, table, column) for name in named)
        return Meaning(positive, negative, "leave out"), ()
    if loss is not None and loss.classes:
        return _several(table, column, found, cells.dtype != object), ()
    if cells.dtype != object:
        return _meaning_of_numbers(table, column, found, loss)
    flags = all(cell is None or isinstance(cell, bool) for cell in cells)
    if not flags and any(is_number(t) for t in found):
        row = next(i for i, cell in enumerate(cells) if isinstance(cell, str) and _is_text(cell))
        raise ReluflowError(
            f"{table.place(row, column)} holds {str(cells[row])[:40]!r}: expected a number, drop "
            "that column or encode it, or name two classes with classes= (--classes A,B)"
        )
    if 2 < len(found) <= 2 * _FEW and loss is None:
        return _several(table, column, found, False), ()
    if len(found) > 2:
        _refuse_many_classes(table, column, found)
    if not found:
        raise ReluflowError(f"{table.source} has no label: {table.title(column)} is blank")
    if len(found) == 1:
        one = next(iter(found))
        raise ReluflowError(
            f"{table.source} has one class only, all labels are {one}: expected two classes or "
            "numbers, name the label with label= (--label NAME)"
        )
    negative, positive = sorted(found)  # False before True, no before yes, 0 before 1
    return Meaning(positive, negative), ()


def _several(table: Columns, column: int, found: dict[str, int], numbers: bool) -> Meaning:
    """All classes of a label, in the order of numbers or of the alphabet."""
    if not 2 <= len(found) <= MOST_OUTPUTS:
        raise ReluflowError(
            f"{table.source} has {len(found)} different labels in {table.title(column)}: expected "
            f"2 to {MOST_OUTPUTS} classes, name another column with label= (--label NAME)"
        )
    return Meaning(names=tuple(sorted(found, key=float) if numbers else sorted(found)))


def _is_text(cell: str) -> bool:
    return not is_number(cell)


def _count_classes(texts: AnyArray) -> tuple[AnyArray, AnyArray]:
    there = np.array([t for t in texts if t is not None], dtype=str)
    return np.unique(there, return_counts=True)


def _class_named(name: Any, found: dict[str, int], table: Columns, column: int) -> str:
    text = str(class_names(np.array([name], dtype=object))[0]).strip()
    if isinstance(name, int | float) and not isinstance(name, bool):
        text = f"{name:.12g}"
    if text in found:
        return text
    raise ReluflowError(
        f"{table.source} has no class {text!r} in {table.title(column)}: it has "
        f"{join(list(found), _FEW)}"
    )


def _meaning_of_numbers(
    table: Columns, column: int, found: dict[str, int], loss: Loss | None
) -> tuple[Meaning, tuple[str, ...]]:
    """0 and 1, or -1 and +1, are classes unless a square loss is given; other labels numbers."""
    square = loss is not None and not loss.margin
    for negative in ("0", "-1"):
        if set(found) == {negative, "1"} and not square:
            return Meaning("1", negative), ()
    label, names = table.title(column), sorted(found, key=float)
    if loss is not None and loss.margin and len(found) == 2:
        raise ReluflowError(
            f"{table.source} has labels {names[0]} and {names[1]} for the {loss.name} loss: say "
            f"which is +1 with classes= (--classes {names[1]},{names[0]})"
        )
    whole = all(float(name).is_integer() for name in found)
    if not square and whole and 2 <= len(found) <= _FEW and 2 * len(found) <= len(table):
        return Meaning(), (
            f"Label {label} has {len(found)} values, {join(names, _FEW)}, taken as numbers: if "
            "they are classes, say so with --loss softmax, --classes A,B or --one-vs-rest A.",
        )
    return Meaning(), ()


def _refuse_many_classes(table: Columns, column: int, found: dict[str, int]) -> NoReturn:
    if len(found) > 2 * _FEW:
        raise ReluflowError(
            f"{table.source} has {len(found)} different texts in {table.title(column)}: expected "
            "numbers or two classes, name another column with label= (--label NAME)"
        )
    listed = join([f"{name} ({n})" for name, n in found.items()], _FEW)
    first, second = sorted(found, key=lambda name: -found[name])[:2]
    raise ReluflowError(
        f"{table.source} has {len(found)} classes in {table.title(column)}, {listed}, and this "
        f"loss is for one output: leave the loss out or take softmax, keep two with --classes "
        f"{first},{second}, or set one against the rest with --one-vs-rest {first} (in Python "
        "classes= and one_vs_rest=)"
    )
