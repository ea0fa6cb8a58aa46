"""When a flow ends before its time: conditions on loss, velocity, direction, or anything."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reluflow.arrays import Array
from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.trajectory import Status

if TYPE_CHECKING:
    from reluflow.gradientflow.solver import Solver


STALLED = 50  # steps without a smaller subgradient after which it has stopped falling
STEP_ERROR = 0.1  # error of steps in units of rtol, with some room


@dataclass(frozen=True)
class Stop:
    """A condition; :meth:`met` returns the status of a run that ends by it, or None."""

    def met(self, solver: Solver, problem: Problem) -> Status | None:
        """Called after every step."""
        raise NotImplementedError


@dataclass(frozen=True)
class Loss(Stop):
    """The loss has fallen to exp(log_target); located within the step."""

    log_target: float

    def met(self, solver: Solver, problem: Problem) -> Status | None:
        value = float(problem.log_value(solver.f))
        if value > self.log_target:
            return None
        return Status("loss", f"The loss fell to {shown(value)}, the target.")


@dataclass(frozen=True)
class Stationary(Stop):
    """The subgradient of minimal norm is below ``tol`` and no neuron is growing.

    Steps of relative error e move f by about e B, B half the squared norm, and the subgradient by
    e K B^(3/2), K the stiffness of the pull: below that, one that has stopped falling is at rest.
    """

    tol: float = 1e-10

    def met(self, solver: Solver, problem: Problem) -> Status | None:
        log_B, rates = solver.log_sizes(), solver.rates
        # |gradient of cone|^2 <= |D|^2 * 2 B
        with np.errstate(divide="ignore"):
            log_grad = np.log(rates) + 0.5 * (log_B + math.log(2.0))
        size, steps = math.exp(float(np.max(log_grad, initial=-math.inf))), solver.cost["steps"]
        if size < 0.9 * solver.least_gradient:
            solver.least_gradient, solver.least_at = size, steps
        said = f"below {self.tol:g}"
        if size > self.tol or _growing(solver, self.tol):
            if steps < solver.least_at + STALLED:
                return None
            B = float(np.sum(np.exp(log_B)))
            noise = STEP_ERROR * solver.rtol * solver.stiffness()[0] * B  # of the rates
            if size > noise * math.sqrt(B) or _growing(solver, noise):
                return None
            said = f"{size:.2g}, as small as rtol {solver.rtol:g} can tell,"
        return Status(
            "stationary", f"The subgradient of minimal norm is {said} and no neuron grows."
        )


def moment(solver: Any) -> str:
    """Gradient-flow time of a solver, for a sentence, also where its clock is the loss."""
    data = solver.data if hasattr(solver, "data") else solver.state.data
    if not data.by_loss:
        return f"time {solver.t:.6g}"
    if solver.log_time == -math.inf:
        return "time 0"
    late = solver.log_time > 690.0  # no float holds it
    return f"time exp({solver.log_time:.6g})" if late else f"time {shown(solver.log_time)}"


def shown(log: float) -> str:
    """exp(log) in words, also where no float holds it."""
    return f"{math.exp(log):.6g}" if log > -700 else f"exp({log:.6g})"


def _growing(solver: Solver, tol: float) -> bool:
    """Whether a neuron grows, or still turns, at a rate above tol."""
    s = solver.state
    members = np.flatnonzero((solver.rates > tol)[s.gid])
    if not members.size:
        return False
    Z, _ = s.neurons()
    Z, D = Z[members], solver.D[s.gid[members]]
    along = np.sum(Z[:, :-1] * D, axis=1)
    rate = 2.0 * Z[:, -1] * along
    dW = Z[:, -1:] * D - rate[:, None] * Z[:, :-1]
    da = along - rate * Z[:, -1]
    turning = np.sqrt(np.sum(dW**2, axis=1) + da**2)
    return bool(((rate > tol) | (turning > tol)).any())


@dataclass(frozen=True)
class Settled(Stop):
    """The direction theta/|theta| moves by less than ``tol`` while |theta| doubles.

    For losses whose minimum is at infinity; the speed is per unit of log |theta|.
    """

    tol: float = 1e-4

    def met(self, solver: Solver, problem: Problem) -> Status | None:
        log_B = solver.log_sizes()
        s = solver.state
        big = log_B > np.max(log_B) - 60.0
        Z, ls = s.neurons()
        keep = big[s.gid]
        scale = np.exp(ls[keep] - np.max(ls[keep]))[:, None]
        Z, D = scale * Z[keep], solver.D[s.gid[keep]]
        dZ = np.column_stack([Z[:, -1:] * D, np.sum(Z[:, :-1] * D, axis=1)])
        if not self.reached(*turning(Z, dZ)):
            return None
        return Status("settled", f"The direction moves by less than {self.tol:g} per doubling.")

    def reached(self, growth: float, turn: float) -> bool:
        """Whether a network that grows and turns at these rates has settled."""
        return growth > 0 and turn * math.log(2.0) <= self.tol * growth


def turning(Z: Array, dZ: Array) -> tuple[float, float]:
    """Rates at which log |Z| grows and Z/|Z| moves under the velocity dZ."""
    norm2 = float(np.sum(Z * Z))
    growth = float(np.sum(Z * dZ)) / norm2
    return growth, math.sqrt(max(float(np.sum(dZ * dZ)) / norm2 - growth**2, 0.0))


@dataclass(frozen=True, repr=False)
class Predicate(Stop):
    """``test(problem, network, time)`` holds after a step."""

    test: Callable[[Problem, Network, float], bool]

    def __repr__(self) -> str:
        """Name and line of the function: the same when the program runs again."""
        kind = type(self.test)
        if hasattr(self.test, "__qualname__"):
            code = getattr(self.test, "__code__", None)
            line = f", line {code.co_firstlineno}" if code is not None else ""
            return f"Predicate({self.test.__module__}.{self.test.__qualname__}{line})"
        if kind.__repr__ is object.__repr__:
            return f"Predicate({kind.__module__}.{kind.__qualname__})"
        return f"Predicate({self.test!r})"

    def met(self, solver: Solver, problem: Problem) -> Status | None:
        from reluflow.gradientflow.terms import network_of

        net = network_of(problem, *solver.state.neurons())
        if not self.test(problem, net, solver.t):
            return None
        name = getattr(self.test, "__name__", "predicate")
        return Status("predicate", f"The condition {name!r} holds at {moment(solver)}.")


def loss_below(value: float | None = None, *, log: float | None = None) -> Stop:
    """Stop when the loss reaches ``value``, or exp(``log``) for values no float holds."""
    if (value is None) == (log is None):
        raise ReluflowError("loss_below takes a value or log=, one of the two")
    if value is not None and not value > 0:
        raise ReluflowError(f"loss_below needs a positive value, got {value}")
    return Loss(math.log(value) if value is not None else float(log or 0.0))


def stationary(tol: float = 1e-10) -> Stop:
    """Stop when the subgradient of minimal norm is below ``tol`` and no neuron grows."""
    return Stationary(tol)


def settled(tol: float = 1e-4) -> Stop:
    """Stop when the direction of all weights has settled (losses with no minimum)."""
    return Settled(tol)


def as_stops(stop: Any) -> tuple[Stop, ...]:
    """The conditions meant by a ``stop=`` argument."""
    if stop is None:
        return ()
    if isinstance(stop, Stop):
        return (stop,)
    if callable(stop):
        return (Predicate(stop),)
    if isinstance(stop, list | tuple):
        return tuple(s for item in stop for s in as_stops(item))
    raise ReluflowError(
        f"stop must be stationary(), loss_below(), settled(), a function of (problem, network, "
        f"time) or a list of these, got {stop!r}"
    )
