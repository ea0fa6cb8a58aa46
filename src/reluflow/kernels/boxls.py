"""Box-constrained least norm: the gradient of minimal norm on a face of the arrangement."""

import numpy as np
from numba import njit

from reluflow.kernels.inner import inner
from reluflow.kernels.vectors import norm

FAR = 1e150


@inner
def _free_solution(q, E, size, free, f, Q, R, x):
    """Minimise |q + sum_i x_i size_i E_i| over the first f free unit rows E, by Gram-Schmidt twice.

    Returns False when a row depends on the earlier ones (x is then not written).
    """
    d = q.size
    for c in range(f):
        row = E[free[c]]
        for i in range(d):
            Q[c, i] = row[i]
        for b in range(c):
            R[b, c] = 0.0
        for _ in range(2):
            for b in range(c):
                p = 0.0
                for i in range(d):
                    p += Q[b, i] * Q[c, i]
                R[b, c] += p
                for i in range(d):
                    Q[c, i] -= p * Q[b, i]
        left = norm(Q[c])
        if left <= 1e-12:
            return False
        R[c, c] = left
        for i in range(d):
            Q[c, i] /= left
    # modified Gram-Schmidt on the right-hand side, then back substitution
    r = np.empty(d)
    for i in range(d):
        r[i] = q[i]
    for c in range(f):
        p = 0.0
        for i in range(d):
            p += Q[c, i] * r[i]
        x[c] = -p
        for i in range(d):
            r[i] -= p * Q[c, i]
    for c in range(f - 1, -1, -1):
        for b in range(c + 1, f):
            x[c] -= R[c, b] * x[b]
        x[c] /= R[c, c]
    for c in range(f):  # a slope beyond FAR is outside the box anyway
        x[c] = min(max(x[c] / size[free[c]], -FAR), FAR)
    return True


@njit(cache=True)
def box_least_norm_from(base, Z, lo, state, slopes, D):
    """As `box_least_norm`, started with slope lo where state is -1 and 1 where it is +1.

    On return state holds -1 (at lo), +1 (at 1) or 0 (free) for each row.
    """
    k, d = Z.shape
    # rows as sizes and unit vectors: products of small rows are no floats
    size, E, scale = np.empty(k), np.empty((k, d)), norm(base)
    for i in range(k):
        size[i] = norm(Z[i])
        scale += size[i]
        for c in range(d):
            E[i, c] = Z[i, c] / size[i] if size[i] > 0.0 else 0.0
        slopes[i] = lo if state[i] < 0 else 1.0
        state[i] = -1 if state[i] < 0 else 1
    for c in range(d):
        D[c] = base[c]
    for i in range(k):
        for c in range(d):
            D[c] += slopes[i] * Z[i, c]
    if k == 0:
        return
    most = min(k, d)
    Q, R, x = np.empty((most, d)), np.empty((most, most)), np.empty(most)
    free = np.empty(most + 1, np.int64)
    f = 0
    banned = np.zeros(k, np.bool_)
    q, trial = np.empty(d), np.empty(d)
    old_slopes, old_state = np.empty(k), np.empty(k, np.int8)
    old_free = np.empty(most + 1, np.int64)
    for _ in range(20 * (k + 5)):
        length = norm(D)
        # the bound whose release lowers the norm fastest, beyond rounding
        j, best = -1, 1e-14 * scale
        for i in range(k):
            if state[i] == 0 or banned[i]:
                continue
            g = 0.0
            for c in range(d):
                g += E[i, c] * D[c]
            g = -g if state[i] < 0 else g
            if g > best:
                j, best = i, g
        if j < 0:
            break
        if f == most:  # as many independent free rows as dimensions: D is 0 up to rounding
            banned[j] = True
            continue
        for i in range(k):
            old_slopes[i] = slopes[i]
            old_state[i] = state[i]
        old_f = f
        for i in range(f):
            old_free[i] = free[i]
        side = state[j]
        state[j] = 0
        free[f] = j
        f += 1
        ok, first = True, True
        while f > 0:
            for c in range(d):
                q[c] = base[c]
            for i in range(k):
                if state[i] != 0:
                    for c in range(d):
                        q[c] += slopes[i] * Z[i, c]
            ok = _free_solution(q, E, size, free, f, Q, R, x)
            if not ok:
                break
            if first and (x[f - 1] - slopes[j]) * side > 0.0:  # rounding: moves out of the box
                ok = False
                break
            first = False
            step = 1.0
            for b in range(f):
                now = slopes[free[b]]
                if x[b] < lo:
                    step = min(step, (now - lo) / (now - x[b]))
                elif x[b] > 1.0:
                    step = min(step, (1.0 - now) / (x[b] - now))
            if step >= 1.0:
                for b in range(f):
                    slopes[free[b]] = min(max(x[b], lo), 1.0)  # out by a rounding at most
                break
            kept = 0
            for b in range(f):
                i = free[b]
                now = slopes[i]
                move = now + step * (x[b] - now)
                if x[b] < lo and now - lo <= step * (now - x[b]) * (1.0 + 1e-15):
                    slopes[i], state[i] = lo, -1
                elif x[b] > 1.0 and 1.0 - now <= step * (x[b] - now) * (1.0 + 1e-15):
                    slopes[i], state[i] = 1.0, 1
                else:
                    slopes[i] = min(max(move, lo), 1.0)
                    free[kept] = i
                    kept += 1
            f = kept
        # |D + move|^2 / |D|^2 - 1 from the move itself: a small gain is not lost in the squares
        gain = 0.0
        for c in range(d):
            trial[c] = base[c]
            move = 0.0
            for i in range(k):
                trial[c] += slopes[i] * Z[i, c]
                move += (slopes[i] - old_slopes[i]) * Z[i, c]
            gain += move / length * (2.0 * (D[c] / length) + move / length)
        if ok and gain < 0.0:
            for i in range(k):
                banned[i] = False
            for c in range(d):
                D[c] = trial[c]
        else:  # no progress beyond rounding: undo, and leave this bound alone
            for i in range(k):
                slopes[i] = old_slopes[i]
                state[i] = old_state[i]
            f = old_f
            for i in range(f):
                free[i] = old_free[i]
            banned[j] = True


@njit(cache=True, inline="always")
def box_least_norm(base, Z, lo, slopes, D):
    """Minimise |base + sum_i slopes_i Z_i| over lo <= slopes_i <= 1, exactly, by active sets.

    Z is (k, d), its rows possibly dependent, zero, or more than d; slopes (k,) and D (d,) are
    written, D = base + sum_i slopes_i Z_i. D is unique; slopes are not when rows depend on each
    other. Each step frees the bound whose release lowers the norm fastest, solves the free least
    squares and clips; the norm falls strictly, so no active set comes twice.
    """
    state = np.full(Z.shape[0], -1, np.int8)
    box_least_norm_from(base, Z, lo, state, slopes, D)
