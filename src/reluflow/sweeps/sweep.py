"""sweep: the one way to run many runs."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from reluflow._version import __version__
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.runtime import Interrupt, Progress
from reluflow.sweeps.executors import Chunk, Processes, Serial, in_worker
from reluflow.sweeps.grid import Grid, digest, make_grid
from reluflow.sweeps.journal import FAILED, OPEN, STATES
from reluflow.sweeps.store import Store
from reluflow.sweeps.table import Table
from reluflow.sweeps.tasks import name_of, resolve
from reluflow.sweeps.work import Done, Job, Row

CHUNK_SECONDS = 0.5  # aimed duration of the work handed out at once
MOST = 500  # points handed out at once


@check_arguments
def sweep(
    task: str | Callable[..., Any],
    grid: Mapping[str, Any],
    *,
    seeds: int | Iterable[int] = 1,
    out: str | os.PathLike[str] | None = None,
    executor: Any = None,
    seed: int = 0,
    pair: Iterable[Iterable[str]] = (),
    shared: Iterable[str] = (),
    observe: Sequence[str] = (),
    keep: bool = False,
    retry: bool = False,
    new: bool = False,
    progress: bool | str = "auto",
    plot: Mapping[str, Any] | None = None,
    each: Callable[[Row], None] | None = None,
) -> Table:
    """Run a task at every point of a grid and keep one row for each.

    Parameters
    ----------
    task : str or function
        "descend", "flow", "limit", "align", "max_margin", "min_norm"; the id of a claim that makes
        its own experiment ("TK24-L5.3/repaired"); "module:function" or a function that can be
        imported. A function is called with the settings and, if it has them, ``rng`` or ``seed``;
        it returns a mapping of numbers and words, a number, or a Trajectory.
    grid : mapping
        Field to value, list of values, or range ``{"from": 1e-12, "to": 1, "num": 7, "log":
        True}``. Fields of runs are ``problem.name`` and the dataset's options, ``init.*`` of
        :func:`reluflow.initialize`, ``clock.*`` of the run itself (for flow also ``loss_below``,
        ``stationary``, ``settled``), also as nested mappings; those of functions and claims are
        their parameters.
    seeds : int or list
        Repetitions of each combination.
    out : path, optional
        Table to write, ``.parquet`` or ``.jsonl``. Finished points found there are not run again.
        Without it rows are kept in memory.
    executor : optional
        None or a number: that many worker processes (all cores; inside a worker process, that
        process alone); "serial": this process; a Dask ``Client`` or the address of a scheduler.
        The rows do not depend on it.
    seed : int
        Root of all random numbers. Those of a point are keyed by its settings and repetition.
    pair : lists of fields
        Fields that vary together instead of in a cross product.
    shared : fields
        Fields that leave random numbers as they are: points that differ in them only share data
        and directions of the start.
    observe : names
        Runs: what to measure on the network at the end, a name of
        :mod:`reluflow.trajectory.observables` or "kind", "residual", "gain", "excess" of
        :func:`reluflow.stationarity`; align: "captured".
    keep : bool
        Keep each trajectory, one .nc file in a folder beside the table.
    retry : bool
        Run the failed points again.
    new : bool
        Replace what is at ``out``.
    progress : bool or "auto"
    plot : mapping, optional
        What to draw by default, stored with the table.
    each : function, optional
        Called with every row as it arrives.

    Returns
    -------
    Table
        Ctrl-C ends the sweep early with the rows there are; the same call goes on from there.

    Examples
    --------
    >>> table = sweep("min_norm", {"problem.name": "golden", "problem.loss": ["square"]},
    ...               executor="serial")
    >>> [round(row["norm2"], 6) for row in table.rows()]
    [10.954451]
    """
    points = make_grid(grid, seeds, seed, pair, shared)
    job = Job(name_of(task), points.root, tuple(observe), bool(keep))
    if keep and out is None:
        raise ReluflowError("keep stores runs beside the table: give out= as well")
    resolve(job.task).check(points, job.observe)
    whole = {
        "task": job.task,
        **points.describe(),
        "observe": list(observe),
        "keep": job.keep,
        "version": __version__,
    }
    title = {"sweep": whole, "id": digest(whole), "points": len(points), "plot": dict(plot or {})}
    store = Memory(len(points)) if out is None else Store(Path(out), title, len(points), new)
    try:
        wanted = np.flatnonzero(
            (store.state == OPEN) | ((store.state == FAILED) if retry else False)
        )
        if wanted.size:
            _drive(job, points, wanted, store, executor, progress, each)
    finally:
        store.close()
    return Table(None if out is None else Path(out), title, getattr(store, "rows", None))


class Memory:
    """Rows of a sweep without a file."""

    def __init__(self, count: int) -> None:
        self.state = np.full(count, OPEN, dtype=np.uint8)
        self.rows: list[Row] = []

    def add(self, found: Iterable[Done]) -> None:
        """Keep finished points."""
        for done in found:
            self.rows.append(done.row)
            self.state[done.row["index"]] = STATES[done.row["status"]]

    def close(self) -> None:
        """Nothing to let go of."""


def _drive(
    job: Job,
    points: Grid,
    wanted: Any,
    store: Store | Memory,
    executor: Any,
    progress: bool | str,
    each: Callable[[Row], None] | None,
) -> None:
    runner = _executor(executor, len(wanted))
    try:
        if hasattr(runner, "check"):
            runner.check(job)
        pace = Pace(len(wanted), runner)
        began, done, failed = time.monotonic(), 0, 0
        with Interrupt() as interrupt, Progress(len(wanted), job.task, progress) as bar:
            for found in runner.run(job, pace.chunks(points, wanted)):
                store.add(found)
                pace.learn(found)
                if each is not None:
                    for item in found:
                        each(item.row)
                done += len(found)
                failed += sum(item.row["status"] == "failed" for item in found)
                spent = time.monotonic() - began
                note = f"{done / max(spent, 1e-9):.3g}/s, {done} of {len(wanted)}, {failed} failed"
                bar.update(done, spent, note)
                if interrupt.requested:
                    break
    finally:
        runner.close()


def _executor(executor: Any, count: int) -> Any:
    if executor is None and in_worker():
        return Serial()
    if executor is None or (isinstance(executor, int) and not isinstance(executor, bool)):
        if executor is not None and executor < 1:
            raise ReluflowError(f"executor is a number of processes of at least 1, got {executor}")
        return Processes(executor)
    if executor == "serial":
        return Serial()
    if isinstance(executor, str) or hasattr(executor, "submit"):
        from reluflow.sweeps.cluster import Cluster

        return Cluster(executor)
    raise ReluflowError(
        "executor is None, a number of processes, 'serial', a Dask Client or the address of a "
        f"scheduler, got {executor!r}"
    )


class Pace:
    """How many points to hand out at once: about :data:`CHUNK_SECONDS` of work, few at the end."""

    def __init__(self, count: int, runner: Any) -> None:
        self.left, self.runner = count, runner
        self.seconds = 0.0  # of one point, from the last rows; unknown at first

    def learn(self, found: Sequence[Done]) -> None:
        """Take the duration of points from rows that arrived."""
        if found:
            mean = sum(item.row["seconds"] for item in found) / len(found)
            self.seconds = mean if not self.seconds else 0.5 * (self.seconds + mean)

    def chunks(self, points: Grid, wanted: Any) -> Iterator[Chunk]:
        """Points to run, made when somebody takes them."""
        rest = iter(wanted.tolist())
        while chunk := [points.point(index) for index in itertools.islice(rest, self._size())]:
            self.left -= len(chunk)
            yield chunk

    def _size(self) -> int:
        if not self.seconds:
            return 1
        fair: int = self.left // (4 * self.runner.workers)
        return max(1, min(int(CHUNK_SECONDS / max(self.seconds, 1e-6)), fair, MOST))
