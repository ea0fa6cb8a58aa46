"""[MMV24]_: which patterns neurons go through and how fast, until all are trapped (Theorem 1.1).

The theorem speaks below exp(-10^4) or so; flows in logarithms go there.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from reluflow.claims.claim import Found, claim
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import (
    balanced_start,
    gradient_flow,
    margin_loss,
    no_leak,
    positively_correlated,
)
from reluflow.claims.mmv24 import SURE
from reluflow.claims.mmv24_constants import both_classes, elsewhere, not_aligned, small_start
from reluflow.claims.mmv24_walk import Walk, near_run, practical_run, scoped_run
from reluflow.claims.verdict import Hypothesis, Status, at_least, at_most, equals

DATA = [gradient_flow, margin_loss, no_leak, both_classes, positively_correlated]
START = [balanced_start, not_aligned]
SCOPE = [*DATA, *START, small_start("repaired")]
NEEDS = ("path", "start", "flow", "time")


def leaves_patterns(evidence: Evidence, form: str) -> Found:
    """Until T a neuron outside its traps changes pattern within dwell(n_a)."""
    walk = Walk(evidence)
    ratios = []
    for stay in walk.stays():
        if walk.trapped(stay) or stay.begin > walk.c.T:
            continue
        bound = walk.c.dwell(int(stay.active.sum()), form)
        if stay.begin + bound <= walk.c.T:
            ratios.append((stay.end - stay.begin) / bound)
    some = Hypothesis("some neuron is outside its traps and has a dwell time to spend before T",
                      bool(ratios))  # fmt: skip
    longest = at_most(max(ratios, default=np.nan), 1.0, what="longest stay over its bound")
    return Found([longest, walk.agree()], [some])


def avoids_cap(evidence: Evidence, form: str) -> Found:
    """Until T no neuron is in the zeta-cap of the other class, and those around it move away."""
    walk, p = Walk(evidence), evidence.problem
    c = walk.c
    zeta, inside, fastest = c.zeta(form), 0, -np.inf
    for net, t in zip(evidence.path, evidence.times, strict=True):
        if t > c.T:
            break
        W, pull = net.directions, p.pull_at(p.outputs(net))
        for s in (1, -1):
            mine = W[walk.sign == s]
            axis = c.sums[-s] / np.linalg.norm(c.sums[-s])
            across = mine - np.outer(mine @ axis, axis)
            sine2 = np.sum(across**2, axis=1)
            ahead = mine @ axis > 0
            inside = max(inside, int((ahead & (sine2 <= zeta)).sum()))
            other = ((mine @ p.X.T > 0) == (p.y * s < 0)).all(axis=1) & (sine2 > zeta)
            if other.any():  # in the other class's cone, outside the cap
                push = s * ((mine[other] @ p.X.T > 0) * pull) @ p.X
                push -= np.sum(push * mine[other], axis=1, keepdims=True) * mine[other]
                fastest = max(fastest, float((push @ axis).max()))
    edge = -zeta * math.sqrt(c.mu) * c.X_min * c.unit / 2
    found = [equals(inside, 0, tolerance=0, what="most neurons in the cap at once")]
    if np.isfinite(fastest):
        found.append(at_most(fastest, edge, what="d cos(w, x_other)/dt beside the cap"))
    return Found(found)


def _in_form(check: Callable[[Evidence, str], Found], form: str) -> Callable[[Evidence], Found]:
    """The check with the constants of one form."""

    def look(evidence: Evidence) -> Found:
        return check(evidence, form)

    look.__doc__ = check.__doc__
    return look


for _id, _check in (("MMV24-DT", leaves_patterns), ("MMV24-CAP", avoids_cap)):
    claim(
        _id, form="printed", needs=NEEDS, given=[*DATA, *START, small_start("printed")],
        example=near_run, quick={"m": 12}, full={"m": 200},
    )(_in_form(_check, "printed"))  # fmt: skip
    _repaired = _in_form(_check, "repaired")
    claim(
        _id, form="repaired", needs=NEEDS, given=SCOPE, example=scoped_run,
        quick={"m": 20}, full={"m": 500},
    )(_repaired)  # fmt: skip
    elsewhere(
        _id, _repaired, SCOPE, scoped_run, form="repaired", part="SEP",
        quick={"m": 20, "sep": True}, full={"m": 500},
    )  # fmt: skip


def _kinks(walk: Walk) -> list[float]:
    """y_i <x_i, D_j>/|x_i| wherever a live neuron is recorded on the hyperplane of x_i, t <= T."""
    p, found = walk.evidence.problem, []
    size = np.linalg.norm(p.X, axis=1)
    for net, t in zip(walk.evidence.path, walk.evidence.times, strict=True):
        if t > walk.c.T:
            break
        cosines = net.directions @ p.X.T / size
        pull = p.pull_at(p.outputs(net))
        for j in np.flatnonzero((np.abs(cosines) <= SURE).any(axis=1)):
            active = cosines[j] > SURE
            if active.any():
                push = (active * pull) @ p.X
                on = np.flatnonzero(np.abs(cosines[j]) <= SURE)
                found += [float(p.y[i] * (p.X[i] @ push) / size[i]) for i in on]
    return found


@claim(
    "MMV24-P7", needs=NEEDS, given=SCOPE, example=scoped_run,
    quick={"m": 20}, full={"m": 500},
)  # fmt: skip
def crosses_one_way(evidence: Evidence) -> Found:
    """At a kink sign(a_j) d cos(w_j, y_i x_i)/dt >= mu^{3/2} X_min/2 while t <= T."""
    walk = Walk(evidence)
    speeds = _kinks(walk)
    bound = walk.c.mu**1.5 * walk.c.X_min * walk.c.unit / 2
    some = Hypothesis("a live neuron is recorded on a kink", bool(speeds), f"{len(speeds)} of them")
    least = min(speeds, default=np.nan)
    return Found([at_least(least, bound, what="least speed at a kink")], [some])


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
        "MMV24-T1.1", trapped_in_time, SCOPE, scoped_run, part=_part,
        quick={"m": 20, "sep": _sep}, full={"m": 500}, expected=Status.HOLDS,
        reason="from the scale of Eq. 28, which only a flow in logarithms can start at",
    )  # fmt: skip
