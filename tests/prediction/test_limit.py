"""The limit process on any data: known answers, structure, endings, errors."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reluflow import Network, Problem, ReluflowError, datasets, initialize, stationary
from reluflow.landscape import extremal_vectors
from reluflow.prediction import algorithm1, limit


def random_problem(seed, d=3, n=6, m=8, loss="half_square", leak=0.0):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n, d)), rng.standard_normal(n)
    if loss in ("logistic", "exponential"):
        y = np.sign(y)
    problem = Problem(X, y, loss=loss, leak=leak)
    return problem, initialize(problem, m, scale=1.0, rng=rng)


def orthonormal(seed):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 17)), int(rng.integers(2, 9))
    d = n + int(rng.integers(0, 3))
    X = np.linalg.qr(rng.standard_normal((d, d)))[0][:n]
    y = rng.standard_normal(n)
    problem = Problem(X, np.abs(y) if seed % 2 else y)
    return problem, initialize(problem, m, scale=1.0, rng=rng)


def test_golden_case():
    problem = datasets.golden()
    start = Network(problem.known["W0"], problem.known["signs"])
    process, closed = limit(problem, start), algorithm1(problem, start)
    np.testing.assert_allclose(process.times, problem.known["jump_times"], rtol=1e-7)
    np.testing.assert_allclose(process.exponents[1, 1:], [-0.2788897, -0.5527864], atol=1e-7)
    assert [list(group) for group in process.neurons] == [[0], [1], [2]]
    assert [list(samples) for samples in process.samples] == [[0, 1], [2], [3]]
    W, a = process.final.weights()
    assert np.sum(W**2) + np.sum(a**2) == pytest.approx(16.0, rel=1e-9)
    np.testing.assert_allclose(process.offsets, closed.offsets, atol=1e-4)
    assert process.ending == "interpolates"


def agree_with_algorithm1(seed):
    problem, net = orthonormal(seed)
    closed, general = algorithm1(problem, net), limit(problem, net)
    assert closed.n_jumps == general.n_jumps
    assert closed.ending == general.ending
    for one, other in zip(closed.neurons, general.neurons, strict=True):
        np.testing.assert_array_equal(np.sort(one), np.sort(other))
    for one, other in zip(closed.samples, general.samples, strict=True):
        np.testing.assert_array_equal(np.sort(one), np.sort(other))
    np.testing.assert_allclose(general.times, closed.times, rtol=1e-8)
    np.testing.assert_allclose(general.losses, closed.losses, atol=1e-12)
    for one, other in zip(closed.networks, general.networks, strict=True):
        np.testing.assert_allclose(np.abs(other.a), np.abs(one.a), atol=1e-8)
    np.testing.assert_allclose(general.offsets, closed.offsets, atol=1e-2)


@pytest.mark.parametrize("seed", range(30))
def test_algorithm1_is_the_orthonormal_case(seed):
    agree_with_algorithm1(seed)


@pytest.mark.slow
def test_algorithm1_is_the_orthonormal_case_200_times():
    for seed in range(30, 200):
        agree_with_algorithm1(seed)


def least_squares(problem):
    w = np.linalg.lstsq(problem.X, problem.y, rcond=None)[0]
    return float(problem.value(problem.X @ w))


@pytest.mark.parametrize("view", ["network", "infinite width"])
def test_three_points(view):
    problem = datasets.three_points()
    net = initialize(problem, 40, scale=1.0, rng=1) if view == "network" else None
    process = limit(problem, net)
    np.testing.assert_allclose(process.times, [1 / 0.714969], rtol=1e-6)
    assert process.losses[1] == pytest.approx(least_squares(problem), rel=1e-12)
    assert process.ending == "spurious"
    assert 0 < process.gain <= process.gain_bound
    assert f"{process.gain:.6g}" in process.status
    assert view in process.view


@pytest.mark.parametrize("seed", range(5))
def test_assumption_3_boxes_end_at_the_least_squares_line(seed):
    problem = datasets.assumption3_box(rng=seed)
    process = limit(problem, initialize(problem, 60, scale=1.0, rng=seed))
    assert process.n_jumps == 1
    assert process.losses[1] == pytest.approx(least_squares(problem), rel=1e-10)
    assert process.ending == "spurious"


def normalised_margin(problem, net):
    W, a = net.weights()
    return (problem.y * problem.outputs(net)).min() / (np.sum(W**2) + np.sum(a**2))


@pytest.mark.parametrize("name", ["ideal-xor", "xor"])
def test_xor_jumps_four_ways_and_goes_to_the_largest_margin(name):
    problem = datasets.load(name)
    process = limit(problem, initialize(problem, 60, scale=1.0, rng=0))
    peaks = extremal_vectors(problem)
    assert process.times[0] == pytest.approx(1 / peaks.rates.max(), rel=1e-9)
    assert process.ending == "infinity"
    end = process.limit_direction
    assert end.m == 4
    margin = problem.known.get("max_margin")
    if margin is not None:
        assert normalised_margin(problem, end) == pytest.approx(margin, rel=1e-7)
    np.testing.assert_allclose(np.sum(end.W**2) + np.sum(end.a**2), 1.0, rtol=1e-9)


def test_symmetric_separable_data_goes_to_its_linear_limit():
    problem = datasets.symmetric_separable()
    process = limit(problem, initialize(problem, 30, scale=1.0, rng=0))
    end = process.limit_direction
    assert process.n_jumps == 1
    assert normalised_margin(problem, end) == pytest.approx(problem.known["max_margin"], rel=1e-7)
    cosines = end.directions @ problem.known["w_star"]
    np.testing.assert_allclose(np.abs(cosines), 1.0, atol=1e-6)


def test_orthogonally_separable_data_fits_one_class_after_the_other():
    problem = datasets.separable()
    process = limit(problem, initialize(problem, 40, scale=1.0, rng=0))
    known = problem.known
    rates = sorted([known["growth_rate_plus"], known["growth_rate_minus"]])[::-1]
    np.testing.assert_allclose(process.times, 1 / np.array(rates), rtol=1e-9)
    first = 1.0 if known["growth_rate_plus"] == rates[0] else -1.0
    np.testing.assert_array_equal(process.samples[0], np.flatnonzero(problem.y == first))
    assert process.losses[1] == pytest.approx(np.sum(problem.y != first))
    assert process.losses[2] == 0.0
    assert process.ending == "infinity"


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000), d=st.integers(2, 4), leak=st.sampled_from([0.0, 0.2]))
def test_every_saddle_is_stationary_and_losses_fall(seed, d, leak):
    problem, net = random_problem(seed, d=d, leak=leak)
    process = limit(problem, net)
    assert process.ending != "unresolved"
    assert np.nanmax(process.residuals) < 1e-12
    assert (np.diff(process.losses) < 0).all()
    assert (np.diff(process.times) >= 0).all()
    assert (process.exponents <= 1e-9).all()
    for i, group in enumerate(process.neurons):  # the exponent that jumps has arrived at 0
        before = process.exponents[i, group] + process.rates[i, group] * (
            process.times[i] - (process.times[i - 1] if i else 0.0)
        )
        np.testing.assert_allclose(before, 0.0, atol=1e-9)


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_symmetries(seed):
    """Rotated data, permuted neurons, summed instead of averaged loss: the same process."""
    problem, net = random_problem(seed)
    process = limit(problem, net)
    if process.gaps.min(initial=1.0) < 1e-6:
        return
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((problem.d, problem.d)))[0]
    order, rows = rng.permutation(net.m), rng.permutation(problem.n)
    turned = Problem(problem.X[rows] @ Q, problem.y[rows], reduction="sum")
    other = limit(turned, Network(net.W[order] @ Q, net.a[order]))
    np.testing.assert_allclose(other.times * problem.n, process.times, rtol=1e-7)
    np.testing.assert_allclose(other.losses, problem.n * process.losses, atol=1e-9)
    for one, two in zip(process.neurons, other.neurons, strict=True):
        np.testing.assert_array_equal(one, np.sort(order[two]))


def test_constant_factors_shift_offsets_only():
    problem, net = random_problem(3)
    process = limit(problem, net)
    scaled = limit(problem, net.scaled(-50.0))
    np.testing.assert_allclose(scaled.times, process.times, rtol=1e-12)
    # two fast phases to rounding; the slow ones after them as well as their steps are controlled
    np.testing.assert_allclose(scaled.offsets[:2], process.offsets[:2], atol=1e-8)
    np.testing.assert_allclose(scaled.offsets, process.offsets, rtol=1e-4)
    smaller = Network(np.vstack([net.W, net.W[:1]]), np.append(net.a, net.a[0]))
    np.testing.assert_allclose(limit(problem, smaller).times, process.times, rtol=1e-9)


def test_labels_and_inputs_scale_the_clock():
    problem, net = random_problem(5)
    process = limit(problem, net)
    louder = limit(Problem(3 * problem.X, 2 * problem.y), net)
    np.testing.assert_allclose(louder.times, process.times / 6, rtol=1e-9)
    np.testing.assert_allclose(louder.losses, 4 * process.losses, atol=1e-12)


def test_a_group_shares_the_norm_by_its_constants():
    """Two parallel neurons, one twice as large: it keeps four times the squared norm."""
    problem = Problem(np.eye(2), np.array([1.0, 2.0]))
    W = np.array([[1.0, 1.0], [2.0, 2.0]])
    process = limit(problem, Network(W, np.linalg.norm(W, axis=1)))
    sizes = process.final.a**2
    assert sizes[1] / sizes[0] == pytest.approx(4.0)
    assert sizes.sum() == pytest.approx(np.sqrt(5.0))


def test_directions_alone():
    problem, net = random_problem(2)
    process = limit(problem, directions=5.0 * net.W, signs=np.sign(net.a))
    np.testing.assert_allclose(process.times, limit(problem, net).times)
    assert process.view.startswith("directions and signs only")


@pytest.mark.parametrize("seed", range(4))
def test_infinite_width_is_the_limit_of_wide_networks(seed):
    problem, _ = random_problem(seed, d=2, n=5)
    wide = limit(problem, initialize(problem, 2000, scale=1.0, rng=seed))
    process = limit(problem)
    assert process.view.startswith("infinite width")
    np.testing.assert_allclose(process.times, wide.times, rtol=1e-9)
    np.testing.assert_allclose(process.losses, wide.losses, atol=1e-9)


def test_a_silent_problem_and_dead_neurons_end_at_once():
    problem = Problem(np.eye(2), np.array([1.0, 1.0]))
    process = limit(problem, Network([[-1.0, -1.0]], [np.sqrt(2.0)]))
    assert process.n_jumps == 0
    assert process.ending == "spurious"
    assert list(process.signs) == [0]
    zero = limit(Problem(np.eye(2), np.zeros(2)), Network([[1.0, 0.0]], [1.0]))
    assert zero.ending == "interpolates"
    assert zero.n_jumps == 0


def test_inconsistent_data_end_at_a_global_minimum():
    """Two labels at one point: nothing fits both, and no further neuron helps."""
    problem = Problem(np.array([[1.0], [1.0]]), np.array([1.0, 2.0]))
    process = limit(problem, Network([[1.0]], [1.0]))
    assert process.ending == "global"
    assert process.losses[-1] == pytest.approx(0.125)


def test_budgets_end_in_a_status():
    problem = datasets.golden()
    net = Network(problem.known["W0"], problem.known["signs"])
    one = limit(problem, net, max_jumps=1)
    assert (one.n_jumps, one.ending) == (1, "budget")
    none = limit(problem, net, max_seconds=0.0)
    assert (none.n_jumps, none.ending) == (0, "budget")


def test_ties_are_named():
    problem = datasets.ideal_xor()
    process = limit(problem)
    assert process.n_jumps == 1
    assert len(process.neurons[0]) == 4
    assert any("tie" in note for note in process.undetermined)


def test_neurons_left_open_are_named_with_their_jumps():
    """Shrinking at first, as a start has it, is not the end of a neuron."""
    problem, net = random_problem(5, d=2, n=5, m=15)
    process = limit(problem, net)
    shrinking = np.flatnonzero(process.rates[0] < 0)
    note = next(text for text in process.undetermined if "shrinking" in text)
    before, _, after = note.partition("later jumps of these: ")
    named = shrinking[:6] if shrinking.size > 6 else shrinking
    assert ", ".join(str(j) for j in named) in before
    late = [i for i, group in enumerate(process.neurons, 1) if np.isin(group, shrinking).any()]
    assert late
    assert [f"(jump {i})" in after for i in range(1, process.n_jumps + 1)] == [
        i in late for i in range(1, process.n_jumps + 1)
    ]


def test_bad_input_gets_one_sentence():
    problem, net = random_problem(0)
    cases = [
        dict(net=net, directions=net.W),
        dict(directions=net.W),
        dict(signs=np.sign(net.a)),
        dict(directions=net.W[:, :2], signs=np.sign(net.a)),
        dict(directions=0 * net.W, signs=np.sign(net.a)),
        dict(directions=net.W, signs=np.full(net.m, 0.5)),
        dict(net=Network([[1.0]], [1.0])),
    ]
    for case in cases:
        with pytest.raises(ReluflowError) as caught:
            limit(problem, **case)
        assert "\n" not in str(caught.value)


def test_stewart_against_flow_at_1e_30():
    from reluflow import flow

    problem = datasets.stewart()
    net = initialize(problem, 20, scale=1.0, rng=4)
    process = limit(problem, net)
    assert process.n_jumps >= 1
    L = 30 * np.log(10.0)
    times = process.jump_times(log_scale=-L)
    middle = 0.5 * (np.concatenate([[0.0], times[:-1]]) + times)
    save = np.concatenate([middle, [2 * times[-1] + 200.0]])
    run = flow(
        problem,
        net.scaled(-L - net.log_norms.max()),
        t_end=save[-1],
        save=save,
        stop=stationary(1e-12),
    )
    got = np.interp(middle, run.times, run.loss)
    np.testing.assert_allclose(got, process.losses[:-1], atol=1e-6)
    end = problem.value(problem.outputs(run.final))
    assert end == pytest.approx(process.losses[-1], abs=1e-6)
