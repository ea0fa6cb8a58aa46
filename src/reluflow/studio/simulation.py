"""A run for the page: the same numbers as `reluflow.flow`, with frames where something happens."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from reluflow.gradientflow.flow import flow
from reluflow.gradientflow.stops import Stop, stationary
from reluflow.landscape.align import Alignment
from reluflow.network import Network
from reluflow.playback.frames import principal_axes
from reluflow.playback.recording import Recorder, Recording
from reluflow.prediction.process import JumpProcess
from reluflow.problem import Problem
from reluflow.trajectory import Observable, Status, Trajectory
from reluflow.trajectory.save import Save

_EVEN, _EARLY, _NEAR = 140, 30, 24  # frames: evenly spaced, during alignment, around a jump
_JUMPS = 6  # jumps with frames of their own
_WIDTH = 8.0  # e-folds on either side of a jump
_RATIO = 1.12  # between frames after the last planned one
_STATE_BYTES = 5e7  # networks kept for the .nc file
_AFTER = 2.5  # a run of a margin loss ends at this multiple of the last jump
_BEAT = 0.15  # seconds between two reports


@dataclass(frozen=True)
class Planned(Save):
    """Chosen times, then each ``ratio`` times the last; and the end."""

    positions: tuple[float, ...] = ()
    ratio: float = _RATIO

    def after(self, position: float, whole: bool) -> float:
        k = int(np.searchsorted(self.positions, position, side="right"))
        if k < len(self.positions):
            return self.positions[k]
        return max(position, 1e-9) * self.ratio

    def describe(self) -> str:
        return f"Planned({len(self.positions)} times, then ratio {self.ratio:g})"


@dataclass(frozen=True)
class Beat(Stop):
    """Never ends a run; reports its time now and then."""

    report: Callable[[float, float], None] = field(repr=False)

    def met(self, mover: Any, problem: Problem) -> Status | None:
        self.report(float(mover.t), float(problem.value(mover.f)))
        return None


@dataclass(frozen=True)
class Plan:
    """When to take frames and when to end; ``t_end`` is None where a run ends by itself."""

    times: tuple[float, ...]
    t_end: float | None


def make_plan(
    problem: Problem,
    net: Network,
    rate: float,
    alignment: Alignment | None,
    process: JumpProcess | None,
    t_end: float | None,
) -> Plan:
    """Frames evenly up to the last predicted jump, closer while neurons align and jump.

    Parameters
    ----------
    rate : float
        Growth rate of the fastest small neuron.
    t_end : float, optional
        Where the user wants the run to end. By default runs of square losses end when they are
        stationary; margin losses have no end, so theirs is a multiple of the last jump's time.
    """
    log_scale = float(net.log_norms.max())
    jumps = np.empty(0)
    if process is not None and process.n_jumps:
        jumps = process.jump_times(log_scale=log_scale)
    slow = 1.0 / max(rate, 1e-300)
    last = float(jumps[-1]) if jumps.size else max(1.0, 5.0 - log_scale) * slow
    last = max(last, 5.0 * slow)  # weights that are not small jump at once
    if t_end is None and problem.loss.margin:
        t_end = float(f"{_AFTER * last:.3g}")
    horizon = 1.4 * last if t_end is None else t_end
    times = [np.linspace(0.0, horizon, _EVEN + 1)]
    if alignment is not None:
        early = 1.2 * float(alignment.time[alignment.growing].max(initial=0.0))
        times.append(np.linspace(0.0, early, _EARLY + 1))
    for i, jump in enumerate(jumps[:_JUMPS]):
        growth = float(process.rates[i][process.neurons[i]].max()) if process is not None else rate
        width = _WIDTH / max(growth, 1e-3 * rate)
        times.append(np.linspace(jump - width, jump + width, _NEAR + 1))
    wanted = np.unique(np.concatenate(times))
    apart = np.concatenate([[True], np.diff(wanted) > 1e-4 * horizon])
    wanted = wanted[(wanted >= 0.0) & (wanted <= horizon) & apart]
    return Plan(tuple(float(t) for t in wanted), t_end)


def simulate(
    problem: Problem,
    net: Network,
    plan: Plan,
    process: JumpProcess | None,
    report: Callable[[float, str], None],
    seconds: float,
) -> tuple[Trajectory, Recording]:
    """Gradient flow to its end, recorded for the front end.

    Parameters
    ----------
    report : callable(share, note)
        Called now and then.
    seconds : float
        Budget; a run that needs more is cut short and says so.

    Returns
    -------
    (Trajectory, Recording)
        The trajectory is that of ``flow(problem, net)``, or ``flow(problem, net, t_end=...)``:
        taking frames does not change steps.
    """
    axes = None
    if net.d > 3:
        axes = principal_axes(problem, net if process is None else process.final)
    recorder = Recorder(problem, len(plan.times), axes)
    said = [time.monotonic()]
    horizon = plan.times[-1]

    def beat(now: float, loss: float) -> None:
        if time.monotonic() - said[0] > _BEAT:
            said[0] = time.monotonic()
            report(min(now / horizon, 0.99), f"time {now:.4g}, loss {loss:.4g}")

    def take(_: Problem, state: Network) -> float:
        recorder.add(state)
        return 0.0

    keep = 2 * len(plan.times) * net.m * (problem.d + 1) * 8 <= _STATE_BYTES
    run = flow(
        problem,
        net,
        t_end=plan.t_end,
        save=Planned(plan.times),
        observe=[Observable("frame", take)],
        states=keep,
        stop=[Beat(beat), *([stationary()] if plan.t_end is None else [])],
        max_seconds=seconds,
        progress=False,
    )
    if run.status.code == "interrupted":
        raise KeyboardInterrupt
    kept = {name: v for name, v in run.observables.items() if name != "frame"}
    dims = {name: v for name, v in run.observable_dims.items() if name != "frame"}
    run = replace(run, observables=kept, observable_dims=dims)
    return run, recorder.finish(run.times, run.loss, run.log_loss, run.final)
