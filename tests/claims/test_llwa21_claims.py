"""[LLWA21]_: tools of its claims; a corrupted run fails, a broken hypothesis is out of scope."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reluflow import Network, Problem, datasets, initialize, kkt, max_G, max_margin
from reluflow.claims import Evidence, Status, ledger
from reluflow.claims.claim import load_all
from reluflow.claims.hypotheses import orthogonally_separable
from reluflow.claims.run import evaluate, run_check
from reluflow.claims.verdict import decide
from reluflow.papers.llwa21 import runs
from reluflow.papers.llwa21.claims import (
    bounds,
    cones,
    directions,
    general,
    hints,
    kinks,
    limit,
    local,
    near_zero,
    one_neuron,
    orthogonal,
    phase2,
    support,
    symmetric,
)
from reluflow.papers.llwa21.claims.assumptions import late_errors, plus_is_longer
from reluflow.papers.llwa21.claims.general import (
    counterexample,
    has_principal_direction,
    negatives_weak_at_dual,
)
from reluflow.papers.llwa21.runs import (
    early_rate,
    embed,
    m_distance,
    recorded_run,
    sides,
    smoothed_margin,
    sup_error,
)
from reluflow.problem.losses import Logistic

seeds = st.integers(0, 10_000)


def status_of(name, evidence):
    return evaluate(load_all()[f"LLWA21-{name}"], evidence).status


def of_experiment(name, **changes):
    check = load_all()[f"LLWA21-{name}"]
    return run_check(replace(check, sizes={"quick": {**check.sizes["quick"], **changes}})).status


def misses(name, evidence):
    """A bound is missed, which FAILS, or is UNDECIDED where a hypothesis cannot be checked."""
    return _missed(evaluate(load_all()[f"LLWA21-{name}"], evidence))


def experiment_misses(name, **changes):
    check = load_all()[f"LLWA21-{name}"]
    return _missed(run_check(replace(check, sizes={"quick": {**check.sizes["quick"], **changes}})))


def _missed(verdict):
    missed = any(c.status is Status.FAILS for c in verdict.comparisons)
    assert verdict.status in ((Status.FAILS, Status.UNDECIDED) if missed else (Status.HOLDS,))
    return missed


def ended(evidence, net):
    """The evidence with another end."""
    return Evidence.of(evidence.problem, replace(evidence.run, final=net))


def started(evidence, net):
    """The evidence with another start."""
    return Evidence(evidence.problem, net, evidence.run)


def test_no_claim_is_left_without_a_check():
    assert [entry.id for entry in ledger("llwa21") if not entry.checks] == []


# the tools


@given(seeds)
@settings(max_examples=25, deadline=None)
def test_embeddings_keep_function_and_norm(seed):
    rng = np.random.default_rng(seed)
    pair = Network(rng.standard_normal((2, 3)), rng.standard_normal(2), leak=0.3)
    b = np.append(rng.standard_normal(4), [1.0, -1.0])
    whole = embed(b, pair)
    X = rng.standard_normal((7, 3))
    assert np.allclose(whole(X), pair(X), atol=1e-12)
    assert whole.norm2 == pytest.approx(pair.norm2)


@given(seeds, st.floats(-3, 1.5))
@settings(max_examples=25, deadline=None)
def test_smoothed_margin_and_its_gradient(seed, log_size):
    rng = np.random.default_rng(seed)
    y = rng.choice([-1.0, 1.0], 5)
    problem = Problem(rng.standard_normal((5, 3)), y, Logistic(), 0.4)
    theta = rng.standard_normal(16)
    theta *= math.exp(log_size) / np.linalg.norm(theta)

    def network(t):
        return Network(t[:12].reshape(4, 3), t[12:])

    value, along, across = smoothed_margin(problem, network(theta))
    assert value == pytest.approx(kkt(problem, network(theta)).smoothed_margin, rel=1e-9, abs=1e-12)
    step = 1e-6 * math.exp(log_size) * np.eye(16)
    grad = np.array(
        [
            np.subtract(*(smoothed_margin(problem, network(theta + s * h))[0] for s in (1, -1)))
            for h in step
        ]
    ) / (2e-6 * math.exp(log_size))
    size = np.linalg.norm(theta)
    radial = grad @ theta / size
    assert along == pytest.approx(size * abs(radial), rel=1e-4, abs=1e-5 * abs(value))
    rest = np.linalg.norm(grad - radial * theta / size)
    assert across == pytest.approx(size * rest, rel=1e-4, abs=1e-5 * abs(value))


@pytest.mark.parametrize("seed", [0, 1])
def test_early_rates(seed):
    problem = datasets.symmetric_separable(rng=seed)
    assert early_rate(problem)[0] == pytest.approx(max_G(problem).value, rel=1e-8)
    other = cones.planar_hints()
    assert np.linalg.norm(sides(other)[1]) / 2 == pytest.approx(max_G(other).value, rel=1e-8)


def test_depth_is_the_least_margin_of_the_box():
    problem = cones.planar_hints()
    rng = np.random.default_rng(0)
    Z = problem.y[:, None] * problem.X
    W = rng.uniform(problem.leak, 1.0, (5000, problem.n)) @ Z
    margins = (W @ Z.T / np.linalg.norm(W, axis=1)[:, None]).min()
    assert 0 < cones.depth(problem) <= margins


def test_class_solutions_solve_their_problems():
    problem = orthogonal.exact_kkt(0).problem
    for sign, v in zip((1.0, -1.0), orthogonal.class_solutions(problem), strict=True):
        q = problem.X[problem.y == sign] @ v
        assert q.min() == pytest.approx(1.0)


# phases I and II


def test_phase_1_sees_another_mixture(monkeypatch):
    assert of_experiment("L5.2", sizes=(0.1, 0.05)) is Status.HOLDS
    monkeypatch.setattr(near_zero, "mixture", lambda net, mubar: 1.1 * _mixture(net, mubar))
    assert of_experiment("L5.2", sizes=(0.1, 0.05)) is Status.FAILS


_mixture = near_zero.mixture


def test_phase_1_sees_another_linear_flow(monkeypatch):
    assert of_experiment("LD.2", draws=1) is Status.HOLDS
    slower = near_zero.linear_flow
    monkeypatch.setattr(near_zero, "linear_flow", lambda p, net, t: slower(p, net, 0.99 * t))
    assert of_experiment("LD.2", draws=1) is Status.FAILS


def test_phase_2_needs_both_signs_and_the_right_rate():
    f = phase2.follower(0, 6)
    times = phase2.after(f, (0.0,))
    found = phase2.limit_and_order(f, times, (1e-2, 1e-3))
    assert decide(found.comparisons, found.hypotheses) is Status.HOLDS
    one_sided = phase2.Follower(f.problem, Network(f.net.W, np.abs(f.net.a) * 10, leak=0.5))
    assert one_sided.good.ok is False
    broken = phase2.limit_and_order(one_sided, times, (1e-2, 1e-3))
    assert decide(broken.comparisons, broken.hypotheses) is Status.OUT_OF_SCOPE
    wrong = replace(f, printed=True)
    found = phase2.limit_and_order(wrong, times, (1e-2, 1e-3))
    assert decide(found.comparisons, found.hypotheses) is Status.FAILS


def test_well_aligned_vectors():
    good = near_zero.aligned_pair(0)
    assert status_of("DefE.3", good) is Status.MET
    hat = good.final
    turned = Network(hat.W + 0.01 * np.abs(hat.W).max(), hat.a, leak=hat.leak)
    wrong_sign = Network(hat.W, -hat.a, leak=hat.leak)
    for net in (turned, wrong_sign):
        assert status_of("DefE.3", Evidence.of(good.problem, net)) is Status.OUT_OF_SCOPE


def test_departures_see_another_rate(monkeypatch):
    rate = near_zero.Departure.rate.func

    class Faster(near_zero.Departure):
        @property
        def rate(self):
            return 0.8 * rate(self)

    monkeypatch.setattr(near_zero, "Departure", Faster)
    for name in ("TE.4", "LE.5"):
        assert of_experiment(name) is Status.FAILS


def test_departures_need_alignment(monkeypatch):
    pair = near_zero.aligned_pair(0)
    tilted = Network(pair.final.W + 1e-3, pair.final.a, leak=pair.final.leak)
    bad = Evidence.of(pair.problem, tilted)
    monkeypatch.setattr(near_zero, "aligned_pair", lambda seed: bad)
    assert of_experiment("LE.6") is Status.OUT_OF_SCOPE


# the late phase


def test_late_phase(with_states):
    good = recorded_run(seed=0, m=6, q_min=500.0)
    for name in ("T3.1", "TF.9", "LB.20"):
        assert status_of(name, good) is Status.HOLDS

    def bend(W, a):
        W[-1] *= 1 + 0.3 * np.arange(6)[:, None]

    bad = Evidence.of(good.problem, with_states(good.run, bend))
    assert status_of("T3.1", bad) is Status.FAILS
    assert misses("TF.9", bad)
    short = with_states(good.run, lambda W, a: None)
    half = Evidence.of(good.problem, replace(short, networks=_first(short.networks, 40)))
    assert status_of("T3.1", half) is Status.OUT_OF_SCOPE
    sparse = Evidence.of(good.problem, replace(short, networks=_last(short.networks, 3)))
    for name in ("T3.1", "TF.9"):  # no record a decade before the last
        assert status_of(name, sparse) is Status.OUT_OF_SCOPE
    exponential = Evidence.of(good.problem.replace(loss="exponential"), good.run)
    assert status_of("TF.9", exponential) is Status.OUT_OF_SCOPE


def _first(states, count):
    scale = None if states.log_scale is None else states.log_scale[:count]
    return replace(states, W=states.W[:count], a=states.a[:count], log_scale=scale)


def _last(states, count):
    scale = None if states.log_scale is None else states.log_scale[-count:]
    return replace(states, W=states.W[-count:], a=states.a[-count:], log_scale=scale)


def test_residuals_must_fall_over_the_last_decade(with_states):
    """A direction that stands still a little off its limit passes every other comparison."""
    good = recorded_run(seed=0, m=6, q_min=500.0)
    first, last = limit.decade(good)

    def stand(W, a):
        grown = np.exp(0.5 * np.linspace(0, math.log(10), last - first + 1))
        W[first:] = W[first] * grown[:, None, None]
        a[first:] = a[first] * grown[:, None]

    still = Evidence.of(good.problem, with_states(good.run, stand))
    found = limit.direction_to_kkt(still)
    assert [c.status for c in found[:3]] == 3 * [Status.HOLDS]
    assert [c.status for c in found[3:]] == 2 * [Status.FAILS]


def test_a_run_between_two_kkt_directions_has_not_settled():
    late = recorded_run(seed=6, m=6, q_min=500.0)
    assert limit.settled(recorded_run(seed=0, m=6, q_min=500.0)).ok
    assert limit.settled(late).ok is None
    assert status_of("T3.1", late) is Status.UNDECIDED


def test_loss_vanishes(with_states):
    good = recorded_run(seed=0, m=6, q_min=500.0, kind="balanced")
    assert status_of("TB.19", good) is Status.HOLDS
    who = int(np.flatnonzero(limit.leaders(good))[0])

    def flip(W, a):
        a[10, who] *= -1

    assert status_of("TB.19", Evidence.of(good.problem, with_states(good.run, flip))) is (
        Status.FAILS
    )
    start, w = good.start, good.problem.known["w_star"]
    astray = Network(start.W, -start.a * np.sign(start.a * (start.W @ w)))
    assert status_of("TB.19", started(good, astray)) is Status.OUT_OF_SCOPE
    early = replace(good.run, networks=_first(good.run.networks, 20))
    assert status_of("TB.19", Evidence.of(good.problem, early)) is Status.UNDECIDED


def test_pull_along_a_separator(monkeypatch):
    good = recorded_run(seed=0, m=6, q_min=500.0)
    true = limit.velocity
    monkeypatch.setattr(limit, "velocity", lambda p, net: tuple(v / 2 for v in true(p, net)))
    assert status_of("LB.20", good) is Status.FAILS
    mixed = Evidence.of(Problem(good.problem.X, -good.problem.y[::-1].copy(), Logistic(), 0.5))
    assert status_of("LB.20", mixed) is Status.OUT_OF_SCOPE


# symmetric data


def test_two_neurons(with_states):
    good = symmetric.two_opposite(seed=0, q_min=2000.0)
    assert status_of("T5.5/repaired", good) is Status.HOLDS
    assert status_of("T5.5/printed", good) is Status.OUT_OF_SCOPE  # max |x| > 1
    small = symmetric.two_opposite_small(seed=0, q_min=100.0)
    assert status_of("T5.5/printed", small) is Status.FAILS
    assert status_of("T5.5/printed", started(small, small.start.scaled(0.1))) is Status.FAILS
    one_side = Network(small.start.W, np.abs(small.start.a), leak=0.5)
    assert status_of("T5.5/printed", started(small, one_side)) is Status.OUT_OF_SCOPE

    def turn(W, a):
        W[-1, 0] = W[-1, 0, ::-1]

    bad = Evidence.of(good.problem, with_states(good.run, turn))
    assert symmetric.tends_to_half(bad)[0].status is Status.FAILS
    one = Evidence(good.problem, good.start, replace(good.run, networks=_last(good.path(), 2)))
    assert status_of("T5.5/repaired", one) is Status.OUT_OF_SCOPE  # nothing to compare with
    same_side = Network(good.start.W, np.abs(good.start.a), leak=0.5)
    assert status_of("T5.5/repaired", started(good, same_side)) is Status.OUT_OF_SCOPE
    plain = Evidence(datasets.symmetric_separable(rng=0, leak=0.0), good.start, good.run)
    assert status_of("T5.5/repaired", plain) is Status.OUT_OF_SCOPE


def test_theorem_4_3_asks_for_a_small_start_of_both_signs():
    good = recorded_run(seed=0, m=6, q_min=500.0)
    assert status_of("T4.3", good) is Status.HOLDS
    assert status_of("T4.3", started(good, good.start.scaled(9.0))) is Status.OUT_OF_SCOPE
    one_sided = Network(good.start.W, 1e-3 + 0 * good.start.a)
    assert status_of("T4.3", started(good, one_sided)) is Status.OUT_OF_SCOPE


def test_limits_are_functions_of_all_inputs():
    """Equal on the data is not enough: a neuron that no sample sees."""
    problem = datasets.symmetric_separable(rng=0, leak=0.0)
    w, X = problem.known["w_star"], problem.X
    best = directions.pair(w, 0)
    turned = Network(best.W, best.a, leak=0.0)

    def goal(inputs):
        return inputs @ w / 4

    assert sup_error(problem, turned, goal) < 1e-12
    assert sup_error(problem, turned.scaled(400.0), goal) < 1e-12
    one = Problem(np.abs(X), np.ones(problem.n), Logistic(), 0.0)
    unseen = Network(np.vstack([np.ones(problem.d), -np.ones(problem.d)]), np.ones(2))
    seen = unseen.subset([0])
    assert np.array_equal(one.outputs(unseen), one.outputs(seen))
    ends = seen.evaluate(np.eye(problem.d), 0.0) / seen.norm2
    assert np.allclose(ends, 1 / (problem.d + 1))
    assert sup_error(one, unseen, lambda x: seen.evaluate(x, 0.0) / unseen.norm2) > 0.5


def test_theorem_4_2_sees_another_function(monkeypatch):
    assert of_experiment("T4.2/leaks") is Status.HOLDS
    true = directions.max_margin

    def other(p, model="network"):
        found = true(p, model)
        if model == "linear":
            return found
        return replace(found, network=directions.pair(np.roll(p.known["w_star"], 1), 0))

    monkeypatch.setattr(directions, "max_margin", other)
    assert of_experiment("T4.2/leaks") is Status.FAILS


def test_theorem_4_3_sees_a_bend():
    good = recorded_run(seed=0, m=6, q_min=500.0)
    W, a = good.final.weights()
    W = W + 0.2 * np.roll(W, 1, axis=1)
    assert late_errors(ended(good, Network(W, a, leak=0.5)))[2].status is Status.FAILS


def test_unbalanced_directions_are_not_kkt(monkeypatch):
    assert of_experiment("LB.9/exact") is Status.HOLDS
    assert of_experiment("LB.9/exact", factor=1.001) is Status.FAILS  # the control must see it
    good = directions.bent_direction(0)
    assert status_of("LB.9", good) is Status.HOLDS
    unbalanced = Network(1.2 * good.final.W, good.final.a / 1.2, leak=0.5)
    assert status_of("LB.9", Evidence.of(good.problem, unbalanced)) is Status.OUT_OF_SCOPE
    monkeypatch.setattr(directions, "exact_points", lambda seed: [(good.problem, unbalanced)])
    assert of_experiment("LB.9/exact") is Status.FAILS


def test_only_three_pairs(monkeypatch):
    assert of_experiment("LF.3", sets=1) is Status.HOLDS
    true = directions.other_pairs
    monkeypatch.setattr(
        directions,
        "other_pairs",
        lambda p, seed: [*true(p, seed), directions.pair(p.known["w_star"], 0)],
    )
    assert of_experiment("LF.3", sets=1) is Status.FAILS


def test_pairs_must_become_opposite(monkeypatch):
    assert of_experiment("LF.2") is Status.HOLDS
    true = symmetric.flow_until
    shifted = 1 + 0.03 * np.array([[1.0], [-1.0]])

    def skewed(problem, net, q):
        W, a = true(problem, net, q).final.weights()
        return Evidence.of(problem, Network(shifted * W, a, leak=0.5))

    monkeypatch.setattr(symmetric, "flow_until", skewed)
    monkeypatch.setattr(symmetric, "NEAR", 1.0)
    assert of_experiment("LF.2") is Status.FAILS


def test_euler_sees_another_degree(monkeypatch):
    assert of_experiment("TB.3", draws=5) is Status.HOLDS
    true = Problem.outputs
    monkeypatch.setattr(Problem, "outputs", lambda p, net: true(p, net) + 1e-3)
    assert of_experiment("TB.3", draws=5) is Status.FAILS


def test_euler_looks_at_both_sides_of_kinks(monkeypatch):
    """Outputs with a bump on kinks, which is not homogeneous, break the relation there alone."""
    true = Problem.outputs

    def bump(p, net):
        cosines = net.directions @ (p.X / np.linalg.norm(p.X, axis=1)[:, None]).T
        return true(p, net) + 1e-2 * np.exp(-((cosines / 1e-4) ** 2)).sum(axis=0)

    monkeypatch.setattr(Problem, "outputs", bump)
    found = bounds.euler(seed=0, draws=10)
    assert [c.status for c in found] == [Status.HOLDS, Status.HOLDS, Status.FAILS]


def test_embeddings_are_those_of_the_library(monkeypatch):
    true = bounds.initialize

    def tilted(*args, **options):
        net = true(*args, **options)
        return Network(net.W, 0.7 * net.a)

    assert of_experiment("LE.7") is Status.HOLDS
    monkeypatch.setattr(bounds, "initialize", tilted)
    assert of_experiment("LE.7") is Status.FAILS


def test_a2_is_the_predicate_that_claims_use(monkeypatch):
    assert of_experiment("LG.2", draws=50) is Status.HOLDS
    monkeypatch.setattr(bounds, "means_separate", plus_is_longer)
    assert of_experiment("LG.2", draws=50) is Status.FAILS


def test_residuals_are_known_exactly(monkeypatch):
    """Half of the KKT residual is seen."""
    true = directions.kkt

    def half(*args, **options):
        found = true(*args, **options)
        return replace(found, residual=found.residual / 2)

    monkeypatch.setattr(directions, "kkt", half)
    assert of_experiment("LB.9/exact") is Status.FAILS


def test_bounds_of_the_search_are_known_exactly(monkeypatch):
    """A bound on margins, or below norms, that is off by 2 % is seen, and so is half a gain."""
    true = general.max_margin

    def higher(*args, **options):
        found = true(*args, **options)
        wide = hasattr(found, "upper_bound")
        return replace(found, upper_bound=1.02 * found.upper_bound) if wide else found

    monkeypatch.setattr(general, "max_margin", higher)
    assert of_experiment("A.5/positive support") is Status.FAILS
    least, gain = orthogonal.min_norm, general.stationarity

    def lower(*args):
        return replace(least(*args), lower_bound=1.02 * least(*args).lower_bound)

    monkeypatch.setattr(orthogonal, "min_norm", lower)
    assert of_experiment("H2/least norm") is Status.FAILS
    monkeypatch.setattr(general, "stationarity", lambda *args: _half_gain(gain(*args)))
    assert of_experiment("A.2/one neuron") is Status.FAILS


def _half_gain(found):
    return replace(found, gain=found.gain / 2)


def test_a_stop_that_comes_early_is_seen(monkeypatch):
    true = limit.loss_below

    def early(value=None, log=None):
        return true(log=(math.log(value) if log is None else log) + math.log(10))

    for module in (limit, runs):
        monkeypatch.setattr(module, "loss_below", early)
    assert of_experiment("TB.19/finite time") is Status.FAILS
    assert experiment_misses("T4.3/rate")


def test_the_hint_is_principal_from_h0_on(monkeypatch):
    assert of_experiment("A.1/threshold") is Status.HOLDS
    true = general.principal_gap
    monkeypatch.setattr(general, "principal_gap", lambda p, w: true(p, w) - 0.01)
    assert of_experiment("A.1/threshold") is Status.FAILS


def test_instances_of_non_branching_cross_kinks(monkeypatch):
    found = kinks.with_kinks_ahead(0, 2, symmetric=False)
    for problem in found:
        assert not orthogonally_separable(Evidence.of(problem)).ok
    assert of_experiment("A.6/instances", sets=1, starts=2) is Status.ILLUSTRATED
    monkeypatch.setattr(kinks, "branchings", lambda evidence: 1)
    assert of_experiment("A.6/instances", sets=1, starts=2) is Status.FAILS


def test_equal_margin_needs_the_value_of_a5_star(monkeypatch):
    assert of_experiment("TG.11/repaired/same function", draws=100) is Status.HOLDS
    monkeypatch.setattr(support, "dual_value", lambda p, sign: (-1.0, one_plus(p)))
    assert of_experiment("TG.11/repaired/same function", draws=100) is Status.FAILS


def one_plus(problem):
    return max_margin(problem, "linear", 1).margin


def test_swapped_slopes_fail_without_symmetry():
    """Control of F.1: on half of the data the conclusion is false."""
    problem = datasets.symmetric_separable(4, 2, rng=0)
    half = Problem(problem.X[:4], problem.y[:4], Logistic(), problem.leak)
    rng = np.random.default_rng(0)
    found = np.inf
    for _ in range(300):
        u1, u2 = problem.known["w_star"] + 2 * rng.standard_normal((2, 2))
        found = min([found, *symmetric._swapped_sums(half, u1, u2)])
    assert found < 0.9


def test_near_a_maximum(monkeypatch):
    assert of_experiment("T5.6") is Status.HOLDS
    true = local.returning_run
    monkeypatch.setattr(
        local, "returning_run", lambda *args: ended(true(*args), true(*args).path()[0])
    )
    assert experiment_misses("T5.6")


def test_sweep_near_a_maximum(monkeypatch, with_states):
    assert of_experiment("LF.11") is Status.HOLDS
    true = local.returning_run

    def shake(W, a):
        W[-5::2] += 0.1 * np.abs(W).max()

    def shaken(*args):
        evidence = true(*args)
        return Evidence.of(evidence.problem, with_states(evidence.run, shake))

    monkeypatch.setattr(local, "returning_run", shaken)
    assert experiment_misses("LF.11")


def test_growth_of_the_smoothed_margin_has_two_parts(monkeypatch):
    """A tangential slope that is wrong is seen: F.11 rests on it."""
    true = local.smoothed_margin

    def tilted(problem, net):
        value, along, across = true(problem, net)
        return value, along, 3 * across

    monkeypatch.setattr(local, "smoothed_margin", tilted)
    assert experiment_misses("LF.11")


def test_desingularising_sees_a_flatter_margin(monkeypatch):
    true = local.smoothed_margin
    monkeypatch.setattr(
        local,
        "smoothed_margin",
        lambda p, net: (true(p, net)[0], *(1e-2 * v for v in true(p, net)[1:])),
    )
    assert of_experiment("LF.10") is Status.FAILS
    monkeypatch.undo()
    assert of_experiment("LF.10") is Status.ILLUSTRATED


# one neuron


def test_one_neuron_wins():
    good = one_neuron.trained_run(seed=0, q_min=100.0)
    assert status_of("TA.7/repaired", good) is Status.HOLDS
    p = good.problem
    best = max_margin(p).network
    better = ended(good, best.scaled(3.0))
    assert misses("TA.7/repaired", better)
    assert of_experiment("TA.7/repaired/sphere") is Status.HOLDS
    W, a = good.final.weights()
    W[np.argmax(a)] += 0.01 * W[np.argmax(a), ::-1]
    assert one_neuron.off_one_neuron(p, Network(W, a), 1) > 1e-3
    negative = Network(good.start.W, -np.abs(good.start.a), leak=0.5)
    assert status_of("TA.7/repaired", started(good, negative)) is Status.OUT_OF_SCOPE
    unbalanced = Network(good.start.W, 2 * good.start.a, leak=0.5)
    assert status_of("TA.7/repaired", started(good, unbalanced)) is Status.OUT_OF_SCOPE
    assert status_of("TA.10", good) is Status.OUT_OF_SCOPE  # |mu+| > |mu-|


def test_the_counterexample_is_beyond_the_repaired_condition():
    bad = one_neuron.trained_on_counterexample(seed=0, sigma=1e-2, q_min=1e4)
    assert status_of("TA.7/repaired", bad) is Status.OUT_OF_SCOPE
    assert not negatives_weak_at_dual(bad).ok
    assert status_of("A.5", bad) is Status.MET
    assert status_of("A.5star", bad) is Status.OUT_OF_SCOPE


def test_theorem_a7_fails_under_all_its_hypotheses(monkeypatch):
    """A refutation needs every hypothesis: with one broken nothing is refuted."""
    few = {"draws": 1, "sigmas": (1e-2,), "q": 1000.0}
    check = load_all()["LLWA21-TA.7/printed"]
    found = run_check(replace(check, sizes={"quick": few}))
    assert found.status is Status.FAILS
    assert len(found.hypotheses) == 10
    assert all(h.ok is True and h.detail for h in found.hypotheses)
    for words in ("A.2, A.3, A.5, A.6", "leak in (0,1)", "sigma_max", "1-2^-m"):
        assert words in found.quoted
    wide = Problem(counterexample().problem.X * 2, [-1.0, 1.0, 1.0], Logistic(), 0.5)
    monkeypatch.setattr(one_neuron, "counterexample", lambda: Evidence.of(wide))
    assert run_check(replace(check, sizes={"quick": few})).status is Status.OUT_OF_SCOPE
    met = datasets.figure1_right(eps=0.1)  # A.5* holds there: no counterexample
    assert one_neuron.growth_beside(met) < 1


def test_printed_clauses_fail_with_every_hypothesis_met():
    """Each refutation quotes its printed hypotheses, and all of them are met, with numbers."""
    quick = {"TA.7/printed": {"draws": 1, "sigmas": (1e-2,), "q": 1000.0}}
    printed = [c for c in load_all().values() if c.id.startswith("LLWA21") and c.form == "printed"]
    assert len(printed) == 7
    for check in printed:
        name = check.name.removeprefix("LLWA21-")
        sizes = {"quick": {**check.sizes["quick"], **quick.get(name, {})}}
        for seed in (0, 3):
            found = run_check(replace(check, sizes=sizes), seed=seed)
            assert found.status is Status.FAILS, name
            assert found.quoted, name
            assert [h.name for h in found.hypotheses if h.ok is not True] == [], name
            assert len(found.hypotheses) >= 4, name


@pytest.mark.parametrize(
    "name",
    [
        "H2/slip",
        "L5.2/slip",
        "L5.4/slip",
        "LE.8/slip",
        "LG.5/slip",
        "LG.8/slip",
        "LA.4/slip",
        "TA.10/slip",
        "T6.2/slip/K",
        "T6.2/slip/H",
        "T6.2/slip/probability",
    ],
)
def test_slips(name):
    """The meant formula agrees with what is measured, the printed one does not."""
    check = load_all()[f"LLWA21-{name}"]
    assert "" not in (check.printed, check.meant)
    assert check.printed != check.meant
    found = run_check(check, seed=2)
    assert found.status is Status.HOLDS
    assert len(found.comparisons) >= 2


def test_slips_see_the_printed_formula(monkeypatch):
    """Were the printed rate the true one, the slip would not be one."""
    true = near_zero.early_rate
    monkeypatch.setattr(near_zero, "early_rate", lambda p, printed=False: true(p, not printed))
    assert of_experiment("L5.2/slip") is Status.FAILS


def test_mirrored_hints():
    good = one_neuron.trained_run(seed=0, mirror=True, q_min=100.0)
    assert status_of("TA.10", good) is Status.HOLDS
    better = ended(good, max_margin(good.problem).network.scaled(3.0))
    assert misses("TA.10", better)
    assert status_of("TA.7/repaired", good) is Status.OUT_OF_SCOPE


def test_one_neuron_alone(with_states):
    good = support.trained_alone(seed=0, q_min=100.0)
    assert status_of("TG.9", good) is Status.HOLDS
    plus = sides(good.problem)[1]
    size = 30 / np.linalg.norm(plus)

    def turn(W, a):
        W[-1], a[-1] = size * plus, 30.0

    other = Evidence.of(good.problem, with_states(good.run, turn))
    assert status_of("TG.9", other) is Status.FAILS  # separates, but is not w+

    def stop(W, a):
        first, last = limit.decade(good)
        W[last], a[last] = math.sqrt(10) * W[first], math.sqrt(10) * a[first]

    halted = Evidence.of(good.problem, with_states(good.run, stop))
    assert support.one_neuron_alone(halted)[0].status is Status.FAILS
    short = Evidence.of(good.problem, replace(good.run, networks=_last(good.path(), 2)), good.start)
    assert status_of("TG.9", short) is Status.OUT_OF_SCOPE
    other_side = Network(-good.start.W, good.start.a, leak=0.5)
    assert status_of("TG.9", started(good, other_side)) is Status.OUT_OF_SCOPE


def test_hints():
    assert [c.status for c in hints.thresholds(0.1)] == [Status.HOLDS, Status.HOLDS]
    assert hints.noted_ratio(0.05, 2.4).status is Status.FAILS
    problem = datasets.figure1_right(eps=0.1)
    other = max_margin(problem).network
    assert hints.limit_error(problem, other) > 0.1
    one = hints.single_neuron(problem, 1)[0]
    assert hints.limit_error(problem, one) < 1e-12
    found = np.array(hints.other_neurons(datasets.figure1_middle(), 0))
    assert found.shape == (20, 2)
    assert (found[:, 0] >= math.sqrt(0.5) * found[:, 1] * (1 - 1e-9)).all()
    away = Evidence.of(Problem(problem.X, -problem.y, Logistic(), 0.5))
    assert not all(test(away).ok for test in hints.PROVEN)


def test_principal_directions():
    assert has_principal_direction(Evidence.of(datasets.figure1_right())).ok
    wide = Problem(np.array([[0.1, 5.0], [0.1, -5.0], [1.0, 0.0]]), np.ones(3), Logistic(), 0.5)
    assert has_principal_direction(Evidence.of(wide)).ok is False  # A.2 fails too
    large = Problem(np.ones((300, 100)), np.ones(300), Logistic(), 0.5)
    assert has_principal_direction(Evidence.of(large)).ok is None


def test_local_maxima_and_duality():
    assert support.margin_with_negative(counterexample().problem, np.array([1e-3])) > 1 + 1e-4
    assert support.margin_with_negative(datasets.figure1_right(eps=0.1), np.array([1e-3])) <= 1
    problem = counterexample().problem
    flipped = Problem(problem.X, -problem.y, Logistic(), 0.5)
    best = max_margin(problem, "network", -1).upper_bound
    assert support.primal_on_grid(problem, 1000) == pytest.approx(best, rel=1e-4)
    assert support.primal_on_grid(flipped, 1000) != pytest.approx(best, rel=0.1)


# cones and growth


def test_cones_need_their_condition(monkeypatch):
    assert of_experiment("LG.4/repaired") is Status.HOLDS
    X = np.array([[1.0, 0.0], [-0.9, 0.5], [0.1, -1.0]])
    mixed = Problem(X, np.array([1.0, 1.0, 1.0]), Logistic(), 0.5)
    monkeypatch.setattr(cones, "planar_hints", lambda: mixed)
    assert of_experiment("LG.3/repaired") is Status.OUT_OF_SCOPE


def test_growth_sees_other_rates(monkeypatch):
    assert of_experiment("LG.5") is Status.HOLDS
    assert of_experiment("LG.8") is Status.HOLDS
    true = cones.growth

    class Slower(cones.Growth):
        @property
        def rates(self):
            plus, minus = true(0, 4).rates
            return 0.99 * plus, minus

    monkeypatch.setattr(cones, "growth", lambda seed, m: Slower(*vars_of(true(seed, m))))
    assert of_experiment("LG.5") is Status.FAILS
    assert of_experiment("LG.8") is Status.FAILS


def vars_of(g):
    return g.problem, g.net


# orthogonally separable data


def test_one_kkt_function(monkeypatch):
    good = orthogonal.exact_kkt(0)
    for name in ("H2", "H3/repaired"):
        assert status_of(name, good) is Status.HOLDS
    assert status_of("H3/printed", good) is Status.FAILS
    p = good.problem
    near = Network(good.final.W + 1e-4, good.final.a)  # nearly KKT is not enough to refute
    assert status_of("H3/printed", Evidence.of(p, near)) is Status.OUT_OF_SCOPE
    net = initialize(p, 8, 1.0, rng=1)
    assert status_of("H2", Evidence.of(p, net)) is Status.OUT_OF_SCOPE
    longer = Network(good.final.W * np.linspace(1, 1.001, 6)[:, None], good.final.a)
    found = orthogonal.one_function(Evidence.of(p, longer))
    assert found[0].status is Status.HOLDS  # within its own residual
    assert of_experiment("H2/exact", sets=1) is Status.HOLDS
    monkeypatch.setattr(orthogonal, "kkt_network", lambda problem, seed: longer)
    assert of_experiment("H2/exact", sets=1) is Status.FAILS
    leaky = Evidence.of(p.replace(leak=0.2), good.final)
    assert status_of("H2", leaky) is Status.OUT_OF_SCOPE


def test_a_bent_direction_is_no_kkt_function(monkeypatch):
    good = orthogonal.exact_kkt(0)
    bent = Network(good.final.W + 0.1, good.final.a)
    monkeypatch.setattr(orthogonal, "allowed_errors", lambda evidence: (1e-3, 1e-3))
    evidence = Evidence.of(good.problem, bent)
    assert orthogonal.one_function(evidence)[0].status is Status.FAILS
    assert orthogonal.solves_q(evidence, False)[0].status is Status.FAILS


def test_edges_of_two_samples():
    """One neuron at the kink of e1: a > 0 with a strong other pull backwards is a ridge."""
    X = np.array([[1.0, 0.0], [-0.8, 0.6]])
    problem = Problem(X, np.array([1.0, 1.0]), Logistic(), 0.0)
    ridge = Network(1e-3 * np.array([[0.0, 1.0]]), np.array([1e-3]))
    assert kinks.edges(problem, ridge)[0] >= 1
    valley = Network(1e-3 * np.array([[0.0, 1.0]]), np.array([-1e-3]))
    assert kinks.edges(problem, valley)[1] >= 1
    assert m_distance(ridge, valley) == pytest.approx(2e-3)
