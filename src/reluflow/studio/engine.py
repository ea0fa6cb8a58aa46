"""A handle on the process that computes for a view: give it a job, cancel it, replace it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any


def _run(pipe: Connection) -> None:
    """Entry of the process; imports the library there, not in the server."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # several views share the cores
    from reluflow.studio.worker import main

    with contextlib.suppress(KeyboardInterrupt):
        main(pipe)


class Engine:
    """One worker process.

    Parameters
    ----------
    receive : callable(bytes), optional
        Called in a thread with each block that the worker sends; `listen` sets it later, and
        blocks that came before are kept for it.
    """

    def __init__(self, receive: Callable[[bytes], None] | None = None) -> None:
        context = multiprocessing.get_context("spawn")  # no locks of other threads are inherited
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_run, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        self._lock = threading.Lock()
        self._kept: list[bytes] = []
        self._receive = receive
        self.ready = False  # whether its kernels are compiled
        threading.Thread(target=self._read, daemon=True).start()

    def listen(self, receive: Callable[[bytes], None] | None) -> None:
        """Hand blocks to ``receive`` from now on, those that are waiting first."""
        with self._lock:
            self._receive = receive
            if receive is not None:
                for block in self._kept:
                    receive(block)
                self._kept.clear()

    def _read(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                block = self._pipe.recv_bytes()
                with self._lock:
                    if self._receive is None:
                        self._kept.append(block)
                    else:
                        self._receive(block)

    @property
    def alive(self) -> bool:
        """Whether the process is there."""
        return self._process.is_alive()

    def submit(self, job: dict[str, Any], blob: bytes | None = None) -> bool:
        """Hand a job over; False if the process is gone."""
        try:
            self._pipe.send((job, blob))
        except (OSError, ValueError):
            return False
        return True

    def cancel(self) -> None:
        """Ask for the end of the job under way."""
        if os.name == "posix" and self._process.pid is not None and self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGINT)

    def close(self) -> None:
        """End the process."""
        self._receive = lambda block: None
        self._process.kill()
        self._process.join(5.0)
        with contextlib.suppress(OSError):
            self._pipe.close()
