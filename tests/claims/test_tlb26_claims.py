"""[TLB26]_: the whole ledger, the runs behind its lemmas, and controls that must fail."""

import math
from dataclasses import replace

import numpy as np
import pytest

from reluflow import Network, datasets
from reluflow.claims import Status, ledger
from reluflow.claims.claim import load_all
from reluflow.claims.run import run_check
from reluflow.claims.tlb26_counting import failure_log, halvings, halvings_needed
from reluflow.claims.tlb26_jumps import rise
from reluflow.claims.tlb26_lemmas import falls, hitting
from reluflow.claims.tlb26_runs import course, draws, golden_course


def test_no_claim_is_left_without_a_check():
    assert [entry.id for entry in ledger("tlb26") if not entry.checks] == []


def test_draws_obey_their_filters_and_do_not_depend_on_the_count():
    few, many = draws(3, 2), draws(3, 4)
    assert all(a[1] is b[1] for a, b in zip(few, many, strict=False))
    for problem, net in many:
        assert (problem.X @ net.W.T > 0).any(axis=1).all()
        assert np.ptp(net.log_norms) < 1e-12


def test_golden_course_against_closed_forms():
    known = datasets.golden().known
    c = golden_course(-200.0)
    assert c.order_right
    assert c.carried
    assert c.half_fits[0] == pytest.approx(200 * known["jump_times"][0]
                                           + known["first_half_fit_offset"], abs=1e-6)  # fmt: skip
    assert np.allclose(
        c.half_fits - 200 * known["jump_times"], [0.77379, 0.9833, 1.1175], atol=1e-4
    )
    assert rise(c, 0, 0.1, 0.9) == pytest.approx(4 * math.log(9) / 5, rel=1e-6)
    assert c.norm2 == pytest.approx(16.0, abs=1e-7)
    assert hitting(c, 0)[1][0] == pytest.approx(math.log(1e-3))


def test_a_wrong_prediction_is_seen():
    """Controls: another process beside the same run, errors that grow."""
    c = golden_course(-200.0)
    other = golden_course(-200.0).process
    turned = replace(other, times=other.times * 1.3)
    wrong = replace(c, process=turned)
    assert wrong.hypothesis[:, 0].max() > 10 * c.hypothesis[:, 0].max()
    mixed_up = replace(c, process=replace(other, samples=other.samples[::-1]))
    assert not mixed_up.order_right
    assert not mixed_up.carried
    assert falls(np.array([[1.0], [0.5], [0.6]]), "x").status is Status.FAILS
    assert falls(np.array([[1.0], [0.5], [0.2]]), "x").status is Status.HOLDS


def test_halvings():
    left, fine = halvings(np.random.default_rng(0), 500, 4096, halvings_needed(4096))
    assert left.shape == (500, 10)
    assert 0 < fine.sum() < 500
    assert (np.diff(left, axis=1) <= 0).all()
    assert left[fine, -1].max() <= 64
    # vacuous at usual sizes, informative only at sizes nobody has
    assert failure_log(math.log(4096), math.log(96)) > 0
    assert failure_log(100 * math.log(10), math.log(2000)) < 0


def test_c1_says_from_where_its_bound_speaks():
    verdict = run_check(load_all()["TLB26-C1"])
    assert verdict.status is Status.OUT_OF_SCOPE
    assert not verdict.surprising
    assert "falls below 1 from about n = 1e" in verdict.note


@pytest.mark.parametrize("name", ["TLB26-P2", "TLB26-P4", "TLB26-P6", "TLB26-D1"])
def test_other_seeds(name):
    assert run_check(load_all()[name], seed=5).status is Status.HOLDS


def test_a_broken_start_ends_otherwise():
    """Control of T1's subject: with a zero row of the mask the run does not interpolate."""
    problem = datasets.golden()
    W = np.array([[1.0, 1, -1, -1], [-1, 1, 1, -1]]) / 2
    c = course(problem, Network(W, np.ones(2)), -100.0)
    assert c.process.ending == "spurious"
    assert c.run.loss[-1] == pytest.approx(1 / 8)
