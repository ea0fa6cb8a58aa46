"""[BF24]_: lists, constants and laws beside definitions written out apart; slips and controls."""

import math
from dataclasses import replace

import numpy as np
import pytest

from reluflow import Problem, datasets, extremal_vectors, flow, initialize
from reluflow.claims import Status
from reluflow.claims.claim import load_all
from reluflow.claims.ledger import entry
from reluflow.claims.run import as_found, run_check
from reluflow.landscape.constants import Constants, constants
from reluflow.papers.bf24.claims import assumptions as bf24_assumptions
from reluflow.papers.bf24.claims import early as bf24_early
from reluflow.papers.bf24.claims import growth as bf24_growth
from reluflow.papers.bf24.claims import landscape as bf24_landscape
from reluflow.papers.bf24.claims import line as bf24_line
from reluflow.papers.bf24.claims import remarks as bf24_remarks
from reluflow.papers.bf24.planar import (
    count_unmatched,
    extremal_by_patterns,
    planar_constants,
    planar_faces,
)
from reluflow.papers.bf24.runs import aligning_run, state_at


def statuses(outcome):
    return {c.what: c.status for c in as_found(outcome).comparisons}


def failing(outcome):
    return {what for what, status in statuses(outcome).items() if status is not Status.HOLDS}


def test_patterns_of_two_samples():
    """Two correlated samples with positive labels: D* = (y_1 x_1 + y_2 x_2)/2 alone; with labels
    of both signs one maximum and one minimum, on either side."""
    X = np.array([[1.0, 0.2], [0.2, 1.0]])
    vectors, values = extremal_by_patterns(Problem(X, np.array([2.0, 1.0])))
    D = np.array([1.1, 0.7])
    assert values == pytest.approx([np.linalg.norm(D)])
    assert vectors[0] == pytest.approx(D / np.linalg.norm(D))
    assert sorted(np.sign(extremal_by_patterns(Problem(X, np.array([2.0, -1.0])))[1])) == [-1, 1]
    assert count_unmatched(vectors, np.empty((0, 2))) == 1
    assert count_unmatched(vectors, -vectors) == 1


def test_planar_faces_cover_the_circle():
    problem = datasets.three_points()
    made = planar_faces(problem)
    arcs = [face.high - face.low for face in made]
    assert len(made) == 12
    assert sum(arcs) == pytest.approx(2 * math.pi)
    known = planar_constants(problem)
    assert known.D_max == pytest.approx(np.linalg.norm(problem.known["D_star"]))
    assert known.tau(math.log(1e-3), 0.25) == pytest.approx(2.415, abs=5e-4)
    assert math.exp(known.log_scale_bound(1.0, 0.25)) == pytest.approx(0.013979, abs=5e-7)


def test_a_missing_vector_is_seen(monkeypatch):
    """The lowest critical point dropped, then one listed that is none."""
    true = bf24_landscape.extremal_without_basins

    def without(problem):
        found = true(problem)
        keep = np.flatnonzero(np.abs(found.values) > 0)[:-1]
        return cut(found, keep)

    def cut(found, keep):
        return replace(
            found,
            vectors=found.vectors[keep],
            values=found.values[keep],
            kinds=tuple(found.kinds[i] for i in keep),
            patterns=found.patterns[keep],
            faces=tuple(found.faces[i] for i in keep),
        )

    assert failing(bf24_landscape.extremal_by_definition(3, 3)) == set()
    monkeypatch.setattr(bf24_landscape, "extremal_without_basins", without)
    assert "extremal vectors that are not listed" in failing(
        bf24_landscape.extremal_by_definition(3, 3)
    )


def test_constants_that_are_off_are_seen(monkeypatch):
    assert failing(bf24_early.constants_by_definition(1, 3)) == set()
    real = Constants.alignment_time
    monkeypatch.setattr(Constants, "alignment_time", lambda *a: 1.05 * real(*a))
    assert failing(bf24_early.constants_by_definition(1, 3)) == {
        "tau: relative difference",
        "tau, Figure 2, lambda = 1e-3",
    }
    monkeypatch.undo()
    bound = Constants.log_scale_bound
    monkeypatch.setattr(Constants, "log_scale_bound", lambda *a: bound(*a) + 0.3)
    assert "log lambda*: relative difference" in failing(bf24_early.constants_by_definition(1, 3))


def test_swapped_basins_are_seen(monkeypatch):
    assert failing(bf24_early.ends_of_neurons(1, 2, 60)) == set()

    def swapped(problem, **given):
        found = extremal_vectors(problem, **given)
        shares = found.basin_fractions
        return found if shares is None else replace(found, basin_fractions=shares[:, ::-1])

    monkeypatch.setattr(bf24_early, "extremal_vectors", swapped)
    assert len(failing(bf24_early.ends_of_neurons(1, 2, 60))) == 1


def test_late_events_are_seen(monkeypatch):
    assert failing(bf24_early.course_of_neurons(1, 1, 15)) == set()
    real = bf24_early.early

    def late(problem, net, t):
        return real(problem, net, 0.95 * np.asarray(t))

    monkeypatch.setattr(bf24_early, "early", late)
    assert failing(bf24_early.course_of_neurons(1, 1, 15)) == {
        "v = w/a, closed form against the flow"
    }


def test_the_law_of_the_ball(monkeypatch):
    """At alpha_0 = 1 every neuron with <D, v> <= 0 is lost; another law has other shares."""
    problem = datasets.three_points()
    shares = [bf24_early.share_of_the_ball(problem, a) for a in (1e-6, 0.5, 1.0)]
    assert shares[0] == pytest.approx(1.0)
    assert shares == sorted(shares, reverse=True)
    active = sum(f.high - f.low for f in planar_faces(problem) if (f.side > 0).any())
    assert shares[2] == pytest.approx(1 - active / (4 * math.pi), abs=1e-9)  # half of them: a < 0
    assert failing(bf24_early.starts_well(0, 30)) == set()

    def other(problem, m, kind, **given):
        net = initialize(problem, m, kind=kind, **given)
        size = np.linalg.norm(net.W, axis=1, keepdims=True) * math.sqrt(m)
        return replace(net, W=net.W * size) if kind == "dominated" else net

    monkeypatch.setattr(bf24_early, "initialize", other)
    assert len(failing(bf24_early.starts_well(0, 30))) >= 2


def test_the_state_at_a_time_between_records():
    made = aligning_run(0, 20)
    t = 0.5 * (made.times[40] + made.times[41])
    exact = flow(made.problem, made.start, t_end=float(t)).final
    assert np.allclose(state_at(made, t).W, exact.W, rtol=1e-6)
    assert state_at(made, float(made.times[40])).W is made.path()[40].W or np.array_equal(
        state_at(made, float(made.times[40])).W, made.path()[40].W
    )
    later = made.path()[41]
    assert not np.allclose(state_at(made, t).W, later.W, rtol=1e-6)


def test_assumption_5_keeps_one_neuron_active_and_its_failure_does_not():
    assert failing(bf24_assumptions.one_neuron_stays_active(2, 1)) == set()
    assert failing(bf24_assumptions.one_neuron_leaves(2, 1)) == set()
    lost = Problem([[-0.9, 1.0], [0.0, 1.0], [0.9, 1.0]], [0.01, 0.02, 2.0])
    rng = np.random.default_rng(0)
    assert bf24_assumptions.least_cosine_of_one_neuron(lost, rng) < 0


def test_assumption_4_on_random_data(monkeypatch):
    assert failing(bf24_assumptions.one_extremal_vector_of_many(2, 1)) == set()

    def mixed(rng, n, d):
        return Problem(rng.standard_normal((n, d)), rng.standard_normal(n))

    monkeypatch.setattr(bf24_assumptions, "positive_set", mixed)
    assert "extremal vectors beyond one, all patterns" in failing(
        bf24_assumptions.one_extremal_vector_of_many(2, 1)
    )


def test_the_threshold_of_width_is_located(monkeypatch):
    power = bf24_remarks.threshold(20, 0.3, -4.0, -0.5, 3)
    assert -3.0 < power < -1.5
    assert math.isnan(bf24_remarks.threshold(20, 0.3, -6.0, -5.0, 3))  # no change in between
    monkeypatch.setattr(bf24_remarks, "threshold", lambda m, *_: -2.2)
    assert failing(bf24_remarks.width_leaves_the_threshold(0, (20, 40, 80), 4)) == set()
    monkeypatch.setattr(bf24_remarks, "threshold", lambda m, *_: -1.0 - 0.5 * math.log10(m))
    found = failing(bf24_remarks.width_leaves_the_threshold(0, (20, 40, 80), 4))
    assert found == {"fall of the threshold, in decades for each decade of width"}


def test_the_first_jump_of_limit_is_the_growth_time(monkeypatch):
    logs = (-14.0, -18.0)
    assert failing(bf24_growth.bundle_tightens(0, 60, logs)) == set()
    real = bf24_growth.limit
    monkeypatch.setattr(
        bf24_growth, "limit", lambda *a: replace(real(*a), times=1.05 * real(*a).times)
    )
    assert failing(bf24_growth.bundle_tightens(0, 60, logs)) == {
        "first jump time of `limit`, times |D*|"
    }


@pytest.mark.parametrize("name", ["BF24-A1/slip", "BF24-L9/slip"])
def test_slips_say_what_is_printed_and_what_is_meant(name):
    verdict = run_check(load_all()[name])
    assert verdict.status is Status.HOLDS
    assert not verdict.surprising
    assert verdict.printed
    assert verdict.meant
    assert "printed" in verdict.text()
    assert entry(verdict.id).expected == "holds"


@pytest.mark.parametrize("name", ["BF24-T1/printed/ii", "BF24-T2/printed", "BF24-L8/printed"])
def test_what_fails_as_printed_meets_all_its_hypotheses(name):
    for seed in (0, 1):
        verdict = run_check(load_all()[name], seed=seed)
        assert verdict.status is Status.FAILS
        assert all(h.ok for h in verdict.hypotheses)
        assert verdict.quoted
        assert "hypotheses as printed" in verdict.text()


def test_the_corner_of_lemma_8():
    """Eta = 0.16: 1.7056 > 2.1125 would be needed."""
    verdict = run_check(load_all()["BF24-L8/printed"])
    assert verdict.measured == pytest.approx(1.7056, abs=1e-4)
    assert verdict.bound == pytest.approx(2.1125, abs=1e-4)


def test_a_gap_that_falls_with_the_scale_refutes_nothing():
    assert bf24_line.gap_stays_open({-10.0: 0.7, -40.0: 0.7}).ok
    assert bf24_line.gap_stays_open({-10.0: 0.7, -40.0: 0.2}).ok is False


def test_constants_in_use_agree_in_the_plane():
    problem = Problem(np.random.default_rng(8).standard_normal((5, 2)), np.ones(5), leak=0.1)
    assert constants(problem).alpha_min == pytest.approx(
        min(planar_constants(problem).alpha_plus, planar_constants(problem).alpha_minus)
    )
