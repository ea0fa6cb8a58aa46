r"""Cones, their members and moments: the state behind kernels.lumped (see there for the idea).

.. math:: z_j = 2^{e_j} P_u Z_j \quad (j \in u), \qquad
          S_u = 4^{-\ell_u} \sum_{j \in u} z_j z_j^T, \qquad z = (w, a)

with the propagator P_u of the cone since its last re-basing, the base vectors Z_j of its members
then, and powers of two per neuron (``exponent``) and per cone (``level``): these never round, so a
start at scale 1e-300 has all its digits. A neuron that leaves takes z z^T out of S and one that
joins is filed with Z = P^-1 z; what cancels in S on the way is tracked as ``dirt``, and a re-basing
sums S anew from the members.
"""

import math
from typing import NamedTuple

import numpy as np

from reluflow.kernels.inner import inlined, inner
from reluflow.kernels.vectors import norm
from reluflow.kernels.wheel import NONE, SLOTS, file_neuron, take_all

# entries of Lumps.counts
(
    CONES,  # cones in the tree, empty ones included
    FLIPS,  # flipped samples along all edges
    PENDING,  # neurons that left a cone and whose next one is not looked up yet
    APPLIED,  # for how many of them it has been
    LOOSE,  # neurons followed one by one
    STEPS,
    LOOKS,  # neurons looked at
    MOVES,  # changes of cone
    REBASES,
    SLOW,  # windows in a row in which the dense kernel would have been cheaper
    LOOKS_BEFORE,  # LOOKS and MOVES at the start of the window
    MOVES_BEFORE,
) = range(12)
N_COUNTS = 12

ROUNDING = 2.3e-16  # relative error of a float, as the unit of dirt
CLOSE = 1e-9  # angle below which a neuron counts as lying on a hyperplane
NO_ANGLE = 1e-290  # |w| below which its angle is not told by floats: 0 has none
BLOCK = 256  # neurons added up at once in the moments
FAR = 100  # powers of two between a neuron and its cone above which the cone changes its level


class Lumps(NamedTuple):
    """State of a lumped run; m neurons, C cones, n samples, e = d + 1."""

    Z: np.ndarray  # (m, e) base vectors
    exponent: np.ndarray  # (m,) powers of two of the neurons: z_j = 2^exponent P Z_j
    cone: np.ndarray  # (m,)
    link: np.ndarray  # (m,) timer wheels
    pending: np.ndarray  # (m,) neurons between two cones; their Z is their current vector
    loose: np.ndarray  # (m,) neurons followed one by one; their Z is their current vector
    calm: np.ndarray  # (m,) steps a loose neuron has spent in its cone; NONE for the others
    near: np.ndarray  # (m,) sample whose hyperplane is nearest to a loose neuron
    rest: np.ndarray  # (m,) its slack to all other hyperplanes
    other: np.ndarray  # (m,) the cone across the nearest hyperplane, NONE if not known
    size2: np.ndarray  # (m,) 4^exponent of a loose neuron
    scratch: np.ndarray  # (m,)
    pattern: np.ndarray  # (C, n) active samples
    key: np.ndarray  # (C,) hash of the pattern
    inside: np.ndarray  # (C,) number of neurons lumped in the cone
    head: np.ndarray  # (C, SLOTS) timer wheel
    mark: np.ndarray  # (C, SLOTS)
    used: np.ndarray  # (C,) levels of the wheel in use
    due: np.ndarray  # (C,) path length at which a neuron must be looked at
    P: np.ndarray  # (C, e, e) propagator since the last re-basing
    S: np.ndarray  # (C, e, e) sum of z z^T in units of 4^level
    level: np.ndarray  # (C,)
    unit: np.ndarray  # (C,) 4^level as a float, 0 or inf beyond floats
    path: np.ndarray  # (C,)
    growth: np.ndarray  # (C,) bound on |P|
    dirt: np.ndarray  # (C,) variance of the rounding error left in S by removals
    D: np.ndarray  # (C, d)
    T: np.ndarray  # (C, d) sums of S[w, a] over subtrees
    parent: np.ndarray  # (C,)
    flip_start: np.ndarray  # (C,)
    flip_count: np.ndarray  # (C,)
    flip_sample: np.ndarray  # (F,)
    flip_sign: np.ndarray  # (F,)
    table: np.ndarray  # (H,) open addressing from key to cone
    arc: np.ndarray  # (C,) two features: which arc of the circle the cone is, NONE if unknown
    arc_cone: np.ndarray  # (B,) two features: cone of each arc, NONE if it has none yet
    bound: np.ndarray  # (B,) two features: sorted angles where the arcs begin; else empty
    ray: np.ndarray  # (B, 2) the unit vectors at those angles
    owner: np.ndarray  # (B,) a sample whose hyperplane lies there
    alone: np.ndarray  # (B,) whether it is the only one
    X: np.ndarray  # (n, d)
    size: np.ndarray  # (n,) norms of the samples
    code: np.ndarray  # (n,) random words for the hash
    A: np.ndarray  # (n, d) sums of S[w, a] over the cones in which a sample is active
    f: np.ndarray  # (n,)
    c: np.ndarray  # (n,)
    counts: np.ndarray  # (N_COUNTS,)


@inner
def fill(target, value):
    """Set every entry of a matrix; slice assignment takes seconds to compile."""
    for i in range(target.shape[0]):
        for q in range(target.shape[1]):
            target[i, q] = value


@inner
def copy(source, target):
    """Copy a vector."""
    for i in range(source.size):
        target[i] = source[i]


@inner
def equal(first, second):
    """Whether two patterns agree."""
    same = True
    for k in range(first.size):
        same &= first[k] == second[k]
    return same


@inner
def power(exponent):
    """2^exponent; 0 or inf beyond floats."""
    return math.ldexp(1.0, max(min(exponent, 2000), -2000))


@inner
def find_cone(L, key, pattern):
    """Cone with this pattern, or NONE."""
    mask = L.table.size - 1
    slot = np.int64(key & np.uint64(mask))
    while L.table[slot] != NONE:
        u = L.table[slot]
        if L.key[u] == key and equal(L.pattern[u], pattern):
            return u
        slot = (slot + 1) & mask
    return NONE


@inner
def hash_pattern(pattern, code):
    """XOR of the words of the active samples."""
    key = np.uint64(0)
    for k in range(pattern.size):
        if pattern[k]:
            key ^= code[k]
    return key


@inner
def clear_cone(L, u):
    """Empty cone: identity propagator, zero moments."""
    fill(L.P[u], 0.0)
    for i in range(L.P.shape[1]):
        L.P[u, i, i] = 1.0
    fill(L.S[u], 0.0)
    L.level[u] = 0
    L.unit[u] = 1.0
    L.path[u] = 0.0
    L.growth[u] = 1.0
    L.dirt[u] = 0.0


@inner
def add_cone(L, pattern, key, parent):
    """New empty cone below ``parent``; room must have been checked."""
    u = L.counts[CONES]
    L.counts[CONES] += 1
    copy(pattern, L.pattern[u])
    L.key[u] = key
    L.inside[u] = 0
    for slot in range(SLOTS):
        L.head[u, slot] = NONE
    L.due[u] = np.inf
    L.used[u] = 0
    L.arc[u] = NONE
    L.parent[u] = parent
    L.flip_start[u] = L.counts[FLIPS]
    flips = L.counts[FLIPS]
    for k in range(pattern.size):
        if pattern[k] != (L.pattern[parent, k] if parent != NONE else 0):
            L.flip_sample[flips] = k
            L.flip_sign[flips] = 1.0 if pattern[k] else -1.0
            flips += 1
    L.flip_count[u] = flips - L.counts[FLIPS]
    L.counts[FLIPS] = flips
    clear_cone(L, u)
    mask = L.table.size - 1
    slot = np.int64(key & np.uint64(mask))
    while L.table[slot] != NONE:
        slot = (slot + 1) & mask
    L.table[slot] = u
    return u


@inlined
def current(L, j, z):
    """Write the current vector of neuron j, in units of 2^exponent, into z."""
    P = L.P[L.cone[j]]
    e = z.size
    for i in range(e):
        total = 0.0
        for q in range(e):
            total += P[i, q] * L.Z[j, q]
        z[i] = total


@inner
def look(X, size, z, pattern, seen):
    """Signs of the neuron z into seen (n,): (slack to the nearest hyperplane, changed)."""
    n, d = X.shape
    slack, changed = np.inf, False
    for k in range(n):
        if size[k] == 0.0:
            seen[k] = 0
            continue
        s = 0.0
        for i in range(d):
            s += z[i] * X[k, i]
        seen[k] = 1 if s > 0.0 else 0
        if seen[k] != pattern[k]:
            changed = True
        slack = min(slack, abs(s) / size[k])
    return slack, changed


@inner
def locate(bound, z):
    """Arc that holds the direction of (z_0, z_1), not 0, and the angle to its nearer end."""
    angle = math.atan2(z[1], z[0])
    low, high = 0, bound.size
    while low < high:
        middle = (low + high) // 2
        if bound[middle] <= angle:
            low = middle + 1
        else:
            high = middle
    arc = low - 1 if low > 0 else bound.size - 1
    before = angle - bound[arc]
    after = bound[low if low < bound.size else 0] - angle
    if before < 0.0:
        before += 2.0 * math.pi
    if after < 0.0:
        after += 2.0 * math.pi
    return arc, min(before, after)


@inlined
def inspect(L, z, u, seen):
    """(slack to the nearest hyperplane, whether the signs are not those of cone u, arc).

    With two features the arc tells the cone without a look at the samples, unless the neuron
    lies on a hyperplane to rounding, or on all of them with w = 0; then, and with more features,
    the arc is NONE.
    """
    if L.bound.size > 0 and abs(z[0]) + abs(z[1]) > NO_ANGLE:
        arc = L.arc[u]
        if arc != NONE:
            end = arc + 1 if arc + 1 < L.bound.size else 0
            before = L.ray[arc, 0] * z[1] - L.ray[arc, 1] * z[0]
            after = z[0] * L.ray[end, 1] - z[1] * L.ray[end, 0]
            slack = min(before, after)
            if slack > CLOSE * (abs(z[0]) + abs(z[1])):
                return slack, False, arc
        arc, gap = locate(L.bound, z)
        if gap > CLOSE:
            slack = math.hypot(z[0], z[1]) * math.sin(min(gap, 0.5 * math.pi))
            return slack, arc != L.arc[u], arc
    slack, changed = look(L.X, L.size, z, L.pattern[u], seen)
    return slack, changed, NONE


@inlined
def schedule(L, j, u, slack):
    """File neuron j of cone u to be looked at when its slack is used up."""
    size = norm(L.Z[j])
    allowed = slack / size if size > 0.0 else np.inf
    file_neuron(u, j, allowed, L.path, L.head, L.mark, L.used, L.link, L.due)


@inlined
def store_base(L, j, z):
    """Z_j = z with its largest entry brought into [1/2, 1) by a power of two."""
    top = 0.0
    for i in range(z.size):
        top = max(top, abs(z[i]))
    if top == 0.0 or not np.isfinite(top):
        copy(z, L.Z[j])
        return
    shift = math.frexp(top)[1]
    for i in range(z.size):
        L.Z[j, i] = math.ldexp(z[i], -shift)
    L.exponent[j] += shift


@inner
def set_level(L, u, level):
    """Unit of the moments of cone u."""
    L.level[u] = level
    L.unit[u] = power(2 * level)


@inner
def rebase(L, u, z, seen):
    """Start cone u afresh from its members: P = I, S summed anew, all deadlines renewed."""
    e = z.size
    total = take_all(u, L.head, L.mark, L.used, L.link, L.due, L.scratch)
    top = np.int64(-(1 << 60))
    for q in range(total):
        j = L.scratch[q]
        current(L, j, z)
        store_base(L, j, z)
        if norm(L.Z[j]) > 0.0:
            top = max(top, L.exponent[j])
    clear_cone(L, u)
    set_level(L, u, top if top > -(1 << 60) else 0)
    part = np.empty((e, e))
    fill(part, 0.0)
    for q in range(total):
        j = L.scratch[q]
        size2 = power(2 * (L.exponent[j] - L.level[u]))
        for i in range(e):
            for r in range(e):
                part[i, r] += size2 * L.Z[j, i] * L.Z[j, r]
        if q % BLOCK == BLOCK - 1 or q == total - 1:
            for i in range(e):
                for r in range(e):
                    L.S[u, i, r] += part[i, r]
            fill(part, 0.0)
        slack, _, arc = inspect(L, L.Z[j], u, seen)
        if arc != NONE and L.arc[u] == NONE and L.arc_cone[arc] == NONE:
            L.arc[u], L.arc_cone[arc] = arc, u
        schedule(L, j, u, slack)
    L.counts[REBASES] += 1
    return total


@inner
def solve(P, z, work):
    """z <- P^-1 z by elimination with pivoting; work (e, e) is overwritten."""
    e = z.size
    for i in range(e):
        copy(P[i], work[i])
    for i in range(e):
        best = i
        for r in range(i + 1, e):
            if abs(work[r, i]) > abs(work[best, i]):
                best = r
        if best != i:
            for q in range(i, e):
                work[i, q], work[best, q] = work[best, q], work[i, q]
            z[i], z[best] = z[best], z[i]
        for r in range(i + 1, e):
            factor = work[r, i] / work[i, i]
            if factor != 0.0:
                for q in range(i + 1, e):
                    work[r, q] -= factor * work[i, q]
                z[r] -= factor * z[i]
    for i in range(e - 1, -1, -1):
        for q in range(i + 1, e):
            z[i] -= work[i, q] * z[q]
        z[i] /= work[i, i]


@inner
def change_moments(S, level, u, exponent, z, sign):
    """S_u += sign * z z^T for a neuron of the given exponent."""
    e = z.size
    size2 = sign * power(2 * (exponent - level[u]))
    for i in range(e):
        for q in range(e):
            S[u, i, q] += size2 * z[i] * z[q]


@inner
def trace(S):
    """Sum of the diagonal."""
    total = 0.0
    for i in range(S.shape[0]):
        total += S[i, i]
    return total


@inlined
def leave(L, j, z):
    """Neuron j, unfiled and with current vector z, leaves the lump of its cone.

    Taking z z^T out leaves a rounding error of the size of what S was before, also when little is
    left afterwards: its variance goes to dirt.
    """
    u = L.cone[j]
    before = trace(L.S[u])
    change_moments(L.S, L.level, u, L.exponent[j], z, -1.0)
    L.dirt[u] += (ROUNDING * before) ** 2
    L.inside[u] -= 1
    if L.inside[u] == 0:
        clear_cone(L, u)
    store_base(L, j, z)
    L.pending[L.counts[PENDING]] = j
    L.counts[PENDING] += 1


@inner
def join(L, j, z, seen, work):
    """Neuron j, whose Z is its current vector, joins the lump of its cone."""
    u = L.cone[j]
    slack, _, _ = inspect(L, L.Z[j], u, seen)
    L.inside[u] += 1
    if L.inside[u] == 1:
        set_level(L, u, L.exponent[j])
    change_moments(L.S, L.level, u, L.exponent[j], L.Z[j], 1.0)
    copy(L.Z[j], z)
    solve(L.P[u], z, work)
    copy(z, L.Z[j])
    schedule(L, j, u, slack)
    if L.exponent[j] - L.level[u] > FAR:
        rebase(L, u, z, seen)


@inlined
def cone_at(L, z, u, seen):
    """The cone of the vector z, made below cone u if it is new; room must have been checked."""
    _, _, arc = inspect(L, z, u, seen)
    v = L.arc_cone[arc] if arc != NONE else NONE
    if v == NONE:
        look(L.X, L.size, z, L.pattern[u], seen)
        key = hash_pattern(seen, L.code)
        v = find_cone(L, key, seen)
        if v == NONE:
            v = add_cone(L, seen, key, u)
        if arc != NONE:
            L.arc[v], L.arc_cone[arc] = arc, v
    return v


@inlined
def has_room(L):
    """Whether one more cone fits."""
    n = L.X.shape[0]
    return L.counts[CONES] < L.inside.size and L.counts[FLIPS] + n <= L.flip_sample.size
