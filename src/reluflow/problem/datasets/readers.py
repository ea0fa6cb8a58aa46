"""Problems from files: CSV with labels in the last column, and .npz with X and y.

Files are data: nothing is unpickled, and sizes are checked before anything is allocated.
"""

from __future__ import annotations

import lzma
import math
import os
import zipfile
import zlib
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from reluflow.arrays import Array
from reluflow.errors import ReluflowError
from reluflow.problem.problem import Problem

_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
)
#: Largest file, and largest array, a reader takes unless told otherwise.
MAX_BYTES = 1 << 30


def read_csv(
    path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES, **options: Any
) -> Problem:
    """Read a problem from a CSV file: one sample a line, features first, the label last.

    Parameters
    ----------
    path : path
        Text in UTF-8 with commas; a first line without any number is taken as a header.
    max_bytes : int
        Refuse larger files.
    **options
        ``loss``, ``leak``, ``reduction``, ``bias`` of :class:`reluflow.Problem`.

    Returns
    -------
    Problem
        Named after the file; ``known["features"]`` has the names of a header.
    """
    path = _checked(path, max_bytes)
    try:
        with path.open(encoding="utf-8-sig", newline=None) as file:
            table, names = _parse(file, path)
    except UnicodeDecodeError:
        raise ReluflowError(
            f"{path} is not text in UTF-8: expected a CSV file, save it again as UTF-8"
        ) from None
    if table.shape[1] < 2:
        raise ReluflowError(
            f"{path} has 1 column: expected at least one feature and the label, separated by commas"
        )
    known = {} if names is None else {"features": names[:-1]}
    problem = Problem(table[:, :-1], table[:, -1], name=path.stem, known=known, **options)
    return _both_classes(problem, path)


def _parse(file: IO[str], path: Path) -> tuple[Array, tuple[str, ...] | None]:
    """Numbers of a CSV file and the names of its header, if it has one; blank lines are skipped."""
    first = next((line for line in file if line.strip()), None)
    if first is None:
        raise ReluflowError(f"{path} is empty: expected lines of numbers with the label last")
    _check_commas(first, path)
    header = not any(_is_number(cell) for cell in first.split(","))
    file.seek(0)
    lines = (line for line in file if line.strip())
    if header:
        next(lines)
    start = next(lines, None)
    if start is None:
        raise ReluflowError(f"{path} has a header but no samples: expected lines of numbers")
    names = tuple(cell.strip().strip('"') for cell in first.split(",")) if header else None
    try:
        table = np.loadtxt(chain([start], lines), delimiter=",", ndmin=2, comments=None)
        if not np.isfinite(table).all():
            raise ValueError("a number is not finite")
        return table, names
    except UnicodeDecodeError:
        raise
    except ValueError as error:  # loadtxt is fast but does not say where
        file.seek(0)
        raise ReluflowError(_first_fault(file, path, header) or f"{path}: {error}") from None


def _check_commas(line: str, path: Path) -> None:
    """Raise where a line is split by something else."""
    cells = line.count(",") + 1
    for sign, name in ((";", "';'"), ("\t", "tabs"), (None, "spaces")):
        parts = line.split(sign)
        decimal = len(parts) > 1 and all(_has_decimal_comma(part.strip()) for part in parts)
        if decimal or (len(parts) > cells and (sign is not None or cells == 1)):
            raise ReluflowError(
                f"{path} has columns separated by {name}: expected commas, replace them"
                + (" (and decimal commas by points)" if cells > 1 else "")
            )


def _has_decimal_comma(cell: str) -> bool:
    """Whether this is a number, such as 1,5 or 2."""
    return cell.strip(",") == cell and _is_number(cell.replace(",", "."))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _first_fault(file: IO[str], path: Path, header: bool) -> str | None:
    width = None
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        if header:
            header = False
            continue
        cells = line.rstrip("\r\n").split(",")
        width = width or len(cells)
        if len(cells) != width:
            return (
                f"{path} line {number} has {len(cells)} columns, expected {width} as in the lines "
                "before: fill or remove that line"
            )
        for column, cell in enumerate(cells, start=1):
            if not _is_number(cell):
                return (
                    f"{path} line {number} column {column} holds {cell.strip()[:40]!r}: expected a "
                    "number, drop that column or encode it"
                )
            if not math.isfinite(float(cell)):
                return (
                    f"{path} line {number} column {column} holds {cell.strip()}: expected finite "
                    "numbers only, fill or remove that line"
                )
    return None


def read_npz(
    path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES, **options: Any
) -> Problem:
    """Read a problem from an .npz file with arrays ``X`` (n, d) and ``y`` (n,).

    Parameters
    ----------
    path : path
        Written by ``numpy.savez(path, X=X, y=y)``; other arrays in it are ignored.
    max_bytes : int
        Refuse larger files and larger arrays, judged by their headers.
    **options
        ``loss``, ``leak``, ``reduction``, ``bias`` of :class:`reluflow.Problem`.

    Returns
    -------
    Problem
        Named after the file.
    """
    path = _checked(path, max_bytes)
    try:
        with zipfile.ZipFile(path) as archive:
            X = _member(archive, "X", 2, path, max_bytes)
            y = _member(archive, "y", 1, path, max_bytes)
    except _UNREADABLE as error:
        raise ReluflowError(
            f"{path} is not a readable .npz file ({error}): "
            "write it with numpy.savez(path, X=X, y=y)"
        ) from None
    return _both_classes(Problem(X, y, name=path.stem, **options), path)


def _member(archive: zipfile.ZipFile, key: str, ndim: int, path: Path, max_bytes: int) -> Array:
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
        if dtype.kind not in "biuf" or dtype.itemsize > 16:
            raise ReluflowError(
                f"{path}: array {key} has type {dtype}, expected real numbers; "
                "objects are never unpickled, convert with astype(float)"
            )
        if len(shape) != ndim:
            raise ReluflowError(
                f"{path}: array {key} has shape {shape}, expected {ndim} dimension(s)"
            )
        count = math.prod(int(size) for size in shape)
        if min(shape, default=0) < 0:
            raise ReluflowError(f"{path}: array {key} has a bad header (shape {shape})")
        if count * max(8, dtype.itemsize) > max_bytes:
            raise ReluflowError(
                f"{path}: array {key} of shape {shape} needs {count * 8:,} bytes, "
                f"more than max_bytes={max_bytes:,}: raise max_bytes if the file is trusted"
            )
        wanted = count * dtype.itemsize
        data = file.read(wanted + 1)
    if len(data) != wanted:
        state = "more" if len(data) > wanted else "fewer"
        raise ReluflowError(
            f"{path}: array {key} holds {state} bytes than its shape {shape} says: write it again"
        )
    values = np.frombuffer(data, dtype=dtype)
    return values.reshape(shape, order="F" if fortran else "C").astype(np.float64)


def _both_classes(problem: Problem, path: Path) -> Problem:
    """The problem, unless its loss is for two classes and the file has one."""
    if problem.loss.margin and (problem.y == problem.y[0]).all():
        raise ReluflowError(
            f"{path} has one class only, all labels are {problem.y[0]:+g}: expected -1 and +1 for "
            f"the {problem.loss.name} loss, or use loss='half_square'"
        )
    return problem


def _checked(path: str | os.PathLike[str], max_bytes: int) -> Path:
    """The path of an existing regular file that is not too large."""
    path = Path(path)
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise ReluflowError(f"{path} {what}: expected the path of a .csv or .npz file")
    size = path.stat().st_size
    if size > max_bytes:
        raise ReluflowError(
            f"{path} has {size:,} bytes, more than max_bytes={max_bytes:,}: "
            "raise max_bytes if the file is trusted"
        )
    return path
