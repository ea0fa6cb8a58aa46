"""The stages of an explanation: what is being done, and why something was left out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from reluflow.errors import ReluflowError
from reluflow.gradientflow.warm import NOTE, FlowKernels
from reluflow.runtime import Progress

T = TypeVar("T")
STAGES = (
    "directions",
    "alignment",
    "limit process",
    "infinite width",
    "optimum",
    "simulation",
    "end",
    "larger scale",
    "claims",
)


class Stages:
    """Runs stages, remembers why one is missing, and shows how far things are."""

    def __init__(self, bar: Progress, kernels: FlowKernels) -> None:
        self.bar, self.kernels = bar, kernels
        self.skipped: dict[str, str] = {}
        self._began = time.monotonic()
        self._done = 0

    def show(self, note: str) -> None:
        """What is being done now."""
        compiling = f", {NOTE}" if self.kernels.busy else ""
        self.bar.update(self._done, time.monotonic() - self._began, note + compiling)

    def run(self, name: str, work: Callable[[], T], why_not: str = "") -> T | None:
        """The result of a stage, None when it is left out or cannot be done."""
        self.show(name)
        self._done += 1
        if why_not:
            self.skipped[name] = why_not
            return None
        try:
            return work()
        except ReluflowError as error:
            self.skipped[name] = str(error)
            return None
