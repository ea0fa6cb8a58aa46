"""The loop of a flow: moves, records, stops, budgets, checkpoints, whatever the mover."""

from __future__ import annotations

import json
import math
import time as clock_time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.gradientflow.mover import Mover, Snapshot, time_in_words
from reluflow.gradientflow.stops import Stop, Threshold
from reluflow.problem import Problem
from reluflow.runtime import Checkpoint, Interrupt, Progress
from reluflow.runtime.plain import to_plain
from reluflow.trajectory import Status, Trajectory
from reluflow.trajectory.recorder import Recorder


class Loop:
    """Moves a network until something ends the run, and keeps its records.

    Parameters
    ----------
    problem : Problem
    mover : Mover
        At the start; it may hand over to another one.
    recorder : Recorder
    stops : tuple of Stop
    end : float
        Position of the clock to end at, infinity for none.
    max_steps, max_seconds
        Budgets; the seconds are those of all resumed parts.
    checkpoint : Checkpoint
    """

    def __init__(
        self,
        problem: Problem,
        mover: Mover,
        recorder: Recorder,
        stops: tuple[Stop, ...],
        end: float,
        max_steps: int,
        max_seconds: float | None,
        checkpoint: Checkpoint,
    ) -> None:
        self.problem, self.mover, self.recorder, self.stops = problem, mover, recorder, stops
        self.watches = [stop.watch(problem) for stop in stops]
        self.end, self.max_steps, self.max_seconds = end, max_steps, max_seconds
        self.checkpoint = checkpoint
        if max_seconds is not None:
            checkpoint.within_budget(max_seconds)
        self.log_times: list[float] = []  # of the records
        self.handovers: list[dict[str, Any]] = []
        self.remarks: list[str] = []  # of movers that handed over
        self.final: Snapshot | None = None  # where the run ended, if that is inside a step
        self.ended: Status | None = None  # how a run ended whose last state was kept
        self._resumed, self._before, self._began = False, 0.0, clock_time.monotonic()

    # ------------------------------------------------------------------ records
    def _record(self, state: Snapshot) -> None:
        net = state.network(self.problem)
        steps = self.mover.cost["steps"]
        if self.recorder.record(state.position, steps, state.position, net):
            self.log_times.append(state.log_time)

    def _record_within(self, until: float) -> None:
        """Keep what is wanted inside the prepared step, before a position."""
        while (wanted := self.recorder.next()) < until:
            self._record(self.mover.within(wanted))

    def _record_present(self, last: bool) -> None:
        """Keep the present if it is wanted; the last state is, unless positions were listed."""
        mover, recorder = self.mover, self.recorder
        ending = last and recorder.policy.ends and recorder.position < mover.t
        if recorder.next() <= mover.t or ending:
            self._record(mover.present())

    # ------------------------------------------------------------------ the loop
    @property
    def seconds(self) -> float:
        """Spent so far, before a checkpoint and after."""
        return self._before + clock_time.monotonic() - self._began

    def run(self, show: bool | str) -> Status:
        """Move until something ends the run; why it did."""
        if self.ended is not None:  # before a kill, or a disk that was full
            return self.ended
        self._began = clock_time.monotonic()
        mover, finite = self.mover, math.isfinite(self.end)
        status = None
        if not self._resumed:  # else all has been looked at before
            status = self._ended()
            self._record_present(status is not None)
        total = self.end if finite else self.max_steps
        with Interrupt() as interrupt, Progress(total, "flow", show, even=finite) as progress:
            while status is None:
                if interrupt.requested:
                    said = f"Interrupted at {time_in_words(mover)}."
                    status = Status("interrupted", said, ok=False)
                    break
                status = self._budget_spent() or self._move()
                if status is None:
                    self._hand_over()
                mover = self.mover
                if not progress.silent:
                    loss = float(self.problem.value(mover.f))
                    done = mover.t if finite else mover.cost["steps"]
                    progress.update(done, self.seconds, f"loss {loss:.3g}")
                if status is None and self.checkpoint.due():
                    self.checkpoint.write(self.pack())
        if status.code == "interrupted":
            self.checkpoint.write(self.pack())
        if not status.ok:
            self._record_present(last=True)
        if status.code != "interrupted":
            self.checkpoint.end(partial(self.pack, status))
        return status

    def _budget_spent(self) -> Status | None:
        mover, budget, remedy = self.mover, "", ""
        if mover.cost["steps"] >= self.max_steps:
            code, budget, remedy = (
                "max_steps",
                f"{self.max_steps} steps",
                ": raise max_steps or rtol",
            )
        elif self.max_seconds is not None and self.seconds > self.max_seconds:
            code, budget = "max_seconds", f"{self.max_seconds:g} seconds"
        if not budget:
            return None
        said = f"The budget of {budget} ended at {time_in_words(mover)}{remedy}."
        return Status(code, said, ok=False)

    def _ended(self) -> Status | None:
        """Why the flow ends here, or None."""
        mover = self.mover
        if not math.isfinite(float(np.sum(mover.f))):
            said = f"Outputs are not finite at {time_in_words(mover)}."
            return Status("diverged", said, ok=False)
        for watch in self.watches:
            status = watch.met(mover)
            if status is not None:
                return status
        if mover.t >= self.end:
            return Status("finished", f"The flow reached {time_in_words(mover)}.")
        return None

    def _move(self) -> Status | None:
        """One step with the records in it; a status if the run ends by it."""
        mover = self.mover
        reach = mover.step(self.end)
        if reach == math.inf:
            return self._rest()
        if reach is not None:
            status = self._passed()
            if status is not None:
                return status
            self._record_within(reach)
            mover.finish()
        status = self._ended()
        self._record_present(status is not None)
        return status

    def _rest(self) -> Status:
        """Nothing moves any more: whatever is still wanted is the present."""
        mover = self.mover
        status = Status("still", f"Nothing moves any more after {time_in_words(mover)}.")
        if math.isfinite(self.end):
            mover.t = self.end
        while (wanted := self.recorder.next()) < mover.t:
            self._record(mover.present()._replace(position=wanted))
        self._record_present(last=True)
        return status

    def _passed(self) -> Status | None:
        """End inside the prepared step where the first threshold is passed in it."""
        mover, first, met = self.mover, None, None
        for stop in self.stops:
            if isinstance(stop, Threshold):
                state = mover.where(partial(stop.excess, self.problem))
                if state is not None and (first is None or state.position < first.position):
                    first, met = state, stop
        if first is None or met is None:
            return None
        self._record_within(first.position)
        if self.recorder.policy.ends or self.recorder.next() <= first.position:
            self._record(first)
        self.final, mover.t, mover.log_time = first, first.position, first.log_time
        return met.reached(mover)

    def _hand_over(self) -> None:
        """Go on with another mover if the present one says so."""
        change = self.mover.handover()
        if change is None:
            return
        old, new = self.mover, change.mover
        self.handovers.append(
            {
                "at": time_in_words(old),
                "position": old.t,
                "to": new.kind,
                "rtol": new.rtol,
                "reason": change.reason,
            }
        )
        self.remarks.append(old.remark())
        self.mover = new

    # ------------------------------------------------------------------ results
    def trajectory(self, status: Status, settings: Mapping[str, Any]) -> Trajectory:
        """The finished record, with log t and the events."""
        mover = self.mover
        said = " ".join(filter(None, (str(status), *self.remarks, mover.remark())))
        status = Status(status.code, said, ok=status.ok)
        if self.handovers:
            settings = {**settings, "handovers": self.handovers}
        final = (self.final or mover.present()).network(self.problem)
        run = self.recorder.trajectory(final, status, mover.total_cost(), settings)
        if mover.events is not None:
            rows = np.vstack([np.empty((0, 4)), *mover.events])
            rows = rows[np.argsort(rows[:, 2], kind="stable")]
            events = {
                "neuron": rows[:, 0].astype(np.int64),
                "sample": rows[:, 1].astype(np.int64),
                "time": rows[:, 2],
                "kind": rows[:, 3].astype(np.int64),
            }
            run = replace(run, events=events)
        if not mover.data.by_loss:
            return run
        observables = {**run.observables, "log_time": np.array(self.log_times)}
        dims = {**run.observable_dims, "log_time": ()}
        return replace(run, observables=observables, observable_dims=dims)

    # ------------------------------------------------------------------ checkpoints
    def pack(self, ended: Status | None = None) -> dict[str, NDArray[Any]]:
        """Everything the continuation depends on, or how the run ended."""
        mover = self.mover
        about = {
            "mover": mover.kind,
            "cost": dict(mover.cost),
            "handovers": self.handovers,
            "remarks": self.remarks,
            "stops": [watch.memory for watch in self.watches],
            "ended": None if ended is None else [ended.code, str(ended), ended.ok],
        }
        packed = {**self.recorder.pack(), **{f"mover.{k}": v for k, v in mover.pack().items()}}
        packed["log_times"] = np.array(self.log_times)
        if self.final is not None:
            packed |= {f"final.{k}": np.asarray(v) for k, v in self.final._asdict().items()}
        return {
            **packed,
            "about": np.array(json.dumps(about, default=to_plain)),
            "seconds": np.array(self.seconds),
        }

    @staticmethod
    def kind_of_mover(packed: Mapping[str, NDArray[Any]]) -> str:
        """The kind of mover that a checkpoint holds."""
        return str(json.loads(str(packed["about"]))["mover"])

    def unpack(self, packed: Mapping[str, NDArray[Any]]) -> None:
        """Restore what :meth:`pack` gave; the mover is of the kind that was packed."""
        self.recorder.unpack(packed)
        mover, about = self.mover, json.loads(str(packed["about"]))
        mover.unpack({k[6:]: v for k, v in packed.items() if k[:6] == "mover."})
        mover.cost.clear()
        mover.cost.update(about["cost"])
        self.handovers, self.remarks = about["handovers"], about["remarks"]
        for watch, memory in zip(self.watches, about["stops"], strict=True):
            watch.memory = memory
        self.log_times = [float(v) for v in packed["log_times"]]
        if about.get("ended") is not None:
            code, said, ok = about["ended"]
            self.ended = Status(code, said, ok=ok)
        if "final.Z" in packed:
            position, log_time = float(packed["final.position"]), float(packed["final.log_time"])
            self.final = Snapshot(position, packed["final.Z"], packed["final.ls"], log_time)
        self._resumed, self._before = True, float(packed["seconds"])
