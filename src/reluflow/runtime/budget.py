"""Seconds of processor time spent, and what was decided by them, across kills."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.runtime.checkpoint import Checkpoint


class Clock:
    """The clock of a computation that is the same each time but for its looks at the clock.

    It counts processor time: a busy machine does not shorten an answer.

    After a kill the computation is repeated as it went: each look that an earlier call has paid
    for is answered as it was then, at no cost, and seconds count on from there.

    Parameters
    ----------
    saved : Checkpoint
        Where the number of looks, their answers and the seconds are kept; it may keep nothing.
    *budgets : float or None
        Seconds that the looks are about: a kill forgets little of them.
    """

    def __init__(self, saved: Checkpoint, *budgets: float | None) -> None:
        self.saved = saved
        for seconds in budgets:
            if seconds is not None:
                saved.within_budget(seconds)
        state = saved.read() or {}
        self._paid = int(state.get("looks", 0))
        self._yes = [int(look) for look in state.get("yes", ())]
        self._before = float(state.get("seconds", 0.0))
        self._looks, self._began = 0, time.process_time()

    def decide(self, late: Callable[[float], bool]) -> bool:
        """Whether it is late, ``late(seconds spent)``; as it was decided before a kill."""
        look = self._looks
        self._looks += 1
        if look < self._paid:
            self._began = time.process_time()  # what came before this look was paid for
            return look in self._yes
        spent = self._before + time.process_time() - self._began
        found = late(spent)
        if found:
            self._yes.append(look)
        if self.saved.due():
            self.saved.write(self._state(spent))
        return found

    def _state(self, spent: float) -> Mapping[str, NDArray[Any]]:
        yes = np.array(self._yes, dtype=np.int64)
        return {"looks": np.array(self._looks), "yes": yes, "seconds": np.array(spent)}

    def end(self, interrupted: bool = False) -> None:
        """The computation has ended, or it goes on at the next call."""
        if self._looks < self._paid:  # stopped while it repeated what is known
            return
        spent = self._before + time.process_time() - self._began
        if interrupted:
            self.saved.write(self._state(spent))
        else:
            self.saved.end(lambda: self._state(spent))
