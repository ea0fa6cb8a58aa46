r"""When a neuron on a step's dense output first meets a kink, or must leave its faces.

In the frame of the step z(x) = exp(M h x) F(x) (`flow_path`), so with h(x) = <F(x), (x_k, 0)>,
p(x) = <F(x), (unit, 0)>, a(x) the last component of F, beta = <x_k, unit> and g = |D| h,

.. math:: \langle w(x), x_k \rangle = h(x) + \beta [(\cosh(g x) - 1)\, p(x) + \sinh(g x)\, a(x)],

a polynomial times exponentials of x in [0, 1]. (The outer weight itself is of the same form, with
a, p and 1 in the places of h, a and beta.) A bound clears most samples; for the others the
function is looked at in PARTS + 1 nodes, its dips between nodes are searched, and a change of sign
is located by bracketed secants. What crosses twice between two nodes without a dip that shows is
missed.

A neuron may start *on* a kink, where <w, x_k> has only rounding error: then no sign is read there
(``floor``), and what counts is whether the path leaves downwards (`leave_time`).
"""

import numpy as np

from reluflow.kernels.flow_face import outside
from reluflow.kernels.flow_field import pull_at
from reluflow.kernels.flow_path import REACH, polynomial, reach_of
from reluflow.kernels.inner import inner
from reluflow.kernels.vectors import along, dot

PARTS = 8  # of a step, at whose ends crossings are looked for
SHORTEST = 1e-15  # part of a step within which a neuron that rises off a kink is not followed


@inner
def component(h, p, a, beta, grow, x):
    """h(x) + beta ((cosh - 1) p(x) + sinh a(x)), of grow x: a component of exp(M t) v."""
    value = polynomial(h, x)
    if beta == 0.0 or grow == 0.0:
        return value
    ch, sh = np.cosh(grow * x), np.sinh(grow * x)
    return value + beta * ((ch - 1.0) * polynomial(p, x) + sh * polynomial(a, x))


@inner
def root(h, p, a, beta, grow, side, low, high):
    """Where side * component falls through 0 in [low, high]: secants within the bracket.

    It must be positive at ``low`` and not at ``high``. The end that stays is weighted as Anderson
    and Bjorck have it (a plain false position would creep where one end never moves); every fourth
    time the bracket is halved.
    """
    above = side * component(h, p, a, beta, grow, low)
    below = side * component(h, p, a, beta, grow, high)
    x = high
    for i in range(60):
        last = x
        x = (low * below - high * above) / (below - above) if i % 4 < 3 else 0.5 * (low + high)
        if not low < x < high:
            x = 0.5 * (low + high)
        value = side * component(h, p, a, beta, grow, x)
        if value == 0.0 or abs(x - last) <= 4e-16 * x or high - low <= 4e-16 * x:
            break
        if value < 0.0:
            ratio = 1.0 - value / below
            above *= (ratio if ratio > 0.0 else 0.5) if last == high else 1.0
            high, below = x, value
        else:
            ratio = 1.0 - value / above
            below *= (ratio if ratio > 0.0 else 0.5) if last == low else 1.0
            low, above = x, value
    return x


@inner
def leave_time(h, p, a, beta, grow, side, high, floor):
    """Where a path that starts within ``floor`` of its kink falls off it in [0, high].

    At once if it falls from the start. One that rises comes back later, perhaps much later:
    between a halving of ``high`` at which it is above 0 and the one before. One that rises, but
    not above 0, counts as off its kink where it falls through -floor.
    """
    speed = h[1] + h[2] + beta * grow * a[0]  # derivative of component at 0
    if side * speed <= 0.0:
        return root(h, p, a, beta, grow, side, 0.0, high) if side * h[0] > 0.0 else 0.0
    x = high
    while x > SHORTEST:
        if side * component(h, p, a, beta, grow, 0.5 * x) > 0.0:
            return root(h, p, a, beta, grow, side, 0.5 * x, x)
        x *= 0.5
    start = h[0]
    h[0] += side * floor
    x = root(h, p, a, beta, grow, side, 0.0, high)
    h[0] = start
    return x


@inner
def dip_of(h, p, a, beta, grow, side, low, high):
    """Where side * component is least in [low, high], by thirds."""
    for _ in range(40):  # to (2/3)^40 = 9e-8 of it; the value is off by the square
        one, two = low + (high - low) / 3.0, high - (high - low) / 3.0
        left = side * component(h, p, a, beta, grow, one)
        if left < side * component(h, p, a, beta, grow, two):
            high = two
        else:
            low = one
    return high


@inner
def first_fall(h, p, a, beta, grow, ch, sh, side, floor):
    """First x in [0, 1] at which side * component(x) falls through 0; 2.0 when there is none.

    ch and sh are cosh(grow) - 1 and sinh(grow).
    """
    # a bound first: if side * component cannot come down to 0 there is nothing to look for
    reach = reach_of(h, 1)
    if beta != 0.0 and grow > 0.0:
        reach += abs(beta) * (ch * reach_of(p, 0) + sh * reach_of(a, 0))
    if side * h[0] > reach:
        return 2.0
    start = before = side * h[0]
    above = 0.0 if start > floor else -1.0  # the last node above 0; none while on the kink
    for i in range(1, PARTS + 1):
        x = i / PARTS
        now = side * component(h, p, a, beta, grow, x)
        if now < -floor:
            if above >= 0.0:
                return root(h, p, a, beta, grow, side, above, x)
            if start >= -floor:
                return leave_time(h, p, a, beta, grow, side, x, floor)
            if now < before:  # on the wrong side since the start: only if it gets worse
                return (i - 1) / PARTS
        elif i < PARTS and before > now >= 0.0:
            # is there a dip below 0 beside this node? The parabola through three nodes says so
            # when its least value lies below half of this one
            after = side * component(h, p, a, beta, grow, (i + 1.0) / PARTS)
            bend = before - 2.0 * now + after
            if after >= now and now - (before - after) ** 2 / (8.0 * bend) < 0.5 * now:
                low = (i - 1) / PARTS
                dip = dip_of(h, p, a, beta, grow, side, low, (i + 1.0) / PARTS)
                if side * component(h, p, a, beta, grow, dip) < -floor:
                    return root(h, p, a, beta, grow, side, low, dip)
        above = x if now > 0.0 else above
        before = now
    return 2.0


@inner
def first_event(data, u, F, unit, grow, whole, noise):
    """First crossing on a path exp(M t) F (8, d + 1): (x, sample); sample -1 is a zero of a.

    ``unit`` and ``grow`` are the direction of M's force and |D| h. Zeros of a are looked for when
    ``whole`` (neurons on a face). A sign is lost only beyond ``noise`` |w||x_k|.
    """
    return first_event_among(data, u, F, unit, grow, whole, noise, np.arange(u.size))


@inner
def first_event_among(data, u, F, unit, grow, whole, noise, samples):
    """As :func:`first_event`, with a look at the kinks of the listed samples only."""
    d = data.X.shape[1]
    h, p, a = np.empty(8), np.empty(8), np.empty(8)
    size, far = 0.0, 0.0
    for i in range(8):
        p[i], a[i], square = 0.0, F[i, d], 0.0
        for e in range(d):
            p[i] += unit[e] * F[i, e]
            square += F[i, e] * F[i, e]
            if i < 2:
                size += abs(F[i, e])
        if i > 0:
            far += REACH[i] * np.sqrt(square)
    best, hit = 2.0, -2  # beyond the step, nobody
    ch, sh = np.cosh(grow) - 1.0, np.sinh(grow)
    far += ch * reach_of(p, 0) + sh * reach_of(a, 0)  # bounds how far <w, x> / |x| can move
    for k in samples:
        if u[k] == 0:
            continue
        h[0] = dot(data.X, k, F[0])
        if u[k] * h[0] > 1.000001 * far * data.norms[k]:
            continue
        heights(data, k, F, h)
        beta = along_force(data, k, unit)
        x = first_fall(h, p, a, beta, grow, ch, sh, float(u[k]), noise * size * data.norms[k])
        if x < best:
            best, hit = x, k
    if whole and a[0] != 0.0:
        x = first_fall(a, a, p, 1.0, grow, ch, sh, np.sign(a[0]), 0.0)
        if x < best:
            best, hit = x, -1
    return best, hit


@inner
def along_force(data, k, unit):
    """<x_k, unit>, 0 where that is rounding."""
    beta = dot(data.X, k, unit)
    return beta if abs(beta) >= 4e-15 * data.norms[k] else 0.0


@inner
def first_event_by_rows(data, u, rows, member, unit, grow, whole, floor, samples):
    """As :func:`first_event_among`, of a neuron that is ``member`` times the columns of its cone.

    ``rows`` (samples + 2, 8, columns) are the products of the samples, of ``unit`` and of the outer
    weight with the dense output of the columns: known once for a cone, they spare each neuron its
    own path. A sign is lost only beyond ``floor`` |x_k|.
    """
    h, p, a = np.empty(8), np.empty(8), np.empty(8)
    count = samples.size
    for q in range(8):
        p[q], a[q] = along(member, rows[count, q]), along(member, rows[count + 1, q])
    best, hit = 2.0, -2
    ch, sh = np.cosh(grow) - 1.0, np.sinh(grow)
    for i in range(count):
        k = samples[i]
        if u[k] == 0:
            continue
        for q in range(8):
            h[q] = along(member, rows[i, q])
        beta = along_force(data, k, unit)
        x = first_fall(h, p, a, beta, grow, ch, sh, float(u[k]), floor * data.norms[k])
        if x < best:
            best, hit = x, k
    if whole and a[0] != 0.0:
        x = first_fall(a, a, p, 1.0, grow, ch, sh, np.sign(a[0]), 0.0)
        if x < best:
            best, hit = x, -1
    return best, hit


@inner
def heights(data, k, F, h):
    """h_i = <x_k, F_i>, i > 0."""
    for i in range(1, 8):
        h[i] = 0.0
        for e in range(data.X.shape[1]):
            h[i] += data.X[k, e] * F[i, e]


@inner
def samples_in_reach(data, u, F, unit, grow, off, samples):
    """List the samples whose kinks a path, or one near it, may meet; returns how many.

    ``off`` bounds how far the other path is from this one, in any component, during the step.
    Where a and p keep one common sign, growth leads away from the kinks on one side of which it
    pulls (`flow_scan.may_meet_kink`).
    """
    d = data.X.shape[1]
    h, p, a, far = np.empty(8), np.empty(8), np.empty(8), 0.0
    for i in range(8):
        p[i], a[i], square = 0.0, F[i, d], 0.0
        for e in range(d):
            p[i] += unit[e] * F[i, e]
            square += F[i, e] * F[i, e]
        far += REACH[i] * np.sqrt(square) if i > 0 else 0.0
    ch, sh = np.cosh(grow) - 1.0, np.sinh(grow)
    side = 0.0
    if abs(a[0]) > reach_of(a, 1) + off and abs(p[0]) > reach_of(p, 1) + off and a[0] * p[0] > 0.0:
        side = np.sign(a[0])
    turn = ch * reach_of(p, 0) + sh * reach_of(a, 0)
    count = 0
    for k in range(u.size):
        if u[k] == 0 or data.norms[k] == 0.0:
            continue
        h[0] = dot(data.X, k, F[0])
        beta = u[k] * dot(data.X, k, unit)
        down = 0.0 if beta * side > 0.0 else abs(beta) * turn
        down += off * data.norms[k]
        if u[k] * h[0] > 1.000001 * (down + far * data.norms[k]):  # reach_of(h, 1) is at most that
            continue
        if u[k] * h[0] > 1.000001 * down:  # else not cleared, whatever the path does
            heights(data, k, F, h)
            if u[k] * h[0] > 1.000001 * (down + reach_of(h, 1)):
                continue
        samples[count] = k
        count += 1
    return count


@inner
def first_exit(data, u, cn, lo, hi, floor):
    """First theta in [lo, hi] at which sliding on the faces of u ends; (2.0, -1) if it goes on.

    Sliding ends where a slope tau_k / c_k leaves [leak, 1]: a condition on the sampled pull alone,
    the same for all neurons of a cone. Looked for in nodes, then by bisection.
    """
    D, tau, c = np.empty(data.X.shape[1]), np.empty(u.size), np.empty(u.size)
    before = lo
    for i in range(PARTS + 1):
        theta = lo + (hi - lo) * i / PARTS
        pull_at(cn, theta, c)
        k = outside(data, u, c, D, tau, floor)
        if k >= 0:
            low, high = before, theta
            for _ in range(50):
                mid = 0.5 * (low + high)
                pull_at(cn, mid, c)
                if outside(data, u, c, D, tau, floor) >= 0:
                    high = mid
                else:
                    low = mid
            return high, k
        before = theta
    return 2.0, -1
