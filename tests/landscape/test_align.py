"""`align`: where neurons go, against closed forms of the papers and plain gradient descent."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numba import njit

from reluflow import Network, Problem, ReluflowError, initialize, losses
from reluflow.kernels.codes import CROSS
from reluflow.landscape.align import ANTI_ALIGNED, DEAD, RESTING, UNLISTED, align
from reluflow.landscape.early import early
from reluflow.landscape.extremal import extremal_vectors


def three_points() -> Problem:
    X = np.array([[-0.75, 1.0], [-0.5, 1.0], [0.125, 1.0]])
    return Problem(X, np.array([1.1, 0.1, 0.8]))


def toy6() -> Problem:
    X = [[1, 0.6], [0.7, 1], [0.9, 0.9], [1.2, 0.4], [-0.8, -1.4], [-0.2, -1.5]]
    return Problem(np.array(X), np.array([1.0, 1, 1, 1, -1, -1]), loss="exponential")


def xor_orbit() -> Problem:
    """TK24 section 5: sign flips of coordinates 1, 2 and the rest; swapping 1, 2 flips labels."""
    X, y = [], []
    for x in ((0.88, 0.05, 0.06), (0.85, 0.08, -0.03), (0.9, 0.045, 0.1)):
        for f, g, h, swap in itertools.product((1, -1), (1, -1), (1, -1), (False, True)):
            X.append((g * x[1], f * x[0], h * x[2]) if swap else (f * x[0], g * x[1], h * x[2]))
            y.append(-1.0 if swap else 1.0)
    return Problem(np.array(X), np.array(y), loss="logistic")


def orthonormal() -> Problem:
    return Problem(np.eye(6), np.array([1.0, -0.9, 0.8, 1.1, -1.1, 0.9]))


def gaussian(seed: int, n: int, d: int, leak: float = 0.0) -> Problem:
    rng = np.random.default_rng(seed)
    return Problem(rng.standard_normal((n, d)), rng.standard_normal(n), leak=leak)


SIX = {
    "three points": three_points(),
    "TOY6": toy6(),
    "XOR orbit": xor_orbit(),
    "orthonormal": orthonormal(),
    "random d=3": gaussian(0, 7, 3),
    "random leaky d=4": gaussian(97, 9, 4, leak=0.2),
}


def both_laws(problem: Problem, m: int, scale: float = 1e-10, rng: int = 0) -> Network:
    parts = [initialize(problem, m, scale, kind, rng) for kind in ("balanced", "gaussian")]
    W, a = np.vstack([p.W for p in parts]), np.concatenate([p.a for p in parts])
    return Network(W, a, leak=problem.leak)


# The papers' closed forms.


def test_three_points_have_one_destination():
    """BF24 Figure 2: positive live neurons go to D*, negative ones die (or anti-align)."""
    problem = three_points()
    net = initialize(problem, 5000, rng=0)
    result = align(problem, net)
    D = problem.X.T @ problem.y / 3
    live = (net.W @ problem.X.T > 0).any(axis=1)
    assert np.array_equal(result.growing, live & (net.a > 0))
    assert np.array_equal(result.dead, ~result.growing)
    grown = result.direction[result.growing]
    assert np.abs(grown - D / np.linalg.norm(D)).max() <= 1e-15
    assert np.degrees(np.arctan2(grown[:, 1], grown[:, 0])) == pytest.approx(111.2, abs=0.05)
    assert result.growth[result.growing] == pytest.approx(0.714969, abs=5e-7)
    assert (result.sign[result.growing] == 1).all()
    rows = np.unique(result.destination[result.growing])
    assert rows.size == 1
    assert result.extremal.kinds[rows[0]] == "max"
    assert (result.destination[~result.growing] == DEAD).all()
    # the one direction from which a negative neuron shrinks for ever
    exact = align(problem, Network(D[None], [-np.linalg.norm(D)]))
    assert exact.destination[0] == ANTI_ALIGNED
    assert exact.row[0] == rows[0]
    assert exact.growth[0] == pytest.approx(-np.linalg.norm(D), rel=1e-14)


def test_balanced_cosine_follows_tanh():
    """MMV24, TLB26 Lemma 3: cos = tanh(artanh c0 + |x_a| t), log|w| by log cosh, in one cone."""
    problem = Problem(
        np.array([[1.0, 0.6], [0.7, 1.0], [0.9, 0.9]]), np.ones(3), loss="exponential"
    )
    xa = problem.X.T @ problem.pull
    rng = np.random.default_rng(0)
    W = rng.uniform(0.0, 1.0, (200, 2))  # all three samples active, for good
    net = Network(W, np.linalg.norm(W, axis=1))
    rate = np.linalg.norm(xa)
    start = np.arctanh(net.directions @ xa / rate)
    times = [0.1, 0.5, 1.0, 3.0, 10.0]
    for t, later in zip(times, early(problem, net, times), strict=True):
        assert np.abs(later.directions @ xa / rate - np.tanh(start + rate * t)).max() <= 1e-12
        gain = np.log(np.cosh(start + rate * t)) - np.log(np.cosh(start))
        assert np.abs(later.log_norms - net.log_norms - gain).max() <= 1e-12
    result = align(problem, net, cosine=0.999)
    expect = np.maximum(0.0, (np.arctanh(0.999) - start) / rate)
    assert np.abs(result.time - expect).max() <= 1e-12
    assert np.abs(result.log_gain + np.log(2) - start + np.log(np.cosh(start))).max() <= 1e-12


@pytest.mark.parametrize("loss", ["half_square", "square"])
def test_orthonormal_neurons_go_to_their_own_active_samples(loss):
    """TLB26 Eq. 9 and 10: the normalised sum over own-sign active samples, rate c S/n."""
    y = np.array([1.0, -0.7, 0.4, 1.3, -1.1, 0.2, 0.9, -0.3])
    problem = Problem(np.eye(8), y, loss=loss)
    net = initialize(problem, 500, log_scale=-1000.0, rng=2)
    sign = np.sign(net.a)
    own = (net.W > 0) & (sign[:, None] * problem.y > 0)  # X = I: <w, x_k> = w_k
    S = np.sqrt(np.sum(np.where(own, problem.y, 0.0) ** 2, axis=1))
    result = align(problem, net)
    live = S > 0
    assert np.array_equal(result.growing, live)
    assert result.dead[~live].all()
    expect = sign[:, None] * np.where(own, problem.y, 0.0)
    assert np.abs(result.direction[live] - expect[live] / S[live, None]).max() <= 1e-15
    factor = {"half_square": 1.0, "square": 2.0}[loss]
    assert np.abs(result.growth - factor * S / 8).max() <= 1e-15
    assert (result.destination[live] >= 0).all()  # degenerate face points are in the list
    assert result.extremal.degenerate[result.destination[live]].all()


def test_symmetric_data_align_with_the_mean():
    """LLWA21: symmetric data, G(w) = <w, mu~>, mu~ = (1 + leak)/4 mu: every neuron to +-mu."""
    rng = np.random.default_rng(3)
    half = rng.standard_normal((5, 3)) + np.array([1.5, 0, 0])
    problem = Problem(
        np.vstack([half, -half]), np.repeat([1.0, -1.0], 5), loss="logistic", leak=0.3
    )
    mu = problem.X.T @ problem.y / 10
    net = initialize(problem, 100, kind="gaussian", rng=0)
    result = align(problem, net)
    assert result.growing.all()
    part = net.W @ mu / np.linalg.norm(mu) + net.a  # sign of the growing part
    assert np.array_equal(result.sign, np.sign(part))
    expect = np.sign(part)[:, None] * mu / np.linalg.norm(mu)
    assert np.abs(result.direction - expect).max() <= 1e-14
    assert result.growth == pytest.approx(1.3 / 4 * np.linalg.norm(mu), rel=1e-13)


# Gradient descent, as plain as it gets.


@njit(cache=False)
def descend(W, a, X, y, leak, kind, lr, marks):
    """Full-batch descent on the mean loss; the weights at the steps ``marks``."""
    (n, d), m = X.shape, a.size
    out = np.empty((marks.size, m, d + 1))
    S, slope, g = np.empty((m, n)), np.empty((m, n)), np.empty(n)
    slot = 0
    for step in range(marks[-1] + 1):
        if step == marks[slot]:
            out[slot, :, :-1], out[slot, :, -1] = W, a
            slot += 1
        for k in range(n):
            f = 0.0
            for j in range(m):
                S[j, k] = 0.0
                for i in range(d):
                    S[j, k] += W[j, i] * X[k, i]
                slope[j, k] = 1.0 if S[j, k] > 0.0 else leak
                f += a[j] * slope[j, k] * S[j, k]
            if kind == 0:
                g[k] = f - y[k]
            elif kind == 1:
                g[k] = -y[k] / (1.0 + np.exp(y[k] * f))
            else:
                g[k] = -y[k] * np.exp(-y[k] * f)
        for j in range(m):
            old = a[j]
            for k in range(n):
                pull = lr / n * g[k] * slope[j, k]
                a[j] -= pull * S[j, k]
                for i in range(d):
                    W[j, i] -= old * pull * X[k, i]
    return out


KIND = {"half_square": 0, "logistic": 1, "exponential": 2}


def descent(problem, net, lr, times):
    marks = np.round(np.asarray(times) / lr).astype(np.int64)
    kind = KIND[problem.loss.name]
    return descend(
        net.W.copy(),
        net.a.copy(),
        problem.X.copy(),
        problem.y.copy(),
        problem.leak,
        kind,
        lr,
        marks,
    )


def unit(W):
    return W / np.linalg.norm(W, axis=-1, keepdims=True)


def one_solution(problem, net):
    """Without the few unbalanced neurons that slide, change sign and so find a repelling face:

    their path is one of several solutions, and descent takes another one.
    """
    branched = align(problem, net).branched
    assert branched.sum() <= 1
    return net.subset(~branched)


@pytest.mark.parametrize("name", SIX)
def test_cosines_agree_with_gradient_descent(name):
    """To 1e-5 at given times, for every neuron, after Richardson extrapolation in the step."""
    problem = SIX[name]
    net = one_solution(problem, both_laws(problem, 8))
    result = align(problem, net)
    top = result.growth.max()
    lr = 2.0**-16 / top
    times = np.array([2**15, 2**16, 3 * 2**16]) * lr
    coarse, fine = (descent(problem, net, step, times) for step in (lr, lr / 2))
    for i, later in enumerate(early(problem, net, times)):
        exact = np.sum(later.directions * result.direction, axis=1)
        plain = [np.sum(unit(run[i, :, :-1]) * result.direction, axis=1) for run in (coarse, fine)]
        assert np.abs(2 * plain[1] - plain[0] - exact).max() <= 1e-5


@pytest.mark.parametrize("name", [*SIX, "shrinking"])
def test_destinations_agree_with_gradient_descent(name):
    """Every neuron: direction, sign and, if it grows, the row of its extremal vector."""
    problem = SIX.get(name, gaussian(2, 7, 3))  # the last has maxima of G below zero
    net = one_solution(problem, both_laws(problem, 40, rng=5))
    result = align(problem, net, cosine=0.9999)
    top = result.growth.max()
    lr = 1e-3 / top
    t = lr * np.ceil(result.time.max() / lr)
    assert top * t <= 0.7 * np.log(1e10)  # outputs are below 1e-6: the network is silent
    run = descent(problem, net, lr, [t])[0]
    cosine = np.sum(unit(run[:, :-1]) * result.direction, axis=1)
    assert cosine.min() >= 0.9998
    assert np.array_equal(np.sign(run[:, -1]), result.sign)
    grown = result.growing
    nearest = np.argmax(unit(run[grown, :-1]) @ result.extremal.vectors.T, axis=1)
    assert np.array_equal(nearest, result.destination[grown])
    assert (result.row[result.anti_aligned] >= 0).all()
    assert result.anti_aligned.any() == (name == "shrinking")


# What the numbers mean, by way of `early`.


@pytest.mark.parametrize("name", SIX)
@pytest.mark.parametrize("cosine", [0.3, 0.9, 0.999])
def test_time_is_when_the_cosine_is_reached_for_good(name, cosine):
    problem = SIX[name]
    net = both_laws(problem, 60, scale=1.0, rng=3)
    result = align(problem, net, cosine=cosine)
    assert np.isfinite(result.time).all()
    for j in range(net.m):
        one, t, v = net.subset([j]), result.time[j], result.direction[j]
        after = [t, *(t + np.geomspace(1e-3, 50.0, 12))]
        value = [x.directions[0] @ v for x in early(problem, one, after)]
        assert min(value) >= cosine - 1e-12
        if t > 0:
            assert value[0] == pytest.approx(cosine, abs=1e-11)
            assert early(problem, one, t * (1 - 1e-6)).directions[0] @ v < cosine


@pytest.mark.parametrize("name", SIX)
def test_offset_and_growth_are_the_asymptote_of_the_log_norm(name):
    problem = SIX[name]
    net = both_laws(problem, 60, rng=4)
    result = align(problem, net)
    for t in (300.0, 3000.0):
        later = early(problem, net, t / result.growth.max())
        line = result.log_offset + result.growth * t / result.growth.max()
        assert np.allclose(later.log_norms, line, rtol=1e-12, atol=1e-9)
        assert np.allclose(later.directions, result.direction, rtol=0, atol=1e-9)
    assert np.allclose(result.log_gain, result.log_offset - net.log_norms, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shift", [-1000.0, 300.0])
def test_scale_moves_the_offset_alone(shift):
    problem = SIX["random d=3"]
    net = both_laws(problem, 50, scale=1.0)
    a, b = align(problem, net), align(problem, net.scaled(shift))
    assert np.array_equal(a.direction, b.direction)
    assert np.array_equal(a.time, b.time)
    assert np.array_equal(a.paths.times, b.paths.times)
    assert np.allclose(b.log_offset - a.log_offset, shift, rtol=0, atol=1e-12)


def test_paths_tell_the_patterns():
    """Crossings and slides replay the activation pattern from the start to the end."""
    problem = SIX["random d=3"]
    net = both_laws(problem, 100, scale=1.0, rng=5)
    result = align(problem, net)
    assert len(result.paths) == net.m
    for j in range(net.m):
        path = result.paths[j]
        times = [e.time for e in path]
        assert times == sorted(times)
        u = np.sign(problem.X @ net.W[j])
        for e in path:
            if e.kind == "cross":
                u[e.sample] *= -1
            elif e.kind == "slide":
                u[e.sample] = 0
        left = {e.sample for e in path if e.kind == "exit"}
        s = problem.X @ result.direction[j]
        signs = np.where(np.abs(s) < 1e-12, 0, np.sign(s))
        keep = [k for k in range(problem.n) if k not in left]
        assert np.array_equal(u[keep], signs[keep])
    assert result.n_crossings.sum() == np.sum(result.paths.codes == CROSS)
    assert align(problem, net, paths=False).paths.times.size == 0
    with pytest.raises(IndexError):
        result.paths[net.m]


def test_growth_is_the_value_of_the_extremal_vector():
    for problem in SIX.values():
        result = align(problem, both_laws(problem, 50, rng=6))
        rows = result.destination[result.growing]
        values = result.sign[result.growing] * result.extremal.values[rows]
        assert np.allclose(result.growth[result.growing], values, rtol=1e-12)


# Faces and degenerate input.


def test_positive_neuron_slides_on_the_face_of_an_opposing_sample():
    """Two samples pull up, one on the way pulls down: the limit lies on its hyperplane."""
    X = np.array([[1.0, 0.2], [0.3, 1.0], [0.9, -0.7]])
    problem = Problem(X, np.array([1.0, 1.0, -1.5]), reduction="sum")
    W = np.array([[1.0, 0.2], [0.4, 1.0]])
    result = align(problem, Network(W, np.linalg.norm(W, axis=1)))
    ray = np.array([0.7, 0.9]) / np.sqrt(1.3)  # orthogonal to x_2
    base = X[0] + X[1]
    assert 0 < base @ X[2] / (1.5 * X[2] @ X[2]) < 1  # the slope that keeps it there
    assert np.allclose(result.direction, ray, rtol=0, atol=1e-14)
    assert np.allclose(result.growth, base @ ray, rtol=1e-13)
    assert result.n_slides.tolist() == [1, 1]
    assert result.destination[0] == result.destination[1] >= 0
    assert result.extremal.faces[result.destination[0]] == (2,)


def test_sliding_neurons_can_shrink_for_ever_without_being_exceptional():
    """In the plane a maximum of G on a ray may have G < 0: balanced neurons there shrink."""
    X = np.array([[1.0, 0.4], [-1.0, 0.4]])
    problem = Problem(X, -np.ones(2), reduction="sum", leak=0.1)
    net = initialize(problem, 400, rng=0, signs=1.0)
    result = align(problem, net)
    shrinking = result.anti_aligned
    rows = np.unique(result.row[shrinking])
    assert (result.growth[shrinking] < 0).all()
    assert (rows >= 0).all()
    assert shrinking.sum() > 50
    for t in (result.last_event.max(), 5000.0):
        line = (result.log_offset + result.growth * t)[shrinking]
        assert np.allclose(early(problem, net, t).log_norms[shrinking], line, rtol=1e-12)


def test_nearly_opposite_neurons_are_told_apart():
    """1e-7 rad from anti-alignment, 1 + cos is below rounding, yet the neuron turns round."""
    problem = Problem(np.eye(2), np.array([1.0, 1.0]), leak=0.9, reduction="sum")
    D = np.array([0.9, 0.9]) / np.sqrt(1.62)
    for angle in (1e-3, 1e-7, 1e-11):
        w = -np.cos(angle) * D + np.sin(angle) * np.array([1.0, -1.0]) / np.sqrt(2)
        net = Network(w[None], [np.linalg.norm(w)])
        result = align(problem, net)
        assert result.growing[0]
        assert result.time[0] > np.log(2 / angle) / np.sqrt(2)  # artanh(cos angle), rate <= sqrt 2
    exact = align(problem, Network(-D[None], [np.linalg.norm(D)]))
    assert exact.anti_aligned[0]


def test_duplicate_samples_act_as_one():
    problem = gaussian(5, 5, 3)
    c = problem.pull
    double = Problem(np.vstack([problem.X, problem.X[:2]]), np.append(problem.y, [0.0, 0.0]))
    split = np.concatenate([c * np.array([0.3, 0.6, 1, 1, 1]), c[:2] * np.array([0.7, 0.4])])
    net = both_laws(problem, 100, scale=1.0)
    a, b = align(problem, net, pull=c), align(double, net, pull=split)
    assert np.allclose(a.direction, b.direction, atol=1e-12)
    assert np.allclose(a.growth, b.growth, atol=1e-12)
    assert np.allclose(a.time, b.time, atol=1e-9)


def test_collinear_and_opposite_samples():
    X = np.array([[1.0, 0.0], [2.0, 0.0], [-1.0, 0.0], [0.5, 1.0]])
    problem = Problem(X, np.array([1.0, -2.0, -1.0, 1.0]), reduction="sum")
    result = align(problem, both_laws(problem, 200, scale=1.0))
    assert not result.unresolved.any()
    assert result.destination[result.growing].min() >= 0


def test_rank_deficient_data_leave_the_rest_of_w_alone():
    problem = Problem(np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]), np.array([1.0, 1.0]))
    net = Network(np.array([[1.0, 1.0, 5.0]]), np.array([np.sqrt(27.0)]))
    assert early(problem, net, 2.0).W[0, 2] == pytest.approx(5.0, rel=1e-14)
    result = align(problem, net)
    assert np.allclose(result.direction, [[np.sqrt(0.5), np.sqrt(0.5), 0.0]])


def test_no_pull_means_rest():
    problem = gaussian(6, 4, 2)
    net = both_laws(problem, 10)
    result = align(problem, net, pull=np.zeros(4))
    assert (result.resting | result.dead).all()
    assert np.allclose(result.direction, net.directions)
    assert (result.growth == 0).all()
    assert (result.time == 0).all()
    assert np.isin(result.destination, (RESTING, DEAD)).all()


def test_zero_sample_zero_neuron_and_silent_outer_weight():
    problem = Problem(np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([1.0, 1.0]))
    net = Network(
        np.array([[0.0, 0.0], [1.0, 0.5], [-1.0, 0.5], [0.0, 1.0]]), np.array([0.0, 0.0, 0.0, 0.0])
    )
    result = align(problem, net)
    assert result.growing.tolist() == [False, True, False, False]
    assert result.dead.tolist() == [True, False, True, True]
    assert result.sign.tolist() == [0, 1, 0, 0]
    assert np.array_equal(early(problem, net, 3.0).W[[0, 2, 3]], net.W[[0, 2, 3]])


def test_outer_weight_dying_out_orthogonally_is_resting():
    """p = -a and w not along D: a -> 0 and w -> its part orthogonal to D, in infinite time."""
    problem = Problem(np.array([[1.0, 0.0]]), np.array([1.0]))
    net = Network(np.array([[1.0, 2.0]]), np.array([-1.0]))
    result = align(problem, net)
    assert result.destination[0] == RESTING
    assert np.allclose(result.direction, [[0.0, 1.0]])
    assert result.time[0] == pytest.approx(np.log(0.99 / np.sqrt(1 - 0.99**2) / 2), rel=1e-12)
    W, a = early(problem, net, 3.0).weights()
    assert np.allclose(np.append(W, a), [np.exp(-3.0), 2.0, -np.exp(-3.0)], rtol=1e-13)


@pytest.mark.parametrize("leak", [0.0, 0.3])
def test_one_sample_one_feature(leak):
    problem = Problem(np.array([[2.0]]), np.array([1.0]), leak=leak)
    net = Network(np.array([[1.0], [-1.0], [1.0], [-1.0]]), np.array([1.0, 1.0, -1.0, -1.0]))
    result = align(problem, net)
    if leak == 0.0:
        assert result.destination[[1, 3]].tolist() == [DEAD, DEAD]
    else:
        assert result.anti_aligned.tolist() == [False, True, True, False]
        assert result.growth == pytest.approx([2.0, -0.6, -2.0, 0.6])
    assert result.growing[0]
    assert result.anti_aligned[2]


def test_starts_exactly_on_a_hyperplane():
    """Crossing, sliding and branching from time zero, balanced."""
    X = np.array([[1.0, 0.0], [1.0, 1.0]])
    w = np.array([[0.0, 1.0]])  # on the hyperplane of x_0, x_1 active
    up = Problem(X, np.array([1.0, 1.0]), reduction="sum")
    path = align(up, Network(w, [1.0])).paths[0]
    assert [(e.time, e.sample, e.kind) for e in path] == [(0.0, 0, "exit")]
    hold = Problem(X, np.array([-3.0, 1.0]), reduction="sum")
    result = align(hold, Network(w, [1.0]))
    assert [(e.time, e.kind) for e in result.paths[0]] == [(0.0, "slide")]
    assert np.allclose(result.direction, w)
    ridge = Problem(np.array([[1.0, 0.0], [-1.0, 1.0]]), np.array([3.0, 1.0]), reduction="sum")
    stay = align(ridge, Network(w, [1.0]))
    leave = align(ridge, Network(w, [1.0]), on_branch="leave")
    assert stay.branched.all()
    assert leave.branched.all()
    assert np.allclose(stay.direction, w)
    assert leave.direction[0, 0] > 0.5


def test_given_extremal_vectors_are_used():
    problem = three_points()
    net = initialize(problem, 50, rng=0, signs=1.0)
    found = extremal_vectors(problem)
    result = align(problem, net, extremal=found)
    assert result.extremal is found
    assert result.destination.max() >= 0
    other = extremal_vectors(problem.replace(y=-problem.y))  # a list that lacks D*
    wrong = align(problem, net, extremal=other).destination
    assert set(wrong) <= {UNLISTED, DEAD} | set(range(len(other.vectors)))


def test_every_loss_gives_its_own_pull():
    X = np.array([[1.0, 0.5], [-0.5, 1.0]])
    net = Network(np.array([[1.0, 1.0]]), np.array([np.sqrt(2.0)]))
    base = np.linalg.norm(X.sum(axis=0)) / 2
    for loss, factor in (
        ("half_square", 1.0),
        ("square", 2.0),
        ("logistic", 0.5),
        ("exponential", 1.0),
        (losses.Logistic(factor=2), 1.0),
    ):
        result = align(Problem(X, np.ones(2), loss=loss), net)
        assert result.growth[0] == pytest.approx(factor * base, rel=1e-14)


def test_result_reads_well():
    problem = three_points()
    result = align(problem, initialize(problem, 100, rng=0))
    assert repr(result).startswith("Alignment(100 neurons: ")
    assert repr(result.paths).startswith("Paths(100 neurons, ")


@pytest.mark.parametrize("cosine", [0.0, 1.0, -0.5, np.nan])
def test_cosine_must_be_inside(cosine):
    problem = three_points()
    with pytest.raises(ReluflowError, match="cosine"):
        align(problem, initialize(problem, 3, rng=0), cosine=cosine)


# Through w = 0.


def dominated(seed: int) -> tuple[Problem, Network]:
    """Random data in the plane and neurons with |a| > |w|, many of which slide into w = 0."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(3, 9)), 12
    problem = Problem(rng.standard_normal((n, 2)), rng.standard_normal(n))
    W = rng.standard_normal((m, 2))
    a = rng.choice([-1.0, 1.0], m) * np.linalg.norm(W, axis=1) * (1.0 + 2.0 * rng.random(m))
    return problem, Network(W, a)


@njit
def _frozen_descent(w, a, X, c, lr, steps):
    """Plain descent of one neuron under a constant pull, relu'(0) = 0, brought to size 1."""
    n, d = X.shape
    D = np.empty(d)
    for i in range(steps):
        D[:] = 0.0
        for k in range(n):
            if np.sum(w * X[k]) > 0.0:
                D += c[k] * X[k]
        grown = np.sum(w * D)
        w += lr * a * D
        a += lr * grown
        if i % 1000 == 0:
            size = np.sqrt(np.sum(w * w) + a * a)
            w /= size
            a /= size
    return w, a


@pytest.mark.parametrize("seed", [0, 3, 5, 7, 9, 22])
def test_a_neuron_that_slides_into_zero_goes_on_as_in_descent(seed):
    """|a| > |w|: w reaches 0 along a kink and comes out where plain descent does, or dies with it.

    Seeds 0, 3, 5, 9 have neurons that grow after it, 7 and 22 such that rest at w = 0.
    """
    problem, net = dominated(seed)
    result = align(problem, net)
    seen = 0
    for j in range(net.m):
        if "origin" not in [e.kind for e in result.paths[j]]:
            continue
        seen += 1
        rest = 15.0 / result.growth[j] if result.growing[j] else 30.0
        steps = int((3.0 * result.last_event[j] + rest) / 1e-4)
        w, a = _frozen_descent(net.W[j].copy(), net.a[j], problem.X, problem.pull, 1e-4, steps)
        size = np.linalg.norm(w)
        assert result.growing[j] == (size > 0.5 * abs(a)), j
        if result.growing[j]:
            assert result.direction[j] @ w / size > 0.999, j
        else:
            assert not result.direction[j].any()
    assert seen


def test_zero_is_passed_along_the_line_of_arrival():
    """x_0 = (1, 0) and c_0 < 0 hold w on the axis, x_1 pushes it down it, x_2 pulls it on below 0.

    With w = (0, p), p = P e^{-t} + Q e^t until p = 0, and growth at the rate c_2 from then on.
    """
    X = np.array([[1.0, 0.0], [0.0, 1.0], [0.25, -1.0]])
    problem = Problem(X, np.array([-3.0, -1.0, 2.0]), reduction="sum")
    net = Network(W=[[0.0, 1.0]], a=[2.0])
    result = align(problem, net)
    zero = np.arctanh(0.5)  # p = cosh t - 2 sinh t
    kinds = [(e.sample, e.kind) for e in result.paths[0]]
    assert (-1, "origin") in kinds
    (at,) = [e.time for e in result.paths[0] if e.kind == "origin"]
    assert at == pytest.approx(zero, rel=1e-12)
    assert result.growing[0]
    np.testing.assert_allclose(result.direction, [[0.0, -1.0]], atol=1e-14)
    assert result.growth[0] == pytest.approx(2.0)
    (later,) = early(problem, net, [zero + 1.0])
    size = np.sqrt(3.0)  # a at w = 0: a^2 - |w|^2 = 3
    np.testing.assert_allclose(
        np.append(later.W[0], later.a), [0.0, -size * np.sinh(2.0), size * np.cosh(2.0)], atol=1e-12
    )
