"""[BF24]_ Sections 3 and 4: a corrupted run fails, a broken hypothesis is out of scope."""

import numpy as np
import pytest

from reluflow import Problem, datasets, initialize
from reluflow.claims import Evidence, Status, ledger
from reluflow.claims.claim import load_all
from reluflow.claims.ledger import NOT_YET
from reluflow.claims.run import evaluate
from reluflow.gradientflow import flow
from reluflow.landscape import constants
from reluflow.papers.bf24.claims import alignment as bf24_alignment
from reluflow.papers.bf24.claims.remarks import best_single
from reluflow.papers.bf24.data import least_mean, margins, negative_neurons_fade
from reluflow.papers.bf24.runs import Story, aligning_run, run_in_phases

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
    story = Story(good)
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
