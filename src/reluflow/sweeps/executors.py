"""Who runs the points: this process, or worker processes on this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from reluflow.errors import ReluflowError
from reluflow.runtime.threads import one_thread
from reluflow.sweeps.grid import Point
from reluflow.sweeps.work import Done, Job, cap_threads, failed_row, run_points

Chunk = Sequence[Point]
TICK = 0.25  # seconds between looks at Ctrl-C
PATIENCE = 60.0  # seconds the first point may have for itself, to compile kernels only once
AHEAD = 2  # chunks for each worker that are handed out before they can start
HOPELESS = 3  # deaths before the first result after which a sweep gives up
_DIED = (
    "the worker process died while it ran this point (out of memory, or killed): run it alone, or "
    "give it a smaller size"
)


class Serial:
    """One point after the other in this process."""

    workers = 1

    def run(self, job: Job, chunks: Iterable[Chunk]) -> Iterator[list[Done]]:
        """Results of the chunks, in order.

        They run in a thread, where runs leave Ctrl-C alone: the sweep ends after the point, and
        no run that was cut short becomes a row.
        """
        with one_thread(), ThreadPoolExecutor(1) as pool:
            for chunk in chunks:
                yield pool.submit(run_points, job, chunk).result()

    def close(self) -> None:
        """Nothing is held."""


class Futures:
    """What executors with futures share: few chunks in flight, and points whose worker died.

    A chunk whose worker died is taken apart and its points are run again, one at a time; a point
    that takes its worker down twice when alone, or is known to be deadly then, becomes a failed
    row.
    """

    workers: int

    def submit(self, job: Job, chunk: Chunk) -> Any:
        """Hand out a chunk."""
        raise NotImplementedError

    def wait(self, pending: Iterable[Any]) -> Iterable[Any]:
        """Futures that have ended, after at most :data:`TICK` seconds."""
        raise NotImplementedError

    def result(self, future: Any) -> list[Done] | None:
        """Rows of an ended future; None if its worker died."""
        raise NotImplementedError

    def is_deadly(self, future: Any) -> bool:
        """Whether several workers have died of a chunk without a result already."""
        return False

    def recover(self) -> None:
        """Called after a worker died, when nothing is in flight."""

    def run(self, job: Job, chunks: Iterable[Chunk]) -> Iterator[list[Done]]:
        """Results as they arrive; an empty list now and then while nothing does."""
        waiting, suspects = iter(chunks), deque[Chunk]()
        pending: dict[Any, Chunk] = {}
        alone: Any = None  # a future beside which nothing is in flight
        blamed: set[str] = set()  # points of chunks that lost their worker when alone
        more, worked, deaths, began = True, False, 0, time.monotonic()
        while True:
            if suspects and not pending:
                self.recover()
                chunk = suspects.popleft()
                alone = self.submit(job, chunk)
                pending[alone] = chunk
            elif more and not suspects:
                first = not worked and time.monotonic() - began < PATIENCE
                while len(pending) < (1 if first else AHEAD * self.workers):
                    following = next(waiting, None)
                    if following is None:
                        more = False
                        break
                    future = self.submit(job, following)
                    alone = None if pending else future
                    pending[future] = following
            if not pending:
                return
            found: list[Done] = []
            for future in list(self.wait(pending)):
                chunk = pending.pop(future)
                rows = self.result(future)
                if rows is not None:
                    worked = True
                    found += rows
                elif (
                    len(chunk) == 1
                    and future is alone
                    and (chunk[0].id in blamed or self.is_deadly(future))
                ):
                    deaths += 1
                    found.append(Done(failed_row(chunk[0], _DIED)))
                else:
                    if future is alone:
                        blamed.update(point.id for point in chunk)
                    suspects.extend([point] for point in chunk)
            yield found
            if deaths >= HOPELESS and not worked:
                raise ReluflowError(
                    "worker processes die before they finish any point: the points may be too "
                    "large, or the script lacks `if __name__ == '__main__':` around its call; "
                    "executor='serial' (--workers 0) shows more"
                )
            if deaths and not pending:
                self.recover()


class Processes(Futures):
    """Worker processes on this machine, each with one thread for BLAS and Numba."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or _cores()
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            raise ReluflowError(
                "a sweep was started while a worker process loads this script: put the call under "
                "`if __name__ == '__main__':`"
            )
        self._pool = self._start()

    def _start(self) -> ProcessPoolExecutor:
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(self.workers, context, initializer=_begin)

    def submit(self, job: Job, chunk: Chunk) -> Future[list[Done]]:
        """Hand out a chunk."""
        try:
            return self._pool.submit(run_points, job, chunk)
        except BrokenProcessPool as error:
            broken: Future[list[Done]] = Future()
            broken.set_exception(error)
            return broken

    def wait(self, pending: Iterable[Future[list[Done]]]) -> Iterable[Future[list[Done]]]:
        """Futures that have ended."""
        return wait(pending, TICK, FIRST_COMPLETED).done

    def result(self, future: Future[list[Done]]) -> list[Done] | None:
        """Rows, or None if the pool broke."""
        try:
            return future.result()
        except BrokenProcessPool:
            return None

    def recover(self) -> None:
        """A new pool if the old one broke."""
        if getattr(self._pool, "_broken", False):
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = self._start()

    def close(self) -> None:
        """End the workers, whatever they are doing."""
        workers = list((getattr(self._pool, "_processes", None) or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in workers:
            process.terminate()


def _cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_working = False


def in_worker() -> bool:
    """Whether this is a worker process of a sweep."""
    return _working


def _begin() -> None:
    """First thing a worker does: one thread, deaf to Ctrl-C, gone when its driver is gone."""
    global _working
    _working = True
    if hasattr(os, "setsid"):
        os.setsid()  # Ctrl-C on the terminal is for the driver
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    driver = multiprocessing.parent_process()
    if driver is not None:
        threading.Thread(target=_follow, args=(driver,), daemon=True).start()
    cap_threads()


def _follow(driver: Any) -> None:
    driver.join()
    os._exit(1)
