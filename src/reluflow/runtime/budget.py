"""Budgets: seconds spent, and what was decided by them, across kills; or work that is counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.runtime.checkpoint import Checkpoint


class Clock:
    """The clock of a computation that is the same each time but for its looks at the clock.

    After a kill the computation is repeated as it went: each look that an earlier call has paid
    for is answered as it was then, at no cost, and seconds count on from there. They are seconds
    of processor time of this thread, so that a busy machine decides as a quiet one does.

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
        self._looks, self._began = 0, time.thread_time()

    def decide(self, late: Callable[[float], bool], work: float = 0.0) -> bool:
        """Whether it is late, ``late(seconds spent)``; as it was decided before a kill.

        ``work`` is for who counts it, see `Work`.
        """
        look = self._looks
        self._looks += 1
        if look < self._paid:
            self._began = time.thread_time()  # what came before this look was paid for
            return look in self._yes
        spent = self._before + time.thread_time() - self._began
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
        spent = self._before + time.thread_time() - self._began
        if interrupted:
            self.saved.write(self._state(spent))
        else:
            self.saved.end(lambda: self._state(spent))


class Work:
    """A budget in work instead of time: it ends at the same place on every machine.

    Nothing is to be remembered across kills, since the same work is counted again.
    """

    def __init__(self) -> None:
        self.spent = 0.0

    def decide(self, late: Callable[[float], bool], work: float = 0.0) -> bool:
        """Whether it is late, ``late(seconds spent)``.

        ``work`` has been done since the last look: seconds that it takes an ordinary core, by a
        formula in the sizes of the data, not by a clock.
        """
        self.spent += work
        return late(self.spent)

    def end(self, interrupted: bool = False) -> None:
        """Nothing is kept."""
