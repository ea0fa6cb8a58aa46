"""[MMV24]_ Lemmas 2 and 4 and App. E.5: slopes of losses, and velocities at random states."""

from __future__ import annotations

import math

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.claim import experiment
from reluflow.claims.verdict import Comparison, at_most, equals
from reluflow.network import Network
from reluflow.problem import Problem, datasets, losses
from reluflow.trajectory.observables import velocity


@experiment("MMV24-L2")
def early_slopes(seed: int) -> list[Comparison]:
    """|-l'(y, f) - y| <= 2|f| for |f| <= 1, three losses."""
    return [
        _slope_excess(loss)
        for loss in (losses.Exponential(), losses.Logistic(factor=2.0), losses.HalfSquare())
    ]


@experiment("MMV24-L2", form="control")
def early_slope_of_plain_logistic(seed: int) -> Comparison:
    """The plain logistic loss, which the lemma leaves out, pulls with 1/2 at f = 0: off by 1/2."""
    excess = _slope_excess(losses.Logistic()).measured
    return equals(excess, 0.5, tolerance=1e-12, what="|-l' - y| - 2|f|, logistic x 1")


def _slope_excess(loss: losses.Loss) -> Comparison:
    f = np.linspace(-1, 1, 2001)
    worst = max(
        float((np.abs(-loss.slope(f, np.full_like(f, y)) - y) - 2 * np.abs(f)).max())
        for y in (1.0, -1.0)
    )
    return at_most(worst, 0.0, what=f"|-l' - y| - 2|f|, {loss.name} x {loss.factor:g}")


def random_state(rng: np.random.Generator, problem: Problem, size: float) -> Network:
    """Balanced neurons with outputs of about the given size."""
    W = rng.standard_normal((10, problem.d))
    net = Network(W, rng.choice([-1.0, 1.0], 10) * np.linalg.norm(W, axis=1))
    return net.scaled(0.5 * math.log(size / np.abs(problem.outputs(net)).max()))


@experiment("MMV24-L4", quick={"draws": 50}, full={"draws": 2000})
def early_turning(seed: int, draws: int) -> Comparison:
    """While max|f| <= 1: |d(w/|w|)/dt - sign(a) P x_a| <= 2 n X_max max|f|, any leak."""
    rng = np.random.default_rng(seed)
    worst = -np.inf
    for _ in range(draws):
        p = datasets.separable(0.5, 8, 3, rng=rng, leak=float(rng.choice([0.0, 0.1, 0.5])))
        net = random_state(rng, p, 10.0 ** rng.uniform(-6, 0))
        dW, _ = velocity(p, net)
        turn = dW / np.linalg.norm(net.W, axis=1)[:, None]
        worst = max(worst, turning_gap(p, net, turn))
    return at_most(worst, 1.0, error=1e-9, what="difference of the velocities over its bound")


@experiment("MMV24-L4", part="descent", quick={"draws": 4}, full={"draws": 200})
def early_turning_of_descent(seed: int, draws: int) -> list[Comparison]:
    """The same for (w/|w|) after a short step of gradient descent, by each method of descend.

    A step lr errs by lr |x_a|^2; rounding over lr is less.
    """
    from reluflow.descent import descend

    rng, lr = np.random.default_rng(seed), 1e-7
    worst: dict[str, float] = {}
    for d, backend in (("2", "dense"), ("2", "lumped"), ("3", "dense"), ("40", "dense")):
        for leak in (0.0, 0.1, 0.5) * draws:
            p = datasets.separable(0.5, 8, int(d), rng=rng, leak=leak)
            net = random_state(rng, p, 10.0 ** rng.uniform(-2, 0))
            end = descend(p, net, lr=lr, steps=1, backend=backend).final
            turn = (end.directions - net.directions) / lr
            name = f"{backend}, {d} features"
            worst[name] = max(worst.get(name, 0.0), turning_gap(p, net, turn))
    return [
        at_most(ratio, 1.0, error=1e-3, what=f"difference over its bound, descent ({name})")
        for name, ratio in worst.items()
    ]


def turning_gap(p: Problem, net: Network, turn: Array) -> float:
    """Largest |turn_j - sign(a_j) P x_a(w_j)| over 2 n X_max max|f|; losses of slope 1, summed."""
    f, unit = np.abs(p.outputs(net)).max(), net.directions
    slopes = np.where(net.W @ p.X.T > 0, 1.0, p.leak)
    gap = turn - np.sign(net.a)[:, None] * (slopes @ (p.y[:, None] * p.X))
    gap -= np.sum(gap * unit, axis=1, keepdims=True) * unit
    bound = 2 * p.n * p.norms.max() * f
    return float(np.linalg.norm(gap, axis=1).max() / bound)


@experiment("MMV24-E5", quick={"draws": 50}, full={"draws": 2000})
def velocity_bound(seed: int, draws: int) -> Comparison:
    """|velocity| <= X_max L |theta| for the exponential loss, sum."""
    rng = np.random.default_rng(seed)
    worst = 0.0
    for _ in range(draws):
        p = datasets.separable(0.5, 8, 3, rng=rng)
        net = random_state(rng, p, 10.0 ** rng.uniform(-3, 0.5))
        dW, da = velocity(p, net)
        factor = np.exp(net.log_factors)
        speed = math.sqrt(np.sum((factor[:, None] * dW) ** 2) + np.sum((factor * da) ** 2))
        W, a = net.weights()
        size = math.sqrt(np.sum(W**2) + np.sum(a**2))
        X_max = float(p.norms.max())
        worst = max(worst, speed / (X_max * p.loss_of(net) * size))
    return at_most(worst, 1.0, error=1e-12, what="|velocity| / (X_max L |theta|)")
