"""The same optima by brute force: every activation cone in one program, written for cvxpy."""

import itertools

import cvxpy
import numpy as np


def all_cones(X):
    """Sign patterns of all full-dimensional cones of the hyperplanes x_k, by their rays.

    Every cone touches a ray that is orthogonal to d - 1 samples (or fewer samples span the space
    and any signs of a basis occur): step off each such ray to all sides.
    """
    n, d = X.shape
    rng = np.random.default_rng(0)
    found = set()
    rays = [np.zeros(d)]
    for chosen in itertools.combinations(range(n), d - 1):
        _, sizes, Vt = np.linalg.svd(X[list(chosen)], full_matrices=True)
        if d == 1 or sizes[-1] > 1e-9:
            rays += [Vt[-1], -Vt[-1]]
    for ray in rays:
        for step in rng.normal(size=(60 * 2**d, d)):
            found.add(tuple(np.sign(X @ (ray + 1e-6 * step)).astype(int)))
    return np.array(sorted(found))


def best_norm(problem, margin, signs=(1, -1)):
    """min sum |v| over networks with one neuron in each cone, so that |theta|^2 = 2 sum |v|."""
    X, y = problem.X, problem.y
    F, cost, rules = 0, 0, []
    for u in all_cones(X):
        slopes = np.where(u > 0, 1.0, problem.leak)
        for s in signs:
            v = cvxpy.Variable(problem.d)
            F = F + s * cvxpy.multiply(slopes, X @ v)
            rules.append(cvxpy.multiply(u, X @ v) >= 0)
            cost = cost + cvxpy.norm(v)
    rules.append(cvxpy.multiply(y, F) >= 1 if margin else y == F)
    program = cvxpy.Problem(cvxpy.Minimize(cost), rules)
    program.solve(solver="CLARABEL")
    return program.value
