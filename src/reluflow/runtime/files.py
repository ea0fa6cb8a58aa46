"""Files that are there whole or not at all, and folders that one process at a time works in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_LOCK = "lock"  # file in such a folder; where the system has no locks, all may work in it


@contextmanager
def beside(target: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of ``target`` at the end and is gone on failure."""
    part = target.with_name(target.name + ".part")
    try:
        yield part
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def write_text(target: Path, text: str) -> Path:
    """Write a text file beside and rename."""
    with beside(target) as part:
        part.write_text(text, encoding="utf-8")
    return target


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait for the process that is in ``folder``, then keep others out of it."""
    if fcntl is None:
        yield
        return
    with open(folder / _LOCK, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def busy(folder: Path) -> bool:
    """Whether another process is in ``folder`` now."""
    if fcntl is None or not (folder / _LOCK).is_file():
        return False
    with open(folder / _LOCK, "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
