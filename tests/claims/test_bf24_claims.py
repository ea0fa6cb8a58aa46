"""[BF24]_: a corrupted run fails, a broken hypothesis is out of scope, bounds are sharp."""

from dataclasses import replace

import numpy as np
import pytest

from reluflow import Network, Problem, datasets, descend, flow, initialize
from reluflow.claims import Evidence, Status, ledger
from reluflow.claims.claim import load_all
from reluflow.claims.invariants import dead
from reluflow.claims.ledger import NOT_YET
from reluflow.claims.run import evaluate, run_check
from reluflow.landscape import constants
from reluflow.papers.bf24.claims import alignment as bf24_alignment
from reluflow.papers.bf24.claims import assumptions as bf24_assumptions
from reluflow.papers.bf24.claims import early as bf24_early
from reluflow.papers.bf24.claims import growth as bf24_growth
from reluflow.papers.bf24.claims import landscape as bf24_landscape
from reluflow.papers.bf24.claims import late as bf24_late
from reluflow.papers.bf24.claims import line as bf24_line
from reluflow.papers.bf24.claims import remarks as bf24_remarks
from reluflow.papers.bf24.claims.late import Late, mixed_neurons
from reluflow.papers.bf24.claims.remarks import best_single, search_best_fit
from reluflow.papers.bf24.data import (
    dominance,
    least_mean,
    margins,
    negative_neurons_fade,
    smooth_loss,
    stays_on_faces,
)
from reluflow.papers.bf24.runs import PhasedRun, aligning_run, converged_run, run_in_phases
from reluflow.trajectory.states import States

PHASES = ("L5", "L6", "L16", "L17", "L18", "L19", "L20", "L21", "L22", "L23", "L24", "C1")


def status_of(name, evidence):
    return evaluate(load_all()[name], evidence).status


def misses(name, evidence):
    """Whether a bound is missed; where the scale of the start is unchecked that is UNDECIDED."""
    verdict = evaluate(load_all()[name], evidence)
    assert verdict.status is (
        Status.UNDECIDED if any(h.ok is None for h in verdict.hypotheses) else Status.FAILS
    )
    return verdict.deciding.status is Status.FAILS


def test_every_id_has_a_check():
    assert [entry.id for entry in ledger("BF24") if entry.module == NOT_YET] == []


def test_numbers_of_figure_2():
    known = constants(datasets.three_points())
    assert bf24_alignment.log_defect_constant(known, 1.0) == pytest.approx(55.7, abs=0.05)
    assert np.exp(known.log_scale_bound(1.0)) == pytest.approx(0.013979, abs=5e-7)
    assert np.exp(known.log_scale_bound(0.1)) == pytest.approx(5.27e-4, abs=5e-7)


def test_a_bent_run_fails(with_states):
    good = run_in_phases(0, 60)
    story = PhasedRun(good)
    second, third = story.second, story.third
    who = np.flatnonzero(story.positive)[0]

    def turn(W, a):  # one positive neuron turns away within phase 2b
        W[second : third - 3, who] *= -1.0

    def grow(W, a):  # and is larger for a moment of the last phase
        W[third + 40 : third + 42, who] *= 3.0
        a[third + 40 : third + 42, who] *= 3.0

    def swell(W, a):  # all are larger at one record of it
        W[third + 40] *= 2.0
        a[third + 40] *= 2.0

    for change, names in ((turn, ("L5", "L17")), (grow, ("L24", "C1")), (swell, ("L19",))):
        bad = Evidence.of(good.problem, with_states(good.run, change))
        for name in names:
            assert status_of(f"BF24-{name}", good) is Status.HOLDS
            assert misses(f"BF24-{name}", bad), name


def test_neurons_that_turn_at_tau_refute_alignment(with_states):
    """Whether the bound says something is known from the data, not from the neurons refuting it."""
    name = "BF24-T1/repaired/ii"
    check = load_all()[name]
    good = check.example(seed=0, **check.sizes["quick"])
    grown = np.flatnonzero(good.start.a > 0)[:3]

    def turn(W, a):
        W[1:, grown] *= -1.0

    bad = Evidence.of(good.problem, with_states(good.run, turn))
    assert status_of(name, good) is Status.HOLDS
    assert status_of(name, bad) is Status.FAILS


def test_two_records_are_too_few_for_a_rate():
    problem = datasets.assumption3_box(rng=0)
    net = initialize(problem, 30, scale=1e-4, kind="dominated", rng=0)
    run = flow(problem, net, t_end=900.0, save=[0.0, 900.0])
    verdict = evaluate(load_all()["BF24-L22"], Evidence.of(problem, run))
    assert verdict.status is Status.OUT_OF_SCOPE


def test_a_short_run_and_other_data_are_out_of_scope():
    early = aligning_run(0, 40)  # Figure 2 fails Assumption 5
    for name in PHASES:
        assert status_of(f"BF24-{name}", early) is Status.OUT_OF_SCOPE


def test_hypotheses_and_information_are_told_apart():
    verdict = evaluate(load_all()["BF24-T1/repaired/ii-practical"], aligning_run(0, 60))
    states = {h.name.split(":")[0].split(" (")[0]: h.ok for h in verdict.hypotheses}
    assert states["lambda < lambda*"] is True
    assert states["the bound is informative"] is False


def test_assumption_6():
    assert margins(datasets.a3c()).residual == pytest.approx(1 / 3)
    assert negative_neurons_fade(Evidence.of(datasets.three_points())).ok
    valley = Problem(np.array([[-0.95, 1.0], [0.0, 1.0], [0.95, 1.0]]), np.array([0.1, 1.0, 0.1]))
    assert not negative_neurons_fade(
        Evidence.of(valley)
    ).ok  # residuals of the outer points are negative
    assert least_mean(datasets.three_points()) == pytest.approx(0.3)


def test_best_single_neuron_is_the_line_on_figure_2():
    problem = datasets.three_points()
    assert best_single(problem) == pytest.approx(problem.known["limit_mse"], abs=1e-12)


def test_descent_drifts_and_flow_does_not():
    assert bf24_early.flow_keeps_balance(0, 10, 10.0).status is Status.HOLDS
    assert bf24_early.euler_drifts_by_a_square(0, 10, 50).status is Status.HOLDS
    problem = datasets.three_points()
    net = initialize(problem, 10, scale=1.0, kind="gaussian", rng=0)
    W, a = descend(problem, net, lr=0.05, steps=200).final.weights()
    before = net.weights()
    gap = (a**2 - np.sum(W**2, axis=1)) - (before[1] ** 2 - np.sum(before[0] ** 2, axis=1))
    assert np.abs(gap).max() > 1e-6  # so the bound of 1e-10 on the flow can fail


def test_a_growing_mixed_neuron_fails(with_states):
    good = run_in_phases(1, 60)
    story = Late(good)
    assert status_of("BF24-L20", good) is Status.HOLDS
    who = np.flatnonzero(mixed_neurons(story, story.anchor))[0]
    last = max(k for k, i in enumerate(story.records) if mixed_neurons(story, story.path[i])[who])
    first, size = story.records.start, np.linspace(0.0, 5.0, last + 1)

    def grow(W, a):
        for k in range(last + 1):
            W[first + k, who] *= np.exp(size[k])
            a[first + k, who] *= np.exp(size[k])

    def join(W, a):  # a neuron becomes mixed near the end
        W[-5, who] = W[first, who]

    for change in (grow, join):
        bad = Evidence.of(good.problem, with_states(good.run, change))
        assert misses("BF24-L20", bad)


def test_exponents_are_those_of_the_proof():
    assert bf24_growth.bundle_tightens(3, 60, (-14.0, -18.0, -22.0))[0].measured == pytest.approx(
        2.0, abs=0.05
    )
    for check in (bf24_late.push_is_of_order_eps3, bf24_late.moves_are_of_order_eps3):
        for found in check(0, 60, (1e-4, 1e-5)):
            assert found.measured == pytest.approx(1.0, abs=0.02)


def test_pair_defect_agrees_with_its_definition():
    story = PhasedRun(run_in_phases(0, 60))
    v = story.path[5].W / story.path[5].a[:, None]
    v = v[story.positive]
    direct = (1 - v @ v.T).max()
    found = bf24_growth._pair_defect(story, 5)
    assert direct <= found * (1 + 1e-9)  # two maxima, taken apart
    assert found <= 2 * direct


def test_the_threshold_alone_leaves_neurons_between():
    found = bf24_alignment.threshold_alone(aligning_run(0, 200))
    assert [h.ok for h in found.hypotheses] == [True] * 4
    assert found.comparisons[0].status is Status.FAILS
    small = aligning_run(0, 200, -320.0, 120.0)
    assert status_of("BF24-T1/printed/ii", small) is Status.HOLDS  # small enough for eps = 1/4
    assert status_of("BF24-T1/printed/ii-eps", small) is Status.FAILS  # and not for eps = 1/200


def test_best_fit_is_found():
    x = np.linspace(-1, 1, 12)
    y = 2 * np.maximum(x - 0.3, 0) - np.maximum(-x - 0.2, 0)
    problem = Problem(x[:, None], y, bias=1.0)
    rng = np.random.default_rng(0)
    assert search_best_fit(problem, 2, 20, rng) < 1e-12
    one = search_best_fit(problem, 1, 20, rng)
    assert one > 1e-3
    assert search_best_fit(problem, 1, 40, np.random.default_rng(1)) == pytest.approx(one, rel=1e-6)


def statuses(comparisons):
    return {c.what: c.status for c in comparisons}


def shortened(run, records):
    """The run as if it had ended after so many records."""
    nets = run.networks
    states = States(nets.W[:records], nets.a[:records], nets.log_scale[:records], bias=nets.bias)
    cut = {name: getattr(run, name)[:records] for name in ("steps", "times", "loss", "log_loss")}
    return replace(run, networks=states, final=states[-1], **cut)


@pytest.mark.parametrize("change", [{"loss": "square"}, {"reduction": "sum"}])
def test_theorem_1_asks_for_assumption_1(change):
    good = aligning_run(0, 60)
    other = Evidence.of(good.problem.replace(**change), good.run)
    assert smooth_loss(good).ok
    assert not smooth_loss(other).ok
    for name in ("T1/repaired/i", "T1/repaired/ii", "T1/printed/ii", "L13"):
        assert status_of(f"BF24-{name}", other) is Status.OUT_OF_SCOPE
    assert status_of("BF24-T3/ii", other) is Status.OUT_OF_SCOPE


def test_general_position_and_the_rule_at_ridges_are_hypotheses():
    good = aligning_run(0, 60)
    X = datasets.three_points().X
    twice = Problem(np.vstack([X, 2 * X[:1]]), np.array([1.0, 0.5, 0.7, 0.2]))
    assert bf24_landscape.generic_data(good).ok
    assert bf24_landscape.generic_data(Evidence.of(twice)).ok is False
    assert bf24_landscape.generic_data(Evidence.of(Problem(np.eye(3)[:2], np.ones(2)))).ok is None
    assert stays_on_faces(good).ok
    leaving = flow(good.problem, good.start, t_end=0.1, on_branch="leave", save=[0.0, 0.1])
    assert stays_on_faces(Evidence.of(good.problem, leaving)).ok is None


def test_an_end_better_than_one_neuron_is_not_the_best_fit_of_one(monkeypatch):
    problem = datasets.assumption3_box(0.09, 0)
    x1, _, x3 = problem.X
    left, right = np.array([-x3[1], x3[0]]), np.array([x1[1], -x1[0]])  # inactive on x3, on x1
    W = np.array([[0.0, 1.0], left - 0.1 * x3, right - 0.1 * x1])
    a = np.linalg.solve(np.maximum(problem.X @ W.T, 0.0), problem.y)
    exact = Network(W, a)
    assert np.allclose(problem.outputs(exact), problem.y)
    monkeypatch.setattr(bf24_remarks, "ends_of_flows", lambda *args: [(problem, exact)])
    (found,) = bf24_remarks.best_with_its_neurons(0, 1, 20).comparisons
    assert found.status is Status.FAILS
    assert found.measured == pytest.approx(bf24_remarks.best_single(problem))


def test_lemma_4_sees_an_idle_neuron_move_and_neurons_that_do_not_align(with_states, monkeypatch):
    good = converged_run(0, 50)
    idle = np.flatnonzero(dead(good.problem, good.start))[0]

    def nudge(W, a):
        W[-1, idle] *= 1 + 1e-12

    assert status_of("BF24-L4", good) is Status.HOLDS
    assert misses("BF24-L4", Evidence.of(good.problem, with_states(good.run, nudge)))

    def frozen(seed, m, log_scale):
        made = run_in_phases(seed, m, log_scale)

        def stop(W, a):
            W[:], a[:] = W[0], a[0]

        return Evidence.of(made.problem, with_states(made.run, stop))

    logs = (-40.0, -60.0)
    assert bf24_growth.bundle_aligns(0, 60, logs)[0].status is Status.HOLDS
    monkeypatch.setattr(bf24_growth, "run_in_phases", frozen)
    assert bf24_growth.bundle_aligns(0, 60, logs)[0].status is Status.FAILS


def test_lemma_6_fails_when_the_line_is_never_reached(with_states):
    good = run_in_phases(0, 60)
    story = PhasedRun(good)
    assert status_of("BF24-L6", good) is Status.HOLDS

    def smaller(W, a):
        a[story.second + 1 :] *= 0.7

    bad = Evidence.of(good.problem, with_states(good.run, smaller))
    assert PhasedRun(bad).third is None
    assert misses("BF24-L6", bad)
    brief = Evidence.of(good.problem, shortened(good.run, story.second + 2))
    assert status_of("BF24-L6", brief) is Status.OUT_OF_SCOPE


def test_the_sixteen_neurons_keep_their_sign():
    run = run_in_phases(0, 60, -20.0).run  # balanced up to rounding one of them would turn and grow
    assert (run.networks.a[:, :16] < 0).all()
    assert run.loss[-1] == pytest.approx(run.loss[-2], rel=1e-12)


def test_assumption_4_gives_the_largest_gradient():
    found = bf24_assumptions.one_extremal_vector(Evidence.of(datasets.a3c())).comparisons
    assert found[-1].measured == pytest.approx(0.716667, abs=5e-7)
    below = Problem(datasets.a3c().X, np.array([1.0, -1.5, 1.0]))  # outside Assumption 4
    spoilt = bf24_assumptions.one_extremal_vector(Evidence.of(below)).comparisons
    assert spoilt[-1].status is Status.FAILS


def test_kinds_are_compared_with_values_of_G(monkeypatch):
    def swapped(problem):
        found = true(problem)
        other = {"max": "min", "min": "max"}
        return replace(found, kinds=tuple(other.get(k, k) for k in found.kinds))

    what = "vectors of another kind than values of G show"
    assert statuses(bf24_landscape.extremal_by_definition(5, 3))[what] is Status.HOLDS
    true = bf24_landscape.extremal_without_basins
    monkeypatch.setattr(bf24_landscape, "extremal_without_basins", swapped)
    assert statuses(bf24_landscape.extremal_by_definition(5, 3))[what] is Status.FAILS


def test_lemma_14_is_mirrored(monkeypatch):
    found = statuses(bf24_landscape.kinds_of_extrema(0, 5))
    assert set(found.values()) == {Status.HOLDS}
    true = bf24_landscape.kinds_by_sampling
    turned = {"max": "min", "min": "max"}
    monkeypatch.setattr(
        bf24_landscape, "kinds_by_sampling", lambda *args: [turned.get(k, k) for k in true(*args)]
    )
    found = statuses(bf24_landscape.kinds_of_extrema(0, 5))
    assert found["minima of neither kind"] is found["maxima of neither kind"] is Status.FAILS


def test_lemma_11_speaks_of_zero_faces_too(monkeypatch):
    assert set(statuses(bf24_landscape.faces_survive(0, 4, 5)).values()) == {Status.HOLDS}
    true = bf24_landscape.constants
    monkeypatch.setattr(
        bf24_landscape, "constants", lambda p: replace(true(p), delta_0=1e4 * true(p).delta_0)
    )
    assert statuses(bf24_landscape.faces_survive(0, 4, 5))["extremal faces lost"] is Status.FAILS


def test_theorem_4_as_printed_rests_on_its_assumptions():
    verdict = run_check(load_all()["BF24-T4/printed"])
    assert verdict.status is Status.FAILS
    assert [h.ok for h in verdict.hypotheses] == [True] * 7
    assert "Assumption 6" in verdict.quoted


@pytest.mark.parametrize("kind", ["balanced", "dominated"])
def test_theorem_2_on_the_symmetric_points(kind):
    made = converged_run(0, 50, kind)
    assert made.problem.outputs(made.final) == pytest.approx(0.716667, abs=5e-7)
    error = bf24_line.learns_the_line(made)[1]
    assert error.status is Status.HOLDS
    assert error.bound == pytest.approx(0.2222222, abs=5e-8)
    small = made.final.scaled(0.99)
    assert bf24_line.learns_the_line(Evidence(made.problem, made.start, net=small))[1].status is (
        Status.FAILS
    )


def test_the_boxes():
    drawn = datasets.assumption3_box(0.1, 3)
    u = 1.0 - np.random.default_rng(3).random(9)
    X, y = bf24_assumptions.box_points(u[None], 0.1)
    assert np.allclose(X[0], drawn.X)
    assert np.allclose(y[0], drawn.y)
    assert bf24_assumptions.box_margins(u[None], 0.1)[0] == pytest.approx(dominance(drawn))
    assert bf24_assumptions.least_weight(1 / 6) == pytest.approx(18 / 77)
    assert bf24_assumptions.worst_corner(0.0976) > 0 > bf24_assumptions.worst_corner(0.0977)


def test_lemmas_20_and_21_say_when_there_is_nothing_to_see(with_states, monkeypatch):
    good = run_in_phases(1, 60)
    story = Late(good)
    ever = np.any([mixed_neurons(story, net) for net in story.path], axis=0) & ~story.positive

    def remove(W, a):
        W[:, ever], a[:, ever] = 0.0, 0.0

    empty = Evidence.of(good.problem, with_states(good.run, remove))
    for name, evidence in (("BF24-L20", good), ("BF24-L21", good)):
        assert status_of(name, evidence) is Status.HOLDS
    assert status_of("BF24-L20", empty) is Status.OUT_OF_SCOPE
    monkeypatch.setattr(bf24_late, "ROUNDING", 10.0)
    assert status_of("BF24-L21", good) is Status.OUT_OF_SCOPE


def test_perturbations_tell_a_minimum():
    made = converged_run(0, 50, "dominated")
    reach = np.full(made.start.m, 1e-2)
    rng = np.random.default_rng(0)
    assert (
        bf24_remarks.changes_of_loss(made.problem, made.start, reach, rng)[0] < -1e-4
    )  # the start is none
