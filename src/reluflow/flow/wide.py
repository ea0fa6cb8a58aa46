"""Gradient flow of wide networks on many samples: BLAS, step control, kinks not located."""

from __future__ import annotations

import math
import time as clock_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import RK45

from reluflow.flow.driver import network_of
from reluflow.flow.stops import Loss, Predicate, Stop
from reluflow.kernels.flow_pull import pull
from reluflow.kernels.flow_types import Data
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.runtime import Checkpoint, Interrupt, Progress
from reluflow.trajectory import Status, Trajectory
from reluflow.trajectory.recorder import Recorder

Array = NDArray[np.float64]
NOTE = "Kinks were not located: step control alone bounds the error."


class Wide:
    """State (m, d + 1) in units of exp(ls), moved by the 5(4) pair of Dormand and Prince."""

    def __init__(self, data: Data, net: Network, rtol: float) -> None:
        self.data, self.rtol = data, rtol
        Z = np.column_stack([net.W, net.a])
        size = np.linalg.norm(Z, axis=1)
        size[size == 0] = 1.0
        self.Z, self.ls = Z / size[:, None], net.log_factors + np.log(size)
        self.t, self.log_time, self.h = 0.0, -math.inf, 0.0
        self.steps = self.rejected = 0
        self.f = np.empty(data.y.size)
        self.rate = self.velocity(self.Z)
        fast = np.max(np.linalg.norm(self.rate, axis=1), initial=0.0)
        self.h = 0.01 / fast if fast > 0 else 1.0
        self.log_loss = self._log_loss

    def velocity(self, Z: Array) -> Array:
        """(a D, <w, D>) of every neuron, slopes from the present signs."""
        X, leak = self.data.X, self.data.leak
        W, a = np.ascontiguousarray(Z[:, :-1]), Z[:, -1]
        S = X @ W.T
        slopes = np.where(S > 0, 1.0, leak)
        self.f = (S * slopes) @ (a * np.exp(2.0 * self.ls))
        c = np.empty_like(self.f)
        self._log_loss = pull(self.data, self.f, c)
        D = (slopes * c[:, None]).T @ X
        return np.column_stack([a[:, None] * D, np.sum(W * D, axis=1)])

    def step(self, limit: float) -> None:
        """One accepted step of at most ``limit``."""
        while True:
            h = min(self.h, limit)
            K = [self.rate]
            for s in range(1, 6):
                K.append(
                    self.velocity(
                        self.Z + h * sum(q * k for q, k in zip(RK45.A[s], K, strict=False))
                    )
                )
            new = self.Z + h * sum(q * k for q, k in zip(RK45.B, K, strict=True))
            K.append(self.velocity(new))
            e = h * sum(q * k for q, k in zip(RK45.E, K, strict=True))
            size = np.linalg.norm(new, axis=1)
            size[size == 0] = 1.0
            error = float(np.max(np.linalg.norm(e, axis=1) / size)) / self.rtol
            if not math.isfinite(error):
                error = 1e10
            factor = min(5.0, 0.9 * max(error, 1e-10) ** -0.2)
            if error <= 1.0:
                break
            self.rejected += 1
            self.h = h * max(0.2, factor)
        if h == self.h or factor < 1.0:
            self.h = h * factor
        dt = math.log(h) - (0.5 * (self.log_loss + self._log_loss) if self.data.by_loss else 0.0)
        self.log_time = float(np.logaddexp(self.log_time, dt))
        self.t += h
        self.Z, self.rate, self.log_loss = new, K[-1], self._log_loss
        self.steps += 1
        if size.max() > 1e20 or size.min() < 1e-20:
            self.Z /= size[:, None]
            self.rate /= size[:, None]
            self.ls += np.log(size)

    def residual(self) -> float:
        """Norm of the gradient, and of the largest relative velocity of a growing neuron."""
        grow = np.sum(self.Z * self.rate, axis=1) / np.maximum(np.sum(self.Z**2, axis=1), 1e-300)
        size = np.linalg.norm(self.rate, axis=1) * np.exp(self.ls)
        return max(float(np.linalg.norm(size)), float(np.max(grow, initial=0.0)))


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
    """The loop of :func:`reluflow.flow.flow` without location of kinks."""
    run = Wide(data, net, rtol)
    packed = checkpoint.read()
    if packed is not None:
        recorder.unpack(packed)
        run.Z, run.ls, run.rate = packed["Z"], packed["ls"], packed["rate"]
        numbers = [float(v) for v in packed["numbers"]]
        run.t, run.log_time, run.h, run.log_loss = numbers[:4]
        run.steps, run.rejected = int(numbers[4]), int(numbers[5])
        run.velocity(run.Z)

    def pack() -> dict[str, NDArray]:
        numbers = [run.t, run.log_time, run.h, run.log_loss, run.steps, run.rejected]
        return {**recorder.pack(), "Z": run.Z, "ls": run.ls, "rate": run.rate,
                "numbers": np.array(numbers, float)}  # fmt: skip

    began, status = clock_time.monotonic(), None
    total = end if math.isfinite(end) else float(max_steps)
    with Interrupt() as interrupt, Progress(total, "flow", progress) as bar:
        while status is None:
            status = _ended(run, problem, stops, end)
            elapsed = clock_time.monotonic() - began
            if status is None and interrupt.requested:
                status = Status("interrupted", f"Interrupted at {run.t:.6g}. {NOTE}", ok=False)
            if status is None and run.steps >= max_steps:
                status = Status("max_steps", f"{max_steps} steps were taken. {NOTE}", ok=False)
            if status is None and max_seconds is not None and elapsed > max_seconds:
                status = Status("max_seconds", f"{max_seconds:g} s have passed. {NOTE}", ok=False)
            if recorder.next() <= run.t or (status is not None and recorder.policy.ends):
                recorder.record(run.t, run.steps, run.t, network_of(problem, run.Z, run.ls))
            if status is not None:
                break
            goal = min(recorder.next(), end)
            run.step(goal - run.t)
            if abs(goal - run.t) <= 1e-14 * run.t:
                run.t = goal
            bar.update(run.t if math.isfinite(end) else run.steps, elapsed)
            if checkpoint.due():
                checkpoint.write(pack())
    if status.code == "interrupted":
        checkpoint.write(pack())
    else:
        checkpoint.remove()
    cost = {"steps": run.steps, "rejected": run.rejected, "log_time": run.log_time}
    return recorder.trajectory(network_of(problem, run.Z, run.ls), status, cost, settings)


def _ended(run: Wide, problem: Problem, stops: tuple[Stop, ...], end: float) -> Status | None:
    if not np.isfinite(run.f).all():
        return Status("diverged", f"Outputs are not finite at {run.t:.6g}. {NOTE}", ok=False)
    for stop in stops:
        if isinstance(stop, Loss):
            if float(problem.log_value(run.f)) <= stop.log_target:
                return Status("loss", f"The loss fell to exp({stop.log_target:.6g}). {NOTE}")
        elif isinstance(stop, Predicate):
            if stop.test(problem, network_of(problem, run.Z, run.ls), run.t):
                return Status("predicate", f"The condition holds at {run.t:.6g}. {NOTE}")
        elif run.residual() <= getattr(stop, "tol", 1e-10):
            return Status("stationary", f"The gradient is below {stop}. {NOTE}")
    if run.t >= end:
        return Status("finished", f"The flow reached {end:.6g}. {NOTE}")
    return None
