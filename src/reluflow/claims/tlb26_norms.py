"""[TLB26]_: the squared norm that is learned, against the smallest one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reluflow.claims.claim import experiment
from reluflow.claims.verdict import Comparison, Status, at_least, at_most, equals
from reluflow.network import Network
from reluflow.prediction.orthogonal import algorithm1
from reluflow.prediction.orthogonal_process import OrthogonalProcess
from reluflow.problem import datasets


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


@experiment("TLB26-T3", quick={"sizes": (16, 64, 256), "draws": 20},
            full={"sizes": (16, 64, 256, 1024, 8192), "draws": 20}, expected=Status.HOLDS,
            reason="checked with constants derived again; the probability is vacuous")  # fmt: skip
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


@experiment("TLB26-B22", quick={"draws": 20}, full={"draws": 500})
def one_neuron_per_sign(seed: int, draws: int) -> list[Comparison]:
    """If one neuron per sign covers its points there are two jumps and the minimal norm."""
    rng = np.random.default_rng(seed)
    jumps, ratio = 0, 0.0
    for _ in range(draws):
        y = rng.standard_normal(12)
        y[:2] = np.abs(y[0]), -np.abs(y[1])
        mask = rng.random((12, 8)) < 0.5
        signs = np.array([1.0, -1.0] * 4)
        mask[y > 0, 0] = True
        mask[y < 0, 1] = True
        found = algorithm1(y, signs=signs, mask=mask)
        jumps, ratio = max(jumps, found.n_jumps), max(ratio, found.ratio)
    return [
        equals(jumps, 2, tolerance=0, what="most jumps"),
        equals(ratio, 1.0, tolerance=1e-12, what="largest ratio of squared norms"),
    ]
