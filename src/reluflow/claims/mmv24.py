"""[MMV24]_: traps of positively correlated data, checked along runs and in closed form."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from reluflow.claims.claim import Found, claim, predicate
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import (
    balanced_start,
    gradient_flow,
    margin_loss,
    no_leak,
    positively_correlated,
)
from reluflow.claims.invariants import DRIFT, dead
from reluflow.claims.mmv24_geometry import in_s_minus, in_s_plus
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most, equals
from reluflow.network import Network, initialize
from reluflow.problem import Problem, datasets

Array = NDArray[np.float64]
GIVEN = [gradient_flow, positively_correlated, margin_loss, no_leak, balanced_start]
SURE = 1e-9  # relative distance to a hyperplane below which a side is not counted


@cache
def trapped_run(seed: int, m: int, t_end: float) -> Evidence:
    """A flow on SEP data from a small balanced start, past its alignment and growth."""
    from reluflow.flow.flow import flow

    problem = datasets.separable(0.6, 10, 3, rng=seed)
    net = initialize(problem, m, scale=1e-4, kind="balanced", normalize="none", rng=seed)
    times = np.concatenate([np.linspace(0, 0.1 * t_end, 200), np.linspace(0.1 * t_end, t_end, 100)])
    return Evidence.of(problem, flow(problem, net, t_end=t_end, save=np.unique(times)))


QUICK, FULL = {"m": 40, "t_end": 10.0}, {"m": 1000, "t_end": 40.0}


def sides(problem: Problem, net: Network) -> NDArray[np.int8]:
    """Sign of <w_j, x_i>, 0 within rounding of the hyperplane; shape (m, n)."""
    from reluflow.landscape import pattern

    return pattern(problem, net.W, SURE)


@predicate("every neuron is trapped by the end of the run (t_1 has passed)")
def all_trapped(evidence: Evidence) -> tuple[bool, str]:
    """Each neuron is in S_+ (a > 0), S_- (a < 0) or S_dead at the last record."""
    net = evidence.path[-1] if len(evidence.path) else evidence.final
    if net is None:
        return False, "there is no network"
    outside = int((_homes(evidence.problem, net) == 0).sum())
    return outside == 0, f"{outside} neurons outside"


@claim("MMV24-P46", needs=("path",), given=GIVEN, example=trapped_run, quick=QUICK, full=FULL)
def one_way_flips(evidence: Evidence) -> list[Comparison]:
    """Positive neurons only gain positive and lose negative samples; negative ones mirrored."""
    p = evidence.problem
    wanted = np.sign(evidence.path[0].a)[:, None] * np.sign(p.y)  # side an activation may flip to
    last = sides(p, evidence.path[0])
    forbidden, flips = 0, np.zeros(wanted.shape, dtype=int)
    for net in evidence.path[1:]:
        now = sides(p, net)
        flipped = (now != 0) & (last != 0) & (now != last)
        forbidden += int((flipped & (now != wanted)).sum())
        flips += flipped
        last = np.where(now != 0, now, last)
    return [
        equals(forbidden, 0, tolerance=0, what="forbidden flips"),
        at_most(flips.max(), 1, what="most flips of one neuron on one sample"),
    ]


def escapes(evidence: Evidence) -> int:
    """Neurons that leave S_+ (positive) or S_- (negative) after a record inside."""
    p = evidence.problem
    sign = np.sign(evidence.path[0].a)[:, None] * np.sign(p.y)
    inside = np.zeros(evidence.path[0].m, dtype=bool)
    left = 0
    for net in evidence.path:
        side = sides(p, net)
        left += int((inside & (side * sign < 0).any(axis=1)).sum())
        inside |= (side == sign).all(axis=1)
    return left


@claim(
    "MMV24-L12", form="repaired", part="classes", needs=("path",), given=GIVEN,
    example=trapped_run, quick=QUICK, full=FULL,
)  # fmt: skip
def traps_hold(evidence: Evidence) -> Comparison:
    """S_+ traps positive neurons and S_- negative ones."""
    return equals(escapes(evidence), 0, tolerance=0, what="neurons that leave S_+ or S_-")


@claim(
    "MMV24-T1.2a", needs=("path",), given=[*GIVEN, all_trapped], example=trapped_run,
    quick=QUICK, full=FULL,
)  # fmt: skip
def all_traps_hold(evidence: Evidence) -> list[Comparison]:
    """After t_1 every neuron stays in S_+, S_- or S_dead."""
    from reluflow.claims.invariants import dead_neurons_move

    return [
        equals(escapes(evidence), 0, tolerance=0, what="neurons that leave S_+ or S_-"),
        dead_neurons_move(evidence),
    ]


def settled(evidence: Evidence) -> int:
    """First record with every neuron in a trap."""
    inside = [(_homes(evidence.problem, net) != 0).all() for net in evidence.path]
    return int(np.argmax(inside))


@claim(
    "MMV24-INV", needs=("path",), given=[*GIVEN, all_trapped], example=trapped_run,
    quick=QUICK, full=FULL,
)  # fmt: skip
def group_invariant(evidence: Evidence) -> Comparison:
    """After t_1 W_s W_s^T - a_s a_s^T (rows of the group s) is constant."""
    since = settled(evidence)
    homes = _homes(evidence.problem, evidence.path[since])
    worst = 0.0
    for s in (1, -1):
        group = homes == s
        if not group.any():
            continue
        first = _gram(evidence.path[since], group)
        for net in evidence.path[since:]:
            size = np.sum(net.weights()[1][group] ** 2)
            worst = max(worst, float(np.abs(_gram(net, group) - first).max() / size))
    return at_most(worst, DRIFT * evidence.rtol, error=1e-13, what="drift over the group's norm^2")


def _homes(p: Problem, net: Network) -> NDArray[np.int64]:
    """1 in S_+, -1 in S_-, 2 dead, 0 in none, for neurons of the right sign."""
    home = np.where(in_s_plus(p, net.W) & (net.a > 0), 1, 0)
    home = np.where(in_s_minus(p, net.W) & (net.a < 0), -1, home)
    return np.where(dead(p, net), 2, home)


def _gram(net: Network, group: NDArray[np.bool_]) -> Array:
    W, a = net.weights()
    return W[group] @ W[group].T - np.outer(a[group], a[group])


@claim(
    "MMV24-T1.2c", needs=("path",), given=[*GIVEN, all_trapped], example=trapped_run,
    quick=QUICK, full=FULL,
)  # fmt: skip
def low_rank(evidence: Evidence) -> list[Comparison]:
    """From t_1 on |W_s|_F^2 <= |W_s|_2^2 + 2 sum |w_j(t_1)|^2, each group, and twice that for W.

    Where t_1 <= T, the sums are at most 2 eps W_max^2/sqrt(h) for each neuron by Lemma 3. |W|
    grows, so the stable rank ends below 2.
    """
    since = settled(evidence)
    first = evidence.path[since]
    homes, sizes = _homes(evidence.problem, first), np.sum(first.weights()[0] ** 2, axis=1)
    worst = {"S_+": -np.inf, "S_-": -np.inf, "all": -np.inf}
    for net in evidence.path[since:]:
        W = net.weights()[0]
        for name, rows, times in (("S_+", homes == 1, 1), ("S_-", homes == -1, 1),
                                  ("all", homes != 0, 2)):  # fmt: skip
            if rows.any():
                slack = 2 * float(sizes[rows].sum())
                gap = float(np.sum(W[rows] ** 2) - times * np.linalg.norm(W[rows], 2) ** 2)
                worst[name] = max(worst[name], gap / slack)
    W = evidence.path[-1].weights()[0]
    top = float(np.linalg.norm(W, 2)) ** 2
    return [
        *[at_most(gap, 1.0, error=1e-9, what=f"(|W|_F^2 - |W|_2^2) / slack, {name}")
          for name, gap in worst.items() if np.isfinite(gap)],
        at_least(top, float(np.linalg.norm(first.weights()[0], 2)) ** 2, what="|W|_2^2 grows"),
        at_most(np.sum(W**2) / top, 2 + 2 * sizes.sum() / top, what="stable rank at the end"),
    ]  # fmt: skip


@claim(
    "MMV24-R2", needs=("end",), given=[*GIVEN[1:4], all_trapped], example=trapped_run,
    quick=QUICK, full=FULL,
)  # fmt: skip
def all_classified(evidence: Evidence) -> Found:
    """Once S_+ and S_- both hold neurons and no other is alive, all data are classified rightly."""
    p, net = evidence.problem, evidence.final
    assert net is not None
    homes = _homes(p, net)
    both = Hypothesis(
        "S_+ and S_- both hold neurons", bool((homes == 1).any() & (homes == -1).any())
    )
    return Found([at_least(np.min(p.y * p.outputs(net)), 0.0, what="least y f")], [both])
