"""Shared fixtures: the slow twins that kernels and solvers are held to."""

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci")


def plain_descent(problem, net, rates, *, batches=None, both=True):
    """Gradient descent as one would write it; phi'(0) = leak. Returns (W, a)."""
    W, a = (np.array(part) for part in net.weights())
    for t, rate in enumerate(rates):
        S = problem.X @ W.T
        slope = np.where(S > 0, 1.0, problem.leak)
        c = problem.pull_at((slope * S) @ a)
        if batches is not None:
            batch = batches[t][batches[t] >= 0]
            scale = problem.n / batch.size if problem.reduction == "mean" else 1.0
            c = c * np.bincount(batch, minlength=problem.n) * scale
        D = (slope * c[:, None]).T @ problem.X
        W, a = W + rate * a[:, None] * D, a + rate * np.sum(W * D, axis=1) * both
    return W, a


@pytest.fixture(name="plain_descent")
def _plain_descent():
    return plain_descent
