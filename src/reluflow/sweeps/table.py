"""The result of a sweep: its rows, as a pandas DataFrame or an xarray Dataset, and a summary."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.sweeps.grid import RESERVED
from reluflow.sweeps.store import read_rows, stored_title
from reluflow.sweeps.work import Row

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
    rows : method
        All rows, in the order of the points.
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
        if self.path is None:
            raise ReluflowError("this table has neither rows nor a file: make it with sweep()")
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
        dataset: xarray.Dataset = frame.set_index(dims)[list(wanted)].to_xarray()
        return dataset

    def __repr__(self) -> str:
        counts = self.counts()
        said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        return f"Table({self.title['sweep']['task']} over {', '.join(self.swept)}: {said})"


@check_arguments
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


def summary(
    table: Table,
    by: Sequence[str] = (),
    of: Sequence[str] = (),
    quantiles: Sequence[float] = (0.1, 0.5, 0.9),
) -> pandas.DataFrame:
    """Count, mean and quantiles of columns, for each combination of the fields ``by``.

    Parameters
    ----------
    table : Table
    by : fields
        What to group by; the swept fields by default.
    of : columns
        What to summarise: numbers and true/false (their mean is a share); for columns of words
        the commonest word. By default all that the task measured.
    quantiles : numbers in [0, 1]
    """
    frame = table.to_pandas()
    frame = frame[frame["status"] == "ok"]
    swept = table.swept
    by = list(by) or swept
    fixed = {*table.title["sweep"]["fixed"], *swept, *RESERVED}
    of = list(of) or [name for name in frame.columns if name not in fixed]
    for name in (*by, *of):
        if name not in frame.columns:
            raise ReluflowError(f"no column {name!r}: the table has {', '.join(frame.columns)}")
    for q in quantiles:
        if not 0.0 <= q <= 1.0:
            raise ReluflowError(f"quantiles lie between 0 and 1, got {q}")
    steady = {
        name
        for name in of
        if (frame.groupby(by)[name].nunique().max() if by else frame[name].nunique()) <= 1
    }
    groups: Any = frame.groupby(by, sort=True) if by else [((), frame)]
    rows = []
    for key, part in groups:
        row: dict[str, Any] = dict(zip(by, key if isinstance(key, tuple) else (key,), strict=True))
        row["points"] = len(part)
        for name in of:
            row |= _column(name, part[name].dropna(), () if name in steady else quantiles)
        rows.append(row)
    import pandas

    return pandas.DataFrame(rows)


def split_constant(frame: pandas.DataFrame) -> tuple[pandas.DataFrame, dict[str, Any]]:
    """The columns of a summary that differ between its rows, and the values of the others.

    A single row is left as it is.
    """
    if len(frame) < 2:
        return frame, {}
    same = {name: frame[name].iloc[0] for name in frame if frame[name].nunique(dropna=False) == 1}
    return frame.drop(columns=list(same)), same


def _column(name: str, values: Any, quantiles: Sequence[float]) -> dict[str, Any]:
    if values.empty:
        return {}
    if values.dtype == object and values.map(type).eq(bool).all():
        values = values.astype(bool)
    if values.dtype == bool:
        return {name: float(values.mean())}
    if values.dtype.kind not in "if":
        counts = values.value_counts()
        return {name: f"{counts.index[0]} ({counts.iloc[0]} of {len(values)})"}
    if not quantiles:
        return {name: values.iloc[0]}
    return {
        name: float(values.mean()),
        **{f"{name} q{100 * q:g}": float(values.quantile(q)) for q in quantiles},
    }
