"""The loop of a flow: moves, records, stops, budgets, checkpoints."""

from __future__ import annotations

import math
import time as clock_time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.gradientflow.cones import State
from reluflow.gradientflow.solver import Solver
from reluflow.gradientflow.stops import Loss, Stop, moment, shown
from reluflow.gradientflow.terms import network_of
from reluflow.kernels.codes import BRANCH
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.runtime import Checkpoint, Interrupt, Progress
from reluflow.trajectory import Status, Trajectory
from reluflow.trajectory.recorder import Recorder

_STAYED = (
    "Neurons stayed {} times on a kink that both sides push away from; on_branch='leave' gives the "
    "solution that leaves."
)
_UNDECIDED = (
    "At {} neurons stand where several kinks meet and no side lasts; the run up to there is "
    "kept. A start moved a little (another seed or scale) passes beside that point, and descend or "
    "flow with kinks=False pass over it."
)
_MOST_ARRIVALS = 1000  # in a row, without time passing, and ten more for each neuron


class Driver:
    """Runs a :class:`Solver` and keeps its records."""

    def __init__(
        self,
        problem: Problem,
        solver: Solver,
        recorder: Recorder,
        stops: tuple[Stop, ...],
        end: float,
        max_steps: int,
        max_seconds: float | None,
        checkpoint: Checkpoint,
    ) -> None:
        self.problem, self.solver, self.recorder, self.stops = problem, solver, recorder, stops
        self.end, self.max_steps, self.max_seconds = end, max_steps, max_seconds
        self.checkpoint = checkpoint
        self.log_times: list[float] = []
        self.spent = 0.0

    # ------------------------------------------------------------------ records
    def _record(self, position: float, Z: Array, ls: Array, log_time: float) -> None:
        net = network_of(self.problem, Z, ls)
        before = len(self.recorder._columns["times"])
        self.recorder.record(position, self.solver.cost["steps"], position, net)
        if len(self.recorder._columns["times"]) > before:
            self.log_times.append(log_time)

    def _record_leap(self) -> None:
        while (wanted := self.recorder.next()) < self.solver.t:
            self._record(wanted, *self.solver.leaper.within(wanted))

    def _record_step(self, stop: float) -> None:
        solver = self.solver
        h = solver.pending.h
        while (wanted := self.recorder.next()) <= min(solver.t + h, stop):
            theta = min((wanted - solver.t) / h, 1.0)
            if wanted == solver.t + h:
                break
            self._record(wanted, *solver.within_step(theta), solver.log_time_at(theta))

    # ------------------------------------------------------------------ the loop
    def run(self, show: bool | str) -> tuple[Network, Status]:
        """Move until something ends the run; the final network and why."""
        solver, began = self.solver, clock_time.monotonic()
        total = self.end if math.isfinite(self.end) else self.max_steps
        with Interrupt() as interrupt, Progress(total, "flow", show) as progress:
            status = self._check()
            while status is None:
                elapsed = self.spent + clock_time.monotonic() - began
                if interrupt.requested:
                    status = Status("interrupted", f"Interrupted at {moment(solver)}.", ok=False)
                    break
                if solver.cost["steps"] >= self.max_steps:
                    status = Status(
                        "max_steps",
                        f"The budget of {self.max_steps} steps ended at {moment(solver)}: "
                        "raise max_steps or rtol.",
                        ok=False,
                    )
                    break
                if self.max_seconds is not None and elapsed > self.max_seconds:
                    status = Status(
                        "max_seconds",
                        f"The budget of {self.max_seconds:g} seconds ended at {moment(solver)}.",
                        ok=False,
                    )
                    break
                status = self._move()
                done = solver.t if math.isfinite(self.end) else solver.cost["steps"]
                progress.update(done, elapsed, f"loss {self._loss():.3g}")
                if status is None and self.checkpoint.due():
                    self.spent = elapsed
                    self.checkpoint.write(self.pack())
        Z, ls = self._final if self._final is not None else solver.state.neurons()
        return network_of(self.problem, Z, ls), status

    _final: tuple[Array, Array] | None = None

    def _loss(self) -> float:
        return float(self.problem.value(self.solver.f))

    def _check(self) -> Status | None:
        """Record the present if wanted; test the stops."""
        solver, status = self.solver, None
        for stop in self.stops:
            status = stop.met(solver, self.problem)
            if status is not None:
                break
        if status is None and solver.t >= self.end:
            status = Status("finished", f"The flow reached {moment(solver)}.")
        if status is None and solver.stuck > _MOST_ARRIVALS + 10 * solver.state.gid.size:
            status = Status("stuck", _UNDECIDED.format(moment(solver)), ok=False)
        if status is None and not math.isfinite(float(np.sum(solver.f))):
            status = Status("diverged", f"Outputs are not finite at {moment(solver)}.", ok=False)
        if self.recorder.next() <= solver.t or (status is not None and self.recorder.policy.ends):
            self._record(solver.t, *solver.state.neurons(), solver.log_time)
        return status

    def _move(self) -> Status | None:
        solver = self.solver
        limit = self.end - solver.t
        go = solver.leaper.worth(limit)
        if go is not None and math.isfinite(go[0]):
            start = solver.t
            solver.leaper.leap(*go)
            if limit - (solver.t - start) <= 1e-15 * solver.t:
                solver.t = self.end
            self._record_leap()
            return self._check()
        if go is not None or not math.isfinite(solver.h):
            status = Status("still", f"Nothing moves any more after {moment(solver)}.")
            if math.isfinite(self.end):
                solver.t = self.end
            if self.recorder.policy.ends or math.isfinite(self.end):
                self._still_records()
            return status
        h = solver.step(limit)
        if h == 0.0:
            return self._check()
        found = self._located()
        if found is not None:
            return found
        self._record_step(math.inf)
        start = solver.t
        solver.finish()
        if limit - h <= 1e-15 * max(solver.t, start):
            solver.t = self.end
        return self._check()

    def _still_records(self) -> None:
        solver = self.solver
        while (wanted := self.recorder.next()) <= solver.t:
            self._record(wanted, *solver.state.neurons(), solver.log_time)
        times = self.recorder._columns["times"]
        if self.recorder.policy.ends and (not times or times[-1] < solver.t):
            self._record(solver.t, *solver.state.neurons(), solver.log_time)

    def _located(self) -> Status | None:
        """End inside the step when a loss target is passed in it."""
        solver, problem = self.solver, self.problem
        targets = [s for s in self.stops if isinstance(s, Loss)]
        if not targets:
            return None
        goal = max(s.log_target for s in targets)
        if float(problem.log_value(solver.trial.outputs_at(1.0))) > goal:
            return None
        low, high = 0.0, 1.0
        for _ in range(50):
            mid = 0.5 * (low + high)
            if float(problem.log_value(solver.trial.outputs_at(mid))) > goal:
                low = mid
            else:
                high = mid
        t = solver.t + high * solver.pending.h
        self._record_step(t)
        self._final = solver.within_step(high)
        if self.recorder.policy.ends:
            self._record(t, *self._final, solver.log_time_at(high))
        solver.log_time = solver.log_time_at(high)
        solver.t = t
        return Status("loss", f"The loss fell to {shown(goal)}, the target, at {moment(solver)}.")

    # ------------------------------------------------------------------ results
    def trajectory(self, final: Network, status: Status, settings: Mapping[str, Any]) -> Trajectory:
        """The finished record, with log t and the events; a run cut short ends where it stopped."""
        solver = self.solver
        if not status.ok and self.recorder.policy.ends:
            self._record(solver.t, *solver.state.neurons(), solver.log_time)
        cost: dict[str, float] = {k: int(v) for k, v in solver.cost.items()}
        cost.update(cones=int(solver.state.U.shape[0]), log_time=float(solver.log_time))
        rows = np.vstack([np.empty((0, 4)), *solver.events])
        rows = rows[np.argsort(rows[:, 2], kind="stable")]
        stayed = int(np.sum(rows[:, 3] == BRANCH))
        if stayed and settings["on_branch"] == "stay":
            status = Status(status.code, f"{status} {_STAYED.format(stayed)}", ok=status.ok)
        run = self.recorder.trajectory(final, status, cost, settings)
        events = {
            "neuron": rows[:, 0].astype(np.int64),
            "sample": rows[:, 1].astype(np.int64),
            "time": rows[:, 2],
            "kind": rows[:, 3].astype(np.int64),
        }
        observables = dict(run.observables)
        dims = dict(run.observable_dims)
        if solver.state.data.by_loss:
            observables["log_time"] = np.array(self.log_times)
            dims["log_time"] = ()
        return replace(run, observables=observables, observable_dims=dims, events=events)

    # ------------------------------------------------------------------ checkpoints
    def pack(self) -> dict[str, NDArray]:
        """Everything the continuation depends on."""
        solver, s = self.solver, self.solver.state
        numbers = [solver.t, solver.log_time, solver.h, solver.scale, solver.leaper.still]
        numbers += [solver.top, float(solver.stuck), self.spent]
        names = sorted(solver.cost)
        return {
            **self.recorder.pack(),
            "numbers": np.array([*numbers, solver.least_gradient, float(solver.least_at)]),
            "cost_names": np.array(names),
            "cost_values": np.array([solver.cost[k] for k in names]),
            "events": np.vstack([np.empty((0, 4)), *solver.events]),
            "log_times": np.array(self.log_times),
            "Z": s.Z,
            "ls": s.ls,
            "U": s.U,
            "gid": s.gid,
            "C": s.C,
            "growth": s.growth,
        }

    def unpack(self, packed: Mapping[str, NDArray]) -> None:
        """Restore what :meth:`pack` gave."""
        self.recorder.unpack(packed)
        old = self.solver
        V = packed["U"][packed["gid"]]
        state = State(old.state.data, packed["Z"].copy(), packed["ls"].copy(), V)
        state.gid, state.U = packed["gid"].copy(), packed["U"].copy()
        state._keys = {u.tobytes(): g for g, u in enumerate(state.U)}
        state.rebuild()
        state.C[:] = packed["C"]
        state.growth[:] = packed["growth"]
        state.wind()
        solver = Solver(state, old.rtol, old.policy)
        numbers = [float(v) for v in packed["numbers"]]
        solver.t, solver.log_time, solver.h, solver.scale = numbers[:4]
        solver.leaper.still, solver.top = numbers[4:6]
        solver.stuck, self.spent = int(numbers[6]), numbers[7]
        solver.least_gradient, solver.least_at = numbers[8], int(numbers[9])
        names = [str(k) for k in packed["cost_names"]]
        solver.cost.clear()
        solver.cost.update(dict(zip(names, map(int, packed["cost_values"]), strict=True)))
        solver.events = [packed["events"]]
        self.log_times = [float(v) for v in packed["log_times"]]
        self.solver = solver
