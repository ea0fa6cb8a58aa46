r"""Which side a neuron takes where it meets hyperplanes <w, x_k> = 0 under a frozen pull.

A consistent velocity is a critical point v of

.. math:: H(v) = s\, G'(w; v) - |v|^2/2, \qquad v = s D, \quad D = \sum_k \sigma_k c_k x_k,

s the sign of the outer weight, G' the directional derivative of G at w: the slope sigma_k of a
sample on the face is 1 if v leaves towards the active side, leak if towards the other, and in
between if v stays. Samples with s c_k < 0 make H concave (attracting: their part is a
box-constrained least-norm problem with one answer), samples with s c_k > 0 make it convex
(repelling: staying and leaving may both be critical).

The gradient flow decides the same question in kernels.flow_face and kernels.flow_arrival, on
purpose with other code: prediction and simulation share no solver, so their agreement is evidence.
"""

from typing import NamedTuple

import numpy as np

from reluflow.kernels.boxls import box_least_norm
from reluflow.kernels.inner import in_any_order, inner
from reluflow.kernels.vectors import parallel, weighted_sum

EPS = 2.220446049250313e-16
PARALLEL = 32 * EPS  # |<D, x_k>| below this times |x_k| sum_i |c_i||x_i|: the neuron moves along
_MANY = 500  # entries of X from which sums may be taken in any order


class Frozen(NamedTuple):
    """The samples and the pull they keep; ``total`` is what "no pull" is measured against."""

    X: np.ndarray  # (n, d)
    c: np.ndarray  # (n,)
    leak: float
    xn: np.ndarray  # (n,) |x_k|
    total: float  # sum_k |c_k||x_k| or more
    K: np.ndarray  # (n, n) <x_k, x_i>, or empty: then D and its products are summed at each kink
    XT: np.ndarray  # (d, n) where K is empty, else empty: loops over samples then vectorise


@inner
def cone_gradient(frozen, u, D):
    """Write sum of slope_k c_k x_k over the samples with u_k != 0 into D."""
    X, c, leak, XT = frozen.X, frozen.c, frozen.leak, frozen.XT
    n, d = X.shape
    if XT.size >= _MANY:
        weights = np.empty(n)
        for k in range(n):
            weights[k] = (1.0 if u[k] > 0 else (leak if u[k] < 0 else 0.0)) * c[k]
        for i in range(d):
            D[i] = weighted_sum(XT, i, weights)
        return
    for i in range(d):
        D[i] = 0.0
    for k in range(n):
        slope = 1.0 if u[k] > 0 else (leak if u[k] < 0 else 0.0)
        if slope != 0.0:
            for i in range(d):
                D[i] += slope * c[k] * X[k, i]


@inner
def product(w, X, k):
    """<w, x_k>."""
    total = 0.0
    for i in range(w.size):
        total += w[i] * X[k, i]
    return total


@in_any_order
def _long_product(w, X, k):
    """<w, x_k>, several partial sums at a time."""
    total = 0.0
    for i in range(w.size):
        total += w[i] * X[k, i]
    return total


@inner
def products(frozen, w, out):
    """Write <w, x_k> into out (n,)."""
    X, XT = frozen.X, frozen.XT
    if XT.size >= _MANY:
        for k in range(out.size):
            out[k] = 0.0
        for i in range(w.size):
            for k in range(out.size):
                out[k] += w[i] * XT[i, k]
        return
    for k in range(out.size):
        out[k] = product(w, X, k) if X.size < _MANY else _long_product(w, X, k)


@inner
def _least_norm(base, X, c, leak, xn, box, nb, slope, D):
    """Minimise |base + sum over box of slope_k c_k x_k|; write slopes (by sample) and D."""
    d = base.size
    if nb == 1:
        k = box[0]
        push = c[k] * xn[k] * xn[k]
        # where c_k |x_k|^2 is no float, divide one by one
        s = -product(base, X, k) / push if push != 0.0 else -product(base, X, k) / xn[k] ** 2 / c[k]
        slope[k] = min(1.0, max(leak, s))
        for i in range(d):
            D[i] = base[i] + slope[k] * c[k] * X[k, i]
        return
    Z = np.empty((nb, d))
    found = np.empty(nb)
    for b in range(nb):
        k = box[b]
        for i in range(d):
            Z[b, i] = c[k] * X[k, i]
    box_least_norm(base, Z, leak, found, D)
    for b in range(nb):
        slope[box[b]] = found[b]


@inner
def settle(frozen, sa, hold, u, face, nf, slope, branch, D):
    """Resolve the face: new sides u_k for its samples (0: stays on it) and the gradient D.

    ``sa`` is the sign of the outer weight, ``hold`` whether to stay at repelling samples,
    ``face[:nf]`` the samples on the face (u_k = 0). ``slope`` and ``branch`` are written for these
    samples. Returns False if no consistent choice was found.
    """
    cone_gradient(frozen, u, D)
    return settle_face(frozen, sa, hold, u, face, nf, slope, branch, D)


@inner
def settle_face(frozen, sa, hold, u, face, nf, slope, branch, D):
    """:func:`settle` where D holds the gradient off the face; the face's part is added to it."""
    X, c, leak, xn, total, K, XT = frozen
    if nf == 0:
        return True
    if nf == 1:
        return _settle_distinct(frozen, sa, hold, u, face, nf, slope, branch, D)
    # Samples on one hyperplane have one slope if they point the same way, or slopes that add up to
    # 1 + leak if they are opposite: one kink of their summed weight. An opposite sample k is
    # sigma_k = (1 + leak) - sigma, a constant part (added to D) and a part that joins its leader.
    n = c.size
    tied, first = np.empty(n), np.empty(nf, np.int64)
    leads, ties = np.empty(nf, np.int64), np.empty(nf, np.int64)
    for k in range(n):
        tied[k] = c[k]
    heads = np.int64(0)
    for f in range(nf):
        k, ties[f] = face[f], 0
        for h in range(heads):
            way = parallel(X, xn, k, leads[h])
            if way != 0 and ties[f] == 0:
                first[f], ties[f] = leads[h], way
                tied[leads[h]] += c[k] * xn[k] / xn[leads[h]]
                if way < 0:
                    for i in range(X.shape[1]):
                        D[i] += (1.0 + leak) * c[k] * X[k, i]
        if ties[f] == 0:
            leads[heads] = k
            heads += 1
    merged = Frozen(X, tied, leak, xn, total, K, XT)
    agreed = _settle_distinct(merged, sa, hold, u, leads, heads, slope, branch, D)
    for f in range(nf):
        if ties[f] != 0:
            k = face[f]
            u[k] = ties[f] * u[first[f]]
            slope[k] = slope[first[f]] if ties[f] > 0 else 1.0 + leak - slope[first[f]]
            branch[k] = branch[first[f]]
    return agreed


@inner
def _settle_distinct(frozen, sa, hold, u, face, nf, slope, branch, D):
    """:func:`settle` for samples on different hyperplanes; D holds the gradient off the face.

    All samples begin in the box. A repelling one whose slope ends at a bound while v leaves its
    hyperplane is taken out to that side, one that v contradicts later changes sides; the
    attracting ones stay in the box, where the least norm has the right slopes for them. Nothing
    forbids a cycle of such changes, hence the bound on the rounds.
    """
    X, c, leak, xn, total, _, _ = frozen
    d = X.shape[1]
    base, sum_ = np.empty(d), np.empty(d)
    for i in range(d):
        base[i] = D[i]
    box = np.empty(nf, np.int64)
    move = np.empty(nf, np.int64)  # 0: in the box; +-1: leaves to that side
    for f in range(nf):
        move[f] = 0
        branch[face[f]] = False
        slope[face[f]] = leak
    released = hold
    agreed = False
    for _ in range(8 * nf + 16):  # two or three are the rule
        for i in range(d):
            sum_[i] = base[i]
        nb = np.int64(0)  # a plain 0 would have what it is passed to compiled twice
        for f in range(nf):
            k = face[f]
            if c[k] == 0.0:
                continue
            if move[f] == 0:
                box[nb] = k
                nb += 1
            else:
                slope[k] = 1.0 if move[f] > 0 else leak
                for i in range(d):
                    sum_[i] += slope[k] * c[k] * X[k, i]
        if nb == 0:
            for i in range(d):
                D[i] = sum_[i]
        else:
            _least_norm(sum_, X, c, leak, xn, box, nb, slope, D)
        changed = False
        for f in range(nf):
            k = face[f]
            if sa * c[k] <= 0.0:
                continue
            v = sa * product(D, X, k)
            if move[f] == 0:
                if abs(v) > PARALLEL * total * xn[k] and not leak < slope[k] < 1.0:
                    move[f] = 1 if v > 0 else -1
                    changed = True
            elif move[f] * v < -PARALLEL * total * xn[k]:
                move[f] = -move[f]
                changed = True
        if changed:
            continue
        for f in range(nf):  # the repelling samples it could stay on
            k = face[f]
            if sa * c[k] > 0.0 and move[f] == 0:
                branch[k] = True
                if not released:
                    move[f] = 1
                    changed = True
        released = True
        if not changed:
            agreed = True
            break
    for f in range(nf):
        k = face[f]
        inside = move[f] == 0 and c[k] != 0.0 and leak < slope[k] < 1.0
        v = sa * product(D, X, k)
        if not inside and abs(v) > PARALLEL * total * xn[k]:
            u[k] = 1 if v > 0 else -1
    return agreed
