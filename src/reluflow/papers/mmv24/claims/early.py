"""[MMV24]_ Lemma 3: until T nothing has grown. Also the assumptions, and regular solutions."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from reluflow.claims.claim import Outcome, assumption, claim
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import (
    balanced_start,
    gradient_flow,
    no_leak,
    positively_correlated,
)
from reluflow.claims.verdict import Comparison, at_most, equals
from reluflow.network import Network, initialize
from reluflow.papers.mmv24.claims.constants import (
    both_classes,
    constants,
    early_loss,
    early_scale,
    elsewhere,
    not_aligned,
)
from reluflow.papers.mmv24.claims.traps import sides
from reluflow.problem import Problem, datasets

EARLY = [gradient_flow, early_loss, balanced_start, early_scale]
LEAKS = (0.1, 0.5, 0.99)  # the paper's 1 is a linear network, which Problem refuses


def unit_start(problem: Problem, m: int, seed: int) -> Network:
    """Balanced Gaussian directions, the longest of norm 1."""
    net = initialize(problem, m, scale=1.0, kind="balanced", normalize="none", rng=seed)
    return net.scaled(-float(net.log_norms.max()))


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
    from reluflow.gradientflow.flow import flow

    problem = datasets.toy6(loss=loss, reduction=reduction, leak=leak)
    net = unit_start(problem, m, seed).scaled(-exponent * math.log(10.0))
    T = constants(Evidence.of(problem, start=net)).T
    run = flow(problem, net, t_end=1.5 * T, save=np.linspace(0.0, 1.5 * T, 91), rtol=1e-10)
    return Evidence.of(problem, run)


@cache
def toy_start(seed: int) -> Evidence:
    """TOY6 with 20 Gaussian neurons that have not moved."""
    problem = datasets.toy6(reduction="sum")
    return Evidence.of(problem, start=unit_start(problem, 20, seed).scaled(-14.0))


assumption("MMV24-A1", early_loss, positively_correlated, example=toy_start)
assumption(
    "MMV24-A2", both_classes, balanced_start, not_aligned, needs=("start",), example=toy_start
)


def until_T(evidence: Evidence) -> list[Network]:
    """Records up to T."""
    T = constants(evidence).T
    return [
        net for net, t in zip(evidence.path(), evidence.times, strict=True) if t <= T * (1 + 1e-12)
    ]


def stays_small(evidence: Evidence) -> list[Comparison]:
    """Lemma 3: until T, in logarithms, |w|^2 <= 2 eps/sqrt(h) and |f| <= 2 eps sqrt(h) X_max."""
    c, half = constants(evidence), 0.5 * math.log(evidence.path()[0].m)
    path = until_T(evidence)
    norm = max(2 * float(net.log_norms.max()) for net in path)
    output = max(log_output(evidence.problem, net) for net in path)
    error = 100 * evidence.rtol
    return [
        at_most(norm, math.log(2) + c.log_eps - half, error=error, what="log max |w|^2 until T"),
        at_most(
            output,
            math.log(2 * c.X_max) + c.log_eps + half,
            error=error,
            what="log max |f| until T",
        ),
    ]


def log_output(problem: Problem, net: Network) -> float:
    top = float(net.log_norms.max())
    size = float(np.abs(problem.outputs(net.scaled(-top))).max())
    return math.log(size) + 2 * top if size > 0 else -math.inf


def on_early_runs(id: str, check: Callable[[Evidence], Outcome]) -> None:
    """Register a check on early runs: the plain ones, with leaks, and of the mean logistic loss."""
    size: dict[str, Any] = {"m": 20, "exponent": 6.0}
    full = {"m": 500}
    needs = ("path", "start")
    claim(id, needs=needs, given=EARLY, example=early_run, quick=size, full=full)(check)
    others: dict[str, dict[str, Any]] = {f"leak {leak:g}": {"leak": leak} for leak in LEAKS}
    others["mean logistic"] = {"loss": "logistic", "reduction": "mean"}
    for part, more in others.items():
        elsewhere(id, check, EARLY, early_run, part=part, quick={**size, **more}, full=full)


on_early_runs("MMV24-L3", stays_small)


@claim(
    "MMV24-Def1",
    needs=("path",),
    given=[gradient_flow, no_leak],
    example=early_run,
    quick={"m": 40, "exponent": 30.0},
    full={"m": 1000},
)
def is_regular(evidence: Evidence) -> Comparison:
    """A regular solution: no neuron that is in S_dead at a record is outside at a later one.

    Neurons that rest on the edge of S_dead have rounding for their side there.
    """
    gone = np.zeros(evidence.path()[0].m, dtype=bool)
    back = 0
    for net in evidence.path():
        active = (sides(evidence.problem, net) > 0).any(axis=1)
        back += int((gone & active).sum())
        gone |= ~active
    return equals(back, 0, tolerance=0, what="neurons that leave S_dead")
