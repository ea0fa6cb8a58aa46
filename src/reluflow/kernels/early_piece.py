"""Closed form of one piece: a neuron in one cone, or sliding on one face, under a frozen pull.

With e = s D/|D| (s the sign of the outer weight, so that w moves along +e), r = |D|,
p = <w, e> and a = |outer weight|:

    p(t) = P E + Q/E,  a(t) = P E - Q/E,  E = exp(r t),  P = (p + a)/2,  Q = (p - a)/2,

w(t) = w(0) + (p(t) - p(0)) e, and J = a^2 - p^2 = -4PQ stays. Formulas are chosen so that no
difference of nearly equal numbers is taken when E is huge, P tiny, or w much smaller than a.
"""

import numpy as np

from reluflow.kernels.inner import inner


@inner
def outer_after(p, a, J, delta):
    """a when p has grown by delta: a1^2 = J + (p + delta)^2."""
    if J < 0.0 and p > 0.0:
        return np.sqrt(a * a + delta * (delta + 2.0 * p))
    return np.sqrt(max(0.0, J + (p + delta) ** 2))


@inner
def growing_part(p, a, J):
    """P = (p + a)/2, from J where p and a nearly cancel."""
    return J / (2.0 * (a - p)) if p < 0.0 else 0.5 * (p + a)


@inner
def time_to(p, a, J, r, delta, a1):
    """Time in which p grows by delta >= 0 and a > 0 becomes a1: E - 1 = delta/(P - Q/E)."""
    if delta <= 0.0:
        return 0.0
    p1 = p + delta
    if delta < 0.5 * (a + a1):
        half = 0.5 * (a + a1 - delta)
    else:
        half = growing_part(p, a, J)
        half += 0.5 * (a1 - p1) if p1 < 0.0 else J / (2.0 * (a1 + p1))
    return np.log1p(delta / max(half, 1e-300)) / r


@inner
def state_after(w, rest, e, p, a, J, r, dt, out):
    """Write w after a time dt into out, up to exp(shift); returns (a, shift).

    ``rest`` is the part of w orthogonal to e.
    """
    g = r * dt
    d = w.size
    if g < 1.0:
        x = np.expm1(g)
        ch1 = x * x / (2.0 * (1.0 + x))  # cosh - 1
        sh = x * (2.0 + x) / (2.0 * (1.0 + x))
        p1 = p + (p * ch1 + a * sh)
        for i in range(d):
            out[i] = rest[i] + p1 * e[i]
        return max(0.0, a + (a * ch1 + p * sh)), 0.0
    P = growing_part(p, a, J)
    Q = 0.5 * (p - a) if p < 0.0 else -J / (2.0 * (a + p))
    size = 0.0
    for i in range(d):
        size += rest[i] * rest[i]
    size = np.sqrt(size)
    log_p = np.log(abs(P)) + g if P != 0.0 else -np.inf
    log_q = np.log(abs(Q)) - g if Q != 0.0 else -np.inf
    shift = max(log_p, log_q, np.log(size) if size > 0.0 else -np.inf)
    up = np.copysign(np.exp(log_p - shift), P)
    down = np.copysign(np.exp(log_q - shift), Q)
    factor = np.exp(-shift) if size > 0.0 else 0.0
    for i in range(d):
        out[i] = rest[i] * factor + (up + down) * e[i]
    return max(0.0, up - down), shift


@inner
def growth_to_cosine(w, e, v, value):
    """The growth delta of p at which cos(w + delta e, v) rises to value; w is outside the cone.

    The cone {cos >= value > 0} is convex, so a line enters it once: of the two roots of
    <w + delta e, v>^2 = value^2 |w + delta e|^2 the one on the positive side.
    """
    A, B, C, pw, wv, ev = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(w.size):
        C += w[i] * w[i]
        pw += w[i] * e[i]
        wv += w[i] * v[i]
        ev += e[i] * v[i]
    V = value * value
    A, B, C = ev * ev - V, wv * ev - V * pw, wv * wv - V * C
    root = np.sqrt(max(0.0, B * B - A * C))
    q = -(B + root) if B >= 0.0 else root - B
    best = np.inf
    for j in range(2):
        if j == 0:
            x = q / A if A != 0.0 else np.inf
        else:
            x = C / q if q != 0.0 else np.inf
        if x >= 0.0 and wv + x * ev >= 0.0 and x < best:
            best = x
    return best
