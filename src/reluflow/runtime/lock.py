"""Folders that one process at a time works in; where the system has no such locks, all may."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

NAME = "lock"


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait for the process that is in ``folder``, then keep others out of it."""
    if fcntl is None:
        yield
        return
    with open(folder / NAME, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def busy(folder: Path) -> bool:
    """Whether another process is in ``folder`` now."""
    if fcntl is None or not (folder / NAME).is_file():
        return False
    with open(folder / NAME, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
