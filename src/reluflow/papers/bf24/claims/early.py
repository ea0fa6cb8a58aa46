"""[BF24]_ Theorem 1: its constants, the ends of single neurons and their way there.

Predictions of the landscape (constants, basins, closed forms of each neuron) beside definitions
written out apart and beside gradient flow from tiny starts.
"""

from __future__ import annotations

import math

import numpy as np

from reluflow.claims.verdict import Comparison, at_least, at_most, equals
from reluflow.landscape import align, constants, early, extremal_vectors
from reluflow.landscape.result import ExtremalVectors
from reluflow.network import Network, initialize
from reluflow.papers.bf24.claims.definitions import NONE, planar_constants, planar_faces, pull_size
from reluflow.papers.bf24.claims.faces import random_problems
from reluflow.problem import Problem, datasets

TINY = -200.0  # log of a scale at which f is felt long after the neurons have turned


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
            star = math.log(known.lambda_star(0.5, eps))
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


def _without_saddle(
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


def _evenly(problem: Problem, m: int, rng: np.random.Generator) -> Network:
    """m directions with either sign of the outer weight: evenly spaced in the plane, else drawn."""
    if problem.d == 2:
        angle = 2 * np.pi * (np.arange(m) + rng.random()) / m
        W = np.column_stack([np.cos(angle), np.sin(angle)])
    else:
        W = rng.standard_normal((m, problem.d))
        W /= np.linalg.norm(W, axis=1, keepdims=True)
    a = np.repeat([1.0, -1.0], m)
    return Network(np.vstack([W, W]), a, np.full(2 * m, TINY), problem.leak, problem.bias)


def ends_of_neurons(seed: int, sets: int, m: int) -> list[Comparison]:
    """Theorem 1: neurons with a > 0 end at the maxima of G, those with a < 0 at its minima, and
    each takes the share of directions that its basin says (the flow from tiny starts counts)."""
    from reluflow.gradientflow.flow import flow

    rng = np.random.default_rng(seed)
    wrong, worst, ends = 0, 0.0, 0
    for problem, found in _without_saddle(seed, sets, growing=True):
        assert found.basin_fractions is not None
        moving = np.flatnonzero(np.abs(found.values) > 0)
        run = flow(problem, _evenly(problem, m, rng), t_end=-0.5 * TINY / found.rates.max())
        gap = run.final.directions[:, None] - found.vectors[None, moving]
        near = np.linalg.norm(gap, axis=2)
        end = np.where(near.min(axis=1) <= 1e-2, moving[near.argmin(axis=1)], -1)
        for column, (sign, kind) in enumerate(((1.0, "max"), (-1.0, "min"))):
            here = end[run.final.a * sign > 0]
            wrong += sum(found.kinds[i] != kind for i in here[here >= 0])
            for i in moving:
                basin = float(found.basin_fractions[i, column])
                # a basin in the plane is an arc, otherwise counted: 4 standard errors, twice
                error = 2 / m if problem.d == 2 else 8 * math.sqrt(0.25 / m)
                worst = max(worst, abs(float(np.mean(here == i)) - basin) / error)
                ends += basin > 0
    return [
        at_least(ends, 2 * sets, what="basins looked at"),
        equals(wrong, 0, tolerance=0, what="neurons at an extremal vector of the other kind"),
        at_most(worst, 1.0, what="share of neurons against the basin, over what counting allows"),
    ]


def course_of_neurons(seed: int, sets: int, m: int) -> list[Comparison]:
    """Eq. 8: until tau a neuron of a tiny network moves as if f were 0, cone by cone.

    The closed form of each neuron against the flow, at every time at which it says that some
    neuron meets a hyperplane, and half-way between these times.
    """
    from reluflow.gradientflow.flow import flow

    rng = np.random.default_rng(seed)
    met, apart, events = 0.0, 0.0, 0
    for problem, found in _without_saddle(seed, sets):
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
            apart = max(apart, float(np.abs(v - u).max()))
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
        at_most(apart, 1e-6, what="v = w/a, closed form against the flow"),
    ]


def share_of_the_ball(problem: Problem, alpha_0: float) -> float:
    r"""Probability of Condition 1 (1) for w/|a| uniform in the unit disc and fair signs of a.

    Where w has the angle phi, and s cos(w, D) = -c with c > 0, it fails for
    :math:`|w/a|^2 \ge (1 - \alpha_0^2)/c^2`, and |w/a|^2 is uniform in [0, 1].
    """
    fails = 0.0
    for face in planar_faces(problem):
        size = float(np.linalg.norm(face.grad))
        if face.high == face.low or size <= NONE * pull_size(problem):
            continue  # a ray has no angle; where D = 0 the condition is read as met
        phi = np.linspace(face.low, face.high, 20_001)
        cosine = (np.cos(phi) * face.grad[0] + np.sin(phi) * face.grad[1]) / size
        for sign in (1.0, -1.0):
            c = -sign * cosine
            lost = np.where(c > 0, 1 - (1 - alpha_0**2) / np.maximum(c, 1e-9) ** 2, 0.0)
            lost = np.maximum(lost, 0.0)
            fails += float(np.trapezoid(lost, phi)) / (4 * math.pi)
    return 1.0 - fails
