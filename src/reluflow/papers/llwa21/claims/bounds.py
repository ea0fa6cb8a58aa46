"""[LLWA21]_ Appendix B: inequalities for any weights, checked on random networks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.claim import experiment
from reluflow.claims.evidence import Evidence
from reluflow.claims.verdict import Comparison, at_least, at_most
from reluflow.landscape import G, extremal_vectors
from reluflow.network import Network, initialize
from reluflow.papers.llwa21.claims.assumptions import means_separate
from reluflow.papers.llwa21.runs import network_of, sides
from reluflow.problem import Problem, datasets
from reluflow.problem.losses import Logistic
from reluflow.trajectory.observables import slopes, velocity


def states(seed: int, draws: int) -> Iterator[tuple[Problem, Network, np.random.Generator]]:
    """Random data in the unit ball with random networks of all sizes."""
    rng = np.random.default_rng(seed)
    for _ in range(draws):
        X = rng.standard_normal((6, 3))
        X /= np.linalg.norm(X, axis=1).max()
        leak = float(rng.choice([0.1, 0.5, 0.9]))
        problem = Problem(X, rng.choice([-1.0, 1.0], 6), Logistic(), leak)
        size = 10.0 ** rng.uniform(-3, 1)
        m = int(rng.integers(1, 8))
        W, a = rng.standard_normal((m, 3)), rng.standard_normal(m)
        yield problem, Network(size * W, size * a), rng


def linear_velocity(problem: Problem, net: Network) -> tuple[Array, Array]:
    """Minus the gradient of the loss linearised at f = 0."""
    D = (slopes(problem, net) * problem.pull[:, None]).T @ problem.X
    return net.a[:, None] * D, np.sum(net.W * D, axis=1)


@experiment("LLWA21-TB.3", quick={"draws": 100}, full={"draws": 5000})
def euler(seed: int, draws: int) -> list[Comparison]:
    """<g, theta> = 2 q_i: for the gradient by central differences, and at kinks for limits of it.

    At a kink <w_j, x_i> = 0 every Clarke subgradient is a mean of limits of gradients from its two
    sides, so that both are looked at, at a distance of 1e-5 of the network's size.
    """
    off, at_kinks, kinks = 0.0, 0.0, 0
    for p, net, rng in states(seed, draws):
        theta = np.append(net.W.ravel(), net.a)
        step = 1e-6 * float(np.abs(theta).max())
        S = np.abs(p.X @ net.W.T)
        smooth = S.min(axis=1) > 2 * step  # no coordinate's step reaches a kink
        gap = np.abs(gradients(p, theta, net.m, step) @ theta - 2 * p.y * p.outputs(net))[smooth]
        off = max(off, float(gap.max(initial=0.0) / (S @ np.abs(net.a)).max()))
        i, j = int(rng.integers(p.n)), int(rng.integers(net.m))
        one = Problem(p.X[i : i + 1], p.y[i : i + 1], Logistic(), p.leak)
        kink = on_kink(net, p.X[i], j)
        for side in (-1.0, 1.0):
            W = kink.W.copy()
            W[j] += 10 * side * step * p.X[i] / np.linalg.norm(p.X[i]) ** 2
            near = np.append(W.ravel(), kink.a)
            if np.abs(one.X @ W.T).min() < 2 * step:
                continue  # another neuron is on a kink too
            kinks += 1
            along = gradients(one, near, net.m, step) @ np.append(kink.W.ravel(), kink.a)
            gap = np.abs(along - 2 * one.y * one.outputs(kink))
            at_kinks = max(at_kinks, float(gap[0]) / float(np.sum(theta**2)))
    return [
        at_most(off, 1e-8, what="|<grad q, theta> - 2 q|, relative, by differences"),
        at_least(kinks, draws, what="sides of kinks looked at"),
        at_most(at_kinks, 1e-4, what="|<g, theta> - 2 q| / |theta|^2 at kinks, from either side"),
    ]


def gradients(problem: Problem, theta: Array, m: int, step: float) -> Array:
    """grad q_i of all samples by central differences, (n, size of theta)."""
    change = [
        problem.outputs(network_of(theta + h, m)) - problem.outputs(network_of(theta - h, m))
        for h in step * np.eye(theta.size)
    ]
    return np.asarray((problem.y * np.array(change)).T / (2 * step))


def on_kink(net: Network, x: Array, j: int) -> Network:
    """The network with neuron j moved to <w_j, x> = 0."""
    W = net.W.copy()
    W[j] -= x * (W[j] @ x) / (x @ x)
    return Network(W, net.a)


@experiment("LLWA21-LB.5", quick={"draws": 20}, full={"draws": 500})
def gradient_at_maximum(seed: int, draws: int) -> Comparison:
    """At a smooth maximiser u of |G| on the sphere, grad G(u) = G(u) u."""
    worst, smooth = 0.0, 0
    for p, _, _ in states(seed, draws):
        found = extremal_vectors(p)
        i = int(np.argmax(found.rates))
        if found.faces[i]:
            continue
        u, step = found.vectors[i], 1e-6
        eye = np.eye(p.d) * step
        grad = (G(p, u + eye) - G(p, u - eye)) / (2 * step)
        smooth += 1
        worst = max(worst, float(np.linalg.norm(grad - found.values[i] * u)) / found.rates[i])
    return at_most(worst if smooth else np.nan, 1e-8, what="|grad G - G u| / G, by differences")


@experiment("LLWA21-LB.10", quick={"draws": 200}, full={"draws": 10_000})
def outputs_are_bounded(seed: int, draws: int) -> list[Comparison]:
    """|f| <= m |th|_M^2 and |f - f'| <= m |th - th'|_M (|th|_M + |th'|_M)."""
    size, change = 0.0, 0.0
    for p, net, rng in states(seed, draws):
        step = 10.0 ** rng.uniform(-3, 1) * net.m_norm
        dW, da = step * rng.standard_normal(net.W.shape), step * rng.standard_normal(net.m)
        other = Network(net.W + dW, net.a + da)
        size = max(size, np.abs(p.outputs(net)).max() / (net.m * net.m_norm**2))
        bound = net.m * Network(dW, da).m_norm * (net.m_norm + other.m_norm)
        change = max(change, np.abs(p.outputs(net) - p.outputs(other)).max() / bound)
    return [
        at_most(size, 1.0, error=1e-12, what="|f| over its bound"),
        at_most(change, 1.0, error=1e-12, what="|f - f'| over its bound"),
    ]


def _gaps(seed: int, draws: int) -> Iterator[tuple[Network, Array, Array]]:
    """Differences of the true and the linearised gradient, off kinks and close to either side.

    Subgradients of the difference at a kink are means of limits of these.
    """
    for p, net, rng in states(seed, draws):
        i, j = int(rng.integers(p.n)), int(rng.integers(net.m))
        kink = on_kink(net, p.X[i], j)
        for side in (0.0, -1.0, 1.0):
            W = (kink if side else net).W.copy()
            W[j] += 1e-9 * side * net.m_norm * p.X[i]
            near = Network(W, net.a)
            (dW, da), (lW, la) = velocity(p, near), linear_velocity(p, near)
            yield near, np.linalg.norm(dW - lW, axis=1), np.abs(da - la)


@experiment("LLWA21-LB.11", quick={"draws": 200}, full={"draws": 10_000})
def partial_gradients(seed: int, draws: int) -> Comparison:
    """Parts of grad L - grad of the linearised loss: m |th|_M^2 |a_j| and m |th|_M^2 |w_j|."""
    worst = 0.0
    for net, w, a in _gaps(seed, draws):
        scale = net.m * net.m_norm**2
        sizes = np.linalg.norm(net.W, axis=1)
        worst = max(worst, (w / (scale * np.abs(net.a))).max(), (a / (scale * sizes)).max())
    return at_most(worst, 1.0, error=1e-9, what="difference over its bound")


@experiment("LLWA21-LB.12", quick={"draws": 200}, full={"draws": 10_000})
@experiment("LLWA21-CB.13", quick={"draws": 200}, full={"draws": 10_000})
def whole_gradient(seed: int, draws: int) -> Comparison:
    """M-norm of grad L - grad of the linearised loss: at most m |th|_M^3."""
    worst = 0.0
    for net, w, a in _gaps(seed, draws):
        worst = max(worst, max(w.max(), a.max()) / (net.m * net.m_norm**3))
    return at_most(worst, 1.0, error=1e-9, what="difference over its bound")


@experiment("LLWA21-LB.14", quick={"draws": 200}, full={"draws": 10_000})
def small_networks(seed: int, draws: int) -> Comparison:
    """|th|_M <= sqrt(eps / 2m): pulls are (1 + eps_i) y_i / (2n) with |eps_i| <= eps."""
    worst = 0.0
    for p, net, rng in states(seed, draws):
        eps = 10.0 ** rng.uniform(-3, 0)
        small = net.scaled(math.log(math.sqrt(eps / (2 * net.m)) / net.m_norm))
        ratio = p.pull_at(p.outputs(small)) / p.pull
        worst = max(worst, float(np.abs(ratio - 1).max()) / eps)
    return at_most(worst, 1.0, error=1e-12, what="|eps_i| / eps")


@experiment("LLWA21-LE.7", quick={"draws": 5_000}, full={"draws": 200_000})
def good_embeddings(seed: int, draws: int) -> list[Comparison]:
    """bbar of Gaussian starts has both signs with probability 1 - 2^-(m-1).

    bbar_k is N(0, 1 + c^2) up to a positive factor for outer weights of size c, as its proof says.
    Starts are drawn in one piece and cut into networks of m neurons.
    """
    problem = datasets.symmetric_separable(rng=seed)
    mu = sides(problem)[0]
    found = []
    for m, factor in ((2, 1.0), (4, 0.5), (6, 2.0)):
        law: dict[str, Any] = {"kind": "gaussian", "normalize": "none", "outer_factor": factor}
        net = initialize(problem, m * draws, scale=1.0, rng=seed + m, **law)
        b = (net.W @ mu / np.linalg.norm(mu) + net.a).reshape(draws, m)
        share = float(np.mean((b > 0).any(axis=1) & (b < 0).any(axis=1)))
        truth = 1 - 2.0 ** -(m - 1)
        error = 4 * math.sqrt(truth * (1 - truth) / draws)
        what = f"|share of good bbar - (1 - 2^-(m-1))|, m = {m}; 4 s.e."
        found.append(at_most(abs(share - truth), error, what=what))
        off = abs(float(np.mean(b**2)) / (1 + factor**2) - 1)
        what = f"|mean square / (1 + c^2) - 1|, c = {factor:g}; 4 s.e."
        found.append(at_most(off, 4 * math.sqrt(2 / b.size), what=what))
    return found


@experiment("LLWA21-LG.2", quick={"draws": 100}, full={"draws": 2000})
def separators(seed: int, draws: int) -> list[Comparison]:
    """A.2 iff every sum h_i y_i x_i, h in [leak, 1]^n, separates: at the vertices of the box."""
    wrong, holds = 0, 0
    for p, _, rng in states(seed, draws):
        Z = p.y[:, None] * p.X + rng.choice([0.0, 1.0]) * np.array([1.0, 0.0, 0.0])
        moved = Problem(p.y[:, None] * Z, p.y, p.loss, p.leak)
        stated = bool(means_separate(Evidence.of(moved)).ok)
        h = np.array(list(product((p.leak, 1.0), repeat=p.n)))
        separates = bool(((h @ Z @ Z.T) > 0).all())
        holds += stated
        wrong += stated != separates
    return [
        at_least(holds, 1, what="draws that satisfy A.2"),
        at_most(holds, draws - 1, what="and not all of them"),
        at_most(wrong, 0, what="draws where the two differ"),
    ]
