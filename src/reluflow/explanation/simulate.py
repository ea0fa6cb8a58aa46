"""The simulation of an explanation: when to record, when to stop, how to resume."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from reluflow.errors import ReluflowError
from reluflow.explanation.files import RUN, kept_in
from reluflow.explanation.horizon import (
    Horizon,
    compare_tolerances,
    last_located,
    step_tolerance,
)
from reluflow.explanation.settings import GUARD, STATE_BYTES, Settings, has_pull
from reluflow.explanation.unseen import OBSERVED, has_unseen
from reluflow.gradientflow.mover import time_in_words
from reluflow.gradientflow.solver import MOST_RTOL
from reluflow.gradientflow.stops import Settled, Stop, Watch, Worked, loss_below, stationary
from reluflow.gradientflow.unlocated import Unlocated
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.runtime.checkpoint import KeptFile
from reluflow.trajectory import Trajectory
from reluflow.trajectory.save import Save
from reluflow.trajectory.status import Status

_RECORDS, _FEWER = 240, 120  # up to the horizon, of tables fewer; later ones geometrically
_RATIO = 1.04
_EARLY = 4.0  # first jumps until which records are even, where others come much later
_STILL = 1e-9  # gradient, over the largest one at the start, that counts as zero
_FITTED = 10.0  # least margin y f from which a direction can be the last one
_LATE, _LOOKS = 1e3, 50  # least margin from which a slow direction ends the run, and how often seen
_RESTS = 5e-3  # share of the first loss: a run that falls less per doubling of time is at its end
_KNOWN = 0.1  # distance of a direction to its limit at which the rest may be left to its rate
_FAR = (1e6, 1e4)  # least margin at which runs end, whatever the direction does: small data first
_LONG = (30_000, 3_000)  # steps after which stiff runs end, small data first, once all is fitted
_CRAWLS = 0.1  # power of |theta| at which a direction settles too slowly to wait for
_WIDE_LOSS = 1e-2  # where kinks are not located: share of the first loss at which a run ends
_LOCATED = 1e7  # m n d beyond which kinks are not located
_COARSE = 2e4  # m n d beyond which the tolerance is the coarser one
_FINE, _COARSE_RTOL = 1e-8, 1e-6
_LANDINGS = 250  # on kinks of tables, after which they are not located
_UNLOCATED = 3_000  # steps that do not locate kinks, after which a run that is stiff ends
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
    """A direction whose limit training on would hardly show better than its rate does.

    Late, once in `_LOOKS` steps, the slowest mode around the direction is computed. The run ends
    where it falls as |theta|^-r with r at most ``fastest``. A mode at distance delta moves by its
    rate times delta per unit of log |theta|, and no rate is below r: so the distance of all to the
    limit is at most the speed of the direction over r.
    """

    fastest: float = _CRAWLS

    @property
    def _table(self) -> bool:
        return self.fastest > _CRAWLS

    @property
    def _last_margin(self) -> float:
        return _FAR[self._table]

    def met(self, mover: Any, problem: Problem) -> Status | None:
        least = float(np.min(problem.y * mover.f))
        if mover.cost["steps"] % _LOOKS or least < _FITTED:
            return None
        if least < _LATE:
            return self._far(mover, least)
        from reluflow.optimum.kkt import settling_rate

        rate = settling_rate(problem, mover.present().network(problem))
        fastest = self.fastest if least < self._last_margin else max(self.fastest, 1.0)
        if not 0.0 < rate <= fastest:
            return self._far(mover, least)
        left = f"{100 * 10 ** (-rate / 2):.3g} % of its distance to the limit would be left"
        if rate < _CRAWLS:
            said = f"The direction settles slowly: at a margin ten times as large {left}."
            return Status("slow", said)
        far = _turning(mover) / rate
        if not far <= _KNOWN:
            return self._far(mover, least)
        return Status(
            "settling",
            f"The direction settles as |theta|^-{rate:.2g} and is within about {far:.1g} of its "
            f"limit: at a margin ten times as large {left}.",
        )

    def _far(self, mover: Any, least: float) -> Status | None:
        """An end very late, or after very many steps, where no rate says how it goes on."""
        if mover.cost["steps"] < _LONG[self._table] and least < self._last_margin:
            return None
        return Status(
            "far",
            f"The least margin is {least:.3g} and the direction still moves by "
            f"{_turning(mover) * math.log(2.0):.2g} while the weights double.",
        )


def _turning(mover: Any) -> float:
    """How far the direction of the weights moves per unit of log |theta|."""
    growth, turn = mover.turning()
    return float(turn / growth) if growth > 0.0 else math.inf


@dataclass(frozen=True)
class Resting(Stop):
    """The loss falls by less than ``share`` of the first one while the time doubles.

    Looked at each time the flow time has doubled, for the first time from ``since``. Margin losses
    that fall to 0 end by their direction instead: with every sample on its side this is not met.
    """

    since: float
    share: float = _RESTS

    def watch(self, problem: Problem) -> Watch:
        return _Doublings(self, problem)


class _Doublings(Watch):
    """Remembers time and loss at the last doubling."""

    stop: Resting

    def met(self, mover: Any) -> Status | None:
        if mover.log_time < self.memory.get("log_time", math.log(self.stop.since)):
            return None
        loss = float(np.exp(self.problem.log_value(mover.f)))
        before = self.memory.get("loss")
        self.memory.update(log_time=mover.log_time + math.log(2.0), loss=loss)
        least = self.stop.share * self.problem.silent_loss
        separated = self.problem.loss.margin and float(np.min(self.problem.y * mover.f)) > 0.0
        if before is None or before - loss > least or separated:
            return None
        return Status(
            "resting",
            f"The loss falls by less than {100 * self.stop.share:g} % of the first one while the "
            f"time doubles, to {time_in_words(mover)}.",
        )


@dataclass(frozen=True)
class Unlocatable(Stop):
    """An end of runs that locate kinks no longer, and have no other end within reach.

    Late phases are stiff, margin losses fall for ever: explicit steps would go on and on, and
    what is left to be seen is blurred by the errors of single steps. So a margin loss is followed
    to ``share`` of the first one, and any loss for so many steps, ten times as many where time
    ``horizon``, by which what matters should have happened, is not reached by then.
    """

    horizon: float
    share: float = _WIDE_LOSS
    steps: int = _UNLOCATED

    def watch(self, problem: Problem) -> Watch:
        return _Unlocated(self, problem)


class _Unlocated(Watch):
    """Counts the steps that do not locate kinks."""

    stop: Unlocatable

    def met(self, mover: Any) -> Status | None:
        problem, taken = self.problem, mover.cost["steps"] - self.memory.get("seen", 0)
        self.memory["seen"] = mover.cost["steps"]
        if mover.kind != Unlocated.kind:
            return None
        steps = self.memory["steps"] = self.memory.get("steps", 0) + taken
        goal = math.log(self.stop.share * problem.silent_loss)
        if problem.loss.margin and float(problem.log_value(mover.f)) <= goal:
            fell = f"The loss fell to {math.exp(goal):.3g} at {time_in_words(mover)}."
            return Status("loss", fell)
        early = mover.log_time < math.log(self.stop.horizon)
        if steps < (10 if early else 1) * self.stop.steps:
            return None
        return Status(
            "far",
            f"{steps:,} steps that do not locate kinks led to {time_in_words(mover)}; "
            "from there on steps are short and the loss falls slowly.",
        )


def fastest_possible(problem: Problem) -> float:
    """A rate of growth that no neuron of a silent network exceeds."""
    return problem.total_pull


def horizon_of(net: Network, rate: float, last_jump: float | None) -> float:
    """A time by which what matters has happened: past the last jump, or some first ones."""
    if last_jump is not None and last_jump > 0.0:
        return 1.4 * last_jump
    return 3.0 * max(-float(net.log_norms.max()), 1.0) / rate


def even_until(horizon: float, first_jump: float | None) -> float:
    """Until when records are evenly spaced: a late last jump must not blur the first ones."""
    return horizon if not first_jump else min(horizon, _EARLY * first_jump)


def simulate(
    problem: Problem,
    net: Network,
    settings: Settings,
    horizon: float,
    checkpoint: str | os.PathLike[str] | None = None,
    first_jump: float | None = None,
) -> Trajectory:
    """Gradient flow to its end, or descent with ``settings.lr``."""
    records = 2 * _RECORDS
    keep = records * net.m * (problem.d + 1) * 8 <= STATE_BYTES
    observe: list[Any] = []
    if not keep:
        observe = ["log_norms"] if records * net.m * 8 <= STATE_BYTES else []
        observe += ["normalized_margin", "accuracy"] if problem.loss.margin else []
        observe += OBSERVED if has_unseen(problem) else []
    recorded: dict[str, Any] = {"observe": observe, "states": keep}
    saved: dict[str, Any] = {"checkpoint": checkpoint, "checkpoint_seconds": _WRITE_SECONDS}
    if settings.lr is not None:
        from reluflow.descent.descend import descend

        lr = settings.lr
        steps = settings.steps or int(np.clip(3.0 * horizon / lr, 1000, _MOST_STEPS))
        policy = Spaced(max(1.0, even_until(horizon, first_jump) / lr / _RECORDS))
        how = {"weight_decay": settings.weight_decay, **recorded, **saved}
        return descend(problem, net, lr=lr, steps=steps, save=policy, **how)
    from reluflow.gradientflow.flow import flow

    if not has_pull(problem):  # ends at once, or shrinks
        return flow(problem, net, checkpoint=checkpoint)
    plan = _plan(problem, net.m, settings, horizon, first_jump)
    return flow(problem, net, **plan, **recorded, **saved)


def with_horizon(
    run: Trajectory,
    net: Network,
    settings: Settings,
    horizon: float,
    checkpoint: KeptFile | None,
    first_jump: float | None = None,
) -> Trajectory:
    """The run, where it passed over kinks with the time until which a coarser one agrees with it.

    The coarser run takes steps of ten times the error, from where kinks were no longer located to
    where the first one ends.
    """
    tolerance = step_tolerance(run)
    if tolerance is None or Horizon.of_run(run) is not None:
        return run
    from reluflow.gradientflow.flow import flow

    plan = _plan(run.problem, net.m, settings, horizon, first_jump)
    began = last_located(run)
    other = flow(
        run.problem,
        net if began == 0 or run.networks is None else run.networks[began],
        t_end=float(run.times[-1] - run.times[began]),
        kinks=False,
        rtol=min(10.0 * tolerance, MOST_RTOL),
        clock=plan["clock"],
        weight_decay=settings.weight_decay,
        save=plan["save"],
        max_steps=plan["max_steps"],
        stop=Worked(settings.seconds),
        max_seconds=GUARD * settings.seconds,
        observe=[],
        states=False,
        checkpoint=checkpoint,
        checkpoint_seconds=_WRITE_SECONDS,
    )
    if other.status.code == "interrupted":
        raise KeyboardInterrupt
    found = compare_tolerances(run, other, float(run.flow_times[began]))
    return replace(run, settings={**run.settings, "horizon": found.to_dict()})


def _plan(
    problem: Problem, m: int, settings: Settings, horizon: float, first_jump: float | None
) -> dict[str, Any]:
    """Tolerance, records, stops and budgets of the flow, by the size of the data.

    Kinks are located while that pays; steps of networks that are large beyond `_LOCATED` pass over
    them from the start.
    """
    margin = problem.loss.margin and not settings.weight_decay  # with decay weights stay finite
    size = float(m) * problem.X.size
    # at the solver's tolerance gradients do not fall below about 1e-10 of the first ones
    stops: list[Any] = [stationary(_STILL * fastest_possible(problem))]
    records = _RECORDS if size <= _COARSE else _FEWER
    unit = even_until(horizon, first_jump) / records
    if margin:
        slow = SlowDirection() if size <= _COARSE else SlowDirection(fastest=1.0)
        stops = [LastDirection(), slow, stationary(1e-9)]
        unit *= problem.silent_loss  # ds = L dt
    plan: dict[str, Any] = {
        "save": Spaced(unit, records),
        "clock": "loss" if margin else "time",
        "weight_decay": settings.weight_decay,
    }
    if size > _LOCATED:
        stops = [loss_below(_WIDE_LOSS * problem.silent_loss), stationary(1e-6)]
        # counted in work, not in seconds: the same command ends at the same place everywhere
        steps = max(int(_WIDE_WORK / (6.0 * size)), _WIDE_STEPS)
        return {**plan, "stop": stops, "kinks": False, "rtol": _WIDE_RTOL, "max_steps": steps}
    stops += [Unlocatable(horizon), Worked(settings.seconds)]
    plan |= {"rtol": _FINE, "max_steps": 200_000, "max_seconds": GUARD * settings.seconds}
    if size > _COARSE:
        stops.append(Resting(horizon))
        plan |= {"rtol": _COARSE_RTOL, "max_landings": _LANDINGS}
    return {**plan, "stop": stops}


def finished_run(
    place: Path | None, key: str, make: Callable[[KeptFile | None], Trajectory]
) -> Trajectory:
    """The run of an explanation that was cut short or made before, or ``make(checkpoint)``.

    ``place`` has the unfinished files of the folder around it, ``key`` is the explanation's
    fingerprint. Ctrl-C ends the explanation.
    """
    if place is not None:
        before = load_finished(place / RUN, key) or load_finished(place.parent / RUN, key)
        if before is not None:
            return before
    run = make(kept_in(place, key))
    if run.status.code == "interrupted":
        raise KeyboardInterrupt
    run = replace(run, settings={**run.settings, "explain": key})
    if place is not None:
        run.save(place / RUN)
    return run


def load_finished(path: Path, key: str) -> Trajectory | None:
    """The run that was finished under the same fingerprint, if there is one."""
    if not path.is_file():
        return None
    try:
        run = Trajectory.load(path)
    except ReluflowError:
        return None
    return run if run.settings.get("explain") == key else None
