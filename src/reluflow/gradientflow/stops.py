"""When a flow ends before its time: conditions on loss, velocity, direction, or anything.

A stop is an immutable description that any number of runs may share. What it has to remember of one
run belongs to the :class:`Watch` that :meth:`Stop.watch` makes for it; checkpoints hold that too.

A condition of one's own is a subclass of :class:`Stop`, or any class with a method
``met(mover, problem)`` that returns None, or the :class:`~reluflow.trajectory.status.Status` of a
run that ends now. It is asked at the start and after each step, with kinks located and without;
what it may ask is in :class:`~reluflow.gradientflow.mover.Mover`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from reluflow.arrays import Array
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.gradientflow.mover import Mover, exp_in_words, time_in_words
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.trajectory import Status

STALLED = 50  # steps without a smaller subgradient after which it has stopped falling


class Watch:
    """A stop at work in one run: ``memory`` is what it remembers, by name."""

    def __init__(self, stop: Any, problem: Problem) -> None:
        self.stop, self.problem = stop, problem
        self.memory: dict[str, float] = {}

    def met(self, mover: Mover) -> Status | None:
        """The status of a run that ends now, or None."""
        status: Status | None = self.stop.met(mover, self.problem)
        return status


@dataclass(frozen=True)
class Stop:
    """A condition; :meth:`met` returns the status of a run that ends by it, or None."""

    at_rest = False  # whether it waits for the network to rest, which takes damped steps

    def met(self, mover: Mover, problem: Problem) -> Status | None:
        """Called at the start and after every step."""
        raise NotImplementedError

    def watch(self, problem: Problem) -> Watch:
        """The stop at work in one run; overridden where something is to be remembered."""
        return Watch(self, problem)


@dataclass(frozen=True)
class Threshold(Stop):
    """A function of the outputs has fallen to 0; the loop finds where, within the step."""

    def excess(self, problem: Problem, f: Array) -> float:
        """A function that falls to 0."""
        raise NotImplementedError

    def reached(self, mover: Mover) -> Status:
        """Why the run ends here."""
        raise NotImplementedError

    def met(self, mover: Mover, problem: Problem) -> Status | None:
        return None if self.excess(problem, mover.f) > 0.0 else self.reached(mover)


@dataclass(frozen=True)
class Loss(Threshold):
    """The loss has fallen to exp(log_target); located within the step."""

    log_target: float

    def excess(self, problem: Problem, f: Array) -> float:
        """log L - log_target."""
        return float(problem.log_value(f)) - self.log_target

    def reached(self, mover: Mover) -> Status:
        goal = exp_in_words(self.log_target)
        return Status("loss", f"The loss fell to {goal}, the target, at {time_in_words(mover)}.")


@dataclass(frozen=True)
class Stationary(Stop):
    """The subgradient of minimal norm is below ``tol`` and no neuron is growing.

    Steps leave an error in the subgradient: below that, one that has stopped falling is at rest.
    """

    tol: float = 1e-10
    at_rest = True

    def watch(self, problem: Problem) -> Watch:
        return _Rest(self, problem)


class _Rest(Watch):
    """Remembers the smallest subgradient so far and the step at which it was met."""

    stop: Stationary

    def met(self, mover: Mover) -> Status | None:
        size, steps, tol = mover.gradient(), mover.cost["steps"], self.stop.tol
        if size < 0.9 * self.memory.get("least", math.inf):
            self.memory.update(least=size, step=steps)
        said = f"below {tol:g}"
        if size > tol or mover.grows(tol):
            if steps < self.memory.get("step", 0) + STALLED:
                return None
            rates, gradient = mover.noise()
            if size > gradient or mover.grows(rates):
                return None
            said = f"{size:.2g}, as small as rtol {mover.rtol:g} can tell,"
        return Status(
            "stationary", f"The subgradient of minimal norm is {said} and no neuron grows."
        )


@dataclass(frozen=True)
class Settled(Stop):
    """The direction theta/|theta| moves by less than ``tol`` while |theta| doubles.

    For losses whose minimum is at infinity; the speed is per unit of log |theta|.
    """

    tol: float = 1e-4

    def met(self, mover: Mover, problem: Problem) -> Status | None:
        growth, turn = mover.turning()
        if not (growth > 0 and turn * math.log(2.0) <= self.tol * growth):
            return None
        return Status("settled", f"The direction moves by less than {self.tol:g} per doubling.")


@dataclass(frozen=True, repr=False)
class Predicate(Stop):
    """``test(problem, network, time)`` holds after a step."""

    test: Callable[[Problem, Network, float], bool]

    def __repr__(self) -> str:
        """Name and line of the function: the same when the program runs again."""
        if hasattr(self.test, "__qualname__"):
            code = getattr(self.test, "__code__", None)
            line = f", line {code.co_firstlineno}" if code is not None else ""
            return f"Predicate({self.test.__module__}.{self.test.__qualname__}{line})"
        return f"Predicate({_lasting_repr(self.test)})"

    def met(self, mover: Mover, problem: Problem) -> Status | None:
        if not self.test(problem, mover.present().network(problem), mover.t):
            return None
        name = getattr(self.test, "__name__", "predicate")
        return Status("predicate", f"The condition {name!r} holds at {time_in_words(mover)}.")


@dataclass(frozen=True)
class Worked(Stop):
    r"""A budget of work, as seconds of an ordinary core: a run ends at the same step everywhere.

    A move (a step, also a rejected one, or a landing) of m neurons counts as

    .. math:: 5 \cdot 10^{-4} + 10^{-9} m e \ \text{seconds},

    with e = n d K entries where kinks are not located, 80 n where they are and 5,000 n where they
    are with several outputs: measured on tables of 130 to 570 samples, to within a factor of two.
    An implicit step counts as ten.
    """

    seconds: float

    def watch(self, problem: Problem) -> Watch:
        return _Worker(self, problem)


class _Worker(Watch):
    """Remembers the moves so far and their work."""

    stop: Worked

    def __init__(self, stop: Worked, problem: Problem) -> None:
        super().__init__(stop, problem)
        n, entries = problem.n, problem.X.size * (problem.K if problem.several else 1)
        self.entries = entries  # for each neuron
        self.m = -1  # as many neurons as there are, once seen
        self.located = {"located": 80 * n, "located, several outputs": 5_000 * n}

    def met(self, mover: Mover) -> Status | None:
        cost = mover.cost
        if self.m < 0:
            self.m = len(mover.present().ls)
        moves = cost["steps"] + cost["rejected"] + cost["landings"] + 9 * cost["implicit"]
        new = moves - self.memory.get("moves", 0)
        entries = self.located.get(mover.kind, self.entries)
        work = self.memory.get("work", 0.0) + new * (5e-4 + 1e-9 * self.m * entries)
        self.memory.update(moves=moves, work=work)
        if work <= self.stop.seconds:
            return None
        return Status(
            "max_seconds",
            f"The budget of work, about {self.stop.seconds:g} seconds, ended at "
            f"{time_in_words(mover)}.",
            ok=False,
        )


@dataclass(frozen=True, repr=False)
class _Foreign(Stop):
    """A stop of a class that is not a :class:`Stop` and has the same method ``met``."""

    stop: Any

    def __repr__(self) -> str:
        return _lasting_repr(self.stop)

    def met(self, mover: Mover, problem: Problem) -> Status | None:
        status: Status | None = self.stop.met(mover, problem)
        return status


def _lasting_repr(value: object) -> str:
    """The repr of an object, without its address: the same when the program runs again."""
    kind = type(value)
    if kind.__repr__ is object.__repr__:
        return f"{kind.__module__}.{kind.__qualname__}"
    return repr(value)


@check_arguments
def loss_below(value: float | None = None, *, log: float | None = None) -> Stop:
    """Stop when the loss reaches a value.

    Parameters
    ----------
    value : float, optional
        Positive.
    log : float, optional
        Its logarithm instead, for values no float holds.

    Returns
    -------
    Stop
    """
    if (value is None) == (log is None):
        raise ReluflowError("loss_below takes a value or log=, one of the two")
    if value is not None and not value > 0:
        raise ReluflowError(f"loss_below needs a positive value, got {value}")
    return Loss(math.log(value) if value is not None else float(log or 0.0))


@check_arguments
def stationary(tol: float = 1e-10) -> Stop:
    """Stop when the subgradient of minimal norm is small and no neuron grows.

    Parameters
    ----------
    tol : float
        What counts as small.

    Returns
    -------
    Stop
    """
    return Stationary(tol)


@check_arguments
def settled(tol: float = 1e-4) -> Stop:
    """Stop when the direction of all weights has settled (losses with no minimum).

    Parameters
    ----------
    tol : float
        Largest move of theta/|theta| while |theta| doubles.

    Returns
    -------
    Stop
    """
    return Settled(tol)


def as_stops(stop: Any) -> tuple[Stop, ...]:
    """The conditions meant by a ``stop=`` argument."""
    if stop is None:
        return ()
    if isinstance(stop, Stop):
        return (stop,)
    if callable(getattr(stop, "met", None)):
        return (_Foreign(stop),)
    if callable(stop):
        return (Predicate(stop),)
    if isinstance(stop, list | tuple):
        return tuple(s for item in stop for s in as_stops(item))
    raise ReluflowError(
        f"stop must be stationary(), loss_below(), settled(), a function of (problem, network, "
        f"time), an object with a method met(mover, problem) or a list of these, got {stop!r}"
    )
