"""Search over sign patterns v that agree with the signs of their own gradient D_v.

For positive values of G only the convex kinks (kappa > 0) need a search: once each of them is
decided (+, -, or 0: on the hyperplane), what is left is concave, its maximum is one least-norm
problem, and the signs of its gradient decide the concave kinks:

    v_h = sign <n_h, D_v>,   D_v = m + sum_h v_h kappa_h n_h,   v_h in [-1, 1] where <n_h, D_v> = 0.

The product <n_h, D_v> lies in an interval once some kinks are decided: R_h (the decided part) plus
or minus the sum of |kappa_j <n_h, n_j>| over the others. A sign outside its interval prunes the
branch, a sign that alone is left is decided without branching. Example: one kink, m = 2 n,
kappa = 1: <n, D> is in [1, 3], so v = +1 at once and D = 3 n.
"""

import numpy as np

from reluflow._compiled import njit
from reluflow.kernels.boxls import box_least_norm

OPEN = 2  # state of a hyperplane whose sign is not decided
PIVOT = 1e-4  # smaller pivots are not divided by: such zeros stay in the interval bounds
CLEAR = 1e-7  # normals closer to dependent than this (but not dependent) blur a face


@njit(cache=True)
def _assign(h, t, gram, R, state, kappa):
    """Put hyperplane h into state t and update the projected products R and the Gram matrix.

    R_l = <P n_l, m + sum of the decided kinks>, P the projection off the zero hyperplanes.
    """
    H = R.size
    state[h] = t
    if t != 0:
        for j in range(H):
            R[j] += kappa[h] * t * gram[j, h]
        return 0
    pivot = gram[h, h]
    if pivot <= PIVOT:  # nearly implied by the other zeros
        return 0
    x = R[h] / pivot
    for j in range(H):
        R[j] -= gram[j, h] * x
    col = gram[:, h].copy()
    for j in range(H):
        for e in range(H):
            gram[j, e] -= col[j] * col[e] / pivot
    return 1


@njit(cache=True)
def _propagate(gram, R, state, kappa, rank, r, slack):
    """Decide what only one state allows. Returns (feasible, rank, kink to branch on, options).

    Interval arithmetic: every undecided kink contributes any value in [-1, 1].
    """
    H = R.size
    while True:
        changed = False
        pick, fewest, weight, bits = -1, 4, -1.0, 0
        for h in range(H):
            if state[h] == 0 or kappa[h] < 0.0:
                continue
            spread = slack
            for j in range(H):
                if (state[j] == OPEN or state[j] == 0) and j != h:
                    spread += abs(kappa[j] * gram[h, j])
            if state[h] != OPEN:
                if state[h] * R[h] + spread <= 0.0:
                    return False, rank, -1, 0
                continue
            own = kappa[h] * gram[h, h]
            plus = R[h] + own + spread > 0.0
            minus = R[h] - own - spread < 0.0
            zero = abs(R[h]) <= own + spread and (rank < r - 1 or gram[h, h] <= PIVOT)
            options = int(plus) + int(minus) + int(zero)
            if options == 0:
                return False, rank, -1, 0
            if options == 1:
                rank += _assign(h, 1 if plus else (-1 if minus else 0), gram, R, state, kappa)
                changed = True
                break
            if options < fewest or (options == fewest and own > weight):
                pick, fewest, weight = h, options, own
                bits = int(plus) + 2 * int(minus) + 4 * int(zero)
        if not changed:
            return True, rank, pick, bits


@njit(cache=True)
def _slopes_fit(gram0, b0, kappa, state, slack):
    """Whether slopes in [-1, 1] may exist that keep the gradient on all zero hyperplanes.

    They solve gram_ZZ (kappa t)_Z = -(b + decided + open)_Z; open kinks enter as intervals. The
    solution is linear in the right side, so each open kink widens it by its own column's size.
    """
    H = b0.size
    Z = np.flatnonzero(state == 0)
    z = Z.size
    if z < 2:
        return True
    A, B = np.empty((z, z)), np.zeros((z, H + 1))
    for i in range(z):
        B[i, H] = b0[Z[i]]
        for j in range(z):
            A[i, j] = gram0[Z[i], Z[j]]
        for j in range(H):
            x = kappa[j] * gram0[Z[i], j]
            if state[j] == OPEN:
                B[i, j] = x
            elif state[j] != 0:
                B[i, H] += x * state[j]
    # Cholesky A = L L^T in place; a small pivot means dependent normals: no verdict
    for i in range(z):
        for j in range(i + 1):
            x = A[i, j]
            for c in range(j):
                x -= A[i, c] * A[j, c]
            if i == j:
                if x < 1e-6:
                    return True
                A[i, i] = np.sqrt(x)
            else:
                A[i, j] = x / A[j, j]
    for c in range(H + 1):
        if c < H and state[c] != OPEN:
            continue
        for i in range(z):
            for j in range(i):
                B[i, c] -= A[i, j] * B[j, c]
            B[i, c] /= A[i, i]
        for i in range(z - 1, -1, -1):
            for j in range(i + 1, z):
                B[i, c] -= A[j, i] * B[j, c]
            B[i, c] /= A[i, i]
    for i in range(z):
        spread = 0.0
        for c in range(H):
            if state[c] == OPEN:
                spread += abs(B[i, c])
        if abs(B[i, H]) > abs(kappa[Z[i]]) + spread + 100.0 * slack:
            return False
    return True


@njit(cache=True)
def _leaf(N, m, kappa, state, Q, Z, slopes, D, tol, zero, v, blurred):
    """With the convex kinks decided, write the pattern of the maximum into v; is it consistent?"""
    H, r = N.shape
    base, k, z, thin = m.copy(), 0, 0, False
    for h in range(H):
        if state[h] == 0 and z < r:
            Q[z] = N[h]
            for _ in range(2):
                for e in range(z):
                    Q[z] -= np.sum(Q[e] * Q[z]) * Q[e]
            size = np.sqrt(np.sum(Q[z] * Q[z]))
            if size > tol:
                thin = thin or size < CLEAR
                Q[z] /= size
                z += 1
        elif state[h] != OPEN:
            for c in range(r):
                base[c] += state[h] * kappa[h] * N[h, c]
    for h in range(H):
        if state[h] == OPEN:
            for c in range(r):
                Z[k, c] = kappa[h] * N[h, c]
            for e in range(z):
                Z[k] -= np.sum(Q[e] * Z[k]) * Q[e]
            k += 1
    for _ in range(2):
        for e in range(z):
            base -= np.sum(Q[e] * base) * Q[e]
    box_least_norm(base, Z[:k], -1.0, slopes[:k], D)
    size = np.sqrt(np.sum(D * D))
    if size <= zero:
        return False
    # signs of the gradient; products at rounding level (of the sum, not of D) are in doubt
    doubt, agree, noise = thin, True, 0.01 * zero
    for h in range(H):
        p = 0.0
        for c in range(r):
            p += N[h, c] * D[c]
        v[h] = 0 if abs(p) <= tol * size else (1 if p > 0.0 else -1)
        unclear = tol * size < abs(p) <= noise
        if state[h] != OPEN and v[h] != state[h]:
            if not unclear and not thin:
                return False
            agree = False
        doubt = doubt or unclear
    if doubt:
        blurred[0] = True
    if not agree:
        return False
    # slopes in the box must balance the rest of the gradient on the face
    base[:] = m - D
    k = 0
    for h in range(H):
        if v[h] == 0:
            Z[k] = kappa[h] * N[h]
            k += 1
        else:
            base += v[h] * kappa[h] * N[h]
    box_least_norm(base, Z[:k], -1.0, slopes[:k], D)
    return np.sqrt(np.sum(D * D)) <= max(8.0 * tol * size, 8.0 * zero)


@njit(cache=True)
def consistent_patterns(N, m, kappa, slack, zero, tol, budget, found):
    """All v in {-1, 0, 1}^H with v = signs of N D_v, D_v not 0 and of minimal norm on the zeros.

    Depth-first over the convex kinks with the pruning of `_propagate` and `_slopes_fit`; patterns
    (a superset, to be verified by the caller) go to found (capacity, H). Returns (how many, nodes
    visited, complete): not complete when the budget of nodes ended or rounding blurs a face.
    """
    H, r = N.shape
    P = int(np.sum(kappa > 0.0))
    gram0, b0 = N @ N.T, N @ m
    gram = np.empty((P + 1, H, H))
    R = np.empty((P + 1, H))
    state = np.empty((P + 1, H), np.int8)
    rank = np.zeros(P + 1, np.int64)
    var, todo = np.empty(P + 1, np.int64), np.zeros(P + 1, np.int64)
    gram[0], R[0], state[0] = gram0, b0, OPEN
    D, Q, v = np.empty(r), np.empty((r + 1, r)), np.empty(H, np.int8)
    Z, slopes = np.empty((H, r)), np.empty(H)
    blurred = np.zeros(1, np.bool_)
    count, nodes, depth, fresh = 0, 0, 0, True
    while depth >= 0:
        if fresh:
            nodes += 1
            if nodes > budget:
                return count, nodes, False
            ok, rank[depth], var[depth], todo[depth] = _propagate(
                gram[depth], R[depth], state[depth], kappa, rank[depth], r, slack
            )
            fresh = False
            if ok and rank[depth] > 0:
                ok = _slopes_fit(gram0, b0, kappa, state[depth], slack)
            leaf = ok and var[depth] < 0
            if leaf and _leaf(N, m, kappa, state[depth], Q, Z, slopes, D, tol, zero, v, blurred):
                if count < found.shape[0]:
                    found[count] = v
                count += 1
            if not ok or var[depth] < 0:
                depth -= 1
                continue
        if todo[depth] == 0:
            depth -= 1
            continue
        if todo[depth] & 1:
            t, bit = 1, 1
        elif todo[depth] & 2:
            t, bit = -1, 2
        else:
            t, bit = 0, 4
        todo[depth] -= bit
        gram[depth + 1], R[depth + 1] = gram[depth], R[depth]
        state[depth + 1] = state[depth]
        rank[depth + 1] = rank[depth] + _assign(
            var[depth], t, gram[depth + 1], R[depth + 1], state[depth + 1], kappa
        )
        depth += 1
        fresh = True
    return count, nodes, not blurred[0]


@njit(cache=True)
def vanishing_patterns(N, m, kappa, zero, budget, found):
    """All v in {-1, 1}^H with m + sum v kappa n = 0, by depth-first search on interval bounds.

    Writes them into found (capacity, H); returns (how many, complete).
    """
    H, r = N.shape
    reach = np.zeros((H + 1, r))
    for h in range(H - 1, -1, -1):
        for c in range(r):
            reach[h, c] = reach[h + 1, c] + abs(kappa[h] * N[h, c])
    D = np.empty((H + 1, r))
    D[0] = m
    v, todo = np.zeros(H, np.int8), np.zeros(H + 1, np.int64)
    count, nodes, depth = 0, 0, 0
    todo[0] = 2
    while depth >= 0:
        ok = True
        if todo[depth] == 2 or depth == H:
            nodes += 1
            if nodes > budget:
                return count, False
            for c in range(r):
                if abs(D[depth, c]) > reach[depth, c] + zero:
                    ok = False
                    break
        if ok and depth == H:
            if count < found.shape[0]:
                found[count] = v
            count += 1
        if not ok or depth == H or todo[depth] == 0:
            depth -= 1
            continue
        v[depth] = 1 if todo[depth] == 2 else -1
        todo[depth] -= 1
        for c in range(r):
            D[depth + 1, c] = D[depth, c] + v[depth] * kappa[depth] * N[depth, c]
        depth += 1
        todo[depth] = 2
    return count, True
