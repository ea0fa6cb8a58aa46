"""[TLB26]_: the squared norm that is learned, against the smallest one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.claims.claim import experiment
from reluflow.claims.verdict import Comparison, Status, at_least, at_most, equals
from reluflow.gradientflow.flow import flow
from reluflow.landscape import max_G
from reluflow.network import Network
from reluflow.optimum.min_norm import min_norm, norm_bound
from reluflow.prediction.orthogonal import algorithm1
from reluflow.prediction.orthogonal_process import OrthogonalProcess
from reluflow.problem import Problem, datasets
from reluflow.trajectory.phases import phases


@experiment("TLB26-E15", quick={"draws": 50}, full={"draws": 1000})
def norms(seed: int, draws: int) -> list[Comparison]:
    """Norm of the limit, of the smallest interpolator, and the bounds on their ratio."""
    rng = np.random.default_rng(seed)
    golden = datasets.golden()
    process = algorithm1(golden, Network(golden.known["W0"], np.ones(3)))
    low, high = np.inf, -np.inf
    weights = _weights_against_formulas(process)
    for _ in range(draws):
        y = rng.standard_normal(16)
        found = algorithm1(y, signs=rng.choice([-1.0, 1.0], 24), mask=rng.random((16, 24)) < 0.5)
        weights = np.maximum(weights, _weights_against_formulas(found))
        if found.uncovered.size:
            continue
        jumps = [sum(found.signs[who[0]] == s for who in found.neurons) for s in (1, -1)]
        low, high = min(low, found.ratio), max(high, found.ratio / math.sqrt(max(jumps)))
    return [
        equals(process.norm2, 16.0, tolerance=1e-12, what="golden: squared norm"),
        equals(process.min_norm2, 2 * math.sqrt(30), tolerance=1e-12, what="golden: minimum"),
        at_most(weights[0], 1e-12, what="last weights squared and summed against Eq. 15, relative"),
        at_most(weights[1], 1e-12, what="those of the minimum against 2(|y+| + |y-|), relative"),
        at_most(weights[2], 1e-12, what="residuals of the minimum, relative"),
        at_least(low - 1, -1e-12, what="least ratio - 1"),
        at_most(high - 1, 1e-12, what="largest ratio over sqrt(jumps of a sign) - 1"),
    ]


def _weights_against_formulas(process: OrthogonalProcess) -> np.ndarray:
    """Relative errors: norm of the last saddle, norm of the minimum, outputs of the minimum."""
    y = process.problem.y
    learned = 2 * sum(math.sqrt(np.square(y[samples]).sum()) for samples in process.sets)
    least = 2 * sum(float(np.linalg.norm(y[s * y > 0])) for s in (1, -1))
    squares = [
        sum(float(np.square(part).sum()) for part in net.weights())
        for net in (process.networks[-1], process.minimal)
    ]
    left = np.abs(process.problem.outputs(process.minimal) - y).max() / np.abs(y).max()
    return np.array([abs(squares[0] / learned - 1), abs(squares[1] / least - 1), left])


@experiment(
    "TLB26-T3",
    quick={"sizes": (16, 64, 256), "draws": 20},
    full={"sizes": (16, 64, 256, 1024, 8192), "draws": 20},
    expected=Status.HOLDS,
    reason="checked with constants derived again; the probability is vacuous",
)
def norm_grows_like_sqrt_n(seed: int, sizes: Any, draws: int) -> list[Comparison]:
    """Squared norm of the limit against 8.9 max|y| (sqrt n_+ + sqrt n_-), and the mean ratio."""
    rng = np.random.default_rng(seed)
    worst, mean = 0.0, 0.0
    for n in sizes:
        m = math.ceil(8 * math.log2(n))
        ratios = []
        for _ in range(draws):
            y = rng.standard_normal(int(n))
            found = algorithm1(y, signs=rng.choice([-1.0, 1.0], m), mask=rng.random((n, m)) < 0.5)
            bound = np.abs(y).max() * (math.sqrt((y > 0).sum()) + math.sqrt((y < 0).sum()))
            worst = max(worst, found.norm2 / (8.9 * bound))
            ratios.append(found.ratio)
        mean = max(mean, float(np.mean(ratios)))
    return [
        at_most(worst, 1.0, what="squared norm over its bound"),
        at_most(mean, 2.5, what="largest mean ratio to the minimum"),
    ]


@experiment("TLB26-B22", quick={"draws": 20, "flows": 3}, full={"draws": 500, "flows": 20})
def one_neuron_per_sign(seed: int, draws: int, flows: int) -> list[Comparison]:
    """If one neuron per sign covers its points there are two jumps and the minimal norm.

    Algorithm 1 on masks, and gradient flow from 1e-40: its squared norm, how many neurons carry
    it, and how many times its loss falls.
    """
    rng = np.random.default_rng(seed)
    jumps, ratio = 0, 0.0
    for _ in range(draws):
        y, signs, mask = _covered_by_two(rng)
        found = algorithm1(y, signs=signs, mask=mask)
        jumps, ratio = max(jumps, found.n_jumps), max(ratio, found.ratio)
    excess, carried, falls = 0.0, 0.0, 0
    for _ in range(flows):
        y, signs, mask = _covered_by_two(rng)
        W = np.where(mask, 1.0, -1.0).T * np.abs(rng.standard_normal(mask.T.shape))
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        problem = Problem(np.eye(y.size), y)
        slowest = y.size / min(np.linalg.norm(y[y > 0]), np.linalg.norm(y[y < 0]))
        L = 40 * math.log(10.0)
        t_end = 1.3 * L * float(slowest)
        net = Network(W, signs, np.full(signs.size, -L))
        run = flow(problem, net, t_end=t_end, save=np.linspace(0.0, t_end, 2000))
        squares = np.exp(2 * run.final.log_norms)
        least = sum(float(np.linalg.norm(y[s * y > 0])) for s in (1, -1))
        excess = max(excess, abs(float(squares.sum()) / least - 1))
        carried = max(carried, 1 - float(squares[:2].sum() / squares.sum()))
        falls = max(falls, abs(len(phases(run, tol=1e-3).jumps) - 2))
    return [
        equals(jumps, 2, tolerance=0, what="most jumps of Algorithm 1"),
        equals(ratio, 1.0, tolerance=1e-12, what="its largest ratio of squared norms"),
        at_most(excess, 1e-3, what="flow: squared norm over the minimum, less 1"),
        at_most(carried, 1e-3, what="flow: share of it outside the two neurons"),
        equals(falls, 0, tolerance=0, what="flow: falls of the loss beyond two"),
    ]


def _covered_by_two(rng: np.random.Generator) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Labels, signs and mask: neurons 0 and 1 are active on all positive and negative labels.

    The others have at most 0.9 of the label norm of their sign, and the two jumps are 20 % apart.
    """
    while True:
        y = rng.standard_normal(12)
        y[:2] = abs(y[0]), -abs(y[1])
        mask = rng.random((12, 8)) < 0.5
        signs = np.array([1.0, -1.0] * 4)
        mask[y > 0, 0] = True
        mask[y < 0, 1] = True
        S = np.sqrt(np.square(y) @ (mask & (np.outer(y, signs) > 0)))
        if S[2::2].max() < 0.9 * S[0] and S[3::2].max() < 0.9 * S[1] and abs(S[0] / S[1] - 1) > 0.2:
            return y, signs, mask


@experiment("TLB26-E15", part="minimal", quick={"draws": 4, "n": 5}, full={"draws": 30, "n": 7})
def smallest_interpolator(seed: int, draws: int, n: int) -> list[Comparison]:
    r"""Minimality: no network of any width fits the labels with less than 2(|y+| + |y-|).

    For multipliers c, |theta|^2 >= 2 <c, y> / max_w |G_c(w)|. With c = y_k/|y+| on positive and
    y_k/|y-| on negative labels <c, y> = |y+| + |y-|, and on orthonormal samples G_c(w) <=
    |c_+| |w| = |w| by Cauchy-Schwarz. That maximum by random ascents and by a bound of the
    landscape, and the least norm by the convex program, which knows nothing of this.
    """
    rng = np.random.default_rng(seed)
    tops, bounds, programs = [], [], []
    for _ in range(draws):
        problem = datasets.orthonormal(n, d=n + 1, law="normal", rng=rng)
        y = problem.y
        y_up, y_down = np.maximum(y, 0.0), np.minimum(y, 0.0)
        least = 2 * float(np.linalg.norm(y_up) + np.linalg.norm(y_down))
        c = sum(part / max(float(np.linalg.norm(part)), 1e-300) for part in (y_up, y_down))
        tops.append(max_G(problem, pull=c).upper_bound)
        found = min_norm(problem)
        programs.append([found.lower_bound / least - 1, found.norm2 / least - 1])
        bounds.append(2 * float(c @ y) / least - 1)
    spread = np.abs(programs)
    return [
        at_most(max(tops), 1 + 1e-9, what="bound on max |G_c| over unit vectors"),
        at_most(np.abs(bounds).max(), 1e-12, what="2 <c, y> against 2(|y+| + |y-|), relative"),
        at_most(spread[:, 0].max(), 1e-6, what="lower bound of the convex program, relative"),
        at_most(spread[:, 1].max(), 1e-6, what="its smallest network, relative"),
    ]


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
