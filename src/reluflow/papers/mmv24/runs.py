"""[MMV24]_: starts and runs of its checks, and how a check is registered on several of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.claims.claim import Found, Outcome, Predicate, claim, experiment
from reluflow.claims.evidence import Evidence
from reluflow.claims.run import as_found
from reluflow.gradientflow.flow import flow
from reluflow.landscape import pattern
from reluflow.network import Network, initialize
from reluflow.papers.mmv24.constants import Constants, constants
from reluflow.problem import Problem, datasets
from reluflow.problem.losses import Exponential

CheckOfEvidence = Callable[[Evidence], Outcome]
SURE = 1e-9  # relative distance to a hyperplane below which a side is not counted
BESIDE = 1e-5  # distance in time of the records on either side of a kink


def unit_start(problem: Problem, m: int, seed: int) -> Network:
    """Balanced Gaussian directions, the longest of norm 1."""
    net = initialize(problem, m, scale=1.0, kind="balanced", normalize="none", rng=seed)
    return net.scaled(-float(net.log_norms.max()))


@cache
def toy_start(seed: int) -> Evidence:
    """TOY6 with 20 Gaussian neurons that have not moved."""
    problem = datasets.toy6(reduction="sum")
    return Evidence.of(problem, start=unit_start(problem, 20, seed).scaled(-14.0))


@cache
def early_run(
    seed: int,
    m: int,
    exponent: float,
    leak: float = 0.0,
    loss: str = "exponential",
    reduction: str = "sum",
) -> Evidence:
    """A flow on TOY6 from 10^-exponent until T, then half as long again."""
    problem = datasets.toy6(loss=loss, reduction=reduction, leak=leak)
    net = unit_start(problem, m, seed).scaled(-exponent * math.log(10.0))
    T = constants(Evidence.of(problem, start=net)).T
    run = flow(problem, net, t_end=1.5 * T, save=np.linspace(0.0, 1.5 * T, 91), rtol=1e-10)
    return Evidence.of(problem, run)


@cache
def drift_run(
    seed: int, m: int, leak: float = 0.0, reduction: str = "sum", kinks: bool = True
) -> Evidence:
    """A flow on TOY6 from 0.02 until the outputs are about 1, seven records at each of 60 times."""
    problem = datasets.toy6(reduction=reduction, leak=leak)
    net = unit_start(problem, m, seed).scaled(math.log(0.02))
    end = 1.2 * (problem.n if reduction == "mean" else 1)
    near = end * np.arange(-3, 4) / 3000
    times = np.linspace(end / 100, 0.99 * end, 60)[:, None] + near
    save = np.append(0.0, np.unique(times))
    return Evidence.of(problem, flow(problem, net, t_end=end, save=save, rtol=1e-11, kinks=kinks))


@cache
def trapped_run(seed: int, m: int, t_end: float) -> Evidence:
    """A flow on SEP data from a small balanced start, past its alignment and growth."""
    problem = datasets.separable(0.6, 10, 3, rng=seed)
    net = initialize(problem, m, scale=1e-4, kind="balanced", normalize="none", rng=seed)
    times = np.concatenate([np.linspace(0, 0.1 * t_end, 200), np.linspace(0.1 * t_end, t_end, 100)])
    return Evidence.of(problem, flow(problem, net, t_end=t_end, save=np.unique(times)))


@cache
def long_run(seed: int, m: int, log_eps: float, toy: bool = True, tail: float = 5.0) -> Evidence:
    """A flow on TOY6, or SEP data, past alignment and growth, then ``tail`` times as long."""
    problem = datasets.toy6(reduction="sum") if toy else datasets.separable(0.6, 10, 3, rng=seed)
    net = unit_start(problem, m, seed).scaled(log_eps)
    slowest = min(np.linalg.norm(problem.X[problem.y == s].sum(axis=0)) for s in (1.0, -1.0))
    growth = (-log_eps + 10.0) / slowest
    times = [
        np.linspace(0, 2, 100),
        np.linspace(2, growth, 200),
        np.geomspace(growth, tail * growth),
    ]
    save = np.unique(np.concatenate(times))
    return Evidence.of(problem, flow(problem, net, t_end=float(save[-1]), save=save))


def aligned(problem: Problem, unit: Network, log_eps: float, t_end: float) -> Evidence:
    """The flow from exp(log_eps) times a start, recorded on a grid, at and beside every kink."""
    grid = np.linspace(0.0, t_end, 101)
    first = flow(problem, unit.scaled(log_eps), t_end=t_end, save=grid)
    kinks = np.asarray(first.events.get("time", ()), dtype=float)
    times = np.unique(np.concatenate([grid, kinks, kinks - BESIDE, kinks + BESIDE]))
    times = times[(times >= 0) & (times <= t_end)]
    return Evidence.of(problem, flow(problem, unit.scaled(log_eps), t_end=t_end, save=times))


@cache
def scoped_run(seed: int, m: int, sep: bool = False) -> Evidence:
    """TOY6, or SEP data, from the scale that Eq. 28 asks for."""
    problem = datasets.separable(0.5, 8, 3, rng=seed) if sep else datasets.toy6(reduction="sum")
    unit = unit_start(problem, m, seed)
    return aligned(problem, unit, Constants(problem, unit).log_eps_max() - 1.0, 6.0)


@cache
def practical_run(seed: int, m: int) -> Evidence:
    """TOY6 from 1e-6."""
    problem = datasets.toy6(reduction="sum")
    return aligned(problem, unit_start(problem, m, seed), -6 * math.log(10.0), 2.0)


@cache
def near_run(seed: int, m: int, angle: float = 1e-2) -> Evidence:
    """Unit inputs with mu near 1, and one positive neuron within ``angle`` of x_-.

    From the scale of Eq. 28 with the smaller zeta, which is below that with the larger one.
    """
    turn = np.array([-0.1, 0.0, 0.1])
    Z = np.column_stack([np.cos(turn), np.sin(turn)])
    problem = Problem(
        np.vstack([Z, -Z]), np.repeat([1.0, -1.0], 3), loss=Exponential(), reduction="sum"
    )
    unit = unit_start(problem, m, seed)
    W, a = unit.W.copy(), unit.a.copy()
    W[0] = np.linalg.norm(W[0]) * np.array([-math.cos(angle), math.sin(angle)])
    a[0] = np.linalg.norm(W[0])
    unit = Network(W, a, unit.log_scale)
    return aligned(problem, unit, Constants(problem, unit).log_eps_max() - 1.0, 20.0)


def sides(problem: Problem, net: Network) -> NDArray[np.int8]:
    """Sign of <w_j, x_i>, 0 within rounding of the hyperplane; shape (m, n)."""
    return pattern(problem, net.W, SURE)


def experiment_on(
    id: str, *, given: Sequence[Predicate], example: Callable[..., Evidence], **options: Any
) -> Callable[[CheckOfEvidence], CheckOfEvidence]:
    """Register a check on one more run of our own; a user's evidence is looked at once."""

    def wrap(check: CheckOfEvidence) -> CheckOfEvidence:
        def look(**settings: Any) -> Found:
            evidence = example(**settings)
            hypotheses = [test(evidence) for test in given]
            if any(h.ok is False for h in hypotheses):
                return Found((), hypotheses)
            found = as_found(check(evidence))
            return Found(found.comparisons, [*hypotheses, *found.hypotheses], found.note)

        look.__doc__, look.__module__ = check.__doc__, check.__module__
        experiment(id, **options)(look)
        return check

    return wrap


def claim_on_runs(
    id: str,
    *,
    others: Mapping[str, Mapping[str, Any]],
    given: Sequence[Predicate],
    example: Callable[..., Evidence],
    quick: Mapping[str, Any],
    full: Mapping[str, Any],
    needs: Sequence[str] = ("path", "start"),
    **options: Any,
) -> Callable[[CheckOfEvidence], CheckOfEvidence]:
    """Register a check of evidence, and the same on ``others``: settings that differ, by part."""

    def wrap(check: CheckOfEvidence) -> CheckOfEvidence:
        shared: dict[str, Any] = {"given": given, "example": example, "full": full, **options}
        claim(id, needs=needs, quick=quick, **shared)(check)
        for part, more in others.items():
            experiment_on(id, part=part, quick={**quick, **more}, **shared)(check)
        return check

    return wrap
