"""[LLWA21]_: residual, margin bound, gradient and start computed a second time."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from reluflow.arrays import Array
from reluflow.claims.claim import experiment
from reluflow.claims.verdict import Comparison, at_least, at_most, equals
from reluflow.network import Network, initialize
from reluflow.optimum.kkt import kkt
from reluflow.optimum.max_margin import margin_bound, max_margin
from reluflow.problem import Problem, datasets
from reluflow.problem.losses import HalfSquare, Logistic
from reluflow.trajectory.observables import velocity


def outputs_of(problem: Problem, theta: Array, m: int) -> Array:
    """f at the samples of the network with the weights theta = (W, a), written out."""
    W, a = theta[: m * problem.d].reshape(m, problem.d), theta[m * problem.d :]
    f = np.zeros(problem.n)
    for j in range(m):
        z = problem.X @ W[j]
        f += a[j] * np.where(z > 0, z, problem.leak * z)
    return f


def differences(problem: Problem, theta: Array, m: int, h: float = 1e-6) -> Array:
    """d f(x_k) / d theta_i by central differences, shape (n, weights).

    f is quadratic in theta inside a cone, where central differences are exact up to rounding.
    """
    columns = []
    for i in range(theta.size):
        e = h * (np.arange(theta.size) == i)
        ends = [outputs_of(problem, theta + s * e, m) for s in (1.0, -1.0)]
        columns.append((ends[0] - ends[1]) / (2 * h))
    return np.array(columns).T


def separable(rng: np.random.Generator, n: int, leak: float) -> Problem:
    """Separable points in the plane, labels by the first feature, none near the axis."""
    X = rng.uniform(-1.0, 1.0, (n, 2))
    X[:, 0] += 0.5 * np.sign(X[:, 0])
    return Problem(X, np.sign(X[:, 0]), Logistic(), leak=leak)


@experiment("LLWA21-T3.1", part="least-squares", quick={"sets": 10}, full={"sets": 200})
def residual_by_least_squares(seed: int, sets: int) -> list[Comparison]:
    """The distance of theta to the cone of the gradients of the tightest constraints, at random
    networks that separate: nonnegative least squares on gradients by differences."""
    rng = np.random.default_rng(seed)
    worst, least, used = 0.0, np.inf, 0
    while used < sets:
        problem, m = separable(rng, 5, 0.3), 3
        theta = np.concatenate([rng.standard_normal(2 * m) + np.tile([2.0, 0.0], m), [1.0] * m])
        theta[2 * m - 2 : 2 * m] *= -1.0
        theta[-1] = -1.0
        W, a = theta[: 2 * m].reshape(m, 2), theta[2 * m :]
        q = problem.y * outputs_of(problem, theta, m)
        if q.min() <= 1e-3 * q.max() or np.abs(problem.X @ W.T).min() < 1e-3:
            continue
        used += 1
        theta = theta / np.sqrt(q.min())
        for tol in (1e-9, 1.0):
            active = q <= (1 + tol) * q.min()
            A = (problem.y[:, None] * differences(problem, theta, m))[active].T
            exact = nnls(A, theta)[1] / float(np.linalg.norm(theta))
            found = kkt(problem, Network(W, a, leak=0.3), tol=tol).residual
            worst, least = max(worst, abs(found - exact)), min(least, exact)
    return [
        at_most(worst, 1e-6, what="KKT residual against nonnegative least squares"),
        at_least(least, 1e-3, what="least residual of these networks"),
    ]


@experiment("LLWA21-T4.2", part="by-scan", quick={"angles": 200_000}, full={"angles": 2_000_000})
def bound_by_a_scan(seed: int, angles: int) -> list[Comparison]:
    """The margin bound of given multipliers is max_u |sum l_i y_i phi(<u, x_i>)| / (2 sum l_i):
    by a scan of u, and in closed form (1 + leak)/4 |sum l_i y_i x_i| / sum l_i where data are
    symmetric; on the four points +-e1, +-e2 of XOR it is 1/8, which four neurons reach."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 2 * np.pi, angles, endpoint=False)
    circle = np.array([np.cos(t), np.sin(t)])
    scanned, closed, valid = 0.0, 0.0, -np.inf
    for leak in (0.0, 0.3, 0.5):
        half = separable(rng, 4, leak)
        problem = half.replace(
            X=np.vstack([half.X, -half.X]), y=np.concatenate([half.y, -half.y]), known={}
        )
        best = max_margin(problem).margin
        for _ in range(3):
            weights = np.tile(rng.random(4), 2)
            bound = margin_bound(problem, weights)
            S = problem.X @ circle
            G = (weights * problem.y) @ np.maximum(S, leak * S)
            scanned = max(scanned, abs(bound / (np.abs(G).max() / (2 * weights.sum())) - 1))
            total = np.linalg.norm((weights * problem.y) @ problem.X) / weights.sum()
            closed = max(closed, abs(bound / ((1 + leak) / 4 * total) - 1))
            valid = max(valid, best / bound - 1)
    xor = Problem(np.vstack([np.eye(2), -np.eye(2)]), np.array([1.0, -1.0, 1.0, -1.0]))
    reached = Network(xor.X, xor.y)  # f = y, |theta|^2 = 8
    margin = float(np.min(xor.y * outputs_of(xor, np.append(reached.W, reached.a), 4))) / 8
    return [
        at_most(scanned, 1e-8, what="bound against a scan, relative"),
        at_most(closed, 1e-8, what="bound against (1 + leak)/4 |sum l y x| / sum l, relative"),
        at_most(valid, 1e-9, what="largest margin over a bound, less 1"),
        equals(margin_bound(xor, np.ones(4)), 0.125, tolerance=1e-9, what="bound on XOR"),
        equals(margin, 0.125, tolerance=1e-15, what="margin of four neurons on XOR"),
        equals(max_margin(xor).upper_bound, 0.125, tolerance=1e-8, what="largest margin on XOR"),
    ]


@experiment("LLWA21-LB.15", part="differences", quick={"sets": 5}, full={"sets": 50})
def velocity_by_differences(seed: int, sets: int) -> list[Comparison]:
    """Where no sample is on a kink the velocity is minus the gradient of the mean loss.

    Central differences of the loss, written out, against the velocity and against one step of
    descent; leaky activation, two and three features, logistic and half-square losses.
    """
    from reluflow.descent import descend

    rng = np.random.default_rng(seed)
    worst = {"velocity": 0.0, "dense": 0.0, "lumped": 0.0}
    for i in range(sets):
        d, m, h, lr = 2 + i % 2, 4, 1e-5, 1e-3
        y = np.sign(rng.standard_normal(6))
        logistic = i % 4 < 2
        problem = Problem(
            rng.standard_normal((6, d)), y, Logistic() if logistic else HalfSquare(), leak=0.3
        )
        theta = rng.standard_normal(m * (d + 1))
        net = Network(theta[: m * d].reshape(m, d), theta[m * d :], leak=0.3)
        if np.abs(problem.X @ net.W.T).min() < 1e-3:
            continue

        def loss(theta: Array, problem: Problem = problem, logistic: bool = logistic) -> float:
            f = outputs_of(problem, theta, 4)
            each = np.log1p(np.exp(-problem.y * f)) if logistic else 0.5 * (f - problem.y) ** 2
            return float(each.mean())

        steps = h * np.eye(theta.size)
        slope = np.array([(loss(theta - e) - loss(theta + e)) / (2 * h) for e in steps])
        size = float(np.abs(slope).max())
        dW, da = velocity(problem, net)
        gap = np.abs(np.append(dW, da) - slope).max() / size
        worst["velocity"] = max(worst["velocity"], gap)
        for backend in ("dense", "lumped"):
            end = descend(problem, net, lr=lr, steps=1, backend=backend).final
            moved = (np.append(*end.weights()) - theta) / lr
            worst[backend] = max(worst[backend], np.abs(moved - slope).max() / size)
    return [
        at_most(worst["velocity"], 1e-7, what="velocity against differences of the loss, relative"),
        at_most(worst["dense"], 1e-7, what="one dense step against them, relative"),
        at_most(worst["lumped"], 1e-7, what="one lumped step against them, relative"),
    ]


@experiment("LLWA21-LB.15", part="closed-form", quick={"t_end": 8.0}, full={"t_end": 30.0})
def sliding_in_closed_form(seed: int, t_end: float) -> list[Comparison]:
    """On a kink the velocity is the element of least norm: a valley whose output is logistic.

    x_1 = (1, 1/2) pulls a neuron w = (w_1, 0) = (a, 0) up the hyperplane of x_2 = (0, 1), whose
    label -1 pushes it back; with c_1 = (1 - f)/2 the slope c_1/|c_2| of x_2 gives D = (c_1, 0),
    so f = a w_1 obeys f' = f (1 - f), and the loss falls by |velocity|^2 = 2 f c_1^2.
    """
    from reluflow.gradientflow.flow import flow

    problem = Problem(np.array([[1.0, 0.5], [0.0, 1.0]]), np.array([1.0, -1.0]))
    times = np.linspace(0.0, t_end, 41)
    output, off, energy = 0.0, 0.0, 0.0
    for start in np.random.default_rng(seed).uniform(0.05, 0.6, 3):
        run = flow(
            problem,
            Network(np.array([[start, 0.0]]), np.array([start])),
            t_end=t_end,
            save=times,
            rtol=1e-9,
        )
        f = 1 / (1 + (1 / start**2 - 1) * np.exp(-times))
        seen = np.array([problem.outputs(net) for net in run.path()])
        output = max(output, np.abs(seen[:, 0] - f).max(), np.abs(seen[:, 1]).max())
        off = max(off, max(abs(float(net.weights()[0][0, 1])) for net in run.path()))
        # loss (1 - f)^2/4 + 1/4: its derivative -(1 - f) f'/2 is -2 f c_1^2
        energy = max(energy, np.abs(run.loss - (0.25 * (1 - f) ** 2 + 0.25)).max())
    return [
        at_most(output, 1e-7, what="outputs against the logistic curve"),
        at_most(off, 1e-7, what="distance to the hyperplane"),
        at_most(energy, 1e-7, what="loss against its closed form"),
    ]


@experiment("LLWA21-T4.3", part="moments", quick={"m": 200_000}, full={"m": 5_000_000})
def gaussian_start(seed: int, m: int) -> list[Comparison]:
    """The start of the theorem: w_j ~ N(0, sigma^2 I), a_j ~ N(0, c_a^2 sigma^2), by moments.

    Second moments have relative standard error sqrt(2/draws); within five of them.
    """
    problem = datasets.figure1_left()
    sigma, made = 1e-3, []
    for c_a in (1.0, 0.5):
        net = initialize(problem, m, sigma, "gaussian", seed, normalize="none", outer_factor=c_a)
        for name, draws, size in (("w", net.W, sigma), ("a", net.a, c_a * sigma)):
            made.append(
                equals(
                    np.mean(draws**2) / size**2,
                    1.0,
                    tolerance=5 * np.sqrt(2 / draws.size),
                    what=f"mean {name}^2 over its variance, c_a = {c_a:g}",
                )
            )
        mixed = np.mean(net.W[:, 0] * net.a) / (c_a * sigma**2)
        made.append(equals(mixed, 0.0, tolerance=5 / np.sqrt(m), what="mean w_1 a, c_a = 1 units"))
    return made
