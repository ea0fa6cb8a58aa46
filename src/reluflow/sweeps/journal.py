"""Rows as they come: one line each in a file that survives a kill at any moment."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.errors import ReluflowError
from reluflow.sweeps.grid import count_described, digest

OPEN, OK, FAILED = 0, 1, 2
STATES = {"ok": OK, "failed": FAILED}
_LONGEST = 1 << 24  # bytes a first line may have
_SYNC = 1.0  # seconds between syncs to the disk, which a power cut asks for, a kill does not


class Journal:
    """Append-only file of rows, the first line saying whose.

    A line cut off by a kill is dropped at the next start, and its point runs again. The later of
    two rows of one point counts.
    """

    def __init__(self, path: Path, title: Mapping[str, Any], count: int) -> None:
        self.path = path
        self.offsets = np.full(count, -1, dtype=np.int64)
        try:
            self._file = open(path, "a+b", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise ReluflowError(f"cannot write {path}: {error.strerror}") from None
        _lock(self._file, path)
        self._synced = time.monotonic()
        self._begin(title)

    def _begin(self, title: Mapping[str, Any]) -> None:
        if read_title(self.path) is None:
            self._file.truncate(0)
            self._append((json.dumps(title) + "\n").encode())

    def replay(self) -> Iterator[tuple[int, int]]:
        """(index, state) of each row already there, and the end of the file made whole."""
        end = 0
        for offset, line in _lines(self.path):
            end = offset + len(line)
            row = _row(line)
            if row is not None and 0 <= row["index"] < len(self.offsets):
                self.offsets[row["index"]] = offset
                yield row["index"], STATES[row["status"]]
        if end:
            self._file.truncate(end)
        self._file.seek(0, os.SEEK_END)

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Append rows in one write."""
        at, data = self._file.tell(), b""
        for row in rows:
            self.offsets[row["index"]] = at + len(data)
            data += (json.dumps(row) + "\n").encode()
        self._append(data)

    def _append(self, data: bytes) -> None:
        try:
            while data:
                data = data[self._file.write(data) :]
            if time.monotonic() - self._synced > _SYNC:
                os.fsync(self._file.fileno())
                self._synced = time.monotonic()
        except OSError as error:
            raise ReluflowError(
                f"cannot write {self.path}: {error.strerror}; the rows before it are kept"
            ) from None

    def rows(self) -> Iterator[dict[str, Any]]:
        """Rows in the order of their points."""
        yield from rows_at(self.path, self.offsets)

    def close(self) -> None:
        """Sync and let go of the file."""
        os.fsync(self._file.fileno())
        self._file.close()


def rows_at(path: Path, offsets: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    """Rows of a journal at given places, in the order of the places given."""
    with open(path, "rb") as file:
        for offset in offsets[offsets >= 0]:
            file.seek(int(offset))
            row = _row(file.readline())
            if row is None:
                raise ReluflowError(f"{path} changed while it was read: wait for who writes it")
            yield row


def offsets_of(path: Path, count: int) -> NDArray[np.int64]:
    """Place of the last row of each point."""
    offsets = np.full(count, -1, dtype=np.int64)
    for offset, line in _lines(path):
        row = _row(line)
        if row is not None and 0 <= row["index"] < count:
            offsets[row["index"]] = offset
    return offsets


def read_title(path: Path) -> dict[str, Any] | None:
    """First line of a journal; None where there is no whole first line."""
    try:
        with open(path, "rb") as file:
            line = file.readline(_LONGEST)
    except FileNotFoundError:
        return None
    if not line.endswith(b"\n") and len(line) < _LONGEST:
        return None
    title = parse_title(line)
    if title is None:
        raise ReluflowError(f"{path} is not the journal of a sweep: give another --out")
    return title


def parse_title(text: bytes) -> dict[str, Any] | None:
    """The title of a sweep, None if this is none, or one that was damaged."""
    try:
        title = json.loads(text)
        about = title["sweep"]
        whole = (
            isinstance(title["id"], str)
            and isinstance(title["points"], int)
            and isinstance(about["fixed"], dict)
            and all(isinstance(factor, dict) for factor in about["factors"])
            and title["id"] == digest(about)
            and title["points"] == count_described(about)
        )
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration, RecursionError):
        return None
    return title if whole else None


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """(place, line) of each whole line, the first included."""
    offset = 0
    with open(path, "rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            yield offset, line
            offset += len(line)


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
        whole = isinstance(row["index"], int) and row["status"] in STATES
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return row if whole else None


def _lock(file: Any, path: Path) -> None:
    """One driver at a time; the lock goes with its process, however that ends."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise ReluflowError(
            f"another process is writing {path}: wait for it, or give another --out"
        ) from None
