"""Extremal vectors with known answers: the five papers' data and degenerate input."""

from itertools import product

import numpy as np
import oracle
import pytest

from reluflow import Problem, ReluflowError
from reluflow.landscape import D, G, constants, extremal_vectors, max_G, pattern, regular

METHODS = ["auto", "arrangement", "branch"]
THREE = Problem(np.array([(-0.75, 1.0), (-0.5, 1.0), (0.125, 1.0)]), np.array([1.1, 0.1, 0.8]))


def nonzero(found):
    return np.flatnonzero(np.abs(found.values) > 0)


@pytest.mark.parametrize("method", ["sweep", *METHODS])
def test_three_points(method):
    found = extremal_vectors(THREE, method=method)
    (i,) = nonzero(found)
    assert found.kinds[i] == "max"
    np.testing.assert_allclose(found.values[i] * found.vectors[i], [-0.258333, 0.666667], atol=1e-6)
    assert found.rates[i] == pytest.approx(0.714969, abs=1e-6)
    assert np.degrees(np.arctan2(*found.vectors[i][::-1])) == pytest.approx(111.2, abs=0.05)
    assert found.faces[i] == ()
    assert found.signs[i] == 1


def test_three_points_dead_cone():
    found = extremal_vectors(THREE)
    assert sorted(found.kinds) == ["flat", "max", "weak min", "weak min"]
    np.testing.assert_allclose(found.basin_fractions.sum(axis=0), 1.0)
    flat = found.of_kind("flat")[0]
    # the dead cone lies between the rays orthogonal to the outer samples
    outer = THREE.X[[0, 2]] / np.linalg.norm(THREE.X[[0, 2]], axis=1, keepdims=True)
    angle = np.pi - np.arccos(outer[0] @ outer[1])
    assert found.basin_fractions[flat] == pytest.approx(angle / (2 * np.pi), abs=1e-12)
    assert found.basin_fractions[found.of_kind("max")[0], 1] == 0.0


def test_constants_of_three_points():
    c = constants(THREE)
    assert c.D_max == pytest.approx(0.714969, abs=1e-6)
    assert c.D_min == pytest.approx(0.268742, abs=1e-6)
    assert c.alpha_min == pytest.approx(0.728690, abs=1e-6)
    assert c.delta_0 == pytest.approx(0.629476, abs=1e-6)
    assert np.exp(c.log_scale_bound(1.0, 0.25)) == pytest.approx(0.013979, abs=1e-6)
    assert np.exp(c.log_scale_bound(0.1, 0.25)) == pytest.approx(5.27e-4, rel=1e-3)


def test_constants_against_sampling():
    rng = np.random.default_rng(2)
    for trial in range(6):
        X, y, leak = oracle.random_problem(rng, 2, trial)
        problem = Problem(X, y, leak=leak)
        c = constants(problem)
        W = oracle.sampled_directions(X, rng)
        size = np.linalg.norm(D(problem, W), axis=1)
        assert c.D_max == pytest.approx(size.max(), rel=1e-10)
        assert c.D_min == pytest.approx(size[size > 1e-12].min(), rel=1e-8)


def xor_orbit():
    X = []
    for x in [(0.88, 0.05, 0.06), (0.85, 0.08, -0.03), (0.9, 0.045, 0.1)]:
        for swap, s1, s2, s3 in product((0, 1), (1, -1), (1, -1), (1, -1)):
            a, b = (x[1], x[0]) if swap else (x[0], x[1])
            X.append((s1 * a, s2 * b, s3 * x[2]))
    X = np.array(X)
    return X, np.where(np.abs(X[:, 0]) > np.abs(X[:, 1]), 1.0, -1.0)


def test_xor_orbit_extrema_are_the_axes():
    X, y = xor_orbit()
    found = extremal_vectors(Problem(X, y, loss="logistic"), basin_points=0)
    assert found.exact
    top = np.flatnonzero(found.rates > found.rates.max() - 1e-9)
    want = {(1, 0, 0): 1, (-1, 0, 0): 1, (0, 1, 0): -1, (0, -1, 0): -1}
    got = {tuple(np.round(found.vectors[i]).astype(int).tolist()): int(found.signs[i]) for i in top}
    assert got == want
    np.testing.assert_allclose(np.abs(found.vectors[top]).max(axis=1), 1.0, atol=1e-12)
    assert found.rates.max() == pytest.approx(0.1022917, abs=5e-8)
    assert max_G(Problem(X, y, loss="logistic")).value == pytest.approx(0.1022917, abs=5e-8)


@pytest.mark.parametrize("method", ["sweep", *METHODS])
def test_orthogonally_separable(method):
    X = np.array([(1, 0.6), (0.7, 1), (0.9, 0.9), (1.2, 0.4), (-0.8, -1.4), (-0.2, -1.5)])
    y = np.array([1.0, 1, 1, 1, -1, -1])
    problem = Problem(X, y, loss="exponential", reduction="sum")
    found = extremal_vectors(problem, method=method)
    rows = nonzero(found)
    plus, minus = X[:4].sum(axis=0), X[4:].sum(axis=0)
    growing = {1: plus, -1: minus}
    ends = [i for i in rows if found.kinds[i] in ("max", "min")]
    assert len(ends) == 2
    for i in ends:
        s = int(found.signs[i])
        assert found.kinds[i] == {1: "max", -1: "min"}[s]
        np.testing.assert_allclose(found.values[i] * found.vectors[i] * s, growing[s], atol=1e-12)
    assert len(rows) == 2


@pytest.mark.parametrize("leak", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("method", METHODS)
def test_symmetric_data_have_no_kinks(leak, method):
    half = np.random.default_rng(3).normal(size=(5, 4))
    X, y = np.vstack([half, -half]), np.repeat([1.0, -1.0], 5)
    found = extremal_vectors(Problem(X, y, loss="logistic", leak=leak), method=method)
    mu = (y @ X) / 10
    assert len(found) == 2
    assert set(found.kinds) == {"max", "min"}
    top = found.of_kind("max")[0]
    np.testing.assert_allclose(found.vectors[top], mu / np.linalg.norm(mu), atol=1e-12)
    assert found.values[top] == pytest.approx((1 + leak) / 4 * np.linalg.norm(mu), rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_orthonormal_data(method):
    """Every set of same-sign samples has its normalised sum; all on faces, slopes at the end."""
    y = np.array([1.0, 2.0, -1.0, -0.5])
    found = extremal_vectors(Problem(np.eye(4), y), method=method)
    rows = nonzero(found)
    want = set()
    for s in (1, -1):
        same = np.flatnonzero(np.sign(y) == s)
        for size in range(1, len(same) + 1):
            for mask in product((0, 1), repeat=len(same)):
                if sum(mask) == size:
                    w = np.zeros(4)
                    w[same] = np.array(mask) * np.abs(y[same])
                    want.add(tuple(np.round(w / np.linalg.norm(w), 9)))
    assert {tuple(np.round(found.vectors[i], 9) + 0.0) for i in rows} == want
    assert found.degenerate[rows].all()
    for i in rows:
        all_own = np.count_nonzero(found.vectors[i]) == 2
        assert found.kinds[i] == (("max" if found.signs[i] > 0 else "min") if all_own else "saddle")
        S = np.linalg.norm(y[found.vectors[i] > 1e-9])
        assert found.rates[i] == pytest.approx(S / 4)  # TLB26 Eq. 9
    assert "flat" in found.kinds


@pytest.mark.parametrize("trial", range(12))
def test_kinds_on_data_out_of_general_position(trial):
    """Integer points: coincident, opposite and dependent samples; kinds by tiny circles."""
    rng = np.random.default_rng(trial)
    X = rng.integers(-1, 2, size=(7, 3)).astype(float)
    X = X[np.abs(X).any(axis=1)]
    y = rng.choice([-1.0, 1.0, 2.0], size=len(X))
    problem = Problem(X, y, leak=(0.0, 0.5)[trial % 2])
    if np.linalg.matrix_rank(X) < 3:
        pytest.skip("rank below 3")
    one = extremal_vectors(problem, method="arrangement", basin_points=0)
    two = extremal_vectors(problem, method="branch", basin_points=0)

    def key(e):
        return sorted((tuple(e.patterns[i]), e.kinds[i]) for i in range(len(e)) if e.values[i] != 0)

    assert key(one) == key(two)
    for i, w in enumerate(one.vectors):
        kind = oracle.local_kind(X, problem.pull, problem.leak, w)
        assert one.kinds[i].replace("degenerate ", "") == kind
    for w, kind in oracle.grid_extrema(X, problem.pull, problem.leak):
        if abs(G(problem, w)) < 1e-12:  # a whole face with D = 0: any direction of it will do
            same = (one.patterns == pattern(problem, w, 1e-7)).all(axis=1)
            assert one.kinds[np.flatnonzero(same)[0]] in (kind, "weak " + kind)
            continue
        gap = np.linalg.norm(one.vectors - w, axis=1)
        assert gap.min() < 1e-5
        assert one.kinds[gap.argmin()] == kind


# --- degenerate input -------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_duplicates_and_collinear_points_change_nothing(method):
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(5, 3)), rng.normal(size=5)
    plain = extremal_vectors(Problem(X, y, reduction="sum"), method=method, basin_points=0)
    # sample 0 split into a copy and a longer parallel one, sample 1 doubled with half its label
    X2 = np.vstack([X, X[:1], 3 * X[:1], X[1:2]])
    y2 = np.concatenate([y, [0.25 * y[0], 0.25 * y[0] / 3 * 2], [0.5 * y[1]]])
    y2[0] -= 0.25 * y[0] + 0.25 * y[0] * 2
    y2[1] -= 0.5 * y[1]
    found = extremal_vectors(Problem(X2, y2, reduction="sum"), method=method, basin_points=0)
    assert found.kinds == plain.kinds
    np.testing.assert_allclose(found.vectors, plain.vectors, atol=1e-9)
    np.testing.assert_array_equal(found.patterns[:, :5], plain.patterns)
    np.testing.assert_array_equal(found.patterns[:, 5], found.patterns[:, 0])


def test_samples_without_pull_and_zero_samples():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(6, 2)), rng.normal(size=6)
    y[3] = 0.0
    X[4] = 0.0
    found = extremal_vectors(Problem(X, y))
    keep = [0, 1, 2, 5]
    plain = extremal_vectors(Problem(X[keep], y[keep], reduction="sum"), y[keep] / 6)
    np.testing.assert_allclose(found.vectors, plain.vectors, atol=1e-12)
    assert (found.patterns[:, 4] == 0).all()
    assert all(3 not in face and 4 not in face for face in found.faces)


def test_zero_pull_is_flat():
    problem = Problem(np.eye(2), np.zeros(2))
    found = extremal_vectors(problem)
    assert found.kinds == ("flat",)
    assert found.exact
    assert max_G(problem).value == 0.0
    assert max_G(problem).exact
    with pytest.raises(ReluflowError, match="pull vanishes"):
        constants(problem)


def test_one_sample():
    for d in (1, 2, 5):
        x = np.arange(1.0, d + 1)[None]
        found = extremal_vectors(Problem(x, np.array([2.0])))
        i = found.of_kind("max")[0]
        np.testing.assert_allclose(found.vectors[i], x[0] / np.linalg.norm(x))
        assert found.values[i] == pytest.approx(2 * np.linalg.norm(x))
        leaky = extremal_vectors(Problem(x, np.array([2.0]), leak=0.25))
        assert leaky.kinds == ("max", "min")
        np.testing.assert_allclose(leaky.values, np.linalg.norm(x) * np.array([2.0, -0.5]))


def test_one_dimension():
    found = extremal_vectors(Problem(np.array([[1.0], [-2.0], [3.0]]), np.array([1.0, 1.0, -1.0])))
    assert dict(zip(found.vectors[:, 0].tolist(), found.kinds, strict=True)) == {
        1.0: "min",
        -1.0: "max",
    }
    np.testing.assert_allclose(sorted(found.values), [-2 / 3, 2 / 3])


@pytest.mark.parametrize("method", METHODS)
def test_rank_deficient_data_work_in_the_row_space(method):
    rng = np.random.default_rng(6)
    for trial in range(10):
        Z, y = rng.normal(size=(5, 2)), rng.normal(size=5)
        Q = np.linalg.qr(rng.normal(size=(3, 3)))[0][:2]
        problem = Problem(Z @ Q, y, leak=0.2)
        found = extremal_vectors(problem, method=method)
        plane = extremal_vectors(Problem(Z, y, leak=0.2))
        rows = {tuple(p): v for p, v in zip(plane.patterns, plane.vectors, strict=True)}
        for i, w in enumerate(found.vectors):
            kind = oracle.local_kind(problem.X, problem.pull, 0.2, w)
            assert found.kinds[i].replace("degenerate ", "") == kind, trial
            if found.patterns[i].any():
                np.testing.assert_allclose(w, rows.pop(tuple(found.patterns[i])) @ Q, atol=1e-10)
            else:  # the direction orthogonal to all samples
                np.testing.assert_allclose(problem.X @ w, 0.0, atol=1e-12)
        assert not rows


def test_direction_orthogonal_to_the_data():
    """Critical when slopes balance all pulls: here |w_1| + |w_2| has its strict minimum there."""
    X = np.array([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]])
    for method in METHODS:
        found = extremal_vectors(Problem(X, np.ones(4)), method=method)
        both = found.of_kind("min")
        np.testing.assert_allclose(sorted(found.vectors[both].tolist()), [[0, 0, -1], [0, 0, 1]])
        assert found.degenerate[both].all()
        assert len(found.of_kind("max")) == 4
    wider = extremal_vectors(Problem(np.hstack([X, np.zeros((4, 1))]), np.ones(4)))
    assert len(wider.of_kind("weak min")) == 1


def test_bad_input_says_what_to_do():
    with pytest.raises(ReluflowError, match="method must be one of"):
        extremal_vectors(THREE, method="magic")
    with pytest.raises(ReluflowError, match="needs data of rank 2"):
        extremal_vectors(Problem(np.eye(3), np.ones(3)), method="sweep")
    with pytest.raises(ReluflowError, match="pull has shape"):
        extremal_vectors(THREE, [1.0])
    with pytest.raises(ReluflowError, match="not finite"):
        extremal_vectors(THREE, [1.0, np.nan, 0.0])
    with pytest.raises(ReluflowError, match="expected"):
        G(THREE, np.ones(3))


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e200])
def test_tiny_and_huge_pulls(size):
    rng = np.random.default_rng(12)
    X = rng.normal(size=(6, 3))
    problem = Problem(X, np.ones(6), leak=0.1)
    pull = rng.normal(size=6)
    plain, scaled = (extremal_vectors(problem, p, basin_points=0) for p in (pull, size * pull))
    np.testing.assert_allclose(scaled.vectors, plain.vectors, atol=1e-12)
    np.testing.assert_allclose(scaled.values, size * plain.values, rtol=1e-12)
    assert max_G(problem, size * pull).value == pytest.approx(
        size * max_G(problem, pull).value, rel=1e-12, abs=0
    )
    w = np.cross(X[0], X[1])
    np.testing.assert_allclose(
        D(problem, w, size * pull), size * D(problem, w, pull), rtol=1e-9, atol=1e-12 * size
    )


# --- G, D, patterns ---------------------------------------------------------------------------


def test_G_is_the_product_with_D_and_D_is_shortest():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(6, 3))
    problem = Problem(X, rng.normal(size=6), leak=0.1)
    W = rng.normal(size=(20, 3))
    W[:6] -= np.einsum("ij,ij->i", W[:6], X)[:, None] * X / (X**2).sum(axis=1, keepdims=True)
    W[6] = np.cross(X[0], X[1])
    grad = D(problem, W)
    np.testing.assert_allclose(np.einsum("ij,ij->i", W, grad), G(problem, W), atol=1e-12)
    u = pattern(problem, W)
    assert (u[range(6), range(6)] == 0).all()
    assert list(regular(problem, W)) == [False] * 7 + [True] * 13
    for i in range(7):
        K = u[i] == 0
        for _ in range(200):
            s = np.where(u[i] > 0, 1.0, 0.1)
            s[K] = rng.uniform(0.1, 1.0, size=K.sum())
            assert np.linalg.norm(s * problem.pull @ X) >= np.linalg.norm(grad[i]) - 1e-12


def test_repr_says_all_or_found():
    assert "all" in repr(extremal_vectors(THREE))
    assert "found" in repr(extremal_vectors(THREE, method="multistart"))
    assert not extremal_vectors(THREE, method="multistart").exact


def test_multistart_ends_are_critical():
    rng = np.random.default_rng(9)
    problem = Problem(rng.normal(size=(40, 8)), rng.normal(size=40))
    found = extremal_vectors(problem, method="multistart", starts=200)
    assert set(found.kinds) <= {"max", "min", "flat", "weak max", "weak min"}
    np.testing.assert_allclose(
        D(problem, found.vectors), found.values[:, None] * found.vectors, atol=1e-9
    )


def test_sphere_basins_add_up():
    rng = np.random.default_rng(10)
    problem = Problem(rng.normal(size=(8, 3)), rng.normal(size=8))
    found = extremal_vectors(problem, basin_points=500)
    assert found.basins.startswith("quadrature")
    np.testing.assert_allclose(found.basin_fractions.sum(axis=0), 1.0, atol=1e-9)
    assert (found.basin_fractions[found.of_kind("min"), 0] == 0).all()


def test_plane_basins_against_ascent():
    rng = np.random.default_rng(11)
    problem = Problem(rng.normal(size=(7, 2)), rng.normal(size=7))
    found = extremal_vectors(problem)
    t = 2 * np.pi * (np.arange(2000) + 0.5) / 2000
    W = np.stack([np.cos(t), np.sin(t)], axis=1)
    for _ in range(4000):  # plain gradient ascent on the circle
        W = W + 0.02 * D(problem, W)
        W /= np.linalg.norm(W, axis=1, keepdims=True)
    end = np.argmax(W @ found.vectors.T, axis=1)
    share = np.bincount(end, minlength=len(found)) / 2000
    for i in found.of_kind("max"):
        assert share[i] == pytest.approx(found.basin_fractions[i, 0], abs=0.01)
