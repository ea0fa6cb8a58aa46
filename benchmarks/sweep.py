"""Benchmarks of sweep: what a point costs beyond its own work.

``python benchmarks/sweep.py`` or ``reluflow bench sweep``. Overhead per point is (wall clock times
workers - sum of the points' own seconds) / points, start of the workers left out; it is wanted
below 5 ms. The limit runs on orthonormal data (n = 16, m = 6) are as many as ``POINTS`` in the
environment says (400 by default; 10,000 take some 20 minutes on two cores), tiny points always
10,000.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from reluflow.sweeps import Table, sweep

WANTED = 5.0  # milliseconds
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
LIMITS: dict[str, Any] = {
    "problem.name": "orthonormal",
    "problem.n": 16,
    "init.m": 6,
    "init.kind": "sphere",
}


def timed(task: str, grid: dict[str, Any], seeds: int, executor: Any) -> tuple[float, Table]:
    """Wall clock of a sweep into a Parquet file, and its table."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "table.parquet"
        start = time.perf_counter()
        table = sweep(task, grid, seeds=seeds, out=out, executor=executor, progress=False)
        spent = time.perf_counter() - start
        return spent, Table(None, table.title, list(table.rows()))


def row(
    console: Callable[[str], None],
    name: str,
    task: str,
    grid: dict[str, Any],
    seeds: int,
    executor: Any,
    workers: int,
    starting: float,
) -> dict[str, Any]:
    """One line: points, rate, overhead."""
    wall, table = timed(task, grid, seeds, executor)
    counts = table.counts()
    own = sum(r["seconds"] for r in table.rows())
    wall = max(wall - starting, 1e-9)
    overhead = 1e3 * (wall * workers - own) / seeds
    console(
        f"{name}, {workers} worker(s): {seeds} points in {wall:.1f} s, {seeds / wall:.0f}/s; "
        f"{1e3 * own / seeds:.2f} ms of own work, overhead {overhead:.2f} ms per point (wanted < "
        f"{WANTED:g}); ok {counts['ok']}, failed {counts['failed']}, missing {counts['missing']}"
    )
    return {
        "name": name,
        "workers": workers,
        "points": seeds,
        "seconds": wall,
        "own_ms": 1e3 * own / seeds,
        "overhead_ms": overhead,
        "asked_ms": WANTED,
        **counts,
    }


def run(console: Callable[[str], None] = print) -> list[dict[str, Any]]:
    """Print every row and return them."""
    many = int(os.environ.get("POINTS", "400"))
    timed("limit", LIMITS, 2, "serial")  # compiles
    tiny = "reluflow.sweeps.experiments:nothing"
    rows: list[dict[str, Any]] = []
    for name, executor, workers in (("serial", "serial", 1), ("processes", CORES, CORES)):
        starting = timed(tiny, {}, workers, executor)[0]
        rows.append(
            row(console, f"tiny points, {name}", tiny, {}, 10_000, executor, workers, starting)
        )
        warm = timed("limit", LIMITS, workers, executor)
        starting = warm[0] - float(np.mean([r["seconds"] for r in warm[1].rows()]))
        rows.append(
            row(console, f"limit, {name}", "limit", LIMITS, many, executor, workers, starting)
        )
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        console("dask.distributed is not installed: pip install 'reluflow[sweep]'")
        return rows
    with (
        LocalCluster(n_workers=CORES, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        timed(tiny, {}, CORES, client)
        rows.append(row(console, "tiny points, Dask", tiny, {}, 10_000, client, CORES, 0.0))
    return rows


if __name__ == "__main__":
    run()
