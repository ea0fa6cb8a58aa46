"""What a worker does: run points and turn whatever comes out, errors included, into rows."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from reluflow.errors import ReluflowError
from reluflow.sweeps.grid import RESERVED, Point, seeds_of
from reluflow.sweeps.runs import Outcome
from reluflow.sweeps.tasks import resolve

Row = dict[str, Any]


class Job(NamedTuple):
    """What all points of a sweep have in common."""

    task: str
    root: int
    observe: tuple[str, ...]
    keep: bool


class Done(NamedTuple):
    """A finished point: its row and, on request, its run as the bytes of a .nc file."""

    row: Row
    run: bytes | None = None


def run_points(job: Job, points: Sequence[Point]) -> list[Done]:
    """Run points one after the other."""
    return [run_point(job, point) for point in points]


def run_point(job: Job, point: Point) -> Done:
    """Run one point; an error becomes a row."""
    began = time.perf_counter()
    try:
        seeds = seeds_of(job.root, point.draw)
        outcome = resolve(job.task)(point.settings, seeds, job.observe)
        results = _plain_results(outcome, point.settings)
        kept = _as_bytes(outcome) if job.keep else None
    except Exception as error:
        return Done(failed_row(point, sentence_of(error), time.perf_counter() - began))
    head = _head(point, "ok", outcome.message)
    return Done({**head, **results, "seconds": time.perf_counter() - began}, kept)


def failed_row(point: Point, sentence: str, seconds: float = 0.0) -> Row:
    """The row of a point that gave no result."""
    return {**_head(point, "failed", sentence), "seconds": seconds}


def sentence_of(error: BaseException) -> str:
    """One line for an error; those of this library are sentences already."""
    text = " ".join(str(error).split())
    return text if isinstance(error, ReluflowError) else f"{type(error).__name__}: {text}"


def _head(point: Point, status: str, message: str) -> Row:
    settings = {
        k: v if v is None or isinstance(v, str | int | float) else str(v)
        for k, v in point.settings.items()
    }
    return {
        "index": point.index,
        "point": point.id,
        "seed": point.seed,
        "draw": point.draw,
        **settings,
        "status": status,
        "message": message,
    }


def _plain_results(outcome: Outcome, settings: Mapping[str, Any]) -> Row:
    plain: Row = {}
    for name, value in outcome.values.items():
        if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
            value = value.item()
        if name in RESERVED or name in settings:
            raise ReluflowError(f"the task returned {name!r}, which is the name of another column")
        if not (value is None or isinstance(value, bool | int | float | str)):
            raise ReluflowError(
                f"the task returned {type(value).__name__} for {name!r}: a table holds numbers, "
                "text and true/false"
            )
        plain[str(name)] = value
    return plain


def _as_bytes(outcome: Outcome) -> bytes | None:
    if outcome.run is None:
        return None
    from reluflow.trajectory.store import to_bytes

    return to_bytes(outcome.run)


_capped: list[Any] = []


def cap_threads() -> None:
    """One thread for BLAS, OpenMP and Numba in this process, for good."""
    if _capped:
        return
    # for libraries not yet loaded
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    if "numba" in sys.modules:
        import numba

        numba.set_num_threads(1)
    else:
        os.environ["NUMBA_NUM_THREADS"] = "1"
    from threadpoolctl import threadpool_limits

    _capped.append(threadpool_limits(1))  # for those that are


def run_capped(job: Job, points: Sequence[Point]) -> list[Done]:
    """As :func:`run_points`, in a process nobody initialised (a worker of a cluster)."""
    cap_threads()
    return run_points(job, points)
