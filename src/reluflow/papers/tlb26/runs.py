"""Runs on which the lemmas of [TLB26]_ are measured: draws, flows at small scales, plateaus."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.claims.verdict import Comparison, equals
from reluflow.errors import ReluflowError
from reluflow.gradientflow.flow import flow
from reluflow.network import Network, initialize
from reluflow.prediction.orthogonal import OrthogonalProcess, algorithm1
from reluflow.prediction.process import JumpProcess
from reluflow.problem import Problem, datasets
from reluflow.trajectory import Trajectory

EXPONENTS = (10, 40, 100)  # scales 1e-10, 1e-40, 1e-100
GRID = 400  # records spread over the whole run
ZOOM = 60  # records around each jump
SHARES = np.linspace(0.25, 0.75, 11)  # parts of a plateau away from the jumps at its ends


@cache
def draw(seed: int, index: int, mixed: bool) -> tuple[Problem, Network, float] | None:
    """One draw with its margin mu, None if it does not pass the filters of :func:`draws`."""
    rng = np.random.default_rng([seed, index])
    problem = datasets.orthonormal(16, law="normal" if mixed else "half_normal", rng=rng)
    net = initialize(
        problem,
        12 if mixed else 6,
        1.0,
        "sphere",
        rng,
        normalize="none",
        signs="random" if mixed else 1,
    )
    process = algorithm1(problem, net)
    M = process.mask
    whole = M.any(axis=0).all() and M.any(axis=1).all() and process.ending != "tie"
    if not whole or len(np.unique(process.groups)) < net.m:
        return None
    clear = process.gaps.min() >= 0.05 and process.times[-1] <= 8 * process.times[0]
    return (problem, net, process.margin) if clear else None


def draws(
    seed: int, count: int, mixed: bool = False, margin: float = 0.0
) -> list[tuple[Problem, Network]]:
    """n = 16, m = 6: A4 true, gaps of at least 5 %, last jump within 8 times the first.

    ``mixed`` has labels and neurons of both signs, and 12 neurons; ``margin`` is the least mu.
    """
    found: list[tuple[Problem, Network]] = []
    for index in range(10_000):
        made = draw(seed, index, mixed)
        if made is not None and made[2] >= margin:
            found.append(made[:2])
            if len(found) == count:
                break
    return found


def half_fit_times(times: Array, shares: Array) -> Array:
    """Times at which the shares f/y of samples, (records, k), pass 1/2; nan if never.

    Between records the odds f/(y - f) grow exponentially, as in the logistic law of one neuron.
    """
    share = np.clip(shares, 1e-300, 1 - 1e-16)
    odds = np.log(share / (1 - share))
    i, k = np.argmax(odds >= 0, axis=0), np.arange(odds.shape[1])
    before, after, t0, t1 = odds[i - 1, k], odds[i, k], times[i - 1], times[i]
    with np.errstate(invalid="ignore"):  # a sample that is never fitted
        return np.where(i > 0, t0 - (t1 - t0) * before / (after - before), np.nan)


def offsets_of(process: JumpProcess) -> Array:
    """Constants C_i of the jump times L tau_i + C_i, which a process from a network has."""
    if process.offsets is None:
        raise ReluflowError("the process has no constants of its jumps: predict from a network")
    return process.offsets


def wrong_counts(known: int, **processes: JumpProcess) -> list[Comparison]:
    """Processes with another number of jumps than is known, as comparisons that fail."""
    return [
        equals(process.n_jumps, known, tolerance=0, what=f"{name}: jumps")
        for name, process in processes.items()
        if process.n_jumps != known
    ]


@dataclass(frozen=True, eq=False)
class Course:
    """A flow from ``exp(-L)`` times a start, beside what Algorithm 1 predicts."""

    problem: Problem
    start: Network
    L: float
    process: OrthogonalProcess
    run: Trajectory

    @cached_property
    def rate(self) -> float:
        """c / n."""
        return float(self.problem.pull[0] / self.problem.y[0])

    @cached_property
    def outputs(self) -> Array:
        """f at every record, (records, n)."""
        return self.run["outputs"]

    @cached_property
    def log_norms(self) -> Array:
        """log|w_j| at every record, (records, m)."""
        return self.run["log_norms"]

    @cached_property
    def directions(self) -> Array:
        """Unit vectors, (records, m, d)."""
        W = self.run.path().W
        return np.asarray(W / np.linalg.norm(W, axis=2, keepdims=True))

    @cached_property
    def half_fits(self) -> Array:
        """Times at which f = y/2 on the largest label of each jump; nan if never."""
        return half_fit_times(
            self.run.times, self.outputs[:, self.leaders] / self.problem.y[self.leaders]
        )

    @cached_property
    def leaders(self) -> NDArray[np.int64]:
        """Sample with the largest label in each jump."""
        y = np.abs(self.problem.y)
        return np.array([s[np.argmax(y[s])] for s in self.process.samples])

    @cached_property
    def fitted_in_order(self) -> bool:
        """Whether the samples were fitted in the predicted order."""
        return bool((np.diff(self.half_fits) > 0).all() and np.isfinite(self.half_fits).all())

    @cached_property
    def carried_as_predicted(self) -> bool:
        """Whether the predicted neuron carries more than half of each of its samples at the end."""
        W, a = self.run.final.weights()
        parts = np.maximum(self.problem.X @ W.T, 0.0) * a / self.problem.y[:, None]
        return all(
            bool((parts[np.ix_(samples, who)].sum(axis=1) > 0.5).all())
            for samples, who in zip(self.process.samples, self.process.neurons, strict=True)
        )

    @cached_property
    def norm2(self) -> float:
        """Squared norm of all weights at the end."""
        return float(np.sum(np.exp(2 * self.run.final.log_norms)) * 2)

    def records(self, i: int) -> NDArray[np.int64]:
        """Indices of the records inside plateau i, between 25 % and 75 % of it."""
        low, high = self.ends(i)
        inner = (low + 0.25 * (high - low)) * self.L, (low + 0.75 * (high - low)) * self.L
        t = self.run.times
        return np.flatnonzero((t >= inner[0] * (1 - 1e-12)) & (t <= inner[1] * (1 + 1e-12)))

    def ends(self, i: int) -> tuple[float, float]:
        """Accelerated times between which plateau i lies; the last one ends at 1.3 tau_p."""
        nodes = np.concatenate([[0.0], self.process.times, [1.3 * self.process.times[-1]]])
        return float(nodes[i]), float(nodes[i + 1])

    @cached_property
    def hypothesis(self) -> Array:
        """H1 on plateaus 0..p, (p + 1, 4): exponents, fitted norms, residuals, 1 - cosine.

        Each is the largest error over the middle half of the plateau; norms are relative, the
        residuals relative to the largest label.
        """
        return np.array([self._hypothesis(i) for i in range(self.process.n_jumps + 1)])

    def _hypothesis(self, i: int) -> tuple[float, float, float, float]:
        process, at = self.process, self.records(i)
        on = process.active[i]
        beta = process.exponents_at(self.run.times[at] / self.L)
        dormant = ~on & (process.rates[i] > 0)
        exponent = np.abs(self.log_norms[at] / self.L - beta)[:, dormant].max(initial=0.0)
        v = {int(who[0]): v for who, v in zip(process.neurons, process.sizes, strict=True)}
        norms = [
            abs(math.exp(2 * x) / v[int(j)] - 1)
            for j in np.flatnonzero(on)
            for x in self.log_norms[at, j]
        ]
        fitted = np.concatenate([np.empty(0, int), *process.samples[:i]]).astype(int)
        y = self.problem.y
        left = np.abs(self.outputs[at] - y)[:, fitted].max(initial=0.0) / np.abs(y).max()
        cosine = np.sum(self.directions[at] * process.directions[i], axis=2)
        return exponent, max(norms, default=0.0), left, (1 - cosine[:, dormant]).max(initial=0.0)

    @cached_property
    def powers(self) -> Array:
        """kappa_i, (p + 1,): on the middle half of plateau i errors are about scale^kappa_i.

        By Algorithm 1 alone, the least of: -beta_j of a dormant neuron when that half ends; twice
        the time since the jump when it begins, times the rate at which a dormant neuron turns or
        the last one fits; mu/2, as scale^mu of a squared norm is scale^(mu/2) of a weight.
        """
        process, found = self.process, []
        for i in range(process.n_jumps + 1):
            low, high = self.ends(i)
            rest = ~process.active[i]
            sizes = -process.exponents_at(low + 0.75 * (high - low))[rest]
            rates = process.rates[i][rest & (process.rates[i] > 0)]
            fit = [self.rate * process.sizes[i - 1]] if i else []
            turns = 0.5 * (high - low) * np.append(rates, fit)
            found.append(min([*sizes, *turns, process.margin / 2 if i else math.inf]))
        return np.array(found)

    @cached_property
    def distances(self) -> Array:
        """Largest entry of theta - theta^i over the middle half of each plateau, (p + 1,)."""
        found = []
        for i in range(self.process.n_jumps + 1):
            W0, a0 = self.process.networks[i].weights()
            at = self.records(i)
            size = np.exp(self.log_norms[at])
            W = self.directions[at] * size[:, :, None]
            a = size * np.sign(self.start.a)
            found.append(max(np.abs(W - W0).max(), np.abs(a - a0).max()))
        return np.array(found)


@cache
def course(problem: Problem, start: Network, log_scale: float, rtol: float = 1e-10) -> Course:
    """The flow from exp(log_scale) times a start of norm 1, with records where they are needed."""
    process = algorithm1(problem, start)
    L = -log_scale
    nodes = np.concatenate([[0.0], process.times, [1.3 * process.times[-1]]])
    plateaus = [L * (a + SHARES * (b - a)) for a, b in pairwise(nodes)]
    rate = float(problem.pull[0] / problem.y[0])
    around = np.linspace(-12.0, 12.0, ZOOM)
    jumps = process.jump_times(log_scale=log_scale)
    zooms = [t + around / (rate * v) for t, v in zip(jumps, process.sizes, strict=True)]
    end = L * nodes[-1]
    times = np.unique(np.concatenate([np.linspace(0.0, end, GRID), *plateaus, *zooms]))
    times = times[(times >= 0.0) & (times <= end)]
    net = start.scaled(log_scale)
    run = flow(
        problem,
        net,
        t_end=end,
        save=times,
        observe=["outputs", "log_norms"],
        states=True,
        rtol=rtol,
    )
    return Course(problem, start, L, process, run)


def courses(seed: int, count: int, mixed: bool = False, margin: float = 0.0) -> list[list[Course]]:
    """For each draw its flows from 1e-10, 1e-40 and 1e-100."""
    return [
        [course(problem, net, -k * math.log(10.0)) for k in EXPONENTS]
        for problem, net in draws(seed, count, mixed, margin)
    ]


@cache
def golden_course(log_scale: float) -> Course:
    """The flow on the golden case."""
    problem = datasets.golden()
    return course(problem, Network(problem.known["W0"], np.ones(3)), log_scale)
