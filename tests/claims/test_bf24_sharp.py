"""[BF24]_: hypotheses that broke nothing and conclusions that could not fail, now do."""

from dataclasses import replace

import numpy as np
import pytest

from reluflow import Network, Problem, datasets, flow
from reluflow.claims import Evidence, Status
from reluflow.claims.claim import load_all
from reluflow.claims.invariants import dead
from reluflow.claims.run import evaluate, run_check
from reluflow.papers.bf24.claims import assumptions as bf24_assumptions
from reluflow.papers.bf24.claims import growth as bf24_growth
from reluflow.papers.bf24.claims import landscape as bf24_landscape
from reluflow.papers.bf24.claims import late as bf24_late
from reluflow.papers.bf24.claims import line as bf24_line
from reluflow.papers.bf24.claims import remarks as bf24_remarks
from reluflow.papers.bf24.claims.late import Late, mixed_neurons
from reluflow.papers.bf24.data import dominance, smooth_loss, stays_on_faces
from reluflow.papers.bf24.runs import Story, aligning_run, converged_run, run_in_phases
from reluflow.trajectory.states import States


def status_of(name, evidence):
    return evaluate(load_all()[name], evidence).status


def misses(name, evidence):
    """Whether a bound is missed; where the scale of the start is unchecked that is UNDECIDED."""
    verdict = evaluate(load_all()[name], evidence)
    assert verdict.status is (
        Status.UNDECIDED if any(h.ok is None for h in verdict.hypotheses) else Status.FAILS
    )
    return verdict.deciding.status is Status.FAILS


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
    story = Story(good)
    assert status_of("BF24-L6", good) is Status.HOLDS

    def smaller(W, a):
        a[story.second + 1 :] *= 0.7

    bad = Evidence.of(good.problem, with_states(good.run, smaller))
    assert Story(bad).third is None
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
