"""Slow twins of the landscape kernels."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from reluflow import Network, Problem, align, datasets
from reluflow.kernels.landscape import sweep_gradients
from reluflow.kernels.landscape_ascent import ascend, least_gradient
from reluflow.kernels.landscape_bound import cell_bounds, convex_part, sign_bounds
from reluflow.kernels.landscape_branch import consistent_patterns, vanishing_patterns
from reluflow.landscape import extremal_vectors
from reluflow.landscape.arrangement import candidates, faces, rays
from reluflow.landscape.canonical import canonical
from reluflow.landscape.kinds import verify


def test_sweep_sums_do_not_lose_digits():
    rng = np.random.default_rng(0)
    H = 400
    t = np.sort(rng.uniform(0, np.pi, size=H))
    normals = np.stack([-np.sin(t), np.cos(t)], axis=1)
    kappa = rng.normal(size=H) * 10.0 ** rng.integers(-8, 8, size=H)
    m, D = rng.normal(size=2), np.empty((2 * H, 2))
    sweep_gradients(normals, kappa, m, D)
    for arc in (0, 17, H - 1, H, H + 200, 2 * H - 1):
        signs = np.where(np.arange(H) <= arc, 1, -1)
        if arc >= H:
            signs = np.where(np.arange(H) <= arc - H, -1, 1)
        for c in range(2):
            terms = 2.0 * kappa * normals[:, c] / 2
            exact = Fraction(m[c]) + sum(
                Fraction(int(s)) * Fraction(float(x)) for s, x in zip(signs, terms, strict=True)
            )
            assert abs(D[arc, c] - float(exact)) <= 1e-15 * max(abs(float(exact)), 1e-15)


def test_face_counts_of_an_arrangement():
    rng = np.random.default_rng(1)
    N = rng.normal(size=(6, 3))
    N /= np.linalg.norm(N, axis=1, keepdims=True)
    found = faces(N, 1e-10)
    zeros = (found == 0).sum(axis=1)
    assert (zeros == 0).sum() == 2 * (1 + 5 + 10)  # Cover
    assert (zeros == 1).sum() == 6 * 10
    assert (zeros == 2).sum() == 30
    assert len(rays(N, 1e-10)[0]) == 30
    # a pencil: three planes through one line, and a fourth across
    N = np.array([[1.0, 0, 0], [0, 1.0, 0], [1, 1, 0] / np.sqrt(2), [0, 0, 1.0]])
    found = faces(N, 1e-10)
    assert len(found) == 13 * 3  # (6 sectors + 6 rays + origin) x (sides and plane)


def test_fast_face_test_against_all_patterns():
    rng = np.random.default_rng(2)
    for trial in range(20):
        d, n = int(rng.integers(2, 5)), int(rng.integers(2, 8))
        X = rng.normal(size=(n, d))
        if trial % 2:
            X = np.round(X)
        form = canonical(X, rng.normal(size=n), (0.0, 0.3)[trial % 3 == 0])
        if form.r < d or form.H == 0:
            continue
        every = faces(form.N, form.tol)
        every = every[(every != 0).any(axis=1)]
        slow = {p.pattern.tobytes() for p in verify(form, every, d)}
        fast = {p.pattern.tobytes() for p in verify(form, candidates(form)[0], d)}
        assert slow == fast


def test_vanishing_patterns_against_all_signs():
    rng = np.random.default_rng(3)
    for _ in range(30):
        H, r = int(rng.integers(1, 9)), int(rng.integers(1, 4))
        N = rng.integers(-1, 2, size=(H, r)).astype(float)
        kappa = rng.choice([-2.0, -1.0, 1.0], size=H)
        m = rng.integers(-1, 2, size=r).astype(float)
        found = np.empty((1 << H, H), dtype=np.int8)
        count, complete = vanishing_patterns(N, m, kappa, 1e-12, 10**6, found)
        slow = {v for v in product((-1, 1), repeat=H) if not (m + (np.array(v) * kappa) @ N).any()}
        assert complete
        assert {tuple(v) for v in found[:count].tolist()} == slow


def test_ascent_never_descends_and_ends_critical():
    rng = np.random.default_rng(4)
    for trial in range(15):
        d, n = int(rng.integers(2, 6)), int(rng.integers(2, 12))
        problem = Problem(rng.normal(size=(n, d)), rng.normal(size=n), leak=0.1 * (trial % 2))
        form = canonical(problem.X, problem.pull, problem.leak)
        W = rng.normal(size=(40, form.r))
        W /= np.linalg.norm(W, axis=1, keepdims=True)
        ends, status = W.copy(), np.zeros(40, dtype=np.int64)
        gram = form.N @ form.N.T if trial % 3 else np.empty((0, 0))
        ascend(form.N, gram, form.m, form.kappa, ends, 1e-10, 1e-12 * form.scale, 1000, status)
        assert (status == 1).all()
        assert (form.G(ends) >= form.G(W) - 1e-12).all()
        listed = extremal_vectors(problem, basin_points=0)
        if problem.d > form.r:
            continue
        gap = 1 - np.max(ends @ listed.vectors.T, axis=1, initial=-1.0)
        assert ((gap < 1e-9) | (np.abs(form.G(ends)) < 1e-12)).all()


@pytest.mark.parametrize(("n", "d", "leak"), [(150, 3, 0.0), (200, 12, 0.0), (120, 6, 0.3)])
def test_ascent_by_products_ends_where_the_plain_one_does(n, d, leak):
    """Hundreds of crossings on the way: products brought up to date against computed anew."""
    rng = np.random.default_rng(n)
    problem = Problem(rng.normal(size=(n, d)), np.sign(rng.normal(size=n)), leak=leak)
    form = canonical(problem.X, problem.pull, problem.leak)
    W = rng.normal(size=(60, form.r))
    W /= np.linalg.norm(W, axis=1, keepdims=True)
    found = []
    for gram in (form.N @ form.N.T, np.empty((0, 0))):
        ends, status = W.copy(), np.zeros(60, dtype=np.int64)
        ascend(form.N, gram, form.m, form.kappa, ends, form.tol, 1e-12, 50 * n, status)
        assert (status == 1).all()
        found.append(ends)
    # neither path is exact: a start on the edge of two basins may go either way
    assert np.mean(np.abs(found[0] - found[1]).max(axis=1) < 1e-9) >= 0.95
    assert (form.G(found[0]) >= form.G(W) - 1e-12).all()


def test_ascent_does_not_cross_a_hyperplane_that_the_gradient_is_on():
    """It is approached for ever, and rounding gave <n, D> a sign: an eighth of such starts crossed.

    The paths of neurons, in closed form, tell where each start leads.
    """
    problem = datasets.remaining_fixture()
    form = canonical(problem.X, problem.pull, problem.leak)
    V = np.random.default_rng(0).normal(size=(300, problem.d))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    paths = align(problem, Network(V, np.ones(300)))
    ends, status = V.copy(), np.zeros(300, np.int64)
    gram = form.N @ form.N.T
    ascend(form.N, gram, form.m, form.kappa, ends, form.tol, 1e-12 * form.scale, 1000, status)
    assert (status == 1).all()
    grows = paths.growing
    assert grows.mean() > 0.5
    assert np.abs(ends[grows] - paths.direction[grows]).max() < 1e-6


def test_sweep_of_thousands_agrees_with_its_own_gradients():
    rng = np.random.default_rng(5)
    problem = Problem(rng.normal(size=(3000, 2)), rng.normal(size=3000), leak=0.1)
    found = extremal_vectors(problem)
    assert found.method == "sweep"
    assert found.exact
    assert len(found.of_kind("max")) == len(found.of_kind("min"))
    assert len(found.of_kind("saddle")) == 0
    np.testing.assert_allclose(found.basin_fractions.sum(axis=0), 1.0)
    # G is monotone between neighbours on the circle
    t = np.sort(np.arctan2(found.vectors[:, 1], found.vectors[:, 0]))
    fine = np.sort(np.concatenate([t, np.linspace(-np.pi, np.pi, 50001)]))
    from reluflow.landscape import G

    value = np.concatenate(
        [
            G(problem, np.stack([np.cos(part), np.sin(part)], axis=1))
            for part in np.array_split(fine, 50)
        ]
    )
    turns = np.sign(np.diff(value))
    assert np.count_nonzero(turns[1:] * turns[:-1] < 0) <= len(found)


# ------------------------------------------------------------------ least norms and bounds
def random_form(rng, trial):
    """N, m and kappa of a small canonical form; r = 1 and a single kink among them."""
    r, H = int(rng.integers(1, 4)), int(rng.integers(1, 7))
    N = rng.normal(size=(H, r))
    if trial % 4 == 0 and H > 1:  # two hyperplanes nearly at right angles to all the others
        N[0] = np.eye(r)[0]
    N /= np.linalg.norm(N, axis=1, keepdims=True)
    return N, rng.normal(size=r), rng.normal(size=H) * (1.0 if trial % 3 else 0.2)


def shortest(base, Z):
    """min |base + t Z| over -1 <= t <= 1 by scipy."""
    if not len(Z):
        return base
    fit = lsq_linear(Z.T, -base, bounds=(-1.0, 1.0), method="trf", tol=1e-14, lsq_solver="exact")
    return base + fit.x @ Z


def G(N, m, kappa, w):
    return w @ m + np.abs(w @ N.T) @ kappa


def test_least_gradient_on_a_face():
    rng = np.random.default_rng(6)
    for trial in range(60):
        N, m, kappa = random_form(rng, trial)
        v = rng.choice(np.array([-1, 0, 1], np.int8), size=len(N))
        D = np.empty(m.size)
        least_gradient(N, m, kappa, v, D)
        slow = shortest(m + (v * kappa) @ N, (kappa[:, None] * N)[v == 0])
        np.testing.assert_allclose(D, slow, atol=2e-5)
        assert np.linalg.norm(D) <= np.linalg.norm(slow) + 1e-9


def test_consistent_patterns_against_all_patterns():
    """Every v with v = signs of N D, D the shortest gradient on its zeros; a superset may come."""
    rng = np.random.default_rng(7)
    hits = 0
    for trial in range(30):
        N, m, kappa = random_form(rng, trial)
        H, scale = len(N), np.linalg.norm(m) + np.abs(kappa).sum()
        found = np.empty((3**H, H), dtype=np.int8)
        count, nodes, complete = consistent_patterns(
            N, m, kappa, 1e-9 * scale, 1e-12 * scale, 1e-10, 10**6, found
        )
        fast = {tuple(v) for v in found[:count].tolist()}
        assert complete
        assert nodes >= 1
        for v in product((-1, 0, 1), repeat=H):
            u = np.array(v, np.int8)
            D = np.empty(m.size)
            least_gradient(N, m, kappa, u, D)
            size, p = np.linalg.norm(D), N @ D
            if size > 1e-9 and (np.where(np.abs(p) <= 1e-9 * size, 0, np.sign(p)) == u).all():
                assert v in fast
                hits += 1
    assert hits >= 20


def test_cell_bounds_hold_on_their_cells():
    """No direction of the cell has a larger G."""
    rng = np.random.default_rng(8)
    for trial in range(40):
        N, m, kappa = random_form(rng, trial)
        r, up = m.size, kappa > 0
        center = rng.normal(size=r)
        size = (1.0, 0.3, 1e-4)[trial % 3]
        V = center / np.linalg.norm(center) + size * rng.normal(size=(1, r, r)) / np.sqrt(r)
        V /= np.linalg.norm(V, axis=2, keepdims=True)
        if np.linalg.cond(V[0]) > 1e6 or (V[0] @ V[0].T <= 0.0).any():
            continue
        F = convex_part(V[0], m, N[up], kappa[up])[None]
        np.testing.assert_allclose(F[0], V[0] @ m + np.abs(V[0] @ N[up].T) @ kappa[up], atol=1e-13)
        bounds, points = np.empty(1), np.empty((1, r))
        cell_bounds(V, F, N[~up], kappa[~up], -np.inf, bounds, points)
        inside = rng.exponential(size=(500, r)) @ V[0]
        inside = np.vstack([V[0], inside / np.linalg.norm(inside, axis=1, keepdims=True)])
        values = G(N, m, kappa, inside)
        assert (values <= bounds[0] + 1e-13).all()
        assert np.linalg.norm(points[0]) == pytest.approx(1.0)


def test_sign_bounds_against_all_signs():
    """The bound is above every completion that agrees with its gradient, and meets it at a leaf."""
    rng = np.random.default_rng(9)
    for trial in range(40):
        N, m, kappa = random_form(rng, trial)
        up = kappa > 0
        NP, kP, NN, kN = N[up], kappa[up], N[~up], kappa[~up]
        P, Z = len(kP), kN[:, None] * NN
        states = rng.choice(np.array([-1, 0, 1], np.int8), size=(4, P))
        if P:
            states[0] = 0
        bounds, points = np.empty(4), np.empty((4, m.size))
        pick = np.empty(4, np.int64)
        sign_bounds(states, m, NP, kP, NN, kN, NP @ NP.T, bounds, points, pick)
        for i, state in enumerate(states):
            free = np.flatnonzero(state == 0)
            assert (pick[i] < 0) == (free.size == 0)
            best = -np.inf  # over the completions that agree with their own gradient
            for signs in product((-1, 1), repeat=len(free)):
                t = state.astype(float)
                t[free] = signs
                D = shortest(m + (t * kP) @ NP, Z)
                if (t * (NP @ D) >= -1e-9).all():
                    best = max(best, float(np.linalg.norm(D)))
            assert bounds[i] >= best - 1e-9
            if free.size == 0 and np.isfinite(best):
                assert bounds[i] == pytest.approx(best, rel=1e-7, abs=1e-9)
