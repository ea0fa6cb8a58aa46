"""Slow twins of the landscape kernels."""

from fractions import Fraction
from itertools import product

import numpy as np

from reluflow import Problem
from reluflow.kernels.landscape import sweep_gradients
from reluflow.kernels.landscape_ascent import ascend
from reluflow.kernels.landscape_branch import vanishing_patterns
from reluflow.landscape import extremal_vectors
from reluflow.landscape.arrangement import candidates, patterns, rays
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
    faces = patterns(N, 1e-10)
    zeros = (faces == 0).sum(axis=1)
    assert (zeros == 0).sum() == 2 * (1 + 5 + 10)  # Cover
    assert (zeros == 1).sum() == 6 * 10
    assert (zeros == 2).sum() == 30
    assert len(rays(N, 1e-10)[0]) == 30
    # a pencil: three planes through one line, and a fourth across
    N = np.array([[1.0, 0, 0], [0, 1.0, 0], [1, 1, 0] / np.sqrt(2), [0, 0, 1.0]])
    faces = patterns(N, 1e-10)
    assert len(faces) == 13 * 3  # (6 sectors + 6 rays + origin) x (sides and plane)


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
        every = patterns(form.N, form.tol)
        every = every[(every != 0).any(axis=1)]
        slow = {p.side.tobytes() for p in verify(form, every, d)}
        fast = {p.side.tobytes() for p in verify(form, candidates(form)[0], d)}
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
        ascend(form.N, form.m, form.kappa, ends, 1e-10, 1e-12 * form.scale, 1000, status)
        assert (status == 1).all()
        assert (form.G(ends) >= form.G(W) - 1e-12).all()
        listed = extremal_vectors(problem, basin_points=0)
        if problem.d > form.r:
            continue
        gap = 1 - np.max(ends @ listed.vectors.T, axis=1, initial=-1.0)
        assert ((gap < 1e-9) | (np.abs(form.G(ends)) < 1e-12)).all()


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
