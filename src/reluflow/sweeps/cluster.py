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
_LOST = (
    "the connection to the Dask scheduler was lost: the rows so far are kept, run the same sweep "
    "again to go on"
)
_NEEDED = "a scheduler needs dask.distributed: pip install 'reluflow[sweep]'"


class Cluster(Futures):
    """A Dask cluster, by the address of its scheduler or by a client.

    Dask runs the points of a worker that died on another one.
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
        self._seen = time.monotonic()
        self._count, self._asked = 0, 0.0
        self._lost = False
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()

    @property
    def workers(self) -> int:  # type: ignore[override]
        """Threads of the cluster now; it may grow and shrink."""
        now = time.monotonic()
        if not self._count or now - self._asked > 5.0:
            self._count = max(1, sum(self.client.nthreads().values()) if self._alive() else 1)
            self._asked = now
        return self._count

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
        future = self.client.submit(run_capped, job, chunk, pure=False)
        future.add_done_callback(self._ended.put)
        return future

    def wait(self, pending: Iterable[Any]) -> Iterable[Any]:
        """Futures that have ended; an error once the scheduler has gone."""
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
        futures = set(pending)
        # with its worker, a result may be gone before it was fetched: the chunk runs again
        dropped = {future for future in futures if future.status in ("cancelled", "lost")}
        return (ended & futures) | (dropped if self._alive() else set())

    def result(self, future: Any) -> list[Done] | None:
        """Rows, or None if workers kept dying on it, or with its rows."""
        if future.status in ("cancelled", "lost"):
            return None
        try:
            rows: list[Done] = future.result(timeout=60.0)
            return rows
        except (self._distributed.KilledWorker, CancelledError, asyncio.CancelledError):
            return None
        except Exception:
            if self._alive():
                raise
            self._lost = True
            raise ReluflowError(_LOST) from None

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
