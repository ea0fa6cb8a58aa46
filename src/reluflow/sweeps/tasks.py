"""What a sweep repeats: a run, a registered claim, or any function that can be imported."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from reluflow.errors import ReluflowError
from reluflow.sweeps.runs import RUNS, Outcome, check_run, run_task

if TYPE_CHECKING:
    from reluflow.claims.claim import Check
    from reluflow.sweeps.grid import Grid

_SEEDED = ("rng", "seed")


@dataclass(frozen=True)
class RunTask:
    """One of :data:`reluflow.sweeps.runs.RUNS`."""

    name: str

    def check(self, grid: Grid, observe: Sequence[str]) -> None:
        """Refuse fields it does not have."""
        check_run(self.name, grid, observe)

    def __call__(
        self, settings: Mapping[str, Any], seeds: np.random.SeedSequence, observe: Sequence[str]
    ) -> Outcome:
        """One run."""
        return run_task(self.name, settings, seeds, observe)


@dataclass(frozen=True)
class FunctionTask:
    """A function of the settings; it is given ``rng`` (a Generator) or ``seed`` if it has either.

    It returns a mapping of numbers and words, one number, or a Trajectory.
    """

    name: str
    function: Callable[..., Any]

    def check(self, grid: Grid, observe: Sequence[str]) -> None:
        """Refuse fields the function has no parameter for, and parameters without a field."""
        if observe:
            raise ReluflowError("observe is for runs: a function returns what it measured")
        parameters = inspect.signature(self.function).parameters
        kinds = [p.kind for p in parameters.values()]
        for name in grid.fields:
            if name in _SEEDED or (
                name not in parameters and inspect.Parameter.VAR_KEYWORD not in kinds
            ):
                known = [p for p in parameters if p not in _SEEDED]
                raise ReluflowError(f"unknown field {name!r}: {self.name} has {', '.join(known)}")
        for name, p in parameters.items():
            free = p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
            if free and name not in grid.fields and name not in _SEEDED:
                raise ReluflowError(f"the field {name!r} is missing: {self.name} needs it")

    def __call__(
        self, settings: Mapping[str, Any], seeds: np.random.SeedSequence, observe: Sequence[str]
    ) -> Outcome:
        """One call."""
        from reluflow.trajectory import Trajectory

        extra: dict[str, Any] = {}
        parameters = inspect.signature(self.function).parameters
        if "rng" in parameters:
            extra["rng"] = np.random.default_rng(seeds)
        if "seed" in parameters:
            extra["seed"] = int(seeds.generate_state(1)[0])
        found = self.function(**settings, **extra)
        if isinstance(found, Outcome):
            return found
        if isinstance(found, Trajectory):
            loss = found.problem.loss_of(found.final)
            values = {"ending": found.status.code, "loss": loss}
            return Outcome(values, str(found.status), found)
        return Outcome(found if isinstance(found, Mapping) else {"value": found})


@dataclass(frozen=True)
class ClaimTask:
    """The experiment of a registered claim, over seeds and its settings."""

    name: str
    found: Check

    def check(self, grid: Grid, observe: Sequence[str]) -> None:
        """Refuse settings the experiment does not have."""
        if observe:
            raise ReluflowError("observe is for runs: a claim measures what it is about")
        make = self.found.experiment or self.found.example
        if make is None:
            raise ReluflowError(f"{self.name} makes no experiment of its own: it cannot be swept")
        known = [p for p in inspect.signature(make).parameters if p != "seed"]
        for name in grid.fields:
            if name != "size" and name not in known:
                allowed = ", ".join(["size", *known])
                raise ReluflowError(f"unknown field {name!r}: {self.name} has {allowed}")

    def __call__(
        self, settings: Mapping[str, Any], seeds: np.random.SeedSequence, observe: Sequence[str]
    ) -> Outcome:
        """One verdict."""
        from reluflow.claims.run import run_check

        given = dict(settings)
        size = given.pop("size", "quick")
        sizes = {name: {**had, **given} for name, had in self.found.sizes.items()}
        seed = int(seeds.generate_state(1)[0])
        verdict = run_check(replace(self.found, sizes=sizes), size, seed)
        values = {
            "verdict": verdict.status.name,
            "expected": None if verdict.expected is None else verdict.expected.name,
            "measured": verdict.measured,
            "sense": verdict.sense,
            "bound": verdict.bound,
            "error": verdict.error,
        }
        return Outcome(values, verdict.line())


Task = RunTask | FunctionTask | ClaimTask


def name_of(task: str | Callable[..., Any]) -> str:
    """The name under which a worker finds a task."""
    if isinstance(task, str):
        return task
    module, name = getattr(task, "__module__", ""), getattr(task, "__qualname__", "")
    if not callable(task) or not module or "<" in name:
        raise ReluflowError(
            f"the task {task!r} cannot be imported by worker processes: define it at the top of a "
            "module and pass it, or its name 'module:function'"
        )
    return f"{module}:{name}"


@lru_cache(maxsize=8)
def resolve(name: str) -> Task:
    """The task of a name: a run, ``module:function``, or a claim's id."""
    if name in RUNS:
        return RunTask(name)
    if ":" in name:
        return FunctionTask(name, _import_function(name))
    return ClaimTask(name, _claim(name))


def _import_function(name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ReluflowError(f"cannot import the task {name!r}: {error}") from None
    if not callable(found):
        raise ReluflowError(f"the task {name!r} is not a function")
    function: Callable[..., Any] = found
    return function


def _claim(name: str) -> Check:
    from reluflow.claims.claim import load_all

    runnable = {key: check for key, check in load_all().items() if check.runnable}
    wanted = [c for key, c in runnable.items() if name.lower() in (key.lower(), c.id.lower())]
    exact = [c for c in wanted if c.name.lower() == name.lower()]
    if len(exact) == 1:
        return exact[0]
    if len(wanted) == 1:
        return wanted[0]
    if wanted:
        names = " or ".join(c.name for c in wanted)
        raise ReluflowError(f"{name} has several checks: expected {names}")
    raise ReluflowError(
        f"unknown task {name!r}: expected one of {', '.join(RUNS)}, 'module:function' or the id of "
        "a claim that can be run (`reluflow claims` lists them)"
    )
