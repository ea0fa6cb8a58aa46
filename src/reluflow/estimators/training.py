"""Training for estimators: by flow, by descent, or by the limit process without training."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from reluflow.arrays import Array, decay_rate, real_number
from reluflow.errors import ReluflowError
from reluflow.network import Network, initialize
from reluflow.problem import Problem
from reluflow.trajectory import Trajectory, every

METHODS = ("flow", "descent", "limit")
_RECORDS = 200  # along a run, to tell plateaus from jumps
_ROUNDS = 20  # of ascent to the fastest direction: enough for two digits of its rate
_RTOL = 1e-3  # of one step of a flow whose kinks are not located
_STABLE = 0.2  # step size of descent times the largest eigenvalue of X^T X / n
_MARGIN = 5.0  # least margin on the data at which a limit direction is shown


@dataclass(frozen=True, eq=False)
class Training:
    """What a training gave.

    Attributes
    ----------
    network : Network
        At the end.
    stages : tuple of Network
        One a plateau, in order; the last one is the end.
    jumps : array
        Times between the plateaus, in units of gradient flow.
    losses : array
        Losses of the plateaus.
    steps : int
        Steps taken; jumps for the limit process.
    result : Trajectory, JumpProcess or None
        What the method itself returned.
    """

    network: Network
    stages: tuple[Network, ...]
    jumps: Array
    losses: Array
    steps: int
    result: Any


@dataclass(frozen=True)
class Course:
    """How to train: the parameters of an estimator that say so."""

    n_neurons: Any
    scale: Any
    method: str
    duration: Any
    learning_rate: Any
    max_steps: Any
    seed: int
    weight_decay: Any = 0.0

    def check(self) -> None:
        """One sentence for what cannot be."""
        if self.method not in METHODS:
            raise ReluflowError(
                f"method must be one of {', '.join(map(repr, METHODS))}, got {self.method!r}"
            )
        if not real_number(self.duration, "duration") > 0.0:
            raise ReluflowError(f"duration must be positive, got {self.duration!r}: 5 is usual")
        if self.learning_rate is not None and not real_number(self.learning_rate, "lr") > 0.0:
            raise ReluflowError(f"learning_rate must be positive, got {self.learning_rate!r}")
        whole = isinstance(self.max_steps, int | np.integer) and self.max_steps >= 1
        if not whole or isinstance(self.max_steps, bool):
            raise ReluflowError(f"max_steps must be a whole number >= 1, got {self.max_steps!r}")
        decay_rate(self.weight_decay)

    def train(self, problem: Problem) -> Training:
        """Train on a problem; one whose samples do not pull leaves the network silent."""
        net = initialize(problem, self.n_neurons, self.scale, rng=self.seed)
        rate = growth_rate(problem, net)
        if not rate > 0.0:
            silent = np.array([problem.silent_loss])
            return Training(net, (net,), np.empty(0), silent, 0, None)
        if self.method == "limit":
            return self._predict(problem, net)
        size = max(-float(net.log_norms.max()), 1.0)
        # near the decay at which nothing is learned growth takes for ever: ten times as long, then
        grows = max(rate - float(self.weight_decay), 0.1 * rate)
        t_end = float(self.duration) * size / grows
        run = self._flow(problem, net, t_end)
        if not run.status.ok:
            warnings.warn(f"{run.status}", ConvergenceWarning, stacklevel=4)
        return _stages_of(run)

    def _flow(self, problem: Problem, net: Network, t_end: float) -> Trajectory:
        from reluflow.descent.descend import descend
        from reluflow.gradientflow.flow import flow

        if self.method == "flow":
            # kinks located to eight digits would cost a hundred times as much, and the score of
            # a model does not see them
            return flow(
                problem,
                net,
                t_end=t_end,
                save=every(t_end / _RECORDS),
                kinks=False,
                rtol=_RTOL,
                max_steps=int(self.max_steps),
                weight_decay=self.weight_decay,
                progress=False,
            )
        lr = self.learning_rate
        if lr is None:
            top = float(np.linalg.eigvalsh(problem.X.T @ problem.X / problem.n)[-1])
            lr = _STABLE / (top * max(1.0, float(np.abs(problem.y).max())))
        steps = max(1, min(int(np.ceil(t_end / lr)), int(self.max_steps)))
        save = every(max(1, steps // _RECORDS))
        return descend(
            problem,
            net,
            lr=float(lr),
            steps=steps,
            save=save,
            weight_decay=self.weight_decay,
            progress=False,
        )

    def _predict(self, problem: Problem, net: Network) -> Training:
        """The saddles of the limit process, nothing trained."""
        from reluflow.prediction.limit import limit

        process = limit(problem, net, weight_decay=self.weight_decay)
        if process.ending.startswith(("budget", "unresolved")):
            warnings.warn(process.status, ConvergenceWarning, stacklevel=5)
        stages = list(process.networks)
        if process.limit_direction is not None:
            stages[-1] = _at_margin(problem, process.limit_direction)
        times = process.jump_times(log_scale=float(net.log_norms.max()))
        losses = np.array([problem.loss_of(stage) for stage in stages])
        return Training(stages[-1], tuple(stages), times, losses, process.n_jumps, process)


def growth_rate(problem: Problem, net: Network) -> float:
    r"""About the rate at which the fastest of these neurons grows while the network is silent.

    Each direction v is sent to :math:`s D_u(v) / |D_u(v)|` a few times, u the signs of X v, which
    climbs s G; the value is at most the true one. With several outputs steps uphill climb G_C.
    """
    if problem.several:
        from reluflow.landscape.multioutput import uphill, value

        return float(
            value(problem, uphill(problem, problem.pull, net.directions, 3 * _ROUNDS)[0]).max()
        )
    c, sign, V = problem.pull, np.sign(net.a), net.directions
    for _ in range(_ROUNDS):
        slope = np.where(problem.X @ V.T > 0.0, 1.0, problem.leak)
        D = sign[:, None] * ((slope * c[:, None]).T @ problem.X)
        size = np.linalg.norm(D, axis=1, keepdims=True)
        V = np.divide(D, size, out=V.copy(), where=size > 0.0)
    Z = problem.X @ V.T
    return float(np.max(sign * (c @ np.maximum(Z, problem.leak * Z))))


def _at_margin(problem: Problem, direction: Network) -> Network:
    """A direction at the size at which its least margin is `_MARGIN`, if it has a positive one."""
    least = float(np.min(problem.y * problem.outputs(direction)))
    return direction.scaled(0.5 * np.log(_MARGIN / least)) if least > 0.0 else direction


def _stages_of(run: Trajectory) -> Training:
    """The plateaus of a run: of each the last record, of the last one the end."""
    from reluflow.trajectory.phases import phases

    steps = int(run.cost.get("steps", run.steps[-1]))
    if len(run) < 3:
        return Training(run.final, (run.final,), np.empty(0), run.loss[-1:], steps, run)
    seen = phases(run)
    path = run.path()
    at = [int(np.searchsorted(run.times, end, side="right")) - 1 for end in seen.plateaus[:, 1]]
    stages = [path[i] for i in at[:-1]] if len(at) > 1 else []
    losses = np.append(run.loss[at[:-1]], run.loss[-1]) if stages else run.loss[-1:]
    return Training(run.final, (*stages, run.final), seen.jumps, losses, steps, run)
