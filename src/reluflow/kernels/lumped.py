r"""Exact gradient descent at the cost of the occupied cones, whatever the number of neurons.

Neurons z = (w, a) of one activation cone u are all moved by the same matrix I + lr M_u,
M_u = [[0, D_u], [D_u^T, 0]], so a cone keeps its propagator P (since its last re-basing) and the
second moments S = sum_j z_j z_j^T, which give f. Cones hang in a tree in which a child differs
from its parent by a few flipped samples: D_u and f are sums along the tree, so a step costs the
flips, not cones times samples. A neuron is looked at only when its deadline passes: with
base vector Z_j, <w_j, x_k>/|x_k| moves at most |Z_j| times the path length that its cone adds
up, lr |P[a, :]| |<D_u, x_k>|/|x_k| per step, maximised over k; the slack to the nearest
hyperplane buys the time until the next look. Neurons that change cone are followed one by one
for a while (kernels.loose).

All sizes carry a power of two per neuron (``exponent``) and per cone (``level``), so scales far
outside the range of floats are exact.

Weight decay multiplies all weights by one number: I + h (M_u - lambda I) = q (I + (h/q) M_u) with
q = 1 - h lambda. So the state here is that of z / (product of the q), moved by steps h/q, and only
f, which is quadratic in z, knows of the difference (``factors``); directions and cones do not.
"""

import math

import numpy as np

from reluflow._compiled import njit
from reluflow.kernels.codes import DIVERGED, DONE, GROW, UNPROFITABLE
from reluflow.kernels.inner import inlined, inner
from reluflow.kernels.loose import add_loose, follow_loose, let_loose, step_loose
from reluflow.kernels.lumps import (
    CONES,
    FLIPS,
    LOOKS,
    LOOKS_BEFORE,
    LOOSE,
    MOVES,
    MOVES_BEFORE,
    PENDING,
    SLOW,
    STEPS,
    current,
    inspect,
    leave,
    rebase,
    schedule,
    trace,
)
from reluflow.kernels.pull import exploded, pulls
from reluflow.kernels.wheel import NONE, take

GROWTH_LIMIT = 4.0  # re-base a cone early: keeps digits (condition <= 16) and deadlines tight
DIRT_LIMIT = 2e-14  # recompute S once removals have left about this relative error
WINDOW = 256  # steps between two looks at the work done
PATIENCE = 4  # unprofitable windows in a row before handing over


@inner
def sums_of_lumps(dims, cones, count, unit, S, T):
    """T_u = sum of a w over the lump of cone u."""
    d = len(dims)
    for u in range(cones):
        size2 = unit[u] if count[u] > 0 else 0.0
        for i in range(d):
            T[u, i] = size2 * S[u, i, d]


@inner
def outputs(dims, cones, T, A, parent, start, flips, sample, sign, X, leak, f):
    """f(x_k) = <x_k, leak * (all) + (1 - leak) * (cones in which k is active)>, up the tree.

    A sample is active in cone u iff it is so in the parent, unless the edge flips it. Summed from
    the leaves, T_u holds the whole subtree, and a flip on the edge to u turns the sample on (sign
    1) or off (-1) for all of it: A_k adds up the subtrees in which k is on.
    """
    n, d = X.shape[0], len(dims)
    for k in range(n):
        for i in range(d):
            A[k, i] = 0.0
    for u in range(cones - 1, 0, -1):
        for q in range(start[u], start[u] + flips[u]):
            for i in range(d):
                A[sample[q], i] += sign[q] * T[u, i]
        for i in range(d):
            T[parent[u], i] += T[u, i]
    for k in range(n):
        total = 0.0
        for i in range(d):
            total += X[k, i] * (leak * T[0, i] + (1.0 - leak) * A[k, i])
        f[k] = total


@inner
def pulls_of_cones(dims, cones, D, parent, start, flips, sample, sign, X, leak, c):
    """D_u = sum_k phi'_{u_k} c_k x_k for every cone, down the tree."""
    n, d = X.shape[0], len(dims)
    for i in range(d):
        D[0, i] = 0.0
    if leak > 0.0:
        for k in range(n):
            for i in range(d):
                D[0, i] += leak * c[k] * X[k, i]
    for u in range(1, cones):
        for i in range(d):
            D[u, i] = D[parent[u], i]
        for q in range(start[u], start[u] + flips[u]):
            g = (1.0 - leak) * sign[q] * c[sample[q]]
            for i in range(d):
                D[u, i] += g * X[sample[q], i]


@inner
def advance(dims, u, S, P, D, h, both, AD):
    """S <- (I+hM) S (I+hM)^T and P <- (I+hM) P, M = [[0, D], [D^T (if both), 0]].

    In blocks S = [[A, v], [v^T, s]]: A += h (D v^T + v D^T) + h^2 s D D^T, v += h (s D + A D) +
    h^2 <v, D> D, s += 2h <v, D> + h^2 <D, A D>, all with the values before the step.
    """
    d = len(dims)
    s, vD, DAD = S[u, d, d], 0.0, 0.0
    for i in range(d):
        total = 0.0
        for q in range(d):
            total += S[u, i, q] * D[u, q]
        AD[i] = total
        vD += S[u, i, d] * D[u, i]
        DAD += D[u, i] * total
    for i in range(d):
        for q in range(i + 1):
            S[u, i, q] += h * (D[u, i] * S[u, q, d] + S[u, i, d] * D[u, q])
            S[u, i, q] += h * h * s * D[u, i] * D[u, q]
            S[u, q, i] = S[u, i, q]
    for i in range(d):
        S[u, i, d] += h * s * D[u, i]
        if both:
            S[u, i, d] += h * AD[i] + h * h * vD * D[u, i]
        S[u, d, i] = S[u, i, d]
    if both:
        S[u, d, d] = s + 2.0 * h * vD + h * h * DAD
    for q in range(d + 1):
        outer, inner = P[u, d, q], 0.0
        for i in range(d):
            inner += D[u, i] * P[u, i, q]
            P[u, i, q] += h * D[u, i] * outer
        if both:
            P[u, d, q] = outer + h * inner


@inner
def reach(u, D, size, arc, ray):
    """Largest |<D, x_k>|/|x_k| over hyperplanes a neuron of cone u may meet first.

    With two features these are the two ends of its arc; in general it is bounded by |D|.
    """
    if ray.shape[0] == 0 or arc[u] == NONE:
        return size
    start, end = arc[u], arc[u] + 1 if arc[u] + 1 < ray.shape[0] else 0
    before = abs(ray[start, 0] * D[u, 1] - ray[start, 1] * D[u, 0])
    after = abs(ray[end, 0] * D[u, 1] - ray[end, 1] * D[u, 0])
    return max(before, after)


@inlined
def step_cones(dims, L, h, both, AD):
    """Move every occupied cone by one step; True when some cone needs attention."""
    d, P, D = len(dims), L.P, L.D
    # fields of the record, read once: looked up in the loop they cost a tenth of a step
    S, path, growth, due, arc, ray, inside = L.S, L.path, L.growth, L.due, L.arc, L.ray, L.inside
    attention = False
    for u in range(L.counts[CONES]):
        if inside[u] == 0:
            continue
        size2, row2 = 0.0, 0.0
        for i in range(d):
            size2 += D[u, i] * D[u, i]
        if size2 == 0.0:
            continue
        for q in range(d + 1):
            row2 += P[u, d, q] * P[u, d, q]
        size = math.sqrt(size2)
        # |a_j| <= |P[a, :]| |Z_j|: how far a member of base vector of size 1 moves at most
        path[u] += abs(h) * reach(u, D, size, arc, ray) * math.sqrt(row2)
        growth[u] *= 1.0 + abs(h) * size  # |I + hM| = 1 + |h||D|
        advance(dims, u, S, P, D, h, both, AD)
        if path[u] > due[u] or growth[u] > GROWTH_LIMIT:
            attention = True
    return attention


@inner
def attend(L, z, seen):
    """Look at the neurons whose time has come; those with new signs leave their cone."""
    for u in range(L.counts[CONES]):
        if L.inside[u] == 0:
            continue
        if L.path[u] > L.due[u]:
            total = take(u, L.path[u], L.head, L.mark, L.used, L.link, L.due, L.scratch)
            L.counts[LOOKS] += total
            for q in range(total):
                j = L.scratch[q]
                current(L, j, z)
                slack, changed, _ = inspect(L, z, u, seen)
                if changed:
                    leave(L, j, z)
                else:
                    schedule(L, j, u, slack)
        if L.inside[u] > 0 and (
            L.growth[u] > GROWTH_LIMIT
            or (L.dirt[u] > 0.0 and L.dirt[u] > (DIRT_LIMIT * trace(L.S[u])) ** 2)
        ):
            L.counts[LOOKS] += rebase(L, u, z, seen)


@inner
def pays(L, dense_work, weights):
    """Compare the work of the window with the dense cost; False once it has lost for long.

    ``weights``: cost of a step, of a cone, of a flip, of a look, of a change of cone and of a loose
    neuron's step, in the unit of ``dense_work`` (descent.model measures them).
    """
    work = WINDOW * (weights[0] + weights[1] * L.counts[CONES] + weights[2] * L.counts[FLIPS])
    work += weights[3] * (L.counts[LOOKS] - L.counts[LOOKS_BEFORE])
    work += weights[4] * (L.counts[MOVES] - L.counts[MOVES_BEFORE])
    work += weights[5] * WINDOW * L.counts[LOOSE]
    L.counts[LOOKS_BEFORE], L.counts[MOVES_BEFORE] = L.counts[LOOKS], L.counts[MOVES]
    L.counts[SLOW] = L.counts[SLOW] + 1 if work > WINDOW * dense_work else 0
    return L.counts[SLOW] < PATIENCE


@inner
def scale_outputs(factor, f):
    """Outputs of the weights from those of the state, which is free of their common factor."""
    for k in range(f.size):
        f[k] *= factor


@njit(cache=True)
def lumped_steps(dims, L, targets, leak, both, lrs, factors, batches, limit, dense_work, weights):
    """Take up to len(lrs) steps in place: (code, steps taken).

    ``dims`` only has a length, d: as a tuple it is a constant to the compiler, which then unrolls
    the short loops; as an array it is any number. ``targets`` are
    :class:`reluflow.kernels.pull.Targets`. ``factors`` (steps,) are what f is multiplied by, empty
    without weight decay.

    GROW asks for larger cone arrays (changes of cone stay pending), UNPROFITABLE says that the
    dense kernel would have been cheaper for PATIENCE windows, DIVERGED that f left the numbers.
    """
    n, e = L.X.shape[0], L.Z.shape[1]
    z, AD, work = np.empty(e), np.empty(e - 1), np.empty((e, e))
    seen, scratch = np.empty(n, np.uint8), np.empty(n)
    counts, parent, start, flips = L.counts, L.parent, L.flip_start, L.flip_count
    sample, sign, X, S, D = L.flip_sample, L.flip_sign, L.X, L.S, L.D
    count, unit, T, A, f, c = L.inside, L.unit, L.T, L.A, L.f, L.c
    loose, cone, Z = L.loose, L.cone, L.Z
    attend(L, z, seen)
    if not let_loose(L, seen):
        return GROW, 0
    for t in range(lrs.size):
        cones, h = counts[CONES], lrs[t]
        # forward: a w summed over lumps and loose neurons, then up the tree to f
        sums_of_lumps(dims, cones, count, unit, S, T)
        add_loose(dims, counts[LOOSE], loose, cone, Z, L.size2, T)
        outputs(dims, cones, T, A, parent, start, flips, sample, sign, X, leak, f)
        if factors.size > 0:
            scale_outputs(factors[t], f)
        if exploded(f, limit):
            return DIVERGED, t
        # backward: pulls, then down the tree to the D of every cone
        pulls(targets, f, batches[t], c, scratch)
        pulls_of_cones(dims, cones, D, parent, start, flips, sample, sign, X, leak, c)
        attention = step_cones(dims, L, h, both, AD)
        counts[STEPS] += 1
        if counts[LOOSE] > 0:
            step_loose(dims, counts[LOOSE], loose, cone, Z, L.rest, D, h, both)
        if attention:  # before neurons join: a wheel may be filed into only once its due are out
            attend(L, z, seen)
        if counts[LOOSE] > 0:
            follow_loose(L, z, seen, work)
        if counts[PENDING] > 0 and not let_loose(L, seen):
            return GROW, t + 1
        if counts[STEPS] % WINDOW == 0 and not pays(L, dense_work, weights):
            return UNPROFITABLE, t + 1
    return DONE, lrs.size
