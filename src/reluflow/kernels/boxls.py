r"""Box-constrained least norm: the gradient of minimal norm on a face of the arrangement.

.. math:: D = \arg\min \Big\{ |D| : D = \mathrm{base} + \sum_i s_i Z_i,\ lo \le s_i \le 1 \Big\}

On a face of the arrangement the slope of every sample on it is free in [leak, 1], and the shortest
gradient is the one a neuron follows [BF24, section 3]: with base the gradient off the face and
Z_i = c_i x_i this is the D of a sliding neuron. In the canonical form of G the box is [-1, 1] and
Z_h = kappa_h n_h.

The method is that of active sets. Each slope is at a bound (state -1 or 1) or free (0). D is the
shortest vector when <Z_i, D> is 0 for the free ones, >= 0 at lo and <= 0 at 1 (what could still
change would only make it longer). While some bound breaks this rule,

1. free the one with the largest |<E_i, D>|, E_i = Z_i/|Z_i|: releasing it shortens D fastest;
2. solve the least-squares problem of the free slopes;
3. if a slope leaves the box, go as far as the box allows, fix what reached its bound, repeat 2.

|D| falls strictly, so no set of free slopes comes twice and the search ends. In floats "strictly"
is what needs care: a release that does not lower |D| beyond rounding is undone and its bound left
alone until something else has moved.

Example: base = (1, 1), Z = ((-2, 0), (0, 1)), lo = 0. At slopes (0, 0), D = (1, 1); <E_1, D> = -1
breaks the rule at lo and <E_2, D> = 1 does not. Free slope 1: it becomes 1/2 and D = (0, 1).
"""

import numpy as np

from reluflow._compiled import njit
from reluflow.kernels.inner import inlined, inner
from reluflow.kernels.vectors import norm

FAR = 1e150  # slopes are kept below it: such a one is outside the box anyway


@inner
def _solve_free(q, E, size, free, f, Q, R, x):
    """Minimise |q + sum_i x_i size_i E_i| over the first f free unit rows E, by Gram-Schmidt twice.

    Returns False when a row depends on the earlier ones (x is then not written). Twice is enough:
    after a second pass the rows of Q are orthogonal to rounding, however close to dependent.
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
    for c in range(f):
        x[c] = min(max(x[c] / size[free[c]], -FAR), FAR)
    return True


@inlined
def _best_release(E, D, state, banned, floor):
    """The bound whose release lowers |D| fastest, by more than ``floor``; -1 if there is none."""
    j, best = -1, floor
    for i in range(state.size):
        if state[i] == 0 or banned[i]:
            continue
        g = 0.0
        for c in range(D.size):
            g += E[i, c] * D[c]
        g = -g if state[i] < 0 else g
        if g > best:
            j, best = i, g
    return j


@inlined
def _clip_step(x, lo, free, f, slopes, state):
    """Move the free slopes towards x as far as the box allows: (how many stay free, x reached).

    A slope that reaches its bound is fixed there. The 1e-15 lets two that arrive together stop
    together: with one of them left a rounding away from its bound the next step would be empty.
    """
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
        return f, True
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
    return kept, False


@inlined
def _relative_gain(base, Z, slopes, old_slopes, D, trial):
    """Write base + sum slopes_i Z_i into trial; returns |trial|^2/|D|^2 - 1.

    From the move itself: as a difference of squares a small gain would be lost to rounding.
    """
    length, gain = norm(D), 0.0
    for c in range(D.size):
        trial[c] = base[c]
        move = 0.0
        for i in range(slopes.size):
            trial[c] += slopes[i] * Z[i, c]
            move += (slopes[i] - old_slopes[i]) * Z[i, c]
        gain += move / length * (2.0 * (D[c] / length) + move / length)
    return gain


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
    free, old_free = np.empty(most + 1, np.int64), np.empty(most + 1, np.int64)
    q, trial, old_slopes, old_state = np.empty(d), np.empty(d), np.empty(k), np.empty(k, np.int8)
    banned = np.zeros(k, np.bool_)
    f = 0
    for _ in range(20 * (k + 5)):  # a few releases for each row are the rule
        j = _best_release(E, D, state, banned, 1e-14 * scale)
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
        while f > 0:  # least squares over the free slopes, until it stays inside the box
            for c in range(d):
                q[c] = base[c]
            for i in range(k):
                if state[i] != 0:
                    for c in range(d):
                        q[c] += slopes[i] * Z[i, c]
            ok = _solve_free(q, E, size, free, f, Q, R, x)
            # rounding: the solution would leave through the bound that slope j is released from
            if not ok or (first and (x[f - 1] - slopes[j]) * side > 0.0):
                ok = False
                break
            first = False
            f, reached = _clip_step(x, lo, free, f, slopes, state)
            if reached:
                break
        gain = _relative_gain(base, Z, slopes, old_slopes, D, trial)
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
    other.
    """
    state = np.full(Z.shape[0], -1, np.int8)
    box_least_norm_from(base, Z, lo, state, slopes, D)
