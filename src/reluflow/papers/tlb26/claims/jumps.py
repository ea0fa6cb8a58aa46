"""[TLB26]_: when jumps come, and what happens at one: rapid fitting, realignment, continuous
exponents.
"""

from __future__ import annotations

import math

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.claim import experiment
from reluflow.claims.verdict import Comparison, at_least, at_most, equals
from reluflow.errors import ReluflowError
from reluflow.gradientflow.flow import flow
from reluflow.gradientflow.stops import loss_below
from reluflow.landscape import D
from reluflow.network import Network
from reluflow.papers.tlb26.claims.lemmas import FALLS, NEURON, RERUN, falls, inverse_log, slowest
from reluflow.papers.tlb26.runs import (
    Course,
    course,
    courses,
    draws,
    golden_course,
    half_fit_times,
    offsets_of,
    wrong_counts,
)
from reluflow.prediction.limit import limit
from reluflow.prediction.orthogonal import algorithm1
from reluflow.problem import Problem, datasets
from reluflow.trajectory import Trajectory


def rise_time(c: Course, i: int, low: float, high: float) -> float:
    """Time in which |w|^2 of the neuron of jump i goes from the share ``low`` to ``high`` of v."""
    share = np.exp(2 * c.log_norms[:, c.process.neurons[i][0]]) / c.process.sizes[i]
    share = np.clip(share, 1e-300, 1 - 1e-15)
    x, t = np.log(share / (1 - share)), c.run.times
    ends = []
    for level in (low, high):
        z = math.log(level / (1 - level))
        k = int(np.argmax(x >= z))
        ends.append(t[k - 1] + (t[k] - t[k - 1]) * (z - x[k - 1]) / (x[k] - x[k - 1]))
    return float(ends[1] - ends[0])


def _rises(low: float | None, high: float, scales: tuple[float, ...]) -> tuple[float, list[Array]]:
    """Largest relative error against the logistic law on the golden case, and the durations."""
    worst, found = 0.0, []
    for log_scale in scales:
        c = golden_course(log_scale)
        lows = [NEURON**2 / v if low is None else low for v in c.process.sizes]
        times = np.array([rise_time(c, i, x, high) for i, x in enumerate(lows)])
        odds = [math.log(high / (1 - high)) - math.log(x / (1 - x)) for x in lows]
        exact = np.array(odds) / (2 * c.rate * c.process.sizes)
        worst = max(worst, float(np.abs(times / exact - 1).max()))
        found.append(times)
    return worst, found


def fitted_loss_rise(c: Course) -> float:
    """How much the loss on fitted samples rises at a later jump, over the first loss."""
    worst = 0.0
    y = c.problem.y
    for i in range(1, c.process.n_jumps):
        fitted = np.concatenate(c.process.samples[:i])
        loss = 0.5 * c.rate * np.square(c.outputs[:, fitted] - y[fitted]).sum(axis=1)
        reach = 8 / (c.rate * c.process.sizes[i])
        at = np.abs(c.run.times - c.half_fits[i]) <= reach
        worst = max(worst, float((loss[at] - loss[at][0]).max()))
    return worst / float(c.process.losses[0])


@experiment("TLB26-L5")
def growth_to_a_constant(seed: int) -> list[Comparison]:
    """From |w| = 1e-3 to |w|^2 = v/10 in a real time that no scale changes."""
    scales = tuple(-k * math.log(10.0) for k in (100, 200, 400))
    worst, times = _rises(None, 0.1, scales)
    return [
        at_most(worst, 0.01, what="duration against the logistic law, relative"),
        at_most(np.abs(times[-1] / times[0] - 1).max(), 0.01, what="its change with the scale"),
        at_most(fitted_loss_rise(golden_course(scales[0])), 1e-6, what="rise of the fitted loss"),
    ]


@experiment("TLB26-L6", quick={"count": 3}, full={"count": 20})
def rapid_fitting(seed: int, count: int) -> list[Comparison]:
    """10 % to 90 % of |w|^2 takes n log 9/(c v) in real time, 1/L of that accelerated."""
    scales = (-100 * math.log(10.0), -1000.0)
    worst, times = _rises(0.1, 0.9, scales)
    rises = [fitted_loss_rise(c) for row in courses(seed, count, margin=0.05) for c in row]
    return [
        at_most(worst, 0.01, what="golden case: rise times against n log 9/(c v), relative"),
        *[
            equals(t, known, tolerance=0.01 * known, what=f"rise time of jump {i + 1}")
            for i, (t, known) in enumerate(zip(times[0], (1.7578, 4.3944, 8.7889), strict=True))
        ],
        at_most(max(rises), 1e-6, what="random draws: rise of the fitted loss over the first"),
    ]


@experiment("TLB26-L7", quick={"count": 3}, full={"count": 20}, reason=RERUN)
def realignment(seed: int, count: int) -> list[Comparison]:
    """After a jump 1 - cos decays at the rate 2 c S_j/n."""
    rates = []
    for row in courses(seed, count):
        c = row[-1]
        for i in range(c.process.n_jumps):
            rates += _decay_rates(c, i)
    golden = [r for i in range(2) for r in _decay_rates(golden_course(-1000.0), i)]
    return [
        at_least(len(rates), 1, what="realignments measured"),
        at_most(np.abs(np.array(rates) - 2).max(), 0.04, what="rate over c S_j/n, distance to 2"),
        at_least(len(golden), 1, what="golden case: realignments measured"),
        at_most(np.abs(np.array(golden) - 2).max(), 0.04, what="golden case: distance to 2"),
    ]


def _decay_rates(c: Course, i: int) -> list[float]:
    """Rates of log(1 - cos) over c S_j/n after jump i, for dormant neurons that it touches."""
    process, found = c.process, []
    high = c.ends(i + 1)[1]
    begin = c.half_fits[i] + 10 / (c.rate * process.sizes[i])  # residuals are 2e-9 by then
    t, y = c.run.times, c.problem.y
    saddle = np.where(np.isin(np.arange(y.size), np.concatenate(process.samples[: i + 1])), y, 0.0)
    stir = np.abs(c.outputs - saddle).max(axis=1) / np.abs(y).max()
    for j in np.flatnonzero(~process.active[i + 1] & (process.rates[i + 1] > 0)):
        if np.allclose(process.directions[i][j], process.directions[i + 1][j]):
            continue
        gap = 0.5 * np.square(c.directions[:, j] - process.directions[i + 1][j]).sum(axis=1)
        calm = stir < 1e-3 * np.sqrt(gap)  # the pull turns less than the neuron has to
        at = np.flatnonzero((t > begin) & (t < high * c.L) & (gap < 1e-3) & (gap > 1e-9) & calm)
        if at.size >= 3:
            slope = np.polyfit(t[at], np.log(gap[at]), 1)[0]
            found.append(float(-slope / process.rates[i + 1][j]))
    return found


@experiment("TLB26-L8", quick={"count": 3}, full={"count": 20}, reason=FALLS)
def continuous_exponents(seed: int, count: int) -> list[Comparison]:
    """Jump of an exponent times L is bounded; directions hold from the middle of a plateau on."""
    jumps, turns = [], []
    rows = courses(seed, count, margin=0.05)
    for row in rows:
        jumps.append([max(_exponent_jumps(c), default=0.0) for c in row])
        turns.append([c.hypothesis[:, 3].max() for c in row])
    steps = np.array(jumps).T
    logs = np.array([c.L for c in row])
    return [
        at_most(steps.max(), 2.0, what="largest jump of log|w_j| across a jump"),
        falls(steps / logs[:, None], inverse_log(row), "jump of an exponent"),
        falls(np.array(turns).T, slowest(rows), "1 - cosine on the middle half"),
    ]


def _exponent_jumps(c: Course) -> list[float]:
    """|log|w_j| from the right - from the left| at every jump, both continued with their slopes."""
    found = []
    for i in range(c.process.n_jumps):
        dormant = ~c.process.active[i + 1] & (c.process.rates[i + 1] > 0)
        before, after = c.records(i)[-1], c.records(i + 1)[-1]
        when = c.half_fits[i]
        left = c.log_norms[before] + c.process.rates[i] * (when - c.run.times[before])
        right = c.log_norms[after] + c.process.rates[i + 1] * (when - c.run.times[after])
        found += np.abs(right - left)[dormant].tolist()
    return found


@experiment(
    "TLB26-T4",
    quick={"count": 2},
    full={"count": 10},
    reason="a quoted theorem on existence: on these instances a solution is there and obeys its "
    "equation",
)
def a_solution_is_there(seed: int, count: int) -> list[Comparison]:
    """The flow found, put into the differential inclusion: difference quotients are velocities."""
    cases = [*draws(seed, count), *draws(seed, count, mixed=True)]
    worst = [_off_the_equation(problem, start) for problem, start in cases]
    return [
        at_most(max(worst), 1e-5, what="difference quotient against the velocity, largest entry")
    ]


def _off_the_equation(problem: Problem, start: Network) -> float:
    """Largest entry of (theta(t + h) - theta(t - h))/(2h) less the velocity, around each jump.

    The velocity is that of D of minimal norm, as frozen components lie on kinks.
    """
    c = course(problem, start, -10 * math.log(10.0))
    h = 1e-3
    spots = [t + s for t in c.half_fits[np.isfinite(c.half_fits)] for s in (-2.0, 0.0, 2.0)]
    times = np.unique(np.concatenate([[t - h, t, t + h] for t in spots]))
    run = flow(problem, start.scaled(-c.L), t_end=float(times[-1]), save=times, rtol=1e-11)
    worst = 0.0
    at = {float(t): k for k, t in enumerate(run.times)}
    for t in spots:
        before, here, after = (run.path()[at[float(s)]] for s in (t - h, t, t + h))
        push = D(problem, here.W, problem.pull_at(problem.outputs(here)))
        W, a = here.weights()
        (W0, a0), (W1, a1) = before.weights(), after.weights()
        gap = np.abs((W1 - W0) / (2 * h) - a[:, None] * push).max()
        worst = max(worst, gap, np.abs((a1 - a0) / (2 * h) - np.sum(W * push, axis=1)).max())
    return float(worst)


@experiment("TLB26-T2", quick={"count": 3}, full={"count": 20}, reason=FALLS)
def jumps_of_the_flow(seed: int, count: int) -> list[Comparison]:
    """Flows from 1e-10, 1e-40 and 1e-100, one sign and mixed, against Algorithm 1."""
    rows = [*courses(seed, count), *courses(seed, count, mixed=True)]
    wide = [row for row in rows if row[0].process.margin >= 0.05]
    late = [c for row in rows for c in row[1:]]
    quotients = [
        np.abs((c.half_fits - b.half_fits) / (c.L - b.L) / c.process.times - 1).max()
        for _, b, c in wide
    ]
    times = [[np.abs(c.half_fits / c.L / c.process.times - 1).max() for c in row] for row in rows]
    late_by = [
        np.abs(c.half_fits - c.process.half_fit_times(log_scale=-c.L)).max() for *_, c in wide
    ]
    general = [
        np.abs(limit(c.problem, c.start).times / c.process.times - 1).max() for _, _, c in wide[:2]
    ]
    norms = [
        abs(c.norm2 / c.process.norm2 - 1) / max(10 * math.exp(-c.L * c.process.margin), 1e-8)
        for c in late
    ]
    return [
        falls(np.array(times).T, inverse_log(rows[0]), "jump times over log(1/alpha)"),
        falls(
            np.array([[c.distances.max() for c in row] for row in rows]).T, slowest(rows), "saddles"
        ),
        at_least(len(wide), 1, what="draws with mu >= 0.05"),
        at_most(max(quotients), 1e-4, what="difference quotient against tau, mu >= 0.05"),
        at_most(max(late_by), 1e-3, what="half-fit times at 1e-100 against L tau + C, mu >= 0.05"),
        at_most(max(general), 1e-6, what="jump times of `limit` against Algorithm 1, relative"),
        equals(
            np.mean([c.fitted_in_order for c in late]),
            1,
            tolerance=0,
            what="order of jumps right from 1e-40 on",
        ),
        equals(
            np.mean([c.carried_as_predicted for c in late]),
            1,
            tolerance=0,
            what="points carried by their neurons from 1e-40 on",
        ),
        at_most(max(norms), 1.0, what="error of the squared norm over max(10 alpha^mu, 1e-8)"),
    ]


# Algorithm 1 on y = (4, 3, 2, 1)/n, n = 4, by hand: S = 5, sqrt 13, sqrt 5; then 2, sqrt 5; then 1
TAU1 = 4 / 5
TAU2 = TAU1 + (1 - TAU1 * math.sqrt(13) / 4) * 4 / 2
TAU3 = TAU2 + (1 - TAU2 * math.sqrt(5) / 4) * 4
BY_HAND = np.array([TAU1, TAU2, TAU3])


def golden_flow(L: float) -> Trajectory:
    """Gradient flow on the golden case from exp(-L), outputs and log-norms recorded."""
    problem = datasets.golden()
    net = Network(problem.known["W0"], np.ones(3), np.full(3, -L))
    near = [L * tau + np.linspace(-30.0, 30.0, 241) for tau in BY_HAND]
    times = np.unique(np.concatenate([np.linspace(0.0, L * (TAU3 + 0.5), 200), *near]))
    return flow(
        problem, net, t_end=times[-1], save=times, rtol=1e-10, observe=["outputs", "log_norms"]
    )


def half_fits(run: Trajectory) -> Array:
    """Times at which f = y/2 on samples 1, 3 and 4 (nan: never)."""
    leaders = [0, 2, 3]
    return half_fit_times(run.times, run["outputs"][:, leaders] / run.problem.y[leaders])


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
        return wrong_counts(len(BY_HAND), limit=process)
    if process.constants is None:
        raise ReluflowError("`limit` gives no constants of dormant neurons: predict from a network")
    runs = [golden_flow(L) for L in logs]
    first, second = map(half_fits, runs)
    quotient = (second - first) / (logs[1] - logs[0])
    L, run, gaps = logs[1], runs[1], []
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
        return wrong_counts(len(BY_HAND), algorithm1=process)
    rates = np.array([5.0, 2.0, 1.0]) / 4  # c v_i/n
    seen = half_fits(golden_flow(L)) - L * BY_HAND
    shift = rates * (offsets_of(process) - seen)
    dated = min((0.0, 0.5 * math.log(math.sqrt(2.0) - 1.0)), key=lambda s: abs(s - shift[0]))
    return [
        at_most(np.abs(shift - dated).max(), 1e-3, what="C_i against a flow, times c v_i/n"),
        at_most(np.abs(process.times - BY_HAND).max(), 1e-12, what="tau against hand"),
    ]


@experiment("TLB26-L6", part="closed-form", quick={"L": 50.0}, full={"L": 500.0})
def time_of_a_loss(seed: int, L: float) -> list[Comparison]:
    """One neuron on one sample: f' = 2 f (y - f), so that f reaches (1 - eps) y, and the loss
    eps^2 y^2/2, at t = log(f (y - f_0)/(f_0 (y - f)))/(2 y)."""
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
