"""Neurons that slide on a kink, as steps see them that do not locate it.

The exact neuron stays on the kink; steps put it to one side and, since that side pushes it back,
to the other, again and again. The velocity jumps each time, so that steps are as short as the
tolerance allows an error proportional to them to be, for as long as the neuron slides: at rtol 1e-8
a million of them lead nowhere. Kinks that are crossed are another matter, each is met once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array

PERIOD, LOOKS = 240, 24  # steps between two watches, and steps watched in each
OFTEN = LOOKS // 6  # times that one kink is touched in a watch from which on a neuron slides
OTHERS = LOOKS // 3  # samples whose kinks are crossed meanwhile, at most: locating them pays


class Chatter:
    """Watches which kinks are touched, for a few steps now and then.

    Step control may keep a sliding neuron on one side: it comes near, a stage of the next step is
    across, and the end of that step is off again. So a kink is touched where <w_j, x_k> changes
    its sign in a step, or would by its velocity at the start.

    Parameters
    ----------
    X : array, shape (n, d)
    """

    def __init__(self, X: Array) -> None:
        self.X = X
        self.touches: NDArray[np.int8] | None = None  # (n, m), in this watch
        self.count = 0  # steps since the last watch ended

    def due(self) -> bool:
        """Whether the step that ends now is to be looked at."""
        self.count += 1
        return self.count > PERIOD

    def look(self, before: Array, ahead: Array, after: Array) -> bool:
        """Take note of a step: whether neurons slide and little else happens.

        Parameters
        ----------
        before, ahead, after : arrays, shape (m, d)
            Weights at its start, where their velocity would lead, and at its end.
        """
        signs = self.X @ before.T > 0.0
        touched = (signs != (self.X @ ahead.T > 0.0)) | (signs != (self.X @ after.T > 0.0))
        if self.touches is None:
            self.touches = np.zeros(signs.shape, np.int8)
        self.touches += touched
        if self.count < PERIOD + LOOKS:
            return False
        slides = self.touches >= OFTEN
        crossed = ((self.touches > 0) & ~slides).any(axis=1)
        self.touches, self.count = None, 0
        return bool(slides.any() and np.count_nonzero(crossed) <= OTHERS)

    def pack(self) -> dict[str, NDArray[Any]]:
        """What has been seen so far."""
        packed: dict[str, NDArray[Any]] = {"watched": np.array(self.count)}
        return packed if self.touches is None else {**packed, "touches": self.touches}

    def unpack(self, packed: Mapping[str, NDArray[Any]]) -> None:
        """Restore what :meth:`pack` gave."""
        self.count = int(packed["watched"])
        self.touches = packed["touches"].copy() if "touches" in packed else None
