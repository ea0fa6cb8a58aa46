"""[MMV24]_: traps of positively correlated data, checked along runs and in closed form."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.claims.claim import Found, Outcome, claim, predicate
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import (
    balanced_start,
    gradient_flow,
    margin_loss,
    no_leak,
    positively_correlated,
)
from reluflow.claims.invariants import DRIFT, ROUNDING, dead_neurons_move
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most, equals
from reluflow.network import Network
from reluflow.papers.mmv24.constants import Constants
from reluflow.papers.mmv24.runs import experiment_on, long_run, sides, trapped_run
from reluflow.problem import Problem

GIVEN = [gradient_flow, positively_correlated, margin_loss, no_leak, balanced_start]
TRAPPED: dict[str, Any] = {
    "needs": ("path",),
    "given": GIVEN,
    "example": trapped_run,
    "quick": {"m": 40, "t_end": 10.0},
    "full": {"m": 1000, "t_end": 40.0},
}


def trap_claim(id: str, **options: Any) -> Callable[..., Callable[[Evidence], Outcome]]:
    """Register a check on runs of SEP data and of TOY6, where some neurons die."""

    def wrap(check: Callable[[Evidence], Outcome]) -> Callable[[Evidence], Outcome]:
        shared = {**TRAPPED, **options}
        given = [*shared.pop("given"), all_trapped]
        claim(id, given=given, **shared)(check)
        experiment_on(
            id,
            given=given,
            example=long_run,
            part="TOY6",
            quick={"m": 30, "log_eps": -12.0},
            full={"m": 500},
            reason="from e^-12: from e^-60, tried first, rounding hides the slack of T1.2c",
        )(check)
        return check

    return wrap


@predicate("every neuron is trapped by the end of the run (t_1 has passed)")
def all_trapped(evidence: Evidence) -> tuple[bool, str]:
    """Each neuron is in S_+ (a > 0), S_- (a < 0) or S_dead at the last record."""
    if not evidence.states:
        return False, "there is no network"
    outside = int((traps_of(evidence.problem, evidence.states[-1]) == 0).sum())
    return outside == 0, f"{outside} neurons outside"


@claim("MMV24-P46", **TRAPPED)
def one_way_flips(evidence: Evidence) -> list[Comparison]:
    """Positive neurons only gain positive and lose negative samples; negative ones mirrored."""
    p = evidence.problem
    wanted = np.sign(evidence.path()[0].a)[:, None] * np.sign(p.y)  # side an activation may flip to
    last = sides(p, evidence.path()[0])
    forbidden, flips = 0, np.zeros(wanted.shape, dtype=int)
    for net in evidence.path()[1:]:
        now = sides(p, net)
        flipped = (now != 0) & (last != 0) & (now != last)
        forbidden += int((flipped & (now != wanted)).sum())
        flips += flipped
        last = np.where(now != 0, now, last)
    return [
        equals(forbidden, 0, tolerance=0, what="forbidden flips"),
        at_most(flips.max(), 1, what="most flips of one neuron on one sample"),
    ]


def count_escapes(evidence: Evidence) -> int:
    """Neurons that leave S_+ (positive) or S_- (negative) after a record inside."""
    p = evidence.problem
    sign = np.sign(evidence.path()[0].a)[:, None] * np.sign(p.y)
    inside = np.zeros(evidence.path()[0].m, dtype=bool)
    left = 0
    for net in evidence.path():
        side = sides(p, net)
        left += int((inside & (side * sign < 0).any(axis=1)).sum())
        inside |= (side == sign).all(axis=1)
    return left


@claim("MMV24-L12", form="repaired", part="classes", **TRAPPED)
def traps_hold(evidence: Evidence) -> Comparison:
    """S_+ traps positive neurons and S_- negative ones."""
    return equals(count_escapes(evidence), 0, tolerance=0, what="neurons that leave S_+ or S_-")


@trap_claim("MMV24-T1.2a")
def all_traps_hold(evidence: Evidence) -> list[Comparison]:
    """After t_1 every neuron stays in S_+, S_- or S_dead."""
    return [
        equals(count_escapes(evidence), 0, tolerance=0, what="neurons that leave S_+ or S_-"),
        dead_neurons_move(evidence),
    ]


def first_trapped_record(evidence: Evidence) -> int:
    """First record with every neuron in a trap."""
    inside = [(traps_of(evidence.problem, net) != 0).all() for net in evidence.states]
    return int(np.argmax(inside))


@trap_claim("MMV24-INV")
def group_invariant(evidence: Evidence) -> Comparison:
    """After t_1 W_s W_s^T - a_s a_s^T (rows of the group s) is constant."""
    since = first_trapped_record(evidence)
    home = traps_of(evidence.problem, evidence.path()[since])
    worst = 0.0
    for s in (1, -1):
        group = home == s
        if not group.any():
            continue
        first = _gram(evidence.path()[since], group)
        for net in evidence.path()[since:]:
            size = np.sum(net.weights()[1][group] ** 2)
            worst = max(worst, float(np.abs(_gram(net, group) - first).max() / size))
    return at_most(worst, DRIFT * evidence.rtol, error=1e-13, what="drift over the group's norm^2")


def traps_of(p: Problem, net: Network) -> NDArray[np.int64]:
    """1 in S_+, -1 in S_-, 2 dead, 0 in none, for neurons of the right sign.

    Sides are those of :func:`sides`: a neuron at rest on the edge of S_dead is in it.
    """
    active = sides(p, net) > 0
    home = np.where((active == (p.y > 0)).all(axis=1) & (net.a > 0), 1, 0)
    home = np.where((active == (p.y < 0)).all(axis=1) & (net.a < 0), -1, home)
    return np.where(active.any(axis=1), home, 2)


def _gram(net: Network, group: NDArray[np.bool_]) -> Array:
    W, a = net.weights()
    return W[group] @ W[group].T - np.outer(a[group], a[group])


@trap_claim("MMV24-T1.2c", needs=("path", "start"))
def low_rank(evidence: Evidence) -> Found:
    """From t_1 on |W_s|_F^2 <= |W_s|_2^2 + 2 sum |w_j(t_1)|^2, each group, and twice that for W.

    Where no |w_j(t_1)|^2 is above the 2 eps W_max^2/sqrt(h) of Lemma 3, as for t_1 <= T, the slack
    is at most 4 eps W_max^2/sqrt(h) a neuron. |W| grows at every record, so that the slack counts
    for less and less and the stable rank ends below 2.
    """
    path = evidence.path()[first_trapped_record(evidence) :]
    home, sizes = traps_of(evidence.problem, path[0]), np.exp(2 * path[0].log_norms)
    eps, width = math.exp(Constants(evidence.problem, evidence.first()).log_eps), path[0].m
    small = bool((sizes <= 2 * eps / math.sqrt(width)).all())
    weights = [net.weights()[0] for net in path]
    found = []
    for name, rows, times in (("S_+", home == 1, 1), ("S_-", home == -1, 1), ("all", home != 0, 2)):
        if rows.any():
            gap, error = max((_excess_norm2(W[rows], times) for W in weights), key=sum)
            slack = 2 * float(sizes[rows].sum())
            what = f"|W|_F^2 - {'2 ' if times == 2 else ''}|W|_2^2, {name}"
            found.append(at_most(gap / slack, 1.0, error=error / slack, what=f"({what}) / slack"))
            if small:
                most = 4 * eps * float(rows.sum()) / math.sqrt(width)
                found.append(
                    at_most(gap, most, error=error, what=f"{what}; 4 eps W_max^2/sqrt(h) a neuron")
                )
    size = np.log([np.sum(W**2) for W in weights])
    top = float(np.linalg.norm(weights[-1], 2)) ** 2
    if len(size) > 1:
        found.append(
            at_least(
                np.diff(size).min(),
                0.0,
                error=evidence.rtol,
                what="least growth of log |W|_F^2 between records",
            )
        )
    found.append(
        at_most(
            np.exp(size[-1]) / top,
            2.0,
            error=2 * float(sizes.sum()) / top,
            what="stable rank at the end",
        )
    )
    note = "" if small else "Lemma 3 does not reach to t_1: its slack is not compared."
    return Found(found, note=note)


def _excess_norm2(W: Array, times: int) -> tuple[float, float]:
    """|W|_F^2 - times |W|_2^2 from singular values, and its rounding."""
    s = np.linalg.svd(W, compute_uv=False)
    extra = (times - 1) * float(s[0]) ** 2
    error = s.size * float(ROUNDING * s[0]) ** 2 + ROUNDING * extra
    return float(np.sum(s[1:] ** 2)) - extra, error


@trap_claim("MMV24-R2", needs=("end",), given=GIVEN[1:4])
def all_classified(evidence: Evidence) -> Found:
    """Once S_+ and S_- both hold neurons and no other is alive, all data are classified rightly.

    Looked at from t_1 on, each class with the largest neuron of its group at norm 1.
    """
    p, path = evidence.problem, evidence.states[first_trapped_record(evidence) :]
    home = traps_of(p, path[0])
    both = Hypothesis("S_+ and S_- both hold neurons", bool((home == 1).any() & (home == -1).any()))
    found = []
    for s in (1, -1) if both.ok else ():
        unit = (net.scaled(-float(net.log_norms[home == s].max())) for net in path)
        least = min(float(np.min(s * p.outputs(net)[s * p.y > 0])) for net in unit)
        found.append(
            at_least(least, 0.0, error=ROUNDING, what=f"least y f / max |w|^2, sign {s:+d}")
        )
    return Found(found, [both])
