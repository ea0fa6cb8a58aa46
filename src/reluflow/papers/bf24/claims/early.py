"""[BF24]_ Theorem 1, Lemmas 1 and 13, Conditions 1 and 2: single neurons on their way.

Predictions of the landscape (constants, basins, closed forms of each neuron) beside definitions
written out separately and beside gradient flow from tiny starts.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from reluflow.claims.claim import Found, claim, experiment
from reluflow.claims.evidence import Evidence
from reluflow.claims.run import as_found
from reluflow.claims.verdict import Comparison, at_least, at_most, equals
from reluflow.descent.descend import descend
from reluflow.errors import ReluflowError
from reluflow.gradientflow.flow import flow
from reluflow.landscape import D, align, constants, early, extremal_vectors, pattern
from reluflow.landscape.extremal import ExtremalVectors
from reluflow.network import Network, initialize
from reluflow.papers.bf24.claims.alignment import (
    ALIGN,
    ALIGNING,
    ALPHA0,
    SIZES,
    _neurons_meeting_condition,
    _small_enough,
    among_saddles,
    known_constants,
)
from reluflow.papers.bf24.claims.landscape import random_problems
from reluflow.papers.bf24.data import no_saddle
from reluflow.papers.bf24.planar import NONE, planar_constants, planar_faces, planar_sets
from reluflow.papers.bf24.runs import EPS, aligning_run, log_total
from reluflow.problem import Problem, datasets

TINY = -200.0  # log of a scale at which f is felt long after the neurons have turned


@experiment("BF24-T1", form="repaired", part="constants", quick={"sets": 20}, full={"sets": 200})
def constants_by_definition(seed: int, sets: int, eps: float = 0.25) -> list[Comparison]:
    """Eq. 21 to 25 term by term in the plane: D_max, tau, lambda* and what they are made of."""
    worst = dict.fromkeys(("D_max", "D_min", "alpha_plus", "alpha_minus", "delta_0"), 0.0)
    worst |= {"tau": 0.0, "log lambda*": 0.0}
    problems = [datasets.three_points()]
    problems += [p for leak in (0.0, 0.2) for p in random_problems(seed, sets, d=2, leak=leak)]
    for problem in problems:
        found, known = constants(problem), planar_constants(problem)
        pairs = {name: (getattr(found, name), getattr(known, name)) for name in list(worst)[:5]}
        pairs["tau"] = found.alignment_time(-7.0, eps), known.tau(-7.0, eps)
        if known.alpha_minus_printed >= known.alpha_minus:  # the printed set says no less
            star = known.log_scale_bound(0.5, eps)
            pairs["log lambda*"] = found.log_scale_bound(0.5, eps), star
        for name, (one, other) in pairs.items():
            worst[name] = max(worst[name], abs(one / other - 1))
    figure2 = constants(problems[0])
    return [
        *(at_most(gap, 1e-8, what=f"{name}: relative difference") for name, gap in worst.items()),
        equals(
            figure2.alignment_time(math.log(1e-3), eps),
            2.415,
            tolerance=5e-4,
            what="tau, Figure 2, lambda = 1e-3",
        ),
        equals(
            math.exp(figure2.log_scale_bound(1.0, eps)),
            0.013979,
            tolerance=5e-7,
            what="lambda*, Figure 2, alpha_0 = 1",
        ),
        equals(
            math.exp(figure2.log_scale_bound(0.1, eps)),
            5.27e-4,
            tolerance=5e-7,
            what="lambda*, Figure 2, alpha_0 = 0.1",
        ),
    ]


def _problems_without_saddle(
    seed: int, sets: int, growing: bool = False
) -> list[tuple[Problem, ExtremalVectors]]:
    """Gaussian data of four samples in two and three dimensions whose G has no saddle.

    With ``growing`` every neuron that moves on grows, at rates within a factor 5: one that
    shrinks along a ray for ever keeps |a| = |w| no longer than rounding does.
    """
    made = []
    for d in (2, 3):
        fine = []
        for problem in random_problems(seed, 40 * sets, 4, d):
            found = extremal_vectors(problem, basin_points=0)
            if any("saddle" in kind for kind in found.kinds):
                continue
            rates = found.rates[found.rates > 0]
            ways = {"max": 1, "min": -1}
            shrinks = any(
                ways.get(k, s) != s for k, s in zip(found.kinds, found.signs, strict=True)
            )
            if not growing or (not shrinks and rates.max() < 5 * rates.min()):
                fine.append((problem, extremal_vectors(problem) if growing else found))
            if len(fine) == sets:
                break
        made += fine
    return made


def _even_directions(problem: Problem, m: int, rng: np.random.Generator) -> Network:
    """m directions with either sign of the outer weight: evenly spaced in the plane, else drawn."""
    if problem.d == 2:
        angle = 2 * np.pi * (np.arange(m) + rng.random()) / m
        W = np.column_stack([np.cos(angle), np.sin(angle)])
    else:
        W = rng.standard_normal((m, problem.d))
        W /= np.linalg.norm(W, axis=1, keepdims=True)
    a = np.repeat([1.0, -1.0], m)
    return Network(np.vstack([W, W]), a, np.full(2 * m, TINY), problem.leak, problem.bias)


@experiment(
    "BF24-T1",
    form="repaired",
    part="ends",
    quick={"sets": 4, "m": 200},
    full={"sets": 20, "m": 1000},
)
def ends_of_neurons(seed: int, sets: int, m: int) -> list[Comparison]:
    """Theorem 1: neurons with a > 0 end at the maxima of G, those with a < 0 at its minima, and
    each takes the share of directions that its basin says (the flow from tiny starts counts)."""
    rng = np.random.default_rng(seed)
    wrong, worst, ends = 0, 0.0, 0
    for problem, found in _problems_without_saddle(seed, sets, growing=True):
        basins = found.basin_fractions
        if basins is None:
            raise ReluflowError("the extremal vectors have no basins: give basin_points above 0")
        moving = np.flatnonzero(np.abs(found.values) > 0)
        run = flow(
            problem, _even_directions(problem, m, rng), t_end=-0.5 * TINY / found.rates.max()
        )
        gap = run.final.directions[:, None] - found.vectors[None, moving]
        near = np.linalg.norm(gap, axis=2)
        end = np.where(near.min(axis=1) <= 1e-2, moving[near.argmin(axis=1)], -1)
        for column, (sign, kind) in enumerate(((1.0, "max"), (-1.0, "min"))):
            here = end[run.final.a * sign > 0]
            wrong += sum(found.kinds[i] != kind for i in here[here >= 0])
            for i in moving:
                basin = float(basins[i, column])
                # a basin in the plane is an arc, otherwise counted: 4 standard errors, twice
                error = 2 / m if problem.d == 2 else 8 * math.sqrt(0.25 / m)
                worst = max(worst, abs(float(np.mean(here == i)) - basin) / error)
                ends += basin > 0
    return [
        at_least(ends, 2 * sets, what="basins looked at"),
        equals(wrong, 0, tolerance=0, what="neurons at an extremal vector of the other kind"),
        at_most(worst, 1.0, what="share of neurons against the basin, over what counting allows"),
    ]


@experiment(
    "BF24-T1", form="repaired", part="course", quick={"sets": 3, "m": 40}, full={"sets": 20}
)
def course_of_neurons(seed: int, sets: int, m: int) -> list[Comparison]:
    """Eq. 8: until tau a neuron of a tiny network moves as if f were 0, cone by cone.

    The closed form of each neuron against the flow, at every time at which it says that some
    neuron meets a hyperplane, and half-way between these times.
    """
    rng = np.random.default_rng(seed)
    met, gap, events = 0.0, 0.0, 0
    for problem, found in _problems_without_saddle(seed, sets):
        start = initialize(problem, m, log_scale=TINY, kind="sphere", rng=rng)
        paths = align(problem, start).paths
        known = [e for j in range(m) for e in paths[j]]
        times = np.unique([e.time for e in known if e.time < 10 / found.rates.max()])
        times = np.unique(np.concatenate([times, 0.5 * (times[1:] + times[:-1])]))
        times = times[times > 0]
        run = flow(problem, start, t_end=float(times[-1]), save=times, states=True, rtol=1e-10)
        states = dict(zip(run.times.tolist(), run.path(), strict=True))
        for t, closed in zip(times, early(problem, start, times), strict=True):
            v, u = (net.W / net.a[:, None] for net in (states[float(t)], closed))
            gap = max(gap, float(np.abs(v - u).max()))
        norms = problem.norms
        for j in range(m):
            for e in paths[j]:
                if e.sample < 0 or float(e.time) not in states:
                    continue
                events += 1
                w = states[float(e.time)].W[j]
                met = max(met, abs(w @ problem.X[e.sample]) / norms[e.sample] / np.linalg.norm(w))
    return [
        at_least(events, 5 * sets, what="meetings with a hyperplane looked at"),
        at_most(met, 1e-6, what="distance of w to a hyperplane when it is said to meet it"),
        at_most(gap, 1e-6, what="v = w/a, closed form against the flow"),
    ]


def share_of_the_ball(problem: Problem, alpha_0: float) -> float:
    r"""Probability of Condition 1 (1) for w/|a| uniform in the unit disc and fair signs of a.

    Where w has the angle phi, and s cos(w, D) = -c with c > 0, it fails for
    :math:`|w/a|^2 \ge (1 - \alpha_0^2)/c^2`, and |w/a|^2 is uniform in [0, 1].
    """
    fails = 0.0
    for face in planar_faces(problem):
        size = float(np.linalg.norm(face.grad))
        if face.high == face.low or size <= NONE * problem.total_pull:
            continue  # a ray has no angle; where D = 0 the condition is read as met
        phi = np.linspace(face.low, face.high, 20_001)
        cosine = (np.cos(phi) * face.grad[0] + np.sin(phi) * face.grad[1]) / size
        for sign in (1.0, -1.0):
            c = -sign * cosine
            lost = np.where(c > 0, 1 - (1 - alpha_0**2) / np.maximum(c, 1e-9) ** 2, 0.0)
            lost = np.maximum(lost, 0.0)
            fails += float(np.trapezoid(lost, phi)) / (4 * math.pi)
    return 1.0 - fails


@experiment("BF24-T1", form="repaired", part="by-faces", quick={"sets": 3}, full={"sets": 50})
def constants_by_faces(seed: int, sets: int) -> list[Comparison]:
    """tau = -eps ln(lambda) / D_max, and lambda* by Eq. 22, from the faces one by one."""
    worst = dict.fromkeys(("tau", "lambda*", "alpha_min", "delta_0"), 0.0)
    for problem in planar_sets(seed, sets):
        ours, known = planar_constants(problem), constants(problem)
        for log_lambda, eps in ((-7.0, 0.25), (-300.0, 0.1)):
            tau = ours.tau(log_lambda, eps)
            worst["tau"] = max(worst["tau"], abs(known.alignment_time(log_lambda, eps) / tau - 1))
        for alpha_0, eps in ((1.0, 0.25), (0.1, 0.25), (0.7, 0.1)):
            bound = ours.log_scale_bound(alpha_0, eps)
            gap = abs(known.log_scale_bound(alpha_0, eps) - bound)
            worst["lambda*"] = max(worst["lambda*"], gap)
        for name in ("alpha_min", "delta_0"):
            gap = abs(getattr(known, name) / getattr(ours, name) - 1)
            worst[name] = max(worst[name], gap)
    return [
        at_most(worst["tau"], 1e-9, what="tau, relative error"),
        at_most(worst["lambda*"], 1e-6, what="log lambda*, error"),
        at_most(worst["alpha_min"], 1e-6, what="alpha_min, relative error"),
        at_most(worst["delta_0"], 1e-6, what="delta_0, relative error"),
    ]


@claim("BF24-L13", given=[*ALIGN, no_saddle], **ALIGNING, **SIZES)
def patterns_freeze(evidence: Evidence) -> Found:
    """Lemma 13: once a D(w, theta) lies in the neuron's own face (or is 0), the face is kept."""
    p = evidence.problem
    known = known_constants(p)
    log_lambda = log_total(evidence.first())
    tau = known.alignment_time(log_lambda, EPS)
    home: NDArray[np.int8] = np.zeros((evidence.first().m, p.n), dtype=np.int8)
    settled = np.zeros(evidence.first().m, dtype=bool)
    left = np.zeros(evidence.first().m, dtype=bool)
    for net, t in zip(evidence.path(), evidence.times, strict=True):
        if t > tau:
            break
        side = pattern(p, net.W)
        left |= settled & (side != home).any(axis=1)
        grad = D(p, net.W, p.pull_at(p.outputs(net)))
        zero = np.linalg.norm(grad, axis=1) <= 1e-12 * known.D_max
        turn = (pattern(p, np.where(zero[:, None], net.W, grad)).T * np.sign(net.a)).T
        own = (zero | (turn == side).all(axis=1)) & np.isfinite(net.log_norms)
        new = own & ~settled
        home[new], settled = side[new], settled | new
    return Found(
        [
            at_least(settled.mean(), 0.5, what="share of neurons that settle before tau"),
            equals(left.sum(), 0, tolerance=0, what="neurons that leave the face they settled in"),
        ],
        [_small_enough(known, log_lambda, 1.0)],
    )


@experiment("BF24-Cond1", quick={"m": 100}, full={"m": 1000})
def starts_well(seed: int, m: int, draws: int = 100_000) -> list[Comparison]:
    """Condition 1 on data under Assumption 4: every active neuron with a > 0 has it, alpha_0 = 1,
    a neuron put at w = 0 stays there, and of starts uniform in the ball (the paper's example, Eq.
    3 to 5) the share that has it is that of an integral over angles."""
    start = aligning_run(seed, m)
    p, net = start.problem, start.first()
    active = np.flatnonzero((net.a > 0) & (p.X @ net.W.T > 0).any(axis=0))
    missing = np.setdiff1d(active, _neurons_meeting_condition(p, net, 0.0, True))
    end = flow(p, Network(np.zeros((1, p.d)), np.ones(1), bias=p.bias), t_end=1.0).final
    shares = []
    for alpha_0 in (0.3, ALPHA0, 0.95):
        ball = initialize(p, draws, scale=1.0, kind="dominated", rng=seed)
        seen = _neurons_meeting_condition(p, ball, np.sqrt(1 - alpha_0**2), False).size / draws
        known = share_of_the_ball(p, alpha_0)
        error = 4 * np.sqrt(known * (1 - known) / draws)
        shares.append(equals(seen, known, tolerance=error, what=f"share, alpha_0 = {alpha_0:g}"))
    return [
        *shares,
        equals(missing.size, 0, tolerance=0, what="active neurons with a > 0 that violate it"),
        equals(np.abs(end.W).max(), 0.0, tolerance=0.0, what="|w| of a neuron put at 0"),
    ]


@experiment("BF24-Cond2", quick={"m": 100}, full={"m": 1000})
def stays_where_it_can(seed: int, m: int) -> list[Comparison]:
    """Condition 2 along a flow whose G has saddles: some neurons have <D, v> > 0 at the start, and
    none leaves a face, by the rule to stay on a ridge."""
    run = among_saddles(seed, m, -20.0)
    aligned = _neurons_meeting_condition(run.problem, run.first(), 0.0, True)
    return [
        at_least(aligned.size, 1, what="neurons with <D, v> > 0 at the start"),
        *as_found(patterns_freeze(run)).comparisons,
    ]


@experiment("BF24-L1", part="flow", quick={"m": 20, "t_end": 20.0}, full={"m": 200, "t_end": 60.0})
def flow_keeps_balance(seed: int, m: int, t_end: float) -> Comparison:
    """Change of a^2 - |w|^2 over the largest a^2 + |w|^2, from a start of order 1, rtol 1e-12."""
    problem = datasets.three_points()
    net = initialize(problem, m, scale=1.0, kind="gaussian", rng=seed)
    run = flow(problem, net, t_end=t_end, save=np.linspace(0.0, t_end, 21), rtol=1e-12)
    sizes = []
    for state in run.path():
        W, a = state.weights()
        sizes.append((a**2 - np.sum(W**2, axis=1), a**2 + np.sum(W**2, axis=1)))
    gaps, totals = np.array(sizes).transpose(1, 0, 2)
    return at_most(
        (np.abs(gaps - gaps[0]) / totals.max(axis=0)).max(),
        1e-10,
        what="drift of a^2 - |w|^2 over the largest a^2 + |w|^2",
    )


@experiment("BF24-L1", part="euler", quick={"m": 20, "steps": 200}, full={"m": 200, "steps": 5000})
def euler_drifts_by_a_square(seed: int, m: int, steps: int, lr: float = 0.05) -> Comparison:
    """Each step of descent changes a^2 - |w|^2 by lr^2 (a'^2 - |w'|^2), the cross terms cancel."""
    problem = datasets.three_points()
    net = initialize(problem, m, scale=1.0, kind="gaussian", rng=seed)
    run = descend(problem, net, lr=lr, steps=steps, save=range(steps + 1), states=True)
    worst = 0.0
    for now, after in zip(run.path()[:-1], run.path()[1:], strict=True):
        (W, a), (V, b) = now.weights(), after.weights()
        active = W @ problem.X.T > 0.0  # as descent has it, however near a kink
        push = (active * problem.pull_at(problem.outputs(now))) @ problem.X
        dw2, da = a**2 * np.sum(push**2, axis=1), np.sum(W * push, axis=1)
        drift = (b**2 - np.sum(V**2, axis=1)) - (a**2 - np.sum(W**2, axis=1))
        error = np.abs(drift - lr**2 * (da**2 - dw2)) / (b**2 + np.sum(V**2, axis=1))
        worst = max(worst, float(error.max()))
    return at_most(worst, 1e-14, what="drift of a step less lr^2 (a'^2 - |w'|^2), relative")


@experiment("BF24-X1")
def two_solutions(seed: int) -> list[Comparison]:
    """One point, w = 0: staying and leaving, at once or later, are solutions (``on_branch``).

    One that leaves at t_0 has a = cosh u, w = sinh u with u' = 1 - sinh(2 u)/2 and u(t_0) = 0,
    which is integrated separately.
    """
    problem = Problem(np.ones((1, 1)), np.ones(1))
    net = Network(np.zeros((1, 1)), np.ones(1))
    stays = flow(problem, net, t_end=0.5, on_branch="stay").final
    known = solve_ivp(
        lambda t, u: 1 - np.sinh(2 * u) / 2, (0.0, 1.0), [0.0], rtol=1e-12, atol=1e-14
    ).y[0, -1]
    made = [equals(abs(stays.weights()[0][0, 0]), 0.0, tolerance=0.0, what="|w| when staying")]
    for start, when in ((net, "at once"), (stays, "at 0.5")):
        W, a = flow(problem, start, t_end=1.0, on_branch="leave").final.weights()
        gap = max(abs(W[0, 0] - np.sinh(known)), abs(a[0] - np.cosh(known)))
        made.append(at_most(gap, 1e-7, what=f"error of (w, a) 1 after leaving {when}"))
    return made
