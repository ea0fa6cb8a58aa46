"""Budgets of seconds of the limit process, which a kill does not renew."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from reluflow.arrays import Array
from reluflow.problem import Problem
from reluflow.runtime.budget import Clock
from reluflow.runtime.checkpoint import Checkpoint, fingerprint

_WRITE_SECONDS = 5.0  # between two writes where no budget asks for more


def clock_of(
    problem: Problem,
    start: Mapping[str, Array],
    settings: Mapping[str, Any],
    checkpoint: str | os.PathLike[str] | None,
) -> Clock:
    """The clock of a process from ``start``, whose looks ``checkpoint`` remembers.

    ``settings`` are those that determine the process, with the budgets ``max_seconds`` and
    ``seconds`` among them: the looks of another process say nothing about this one.
    """
    key = ""
    if checkpoint is not None:
        what = {**settings, "kind": "limit", "problem": problem.spec}
        key = fingerprint({"X": problem.X, "y": problem.y, **start}, what)
    saved = Checkpoint(checkpoint, key, _WRITE_SECONDS)
    return Clock(saved, settings["max_seconds"], settings["seconds"])
