"""[BF24]_: runs on which its phases are checked, where the phases end, and the runs of Figure 3."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from reluflow.arrays import Array, Mask
from reluflow.claims.evidence import Evidence
from reluflow.claims.invariants import dead
from reluflow.claims.verdict import Hypothesis
from reluflow.errors import MissingEvidence
from reluflow.gradientflow.flow import flow
from reluflow.network import Network, initialize
from reluflow.papers.bf24.data import least_squares
from reluflow.problem import Problem, datasets
from reluflow.trajectory import Trajectory

SMALL_SCALE = "the start is below a threshold that the theorem leaves inexplicit"
NEEDS = ("path", "start", "time")  # of checks along a run
EPS, EPS2, EPS3 = 0.25, 0.05, 0.05  # thresholds of the phases: time tau, norm, distance to beta*


@cache
def converged_run(seed: int, m: int, kind: str = "balanced") -> Evidence:
    """A run on the A3c points to its end."""
    problem = datasets.a3c()
    net = initialize(problem, m, scale=1e-3, kind=kind, rng=seed)
    times = np.concatenate([np.linspace(0.0, 60.0, 241), [200.0, 1000.0]])
    return Evidence.of(problem, flow(problem, net, t_end=1000.0, save=times))


@cache
def run_in_phases(seed: int, m: int, log_scale: float = -14.0, kind: str = "dominated") -> Evidence:
    """Three points of Assumption 3 from a scale at which phases are well apart, densely recorded.

    Sixteen neurons with a < 0 start within angles 0.1 down to scale/20 of D*: these keep active
    samples for longest (the angle grows like e^{|D*| t}), some of them into the last phase. Their
    |w| is a little below |a|: they shrink so far that an excess of one rounding would, in time,
    turn the sign of a.
    """
    problem = datasets.assumption3_box(0.09, seed)
    net = initialize(problem, m, log_scale=log_scale, kind=kind, rng=seed)
    D = problem.pull @ problem.X
    angle = np.arctan2(D[1], D[0]) + np.geomspace(0.1, np.exp(log_scale) / 20, 16) * np.tile(
        [1, -1], 8
    )
    W, a = net.W.copy(), net.a.copy()
    W[:16] = np.abs(a[:16, None]) * np.column_stack([np.cos(angle), np.sin(angle)]) * (1 - 1e-15)
    a[:16] = -np.abs(a[:16])
    net = Network(W, a, net.log_scale, net.leak, net.bias)
    growth = -log_scale / float(np.linalg.norm(D))
    times = np.concatenate([np.linspace(0.0, growth + 60.0, 801), growth + np.array([200.0, 900])])
    return Evidence.of(problem, flow(problem, net, t_end=float(times[-1]), save=times))


@cache
def aligning_run(
    seed: int, m: int, log_scale: float = np.log(1e-3), t_end: float = 3.0
) -> Evidence:
    """Early alignment on the three points of Figure 2, dominated start."""
    problem = datasets.three_points()
    net = initialize(problem, m, log_scale=log_scale, kind="dominated", rng=seed)
    run = flow(problem, net, t_end=t_end, save=np.linspace(0.0, t_end, 121))
    return Evidence.of(problem, run)


def state_at(evidence: Evidence, t: float) -> Network:
    """The network of a flow at time t, from the last record until then.

    The flow goes on from that record, by the same rule at ridges, so no later one stands for it.
    """
    times = evidence.times
    last = int(np.searchsorted(times, t * (1 + 1e-12), side="right")) - 1
    net, rest = evidence.path()[last], float(t - times[last])
    if rest <= 1e-12 * t:
        return net
    rule = str(evidence.trajectory().settings.get("on_branch", "stay"))
    return flow(evidence.problem, net, t_end=rest, on_branch=rule).final


def states_until(evidence: Evidence, tau: float) -> list[Network]:
    """Networks recorded until tau, and the one at tau; of a shorter run as far as it goes."""
    found = [net for net, t in zip(evidence.path(), evidence.times, strict=True) if t <= tau]
    return [*found, state_at(evidence, tau)] if evidence.times[-1] >= tau else found


def log_gain(net: Network, start: Network) -> Array:
    """log |a_j / a_j(0)|, 0 for a weight that starts at zero and stays there."""
    still = np.isneginf(net.log_outer) & np.isneginf(start.log_outer)
    return np.where(still, 0.0, net.log_outer) - np.where(still, 0.0, start.log_outer)


def log_total(net: Network) -> float:
    """log lambda, lambda^2 = sum_j a_j^2."""
    return 0.5 * float(logsumexp(2 * net.log_outer))


def ratios(net: Network) -> Array:
    """v_j = w_j / a_j; 0 for a neuron at zero."""
    safe = np.where(net.a == 0, 1.0, net.a)
    return np.where((net.a == 0)[:, None], 0.0, net.W / safe[:, None])


@dataclass(frozen=True, eq=False)
class PhasedRun:
    """A run of Section 4 cut into its phases.

    ``tau``, ``second`` and ``third`` end the alignment, the growth of the positive neurons to
    sum a^2 = eps2 and their way to |beta* - sum a w| = eps3; the latter two are the first records
    past the threshold, None if it is not reached.
    """

    evidence: Evidence
    eps: float = EPS
    eps2: float = EPS2
    eps3: float = EPS3
    reaching: ClassVar[str] = "the run reaches the end of the phase"

    def reached(self, *phases: str) -> Hypothesis:
        """Whether the run reaches the ends of these phases, "second" and "third"."""
        return Hypothesis(self.reaching, all(getattr(self, phase) is not None for phase in phases))

    def end_of(self, phase: str) -> int:
        """The record that ends a phase; raises :class:`MissingEvidence` if there is none."""
        record: int | None = getattr(self, phase)
        if record is None:
            raise MissingEvidence(f"the run does not reach the end of its {phase} phase: go on")
        return record

    @property
    def problem(self) -> Problem:
        return self.evidence.problem

    @property
    def start(self) -> Network:
        return self.evidence.first()

    @cached_property
    def times(self) -> Array:
        return self.evidence.times

    @cached_property
    def log_lambda(self) -> float:
        return log_total(self.start)

    @cached_property
    def beta(self) -> Array:
        """beta*, the least-squares fit."""
        return least_squares(self.problem)

    @cached_property
    def D_star(self) -> Array:
        """D* = mean y_k x_k."""
        return np.asarray(self.problem.pull @ self.problem.X)

    @cached_property
    def spectrum(self) -> tuple[float, float]:
        """Least and largest eigenvalue of H = X^T X / n."""
        values = np.linalg.eigvalsh(self.problem.X.T @ self.problem.X / self.problem.n)
        return float(values[0]), float(values[-1])

    @cached_property
    def positive(self) -> Mask:
        """I: a > 0 at the start and active somewhere."""
        return np.asarray((self.start.a > 0) & ~dead(self.problem, self.start))

    @cached_property
    def negative(self) -> Mask:
        """N: a < 0 at the start and active somewhere."""
        return np.asarray((self.start.a < 0) & ~dead(self.problem, self.start))

    @cached_property
    def mass(self) -> Array:
        """sum of a^2 over I at each record."""
        return np.array([np.sum(net.weights()[1][self.positive] ** 2) for net in self.path])

    @cached_property
    def gap(self) -> Array:
        """|beta* - sum of a w over I| at each record."""
        gaps = []
        for net in self.path:
            W, a = net.weights()
            gaps.append(np.linalg.norm(self.beta - (a * self.positive) @ W))
        return np.array(gaps)

    @cached_property
    def path(self) -> list[Network]:
        """Recorded networks."""
        return list(self.evidence.path())

    @property
    def tau(self) -> float:
        return -self.eps * self.log_lambda / float(np.linalg.norm(self.D_star))

    @cached_property
    def second(self) -> int | None:
        """Record of tau2."""
        return _first_true((self.mass >= self.eps2) & (self.times >= self.tau))

    @cached_property
    def third(self) -> int | None:
        """Record of tau3."""
        if self.second is None:
            return None
        found = _first_true(self.gap[self.second :] <= self.eps3)
        return None if found is None else self.second + found

    @cached_property
    def residual(self) -> Array:
        """D^t = sum of c_k x_k at each record."""
        p = self.problem
        return np.array([p.pull_at(p.outputs(net)) @ p.X for net in self.path])


def _first_true(true: Mask) -> int | None:
    return int(np.argmax(true)) if true.any() else None


SECTORS = 72  # of 5 degrees
SETTLED = 20.0  # time by which the first neuron has grown and few others still turn


def _sectors(net: Network) -> NDArray[np.int64]:
    """Sector of the plane in which each neuron lies."""
    angle = np.arctan2(net.W[:, 1], net.W[:, 0])
    return np.floor((angle / (2 * np.pi) + 0.5) * SECTORS).astype(np.int64) % SECTORS


def bundles(net: Network, share: float = 2e-3) -> list[tuple[float, float]]:
    """Bundles of neurons: neighbouring sectors of 5 degrees with weights of one sign.

    A sector counts if its sum of a |w| is at least ``share`` of that of all sectors, in absolute
    values. Of each bundle its angle (that of the sum of |a| w, in radians) and its part of that
    total.
    """
    at, weight = _sectors(net), np.sign(net.a) * np.exp(net.log_norms + net.log_outer)
    sums = np.bincount(at, weight, minlength=SECTORS)
    total = float(np.abs(sums).sum())
    sign = np.where(np.abs(sums) >= share * total, np.sign(sums), 0.0)
    found = []
    for first in np.flatnonzero((sign != 0) & (sign != np.roll(sign, 1))):
        length = 1
        while length < SECTORS and sign[(first + length) % SECTORS] == sign[first]:
            length += 1
        own = (first + np.arange(length)) % SECTORS
        there = np.isin(at, own) & (np.sign(net.a) == sign[first])
        towards = np.abs(weight[there]) @ net.directions[there]
        found.append(
            (float(np.arctan2(towards[1], towards[0])), float(np.abs(sums[own]).sum() / total))
        )
    return found


def neurons_in_effect(net: Network, share: float = 2e-3) -> int:
    """How many :func:`bundles` of neurons there are."""
    return len(bundles(net, share))


def teacher_run(draw: int, m: int, scale: float, t_end: float) -> Trajectory:
    """Gradient flow on forty points of the teacher, recorded at times that grow geometrically.

    Kinks are located once few neurons still turn, up to the width to which `flow` does so by
    itself. A neuron with |a| < |w| that slides on a kink may see its a change sign: the kink then
    repels it, and of the two solutions the one that leaves is taken, as descent does.
    """
    problem = datasets.stewart(rng=draw, loss="square")
    net = initialize(problem, m, scale=scale, kind="gaussian", rng=draw)
    rule: dict[str, Any] = {"observe": "outputs", "states": True}
    times = np.concatenate([[0.0], np.geomspace(0.5, SETTLED, 30)])
    early = flow(problem, net, t_end=SETTLED, save=times, kinks=False, **rule)
    times = np.geomspace(SETTLED, t_end, 80)[1:] - SETTLED
    rule["on_branch"] = "leave"
    return join_runs(early, flow(problem, early.final, t_end=t_end - SETTLED, save=times, **rule))


def join_runs(early: Trajectory, late: Trajectory) -> Trajectory:
    """A run and its continuation, whose first record (the last of the run) is left out."""
    keep = slice(int(late.times[0] == 0.0), None)
    before, after = early.path(), late.path()
    nets: dict[str, Any] = {
        "W": np.concatenate([before.W, after.W[keep]]),
        "a": np.concatenate([before.a, after.a[keep]]),
    }
    if before.log_scale is not None and after.log_scale is not None:
        nets["log_scale"] = np.concatenate([before.log_scale, after.log_scale[keep]])
    return replace(
        late,
        steps=np.concatenate([early.steps, early.steps[-1] + late.steps[keep]]),
        times=np.concatenate([early.times, early.times[-1] + late.times[keep]]),
        loss=np.concatenate([early.loss, late.loss[keep]]),
        log_loss=np.concatenate([early.log_loss, late.log_loss[keep]]),
        networks=replace(late.path(), **nets),
        observables={},
        observable_dims={},
    )
