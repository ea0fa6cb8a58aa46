"""When to record: lists, geometric or regular spacing, or a predicate."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError

if TYPE_CHECKING:
    from reluflow.network import Network
    from reluflow.problem import Problem

Predicate = Callable[["Problem", "Network", float], bool]


@dataclass(frozen=True)
class Save:
    """Positions (steps or times) to record; subclasses say which comes next."""

    ends = True  # whether the last position is recorded in any case

    def start(self) -> float:
        """First wanted position."""
        return 0.0

    def after(self, position: float, whole: bool) -> float:
        """First wanted position beyond ``position``; inf when there is none."""
        return math.inf

    def wants(self, problem: Problem, state: Callable[[], Network], position: float) -> bool:
        """Whether the state at a wanted position is to be kept; ``state()`` is the network."""
        return True

    def describe(self) -> str:
        """Text for the provenance of a run."""
        return repr(self)


@dataclass(frozen=True)
class Listed(Save):
    """Exactly the given positions."""

    positions: tuple[float, ...] = ()
    ends = False

    def start(self) -> float:
        return self.positions[0] if self.positions else math.inf

    def after(self, position: float, whole: bool) -> float:
        k = int(np.searchsorted(self.positions, position, side="right"))
        return self.positions[k] if k < len(self.positions) else math.inf

    def describe(self) -> str:
        return f"Listed({len(self.positions)} positions)"


@dataclass(frozen=True)
class Every(Save):
    """0, k, 2k, ... and the end."""

    k: float = 1

    def after(self, position: float, whole: bool) -> float:
        following = (math.floor(position / self.k * (1 + 1e-12)) + 1) * self.k
        return following if following > position else following + self.k


@dataclass(frozen=True)
class Geometric(Save):
    """0, first, then each position ``ratio`` times the last (rounded down, plus 1, for steps)."""

    ratio: float = 1.1
    first: float = 1.0

    def after(self, position: float, whole: bool) -> float:
        if position < self.first:
            return self.first
        if whole:
            return math.floor(self.ratio * position) + 1
        return self.first * self.ratio ** (
            math.floor(math.log(position / self.first) / math.log(self.ratio) + 1e-9) + 1
        )


@dataclass(frozen=True)
class When(Save):
    """Those positions of ``check`` at which a predicate holds."""

    predicate: Predicate = field(default=lambda problem, net, position: True)
    check: Save = field(default_factory=lambda: Every(1000))
    ends = False

    def start(self) -> float:
        return self.check.start()

    def after(self, position: float, whole: bool) -> float:
        return self.check.after(position, whole)

    def wants(self, problem: Problem, state: Callable[[], Network], position: float) -> bool:
        return bool(self.predicate(problem, state(), position))

    def describe(self) -> str:
        name = getattr(self.predicate, "__name__", "predicate")
        return f"When({name}, check={self.check.describe()})"


@check_arguments
def every(k: float) -> Save:
    """Record at 0, at every multiple of ``k``, and at the end.

    Parameters
    ----------
    k : number
        Of steps, or a stretch of time.

    Returns
    -------
    Save

    Examples
    --------
    >>> every(100).after(250, whole=True)
    300
    """
    if not k > 0:
        raise ReluflowError(f"every(k) needs k > 0, got {k}")
    return Every(k)


@check_arguments
def geometric(ratio: float = 1.1, first: float = 1.0) -> Save:
    """Record 0, ``first``, then ratio times further each time, and the end.

    With whole steps and ratio 1.1 these are the 135 frames of [BF24]_ Figure 2.

    Parameters
    ----------
    ratio : float
        Above 1.
    first : float
        Of the records after 0.

    Returns
    -------
    Save
    """
    if not (ratio > 1 and first > 0):
        raise ReluflowError(f"geometric needs ratio > 1 and first > 0, got {ratio} and {first}")
    return Geometric(ratio, first)


@check_arguments
def when(predicate: Predicate, check: Save | float = 1000) -> Save:
    """Record where a condition holds.

    Parameters
    ----------
    predicate : callable
        Of (problem, network, position).
    check : Save or number
        Where it is tested; a number k is ``every(k)``.

    Returns
    -------
    Save
    """
    if not callable(predicate):
        raise ReluflowError("when needs a function of (problem, network, position)")
    return When(predicate, check if isinstance(check, Save) else every(check))


def as_save(save: Any, end: float, whole: bool) -> Save:
    """The policy meant by a ``save=`` argument: None, a policy, or positions."""
    if save is None:
        return Save()
    if isinstance(save, Save):
        return save
    if isinstance(save, str) or not isinstance(save, Iterable):
        raise ReluflowError(
            f"save must be a list of {'steps' if whole else 'times'} or a policy such as "
            f"geometric(1.1) or every(100), got {save!r}"
        )
    try:
        wanted = np.unique(np.asarray(list(save), dtype=float))
    except (TypeError, ValueError):
        raise ReluflowError("save holds entries that are not numbers") from None
    unit = "step" if whole else "time"
    if not np.isfinite(wanted).all() or (wanted.size and (wanted[0] < 0 or wanted[-1] > end)):
        raise ReluflowError(f"save holds a {unit} outside 0 .. {end:g}: drop it or go further")
    if whole and not (wanted == np.floor(wanted)).all():
        raise ReluflowError("save holds a step that is not a whole number")
    return Listed(tuple(float(p) for p in wanted))
