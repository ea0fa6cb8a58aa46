"""Neurons that change cone are followed one by one until they have calmed down.

    w <- w + h a D_u,   a <- a + h <w, D_u>,   u the cone of (w, a) itself.

At a hyperplane that attracts, gradient descent jumps to and fro across it, often at every step.
Leaving and joining a lump costs O(d^3) and blurs its moments, so such a neuron is kept out of the
lumps: a step costs it O(d), since only the nearest hyperplane is looked at (and the cone across it
is remembered: `other`); the slack to the others, less what the neuron has moved, tells when to look
at them again. After CALM steps in one cone it joins the lump there.
"""

import math

import numpy as np

from reluflow.kernels.inner import inlined, inner
from reluflow.kernels.lumps import (
    APPLIED,
    LOOKS,
    LOOSE,
    MOVES,
    PENDING,
    cone_at,
    has_room,
    inspect,
    join,
    power,
    store_base,
)
from reluflow.kernels.wheel import NONE

CALM = 32
NEAR_ONE = 2.0**30  # a loose vector beyond this, or below its inverse, gets a new exponent


@inner
def nearest(L, j):
    """(sample of the nearest hyperplane, slack to the others) of loose neuron j."""
    n, d = L.X.shape
    best, second, near = np.inf, np.inf, NONE
    for k in range(n):
        if L.size[k] == 0.0:
            continue
        s = 0.0
        for i in range(d):
            s += L.Z[j, i] * L.X[k, i]
        s = abs(s) / L.size[k]
        if s < best:
            best, second, near = s, best, k
        elif s < second:
            second = s
    return near, second


@inlined
def nearest_on_circle(L, j, arc):
    """:func:`nearest` for two features: only the two rays on either side of the neuron count."""
    total = L.bound.size
    best, second, near = np.inf, np.inf, NONE
    for q in range(arc - 1, arc + 3):
        b = q % total
        s = abs(L.ray[b, 0] * L.Z[j, 1] - L.ray[b, 1] * L.Z[j, 0])
        if s < best:
            best, second, near = s, best, L.owner[b]
        elif s < second:
            second = s
    return near, second


@inlined
def watch(L, j):
    """Note the hyperplane nearest to loose neuron j and its slack to all others."""
    arc = L.arc[L.cone[j]]
    if arc != NONE and L.bound.size > 4:
        near, second = nearest_on_circle(L, j, arc)
    else:
        near, second = nearest(L, j)
    if near != L.near[j]:
        L.other[j] = NONE
    L.near[j] = near
    L.rest[j] = second * (1.0 - 1e-9)  # a rounding less: late is wrong, early costs a look


@inlined
def across(L, u, v, k):
    """Whether cones u and v lie on the two sides of the hyperplane of sample k and of no other.

    Only then may a neuron change between them on the sign of <w, x_k> alone.
    """
    p, q, total = L.arc[u], L.arc[v], L.bound.size
    if p != NONE and q != NONE and total > 2:
        if (p + 1) % total == q:
            return L.alone[q] and L.owner[q] == k
        if (q + 1) % total == p:
            return L.alone[p] and L.owner[p] == k
        return False
    count = 0
    for i in range(L.X.shape[0]):
        count += L.pattern[u, i] != L.pattern[v, i]
    return count == 1 and L.pattern[u, k] != L.pattern[v, k]


@inner
def let_loose(L, seen):
    """Pending neurons enter their new cones as loose ones; False when a new cone has no room."""
    while L.counts[APPLIED] < L.counts[PENDING]:
        if not has_room(L):
            return False
        j = L.pending[L.counts[APPLIED]]
        u = L.cone[j]
        v = cone_at(L, L.Z[j], u, seen)
        L.cone[j] = v
        L.size2[j] = power(2 * L.exponent[j])
        L.calm[j] = 0
        watch(L, j)
        L.other[j] = u if L.near[j] != NONE and across(L, u, v, L.near[j]) else NONE
        L.loose[L.counts[LOOSE]] = j
        L.counts[LOOSE] += 1
        L.counts[APPLIED] += 1
        L.counts[MOVES] += 1
    L.counts[PENDING] = 0
    L.counts[APPLIED] = 0
    return True


@inner
def add_loose(dims, total, loose, cone, Z, size2, T):
    """Add the outputs of loose neurons, a w, to the sums T of their cones."""
    d = len(dims)
    for q in range(total):
        j = loose[q]
        outer = size2[j] * Z[j, d]
        for i in range(d):
            T[cone[j], i] += outer * Z[j, i]


@inner
def step_loose(dims, total, loose, cone, Z, rest, D, h, both):
    """w += h a D, a += h <w, D> for every loose neuron; its slack shrinks by what it moved."""
    d = len(dims)
    for q in range(total):
        j = loose[q]
        u = cone[j]
        outer, along, size = Z[j, d], 0.0, 0.0
        for i in range(d):
            along += Z[j, i] * D[u, i]
            size += D[u, i] * D[u, i]
            Z[j, i] += h * outer * D[u, i]
        if both:
            Z[j, d] = outer + h * along
        rest[j] -= abs(h * outer) * math.sqrt(size)


@inlined
def drop(L, q):
    """Take entry q out of the list of loose neurons."""
    j = L.loose[q]
    L.counts[LOOSE] -= 1
    L.loose[q] = L.loose[L.counts[LOOSE]]
    L.calm[j] = NONE
    return j


@inner
def rescale(L, j):
    """Bring a loose vector near 1 by a power of two, if it has gone far."""
    top = 0.0
    for i in range(L.Z.shape[1]):
        top = max(top, abs(L.Z[j, i]))
    if top > NEAR_ONE or top < 1.0 / NEAR_ONE:
        before = L.exponent[j]
        store_base(L, j, L.Z[j].copy())
        L.size2[j] = power(2 * L.exponent[j])
        L.rest[j] = math.ldexp(L.rest[j], before - L.exponent[j])


@inner
def follow_loose(L, z, seen, work):
    """After a step: who crossed, who must be looked at, who has calmed down."""
    d = L.X.shape[1]
    q = 0
    while q < L.counts[LOOSE]:
        j = L.loose[q]
        u, near = L.cone[j], L.near[j]
        if L.rest[j] <= 0.0:
            _, changed, _ = inspect(L, L.Z[j], u, seen)
            L.counts[LOOKS] += 1
            if changed:
                L.pending[L.counts[PENDING]] = drop(L, q)
                L.counts[PENDING] += 1
                continue
            watch(L, j)
        elif near != NONE:
            s = 0.0
            for i in range(d):
                s += L.Z[j, i] * L.X[near, i]
            if (s > 0.0) != (L.pattern[u, near] == 1):
                rescale(L, j)
                if L.other[j] == NONE:
                    L.pending[L.counts[PENDING]] = drop(L, q)
                    L.counts[PENDING] += 1
                    continue
                L.cone[j], L.other[j] = L.other[j], u
                L.calm[j] = 0
                L.counts[MOVES] += 1
        L.calm[j] += 1
        if L.calm[j] > CALM:
            drop(L, q)
            join(L, j, z, seen, work)
            continue
        q += 1
