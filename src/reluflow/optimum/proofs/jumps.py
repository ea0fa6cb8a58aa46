"""Algorithm 1 of [TLB26]_ on orthonormal samples, as arrays that can be checked."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from reluflow.arrays import Array
from reluflow.network import Network
from reluflow.optimum.proofs.rounding import above, below, sides_of
from reluflow.problem import Problem

ROOM = 1e-13  # relative width of the bounds of times


def jump_arrays(problem: Problem, net: Network) -> tuple[dict[str, Array], dict[str, float]]:
    """Order, samples, times and plateaus of the jumps from a start, and the claims."""
    W, a = net.weights()
    on = sides_of(W, problem.X) > 0
    cones = on & (np.sign(a)[:, None] * np.sign(problem.y) > 0)
    kappa = problem.weight * problem.loss.curvature
    factor = Fraction(problem.loss.curvature)
    if problem.reduction == "mean":
        factor /= problem.n
    squares = [Fraction(v) ** 2 for v in problem.y.tolist()]
    left, beta, time, norm2 = problem.y != 0.0, np.full(len(a), -1.0), 0.0, 0.0
    order: list[int] = []
    fitted: list[Array] = []
    times: list[float] = []
    losses: list[Fraction] = []
    while True:
        losses.append(factor / 2 * sum((squares[k] for k in np.flatnonzero(left)), Fraction(0)))
        sizes = np.sqrt((cones & left) @ problem.y**2)
        if not sizes.any():
            break
        waits = np.full(len(a), math.inf)
        waits[sizes > 0.0] = -beta[sizes > 0.0] / (kappa * sizes[sizes > 0.0])
        j = int(waits.argmin())
        time, norm2 = time + float(waits[j]), norm2 + 2.0 * float(sizes[j])
        beta = beta + waits[j] * kappa * sizes
        order.append(j)
        times.append(time)
        fitted.append((cones[j] & left).astype(float))
        left = left & ~cones[j]
    arrays = {
        "W": W,
        "a": a,
        "order": np.array(order, dtype=float),
        "fitted": np.array(fitted).reshape(-1, problem.n),
        "time_lower": np.array(times) * (1.0 - ROOM),
        "time_upper": np.array(times) * (1.0 + ROOM),
        "loss_lower": np.array([below(loss) for loss in losses]),
        "loss_upper": np.array([above(loss) for loss in losses]),
    }
    return arrays, {"norm2_lower": norm2 * (1.0 - ROOM), "norm2_upper": norm2 * (1.0 + ROOM)}
