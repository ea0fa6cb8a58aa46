"""What is recorded of outputs along a run: classes told apart, confused, errors left."""

from __future__ import annotations

import numpy as np

from reluflow.arrays import Array
from reluflow.problem import Problem

SEPARATE, GAP = 0.9, 0.1  # share of two classes that prefer their own by so much when told apart


def separations(problem: Problem, f: Array) -> Array:
    """Share of the samples of classes c and e that prefer their own of the two by GAP, (K, K)."""
    labels, K = problem.labels, problem.K
    out = np.ones((K, K))
    right = np.zeros((K, K))
    for c in range(K):
        mine = f[labels == c]
        right[c] = (mine[:, c : c + 1] > mine + GAP).sum(axis=0)
    sizes = np.bincount(labels, minlength=K)
    for c in range(K):
        for e in range(c + 1, K):
            total = max(sizes[c] + sizes[e], 1)
            out[c, e] = out[e, c] = (right[c, e] + right[e, c]) / total
    return out


def confusion(problem: Problem, f: Array) -> Array:
    """Samples of class c (row) whose largest output is e (column)."""
    out = np.zeros((problem.K, problem.K))
    np.add.at(out, (problem.labels, np.argmax(f, axis=1)), 1.0)
    return out


def errors(problem: Problem, f: Array) -> Array:
    """Share of the variation of each output that is left, (K,)."""
    total = np.sum(problem.y**2, axis=0)
    return np.asarray(np.sum((f - problem.y) ** 2, axis=0) / np.where(total > 0, total, 1.0))
