"""Tables from files and data frames: columns of numbers, text and flags, as they were found.

Files are data: nothing is unpickled, and sizes are checked before anything is allocated. What the
columns mean (which is the label, what are classes) is decided in :mod:`reluflow.problem.tables`.
"""

from __future__ import annotations

import csv
import math
import os
import re
import zipfile
from dataclasses import dataclass, replace
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from reluflow.arrays import AnyArray, Array, Mask
from reluflow.errors import ReluflowError

#: Endings of the files that can be read.
SUFFIXES = (".csv", ".tsv", ".parquet", ".xlsx", ".npz")
#: Largest file, and largest array, a reader takes by default.
MAX_BYTES = 1 << 30
_EXPANDS, _SMALL = 100, 1 << 26  # most bytes of an array for each of its file, if not small
_BLANK = {"", "na", "n/a", "nan", "null", "<na>", "#n/a", "?"}  # cells without a value, lower case
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_NAME_LINES = 100  # most line breaks in the names of a header


@dataclass(frozen=True, eq=False)
class Columns:
    """A table, column by column.

    Attributes
    ----------
    source : str
        What to call it in messages.
    names : tuple of str, or None
        Those of the header, if there is one.
    cells : tuple of arrays
        One a column: float64 with NaN for a blank cell, or, where some cell is no number, objects
        that are text, true/false or None for a blank cell.
    lines : list of int, optional
        Line of the file that each row stands in.
    notes : tuple of str
        What the reader had to assume, in sentences.
    """

    source: str
    names: tuple[str, ...] | None
    cells: tuple[AnyArray, ...]
    lines: list[int] | None = None
    notes: tuple[str, ...] = ()
    arrays: bool = False  # columns are those of arrays X and y

    def __len__(self) -> int:
        return len(self.cells[0]) if self.cells else 0

    def title(self, column: int) -> str:
        """A column by its name, or by its number where there is no header."""
        if self.arrays and column == len(self.cells) - 1:
            return "y"
        return f"column {column + 1}" if self.names is None else f"'{self.names[column]}'"

    def place(self, row: int, column: int) -> str:
        """Where a cell stands, for a message."""
        if self.lines is not None:
            return f"{self.source} line {self.lines[row]} column {column + 1}"
        return f"{self.source}: row {row + 1} of {self.title(column)}"

    def without(self, column: int, note: str) -> Columns:
        """The table without a column, and a note that says so."""
        kept = [i for i in range(len(self.cells)) if i != column]
        names = None if self.names is None else tuple(self.names[i] for i in kept)
        cells = tuple(self.cells[i] for i in kept)
        return replace(self, names=names, cells=cells, notes=(*self.notes, note))


def blank_cells(cells: AnyArray) -> Mask:
    """Which cells have no value."""
    if cells.dtype == object:
        return np.array([cell is None for cell in cells], dtype=bool)
    return np.isnan(cells)


def is_number(cell: Any) -> bool:
    """Whether a cell of text reads as a number."""
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def read_columns(source: Any, max_bytes: int = MAX_BYTES) -> Columns:
    """The table in a file or in a data frame (anything with ``columns``, pandas or not)."""
    if isinstance(source, Columns):
        return source
    if not isinstance(source, str | os.PathLike):
        if hasattr(source, "columns") and hasattr(source, "__getitem__"):
            return _without_index(_frame_columns(source, "the table"))
        raise ReluflowError(
            f"a table is the path of a file or a data frame, got {type(source).__name__}: use "
            "Problem(X, y) for arrays"
        )
    path = Path(source)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ReluflowError(
            f"{path} is not a table this library reads: expected a file that ends in "
            f"{', '.join(SUFFIXES)}; convert or rename it"
        )
    _check_file(path, max_bytes)
    if suffix == ".npz":
        return _read_npz(path, max_bytes)
    if suffix in (".csv", ".tsv"):
        return _without_index(_read_text(path))
    return _without_index(_read_with_pandas(path, max_bytes))


def _check_file(path: Path, max_bytes: int) -> None:
    """Raise unless this is an existing regular file that is not too large."""
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise ReluflowError(f"{path} {what}: expected the path of a table")
    size = path.stat().st_size
    if size > max_bytes:
        raise ReluflowError(
            f"{path} has {size:,} bytes, more than max_bytes={max_bytes:,}: "
            "raise max_bytes if the file is trusted"
        )


def _without_index(table: Columns) -> Columns:
    """The table without a first column that has no name and numbers or names the rows."""
    first = "" if table.names is None else table.names[0]
    if table.names is None or not (first == "" or first.startswith("Unnamed: ")):
        return table
    cells = table.cells[0]
    whole = cells.dtype == object or bool(np.all(cells == np.rint(cells)))
    if len(table.cells) > 2 and whole and len(set(cells.tolist())) == len(table):
        note = "The first column has no name and tells the rows apart: left out as an index."
        return table.without(0, note)
    return replace(table, names=("column 1", *table.names[1:]))


def _read_text(path: Path) -> Columns:
    try:
        with path.open(encoding="utf-8-sig", newline=None) as file:
            return _parse(file, path)
    except UnicodeDecodeError:
        raise ReluflowError(
            f"{path} is not text in UTF-8: expected a table, save it again as UTF-8"
        ) from None


def _parse(file: IO[str], path: Path) -> Columns:
    """Columns of a text file; blank lines are skipped."""
    first = _first_record(file, path)
    if not first:
        raise ReluflowError(f"{path} is empty: expected lines of numbers with the label last")
    sign = _separator(first, path)
    try:
        head = [_on_one_line(cell) for cell in next(csv.reader(StringIO(first), delimiter=sign))]
    except csv.Error as error:
        raise ReluflowError(f"{path} line 1: {error}") from None
    if len(head) < 2:
        raise ReluflowError(
            f"{path} has 1 column: expected at least one feature and the label, separated by "
            "commas, semicolons or tabs"
        )
    names = tuple(head) if _is_header(head) else None
    if names is None:
        file.seek(0)
    lines = (line for line in file if line.strip())
    start = next(lines, None)
    if start is None:
        raise ReluflowError(f"{path} has a header but no samples: expected lines of numbers")
    notes = () if sign == "," else (f"Columns are separated by {_SEPARATORS[sign]}.",)
    try:  # a table of numbers, which most are, is read fast
        numbers = np.loadtxt(chain([start], lines), delimiter=sign, ndmin=2, comments=None)
    except UnicodeDecodeError:
        raise
    except ValueError:
        numbers = np.array([[np.nan]])
    if np.isfinite(numbers).all() and numbers.shape[1] == len(head):
        return Columns(str(path), names, tuple(numbers.T), notes=notes)
    file.seek(0)
    rows, at = _rows(file, path, sign, names is not None)
    if names is not None and len(rows[0]) == len(names) + 1:  # R leaves out the index's name
        names = ("", *names)
    if names is not None and len(rows[0]) != len(names):
        raise ReluflowError(
            f"{path} line {at[0]} has {len(rows[0])} columns, expected {len(names)} as in the "
            "header: fill or remove that line"
        )
    table = Columns(str(path), names, (), at, notes)
    cells = [_text_column([row[i] for row in rows], sign) for i in range(len(rows[0]))]
    if any(commas for _, commas in cells):
        table = replace(table, notes=(*notes, "Decimal commas are read as points."))
    table = replace(table, cells=tuple(column for column, _ in cells))
    _check_finite(table)
    return table


def _first_record(file: IO[str], path: Path) -> str:
    """The first line that is not blank, with those in which a quoted name of it goes on."""
    record = file.readline()
    while record and not record.strip():
        record = file.readline()
    for _ in range(_NAME_LINES):
        if not _ends_in_quotes(record):
            return record
        record += file.readline()
    raise ReluflowError(f"{path} line 1 opens a quote that is not closed: close it or remove it")


def _ends_in_quotes(text: str) -> bool:
    """Whether a text ends within a quoted cell, whatever separates the cells."""
    for sign in _SEPARATORS:
        try:
            list(csv.reader(StringIO(text), delimiter=sign, strict=True))
        except csv.Error as error:
            if "end of data" in str(error):
                return True
    return False


def _on_one_line(cell: str) -> str:
    """A cell without line breaks, which names in sentences and tables cannot have."""
    return " ".join(cell.split()) if "\n" in cell else cell.strip()


def _separator(line: str, path: Path) -> str:
    """What separates the columns of a file with this first line."""
    if path.suffix.lower() == ".tsv" and "\t" in line:
        return "\t"
    cells = line.count(",") + 1
    for sign in (";", "\t"):
        parts = [part.strip() for part in line.split(sign)]
        decimal = len(parts) > 1 and all(_DECIMAL_COMMA.fullmatch(p) or is_number(p) for p in parts)
        if decimal or len(parts) > cells:
            return sign
    if cells == 1 and len(line.split()) > 1:
        raise ReluflowError(
            f"{path} has columns separated by spaces: expected commas, semicolons or tabs, "
            "replace them"
        )
    return ","


def _is_header(cells: list[str]) -> bool:
    """Whether a first line has names: no number at all, or those of pandas beside an index."""
    if not any(is_number(cell) for cell in cells):
        return True
    counted = cells[1:] == [str(i) for i in range(len(cells) - 1)]
    return cells[0] == "" and (counted or not all(is_number(cell) for cell in cells[1:]))


def _rows(file: IO[str], path: Path, sign: str, header: bool) -> tuple[list[list[str]], list[int]]:
    """Rows of text, all equally long, and the line each ends in."""
    rows: list[list[str]] = []
    at: list[int] = []
    reader = csv.reader(file, delimiter=sign)
    try:
        for row in reader:
            if len(row) < 2 and not any(cell.strip() for cell in row):
                continue
            if header:
                header = False
                continue
            if rows and len(row) != len(rows[0]):
                raise ReluflowError(
                    f"{path} line {reader.line_num} has {len(row)} columns, expected "
                    f"{len(rows[0])} as in the lines before: fill or remove that line"
                )
            rows.append([_on_one_line(cell) for cell in row])
            at.append(reader.line_num)
    except csv.Error as error:
        raise ReluflowError(f"{path} line {reader.line_num}: {error}") from None
    return rows, at


def _text_column(cells: list[str], sign: str) -> tuple[AnyArray, bool]:
    """A column of text as numbers if all cells are, and whether it has decimal commas."""
    commas = sign != "," and any(_DECIMAL_COMMA.fullmatch(cell) for cell in cells)
    if commas:
        cells = [c.replace(",", ".") if _DECIMAL_COMMA.fullmatch(c) else c for c in cells]
    return _column([None if cell.lower() in _BLANK else cell for cell in cells]), commas


def _column(cells: list[Any]) -> AnyArray:
    """Cells, None where blank, as float64 if all are numbers, else as objects."""
    flags = {"true": True, "false": False}
    if all(cell is None or isinstance(cell, bool) for cell in cells):
        return np.array(cells, dtype=object)
    if all(cell is None or (isinstance(cell, str) and cell.lower() in flags) for cell in cells):
        return np.array([cell and flags[cell.lower()] for cell in cells], dtype=object)
    if all(cell is None or is_number(cell) for cell in cells):
        return np.array([np.nan if cell is None else float(cell) for cell in cells])
    return np.array(cells, dtype=object)


def _check_finite(table: Columns) -> None:
    for column, cells in enumerate(table.cells):
        if cells.dtype != object and np.isinf(cells).any():
            row = int(np.argmax(np.isinf(cells)))
            raise ReluflowError(
                f"{table.place(row, column)} holds {cells[row]}: expected finite numbers only, "
                "fill or remove that line"
            )


def _read_with_pandas(path: Path, max_bytes: int) -> Columns:
    import pandas  # slow to import, needed for these files only

    read, what = {
        ".parquet": (pandas.read_parquet, "a Parquet file"),
        ".xlsx": (pandas.read_excel, "an Excel file"),
    }[path.suffix.lower()]
    try:
        _check_expanded(path, max_bytes)
        frame = read(path)
    except ReluflowError:
        raise
    except ImportError as error:
        missing = "openpyxl" if "openpyxl" in str(error) else "pyarrow"
        raise ReluflowError(
            f"{path} needs {missing} to be read: pip install 'reluflow[tables]', or save the "
            "table as .csv"
        ) from None
    except Exception as error:  # whatever the two libraries raise on a broken file
        why = " ".join(str(error).split())[:120]
        raise ReluflowError(f"{path} is not {what} that can be read ({why})") from None
    return _frame_columns(frame, str(path))


def columns_of_arrays(X: Array, y: AnyArray, names: tuple[str, ...] | None, label: str) -> Columns:
    """Arrays X (n, d), of numbers, and y (n,), of numbers or classes, as columns, label last."""
    titles = None if names is None else (*names, label)
    return Columns("the data", titles, (*X.T, _plain_column(y)), arrays=titles is None)


def _check_expanded(path: Path, max_bytes: int) -> None:
    """Refuse a compressed table that would need more than ``max_bytes``, before it is read."""
    if path.suffix.lower() == ".xlsx":
        if not zipfile.is_zipfile(path):
            return
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    else:
        import pyarrow.parquet

        about = pyarrow.parquet.read_metadata(path)
        size = max(
            8 * about.num_rows * about.num_columns,
            sum(about.row_group(i).total_byte_size for i in range(about.num_row_groups)),
        )
    if size > max_bytes:
        raise ReluflowError(
            f"{path} expands to {size:,} bytes, more than max_bytes={max_bytes:,}: raise max_bytes "
            "if the file is trusted"
        )


def _frame_columns(frame: Any, source: str) -> Columns:
    """Columns of a data frame of pandas, polars or the like."""
    names = [str(name).strip() for name in frame.columns]
    at = frame.iloc if hasattr(frame, "iloc") else None
    found = [
        np.asarray(frame[name] if at is None else at[:, i]) for i, name in enumerate(frame.columns)
    ]
    table = Columns(source, tuple(names), tuple(_plain_column(values) for values in found))
    if len(names) < 2 or not len(table):
        raise ReluflowError(
            f"{source} has {len(names)} columns and {len(table)} rows: expected at least one "
            "feature, the label, and one sample"
        )
    _check_finite(table)
    return table


def _plain_column(values: AnyArray) -> AnyArray:
    """Values of any type as a column of numbers, or of text, true/false and None."""
    if values.dtype.kind in "iuf":
        return values.astype(np.float64)
    return _column([_plain_cell(value) for value in values.tolist()])


def _plain_cell(value: Any) -> Any:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, bool | int | float):
        return None if value != value else value
    text = str(value).strip()
    return None if text.lower() in _BLANK else text


def _read_npz(path: Path, max_bytes: int) -> Columns:
    """Arrays ``X`` (n, d) and ``y`` (n,) as columns, the label last."""
    try:
        with zipfile.ZipFile(path) as archive:
            heads = [_header(archive, "X", 2, path), _header(archive, "y", 1, path)]
            _check_sizes(heads, path, max_bytes)
            X, y = (_values(archive, head, path) for head in heads)
    except ReluflowError:
        raise
    except Exception as error:  # whatever a damaged archive makes its readers raise
        why = " ".join(str(error).split())[:120] or type(error).__name__
        raise ReluflowError(
            f"{path} is not a readable .npz file ({why}): write it with numpy.savez(path, X=X, y=y)"
        ) from None
    table = Columns(str(path), None, (*X.T, y), arrays=True)
    _check_finite(table)
    return table


class _Header(NamedTuple):
    """What the first bytes of an array in an archive say of it."""

    key: str
    entry: zipfile.ZipInfo
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype[Any]
    start: int  # bytes of the header

    @property
    def entries(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)


def _header(archive: zipfile.ZipFile, key: str, ndim: int, path: Path) -> _Header:
    names = {name.removesuffix(".npy"): name for name in archive.namelist()}
    if key not in names:
        found = ", ".join(sorted(names)[:8]) or "nothing"
        raise ReluflowError(
            f"{path} has no array {key!r}: expected X and y, got {found}; "
            "write it with numpy.savez(path, X=X, y=y)"
        )
    with archive.open(names[key]) as file:
        try:
            version = npy.read_magic(file)
            if version == (1, 0):
                shape, fortran, dtype = npy.read_array_header_1_0(file)
            else:
                shape, fortran, dtype = npy.read_array_header_2_0(file)
        except ValueError as error:
            raise ReluflowError(f"{path}: array {key} has a bad header ({error})") from None
        start = file.tell()
    if dtype.kind not in "biuf" or dtype.itemsize > 16:
        raise ReluflowError(
            f"{path}: array {key} has type {dtype}, expected real numbers; "
            "objects are never unpickled, convert with astype(float)"
        )
    if len(shape) != ndim:
        raise ReluflowError(f"{path}: array {key} has shape {shape}, expected {ndim} dimension(s)")
    if min(shape, default=0) < 0:
        raise ReluflowError(f"{path}: array {key} has a bad header (shape {shape})")
    return _Header(key, archive.getinfo(names[key]), shape, fortran, dtype, start)


def _check_sizes(heads: list[_Header], path: Path, max_bytes: int) -> None:
    """Refuse what is too large, or does not fit together, before memory is taken for it."""
    for head in heads:
        if head.entries * max(8, head.dtype.itemsize) > max_bytes:
            raise ReluflowError(
                f"{path}: array {head.key} of shape {head.shape} needs {head.entries * 8:,} bytes, "
                f"more than max_bytes={max_bytes:,}: raise max_bytes if the file is trusted"
            )
        wanted, there = head.entries * head.dtype.itemsize, head.entry.file_size - head.start
        if there != wanted:
            state = "more" if there > wanted else "fewer"
            raise ReluflowError(
                f"{path}: array {head.key} holds {state} bytes than its shape {head.shape} says: "
                "write it again"
            )
        if wanted > max(_SMALL, _EXPANDS * head.entry.compress_size):
            raise ReluflowError(
                f"{path}: array {head.key} expands from {head.entry.compress_size:,} to "
                f"{wanted:,} bytes, which data hardly do: write it with numpy.savez, uncompressed, "
                "if it is meant"
            )
    (n, d), (labels,) = heads[0].shape, heads[1].shape
    if n != labels:
        raise ReluflowError(
            f"{path}: y has {labels} labels but X has {n} samples: expected y of shape ({n},)"
        )
    if not n * d:
        raise ReluflowError(
            f"{path}: X is empty: expected at least one sample and one feature, got shape {(n, d)}"
        )


def _values(archive: zipfile.ZipFile, head: _Header, path: Path) -> Array:
    """The entries of an array whose size has been checked."""
    wanted = head.entries * head.dtype.itemsize
    with archive.open(head.entry) as file:
        file.read(head.start)
        data = file.read(wanted)
    if len(data) != wanted:
        raise ReluflowError(f"{path}: array {head.key} ends too early: write it again")
    values = np.frombuffer(data, dtype=head.dtype).reshape(
        head.shape, order="F" if head.fortran else "C"
    )
    return values.astype(np.float64, copy=False)
