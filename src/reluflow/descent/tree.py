"""The tree of activation cones: each cone differs from its parent by a few flipped samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree

from reluflow.arrays import Array, Indices
from reluflow.kernels.wheel import NONE

Patterns = NDArray[np.uint8]

_MST_LIMIT = 4096  # cones up to which the cheapest tree is computed; beyond, a sorted chain
_BLOCK = 1 << 22  # products <w_j, x_k> held at once


def active_patterns(X: Array, W: Array) -> Patterns:
    """Which samples each neuron is active on, packed to bits, shape (m, ceil(n/8))."""
    block = max(1, _BLOCK // max(1, X.shape[0]))
    parts = [np.packbits(W[i : i + block] @ X.T > 0, axis=1) for i in range(0, len(W), block)]
    return np.concatenate(parts)


def distinct(packed: Patterns) -> tuple[Patterns, Indices]:
    """Distinct packed rows and, for each row, which of them it is."""
    rows = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, inverse = np.unique(rows, return_index=True, return_inverse=True)
    return packed[first], inverse.reshape(-1)


def cones_of(X: Array, W: Array) -> tuple[Patterns, Indices]:
    """Patterns (C, n) with the silent one in row 0, and the row of each neuron."""
    packed, row = distinct(active_patterns(X, W))
    patterns = np.unpackbits(packed, axis=1, count=X.shape[0])
    silent = np.flatnonzero(~patterns.any(axis=1))
    if silent.size == 0:
        return np.vstack([np.zeros_like(patterns[:1]), patterns]), row + 1
    swap = np.arange(len(patterns))
    swap[[0, silent[0]]] = silent[0], 0
    return patterns[swap], swap[row]


def circle_bounds(X: Array) -> tuple[Array, Indices, NDArray[np.bool_]]:
    """Two features: sorted angles at which <w, x_k> = 0, such a k, and whether it is the only one.

    With any other number of features nothing.
    """
    if X.shape[1] != 2:
        return np.empty(0), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.bool_)
    rows = np.flatnonzero(np.any(X != 0, axis=1))
    x, y = X[rows, 0], X[rows, 1]
    rays, first, count = np.unique(
        np.concatenate([np.arctan2(x, -y), np.arctan2(-x, y)]),
        return_index=True,
        return_counts=True,
    )
    return rays, rows[first % max(rows.size, 1)], count == 1


def plant(patterns: Patterns) -> tuple[Indices, Indices]:
    """Order of cones, row 0 first, and parents in that order, few flips along the edges."""
    count = len(patterns)
    if count == 1:
        return np.zeros(1, dtype=np.int64), np.full(1, NONE)
    if count > _MST_LIMIT:
        rest = 1 + np.lexsort(patterns[1:].T[::-1])
        return np.concatenate([[0], rest]), np.arange(-1, count - 1)
    ones = patterns.astype(np.float32)
    size = ones.sum(axis=1)
    distance = size[:, None] + size[None, :] - 2.0 * (ones @ ones.T)
    tree = minimum_spanning_tree(np.triu(distance, 1))
    order, before = breadth_first_order(tree, 0, directed=False)
    place = inverse_of(order)
    parents = place[np.maximum(before[order], 0)]
    parents[0] = NONE
    return order.astype(np.int64), parents


def flips_of(patterns: Patterns, parents: Indices) -> tuple[Indices, Indices, Indices, Array]:
    """(start, count, sample, sign) of the samples flipped on the edge above each cone."""
    above = patterns[np.maximum(parents, 0)].astype(np.int8)
    above[0] = 0
    change = patterns.astype(np.int8) - above
    cone, sample = np.nonzero(change)
    count = np.bincount(cone, minlength=len(patterns))
    start = np.concatenate([[0], np.cumsum(count)[:-1]])
    return start, count, sample, change[cone, sample].astype(np.float64)


def hash_table(keys: NDArray[np.uint64], size: int) -> Indices:
    """Open addressing with linear probing, as kernels.lumps.find_cone reads it."""
    table = np.full(size, NONE)
    for cone, key in enumerate(keys.tolist()):
        slot = key & (size - 1)
        while table[slot] != NONE:
            slot = (slot + 1) & (size - 1)
        table[slot] = cone
    return table


def chains(cone: Indices, cones: int) -> tuple[Indices, Indices, Indices]:
    """(head, link, count): the members of each cone as linked lists."""
    order = np.argsort(cone, kind="stable")
    link = np.full(cone.size, NONE)
    same = cone[order[1:]] == cone[order[:-1]]
    link[order[:-1][same]] = order[1:][same]
    count = np.bincount(cone, minlength=cones)
    first = np.concatenate([[0], np.cumsum(count)[:-1]])
    head = np.where(count > 0, order[np.minimum(first, cone.size - 1)], NONE)
    return head, link, count


def inverse_of(order: Indices) -> Indices:
    """The permutation that undoes ``order``."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place
