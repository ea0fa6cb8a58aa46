"""One piece under a frozen pull, the side taken at a face and behind zero: against slow twins."""

from itertools import product

import mpmath
import numpy as np
import pytest
from numba import njit
from scipy.optimize import lsq_linear

from reluflow.kernels import early_face, early_piece, early_zero

EPS = 2.3e-16


# ------------------------------------------------------------------ kernels.early_piece
@njit
def _lengths(p, a, J, r, delta):
    a1 = early_piece.outer_after(p, a, J, delta)
    return a1, early_piece.growing_part(p, a, J), early_piece.time_to(p, a, J, r, delta, a1)


@njit
def _state(w, rest, e, p, a, J, r, dt, out):
    return early_piece.state_after(w, rest, e, p, a, J, r, dt, out)


@njit
def _growth(w, e, v, value):
    return early_piece.growth_to_cosine(w, e, v, value)


#: (p, a): along and against the motion, balanced, nearly cancelling, far from balance
PAIRS = [
    (0.3, 0.9),
    (-0.3, 0.9),
    (0.0, 1.0),
    (0.7, 0.7),
    (-0.7, 0.7 * (1 + 1e-9)),
    (1e-9, 1.0),
    (0.9, 1e-9),
    (0.9, 0.2),
    (1e-200, 1.0),
    (-1e-200, 1.0),
]


def exact(p, a):
    p, a = mpmath.mpf(p), mpmath.mpf(a)
    return p, a, a * a - p * p


@pytest.mark.parametrize(("p", "a"), PAIRS)
def test_growth_and_time_of_a_piece(p, a):
    """a1^2 - p1^2 = a^2 - p^2 and p(t) + a(t) = (p + a) e^{rt}, to fifty digits."""
    with mpmath.workdps(50):
        P, A, J = exact(p, a)
        for delta in (1e-12 * a, 0.1 * a, 1.0, 1e8):
            p1 = P + mpmath.mpf(delta)
            a1 = mpmath.sqrt(J + p1 * p1)
            t = mpmath.log((p1 + a1) / (P + A)) / mpmath.mpf(1.7)
            fast = _lengths(p, a, float(J), 1.7, delta)
            assert abs(fast[0] - a1) <= 8 * EPS * a1
            assert abs(fast[1] - (P + A) / 2) <= 8 * EPS * abs((P + A) / 2) + 1e-300
            # an error of one rounding in p is one of EPS/|p'| in time, p' = r a
            assert abs(fast[2] - t) <= 16 * EPS * (t + (abs(P) + abs(p1)) / (mpmath.mpf(1.7) * A))


@pytest.mark.parametrize(("p", "a"), PAIRS)
@pytest.mark.parametrize("rt", [0.0, 1e-9, 0.4, 1.5, 30.0, 900.0])
def test_state_after_a_time(p, a, rt):
    """p(t) = p cosh rt + a sinh rt, a(t) = a cosh rt + p sinh rt, the rest of w stays."""
    e, rest = np.array([0.6, 0.8]), 0.5 * a * np.array([0.8, -0.6])
    w, out = rest + p * e, np.empty(2)
    with mpmath.workdps(50):
        P, A, J = exact(p, a)
        p1 = P * mpmath.cosh(rt) + A * mpmath.sinh(rt)
        a1 = A * mpmath.cosh(rt) + P * mpmath.sinh(rt)
        if a1 < 0:
            pytest.skip("the sign of the outer weight has changed before")
        outer, shift = _state(w, rest, e, p, a, float(J), 2.0, rt / 2.0, out)
        unit = mpmath.exp(mpmath.mpf(shift))
        top = max(abs(p1), a1, abs(A) / 2)
        assert abs(outer * unit - a1) <= 1e-13 * (1 + rt) * top
        for i in range(2):
            slow = mpmath.mpf(float(rest[i])) + p1 * mpmath.mpf(float(e[i]))
            assert abs(mpmath.mpf(float(out[i])) * unit - slow) <= 1e-13 * (1 + rt) * top


@pytest.mark.parametrize("d", [2, 3, 8])
def test_growth_to_a_cosine(d):
    rng = np.random.default_rng(d)
    tried = 0
    for _ in range(200):
        w, e, v = rng.normal(size=(3, d))
        e, v = e / np.linalg.norm(e), v / np.linalg.norm(v)
        v = v if e @ v > 0 else -v
        value = rng.uniform(0.1, 0.999)

        def cosine(x, w=w, e=e, v=v):
            return (w + x * e) @ v / np.linalg.norm(w + x * e)

        if cosine(0.0) >= value or e @ v <= value + 1e-3:
            continue  # starts inside, or never enters for good
        tried += 1
        low, high = 0.0, 1.0
        while cosine(high) < value:
            high *= 2.0
        for _ in range(200):  # bisection: the line enters the convex cone once
            middle = 0.5 * (low + high)
            low, high = (low, middle) if cosine(middle) >= value else (middle, high)
        assert _growth(w, e, v, value) == pytest.approx(high, rel=1e-9, abs=1e-12)
    assert tried > 20


# ------------------------------------------------------------------ kernels.early_face
@njit
def _settle(X, c, leak, xn, total, sa, hold, u, face, slope, branch, D):
    frozen = early_face.Frozen(X, c, leak, xn, total, np.empty((0, 0)), X.T.copy())
    return early_face.settle(frozen, sa, hold, u, face, np.int64(face.size), slope, branch, D)


def fixed(x):
    x = np.array(x, dtype=float)
    x.setflags(write=False)
    return x


def settle(X, c, leak, sa, hold, u):
    """Sides, slopes, branch marks and gradient at the face where u is 0."""
    X, c, u = fixed(X), fixed(c), np.array(u, dtype=np.int64)
    xn, face = np.linalg.norm(X, axis=1), np.flatnonzero(u == 0)
    slope, branch, D = np.where(u > 0, 1.0, leak), np.zeros(len(c), np.int64), np.empty(X.shape[1])
    total = float(np.abs(c) @ xn)
    agreed = _settle(X, c, float(leak), xn, total, sa, hold, u, face, slope, branch, D)
    return agreed, u, slope, branch.astype(bool), D


def is_consistent(X, c, leak, sa, u, slope, off, D):
    """Slope 1 where s<D, x_k> > 0 on that side, leak on the other, in [leak, 1] where it is 0.

    ``off`` is the pull of the samples off the face: D = off + sum_k slope_k c_k x_k.
    """
    v = sa * (X @ D)
    noise = 1e-12 * np.linalg.norm(X, axis=1) * (np.abs(c) @ np.linalg.norm(X, axis=1) + 1.0)
    side = np.where(u == 0, np.abs(v) <= noise, u * v > 0.0)
    bound = np.where(u > 0, 1.0, leak)
    box = np.where(u == 0, (slope >= leak) & (slope <= 1.0), np.abs(slope - bound) <= 1e-12)
    return bool((side & (box | (c == 0.0))).all() and np.allclose(off + (slope * c) @ X, D))


def all_velocities(X, c, leak, sa, off):
    """Every consistent gradient of a face of all samples, by trying each side of each sample.

    ``off`` is the gradient of the samples off the face.
    """
    found = []
    for u in product((-1, 0, 1), repeat=len(c)):
        u = np.array(u)
        slope = np.where(u > 0, 1.0, leak)
        base = off + (slope * (u != 0) * c) @ X
        on = np.flatnonzero(u == 0)
        if on.size:  # the shortest gradient is the only one that can stay on all of them
            Z = c[on, None] * X[on]
            fit = lsq_linear(Z.T, -base, bounds=(leak, 1.0), method="bvls", tol=1e-15)
            slope[on] = fit.x
            base = base + fit.x @ Z
        v = sa * (X @ base)
        if (u * v >= -1e-10).all() and (np.abs(v[on]) <= 1e-8).all():
            found.append(base)
    return found


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("leak", [0.0, 0.2])
def test_sides_at_a_face(d, leak):
    rng = np.random.default_rng(d)
    for trial in range(60):
        nf = int(rng.integers(1, d + 1))
        X, c = rng.normal(size=(nf + 3, d)), rng.normal(size=nf + 3)
        u = np.append(np.zeros(nf, int), rng.choice([-1, 1], 3))
        sa = float(rng.choice([-1, 1]))
        if trial % 3 == 0:
            c[:nf] = -sa * np.abs(c[:nf])  # all attract: the answer is unique
        if trial % 7 == 0:
            c[0] = 0.0
        for hold in (True, False):
            agreed, side, slope, branch, D = settle(X, c, leak, sa, hold, u)
            assert agreed
            on = slice(0, nf)
            assert (side[nf:] == u[nf:]).all()
            off = (slope[nf:] * c[nf:]) @ X[nf:]
            assert is_consistent(X[on], c[on], leak, sa, side[on], slope[on], off, D)
            every = all_velocities(X[on], c[on], leak, sa, off)
            assert min(np.linalg.norm(D - other) for other in every) <= 1e-7
            if trial % 3 == 0:
                assert len(every) >= 1
                assert max(np.linalg.norm(D - other) for other in every) <= 1e-6
                assert not branch.any()
            if not hold:  # whoever could stay at a repelling sample leaves it
                assert (side[on][branch[on]] != 0).all()


def test_one_sample_crosses_slides_or_branches():
    """With base pull b along x: velocities of <w, x> are b + c and b + leak c times s."""
    X = [[1.0, 0.0], [1.0, 1.0]]
    for b, c, leak, sa in product((-2.0, -0.5, 0.5, 2.0), (-1.0, 1.0), (0.0, 0.3), (1.0, -1.0)):
        pulls = [c, b]  # the other sample is active and pulls along x with b
        active, silent = sa * (b + c), sa * (b + leak * c)
        agreed, u, _, branch, _ = settle(X, pulls, leak, sa, True, [0, 1])
        assert agreed
        if active * silent > 0:
            assert u[0] == np.sign(active)
        else:
            assert u[0] == 0
            assert branch[0] == (sa * c > 0)
            _, u, *_ = settle(X, pulls, leak, sa, False, [0, 1])
            assert u[0] == (1 if sa * c > 0 else 0)


@pytest.mark.parametrize("leak", [0.0, 0.3])
@pytest.mark.parametrize("sa", [1.0, -1.0])
def test_samples_on_one_hyperplane_are_one_kink(leak, sa):
    """x and 2x pull like one sample; x and -x have slopes that add up to 1 + leak."""
    x, beside = [1.0, 0.0], [1.0, 1.0]
    single = settle([x, beside], [-3 * sa, 0.9 * sa], leak, sa, True, [0, 1])
    double = settle([x, [2.0, 0.0], beside], [-sa, -sa, 0.9 * sa], leak, sa, True, [0, 0, 1])
    np.testing.assert_allclose(double[4], single[4], atol=1e-14)
    assert (double[1][:2] == single[1][0]).all()
    assert double[2][0] == double[2][1] == pytest.approx(single[2][0])
    _, u, slope, _, D = settle(
        [x, [-1.0, 0.0], beside], [-sa, -sa, 0.1 * sa], leak, sa, True, [0, 0, 1]
    )
    assert u[0] == -u[1]
    assert slope[0] + slope[1] == pytest.approx(1 + leak)
    np.testing.assert_allclose(D, sa * np.array([0.1 - slope[0] + slope[1], 0.1]), atol=1e-14)


# ------------------------------------------------------------------ kernels.early_zero
@njit
def _leave(X, c, leak, xn, total, sa, hold, u, e, slope, branch, D):
    frozen = early_face.Frozen(X, c, leak, xn, total, np.empty((0, 0)), X.T.copy())
    return early_zero.leave_zero(frozen, sa, hold, u, e, slope, branch, D)


def far_path(X, c, leak, sa, q, steps=3000):
    """q' = s D(q) in steps of |q|/100, so that patterns and directions settle at any distance."""
    for _ in range(steps):
        D = (np.where(X @ q > 0, 1.0, leak) * c) @ X
        size = np.linalg.norm(D)
        if size == 0.0:
            break
        q = q + 0.01 * sa * D / size
        q /= np.linalg.norm(q)
    return q


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("leak", [0.0, 0.3])
def test_behind_zero(d, leak):
    """The pattern is that of a path from just behind zero, taken in many small steps."""
    rng = np.random.default_rng(d)
    left = 0
    for _ in range(15):
        n = int(rng.integers(1, 6))
        X, c, e = rng.normal(size=(n, d)), rng.normal(size=n), rng.normal(size=d)
        e, sa = e / np.linalg.norm(e), float(rng.choice([-1, 1]))
        u = np.sign(-(X @ e)).astype(np.int64)
        before, xn = u.copy(), np.linalg.norm(X, axis=1)
        total, D, slope = float(np.abs(c) @ xn), np.empty(d), np.empty(n)
        branch = np.zeros(n, np.int64)
        if not _leave(fixed(X), fixed(c), leak, xn, total, sa, True, u, e, slope, branch, D):
            assert (u == before).all()
            continue
        left += 1
        slopes = np.where(u > 0, 1.0, np.where(u < 0, leak, slope))
        np.testing.assert_allclose((slopes * c) @ X, D, atol=1e-12 * total)
        if np.linalg.norm(D) > 1e-12 * total:  # else it stays at zero
            cosines = X @ far_path(X, c, leak, sa, e) / xn
            assert ((np.sign(cosines) == u) | (np.abs(cosines) < 0.03)).all()  # sliding, to and fro
    assert left >= 5
