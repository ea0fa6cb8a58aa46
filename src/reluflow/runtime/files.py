"""Files that are there whole or not at all, and places that one process at a time works in."""

from __future__ import annotations

import os
import platform
import re
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from reluflow.errors import ReluflowError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK = "lock"
"""Name of the lock of a folder; where the system has no locks, all may work in it."""
_ABANDONED = 86_400.0  # seconds after which a part that another machine began is given up


@contextmanager
def beside(target: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of ``target`` at the end and is gone on failure.

    No other process has the same path. What a killed process left of an earlier attempt at
    ``target`` is removed. A file that cannot be written is one sentence, a `ReluflowError`.
    """
    part = target.with_name(f"{target.name}.{_this_process()}-{uuid.uuid4().hex[:8]}.part")
    try:
        _remove_abandoned(target)
        yield part
        part.replace(target)
    except OSError as error:
        raise cannot_write(target, error) from None
    finally:
        with suppress(OSError):  # the folder went away, or became read-only
            part.unlink(missing_ok=True)


def cannot_write(target: str | os.PathLike[str], error: OSError) -> ReluflowError:
    """What to say of a file, or a folder, that cannot be written."""
    return ReluflowError(f"cannot write {target}: {error.strerror or error}")


def write_text(target: Path, text: str) -> Path:
    """Write a text file beside and rename."""
    with beside(target) as part:
        part.write_text(text, encoding="utf-8")
    return target


def write_bytes(target: Path, data: bytes | memoryview) -> Path:
    """Write a file beside, wait until the disk has it, and rename."""
    with beside(target) as part, open(part, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return target


def _this_process() -> str:
    """Machine and process, fit for a file's name."""
    return f"{re.sub(r'[^A-Za-z0-9]', '_', platform.node()) or 'here'}-{os.getpid()}"


def _remove_abandoned(target: Path) -> None:
    """Remove parts of ``target`` whose process has ended.

    Of processes on other machines nothing is known: their parts count as abandoned after a day.
    """
    here = _this_process().rpartition("-")[0]
    pattern = re.compile(re.escape(target.name) + r"\.(\w+)-(\d+)-[0-9a-f]{8}\.part")
    for path in target.parent.glob("*.part"):
        made = pattern.fullmatch(path.name)
        if made is None:
            continue
        try:
            if made[1] == here:
                ended = not is_running(int(made[2]))
            else:
                ended = time.time() - path.stat().st_mtime > _ABANDONED
            if ended:
                path.unlink(missing_ok=True)
        except OSError:  # another process was quicker, or it is not ours to remove
            continue


def is_running(pid: int) -> bool:
    """Whether a process of this machine exists."""
    if pid == os.getpid():
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is someone else's
        return True
    return True


@contextmanager
def hold(lock: Path, what: str) -> Iterator[None]:
    """Keep other processes away from ``what``, or say in one sentence who keeps us away.

    Parameters
    ----------
    lock : Path
        File that says who is at work. The lock goes with its process, however that ends; the
        file is removed at the end, and one that a killed process left is taken over.
    what : str
        What is kept, for the sentence: a file or a folder.
    """
    file = _lock_or_refuse(lock, what)
    try:
        yield
    finally:
        if file is not None:
            lock.unlink(missing_ok=True)  # while it is held: nobody can hold the new one yet
            file.close()


def _lock_or_refuse(lock: Path, what: str) -> IO[str] | None:
    """The open lock file; None where the system has no locks."""
    if fcntl is None:
        return None
    for _ in range(100):
        try:
            file = open(lock, "a+", encoding="utf-8", errors="replace")  # noqa: SIM115
        except FileNotFoundError:  # with its folder, by a process that ends just now
            _make_parent(lock)
            continue
        except OSError as error:
            raise cannot_write(lock, error) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            who = " ".join(file.read(500).split()) or "its name is not known"
            file.close()
            raise ReluflowError(
                f"another process is at work on {what} ({who}): wait for it, or give another place"
            ) from None
        except OSError:  # a file system without locks
            file.close()
            return None
        if _is_at(file, lock):
            _sign(file)
            return file
        file.close()  # its holder removed it in the meantime
    raise ReluflowError(f"another process is at work on {what}: wait for it")


def _make_parent(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(path.parent, error) from None


def _is_at(file: IO[str], path: Path) -> bool:
    """Whether an open file is still the one at ``path``."""
    try:
        there = os.stat(path)
    except OSError:
        return False
    return os.path.samestat(os.fstat(file.fileno()), there)


def _sign(file: IO[str]) -> None:
    """Write into a lock who holds it."""
    command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:200] if sys.argv else "Python"
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    with suppress(OSError):  # a full disk: the lock holds without a name
        file.truncate(0)
        file.write(f"process {os.getpid()} on {platform.node()} since {since}: {command}\n")
        file.flush()


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait for the process that is in ``folder``, then keep others out of it."""
    if fcntl is None:
        yield
        return
    with open(folder / LOCK, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def busy(folder: Path) -> bool:
    """Whether another process is in ``folder`` now."""
    if fcntl is None or not (folder / LOCK).is_file():
        return False
    with open(folder / LOCK, "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
