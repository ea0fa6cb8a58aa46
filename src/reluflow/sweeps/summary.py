"""A table in a few lines: how many points, and columns by fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from reluflow.errors import ReluflowError
from reluflow.sweeps.grid import RESERVED
from reluflow.sweeps.table import Table

if TYPE_CHECKING:
    import pandas


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
        What to group by; the swept fields if there are at most two of them.
    of : columns
        What to summarise: numbers and true/false (their mean is a share); for columns of words
        the commonest word. By default all that the task measured.
    quantiles : numbers in [0, 1]
    """
    frame = table.to_pandas()
    frame = frame[frame["status"] == "ok"]
    swept = table.swept
    by = list(by) or (swept if len(swept) <= 2 else [])
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
