"""Checkpoints: the whole state of a run in one file, written beside and renamed."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow._version import __version__
from reluflow.errors import ReluflowError
from reluflow.runtime.files import beside

_OF_BUDGET = 0.05  # share of a budget of seconds between two writes


def fingerprint(arrays: Mapping[str, NDArray[Any]], settings: Mapping[str, Any]) -> str:
    """Hash of everything that determines a run; a checkpoint is resumed only if it agrees."""
    digest = hashlib.sha256(json.dumps(dict(settings), sort_keys=True, default=str).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name}{array.shape}{array.dtype}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _hash(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Of what a checkpoint holds; another version may hold other arrays under the same key."""
    forms = {name: (array.shape, array.dtype.str) for name, array in sorted(arrays.items())}
    return fingerprint(arrays, {"version": __version__, "forms": forms})


class KeptFile(os.PathLike[str]):
    """Path of a checkpoint that stays when its run ends, with the state at the end.

    Who stores the run removes it afterwards: a kill or a full disk in between loses nothing, and
    a run that was ended by its budget of seconds is not given another one. Nobody but the program
    knows the file: one that is damaged, or of another run, is made anew without a word.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    def __fspath__(self) -> str:
        return self.path


class Checkpoint:
    """State of a run, saved every ``seconds`` and removed when the run ends.

    Parameters
    ----------
    path : path or None
        File to use; None makes every call do nothing, a `KeptFile` is not removed.
    key : str
        :func:`fingerprint` of the run.
    seconds : float
        Least time between two writes.
    """

    def __init__(self, path: str | os.PathLike[str] | None, key: str, seconds: float) -> None:
        self.path = None if path is None else Path(path)
        self.key, self.seconds = key, seconds
        self.kept = isinstance(path, KeptFile)
        self._last = time.monotonic()
        if self.path is not None and not self.path.parent.is_dir():
            raise ReluflowError(
                f"checkpoint folder {self.path.parent} does not exist: create it first"
            )

    def due(self) -> bool:
        """Whether it is time to write."""
        return self.path is not None and time.monotonic() - self._last >= self.seconds

    def write(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Write the state atomically: a kill leaves the old file or the new one."""
        if self.path is None:
            return
        arrays = {"key": np.array(self.key), **state}
        with beside(self.path) as part, open(part, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays, hash=np.array(_hash(arrays)))
            file.flush()
            os.fsync(file.fileno())
        self._last = time.monotonic()

    def read(self) -> dict[str, NDArray[Any]] | None:
        """The saved state, or None when there is no file, or none of use among kept ones."""
        if self.path is None or not self.path.exists():
            return None
        with suppress(ReluflowError) if self.kept else nullcontext():
            return self._read(self.path)
        return None

    def _read(self, path: Path) -> dict[str, NDArray[Any]]:
        try:
            with np.load(path, allow_pickle=False) as stored:
                state = {name: stored[name] for name in stored.files}
            whole = str(state.pop("hash")) == _hash(state)
        except Exception:  # whatever a damaged archive makes the reader raise
            whole = False
        if not whole:
            raise ReluflowError(
                f"{path} is not a checkpoint this version can read: delete it to start anew"
            ) from None
        if str(state.pop("key", "")) != self.key:
            raise ReluflowError(
                f"checkpoint {path} belongs to a run with other data, weights or settings: "
                "delete it or give another path"
            )
        return state

    def within_budget(self, seconds: float) -> None:
        """Write often enough that a kill forgets little of a budget of so many seconds."""
        self.seconds = min(self.seconds, _OF_BUDGET * seconds)

    def end(self, state: Callable[[], Mapping[str, NDArray[Any]]]) -> None:
        """The run has ended: delete the file, or write the last state into one that is kept."""
        if self.kept:
            with suppress(ReluflowError):  # no place for it: the run itself may find one
                self.write(state())
        elif self.path is not None:
            self.path.unlink(missing_ok=True)
