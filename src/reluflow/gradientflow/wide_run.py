"""The loop of a flow whose kinks are not located: records, stops, budgets, checkpoints."""

from __future__ import annotations

import math
import time as clock_time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from reluflow.arrays import Array
from reluflow.gradientflow.stops import (
    Loss,
    Predicate,
    Settled,
    Stationary,
    Stop,
    moment,
    shown,
    turning,
)
from reluflow.gradientflow.terms import network_of
from reluflow.gradientflow.wide import Smooth, Step, Wide
from reluflow.kernels.flow_types import Data
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.runtime import Checkpoint, Interrupt, Progress
from reluflow.trajectory import Status, Trajectory
from reluflow.trajectory.recorder import Recorder


class WideRun:
    """Moves a :class:`Wide` network and keeps its records."""

    def __init__(
        self,
        problem: Problem,
        wide: Wide,
        recorder: Recorder,
        stops: tuple[Stop, ...],
        end: float,
    ) -> None:
        self.problem, self.wide, self.recorder = problem, wide, recorder
        self.stops, self.end = stops, end
        self.log_times: list[float] = []
        kinks = "There are no kinks" if isinstance(wide, Smooth) else "Kinks were not located"
        self.note = (
            f"{kinks}: an estimate keeps the error of each step below "
            f"{wide.rtol:g} of the neurons' sizes, in the root mean square."
        )

    def network(self, Z: Array | None = None) -> Network:
        """The network now, or with neurons exp(ls) * Z."""
        return network_of(self.problem, self.wide.Z if Z is None else Z, self.wide.ls)

    def _record(self, position: float, net: Network, log_time: float) -> None:
        before = len(self.recorder._columns["times"])
        self.recorder.record(position, self.wide.steps, position, net)
        if len(self.recorder._columns["times"]) > before:
            self.log_times.append(log_time)

    def move(self) -> Status | None:
        """One step with the records in it; a status when it meets a loss target."""
        wide = self.wide
        if not math.isfinite(wide.h):
            wide.t = self.end if math.isfinite(self.end) else wide.t
            return self.status("still", f"Nothing moves after {moment(wide)}.")
        step = wide.step(self.end - wide.t)
        theta = self._target(step)
        last = wide.t + theta * step.h
        while (wanted := self.recorder.next()) < last:
            part = max(wanted - wide.t, 0.0) / step.h
            self._record(
                wanted, self.network(wide.within(step, part)), wide.log_time_at(step, part)
            )
        if theta < 1.0:
            wide.log_time = wide.log_time_at(step, theta)
            wide.Z, wide.t = wide.within(step, theta), last
            goal = max(s.log_target for s in self.stops if isinstance(s, Loss))
            return self.status("loss", f"The loss fell to {shown(goal)}, the target.")
        wide.finish(step)
        if self.end - wide.t <= 1e-14 * wide.t:
            wide.t = self.end
        return None

    def _target(self, step: Step) -> float:
        """Fraction of a step at which the loss falls to a target, 1 if it does not."""
        goals = [s.log_target for s in self.stops if isinstance(s, Loss)]

        def above(theta: float) -> float:
            f = self.wide.outputs(self.wide.within(step, theta))[1]
            return float(self.problem.log_value(f)) - max(goals)

        if not goals or float(self.problem.log_value(self.wide.f)) > max(goals):
            return 1.0
        return float(brentq(above, 0.0, 1.0, xtol=1e-9)) if above(0.0) > 0 > above(1.0) else 1.0

    def status(self, code: str, sentence: str, ok: bool = True) -> Status:
        """A status that says what kind of run it was."""
        return Status(code, f"{sentence} {self.note}", ok=ok)

    def ended(self) -> Status | None:
        """Why the flow ends here, or None."""
        wide = self.wide
        if not np.isfinite(wide.f).all():
            return self.status("diverged", f"Outputs are not finite at {moment(wide)}.", ok=False)
        for stop in self.stops:
            if isinstance(stop, Loss):
                if float(self.problem.log_value(wide.f)) <= stop.log_target:
                    return self.status("loss", "The loss is below the target.")
            elif isinstance(stop, Predicate):
                if stop.test(self.problem, self.network(), wide.t):
                    return self.status("predicate", f"The condition holds at {moment(wide)}.")
            elif isinstance(stop, Stationary):
                if wide.residual() <= stop.tol:
                    return self.status("stationary", f"The gradient is below {stop.tol:g}.")
            elif isinstance(stop, Settled):
                scale = np.exp(wide.ls - wide.ls.max())[:, None]
                growth, turn = turning(scale * wide.Z, scale * wide.rate)
                if stop.reached(growth, turn):
                    return self.status("settled", f"The direction has settled to {stop.tol:g}.")
        if wide.t >= self.end:
            return self.status("finished", f"The flow reached {moment(self.wide)}.")
        return None

    def record_now(self, ending: bool) -> None:
        """Keep the present if it is wanted."""
        if self.recorder.next() <= self.wide.t or (ending and self.recorder.policy.ends):
            self._record(self.wide.t, self.network(), self.wide.log_time)

    # ------------------------------------------------------------------ checkpoints
    def pack(self) -> dict[str, NDArray]:
        """Everything the continuation depends on."""
        w = self.wide
        numbers = [w.t, w.log_time, w.h, w.log_loss, w.last_error]
        counts = [w.steps, w.rejected, w.evaluations]
        return {
            **self.recorder.pack(),
            "Z": w.Z,
            "ls": w.ls,
            "rate": w.rate,
            "numbers": np.array(numbers),
            "counts": np.array(counts),
            "log_times": np.array(self.log_times),
        }

    def unpack(self, packed: Mapping[str, NDArray]) -> None:
        """Restore what :meth:`pack` gave."""
        self.recorder.unpack(packed)
        w = self.wide
        w.Z, w.ls, w.rate = packed["Z"], packed["ls"], packed["rate"]
        w.f = w.outputs(w.Z)[1]
        w.t, w.log_time, w.h, w.log_loss, w.last_error = (float(v) for v in packed["numbers"])
        w.steps, w.rejected, w.evaluations = (int(v) for v in packed["counts"])
        self.log_times = [float(v) for v in packed["log_times"]]


def flow_wide(
    problem: Problem,
    net: Network,
    data: Data,
    recorder: Recorder,
    stops: tuple[Stop, ...],
    end: float,
    rtol: float,
    max_steps: int,
    max_seconds: float | None,
    progress: bool | str,
    checkpoint: Checkpoint,
    settings: dict[str, Any],
) -> Trajectory:
    """The loop of :func:`reluflow.gradientflow.flow` without location of kinks."""
    damped = any(isinstance(s, Stationary) for s in stops)
    if problem.smoothed is None:
        wide = Wide(data, net, rtol, damped)
    else:
        wide = Smooth(data, net, rtol, damped, problem.smoothed)
    run = WideRun(problem, wide, recorder, stops, end)
    packed = checkpoint.read()
    if packed is not None:
        run.unpack(packed)
    began, status = clock_time.monotonic(), run.ended()
    run.record_now(status is not None)
    total = end if math.isfinite(end) else float(max_steps)
    with Interrupt() as interrupt, Progress(total, "flow", progress) as bar:
        while status is None:
            elapsed = clock_time.monotonic() - began
            if interrupt.requested:
                status = run.status("interrupted", f"Interrupted at {moment(wide)}.", ok=False)
                break
            if wide.steps >= max_steps:
                text = f"The budget of {max_steps} steps ended at {moment(wide)}."
                status = run.status("max_steps", text, ok=False)
            elif max_seconds is not None and elapsed > max_seconds:
                text = f"The budget of {max_seconds:g} seconds ended at {moment(wide)}."
                status = run.status("max_seconds", text, ok=False)
            else:
                status = run.move() or run.ended()
            run.record_now(status is not None)
            bar.update(wide.t if math.isfinite(end) else wide.steps, elapsed)
            if status is None and checkpoint.due():
                checkpoint.write(run.pack())
    if status.code == "interrupted":
        checkpoint.write(run.pack())
    else:
        checkpoint.remove()
    cost = {
        "steps": wide.steps,
        "rejected": wide.rejected,
        "evaluations": wide.evaluations,
        "log_time": wide.log_time,
    }
    done = recorder.trajectory(run.network(), status, cost, settings)
    if not data.by_loss:
        return done
    observables = {**done.observables, "log_time": np.array(run.log_times)}
    return replace(
        done, observables=observables, observable_dims={**done.observable_dims, "log_time": ()}
    )
