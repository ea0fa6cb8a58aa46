"""Equal sign patterns found by hashing, in time linear in their number."""

import numpy as np
from numba import njit

from reluflow.kernels.inner import inner


@inner
def hashed(u):
    """A 64-bit hash of a row of signs (FNV-1a)."""
    value = np.uint64(14695981039346656037)
    for k in range(u.size):
        value = (value ^ np.uint64(u[k] + 2)) * np.uint64(1099511628211)
    return value ^ (value >> np.uint64(32))


@inner
def same(u, v):
    """Whether two rows are equal."""
    equal = True
    for k in range(u.size):
        equal = equal and u[k] == v[k]
    return equal


@njit(cache=True)
def group_rows(V, group, first):
    """group[i] numbers row i by first appearance, first[g] is that row; returns their count."""
    size = 4
    while size < 2 * V.shape[0]:
        size *= 2
    table = np.full(size, -1)
    count = 0
    for i in range(V.shape[0]):
        place = np.int64(hashed(V[i]) & np.uint64(size - 1))
        while table[place] >= 0 and not same(V[first[table[place]]], V[i]):
            place = (place + 1) % size
        if table[place] < 0:
            table[place] = count
            first[count] = i
            count += 1
        group[i] = table[place]
    return count
