"""The simulation of an explanation: when to record, when to stop, how to resume."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.errors import ReluflowError
from reluflow.explanation.settings import STATE_BYTES, Settings
from reluflow.gradientflow.stops import Settled, Spent, Stop, loss_below, stationary
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.trajectory import Trajectory
from reluflow.trajectory.save import Save
from reluflow.trajectory.status import Status

_RECORDS = 240  # up to the horizon; later ones are spaced geometrically
_RATIO = 1.04
_STILL = 1e-9  # gradient, over the largest one at the start, that counts as zero
_FITTED = 10.0  # least margin y f from which a direction can be the last one
_LATE, _LOOKS = 1e3, 50  # least margin from which a slow direction ends the run, and how often seen
_CRAWLS = 0.1  # power of |theta| at which a direction settles too slowly to wait for
_WIDE_LOSS = 1e-2  # where kinks are not located: share of the first loss at which a run ends
_LOCATED = 1e7  # m n d beyond which kinks are not located
_WIDE_RTOL = 1e-3  # of a step there: the loss is then off by about that much
_WIDE_WORK = 4e12  # multiplications spent there at most
_WIDE_STEPS = 60  # but at least so many steps
_MOST_STEPS = 5_000_000
_WRITE_SECONDS = 5.0  # between checkpoints


@dataclass(frozen=True)
class Spaced(Save):
    """Every ``unit`` up to ``count`` units, then each ``ratio`` times the last; and the end."""

    unit: float = 1.0
    count: int = _RECORDS
    ratio: float = _RATIO

    def after(self, position: float, whole: bool) -> float:
        horizon = self.unit * self.count
        if position < horizon:
            following = (math.floor(position / self.unit * (1 + 1e-12)) + 1) * self.unit
        else:
            passed = math.log(position / horizon) / math.log(self.ratio)
            following = horizon * self.ratio ** (math.floor(passed + 1e-9) + 1)
        return max(math.floor(following), math.floor(position) + 1) if whole else following


@dataclass(frozen=True)
class LastDirection(Settled):
    """As `Settled`, but not before every sample is fitted with a large margin."""

    def met(self, mover: Any, problem: Problem) -> Status | None:
        if float(np.min(problem.y * mover.f)) < _FITTED:
            return None
        return super().met(mover, problem)


@dataclass(frozen=True)
class SlowDirection(Stop):
    """A direction that training on would hardly bring nearer to its limit.

    Late, once in `_LOOKS` steps, the slowest mode around the direction is computed.
    """

    def met(self, mover: Any, problem: Problem) -> Status | None:
        if mover.cost["steps"] % _LOOKS or float(np.min(problem.y * mover.f)) < _LATE:
            return None
        from reluflow.optimum.kkt_modes import settling_rate

        rate = settling_rate(problem, mover.present().network(problem))
        if not 0.0 < rate < _CRAWLS:
            return None
        left = 100 * 10 ** (-rate / 2)
        return Status(
            "slow",
            f"The direction settles slowly: at a margin ten times as large {left:.3g} % of its "
            "distance to the limit would be left.",
        )


def fastest_possible(problem: Problem) -> float:
    """A rate of growth that no neuron of a silent network exceeds."""
    return problem.total_pull


def horizon_of(net: Network, rate: float, last_jump: float | None) -> float:
    """A time by which what matters has happened: past the last jump, or some first ones."""
    if last_jump is not None and last_jump > 0.0:
        return 1.4 * last_jump
    return 3.0 * max(-float(net.log_norms.max()), 1.0) / rate


def simulate(
    problem: Problem,
    net: Network,
    settings: Settings,
    horizon: float,
    checkpoint: Path | None,
    progress: bool | str,
) -> Trajectory:
    """Gradient flow to its end, or descent with ``settings.lr``."""
    records = 2 * _RECORDS
    keep = records * net.m * (problem.d + 1) * 8 <= STATE_BYTES
    observe: list[str] = []
    if not keep:
        observe = ["log_norms"] if records * net.m * 8 <= STATE_BYTES else []
        observe += ["normalized_margin", "accuracy"] if problem.loss.margin else []
    recorded: dict[str, Any] = {"observe": observe, "states": keep}
    saved: dict[str, Any] = {
        "checkpoint": checkpoint,
        "checkpoint_seconds": _WRITE_SECONDS,
        "progress": progress,
    }
    if settings.lr is not None:
        from reluflow.descent.descend import descend

        lr = settings.lr
        steps = settings.steps or int(np.clip(3.0 * horizon / lr, 1000, _MOST_STEPS))
        policy = Spaced(max(1.0, horizon / lr / _RECORDS))
        return descend(problem, net, lr=lr, steps=steps, save=policy, **recorded, **saved)
    from reluflow.gradientflow.flow import flow

    margin = problem.loss.margin
    wide = float(net.m) * problem.X.size > _LOCATED
    # at the solver's tolerance gradients do not fall below about 1e-10 of the first ones
    stops: list[Any] = [stationary(_STILL * fastest_possible(problem))]
    unit = horizon / _RECORDS
    if margin:
        stops = [LastDirection(), SlowDirection(), stationary(1e-9)]
        unit *= problem.silent_loss  # ds = L dt
    budget: dict[str, Any] = {"max_steps": 200_000}
    if wide:
        start = problem.silent_loss
        stops = [loss_below(_WIDE_LOSS * start), stationary(1e-6)]
        # counted in work, not in seconds: the same command ends at the same place everywhere
        steps = int(_WIDE_WORK / (6.0 * net.m * problem.X.size))
        budget = {"max_steps": max(steps, _WIDE_STEPS), "rtol": _WIDE_RTOL}
    else:
        stops.append(Spent(settings.seconds))
    return flow(
        problem,
        net,
        save=Spaced(unit),
        stop=stops,
        kinks=not wide,
        clock="loss" if margin else "time",
        **budget,
        **recorded,
        **saved,
    )


def real_times(run: Trajectory) -> Array:
    """Times of the records in gradient-flow time, also where the clock was the loss."""
    if "log_time" in run.observables:
        return np.exp(np.minimum(run["log_time"], 700.0))
    return np.asarray(run.times, dtype=float)


def stored(path: Path, key: str) -> Trajectory | None:
    """The run that was finished under the same fingerprint, if there is one."""
    if not path.is_file():
        return None
    try:
        run = Trajectory.load(path)
    except ReluflowError:
        return None
    return run if run.settings.get("explain") == key else None


def marked(run: Trajectory, key: str) -> Trajectory:
    """The run with the fingerprint of its explanation among its settings."""
    return replace(run, settings={**run.settings, "explain": key})
