"""[MMV24]_: which patterns neurons go through and how fast, until all are trapped (Theorem 1.1).

The theorem speaks below exp(-10^4) or so; flows in logarithms go there. Activation counts
(k_+, k_-) of a neuron, and how long their paths take, are those of App. C.2.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.claims.claim import Found, claim, experiment
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import (
    balanced_start,
    gradient_flow,
    margin_loss,
    no_leak,
    positively_correlated,
)
from reluflow.claims.verdict import Comparison, Hypothesis, Status, at_least, at_most, equals
from reluflow.network import Network
from reluflow.papers.mmv24.constants import both_classes, not_aligned, small_start
from reluflow.papers.mmv24.runs import (
    SURE,
    Walk,
    claim_on_runs,
    experiment_on,
    near_run,
    practical_run,
    scoped_run,
)

DATA = [gradient_flow, margin_loss, no_leak, both_classes, positively_correlated]
START = [balanced_start, not_aligned]
SCOPE = [*DATA, *START, small_start("meant")]
NEEDS = ("path", "start", "flow", "time")
SIZES: dict[str, Any] = {"quick": {"m": 20}, "full": {"m": 500}}
SCOPED: dict[str, Any] = {
    "needs": NEEDS,
    "given": SCOPE,
    "example": scoped_run,
    **SIZES,
    "others": {"SEP": {"sep": True}},
}
IN_SCOPE: dict[str, Any] = {
    "given": SCOPE,
    "example": scoped_run,
    "full": {"m": 500},
    "expected": Status.HOLDS,
    "reason": "from the scale of Eq. 28, which only a flow in logarithms can start at",
}
FAR = 1e-3  # distance of records, in turns of a neuron, from which on they are not one place


@claim_on_runs("MMV24-DT", **SCOPED)
def leaves_patterns(evidence: Evidence) -> Found:
    """Until T a neuron outside its traps changes pattern within dwell(n_a)."""
    walk = Walk(evidence)
    ratios = stays_over_bound(walk, "meant")
    some = Hypothesis(
        "some neuron is outside its traps and has a dwell time to spend before T", bool(ratios)
    )
    longest = at_most(max(ratios, default=np.nan), 1.0, what="longest stay over its bound")
    return Found([longest, walk.agreement()], [some])


def stays_over_bound(walk: Walk, form: str) -> list[float]:
    """Stays outside the traps over dwell(n_a), where that much time is left before T."""
    ratios = []
    for stay in walk.stays():
        if walk.is_trapped(stay) or stay.begin > walk.c.T:
            continue
        bound = walk.c.dwell(int(stay.active.sum()), form)
        if stay.begin + bound <= walk.c.T:
            ratios.append((stay.end - stay.begin) / bound)
    return ratios


@claim_on_runs("MMV24-CAP", **SCOPED)
def avoids_cap(evidence: Evidence) -> Found:
    """Until T no neuron is in the zeta-cap of the other class, and those around it move away.

    How fast they do is measured between records: if d cos/dt is below a bound, so is its mean.
    """
    walk = Walk(evidence)
    c, zeta = walk.c, walk.c.zeta("meant")
    edge = -zeta * math.sqrt(c.mu) * c.X_min * c.unit / 2
    found = [
        equals(most_in_cap(walk, zeta), 0, tolerance=0, what="most neurons in the cap at once")
    ]
    speeds = _speeds_beside_cap(walk, zeta)
    if speeds:
        found.append(
            at_most(max(speeds), edge, error=1e-6, what="d cos(w, x_other)/dt beside the cap")
        )
    return Found(found)


def most_in_cap(walk: Walk, zeta: float) -> int:
    """Largest number of neurons, over records until T, in the zeta-cap of the other class."""
    return max(
        int((_place_beside_cap(walk, net)[0] & (_place_beside_cap(walk, net)[1] <= zeta)).sum())
        for net, t in zip(walk.evidence.path(), walk.evidence.times, strict=True)
        if t <= walk.c.T
    )


def _place_beside_cap(walk: Walk, net: Network) -> tuple[NDArray[np.bool_], Array, Array]:
    """Whether neurons are ahead of the sum x_other, sin^2 of the angle to it, and its cosine."""
    axes = np.array([walk.c.sums[-s] / np.linalg.norm(walk.c.sums[-s]) for s in (1, -1)])
    axis = axes[np.where(walk.sign > 0, 0, 1)]
    cosine = np.sum(net.directions * axis, axis=1)
    across = net.directions - cosine[:, None] * axis
    return cosine > 0, np.sum(across**2, axis=1), cosine


def _speeds_beside_cap(walk: Walk, zeta: float) -> list[float]:
    """Mean d cos(w, x_other)/dt between records, of neurons in the other class's cone."""
    p, found = walk.evidence.problem, []
    last: tuple[float, NDArray[np.bool_], Array] | None = None
    for net, t in zip(walk.evidence.path(), walk.evidence.times, strict=True):
        if t > walk.c.T:
            break
        _, sine2, cosine = _place_beside_cap(walk, net)
        inside = ((net.W @ p.X.T > 0) == ~walk.own_samples).all(axis=1) & (sine2 > zeta)
        if last is not None and t - last[0] <= FAR:
            continue  # too near for a quotient
        if last is not None:
            both = inside & last[1]
            found += ((cosine - last[2])[both] / (t - last[0])).tolist()
        last = (float(t), inside, cosine)
    return found


LARGER_ZETA: dict[str, Any] = {
    "given": SCOPE,
    "example": near_run,
    "form": "slip",
    "printed": "zeta := max{zeta_1, zeta_2} (App. C.2, before Eq. 27)",
    "meant": "zeta := min{zeta_1, zeta_2}: both numbers exist by Lemma 8 and Assumption 2, and any "
    "smaller pair serves as well, an equal one in particular, for which max and min agree",
    "quick": {"m": 12},
    "full": {"m": 200},
}


@experiment_on("MMV24-DT", **LARGER_ZETA)
def larger_zeta_dwell(evidence: Evidence) -> Found:
    """A start near x_- stays for longer than the larger zeta allows, not than the smaller one."""
    walk = Walk(evidence)
    longest = {form: max(stays_over_bound(walk, form)) for form in ("meant", "printed")}
    return Found(
        [
            at_most(longest["meant"], 1.0, what="longest stay over its bound, zeta = min"),
            at_least(longest["printed"], 1.0, what="longest stay over its bound, zeta = max"),
            walk.agreement(),
        ]
    )


@experiment_on("MMV24-CAP", **LARGER_ZETA)
def larger_zeta_cap(evidence: Evidence) -> Found:
    """A start near x_- lies in the cap of the larger zeta, not in that of the smaller one."""
    walk = Walk(evidence)
    inside = {form: most_in_cap(walk, walk.c.zeta(form)) for form in ("meant", "printed")}
    return Found(
        [
            equals(inside["meant"], 0, tolerance=0, what="most neurons in the cap, zeta = min"),
            at_least(inside["printed"], 1, what="most neurons in the cap, zeta = max"),
        ]
    )


def _speeds_at_kinks(walk: Walk) -> list[float]:
    """sign(a_j) d cos(w_j, y_i x_i)/dt on both sides of each crossing of a live neuron, t <= T.

    By differences of the records at the crossing and just before and after it. With phi'(0) = 0
    the lemma's is that of the side on which x_i is not active; that of the other is larger.
    """
    p, times, path = walk.evidence.problem, walk.evidence.times, walk.evidence.path()
    size, found = p.norms, []
    far = FAR / (p.n * walk.c.X_max * walk.c.unit)
    for j, i, t in zip(*walk.crossings, strict=True):
        k = int(np.argmin(np.abs(times - t)))
        if t > walk.c.T or abs(times[k] - t) > 1e-12 * max(t, 1.0) or not 0 < k < len(times) - 1:
            continue
        others = np.delete(path[k].directions[j] @ p.X.T / size, i)
        if max(times[k] - times[k - 1], times[k + 1] - times[k]) > far or others.max() <= SURE:
            continue
        cosines = [float(path[k + s].directions[j] @ p.X[i]) / size[i] for s in (-1, 0, 1)]
        sign = float(walk.sign[j] * p.y[i])
        found += [sign * d for d in np.diff(cosines) / np.diff(times[k - 1 : k + 2])]
    return found


@claim("MMV24-P7", needs=NEEDS, given=SCOPE, example=scoped_run, **SIZES)
def crosses_one_way(evidence: Evidence) -> Found:
    """At a kink sign(a_j) d cos(w_j, y_i x_i)/dt >= mu^{3/2} X_min/2 while t <= T."""
    walk = Walk(evidence)
    speeds = _speeds_at_kinks(walk)
    bound = walk.c.mu**1.5 * walk.c.X_min * walk.c.unit / 2
    some = Hypothesis(
        "a live neuron is recorded on a kink, and just before and after it",
        bool(speeds),
        f"{len(speeds) // 2} of them",
    )
    least = min(speeds, default=np.nan)
    return Found([at_least(least, bound, error=1e-3, what="least speed at a kink")], [some])


@experiment_on("MMV24-T1.1", **IN_SCOPE, part="in scope, SEP", quick={"m": 20, "sep": True})
@experiment_on("MMV24-T1.1", **IN_SCOPE, part="in scope", quick={"m": 20, "sep": False})
@claim(
    "MMV24-T1.1",
    needs=NEEDS,
    given=SCOPE,
    example=practical_run,
    **SIZES,
    reason="a start of 1e-6 is far above the scale of Eq. 28: the theorem says nothing about it",
)
def trapped_in_time(evidence: Evidence) -> Found:
    """Theorem 1.1: at t_1 <= t1_bound all are trapped; own-sign activation at 0 excludes dead."""
    walk = Walk(evidence)
    c, bound = walk.c, walk.c.t1_bound()
    late = sum(
        not walk.is_trapped(stay)
        for stay in walk.stays()
        if stay.begin <= bound < stay.end or (stay.open and stay.end <= bound)
    )
    dead = ~walk.ends.any(axis=1)
    outside = ~dead & ~(walk.ends == walk.own_samples).all(axis=1)
    astray = int((dead & (walk.first & walk.own_samples).any(axis=1)).sum())
    note = (
        f"t_1 = {walk.t1:.4g} is {walk.t1 / bound:.1e} of its bound. Bound and log eps_max with "
        f"zeta = min and factor 8: {bound:.5g}, {c.log_eps_max():.6g}; as printed (max, 4): "
        f"{c.t1_bound('printed'):.5g}, {c.log_eps_max('printed'):.6g}. mu = {c.mu:.4g}, "
        f"xi = mu^2 = {c.xi:.4g}, zeta_1 = {c.zeta_1:.4g}, zeta_2 = {c.zeta_2:.4g}; T = {c.T:.4g}."
    )
    found = [
        at_most(walk.t1, bound, what="t_1"),
        equals(late, 0, tolerance=0, what="neurons outside their traps at t_1"),
        equals(outside.sum(), 0, tolerance=0, what="neurons outside at the last record"),
        equals(astray, 0, tolerance=0, what="dead neurons that began active on their own class"),
        walk.agreement(),
    ]
    return Found(found, note=note)


@experiment("MMV24-PATH", quick={"most": 8}, full={"most": 8})
def longest_path(seed: int, most: int) -> list[Comparison]:
    """Longest monotone path of activation counts against its closed form and 4 log n."""
    gap, ratio = 0.0, 0.0
    for plus in range(1, most + 1):
        for minus in range(1, most + 1):
            best = _longest(plus, minus)
            harmonic = sum(1 / k for k in range(1, minus + 1)) + 0.5
            harmonic += sum(1 / k for k in range(1, plus))
            gap = max(gap, abs(best - harmonic))
            ratio = max(ratio, best / (4 * math.log(plus + minus)))
    return [
        at_most(gap, 1e-12, what="longest path less H_(n_-) + 1/2 + H_(n_+ - 1)"),
        at_most(ratio, 1.0, what="longest path over 4 log n"),
    ]


def _longest(plus: int, minus: int) -> float:
    """Largest sum of 1/(k_+ + k_-) over paths with k_+ rising and k_- falling, one at a time."""

    @cache
    def best(up: int, down: int) -> float:
        if (up, down) == (plus, 0) or up + down == 0:
            return 0.0
        ways = [best(up + 1, down)] if up < plus else []
        ways += [best(up, down - 1)] if down > 0 else []
        return 1 / (up + down) + max(ways)

    return max(best(up, down) for up in range(plus + 1) for down in range(minus + 1) if up + down)


@experiment(
    "MMV24-PATH",
    form="slip",
    part="condition 2",
    printed="for l_1 < l_2 either k_+(l_1) > k_+(l_2) or k_-(l_1) < k_-(l_2) (App. C.2, condition "
    "2 of a path)",
    meant="k_+(l_1) < k_+(l_2) or k_-(l_1) > k_-(l_2), the other one no worse, as the sentences "
    "around it and the maximal path say",
    quick={"m": 20},
    full={"m": 500},
)
def counts_by_both_rules(seed: int, m: int) -> list[Comparison]:
    """Steps of neurons on TOY6: all obey the meant rule, and none the printed one."""
    steps = pattern_steps(Walk(practical_run(seed, m)))
    meant = sum((own > 0 or other < 0) and own >= 0 >= other for own, other in steps)
    printed = sum(own < 0 or other > 0 for own, other in steps)
    return [
        at_least(len(steps), 10, what="steps between patterns"),
        equals(meant, len(steps), tolerance=0, what="steps that obey the rule as meant"),
        equals(printed, 0, tolerance=0, what="steps that obey the rule as printed"),
    ]


@experiment(
    "MMV24-PATH",
    form="slip",
    part="middle step",
    printed="H_(n_-) + 1/2 + H_(n_+ - 1) <= 2 H_n + 1/2 <= 4 log n (App. C.2, travel time of the "
    "maximal path)",
    meant="H_(n_-) + 1/2 + H_(n_+ - 1) <= 4 log n for n >= 2; the middle term is above it at n = 2 "
    "(3.5 against 2.77), below from n = 3 on",
)
def middle_step(seed: int) -> list[Comparison]:
    """The bound holds for n >= 2, its middle step for n >= 3."""
    pairs = [(plus, n - plus) for n in range(2, 50) for plus in range(1, n)]
    bound = max(
        (_harmonic(minus) + 0.5 + _harmonic(plus - 1)) / (4 * math.log(plus + minus))
        for plus, minus in pairs
    )
    middle = {n: (2 * _harmonic(n) + 0.5) / (4 * math.log(n)) for n in range(2, 50)}
    return [
        at_most(bound, 1.0, what="(H_(n_-) + 1/2 + H_(n_+ - 1)) / (4 log n), n >= 2"),
        at_least(middle.pop(2), 1.0, what="(2 H_n + 1/2) / (4 log n), n = 2"),
        at_most(max(middle.values()), 1.0, what="(2 H_n + 1/2) / (4 log n), n >= 3"),
    ]


@experiment("MMV24-PATH", part="runs", quick={"m": 20}, full={"m": 500})
def counts_rise(seed: int, m: int) -> list[Comparison]:
    """k_+ never falls and k_- never rises on the way of a positive neuron to (n_+, 0) or (0, 0)."""
    return monotone_paths(Walk(practical_run(seed, m)))


def monotone_paths(walk: Walk) -> list[Comparison]:
    """Steps against the rule, other ends, and records that show other patterns."""
    lost = sum(stay.open and not walk.is_trapped(stay) for stay in walk.stays())
    return [
        equals(count_wrong_steps(walk), 0, tolerance=0, what="steps of a run against the rule"),
        equals(lost, 0, tolerance=0, what="paths that end elsewhere"),
        walk.agreement(),
    ]


def _harmonic(n: int) -> float:
    return sum(1 / k for k in range(1, n + 1))


def pattern_steps(walk: Walk) -> list[tuple[int, int]]:
    """Changes of (k_own, k_other) from one pattern of a neuron to its next."""
    steps, last = [], (-1, 0, 0)
    for stay in walk.stays():
        wanted = walk.own_samples[stay.neuron]
        own, other = int(stay.active[wanted].sum()), int(stay.active[~wanted].sum())
        if stay.neuron == last[0] and (own, other) != last[1:]:
            steps.append((own - last[1], other - last[2]))
        last = (stay.neuron, own, other)
    return steps


def count_wrong_steps(walk: Walk) -> int:
    """Steps from one pattern to the next at which k_own falls or k_other rises."""
    return sum(own < 0 or other > 0 for own, other in pattern_steps(walk))
