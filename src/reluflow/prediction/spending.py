"""Budgets of the limit process: seconds, which a kill does not renew, or work."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from reluflow.arrays import Array
from reluflow.problem import Problem
from reluflow.runtime.budget import Clock, Work
from reluflow.runtime.checkpoint import Checkpoint, fingerprint

_WRITE_SECONDS = 5.0  # between two writes where no budget asks for more
# work of a fast phase, as seconds of an ordinary core; measured on tables of 200 to 1,800 samples
# with one output and several, to within a factor of about three
_STEP, _STEP_ENTRY = 1e-3, 5e-8  # one step: of itself, and for each neuron and entry of X
LEG, ARRIVAL, JUMP = 50, 5, 50  # in steps: a stiff stretch, a look for the end, a jump's riders

Tick = Callable[[float], bool]  # of the work since the last call: whether to stop


def clock_of(
    problem: Problem,
    start: Mapping[str, Array],
    settings: Mapping[str, Any],
    checkpoint: str | os.PathLike[str] | None,
    counted: bool,
) -> Clock | Work:
    """The clock of a process from ``start``, whose looks ``checkpoint`` remembers.

    Where work is ``counted`` there is none, and nothing to remember.

    ``settings`` are those that determine the process, with the budgets ``max_seconds`` and
    ``seconds`` among them: the looks of another process say nothing about this one.
    """
    if counted:
        return Work()
    key = ""
    if checkpoint is not None:
        what = {**settings, "kind": "limit", "problem": problem.spec}
        key = fingerprint({"X": problem.X, "y": problem.y, **start}, what)
    saved = Checkpoint(checkpoint, key, _WRITE_SECONDS)
    return Clock(saved, settings["max_seconds"], settings["seconds"])


def step_work(problem: Problem, neurons: int) -> float:
    """Work of one step of so many neurons, see `Work`."""
    return _STEP + _STEP_ENTRY * neurons * problem.X.size
