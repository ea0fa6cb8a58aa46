"""[MMV24]_: from t_1 on two linear networks grow side by side, and the loss falls as 1/t."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import logsumexp

from reluflow.arrays import Array
from reluflow.claims.claim import Found, experiment
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import balanced_start
from reluflow.claims.invariants import kept_by_flow
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most
from reluflow.papers.mmv24.claims.patterns import DATA, NEEDS, SCOPE
from reluflow.papers.mmv24.constants import early_scale
from reluflow.papers.mmv24.runs import Growth, claim_on_runs, experiment_on, long_run, scoped_run

SMALL = 1e-10  # outputs below which the early law is exact to the tolerance
ROUND = 5.0  # tanh of it is 1 - 1e-4
GIVEN = [*DATA, balanced_start, early_scale]
LONG_RUNS: dict[str, Any] = {
    "needs": NEEDS,
    "given": GIVEN,
    "example": long_run,
    "quick": {"m": 30, "log_eps": -60.0},
    "full": {"m": 500, "log_eps": -300.0},
    "others": {"SEP": {"toy": False}},
}
UNSQUARED: dict[str, Any] = {
    "given": SCOPE,
    "example": scoped_run,
    "form": "printed",
    "full": {"m": 500},
}


def late_claim(id: str, **options: Any) -> Callable[..., Any]:
    """Register a check of :class:`Growth` on both kinds of data."""

    def wrap(check: Callable[[Growth], Any]) -> Callable[[Growth], Any]:
        def look(evidence: Evidence) -> Found:
            growth = Growth(evidence)
            if any(h.ok is False for h in growth.reached):
                return Found((), growth.reached)
            made = check(growth)
            return made if isinstance(made, Found) else Found(made, growth.reached)

        look.__doc__, look.__module__ = check.__doc__, check.__module__
        claim_on_runs(id, **LONG_RUNS, **options)(look)
        return check

    return wrap


@late_claim("MMV24-L13")
def group_survives(growth: Growth) -> list[Comparison]:
    """log sum |w(t_1)|^2 >= log sum |w(0)|^2 - 4 n X_max t_1, each group."""
    c, first = growth.c, growth.evidence.path()[0]
    t, net = next(growth.between(growth.t1, math.inf))
    rate = 4 * c.problem.n * c.X_max * c.unit
    return [
        at_least(
            growth.log_size(net, s) - growth.log_size(first, s),
            -rate * t,
            error=100 * growth.evidence.rtol,
            what=f"log growth until t_1, sign {s:+d}",
        )
        for s in (1, -1)
    ]


def _steps(growth: Growth, s: int) -> Array:
    records = [growth.log_size(net, s) for _, net in growth.between(growth.t1, math.inf)]
    return np.diff(records)


@late_claim("MMV24-L14", form="repaired")
def group_never_shrinks(growth: Growth) -> Found:
    """sum |w(t)|^2 of each group is non-decreasing after t_1."""
    steps = {s: _steps(growth, s) for s in (1, -1)}
    found = [
        at_least(
            least.min(initial=np.inf),
            0.0,
            error=10 * growth.evidence.rtol,
            what=f"least change of log sum |w|^2 between records, sign {s:+d}",
        )
        for s, least in steps.items()
    ]
    some = Hypothesis("there are two records after t_1", all(map(len, steps.values())))
    return Found(found, [*growth.reached, some])


@experiment_on("MMV24-L14", **UNSQUARED, part="SEP", quick={"m": 20, "sep": True})
@experiment_on("MMV24-L14", **UNSQUARED, quick={"m": 20, "sep": False})
def group_never_shrinks_unsquared(evidence: Evidence) -> Found:
    """As printed, sum |w(t_2 + tau)|^2 >= sum |w(t_2)|, at t_2 = t_1 and tau = 0."""
    growth = Growth(evidence)
    both = Hypothesis(
        "S_+ and S_- both hold neurons at t_1",
        math.isfinite(growth.t1) and all(len(group) for group in growth.groups.values()),
        ", ".join(f"{len(growth.groups[s])} of sign {s:+d}" for s in (1, -1)),
    )
    if not both.ok:
        return Found((), [both])
    t, net = next(growth.between(growth.t1, math.inf))
    within = Hypothesis(
        "t_1 is the time of Theorem 1",
        t <= growth.c.t1_bound(),
        f"{t:.3g}, at most {growth.c.t1_bound():.5g}",
    )
    found = [
        at_least(
            growth.log_size(net, s),
            float(logsumexp(net.log_norms[growth.groups[s]])),
            error=1e-9,
            what=f"log sum |w|^2 against log sum |w| at t_1, sign {s:+d}",
        )
        for s in (1, -1)
    ]
    return Found(found, [both, within])


@late_claim("MMV24-XA")
def pulls_stay_even(growth: Growth) -> Found:
    """On [t_1, t_2^s]: -y l' in [1/2, 3/2], |xt_a| >= sqrt(mu) n_s X_min/2, cos with x_s >= 1/3."""
    c, found = growth.c, []
    p, seen = c.problem, []
    for s in (1, -1):
        mine = np.sign(p.y) == s
        pulls, sizes, cosines = [], [], []
        for _, net in growth.between(growth.t1, growth.t2[s]):
            pull = (p.pull_at(p.outputs(net)) / p.y)[mine] / c.unit
            active = pull @ p.X[mine]
            pulls += [pull.min(), pull.max()]
            sizes.append(float(np.linalg.norm(active)) * c.unit / (c.k(s) / 2))
            cosines.append(float(c.cosine(s, active[None])[0]))
        seen.append(bool(sizes))
        least, most = min(pulls, default=np.nan), max(pulls, default=np.nan)
        size, cosine = min(sizes, default=np.nan), min(cosines, default=np.nan)
        found += [
            at_least(least, 0.5, error=1e-6, what=f"least -y l', sign {s:+d}"),
            at_most(most, 1.5, error=1e-6, what=f"largest -y l', sign {s:+d}"),
            at_least(size, 1.0, error=1e-6, what=f"|xt_a| over sqrt(mu) n X_min/2, sign {s:+d}"),
            at_least(cosine, 1 / 3, error=1e-6, what=f"cos(x_s, xt_a), sign {s:+d}"),
        ]
    some = Hypothesis("there are records between t_1 and t_2^s for both classes", all(seen))
    return Found(found, [*growth.reached, some])


@late_claim("MMV24-RA")
def refined_alignment(growth: Growth) -> Found:
    """cos(w_j, x_s) >= 1/4 from t_1 + 6/(sqrt(mu) n_s X_min) to t_2^s."""
    found, seen = [], []
    for s in (1, -1):
        since = growth.t1 + 6 / growth.c.k(s)
        cosines = [
            float(growth.c.cosine(s, net.directions[growth.groups[s]]).min())
            for _, net in growth.between(since, growth.t2[s])
        ]
        seen.append(bool(cosines))
        least = min(cosines, default=np.nan)
        found.append(at_least(least, 0.25, error=1e-6, what=f"least cos(w, x_s), sign {s:+d}"))
    some = Hypothesis("t_1 + 6/(sqrt(mu) n_s X_min) is before t_2^s for both classes", all(seen))
    return Found(found, [*growth.reached, some])


@late_claim("MMV24-R3")
def turns_to_the_sum(growth: Growth) -> Found:
    """cos(w_j, x_s) = tanh(atanh c_0 + |x_s| t) while f is small, and tends to 1.

    In S_s c_0 is positive, so that the law gives 1 - 1e-4 after ``ROUND`` times 1/|x_s|.
    """
    found, long = [], []
    entered = {stay.neuron: stay.begin for stay in growth.stays() if stay.open}
    for column, s in enumerate((1, -1)):
        rate = float(np.linalg.norm(growth.c.sums[s])) * growth.c.unit
        small = growth.outputs[:, column] < SMALL
        t = growth.evidence.times[small]
        since = max(entered[int(j)] for j in growth.groups[s])
        long.append(bool(t.size) and rate * (t[-1] - since) >= ROUND)
        if not long[-1]:
            continue
        rows = np.array(
            [
                net.W[growth.groups[s]]
                for net, k in zip(growth.evidence.path(), small, strict=True)
                if k
            ]
        )
        cosines = np.array([growth.c.cosine(s, row) for row in rows])
        gaps = []
        for j, cosine in zip(growth.groups[s], cosines.T, strict=True):
            inside = t >= entered[int(j)]
            first = math.atanh(min(cosine[inside][0], 1 - 1e-15))
            law = np.tanh(first + rate * (t[inside] - t[inside][0]))
            gaps.append(np.abs(law - cosine[inside]).max())
        found += [
            kept_by_flow(growth.evidence, max(gaps), f"|cos - tanh law|, sign {s:+d}", 100.0),
            at_least(
                cosines[-1].min(),
                1 - 1e-4,
                error=1e-6,
                what=f"least cosine when f reaches {SMALL:g}, sign {s:+d}",
            ),
        ]
    some = Hypothesis(
        f"f is below {SMALL:g} for {ROUND:g}/|x_s| after the last neuron of S_s is "
        "trapped, both classes",
        all(long),
    )
    return Found(found, [*growth.reached, some])


@late_claim("MMV24-T1.2b")
def loss_falls_as_one_over_t(growth: Growth) -> list[Comparison]:
    """L(t) <= L(t_2)/(1 + L(t_2) alpha (t - t_2)); each group keeps sum |w|^2 >= 1/(4 X_max)."""
    run = growth.evidence.trajectory()
    t = growth.evidence.times
    late = t >= max(growth.t2.values())
    (t0, L0), L = (t[late][0], run.loss[late][0]), run.loss[late]
    bound = L0 / (1 + L0 * growth.c.rate_alpha * (t[late] - t0))
    nets = [growth.evidence.path()[int(i)] for i in np.flatnonzero(late)]
    sizes = [growth.log_size(net, s) for net in nets for s in (1, -1)]
    return [
        at_most((L / bound)[1:].max(initial=0.0), 1.0, error=1e-9, what="L over its bound"),
        at_least(min(sizes), -math.log(4 * growth.c.X_max), what="log sum |w|^2 from t_2 on"),
    ]


@late_claim("MMV24-T2")
def second_time(growth: Growth) -> list[Comparison]:
    """T <= t_2 and t_2^s below Eq. 39, each class."""
    return [
        at_least(max(growth.t2.values()), growth.c.T, error=1e-3, what="t_2 against T"),
        *[
            at_most(
                growth.t2[s],
                growth.c.t2_bound(s, growth.t1),
                error=1e-3,
                what=f"t_2^s, sign {s:+d}",
            )
            for s in (1, -1)
        ],
    ]


@experiment(
    "MMV24-T2",
    part="slope",
    quick={"m": 10, "powers": (4, 6, 8, 10, 12)},
    full={"m": 200, "powers": tuple(range(4, 13))},
)
def slope_of_the_second_time(seed: int, m: int, powers: tuple[int, ...]) -> list[Comparison]:
    """t_2^s grows by 1/|x_s| for each factor e in 1/eps, eps = 1e-4 to 1e-12."""
    logs = -np.log(10.0) * np.array(powers)
    growths = [Growth(long_run(seed, m, float(log), tail=1.1)) for log in logs]
    found = []
    for s in (1, -1):
        slope = -float(np.polyfit(logs, [growth.t2[s] for growth in growths], 1)[0])
        exact = float(np.linalg.norm(growths[0].c.sums[s]))
        found.append(at_most(abs(slope * exact - 1), 0.01, what=f"|slope |x_s| - 1|, sign {s:+d}"))
    return found
