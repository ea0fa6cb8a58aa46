"""Where the rows of a sweep are kept: a journal while it runs, a Parquet table afterwards."""

from __future__ import annotations

import hashlib
import heapq
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from reluflow.errors import ReluflowError
from reluflow.runtime.files import beside, cannot_write, write_bytes
from reluflow.runtime.words import plural
from reluflow.sweeps.journal import (
    OPEN,
    STATES,
    Journal,
    offsets_of,
    parse_title,
    read_title,
    rows_at,
)
from reluflow.sweeps.work import Done, Row

GROUP = 10_000  # rows held at once while a table is written or read
_KEY = b"reluflow.sweep"
_SEAL = b"reluflow.sealed:"  # and the hash of all other bytes, between the pages and the footer
_END = 8  # bytes after the footer of a Parquet file: its length in four bytes, and PAR1


def needs_pyarrow() -> tuple[Any, Any]:
    """pyarrow and its Parquet module."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ReluflowError(
            "Parquet tables need pyarrow: pip install 'reluflow[sweep]', or give an --out that "
            "ends in .jsonl"
        ) from None
    return pyarrow, pyarrow.parquet


def journal_of(out: Path) -> Path:
    """The journal beside a table; a .jsonl table is its own journal."""
    return out if out.suffix == ".jsonl" else out.with_name(out.name + ".journal")


def stored_title(out: Path) -> dict[str, Any] | None:
    """What sweep is at ``out``; None if there is nothing."""
    title = None
    if out.suffix != ".jsonl" and out.exists():
        _, parquet = needs_pyarrow()
        check_seal(out)
        with _readable(out):
            text = (parquet.read_schema(out).metadata or {}).get(_KEY, b"")
        title = parse_title(text)
        if title is None:
            raise ReluflowError(f"{out} is not the table of a sweep: give another path")
    return title or read_title(journal_of(out))


class Store:
    """Rows of one sweep on disk, and which points are done (one byte each)."""

    def __init__(self, out: Path, title: Mapping[str, Any], count: int, new: bool) -> None:
        if out.suffix not in (".parquet", ".jsonl"):
            raise ReluflowError(f"a table is a .parquet or .jsonl file, got {out}")
        if out.suffix == ".parquet":
            needs_pyarrow()
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            if out.is_dir():
                raise ReluflowError(f"cannot write {out}: it is a folder")
            before = stored_title(out)
            if before is not None and before["id"] != title["id"] and not new:
                raise ReluflowError(
                    f"{out} holds another sweep ({difference(before, title)}): changed settings "
                    "are a new sweep, give another --out, or --new to replace it"
                )
            self.journal = Journal(journal_of(out), title, count)
            if new and before is not None:
                out.unlink(missing_ok=True)
                self.journal.path.unlink(missing_ok=True)
                self.journal.close()
                self.journal = Journal(journal_of(out), title, count)
        except OSError as error:
            raise ReluflowError(f"cannot write {out}: {error.strerror or error}") from None
        self.out, self.title, self.count = out, dict(title), count
        self.runs = out.with_name(out.stem + "-runs")
        self.state = np.full(count, OPEN, dtype=np.uint8)
        with _readable(out):
            for row in _table_rows(out, ["index", "status"]):
                self.state[row["index"]] = STATES[row["status"]]
        for index, state in self.journal.replay():
            self.state[index] = state

    def add(self, found: Iterable[Done]) -> None:
        """Keep finished points: runs first, so that a row never lacks its run."""
        found = list(found)
        for done in found:
            if done.run is not None:
                self._keep(done.row["point"], done.run)
        self.journal.add(done.row for done in found)
        for done in found:
            self.state[done.row["index"]] = STATES[done.row["status"]]

    def _keep(self, name: str, data: bytes) -> None:
        try:
            self.runs.mkdir(exist_ok=True)
        except OSError as error:
            raise cannot_write(self.runs, error) from None
        write_bytes(self.runs / f"{name}.nc", data)

    def close(self) -> None:
        """Turn the journal into the table."""
        if self.out.suffix == ".parquet":
            if (self.journal.offsets >= 0).any() or not self.out.exists():
                write_table(self.out, self.title)
            self.journal.path.unlink(missing_ok=True)
        self.journal.close()


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What differs between two sweeps, in words."""
    old, new = _flat(before["sweep"]), _flat(now["sweep"])
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return f"{', '.join(sorted(names)[:4])} {plural(len(names), 'differs', 'differ')}"


def _flat(sweep: Mapping[str, Any]) -> dict[str, Any]:
    flat = {k: v for k, v in sweep.items() if k not in ("fixed", "factors")}
    return flat | dict(sweep["fixed"]) | {k: v for f in sweep["factors"] for k, v in f.items()}


def read_rows(out: Path) -> Iterator[Row]:
    """All rows in the order of their points, those of an unfinished sweep included."""
    title, journal = stored_title(out), journal_of(out)
    if title is None:
        raise ReluflowError(f"{out} does not exist: expected the table of a sweep")
    new: Iterable[Row] = ()
    if journal.exists():
        new = rows_at(journal, offsets_of(journal, title["points"]))
    old = _table_rows(out)
    both = heapq.merge(
        ((row["index"], 1, row) for row in old),
        ((row["index"], 0, row) for row in new),
        key=lambda item: item[:2],
    )
    for _, same in itertools.groupby(both, key=lambda item: item[0]):
        yield next(same)[2]


def _table_rows(out: Path, columns: list[str] | None = None) -> Iterator[Row]:
    """Rows of the Parquet file, a group at a time; cells without a value are left out."""
    if out.suffix == ".jsonl" or not out.exists():
        return
    _, parquet = needs_pyarrow()
    with _readable(out), parquet.ParquetFile(out) as file:
        for batch in file.iter_batches(GROUP, columns=columns):
            for row in batch.to_pylist():
                yield {name: value for name, value in row.items() if value is not None}


@contextmanager
def _readable(out: Path) -> Iterator[None]:
    """Whatever a damaged table makes its reader, or us, raise, as one sentence."""
    try:
        yield
    except (ReluflowError, MemoryError):
        raise
    except Exception as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise ReluflowError(
            f"cannot read {out}: {why}; it is damaged: restore it, or give another --out"
        ) from None


def seal(table: Path) -> None:
    """Put a hash of a Parquet file into it, before the footer.

    Pages are found by their place counted from the start, so other readers do not see it.
    """
    with open(table, "rb+") as file:
        hashed = hashlib.file_digest(file, "sha256").digest()
        footer = _footer_of(file)
        file.seek(footer)
        tail = file.read()
        file.seek(footer)
        file.write(_SEAL + hashed + tail)
        file.flush()
        os.fsync(file.fileno())


def check_seal(table: Path) -> None:
    """Refuse a table with a changed byte; one that carries no seal is taken as it is."""
    size = len(_SEAL) + hashlib.sha256().digest_size
    with _readable(table), open(table, "rb") as file:
        footer = _footer_of(file)
        file.seek(max(footer - size, 0))
        found = file.read(size)
        if not found.startswith(_SEAL):
            return
        rest = hashlib.sha256()
        file.seek(0)
        left = footer - size
        while left and (block := file.read(min(left, 1 << 20))):
            rest.update(block)
            left -= len(block)
        file.seek(footer)
        rest.update(file.read())
        if found != _SEAL + rest.digest():
            raise ReluflowError(
                f"cannot read {table}: its bytes have changed since it was written; it is damaged: "
                "restore it, or give another --out"
            )


def _footer_of(file: BinaryIO) -> int:
    """Where the footer of a Parquet file begins."""
    end = file.seek(-_END, os.SEEK_END)
    return end - int.from_bytes(file.read(4), "little")


def write_table(out: Path, title: Mapping[str, Any]) -> None:
    """Write the Parquet table beside its place and rename: never half a table."""
    arrow, parquet = needs_pyarrow()
    kinds: dict[str, str] = {}
    for row in read_rows(out):
        for name, value in row.items():
            kinds[name] = _kind(kinds.get(name), value)
    first = ["index", "point", "seed", "draw"]
    names = [*first, *(n for n in kinds if n not in (*first, "seconds")), "seconds"]
    types = {
        "": arrow.string(),
        "str": arrow.string(),
        "bool": arrow.bool_(),
        "int": arrow.int64(),
        "float": arrow.float64(),
    }
    schema = arrow.schema(
        [(name, types[kinds.get(name, "")]) for name in names],
        metadata={_KEY: json.dumps(title).encode()},
    )
    with beside(out) as part:
        with parquet.ParquetWriter(part, schema) as writer:
            rows = read_rows(out)
            while group := list(itertools.islice(rows, GROUP)):
                cells = [{n: _cell(kinds[n], v) for n, v in row.items()} for row in group]
                writer.write_batch(arrow.RecordBatch.from_pylist(cells, schema=schema))
        seal(part)


def _kind(before: str | None, value: Any) -> str:
    """Type of a column that held ``before`` and now holds a value."""
    if value is None:
        return before or ""
    kind = type(value).__name__
    if kind == "int" and abs(value) >= 2**63:
        kind = "float"
    if before in (None, "", kind):
        return kind
    return "float" if {before, kind} == {"int", "float"} else "str"


def _cell(kind: str, value: Any) -> Any:
    if value is None or kind == "":
        return None
    return {"str": str, "float": float, "int": int, "bool": bool}[kind](value)
