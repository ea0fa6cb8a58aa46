"""The result of a sweep, as rows, as a pandas DataFrame or as an xarray Dataset."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reluflow.errors import ReluflowError
from reluflow.sweeps.store import Row, read_rows, stored_title

if TYPE_CHECKING:
    import pandas
    import xarray


class Table:
    """Rows of a sweep, one for each finished point, in the order of the points.

    Every row has ``index``, ``point`` (hash of its settings), ``seed`` (the repetition), ``draw``
    (key of its random numbers, see :func:`reluflow.sweeps.grid.seeds_of`), the settings, ``status``
    ("ok" or "failed"), ``message``, what the task measured, and ``seconds``.

    Attributes
    ----------
    path : Path or None
        The file; None if the sweep was kept in memory.
    title : mapping
        ``sweep`` (its settings), ``id`` (their hash), ``points`` (how many), ``plot``, ``version``.
    """

    def __init__(
        self, path: Path | None, title: Mapping[str, Any], rows: Sequence[Row] | None = None
    ) -> None:
        self.path, self.title = path, dict(title)
        self._rows = rows

    @property
    def swept(self) -> list[str]:
        """Fields with several values."""
        return [name for factor in self.title["sweep"]["factors"] for name in factor]

    @property
    def points(self) -> int:
        """How many rows a complete table has."""
        return int(self.title["points"])

    def rows(self) -> Iterator[Row]:
        """One dictionary after the other, without holding all of them."""
        if self._rows is not None:
            return iter(sorted(self._rows, key=lambda row: row["index"]))
        assert self.path is not None
        return read_rows(self.path)

    def counts(self) -> dict[str, int]:
        """Numbers of points: ok, failed and missing."""
        found = {"ok": 0, "failed": 0}
        for row in self.rows():
            found[row["status"]] += 1
        return {**found, "missing": self.points - sum(found.values())}

    @property
    def complete(self) -> bool:
        """Whether every point has a row."""
        return self.counts()["missing"] == 0

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a DataFrame, indexed by point."""
        import pandas

        return pandas.DataFrame(list(self.rows())).set_index("index")

    def to_xarray(self, values: Sequence[str] | None = None) -> xarray.Dataset:
        """Columns over the swept fields and ``seed``, one dimension for each group of fields.

        Parameters
        ----------
        values : names, optional
            Columns to take; by default all that are not fixed settings.
        """
        frame = self.to_pandas()
        sweep = self.title["sweep"]
        dims = [next(iter(factor)) for factor in sweep["factors"]] + ["seed"]
        skip = {*dims, *sweep["fixed"], "point", "draw"}
        wanted = [name for name in frame.columns if name not in skip] if values is None else values
        for name in wanted:
            if name not in frame.columns:
                raise ReluflowError(f"no column {name!r}: the table has {', '.join(frame.columns)}")
        return frame.set_index(dims)[list(wanted)].to_xarray()

    def __repr__(self) -> str:
        counts = self.counts()
        said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        return f"Table({self.title['sweep']['task']} over {', '.join(self.swept)}: {said})"


def read_table(path: str | os.PathLike[str]) -> Table:
    """The table of a sweep, finished or not.

    Parameters
    ----------
    path : path
        What ``out=`` or ``--out`` named.

    Returns
    -------
    Table
    """
    path = Path(path)
    title = stored_title(path)
    if title is None:
        raise ReluflowError(f"{path} does not exist: expected the table of a sweep")
    return Table(path, title)
