"""The limit process with several outputs: against flow from tiny starts, one output, symmetries."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reluflow import Network, Problem, every, extremal_vectors, flow, initialize, limit


def random_problem(seed):
    rng = np.random.default_rng(seed)
    n, d, K = (int(rng.integers(*ends)) for ends in ((6, 13), (2, 5), (2, 5)))
    X = rng.normal(size=(n, d))
    if seed % 2:
        return Problem(X, rng.permutation(np.arange(n) % K), loss="softmax")
    return Problem(X, rng.normal(size=(n, K)))


def jump_times(run, losses):
    """When the loss passes half way between two plateaus."""
    out = []
    for before, after in pairwise(losses):
        i = int(np.argmax(run.loss <= 0.5 * (before + after)))
        share = (run.loss[i - 1] - 0.5 * (before + after)) / (run.loss[i - 1] - run.loss[i])
        out.append(run.times[i - 1] + share * (run.times[i] - run.times[i - 1]))
    return np.array(out)


def reaching_times(run, process):
    """When the norm of each group of jumping neurons, of all its members, first is 1/10."""
    out = []
    for group in process.neurons:
        sizes = np.array([np.logaddexp.reduce(2.0 * n.log_norms[group]) for n in run.networks])
        above = sizes - 2.0 * np.log(0.1)
        i = int(np.argmax(above >= 0.0))
        share = above[i - 1] / (above[i - 1] - above[i])
        out.append(run.times[i - 1] + share * (run.times[i] - run.times[i - 1]))
    return np.array(out)


NEVER = "the plateau before it never rests: margins grow for ever"
NEXT = "the next candidate is"
SHORT = "are needed for its level to be reached"
PARTS = "rounding alone parts neurons that jumped together"
# What runs from e^-100 and e^-200 show otherwise than predicted, and the doubt that must be named:
# a second jump whose time grows by other than the predicted time per log(1/scale), by over 1 %,
# (between e^-50 and e^-100, where rounding parts nobody yet, that of seed 7 is 4 % off as well)
SECOND = {7: (NEVER, PARTS)}
# a level before it that is not the predicted one within 1e-3,
LEVEL = {1: NEVER, 2: SHORT, 4: SHORT, 5: NEVER, 6: SHORT, 7: NEVER, 9: NEVER, 10: SHORT, 11: NEVER}
LEVEL |= {13: NEVER, 15: NEVER, 17: NEVER}
# and a loss below that on the way to the level, since the next jump is felt too soon.
FELT = {5: NEXT, 6: NEXT, 10: NEXT, 11: NEXT, 16: SHORT}


def run_from(problem, net, process, L):
    """Flow from e^-L until a while after the last jump."""
    start = net.scaled(-L - net.log_norms.max())
    end = 1.25 * process.times[-1] * L + 40.0 / problem.total_pull + 10.0
    return flow(problem, start, t_end=end, save=every(end / 1500), rtol=1e-10)


def passed_level(run, jumps):
    """Time since the first jump and loss where it falls slowest before the second."""
    t = np.linspace(*jumps, 400)[20:-20]
    loss = np.interp(t, run.times, run.loss)
    i = int(np.argmin(np.abs(np.gradient(loss, t))))
    return t[i] - jumps[0], loss[i]


def compare_with_flow(seed):
    """Jump times by the growth of their differences, in which constants cancel, and levels."""
    problem = random_problem(seed)
    net = initialize(problem, 10, log_scale=0.0, rng=seed)
    process = limit(problem, net, max_jumps=2)
    assert process.n_jumps == 2
    L = 200.0
    low, high = (run_from(problem, net, process, each) for each in (0.5 * L, L))
    reached = reaching_times(high, process)
    growth = (reached - reaching_times(low, process)) / (0.5 * L)
    doubts, doubts_of_level = process.doubts_at(log_scale=-L), process.level_doubts_at(log_scale=-L)
    assert growth[0] == pytest.approx(process.times[0], rel=1e-3)
    if seed in SECOND:
        assert abs(growth[1] / process.times[1] - 1.0) > 0.01
        assert all(words in doubts[1] for words in SECOND[seed])
    else:
        assert growth[1] == pytest.approx(process.times[1], rel=0.01)
    middles = jump_times(high, process.losses)
    assert middles[0] == pytest.approx(L * process.times[0] + process.offsets[0], abs=0.6)
    if not doubts[1]:
        assert middles[1] == pytest.approx(L * process.times[1] + process.offsets[1], abs=0.1)
    since, loss = passed_level(high, np.array([middles[0], max(reached[1], middles[0])]))
    if seed in LEVEL:
        assert LEVEL[seed] in doubts_of_level[1]
    else:
        assert loss == pytest.approx(process.losses[1], abs=1e-3)
    on_the_way = process.loss_after(0, since)
    if seed in FELT:
        assert loss < on_the_way
        assert FELT[seed] in "; ".join(doubts + doubts_of_level)
    else:
        assert loss == pytest.approx(on_the_way, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3, 12, 18])
def test_jumps_and_levels_are_those_of_flow_from_tiny_starts(seed):
    compare_with_flow(seed)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", [s for s in range(20) if s not in (2, 3, 12, 18)])
def test_twenty_problems_agree_with_flow_or_name_what_differs(seed):
    compare_with_flow(seed)


def test_second_jump_has_the_offset_of_flow():
    # dormant neurons were taken to be sqrt(2) too large after a jump, the next one came too early
    problem = random_problem(3)
    net = initialize(problem, 10, log_scale=0.0, rng=3)
    process = limit(problem, net, max_jumps=2)
    jumps = jump_times(run_from(problem, net, process, 40.0), process.losses)
    assert jumps == pytest.approx(process.jump_times(log_scale=-40.0), abs=0.1)


def test_phases_that_drift_for_ever_end_and_say_so():
    # softmax: a neuron slides along two kinks, stiff, and outwards; no end within 20,000 steps
    problem = random_problem(7)
    process = limit(problem, initialize(problem, 10, log_scale=0.0, rng=7), max_jumps=1)
    assert process.n_jumps == 1
    assert np.isinf(process.relaxation[1])
    assert process.losses[1] < process.loss_after(0, 1000.0) < process.loss_after(0, 100.0)
    # square: two neurons that nearly cancel grow for ever, as no minimum is attained
    problem = random_problem(10)
    process = limit(problem, initialize(problem, 10, log_scale=0.0, rng=10), max_jumps=2)
    assert process.n_jumps == 2
    assert np.isinf(process.relaxation[2])


def test_a_minimum_at_infinity_is_no_rest():
    # Newton's method finds margins of 25 and more to be stationary
    problem = random_problem(19)
    process = limit(problem, initialize(problem, 10, log_scale=0.0, rng=19), max_jumps=2)
    assert NEVER in process.doubts_at(log_scale=-1000.0)[1]
    assert NEVER in process.level_doubts_at(log_scale=-1000.0)[1]
    assert np.isnan(process.offsets[1])


def test_neurons_that_only_exact_arithmetic_holds_together_are_named():
    problem = random_problem(0)
    process = limit(problem, initialize(problem, 10, log_scale=0.0, rng=0), max_jumps=2)
    assert PARTS not in process.doubts_at(log_scale=-100.0)[1]
    assert PARTS in process.doubts_at(log_scale=-200.0)[1]


def test_a_level_that_is_approached_along_a_kink_is_doubted():
    # after its first jump a neuron drifts for longer than the plateau lasts
    problem = random_problem(2)
    process = limit(problem, initialize(problem, 10, log_scale=0.0, rng=2), max_jumps=2)
    assert "relaxation times only" in process.doubts_at(log_scale=-200.0)[1]
    assert not process.doubts_at(log_scale=-5000.0)[1]


def test_first_jump_and_level_from_a_tiny_start():
    problem = random_problem(8)
    net = initialize(problem, 10, log_scale=0.0, rng=8)
    process = limit(problem, net, max_jumps=1)
    start = net.scaled(-40.0 - net.log_norms.max())
    predicted = 40.0 * process.times[0] + process.offsets[0]
    run = flow(problem, start, t_end=3.0 * predicted, save=every(predicted / 400), states=False)
    assert jump_times(run, process.losses)[0] == pytest.approx(predicted, rel=5e-3)
    assert run.loss[-1] == pytest.approx(process.losses[1], abs=1e-4)


def test_rates_of_the_first_plateau_are_critical_values():
    problem = random_problem(1)
    net = initialize(problem, 20, log_scale=0.0, rng=0)
    process = limit(problem, net, max_jumps=1)
    values = extremal_vectors(problem).values
    for rate in process.rates[0][process.rates[0] > 0]:
        assert np.abs(values - rate).min() < 1e-12
    assert process.times[0] == pytest.approx(1 / process.rates[0].max(), rel=1e-12)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_beside_a_silent_output_the_process_is_that_of_one(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(7, 3)), rng.normal(size=7)
    net = initialize(Problem(X, y), 8, log_scale=0.0, rng=seed)
    one = limit(Problem(X, y), net, max_jumps=2)
    column = Network(net.W, np.column_stack([net.a, 0 * net.a]), net.log_scale)
    other = limit(Problem(X, np.column_stack([y, 0 * y])), column, max_jumps=2)
    assert other.times[0] == pytest.approx(one.times[0], rel=1e-12)
    grows = one.rates[0] > 0.0  # rounding ends the exact balance on which shrinking for ever rests
    assert np.abs(one.rates[0] - other.rates[0])[grows].max() < 1e-12
    k = min(len(one.times), len(other.times))
    assert other.times[:k] == pytest.approx(one.times[:k], rel=1e-8)
    assert other.losses[: k + 1] == pytest.approx(one.losses[: k + 1], abs=1e-8)


@settings(max_examples=8)
@given(seed=st.integers(0, 40), turn=st.integers(0, 1000))
def test_turning_the_outputs_turns_the_prediction(seed, turn):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(7, 3)), rng.normal(size=(7, 3))
    Q = np.linalg.qr(np.random.default_rng(turn).normal(size=(3, 3)))[0]
    net = initialize(Problem(X, Y), 6, log_scale=0.0, rng=seed)
    turned = Network(net.W, net.a @ Q, net.log_scale)
    one, other = extremal_vectors(Problem(X, Y)), extremal_vectors(Problem(X, Y @ Q))
    assert np.allclose(one.values, other.values, atol=1e-10)
    tops, others = one.of_kind("max"), other.of_kind("max")
    assert np.allclose(one.vectors[tops], other.vectors[others], atol=1e-7)
    assert np.allclose(one.outer[tops] @ Q, other.outer[others], atol=1e-7)
    a, b = (limit(Problem(X, y), n, max_jumps=1) for y, n in ((Y, net), (Y @ Q, turned)))
    assert b.times == pytest.approx(a.times, rel=1e-9)
    assert b.losses == pytest.approx(a.losses, abs=1e-8)
    assert np.allclose(a.networks[-1].a @ Q, b.networks[-1].a, atol=1e-5)


@settings(max_examples=8)
@given(seed=st.integers(0, 40), order=st.permutations([0, 1, 2]))
def test_permuting_the_classes_permutes_the_prediction(seed, order):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(8, 2)), np.eye(3)[rng.permutation(8) % 3]
    problem, other = (Problem(X, y, loss="softmax") for y in (Y, Y[:, order]))
    net = initialize(problem, 6, log_scale=0.0, rng=seed)
    moved = Network(net.W, net.a[:, order], net.log_scale)
    one, two = extremal_vectors(problem), extremal_vectors(other)
    assert np.allclose(one.values, two.values, atol=1e-12)
    assert np.allclose(one.outer[:, order], two.outer, atol=1e-7)
    a, b = flow(problem, net.scaled(-3.0), t_end=20.0), flow(other, moved.scaled(-3.0), t_end=20.0)
    assert np.allclose(a.final(X)[:, order], b.final(X), atol=1e-9)


def test_neurons_that_jumped_together_part_as_modes_of_a_linear_network_do():
    # all samples active: f = A^T W x, whose second mode waits in the offsets of one group
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(6, 3))) + 0.2
    problem = Problem(X, X @ np.abs(rng.normal(size=(3, 2))))
    W, A = np.abs(rng.normal(size=(6, 3))) + 0.3, 0.3 * rng.normal(size=(6, 2)) + 1.0
    A *= (np.linalg.norm(W, axis=1) / np.linalg.norm(A, axis=1))[:, None]
    net = Network(W, A)
    process = limit(problem, net)
    assert process.parting.tolist() == [False, True]
    assert process.neurons[1].tolist() == list(range(6))
    assert process.losses[2] < 1e-20  # two modes are all there are
    assert "leading order" in process.doubts_at(log_scale=-24.0)[1]
    assert "which of 6 neurons" in process.undetermined[0]
    seen = []
    for L in (12.0, 24.0):
        start = net.scaled(-L - net.log_norms.max())
        end = 1.3 * process.times[1] * L + 60.0
        run = flow(problem, start, t_end=end, save=every(0.5), states=False, rtol=1e-10)
        assert run.loss[-1] < 1e-3 * process.losses[1]
        seen.append(run.times[np.argmax(run.loss <= 0.5 * process.losses[1])])
    assert (seen[1] - seen[0]) / 12.0 == pytest.approx(process.times[1], rel=5e-3)
    alone = Network(W[:1], A[:1])
    assert limit(problem, alone).ending == "spurious"  # one neuron has one mode


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_neurons_that_part_across_kinks_reach_the_level_of_flow(seed):
    # four modes, felt at once as the seven neurons meet kinks apart: one fall to loss 0
    rng = np.random.default_rng(seed)
    X = np.abs(rng.normal(size=(12, 4))) + 0.2
    problem = Problem(X, X @ rng.normal(size=(4, 4)))
    W, A = np.abs(rng.normal(size=(7, 4))) + 0.3, rng.normal(size=(7, 4))
    A *= (np.linalg.norm(W, axis=1) / np.linalg.norm(A, axis=1))[:, None]
    net = Network(W, A)
    process = limit(problem, net)
    assert process.parting.tolist() == [False, True]
    runs = []
    for L in (15.0, 30.0):
        start, end = net.scaled(-L - net.log_norms.max()), 2.0 * process.times[1] * L + 40.0
        save = every(end / 4000)
        runs.append(flow(problem, start, t_end=end, save=save, states=False, rtol=1e-10))
    low, high = (jump_times(run, process.losses) for run in runs)
    assert (high - low) / 15.0 == pytest.approx(process.times, rel=5e-3)
    assert runs[1].loss[-1] < 1e-2 * process.losses[1]
    assert process.losses[2] < 1e-9 * process.losses[1]


def test_infinite_width_has_groups_that_part():
    # one neuron for each direction had no offsets, and never parted
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(6, 3))) + 0.2
    problem = Problem(X, X @ np.abs(rng.normal(size=(3, 2))))
    wide = limit(problem, max_jumps=2)
    assert wide.parting.tolist() == [False, True]
    one = extremal_vectors(problem)
    top = one.of_kind("max")[:1]
    alone = limit(problem, Network(one.vectors[top], one.outer[top]), max_jumps=1)
    assert wide.times[0] == pytest.approx(alone.times[0], rel=1e-12)
    assert wide.offsets[0] == pytest.approx(alone.offsets[0], abs=1e-9)  # whatever its number
    assert "a group at each" in wide.view


def test_groups_that_are_not_together_as_they_jump_are_named():
    problem = random_problem(18)
    process = limit(problem, initialize(problem, 10, log_scale=0.0, rng=18), max_jumps=1)
    words = "its neurons are not together yet"
    assert words in process.doubts_at(log_scale=-1.0)[0]
    assert words not in process.doubts_at(log_scale=-50.0)[0]


@pytest.mark.parametrize("seed", [2, 6])  # their first plateau is a critical point, not far out
def test_coarse_phases_end_where_the_loss_only_drifts(monkeypatch, seed):
    """On large data no critical point may be found among the kinks: the plateau is nearly one."""
    from reluflow.prediction.multioutput import transit

    rng = np.random.default_rng(seed)
    labels = np.arange(30) % 3
    centres = np.array([[2.0, 0.0], [-1.0, 1.7], [-1.0, -1.7]])
    problem = Problem(centres[labels] + 0.8 * rng.normal(size=(30, 2)), labels, loss="softmax")
    fine = limit(problem, max_jumps=1)
    monkeypatch.setattr(transit, "LARGE", 0)
    monkeypatch.setattr(transit, "critical_point", lambda phase: None)
    monkeypatch.setattr(transit, "runaway", lambda phase, rate: None)
    coarse = limit(problem, max_jumps=1)
    assert coarse.n_jumps == fine.n_jumps == 1
    assert coarse.times == pytest.approx(fine.times, rel=1e-12)
    fall = fine.losses[0] - fine.losses[1]
    assert abs(coarse.losses[1] - fine.losses[1]) < 0.02 * fall
    assert coarse.offsets[0] == pytest.approx(fine.offsets[0], abs=0.05 / fine.rates[0].max())
    assert fine.residuals[1] < 1e-10 < coarse.residuals[1]  # what it is short of rest is said


def test_a_loss_that_falls_evenly_does_not_only_drift():
    from reluflow.prediction.multioutput.transit import _only_drifts

    falling = [(float(t), 1.0 - 0.01 * t) for t in range(60)]
    assert not _only_drifts(falling, 4.0)
    assert _only_drifts([*falling, (70.0, 0.4), (80.0, 0.4)], 4.0)
    assert not _only_drifts([(0.0, 1.0), (9.0, 1.0)], 4.0)  # it has not begun
