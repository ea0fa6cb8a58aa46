"""Algorithm 1 of [TLB26]_: a golden case, a literal loop, ties, structure, and gradient flow."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import CubicSpline

from reluflow import Network, Problem, ReluflowError, align, datasets, flow, initialize
from reluflow.prediction import OrthogonalProcess, algorithm1
from reluflow.prediction.orthogonal.rounds import aligned_offsets, realigned_offset

L40 = 40 * math.log(10)


def golden_start(problem):
    return Network(problem.known["W0"], problem.known["signs"])


def literal(y, signs, active, rate):
    """The loop as printed, one number at a time: times, neurons, sets and exponents."""
    n, m = active.shape
    unfitted, dormant = set(range(n)), set(range(m))
    beta, tau, told = [-1.0] * m, 0.0, []
    while True:
        size = {}
        for j in sorted(dormant):
            A = [k for k in sorted(unfitted) if active[k, j] and signs[j] * y[k] > 0]
            if A:
                size[j] = (math.sqrt(math.fsum(y[k] ** 2 for k in A)), A)
        if not size:
            return told, unfitted
        delta = {j: -beta[j] / (rate * S) for j, (S, _) in size.items()}
        first = min(delta, key=delta.get)
        tau += delta[first]
        for j, (S, _) in size.items():
            beta[j] += delta[first] * rate * S
        beta[first] = 0.0
        told.append((tau, first, size[first][1], list(beta)))
        unfitted -= set(size[first][1])
        dormant.remove(first)


def draw(seed, n, m, law="normal", **options):
    rng = np.random.default_rng(seed)
    problem = datasets.orthonormal(n, law=law, rng=rng, **options)
    signs = 1 if law == "half_normal" else "random"
    return problem, initialize(problem, m, 1.0, "sphere", rng, normalize="none", signs=signs)


def test_golden_case():
    problem = datasets.golden()
    process = algorithm1(problem, golden_start(problem))
    assert isinstance(process, OrthogonalProcess)
    assert [who.tolist() for who in process.neurons] == [[0], [1], [2]]
    assert [A.tolist() for A in process.sets] == [[0, 1], [2], [3]]
    assert np.allclose(process.times, [0.8, 1.3577795, 2.3216923], rtol=0, atol=1e-7)
    assert np.allclose(process.exponents[0], -1)
    assert np.allclose(process.exponents[1], [0, -0.2788897, -0.5527864], rtol=0, atol=1e-7)
    assert np.allclose(process.exponents[2], [0, 0, -0.2409782], rtol=0, atol=1e-7)
    assert np.allclose(process.losses, [30 / 8, 5 / 8, 1 / 8, 0], rtol=0, atol=1e-15)
    assert process.norm2 == pytest.approx(16, abs=1e-12)
    assert process.min_norm2 == pytest.approx(2 * math.sqrt(30), abs=1e-12)
    assert process.margin == pytest.approx(0.2409782, abs=1e-7)
    assert process.ending == "interpolates"
    assert process.gain == 0.0
    first = 0.8 * (math.log(5) / 2 - math.log((1 + 0.7) / 2))
    assert first == pytest.approx(problem.known["first_half_fit_offset"], abs=1e-14)
    # the loss of a logistic fit is half way log(1 + sqrt 2)/(2 kappa v) before f = y/2
    early = math.log1p(math.sqrt(2.0)) / 2 * 4 / np.array([5.0, 2.0, 1.0])
    fits = np.array([0.77379, 0.9833, 1.1175])
    assert process.offsets[0] == pytest.approx(first - early[0], abs=1e-14)
    assert np.allclose(process.offsets, fits - early, rtol=0, atol=5e-5)
    half_fits = process.half_fit_times(log_scale=-1000.0)
    assert np.allclose(half_fits - 1000.0 * process.times, fits, rtol=0, atol=5e-5)
    assert process.first_half_fit_time(-1000.0) == pytest.approx(800 + first)
    assert np.allclose(problem.outputs(process.minimal), problem.y)
    assert np.sum(process.minimal.W**2) * 2 == pytest.approx(process.min_norm2)


@pytest.mark.parametrize("loss", ["half_square", "square"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_loss_factor_and_reduction_only_change_the_clock(loss, reduction):
    problem = datasets.golden(loss=loss, reduction=reduction)
    process = algorithm1(problem, golden_start(problem))
    assert np.allclose(process.times, problem.known["jump_times"], rtol=1e-14)
    assert process.losses[0] == pytest.approx(problem.known["start_loss"], rel=1e-14)
    assert process.norm2 == pytest.approx(16, abs=1e-12)
    for i, net in enumerate(process.networks):
        assert problem.value(problem.outputs(net)) == pytest.approx(process.losses[i], abs=1e-14)


@pytest.mark.parametrize("seed", range(30))
def test_literal_loop(seed):
    n, m = [(16, 6), (9, 12), (40, 25)][seed % 3]
    law = "half_normal" if seed % 2 else "normal"
    problem, net = draw(seed, n, m, law, rotate=seed % 4 > 1)
    active = problem.X @ net.W.T > 0
    told, unfitted = literal(problem.y, np.sign(net.a), active, 1 / n)
    process = algorithm1(problem, net)
    assert process.ending == ("spurious" if unfitted else "interpolates")
    assert set(process.uncovered) == unfitted
    assert process.n_jumps == len(told)
    for i, (tau, j, A, beta) in enumerate(told):
        assert j in process.neurons[i]
        assert process.samples[i].tolist() == A
        assert process.times[i] == pytest.approx(tau, rel=1e-12)
        alone = [k for k in range(m) if not process.active[i + 1, k]]
        assert np.allclose(process.exponents[i + 1][alone], np.array(beta)[alone], atol=1e-12)
        assert (process.exponents[i + 1][process.active[i + 1]] == 0).all()
    v = [math.sqrt(sum(problem.y[k] ** 2 for k in A)) for _, _, A, _ in told]
    assert process.norm2 == pytest.approx(2 * sum(v), rel=1e-13)
    W, a = process.final.weights()
    assert np.sum(W**2) + np.sum(a**2) == pytest.approx(process.norm2, rel=1e-13)
    f = np.where(np.isin(np.arange(n), list(unfitted)), 0.0, problem.y)
    assert np.allclose(problem.outputs(process.final), f, atol=1e-12)
    assert (process.residuals < 1e-14).all()
    positive = sum(problem.y[A[0]] > 0 for A in process.sets)
    most = max(positive, len(told) - positive)
    assert unfitted or 1 - 1e-12 <= process.ratio <= math.sqrt(most) + 1e-12


@pytest.mark.parametrize("seed", range(6))
def test_rates_directions_and_exponents_fit_together(seed):
    problem, net = draw(seed, 12, 9, rotate=True, d=14)
    process = algorithm1(problem, net)
    for i in range(process.n_jumps + 1):
        V, on = process.directions[i], process.active[i]
        c = problem.pull_at(problem.outputs(process.networks[i]))
        G = process.signs * (np.maximum(V @ problem.X.T, 0) @ c)
        assert np.allclose(np.where(on, 0.0, G), process.rates[i], atol=1e-14)
        norms = np.linalg.norm(V, axis=1)
        assert np.allclose(norms[process.groups >= 0], 1)
        assert (norms[process.groups < 0] == 0).all()
        W = process.networks[i].W
        assert np.allclose(np.sum(W[on] * V[on], axis=1), np.linalg.norm(W[on], axis=1))
        if i < process.n_jumps:
            step = process.times[i] - (process.times[i - 1] if i else 0.0)
            after = process.exponents[i] + step * process.rates[i]
            assert np.allclose(after, process.exponents[i + 1], atol=1e-12)
    assert (np.diff(process.rates, axis=0) <= 1e-15).all()


# --- degenerate data ------------------------------------------------------------------------


def test_empty_rows_columns_and_zero_labels():
    mask = np.array([[1, 0, 0], [1, 0, 1], [0, 0, 0], [1, 0, 1]])
    process = algorithm1([3.0, 0.0, 2.0, -1.0], mask=mask, signs=[1, 1, -1])
    assert process.uncovered.tolist() == [2]
    assert process.ending == "spurious"
    assert process.gain == pytest.approx(2 / 4)
    assert process.losses[-1] == pytest.approx(4 / 8)
    assert [A.tolist() for A in process.sets] == [[0], [3]]
    assert process.groups.tolist() == [0, -1, 1]
    assert (process.exponents[:, 1] == -1).all()
    assert (process.directions[0][1] == 0).all()
    assert "1 of the 4 samples" in process.status
    assert np.allclose(process.times, [4 / 3, 4])


def test_nothing_to_learn():
    silent = algorithm1(np.zeros(3), mask=np.ones((3, 2)), signs=1)
    assert silent.n_jumps == 0
    assert silent.ending == "interpolates"
    assert silent.losses.tolist() == [0.0]
    assert math.isnan(silent.ratio)
    assert not silent.minimal.W.any()
    idle = algorithm1(np.ones(3), mask=np.ones((3, 2)), signs=-1)
    assert idle.n_jumps == 0
    assert idle.ending == "spurious"
    assert idle.uncovered.tolist() == [0, 1, 2]


def test_disjoint_ties_all_jump():
    mask = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 1]])
    process = algorithm1([5.0, 3.0, 4.0], mask=mask, signs=1)
    assert np.allclose(process.times, [0.6, 0.6])
    assert [who.tolist() for who in process.neurons] == [[0], [1]]
    assert np.allclose(process.gaps, [0.0, 0.15 / 0.6])  # the third would have come at 0.75
    assert process.ending == "interpolates"


def test_overlapping_tie_returns_every_branch():
    mask = np.array([[1, 1, 0], [1, 0, 0], [0, 1, 1]])
    process = algorithm1([3.0, 1.0, 1.0], mask=mask, signs=1)
    assert process.ending == "tie"
    assert process.n_jumps == 0
    assert "neurons 0, 1" in process.status
    assert process.offsets is None
    left, right = process.branches
    assert left.neurons[0].tolist() == [0]
    assert right.neurons[0].tolist() == [1]
    assert left.times[0] == right.times[0] == pytest.approx(3 / math.sqrt(10))
    # the other reached size 1 too and takes what is left at once
    assert left.neurons[1].tolist() == [1]
    assert left.times[1] == left.times[0]
    assert left.sets[1].tolist() == [2]
    assert left.ending == right.ending == "interpolates"
    few = algorithm1([3.0, 1.0, 1.0], mask=mask, signs=1, most_branches=1)
    assert len(few.branches) == 1
    assert "most_branches" in few.status


def test_ties_of_equal_labels_are_bounded():
    rng = np.random.default_rng(0)
    process = algorithm1(np.ones(24), mask=rng.random((24, 40)) < 0.5, signs=1, most_branches=10)

    def count(p):
        return sum(1 + count(b) for b in p.branches)

    assert process.ending == "tie"
    assert 1 <= count(process) <= 10


def test_near_tie_is_not_a_tie():
    mask = np.array([[1, 0], [0, 1], [1, 1]])
    y = np.array([1.0 + 1e-6, 1.0, 1.0])
    assert algorithm1(y, mask=mask, signs=1).ending == "interpolates"
    assert algorithm1(y, mask=mask, signs=1, tol=1e-5).ending == "tie"


def test_equal_columns_jump_as_one_group():
    mask = np.array([[1, 1, 0], [1, 1, 1]])
    process = algorithm1([4.0, 3.0], mask=mask, signs=1)
    assert process.neurons[0].tolist() == [0, 1]
    assert process.norm2 == pytest.approx(10)
    assert "taken equal" in process.undetermined[0]
    assert np.allclose(np.linalg.norm(process.final.W, axis=1) ** 2, [2.5, 2.5, 0])
    assert np.allclose(process.final.a**2, [2.5, 2.5, 0])


# --- structure ------------------------------------------------------------------------------


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 9))
def test_permutations_and_scaling(seed, n, m):
    problem, net = draw(seed, n, m)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(n), rng.permutation(m)
    process = algorithm1(problem, net)
    moved = algorithm1(Problem(problem.X[rows], problem.y[rows]), net.subset(columns))
    assert np.allclose(moved.times, process.times, rtol=1e-12)
    for i in range(process.n_jumps):
        assert set(columns[moved.neurons[i]]) == set(process.neurons[i])
        assert set(rows[moved.samples[i]]) == set(process.samples[i])
    assert np.allclose(moved.final.W, process.final.W[columns], atol=1e-12)
    factor = 0.01 + 9 * rng.random()
    scaled = algorithm1(problem.replace(y=factor * problem.y), net)
    assert np.allclose(scaled.times * factor, process.times, rtol=1e-12)
    assert scaled.norm2 == pytest.approx(factor * process.norm2)
    mirrored = algorithm1(problem.replace(y=-problem.y), Network(net.W, -net.a))
    assert np.allclose(mirrored.times, process.times, rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_rotations_and_the_size_of_the_start_do_not_matter(seed):
    problem, net = draw(seed, 10, 7)
    Q = np.linalg.qr(np.random.default_rng(seed).standard_normal((10, 10)))[0]
    process = algorithm1(problem, net)
    turned = algorithm1(problem.replace(X=problem.X @ Q), Network(net.W @ Q, net.a))
    tiny = algorithm1(problem, net.scaled(-1000.0))
    for other in (turned, tiny):
        assert np.allclose(other.times, process.times, rtol=1e-12)
        assert np.allclose(other.offsets, process.offsets, rtol=1e-9)
        assert other.norm2 == pytest.approx(process.norm2, rel=1e-12)
    assert np.allclose(turned.final.W, process.final.W @ Q, atol=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_the_two_signs_run_apart(seed):
    """[TLB26]_ D.1: neurons and samples of one sign do not see the other."""
    rng = np.random.default_rng(seed)
    n, m = 14, 12
    y, s, mask = rng.standard_normal(n), rng.choice([-1, 1], m), rng.random((n, m)) < 0.5
    both = algorithm1(y, mask=mask, signs=s)
    apart = []
    for sign in (1, -1):
        if (s == sign).any():
            # the other labels are zero, so that n and with it the clock stays
            part = algorithm1(np.where(sign * y > 0, y, 0), mask=mask[:, s == sign], signs=sign)
            names = np.flatnonzero(s == sign)
            apart += [
                (part.times[i], names[part.neurons[i]].tolist(), part.samples[i].tolist())
                for i in range(part.n_jumps)
            ]
    apart.sort(key=lambda jump: jump[0])
    assert np.allclose([jump[0] for jump in apart], both.times, rtol=1e-13)
    assert [jump[1] for jump in apart] == [who.tolist() for who in both.neurons]
    assert [jump[2] for jump in apart] == [A.tolist() for A in both.samples]


def test_one_neuron_of_each_sign_everywhere_gives_minimal_norm():
    """[TLB26]_ B.22."""
    rng = np.random.default_rng(3)
    y, s = rng.standard_normal(20), np.array([1, -1, 1, -1, 1, -1])
    mask = rng.random((20, 6)) < 0.5
    mask[:, :2] = True
    process = algorithm1(y, mask=mask, signs=s)
    assert process.n_jumps == 2
    assert process.ratio == pytest.approx(1, abs=1e-14)


# --- refusals -------------------------------------------------------------------------------


def test_out_of_scope_is_refused_with_a_sentence():
    net = Network(np.eye(2), np.ones(2))
    y = np.ones(2)
    wrong = {
        "leak=0": Problem(np.eye(2), y, leak=0.1),
        "half-square or square loss": Problem(np.eye(2), y, loss="logistic"),
        "X X\\^T = I, got an error of 0.5": Problem(np.array([[1, 0], [0.5, 1]]), y),
        "2 samples in 1 dim": Problem(np.ones((2, 1)), y),
    }
    for words, problem in wrong.items():
        with pytest.raises(ReluflowError, match=words):
            algorithm1(problem, Network(np.ones((1, problem.d)), [2.0]))
    good = Problem(np.eye(2), y)
    with pytest.raises(ReluflowError, match="neuron 1"):
        algorithm1(good, Network(np.eye(2), [1.0, 0.5]))
    with pytest.raises(ReluflowError, match="either a network or a mask"):
        algorithm1(good)
    with pytest.raises(ReluflowError, match="needs signs"):
        algorithm1(good, mask=np.ones((2, 3)))
    with pytest.raises(ReluflowError, match="expected \\(2, m\\)"):
        algorithm1(good, mask=np.ones((3, 2)), signs=1)
    with pytest.raises(ReluflowError, match="one for each of 3"):
        algorithm1(good, mask=np.ones((2, 3)), signs=[1, 0, 1])
    with pytest.raises(ReluflowError, match="drop signs"):
        algorithm1(good, net, signs=1)
    with pytest.raises(ReluflowError, match="initial weights"):
        algorithm1(good, mask=np.ones((2, 1)), signs=1).first_half_fit_time(-10.0)


def test_large_rotated_inputs_are_checked_by_random_vectors(monkeypatch):
    from reluflow.prediction.orthogonal import start

    monkeypatch.setattr(start, "_EXACT", 0.0)
    problem, net = draw(0, 10, 4, rotate=True)
    assert algorithm1(problem, net).n_jumps
    X = problem.X.copy()
    X[3] += 1e-6 * X[5]
    with pytest.raises(ReluflowError, match="X X\\^T = I"):
        algorithm1(problem.replace(X=X), net)


# --- constants at a finite scale --------------------------------------------------------------


@pytest.mark.parametrize("kind", ["balanced", "dominated"])
@pytest.mark.parametrize("law", ["half_normal", "normal"])
def test_alignment_constant_agrees_with_the_landscape(kind, law):
    for seed in range(6):
        problem, _ = draw(seed, 9, 1, law)
        net = initialize(problem, 12, 1.0, kind, seed)
        there = align(problem, net, paths=False)
        for s in (1, -1):
            P, pulls = net.W @ problem.X.T, s * problem.pull
            who = ((P > 0) & (pulls > 0)).any(axis=1) & (np.sign(net.a) == s)
            size = np.abs(net.a[who])
            got = aligned_offsets(P[who] / size[:, None], pulls) + np.log(size)
            assert np.allclose(got, there.log_offset[who], rtol=0, atol=1e-10)


def test_alignment_constant_of_one_sign():
    y, w = np.array([2.0, 1.0, 3.0]), np.array([0.6, 0.0, 0.8])
    q = w @ (y * [1, 0, 1]) / math.sqrt(13)
    assert aligned_offsets(w[None], y)[0] == pytest.approx(math.log((1 + q) / 2), abs=1e-15)


@pytest.mark.parametrize(("F", "U", "v"), [(3, 2, 5), (0.4, 1.3, 0.7), (5, 0.1, 5), (2, 9, 3)])
def test_realignment_constant_agrees_with_integration(F, U, v):
    from scipy.integrate import solve_ivp

    f, u = F / v, U / v
    S = math.hypot(f, u)

    def velocity(s, z):  # angle from the unfitted direction, log-norm
        rho = 0.5 * (1 - math.tanh(s))
        return [
            f * rho * math.cos(z[0]) - u * math.sin(z[0]),
            f * rho * math.sin(z[0]) + u * math.cos(z[0]),
        ]

    T = max(25.0, 25.0 / u)
    start = [math.atan2(f, u), 0.0]
    end = solve_ivp(velocity, (-25.0, T), start, rtol=1e-11, atol=1e-12, method="DOP853").y[:, -1]
    assert realigned_offset(F, U, v) == pytest.approx(end[1] - S * 25 - u * T, abs=1e-8)


def half_fit_times(problem, run, process):
    """When the largest label of each jump is half fitted, by linear interpolation."""
    times = []
    for A in process.samples:
        k = A[np.argmax(np.abs(problem.y[A]))]
        part = run["outputs"][:, k] / problem.y[k]
        i = int(np.argmax(part > 0.5))
        times.append(np.interp(0.5, part[i - 1 : i + 1], run.times[i - 1 : i + 1]))
    return np.array(times)


def half_fall_times(run, process):
    """When half of the fall of the loss across each jump is done, by a cubic spline."""
    times = []
    for level in 0.5 * (process.losses[:-1] + process.losses[1:]):
        i = int(np.argmax(run.loss <= level))
        near = slice(max(i - 10, 0), i + 10)
        way = CubicSpline(run.times[near], run.loss[near] - level).roots(extrapolate=False)
        times.append(way[np.argmin(np.abs(way - run.times[i]))])
    return np.array(times)


# well-separated jumps (margin at least 0.05), both laws of labels, balanced and dominated starts
@pytest.mark.parametrize("seed", range(10))
def test_every_jump_time_against_flow(seed):
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(8) if seed % 2 else np.abs(rng.standard_normal(8))
    problem = Problem(np.eye(8), y, reduction="sum")
    kind = "balanced" if seed % 3 else "dominated"
    L = 100 * math.log(10)
    net = initialize(problem, 6, log_scale=-L, kind=kind, rng=rng)
    process = algorithm1(problem, net)
    size = float(net.log_norms.max())
    falls, fits = process.jump_times(log_scale=size), process.half_fit_times(log_scale=size)
    assert (falls < fits).all()
    grid = np.linspace(-0.2, 0.2, 161)
    save = [g + grid for g in (*falls, *fits)] + [[fits[-1] + 30]]
    save = np.unique(np.concatenate(save))
    run = flow(problem, net, t_end=save[-1], save=save, observe=["outputs"])
    error = np.abs(half_fit_times(problem, run, process) - fits)
    error = np.maximum(error, np.abs(half_fall_times(run, process) - falls))
    if process.margin >= 0.05 and process.gaps.min() >= 0.03:
        assert error.max() < 1e-6
    else:  # errors of a power of the scale: margin * L is below 12
        assert error.max() < 0.05


@pytest.mark.parametrize("law", ["half_normal", "normal"])
def test_shares_of_a_group_against_flow(law):
    rng = np.random.default_rng(2)
    y = np.array([2.0, 1.2, 0.9, 1.6, 0.7])
    signs = np.ones(6)
    if law == "normal":
        y[[1, 3]] *= -1
        signs[4:] = -1
    problem = Problem(np.eye(5), y, reduction="sum")
    W = np.abs(rng.standard_normal((6, 5)))
    W[2:4, 0] *= -1
    net = Network(W, signs * np.linalg.norm(W, axis=1), log_scale=-L40)
    process = algorithm1(problem, net)
    assert process.neurons[0].tolist() == ([0, 1, 4, 5] if law == "half_normal" else [0, 1])
    run = flow(problem, net, t_end=process.jump_time(process.n_jumps - 1, 1e-40) + 80)
    got = np.exp(run.final.log_norms)
    want = np.linalg.norm(process.final.W, axis=1)
    on = process.active[-1]
    assert np.allclose(got[on], want[on], rtol=1e-6)
    if law == "half_normal":
        who = process.neurons[0]
        q = net.directions[who] @ (y / np.linalg.norm(y))
        size = net.log_norms[who] - net.log_norms[who].max()
        share = ((1 + q) * np.exp(size)) ** 2
        assert np.allclose(want[who] ** 2 / process.sizes[0], share / share.sum(), rtol=1e-12)


def test_sixty_four_samples_from_e_to_the_minus_thousand():
    """The setting of [TLB26]_ Figure 1: every jump to 1e-6 of time units in 1e4."""
    problem = datasets.orthonormal(64, rng=4, loss="square")
    net = initialize(problem, 6, kind="sphere", rng=4, normalize="none", signs=1, log_scale=-1000.0)
    process = algorithm1(problem, net)
    assert process.n_jumps >= 4
    falls = process.jump_times(log_scale=-1000.0)
    fits = process.half_fit_times(log_scale=-1000.0)
    save = [g + np.linspace(-0.2, 0.2, 81) for g in (*falls, *fits)]
    save = np.unique(np.concatenate(save))
    run = flow(problem, net, t_end=save[-1], save=save, observe=["outputs"])
    assert np.abs(half_fit_times(problem, run, process) - fits).max() < 1e-6
    assert np.abs(half_fall_times(run, process) - falls).max() < 1e-6


@pytest.mark.parametrize("seed", range(12))
def test_norm_error_is_the_scale_to_the_margin(seed):
    rng = np.random.default_rng(100 + seed)
    y = np.abs(rng.standard_normal(10)) + 0.1
    y = y * rng.choice([-1, 1], 10) if seed % 2 else y
    problem = Problem(np.eye(10), y, reduction="sum")
    signs = "random" if seed % 2 else 1
    net = initialize(
        problem, 6, kind="sphere", rng=rng, normalize="none", log_scale=-L40, signs=signs
    )
    process = algorithm1(problem, net)
    rest = 25 / process.sizes.min()  # residuals fall as exp(-2 v t)
    t_end = process.jump_times(log_scale=-L40)[-1] + rest
    run = flow(problem, net, t_end=t_end, observe=["norm2"])
    error = abs(run["norm2"][-1] / process.norm2 - 1)
    assert error < max(10 * math.exp(-process.margin * L40), 1e-8)


# --- the figures ----------------------------------------------------------------------------


def mean_ratio(n, m, draws, seed):
    """Mean of norm2 over its minimum and its standard error; Gaussian labels, fair signs."""
    rng = np.random.default_rng(seed)
    ratios = []
    for _ in range(draws):
        y, s = rng.standard_normal(n), rng.choice([-1, 1], m)
        process = algorithm1(y, mask=rng.random((n, m), dtype=np.float32) < 0.5, signs=s)
        roots = sum(math.sqrt(np.sum(sign * y > 0)) for sign in (1, -1))
        assert process.norm2 <= 8.9 * np.abs(y).max() * roots
        ratios.append(process.ratio)
    return np.mean(ratios), np.std(ratios) / math.sqrt(draws)


@pytest.mark.parametrize(
    ("n", "draws", "seen"),
    [(16, 200, 1.24), (64, 150, 1.63), (256, 100, 1.92), (1024, 40, 2.13), (8192, 8, 2.29)],
)
def test_norm_against_the_number_of_samples(n, draws, seen):
    """[TLB26]_ Theorem 3 and Figure 5, m = ceil(8 log2 n); seen values have two digits."""
    mean, error = mean_ratio(n, math.ceil(8 * math.log2(n)), draws, seed=1)
    assert error < 0.011
    assert abs(mean - seen) < 3 * error + 0.01
    assert mean < 2.5


WIDTHS = [(16, 400, 1.51), (64, 200, 1.39), (256, 150, 1.29), (1024, 150, 1.19), (4096, 40, 1.13)]


@pytest.mark.parametrize(("m", "draws", "seen"), WIDTHS)
def test_norm_against_width(m, draws, seen):
    """[TLB26]_ Figure 6, n = 32; seen values have a standard error of 0.01."""
    mean, error = mean_ratio(32, m, draws, seed=2)
    assert error < 0.011
    assert abs(mean - seen) < 3 * math.hypot(error, 0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("m", "draws", "seen"), [(16384, 80, 1.08), (262144, 40, 1.02)])
def test_norm_at_great_width(m, draws, seen):
    mean, error = mean_ratio(32, m, draws, seed=2)
    assert error < 0.005
    assert abs(mean - seen) < 3 * math.hypot(error, 0.01)


def test_ten_thousand_samples():
    rng = np.random.default_rng(0)
    y, mask = rng.standard_normal(10_000), rng.random((10_000, 300), dtype=np.float32) < 0.5
    process = algorithm1(y, mask=mask, signs=rng.choice([-1, 1], 300))
    assert process.ending == "interpolates"
    assert sum(len(A) for A in process.sets) == 10_000
    final = process.final
    f = np.zeros(10_000)
    for w, a in zip(final.W, final.a, strict=True):
        f += a * np.maximum(w, 0)
    assert np.abs(f - y).max() < 1e-13
