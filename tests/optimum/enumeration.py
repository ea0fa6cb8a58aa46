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


def one_neuron_a_cone(problem, signs):
    """Outputs F, sum |v| and constraints of networks with one neuron v of each sign in a cone."""
    X = problem.X
    F, cost, rules = 0, 0, []
    for u in all_cones(X):
        slopes = np.where(u > 0, 1.0, problem.leak)
        for s in signs:
            v = cvxpy.Variable(problem.d)
            F = F + s * cvxpy.multiply(slopes, X @ v)
            rules.append(cvxpy.multiply(u, X @ v) >= 0)
            cost = cost + cvxpy.norm(v)
    return F, cost, rules


def best_norm(problem, margin, signs=(1, -1)):
    """min sum |v| over networks with one neuron in each cone, so that |theta|^2 = 2 sum |v|."""
    y, (F, cost, rules) = problem.y, one_neuron_a_cone(problem, signs)
    rules.append(cvxpy.multiply(y, F) >= 1 if margin else y == F)
    program = cvxpy.Problem(cvxpy.Minimize(cost), rules)
    program.solve(solver="CLARABEL")
    return program.value


def best_penalised(problem, decay, signs=(1, -1)):
    """min L(F) + decay sum |v| over networks with one neuron in each cone."""
    y, (F, cost, rules) = problem.y, one_neuron_a_cone(problem, signs)
    name = problem.loss.name
    if "square" in name:
        loss = 0.5 * problem.loss.kernel_factor * cvxpy.sum_squares(F - y)
    elif name == "logistic":
        loss = problem.loss.factor * cvxpy.sum(cvxpy.logistic(-cvxpy.multiply(y, F)))
    else:
        loss = problem.loss.factor * cvxpy.sum(cvxpy.exp(-cvxpy.multiply(y, F)))
    # in units of the decay, so that the solver's tolerance means the same for small ones
    aim = cvxpy.Minimize(problem.weight / decay * loss + cost)
    program = cvxpy.Problem(aim, rules)
    tight = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
    program.solve(solver="CLARABEL", **tight)
    return decay * program.value
