"""A view: takes the messages of one front end, has one job done at a time, the newest first.

Whatever host the front end lives in (a page, a notebook), it sends plain dictionaries

    {"type": "predict" | "simulate" | "explain" | "export", "id": int, "side": "A" | "B",
     "settings": {...}, "kind": ...}
    {"type": "cancel"}

and gets blocks of bytes back (`reluflow.playback.messages`), each with the id of its job. A job
that waits is replaced by a newer one of its kind and side. A prediction that is asked for while
the one before it is still under way waits for it, unless that takes long: then it is cancelled,
as a run or an explanation of older settings always is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from reluflow.playback.messages import from_block, to_block
from reluflow.studio.engine import Engine

JOBS = ("predict", "simulate", "explain", "export")
_PATIENCE = 0.2  # seconds after which a newer prediction cancels the one under way
_GRACE = 3.0  # seconds a cancelled job has before its process is replaced
_WAITING = 16  # jobs


class Session:
    """One view and its worker.

    Parameters
    ----------
    emit : callable(bytes)
        Called, from any thread, with each block for the front end.
    engine : Engine, optional
        A worker that is already there.
    """

    def __init__(self, emit: Callable[[bytes], None], engine: Engine | None = None) -> None:
        self._emit = emit
        self._lock = threading.RLock()
        self._waiting: dict[tuple[str, str], tuple[dict[str, Any], bytes | None]] = {}
        self._running: dict[str, Any] | None = None
        self._since = 0.0
        self._blobs: dict[str, bytes] = {}
        self._cancelled: dict[str, Any] | None = None
        self._closed = False
        self._engine = engine  # otherwise made for the first job
        if engine is not None:
            engine.listen(self._from_worker)
            if engine.ready:
                emit(to_block({"type": "engine", "ready": True, "share": 1.0, "note": "ready"}))

    # ------------------------------------------------------------------ from the front end
    def receive(self, message: Any, blob: bytes | None = None) -> None:
        """Take a message; what cannot be understood is refused in a sentence."""
        if not isinstance(message, dict):
            self._refuse({}, "a message is a dictionary")
            return
        kind = message.get("type")
        if kind == "cancel":
            self.cancel()
        elif kind in JOBS:
            self._ask(message, blob)
        else:
            self._refuse(message, "unknown type of message")

    def _ask(self, message: dict[str, Any], blob: bytes | None) -> None:
        number, side = message.get("id"), message.get("side")
        if isinstance(number, bool) or not isinstance(number, int):
            self._refuse({}, "a job needs a whole number as its id")
            return
        if side not in ("A", "B") or not isinstance(message.get("settings"), dict):
            self._refuse(message, "a job needs a side, A or B, and settings")
            return
        names = ("type", "id", "side", "settings", "kind")
        job = {name: message[name] for name in names if name in message}
        with self._lock:
            if blob is not None:
                self._blobs[side] = blob
            self._waiting.pop((job["type"], side), None)
            if len(self._waiting) >= _WAITING:
                self._refuse(message, "too many jobs are waiting")
                return
            self._waiting[job["type"], side] = (job, self._blobs.get(side))
            running = self._running
            if running is not None and job["type"] == "predict" and running["side"] == side:
                late = time.monotonic() - self._since > _PATIENCE
                if late or running["type"] != "predict":
                    self._end_running()
        self._next()

    def cancel(self) -> None:
        """End the job under way and forget those that wait."""
        with self._lock:
            self._waiting.clear()
            self._end_running()

    def release(self) -> Engine | None:
        """End the view; its worker, if that is idle and can serve another one."""
        with self._lock:
            engine = self._engine
            idle = self._running is None and engine is not None and engine.ready and engine.alive
            if idle and engine is not None:
                self._closed, self._engine = True, None
                engine.listen(None)
                return engine
        self.close()
        return None

    def close(self) -> None:
        """End the view."""
        with self._lock:
            self._closed = True
            self._waiting.clear()
        if self._engine is not None:
            self._engine.close()

    # ------------------------------------------------------------------ to and from the worker
    def _end_running(self) -> None:
        running = self._running
        if running is None or self._cancelled is running:
            return
        self._cancelled = running
        if self._engine is not None:
            self._engine.cancel()
        timer = threading.Timer(_GRACE, self._replace_worker, (running,))
        timer.daemon = True
        timer.start()

    def _replace_worker(self, job: dict[str, Any]) -> None:
        """A job that does not end is ended with its process."""
        with self._lock:
            if self._closed or self._running is not job:
                return
            self._renew()
            self._running = None
            done = {"type": "done", "id": job["id"], "job": job["type"], "side": job["side"]}
            self._emit(to_block({**done, "ok": False, "cancelled": True}))
        self._next()

    def _renew(self) -> Engine:
        if self._engine is not None:
            self._engine.close()
        self._engine = Engine(self._from_worker)
        return self._engine

    def _next(self) -> None:
        with self._lock:
            if self._closed or self._running is not None or not self._waiting:
                return
            order = sorted(self._waiting, key=lambda key: JOBS.index(key[0]))
            job, blob = self._waiting.pop(order[0])
            self._running, self._since = job, time.monotonic()
            if self._engine is None or not self._engine.submit(job, blob):
                self._renew().submit(job, blob)

    def _from_worker(self, block: bytes) -> None:
        message = from_block(block)[0] if len(block) < 4096 else {}
        if message.get("type") == "engine" and message["ready"] and self._engine is not None:
            self._engine.ready = True
        if message.get("type") == "done":
            with self._lock:
                self._running = self._cancelled = None
        self._emit(block)
        if message.get("type") == "done":
            self._next()

    def _refuse(self, message: dict[str, Any], sentence: str) -> None:
        number = message.get("id")
        about = {"type": "refused", "field": "message", "sentence": sentence}
        self._emit(to_block({**about, "id": number if isinstance(number, int) else None}))
