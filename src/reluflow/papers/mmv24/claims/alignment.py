"""[MMV24]_: which patterns neurons go through and how fast, until all are trapped (Theorem 1.1).

The theorem speaks below exp(-10^4) or so; flows in logarithms go there.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.claims.claim import Found, claim
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import (
    balanced_start,
    gradient_flow,
    margin_loss,
    no_leak,
    positively_correlated,
)
from reluflow.claims.verdict import Hypothesis, Status, at_least, at_most, equals
from reluflow.network import Network
from reluflow.papers.mmv24.claims.constants import both_classes, elsewhere, not_aligned, small_start
from reluflow.papers.mmv24.claims.traps import SURE
from reluflow.papers.mmv24.claims.walk import Walk, near_run, practical_run, scoped_run

DATA = [gradient_flow, margin_loss, no_leak, both_classes, positively_correlated]
START = [balanced_start, not_aligned]
SCOPE = [*DATA, *START, small_start("meant")]
NEEDS = ("path", "start", "flow", "time")
FAR = 1e-3  # distance of records, in turns of a neuron, from which on they are not one place


def leaves_patterns(evidence: Evidence) -> Found:
    """Until T a neuron outside its traps changes pattern within dwell(n_a)."""
    walk = Walk(evidence)
    ratios = stays_over_bound(walk, "meant")
    some = Hypothesis(
        "some neuron is outside its traps and has a dwell time to spend before T", bool(ratios)
    )
    longest = at_most(max(ratios, default=np.nan), 1.0, what="longest stay over its bound")
    return Found([longest, walk.agree()], [some])


def stays_over_bound(walk: Walk, form: str) -> list[float]:
    """Stays outside the traps over dwell(n_a), where that much time is left before T."""
    ratios = []
    for stay in walk.stays():
        if walk.trapped(stay) or stay.begin > walk.c.T:
            continue
        bound = walk.c.dwell(int(stay.active.sum()), form)
        if stay.begin + bound <= walk.c.T:
            ratios.append((stay.end - stay.begin) / bound)
    return ratios


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
        int((_beside(walk, net)[0] & (_beside(walk, net)[1] <= zeta)).sum())
        for net, t in zip(walk.evidence.path(), walk.evidence.times, strict=True)
        if t <= walk.c.T
    )


def _beside(walk: Walk, net: Network) -> tuple[NDArray[np.bool_], Array, Array]:
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
        _, sine2, cosine = _beside(walk, net)
        inside = ((net.W @ p.X.T > 0) == ~walk.wanted).all(axis=1) & (sine2 > zeta)
        if last is not None and t - last[0] <= FAR:
            continue  # too near for a quotient
        if last is not None:
            both = inside & last[1]
            found += ((cosine - last[2])[both] / (t - last[0])).tolist()
        last = (float(t), inside, cosine)
    return found


for _id, _check in (("MMV24-DT", leaves_patterns), ("MMV24-CAP", avoids_cap)):
    claim(_id, needs=NEEDS, given=SCOPE, example=scoped_run, quick={"m": 20}, full={"m": 500})(
        _check
    )
    elsewhere(
        _id, _check, SCOPE, scoped_run, part="SEP", quick={"m": 20, "sep": True}, full={"m": 500}
    )

_ZETA = "zeta := max{zeta_1, zeta_2} (App. C.2, before Eq. 27)"
_SMALLER = (
    "zeta := min{zeta_1, zeta_2}: both numbers exist by Lemma 8 and Assumption 2, and any smaller "
    "pair serves as well, an equal one in particular, for which max and min agree"
)


def larger_zeta_dwell(evidence: Evidence) -> Found:
    """A start near x_- stays for longer than the larger zeta allows, not than the smaller one."""
    walk = Walk(evidence)
    longest = {form: max(stays_over_bound(walk, form)) for form in ("meant", "printed")}
    return Found(
        [
            at_most(longest["meant"], 1.0, what="longest stay over its bound, zeta = min"),
            at_least(longest["printed"], 1.0, what="longest stay over its bound, zeta = max"),
            walk.agree(),
        ]
    )


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


for _id, _check in (("MMV24-DT", larger_zeta_dwell), ("MMV24-CAP", larger_zeta_cap)):
    elsewhere(
        _id,
        _check,
        SCOPE,
        near_run,
        form="slip",
        printed=_ZETA,
        meant=_SMALLER,
        quick={"m": 12},
        full={"m": 200},
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


@claim(
    "MMV24-P7",
    needs=NEEDS,
    given=SCOPE,
    example=scoped_run,
    quick={"m": 20},
    full={"m": 500},
)
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


def trapped_in_time(evidence: Evidence) -> Found:
    """Theorem 1.1: at t_1 <= t1_bound all are trapped; own-sign activation at 0 excludes dead."""
    walk = Walk(evidence)
    c, bound = walk.c, walk.c.t1_bound()
    late = sum(
        not walk.trapped(stay)
        for stay in walk.stays()
        if stay.begin <= bound < stay.end or (stay.open and stay.end <= bound)
    )
    dead = ~walk.ends.any(axis=1)
    outside = ~dead & ~(walk.ends == walk.wanted).all(axis=1)
    astray = int((dead & (walk.first & walk.wanted).any(axis=1)).sum())
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
        walk.agree(),
    ]
    return Found(found, note=note)


claim(
    "MMV24-T1.1",
    needs=NEEDS,
    given=SCOPE,
    example=practical_run,
    quick={"m": 20},
    full={"m": 500},
    reason="a start of 1e-6 is far above the scale of Eq. 28: the theorem says nothing about it",
)(trapped_in_time)
for _part, _sep in (("in scope", False), ("in scope, SEP", True)):
    elsewhere(
        "MMV24-T1.1",
        trapped_in_time,
        SCOPE,
        scoped_run,
        part=_part,
        quick={"m": 20, "sep": _sep},
        full={"m": 500},
        expected=Status.HOLDS,
        reason="from the scale of Eq. 28, which only a flow in logarithms can start at",
    )
