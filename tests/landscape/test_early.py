"""`early`: the frozen-pull state, held to structure first and then to an independent integrator."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.optimize import lsq_linear

from reluflow import Network, Problem, ReluflowError, initialize
from reluflow.landscape.align import align
from reluflow.landscape.early import early

THREE = Problem(X=np.array([[-0.75, 1.0], [-0.5, 1.0], [0.125, 1.0]]), y=np.array([1.1, 0.1, 0.8]))


def random_problem(seed: int, n: int, d: int, leak: float) -> Problem:
    rng = np.random.default_rng(seed)
    return Problem(rng.standard_normal((n, d)), rng.standard_normal(n), leak=leak, reduction="sum")


def neuron(w, a) -> Network:
    return Network(np.atleast_2d(np.asarray(w, dtype=float)), np.atleast_1d(np.asarray(a, float)))


def state(net: Network) -> np.ndarray:
    W, a = net.weights()
    return np.column_stack([W, a])


# An independent road: Runge-Kutta with event location, faces by SciPy's bounded least squares.


def face_gradient(X, c, leak, u):
    """D for a pattern u: base plus the least-norm combination of the samples with u = 0."""
    slope = np.where(u > 0, 1.0, leak)
    on = u == 0
    slope[on] = 0.0
    base = X.T @ (slope * c)
    if on.any():
        Z = (c[on, None] * X[on]).T
        base = base + Z @ lsq_linear(Z, -base, bounds=(leak, 1.0), method="bvls", tol=1e-15).x
    return base


def integrate(problem, w, a, t_end):
    """State at t_end and the number of crossings and slides, for paths without branching."""
    X, c, leak = problem.X, problem.pull, problem.leak
    z, t, u = np.append(w, a), 0.0, np.sign(X @ w)
    crossings = slides = 0
    while True:
        D = face_gradient(X, c, leak, u)

        def field(_, z, D=D):
            return np.append(z[-1] * D, z[:-1] @ D)

        watch = []
        for k in np.flatnonzero(u):

            def meet(_, z, k=k):
                return X[k] @ z[:-1]

            meet.terminal, meet.direction = True, -u[k]
            watch.append(meet)
        sol = solve_ivp(
            field, (t, t_end), z, "DOP853", events=watch, rtol=1e-13, atol=1e-16, max_step=0.02
        )
        z, t = sol.y[:, -1], sol.t[-1]
        if sol.status == 0:
            return z, crossings, slides
        k = next(k for k, e in zip(np.flatnonzero(u), sol.t_events, strict=True) if e.size)
        came = u[k]
        speeds = []
        for side in (1, -1):
            u[k] = side
            speeds.append(z[-1] * X[k] @ face_gradient(X, c, leak, u))
        if speeds[0] * speeds[1] > 0:
            u[k] = np.sign(speeds[0])
            assert u[k] == -came
            crossings += 1
        else:
            assert z[-1] * c[k] < 0, "a branch: not a case for this reference"
            u[k] = 0
            slides += 1
        # samples that the new face no longer holds
        D = face_gradient(X, c, leak, u)
        for i in np.flatnonzero(u == 0):
            v = z[-1] * X[i] @ D
            if abs(v) > 1e-9 * abs(z[-1]):
                u[i] = np.sign(v)


@pytest.mark.parametrize("leak", [0.0, 0.2])
@pytest.mark.parametrize(("n", "d"), [(4, 2), (5, 3), (12, 3), (6, 4)])
def test_agrees_with_runge_kutta_across_crossings_and_slides(n, d, leak):
    met = np.zeros(2, int)
    for seed in range(60 if d == 2 else 16):
        problem = random_problem(seed, n, d, leak)
        rng = np.random.default_rng(100 + seed)
        for w, a in zip(rng.standard_normal((3, d)), rng.standard_normal(3), strict=True):
            kinds = {e.kind for e in align(problem, neuron(w, a)).paths[0]}
            if kinds & {"branch", "origin"}:
                continue  # the reference takes one hyperplane at a time
            for t in (0.3, 1.2):
                z, crossings, slides = integrate(problem, w, a, t)
                got = state(early(problem, neuron(w, a), t))[0]
                assert np.abs(got - z).max() <= 2e-11 * np.linalg.norm(z)
            met += crossings, slides
    assert met.min() >= 3, "the sample of paths holds no crossing or no slide"


# Structure: restart, rotation, scale, conserved quantity, continuity.

problems = st.builds(
    random_problem,
    st.integers(0, 10**6),
    st.integers(1, 7),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.2]),
)


@st.composite
def lattices(draw):
    """Small whole numbers: duplicate, opposite, collinear, zero samples, corners everywhere."""
    n, d = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    X = draw(st.lists(st.integers(-1, 1), min_size=n * d, max_size=n * d))
    y = draw(st.lists(st.integers(-2, 2), min_size=n, max_size=n))
    problem = Problem(np.reshape(X, (n, d)), y, leak=draw(st.sampled_from([0.0, 0.5])))
    z = draw(st.lists(st.integers(-2, 2), min_size=4 * (d + 1), max_size=4 * (d + 1)))
    z = np.reshape(z, (4, d + 1)).astype(float)
    balanced = draw(st.booleans())
    return problem, Network(z[:, :-1], np.linalg.norm(z[:, :-1], axis=1) if balanced else z[:, -1])


def generic(problem, seed, kind):
    return problem, initialize(problem, 5, scale=1.0, kind=kind, rng=seed)


laws = st.sampled_from(["balanced", "dominated", "gaussian"])
seeds = st.integers(0, 10**6)


anything = st.one_of(st.builds(generic, problems, seeds, laws), lattices())
rules = st.sampled_from(["stay", "leave"])


@settings(max_examples=150, deadline=None)
@given(anything, st.floats(0.0, 3.0), st.floats(0.0, 3.0))
def test_two_short_times_make_a_long_one(case, t1, t2):
    problem, net = case
    whole = state(early(problem, net, t1 + t2))
    halves = state(early(problem, early(problem, net, t1), t2))
    error = np.abs(whole - halves).max(axis=1) / (np.linalg.norm(whole, axis=1) + 1e-300)
    assert error.max() <= 1e-8


@settings(max_examples=300, deadline=None)
@given(anything, rules, st.floats(0.0, 4.0))
def test_velocity_is_a_subgradient_everywhere(case, rule, t):
    """Any path, through corners, branches and w = 0: w' = a D with D in the set of its pattern."""
    (problem, net), h = case, 1e-6
    paths = align(problem, net, on_branch=rule).paths
    (W, a), (V, b) = (early(problem, net, s, on_branch=rule).weights() for s in (t, t + 2 * h))
    middle = early(problem, net, t + h, on_branch=rule).weights()
    for j in range(net.m):
        if any(t <= e.time <= t + 2 * h for e in paths[j]):
            continue
        w, size = middle[0][j], np.linalg.norm(middle[0][j])
        s = problem.X @ w
        u = np.where(np.abs(s) <= 1e-12 * size * np.linalg.norm(problem.X, axis=1), 0, np.sign(s))
        slope = np.where(u > 0, 1.0, problem.leak) * (u != 0)
        target = (V[j] - W[j]) / (2 * h) - middle[1][j] * problem.X.T @ (slope * problem.pull)
        Z = middle[1][j] * (problem.pull[u == 0, None] * problem.X[u == 0]).T
        if Z.size:
            fit = lsq_linear(Z, target, bounds=(problem.leak, 1.0), method="bvls")
            target = target - Z @ fit.x
        scale = np.abs(problem.pull) @ np.linalg.norm(problem.X, axis=1)
        bound = 1e-8 * (1 + scale) ** 3 * np.hypot(size, middle[1][j])  # rounding over h
        assert np.linalg.norm(target) <= bound
        G = problem.pull @ np.maximum(s, problem.leak * s)
        assert abs((b[j] - a[j]) / (2 * h) - G) <= bound


@settings(max_examples=60, deadline=None)
@given(st.builds(generic, problems, seeds, laws), seeds, st.floats(0.0, 5.0))
def test_rotating_everything_rotates_the_answer(case, seed, t):
    problem, net = case
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((problem.d, problem.d)))[0]
    turned = state(early(problem.replace(X=problem.X @ Q), Network(net.W @ Q, net.a), t))
    plain = state(early(problem, net, t))
    size = np.linalg.norm(plain, axis=1)
    assert (np.abs(turned[:, :-1] - plain[:, :-1] @ Q).max(axis=1) <= 1e-8 * size).all()
    assert (np.abs(turned[:, -1] - plain[:, -1]) <= 1e-8 * size).all()


@settings(max_examples=60, deadline=None)
@given(anything, rules, st.floats(0.0, 5.0))
def test_difference_of_squares_is_conserved(case, rule, t):
    problem, net = case
    (V, b), (W, a) = net.weights(), early(problem, net, t, on_branch=rule).weights()
    before, after = b**2 - np.sum(V**2, axis=1), a**2 - np.sum(W**2, axis=1)
    assert (np.abs(after - before) <= 1e-12 * (1 + a**2)).all()  # BF24 Lemma 1


@pytest.mark.parametrize("shift", [-1000.0, 500.0])
def test_scale_enters_as_a_factor_only(shift):
    problem = random_problem(3, 6, 3, 0.0)
    net = generic(problem, 0, "gaussian")[1]
    plain, moved = (early(problem, start, 2.0) for start in (net, net.scaled(shift)))
    assert np.allclose(moved.log_norms - shift, plain.log_norms, rtol=0, atol=1e-12)
    assert np.allclose(moved.directions, plain.directions, rtol=0, atol=1e-14)
    assert np.array_equal(np.sign(moved.a), np.sign(plain.a))


def test_tiny_plain_weights_are_ordinary():
    net = initialize(THREE, 50, scale=1.0, rng=1)
    small = Network(net.W * 1e-300, net.a * 1e-300)
    a, b = early(THREE, net, 3.0), early(THREE, small, 3.0)
    assert np.allclose(a.directions, b.directions, rtol=0, atol=1e-13)
    assert np.allclose(a.log_norms - b.log_norms, 300 * np.log(10), rtol=0, atol=1e-11)


def test_growth_over_long_times_does_not_overflow():
    net = initialize(THREE, 20, scale=1e-3, rng=0)
    result = align(THREE, net)
    later = early(THREE, net, 1e6)
    expect = result.growth * 1e6 + result.log_offset
    assert result.growing.sum() >= 3
    assert np.allclose(later.log_norms, expect, rtol=1e-13)
    assert np.allclose(later.directions, result.direction, rtol=0, atol=1e-14)


@pytest.mark.parametrize("leak", [0.0, 0.2])
def test_state_is_continuous_at_events(leak):
    problem = random_problem(11, 6, 3, leak)
    net = initialize(problem, 30, scale=1.0, kind="gaussian", rng=4)
    paths = align(problem, net).paths
    seen = set()
    for j in range(net.m):
        for event in paths[j]:
            h = 1e-9 * (1 + event.time)
            times = [max(0.0, event.time - h), event.time, event.time + h]
            before, on, after = early(problem, net.subset([j]), times)
            a, b = state(before)[0], state(after)[0]
            assert np.abs(a - b).max() <= 100 * h * np.linalg.norm(a)
            if event.sample >= 0:
                assert abs(on.directions[0] @ problem.X[event.sample]) <= 1e-12
            seen.add(event.kind)
    assert {"cross", "slide", "sign"} <= seen


def test_neurons_that_never_move_come_back_bit_by_bit():
    net = initialize(THREE, 200, scale=1e-3, rng=5)
    dead = (net.W @ THREE.X.T <= 0).all(axis=1)
    later = early(THREE, net, 7.0)
    assert dead.sum() > 10
    assert np.array_equal(later.W[dead], net.W[dead])
    assert np.array_equal(later.a[dead], net.a[dead])
    assert np.array_equal(early(THREE, net, 0.0).W, net.W)


def test_times_come_back_in_the_order_asked():
    net = initialize(THREE, 8, scale=1e-3, rng=5)
    many = early(THREE, net, [2.0, 0.0, 1.0])
    for t, got in zip([2.0, 0.0, 1.0], many, strict=True):
        assert np.array_equal(got.W, early(THREE, net, t).W)
    assert early(THREE, net, []) == []


# Hyperplanes, by hand.


def test_landing_on_the_edge_of_the_dead_cone_freezes():
    """MMV24 E3: x = (1, 0), y = -1, w = (0, 1), a = 1 stays for ever."""
    problem = Problem(np.array([[1.0, 0.0]]), np.array([-1.0]))
    net = neuron([0.0, 1.0], 1.0)
    assert np.array_equal(early(problem, net, 5.0).W, net.W)
    # one that comes from the active side stops there: w1 = sinh(1/2 - t), a = cosh(1/2 - t)
    later = early(problem, neuron([np.sinh(0.5), 1.0], np.cosh(0.5)), 2.0)
    assert np.allclose(state(later), [[0.0, 1.0, 1.0]], atol=1e-15)


def test_waiting_and_leaving_on_a_repelling_hyperplane():
    """MMV24 E4: as E3 with y = +1; frozen pull: w = (sinh t, 1), a = cosh t when it leaves."""
    problem = Problem(np.array([[1.0, 0.0]]), np.array([1.0]))
    net = neuron([0.0, 1.0], 1.0)
    assert np.array_equal(early(problem, net, 5.0).W, net.W)
    left = early(problem, net, 2.0, on_branch="leave")
    assert np.allclose(state(left), [[np.sinh(2.0), 1.0, np.cosh(2.0)]], rtol=1e-14)
    for rule in ("stay", "leave"):
        result = align(problem, net, on_branch=rule)
        assert result.branched[0]
        assert result.growing[0] == (rule == "leave")


def test_leaving_the_origin_is_a_choice_without_leak_only():
    """BF24 Example 1: n = 1, x = y = 1, w = 0."""
    problem = Problem(np.array([[1.0]]), np.array([1.0]))
    net = neuron([0.0], 1.0)
    assert np.array_equal(state(early(problem, net, 3.0)), state(net))
    left = early(problem, net, 3.0, on_branch="leave")
    assert np.allclose(state(left), [[np.sinh(3.0), np.cosh(3.0)]], rtol=1e-14)
    leaky = early(problem.replace(leak=0.5), net, 3.0)
    assert np.allclose(state(leaky), [[np.sinh(3.0), np.cosh(3.0)]], rtol=1e-14)
    # leaky and pushed down: w goes to the side where the slope is the leak
    down = early(problem.replace(leak=0.5, y=np.array([-1.0])), net, 3.0)
    assert np.allclose(state(down), [[-np.sinh(1.5), np.cosh(1.5)]], rtol=1e-14)


def test_outer_weight_passes_through_zero():
    """One sample, |w| > |a|, pushed down: p = p0 ch + a0 sh turns where a changes sign."""
    problem = Problem(np.array([[1.0, 0.0]]), np.array([1.0]))
    p0, a0 = 1.0, -0.6
    net = neuron([p0, 0.3], a0)
    zero = np.arctanh(-a0 / p0)
    result = align(problem, net)
    assert [e.kind for e in result.paths[0]] == ["sign"]
    assert result.paths[0][0].time == pytest.approx(zero, abs=1e-15)
    assert result.sign[0] == 1
    for t in (0.3, zero, 2.0):
        ch, sh = np.cosh(t), np.sinh(t)
        expect = [p0 * ch + a0 * sh, 0.3, a0 * ch + p0 * sh]
        assert np.allclose(state(early(problem, net, t)), [expect], rtol=0, atol=4e-16 * np.exp(t))


def test_slide_becomes_a_branch_when_the_outer_weight_changes_sign():
    """Hyperplane of x_0 attracts while a < 0, with D = (0, 1) on it, and repels when a > 0."""
    X = np.array([[1.0, 0.0], [-0.5, 1.0]])
    problem = Problem(X, np.ones(2), reduction="sum")
    net = neuron([0.03, 1.0], -0.5)
    for rule in ("stay", "leave"):
        path = align(problem, net, on_branch=rule).paths[0]
        kinds = [(e.sample, e.kind) for e in path]
        assert kinds[:3] == [(0, "slide"), (-1, "sign"), (0, "branch")]
        assert kinds[3:] == ([] if rule == "stay" else [(0, "exit")])
        hit, zero = path[0].time, path[1].time
        _, p, a = state(early(problem, net, hit))[0]
        assert zero - hit == pytest.approx(np.arctanh(-a / p), rel=1e-12)
        w1, w2, b = state(early(problem, net, zero + 1.0, on_branch=rule))[0]
        if rule == "stay":  # the way back along the face
            low = np.sqrt(p * p - a * a)
            assert [w1, w2, b] == pytest.approx(
                [0.0, low * np.cosh(1), low * np.sinh(1)], abs=1e-14
            )
        else:
            assert w1 > 0.1
    # staying ends on the face, leaving at the sum of both samples
    assert np.allclose(align(problem, net).direction, [[0.0, 1.0]], atol=1e-15)
    left = align(problem, net, on_branch="leave").direction
    assert np.allclose(left, [np.array([0.5, 1.0]) / np.sqrt(1.25)], atol=1e-15)


def test_dominated_neuron_passes_through_the_origin():
    """|a| > |w| and exactly anti-aligned: w = sinh(1 - t) x until w = 0, then the other side."""
    x = np.array([0.6, 0.8])
    problem = Problem(x[None], np.array([-1.0]), leak=0.5)
    net = neuron(np.sinh(1.0) * x, np.cosh(1.0))
    path = align(problem, net).paths[0]
    assert path[0].kind == "origin"
    assert path[0].time == pytest.approx(1.0, abs=1e-14)
    later = early(problem, net, 3.0)  # slope 1 for one unit of time, then the leak for two
    expect = [*(-np.sinh(1.0) * x), np.cosh(1.0)]
    assert np.allclose(state(later), [expect], rtol=0, atol=1e-14)


def test_anti_aligned_neuron_shrinks_for_ever():
    x = np.array([0.6, 0.8])
    problem = Problem(x[None], np.array([-1.0]), leak=0.1)
    net = neuron(2.0 * x, 2.0)
    result = align(problem, net)
    assert result.anti_aligned[0]
    assert result.growth[0] == pytest.approx(-1.0)
    later = early(problem, net, 2000.0)
    assert np.allclose(later.log_norms, np.log(2.0) - 2000.0, rtol=0, atol=1e-12)
    assert np.allclose(later.directions, [x], atol=1e-15)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"t": -1.0}, "t must be"),
        ({"t": np.inf}, "t must be"),
        ({"t": [[1.0]]}, "t must be"),
        ({"t": 1.0, "on_branch": "jump"}, "on_branch"),
        ({"t": 1.0, "pull": [1.0]}, "pull"),
        ({"t": 1.0, "pull": [1.0, np.nan, 0.0]}, "pull"),
        ({"t": 1.0, "net": neuron([1.0, 2.0, 3.0], 1.0)}, "columns"),
    ],
)
def test_bad_input_is_explained(arguments, words):
    arguments = {"net": neuron([1.0, 2.0], 1.0)} | arguments
    with pytest.raises(ReluflowError, match=words):
        early(THREE, **arguments)
