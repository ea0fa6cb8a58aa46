"""[TLB26]_: jump times with their constants, ties, closed forms of one neuron, the least norm."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

from reluflow.arrays import Array
from reluflow.claims.claim import experiment
from reluflow.claims.verdict import Comparison, at_most, equals
from reluflow.landscape import align
from reluflow.network import Network
from reluflow.optimum.min_norm import min_norm, norm_bound
from reluflow.prediction.limit import limit
from reluflow.prediction.orthogonal import algorithm1
from reluflow.problem import Problem, datasets
from reluflow.trajectory import Trajectory

# Algorithm 1 on y = (4, 3, 2, 1)/n, n = 4, by hand: S = 5, sqrt 13, sqrt 5; then 2, sqrt 5; then 1
TAU1 = 4 / 5
TAU2 = TAU1 + (1 - TAU1 * math.sqrt(13) / 4) * 4 / 2
TAU3 = TAU2 + (1 - TAU2 * math.sqrt(5) / 4) * 4
BY_HAND = np.array([TAU1, TAU2, TAU3])


def golden_flow(L: float) -> Trajectory:
    """Gradient flow on the golden case from exp(-L), outputs and log-norms recorded."""
    from reluflow.gradientflow.flow import flow

    problem = datasets.golden()
    net = Network(problem.known["W0"], np.ones(3), np.full(3, -L))
    near = [L * tau + np.linspace(-30.0, 30.0, 241) for tau in BY_HAND]
    times = np.unique(np.concatenate([np.linspace(0.0, L * (TAU3 + 0.5), 200), *near]))
    return flow(
        problem, net, t_end=times[-1], save=times, rtol=1e-10, observe=["outputs", "log_norms"]
    )


def half_fits(run: Trajectory) -> Array:
    """Times at which f = y/2 on samples 1, 3 and 4 (nan: never); the fit is logistic in time."""
    found = []
    for k in (0, 2, 3):
        share = np.clip(run["outputs"][:, k] / run.problem.y[k], 1e-300, 1 - 1e-15)
        odds = np.log(share / (1 - share))
        i = int(np.argmax(odds >= 0))
        t, step = run.times, odds[i] - odds[i - 1]
        found.append(t[i] - odds[i] * (t[i] - t[i - 1]) / step if i else math.nan)
    return np.array(found)


@experiment(
    "TLB26-T2", part="golden-limit", quick={"logs": (300.0, 600.0)}, full={"logs": (1000.0, 3000.0)}
)
def limit_on_the_golden_case(seed: int, logs: tuple[float, float]) -> list[Comparison]:
    """`limit`, which knows nothing of orthonormal inputs, and Algorithm 1 against flows.

    tau is the difference quotient of half-fit times over L; the constants K_j of a dormant neuron
    are what is left of log|w_j| - L beta_j(t/L) in the middle of a plateau.
    """
    problem = datasets.golden()
    start = Network(problem.known["W0"], np.ones(3))
    process = limit(problem, start)
    if process.n_jumps != len(BY_HAND):
        return [equals(process.n_jumps, len(BY_HAND), tolerance=0, what="limit: jumps")]
    runs = [golden_flow(L) for L in logs]
    first, second = map(half_fits, runs)
    quotient = (second - first) / (logs[1] - logs[0])
    L, run, gaps = logs[1], runs[1], []
    assert process.constants is not None
    for i in range(3):
        middle = L * (0.5 * (np.append(0.0, BY_HAND)[i] + BY_HAND[i]))
        at = int(np.argmin(np.abs(run.times - middle)))
        beta = process.exponents_at(run.times[at] / L)
        dormant = np.isfinite(process.constants[i])
        left = run["log_norms"][at] - L * beta - process.constants[i]
        gaps.append(float(np.abs(left[dormant]).max()))
    return [
        at_most(np.abs(process.times - BY_HAND).max(), 1e-9, what="limit: tau against hand"),
        at_most(
            np.abs(quotient / process.times - 1).max(),
            1e-6,
            what="limit: tau against the difference quotient of flows, relative",
        ),
        at_most(max(gaps), 1e-3, what="limit: K_j against log|w_j| of a flow"),
    ]


@experiment("TLB26-T2", part="golden-offsets", quick={"L": 600.0}, full={"L": 3000.0})
def offsets_on_the_golden_case(seed: int, L: float) -> list[Comparison]:
    """t_i = L tau_i + C_i: what Algorithm 1 gives beyond leading order, against a flow.

    Whether a jump is dated by half of the fit or by half of the fall of the loss moves every C_i
    by one number over c v_i/n; the first jump tells which of the two it is.
    """
    problem = datasets.golden()
    process = algorithm1(problem, Network(problem.known["W0"], np.ones(3)))
    if process.n_jumps != len(BY_HAND):
        return [equals(process.n_jumps, len(BY_HAND), tolerance=0, what="jumps")]
    assert process.offsets is not None
    rates = np.array([5.0, 2.0, 1.0]) / 4  # c v_i/n
    seen = half_fits(golden_flow(L)) - L * BY_HAND
    shift = rates * (process.offsets - seen)
    dated = min((0.0, 0.5 * math.log(math.sqrt(2.0) - 1.0)), key=lambda s: abs(s - shift[0]))
    return [
        at_most(np.abs(shift - dated).max(), 1e-3, what="C_i against a flow, times c v_i/n"),
        at_most(np.abs(process.times - BY_HAND).max(), 1e-12, what="tau against hand"),
    ]


@experiment("TLB26-A4", part="ties-told")
def ties_are_seen(seed: int) -> list[Comparison]:
    """(ii) of the assumption: where two neurons reach size 1 together and share a sample, the
    limit depends on who goes first, and Algorithm 1 says so; on disjoint samples both jump."""
    overlap = np.array([[1, 0], [1, 1], [0, 1]])
    shared = algorithm1(np.ones(3), signs=1, mask=overlap)
    apart = algorithm1(np.array([2.0, 2.0]), signs=1, mask=np.eye(2))
    clear = algorithm1(np.array([1.0, 1.0, 1.1]), signs=1, mask=overlap)
    sizes = [sum(float(np.sum(part**2)) for part in b.final.weights()) for b in shared.branches]
    return [
        equals(shared.ending == "tie", 1, tolerance=0, what="a shared sample: told as a tie"),
        equals(len(shared.branches), 2, tolerance=0, what="continuations followed"),
        at_most(
            max((abs(size - 2 * math.sqrt(2) - 2) for size in sizes), default=math.inf),
            1e-12,
            what="squared norm of each, 2 (sqrt 2 + 1)",
        ),
        equals(apart.ending == "interpolates", 1, tolerance=0, what="disjoint samples: no tie"),
        at_most(np.abs(apart.times - 1.0).max(), 1e-12, what="both jump at n/(c |y|) = 1"),
        equals(clear.ending == "interpolates", 1, tolerance=0, what="labels that differ: no tie"),
    ]


@experiment("TLB26-L3", part="closed-form", quick={"draws": 20}, full={"draws": 1000})
def opposite_components_end(seed: int, draws: int) -> list[Comparison]:
    r"""When a component of the opposite label is off, in closed form, and what is left: e_1.

    With D = (c_1, -c_2) on two unit samples and a balanced neuron, :math:`p = \langle w, D\rangle
    /|D|`, the component <w, x_2> is :math:`w_2 - (c_2/r)(a \sinh rt + p(\cosh rt - 1))`, r = |D|.
    """
    rng = np.random.default_rng(seed)
    worst, met, away = 0.0, 0, 0.0
    for _ in range(draws):
        y = np.array([1.0, -1.0]) * rng.uniform(0.5, 2.0, 2)
        problem = Problem(np.eye(2), y)
        w = rng.uniform(0.2, 1.0, 2)
        a = float(np.linalg.norm(w))
        D = np.abs(y) / 2 * np.array([1.0, -1.0])
        r = float(np.linalg.norm(D))
        p = float(w @ D) / r

        def left(
            t: float, w: Array = w, D: Array = D, r: float = r, a: float = a, p: float = p
        ) -> float:
            return float(w[1] + D[1] / r * (a * math.sinh(r * t) + p * (math.cosh(r * t) - 1)))

        exact = float(brentq(left, 0.0, 50.0 / r, xtol=1e-14))
        found = align(problem, Network(w[None, :], np.array([a])))
        events = [event for event in found.paths[0] if event.sample == 1]
        met += len(events)
        worst = max(worst, abs(events[0].time / exact - 1) if events else np.inf)
        row, vectors = int(found.destination[0]), found.extremal.vectors
        turned = vectors[row] if 0 <= row < len(vectors) else np.zeros(2)
        away = max(away, float(np.linalg.norm(turned - [1.0, 0.0])))
    return [
        equals(met, draws, tolerance=0, what="components that are switched off once"),
        at_most(worst, 1e-9, what="time at which it happens, relative error"),
        at_most(away, 1e-9, what="extremal vector that it turns to, distance to e_1"),
    ]


@experiment("TLB26-L6", part="closed-form", quick={"L": 50.0}, full={"L": 500.0})
def time_of_a_loss(seed: int, L: float) -> list[Comparison]:
    """One neuron on one sample: f' = 2 f (y - f), so that f reaches (1 - eps) y, and the loss
    eps^2 y^2/2, at t = log(f (y - f_0)/(f_0 (y - f)))/(2 y)."""
    from reluflow.gradientflow.flow import flow
    from reluflow.gradientflow.stops import loss_below

    problem, made = Problem(np.ones((1, 1)), np.array([2.0])), []
    y, log_start = 2.0, -2 * L
    for eps in (0.5, 0.1, 1e-3):
        run = flow(
            problem,
            Network(np.ones((1, 1)), np.ones(1), np.array([-L])),
            t_end=5 * L,
            stop=loss_below(0.5 * (eps * y) ** 2),
            rtol=1e-10,
        )
        odds = math.log((1 - eps) / eps) + math.log(y) - log_start
        exact = odds / (2 * y)
        made.append(
            equals(
                run.times[-1],
                exact,
                tolerance=1e-7 * exact,
                what=f"time at which the loss is eps^2 y^2/2, eps = {eps:g}",
            )
        )
        made.append(
            equals(
                run.loss[-1] / (0.5 * (eps * y) ** 2),
                1.0,
                tolerance=1e-6,
                what=f"loss there over eps^2 y^2/2, eps = {eps:g}",
            )
        )
    return made


@experiment("TLB26-E15", part="by-duals", quick={"sets": 5}, full={"sets": 50})
def least_norm_is_least(seed: int, sets: int) -> list[Comparison]:
    """2(|y+| + |y-|) by the dual: c = y+/|y+| + y-/|y-| has max |G_c| = 1 and 2<c, y> is it.

    The bound 2<c, y>/max|G_c| of any other multipliers is no larger.
    """
    rng = np.random.default_rng(seed)
    best, other, found = 0.0, -np.inf, 0.0
    for _ in range(sets):
        y = rng.standard_normal(6)
        y[0], y[1] = abs(y[0]), -abs(y[1])
        problem = Problem(np.linalg.qr(rng.standard_normal((6, 6)))[0], y)
        plus, minus = np.maximum(y, 0.0), np.minimum(y, 0.0)
        sizes = np.linalg.norm(plus), np.linalg.norm(minus)
        least = 2 * float(sum(sizes))
        c = plus / sizes[0] + minus / sizes[1]
        best = max(best, abs(norm_bound(problem, c) / least - 1))
        found = max(found, abs(min_norm(problem).lower_bound / least - 1))
        for _ in range(5):
            e = c + 0.1 * rng.standard_normal(6)
            other = max(other, norm_bound(problem, e) / least - 1)
            top = float(max(np.linalg.norm(np.maximum(s * e, 0.0)) for s in (1, -1)))
            best = max(best, abs(norm_bound(problem, e) / (2 * float(e @ y) / top) - 1))
    return [
        at_most(best, 1e-9, what="bound against 2<c, y>/max(|c+|, |c-|), relative"),
        at_most(other, 0.0, what="bound of other multipliers over the minimum, less 1"),
        at_most(found, 1e-7, what="bound that min_norm finds, relative"),
    ]
