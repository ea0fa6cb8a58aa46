"""Points on a Dask cluster: the same work, handed out by its scheduler."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import time
from collections.abc import Iterable
from concurrent.futures import CancelledError
from typing import Any

from reluflow.errors import ReluflowError
from reluflow.sweeps.executors import TICK, Chunk, Futures
from reluflow.sweeps.tasks import resolve
from reluflow.sweeps.work import Done, Job, run_capped

LOST_AFTER = 15.0  # seconds without a connection after which a scheduler counts as lost
CONNECT = 10.0  # seconds to reach a scheduler
STAFF_EVERY = 5.0  # seconds between two looks at who works there
FETCH = 60.0  # seconds to get the rows of a chunk that has ended
NO_WORKERS = 60.0  # seconds without a single worker after which a sweep ends
_LOST = (
    "the connection to the Dask scheduler was lost: the rows so far are kept, run the same sweep "
    "again to go on"
)
_ALONE = (
    "the Dask cluster has had no worker for {:.0f} seconds: the rows so far are kept; start some "
    "(`dask worker`) and run the same sweep again to go on"
)
_NEEDED = "a scheduler needs dask.distributed: pip install 'reluflow[sweep]'"


class Cluster(Futures):
    """A Dask cluster, by the address of its scheduler or by a client.

    Dask runs the points of a worker that died on another one, four times by default. It does not
    start every worker again: one that dies before its nanny knows it to be there, as it may when a
    deadly point waits for it, leaves a nanny that has given up. A cluster without workers would
    keep a sweep waiting for ever, so that is an error.
    """

    def __init__(self, client_or_address: Any) -> None:
        try:
            import distributed
        except ImportError:
            raise ReluflowError(_NEEDED) from None
        self._distributed = distributed
        self._owned = isinstance(client_or_address, str)
        if not self._owned:
            self.client = client_or_address
        else:
            try:
                self.client = distributed.Client(  # type: ignore[no-untyped-call]
                    client_or_address, timeout=CONNECT, set_as_default=False
                )
            except (OSError, ValueError, TypeError) as error:
                reason = " ".join(str(error).split()) or type(error).__name__
                raise ReluflowError(
                    f"cannot reach a Dask scheduler at {client_or_address!r}: {reason}; start one "
                    "with `dask scheduler` and give its address, tcp://host:8786"
                ) from None
        self._seen = self._staffed = time.monotonic()
        self._count, self._asked = 0, 0.0
        self._lost = False
        self._killers: set[Any] = set()
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()

    @property
    def workers(self) -> int:  # type: ignore[override]
        """Threads of the cluster now; it may grow and shrink."""
        self._look()
        return max(1, self._count)

    def _look(self) -> None:
        """Count the threads of the cluster, now and then."""
        if self._asked and time.monotonic() - self._asked <= STAFF_EVERY:
            return
        # a scheduler that goes away while it is asked is noticed by `wait`
        with contextlib.suppress(OSError, self._distributed.TimeoutError):
            self._count = sum(self.client.nthreads().values()) if self._alive() else 1
        self._asked = time.monotonic()
        if self._count:
            self._staffed = self._asked

    def check(self, job: Job) -> None:
        """Refuse a task that workers cannot import."""
        if job.task.startswith("__main__:"):
            raise ReluflowError(
                f"the task {job.task!r} lives in a script: put it into a module that the workers "
                "of the cluster can import"
            )
        future = self.client.submit(_findable, job.task, pure=False, retries=1)
        try:
            missing = future.result(timeout=60.0)
        except (TimeoutError, self._distributed.TimeoutError):
            raise ReluflowError(
                "no worker of the cluster answers within 60 seconds: start some with `dask worker`"
            ) from None
        except Exception as error:
            reason = " ".join(str(error).split())
            raise ReluflowError(f"workers of the cluster cannot run reluflow: {reason}") from None
        if missing:
            raise ReluflowError(f"on the workers of the cluster, {missing}")

    def _alive(self) -> bool:
        return str(self.client.status) == "running"

    def submit(self, job: Job, chunk: Chunk) -> Any:
        """Hand out a chunk."""
        try:
            future = self.client.submit(run_capped, job, chunk, pure=False)
        except Exception:  # Dask's own, of a client that has given its scheduler up
            if self._alive():
                raise
            self._lost = True
            raise ReluflowError(_LOST) from None
        future.add_done_callback(self._ended.put)
        return future

    def wait(self, pending: Iterable[Any]) -> Iterable[Any]:
        """Futures that have ended; an error once the scheduler has gone, or all workers have."""
        ended = set()
        with contextlib.suppress(queue.Empty):
            ended.add(self._ended.get(timeout=TICK))
            while True:
                ended.add(self._ended.get_nowait())
        if self._alive():
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > LOST_AFTER:
            self._lost = True
            raise ReluflowError(_LOST)
        self._look()
        if self._asked - self._staffed > NO_WORKERS:
            raise ReluflowError(_ALONE.format(NO_WORKERS))
        futures = set(pending)
        # with its worker, a result may be gone before it was fetched: the chunk runs again
        dropped = {future for future in futures if future.status in ("cancelled", "lost")}
        return (ended & futures) | (dropped if self._alive() else set())

    def result(self, future: Any) -> list[Done] | None:
        """Rows, or None if workers kept dying on it, or with its rows."""
        if future.status in ("cancelled", "lost"):
            return None
        try:
            rows: list[Done] = future.result(timeout=FETCH)
            return rows
        except self._distributed.KilledWorker:
            self._killers.add(future)
            return None
        except (CancelledError, asyncio.CancelledError):
            return None
        except (TimeoutError, self._distributed.TimeoutError):
            return None  # gone with its worker, and nobody computes it again
        except Exception:
            if self._alive():
                raise
            self._lost = True
            raise ReluflowError(_LOST) from None

    def is_deadly(self, future: Any) -> bool:
        """Whether Dask has given the chunk up; when it was alone, it is to blame."""
        return future in self._killers

    def close(self) -> None:
        """Leave the cluster as it was found."""
        if self._owned:
            self.client.close(timeout=2.0 if self._lost else 10.0)


def _findable(task: str) -> str:
    """Empty if a worker can import the task, else why not."""
    try:
        resolve(task)
    except ReluflowError as error:
        return str(error)
    return ""
