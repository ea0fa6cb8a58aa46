"""[TLB26]_: the whole ledger, the runs behind its lemmas, and controls that must fail."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from reluflow import Network, datasets, initialize
from reluflow.claims import Status, ledger
from reluflow.claims.claim import load_all
from reluflow.claims.evidence import Evidence
from reluflow.claims.run import evaluate, run_check
from reluflow.claims.verdict import decide
from reluflow.papers.tlb26.claims import lemmas as tlb26_lemmas
from reluflow.papers.tlb26.claims import norms as tlb26_norms
from reluflow.papers.tlb26.claims import orthonormal as tlb26_orthonormal
from reluflow.papers.tlb26.claims.jumps import rise_time
from reluflow.papers.tlb26.claims.lemmas import falls, hitting_time, inverse_log, power
from reluflow.papers.tlb26.claims.norms import (
    _weights_against_formulas,
    failure_log,
    halvings,
    halvings_needed,
    success_probability,
)
from reluflow.papers.tlb26.runs import course, draws, golden_course
from reluflow.prediction.limit import limit
from reluflow.prediction.orthogonal import algorithm1


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
    assert c.fitted_in_order
    assert c.carried_as_predicted
    assert c.half_fits[0] == pytest.approx(
        200 * known["jump_times"][0] + known["first_half_fit_offset"], abs=1e-6
    )
    assert np.allclose(
        c.half_fits - 200 * known["jump_times"], [0.77379, 0.9833, 1.1175], atol=1e-4
    )
    assert rise_time(c, 0, 0.1, 0.9) == pytest.approx(4 * math.log(9) / 5, rel=1e-6)
    assert c.norm2 == pytest.approx(16.0, abs=1e-7)
    assert hitting_time(c, 0)[1][0] == pytest.approx(math.log(1e-3))


def test_a_wrong_prediction_is_seen():
    """Controls: another process beside the same run, errors that grow."""
    c = golden_course(-200.0)
    other = golden_course(-200.0).process
    turned = replace(other, times=other.times * 1.3)
    wrong = replace(c, process=turned)
    assert wrong.hypothesis[:, 0].max() > 10 * c.hypothesis[:, 0].max()
    mixed_up = replace(c, process=replace(other, samples=other.samples[::-1]))
    assert not mixed_up.fitted_in_order
    assert not mixed_up.carried_as_predicted
    three = [golden_course(-x) for x in (25.0, 100.0, 250.0)]
    once = inverse_log(three)  # 1/2 and 0.63
    assert falls(np.array([[1.0], [0.4], [0.3]]), once, "x").status is Status.FAILS
    assert falls(np.array([[1.0], [0.4], [0.2]]), once, "x").status is Status.HOLDS
    assert falls(np.full((3, 2), 0.2), once, "x").status is Status.FAILS
    assert falls(np.full((3, 4), 0.2), power(three), "x").status is Status.FAILS
    assert falls(np.full((3, 4), 1e-9), power(three), "x").status is Status.HOLDS


def test_powers_by_hand():
    """Golden case before the first jump at 0.8: rates 5/4, sqrt(13)/4, sqrt(5)/4."""
    c = golden_course(-100.0)
    assert c.powers[0] == pytest.approx(0.5 * 0.8 * math.sqrt(5) / 4)
    assert c.powers[2] == pytest.approx(0.25 * (2.3216923 - 1.3577795) / 4, rel=1e-6)  # to jump 3


@pytest.mark.parametrize("name", ["TLB26-H1", "TLB26-L1", "TLB26-L2", "TLB26-L9"])
def test_errors_that_stay_are_seen(name, monkeypatch):
    """Controls: beside runs of the golden case jumps 10 % late, weights 10 % too large."""
    runs = [golden_course(-x) for x in (23.0, 92.0, 230.0)]
    monkeypatch.setattr(tlb26_lemmas, "courses", lambda *_: [runs])
    check = load_all()[name]
    assert run_check(check).status is Status.HOLDS
    saddles = [net.scaled(math.log(1.1)) for net in runs[0].process.networks]
    wrong = replace(runs[0].process, times=1.1 * runs[0].process.times, networks=saddles)
    monkeypatch.setattr(
        tlb26_lemmas, "courses", lambda *_: [[replace(c, process=wrong) for c in runs]]
    )
    assert run_check(check).status is Status.FAILS


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
    assert verdict.comparisons[0].measured < 0  # some runs halve nine times


def test_c1_fails_where_more_runs_miss_than_its_bound(monkeypatch):
    monkeypatch.setattr(tlb26_norms, "failure_log", lambda *_: -5.0)
    assert run_check(load_all()["TLB26-C1"]).status is Status.FAILS


def test_success_probability_by_enumeration():
    n, m, N = 3, 2, 1
    fine = 0
    for bits in itertools.product([False, True], repeat=n * m):
        for signs in itertools.product([1, -1], repeat=m):
            same = np.outer([1, -1, -1], signs) > 0
            M = np.reshape(bits, (n, m)) & same
            distinct = len(np.unique(M, axis=1).T) == m
            fine += bool(M.any(axis=0).all() and M.any(axis=1).all() and distinct)
    assert success_probability(n, m, N) == fine / 2 ** (n * m + m)
    cases = {(32, 24, 16): 0.96789, (32, 32, 16): 0.99260, (16, 20, 8): 0.60835}
    for case, known in cases.items():
        assert success_probability(*case) == pytest.approx(known, abs=5e-6)


def test_a3_names_what_one_draw_cannot_show():
    verdict = run_check(load_all()["TLB26-A3"])
    assert verdict.status is Status.MET
    assert [h.state for h in verdict.hypotheses] == ["ok", "unchecked", "unchecked"]
    problem = datasets.orthonormal(16, rng=0)
    for m, status in ((6, Status.MET), (40, Status.OUT_OF_SCOPE)):
        start = initialize(problem, m, kind="sphere", normalize="none", signs=1, rng=0)
        found = evaluate(load_all()["TLB26-A3"], Evidence.of(problem, start=start))
        assert found.status is status


def test_norms_are_those_of_weights():
    process = golden_course(-100.0).process
    assert _weights_against_formulas(process).max() < 1e-12
    wrong = replace(process, networks=[net.scaled(0.01) for net in process.networks])
    assert _weights_against_formulas(wrong)[0] == pytest.approx(math.expm1(0.02))


def test_other_sets_apart_are_seen(monkeypatch):
    """Control of D1: systems apart that fit their samples in another order."""
    monkeypatch.setattr(tlb26_orthonormal, "_union_against_parts", lambda *_: 0.0)
    check = load_all()["TLB26-D1"]
    assert run_check(check).status is Status.HOLDS

    def turned(y, **given):
        process = algorithm1(y, **given)
        return process if np.all(y) else replace(process, samples=process.samples[::-1])

    monkeypatch.setattr(tlb26_orthonormal, "algorithm1", turned)
    assert run_check(check).comparisons[0].status is Status.FAILS


@pytest.mark.parametrize("name", ["TLB26-P2", "TLB26-P4", "TLB26-P6", "TLB26-D1"])
def test_other_seeds(name):
    assert run_check(load_all()[name], seed=5).status is Status.HOLDS


def test_ties_and_constants_that_are_ignored_are_seen(monkeypatch):
    """Controls of A4 and T1: no word of a tie, times without what a neuron gains or loses."""
    tie, golden = load_all()["TLB26-A4/control/tie"], load_all()["TLB26-T1"]
    assert run_check(tie).status is run_check(golden).status is Status.HOLDS

    def untied(y, **given):
        return replace(algorithm1(y, **given), ending="interpolates")

    monkeypatch.setattr(tlb26_orthonormal, "algorithm1", untied)
    assert run_check(tie).status is Status.FAILS

    def early(*given):
        process = algorithm1(*given)
        return replace(process, offsets=process.offsets * [1.0, 1.0, 1.1])

    monkeypatch.setattr(tlb26_orthonormal, "algorithm1", early)
    assert run_check(golden).status is Status.FAILS
    monkeypatch.undo()
    monkeypatch.setattr(
        tlb26_orthonormal, "limit", lambda *a: replace(limit(*a), times=1.05 * limit(*a).times)
    )
    assert run_check(golden).status is Status.FAILS


@pytest.mark.parametrize("method", ["algorithm1", "limit"])
def test_another_number_of_jumps_fails(monkeypatch, method):
    """Control of T1: a prediction that forgets the last neuron has two jumps of three."""
    true = getattr(tlb26_orthonormal, method)
    monkeypatch.setattr(tlb26_orthonormal, method, lambda p, net: true(p, net.subset([0, 1])))
    (found,) = (verdict := run_check(load_all()["TLB26-T1"])).comparisons
    assert verdict.status is Status.FAILS
    assert found.what == f"{method}: jumps"
    assert (found.measured, found.bound) == (2, 3)


def test_b22_and_e15_do_not_rest_on_algorithm_1(monkeypatch):
    """Their flows and programs hold, and a neuron that misses a sample is seen by the flow."""
    names = {"TLB26-B22": {"draws": 2, "flows": 1}, "TLB26-E15/minimal": {"draws": 2, "n": 4}}
    for name, given in names.items():
        check = load_all()[name]
        assert decide(check.experiment(seed=3, **given), ()) is Status.HOLDS

    def uncovered(rng):
        y, signs, mask = true(rng)
        mask[np.argmax(y), 0] = False  # the largest neuron misses one sample
        return y, signs, mask

    true = tlb26_norms._covered_by_two
    monkeypatch.setattr(tlb26_norms, "_covered_by_two", uncovered)
    found = tlb26_norms.one_neuron_per_sign(3, 1, 1)
    assert any(c.what.startswith("flow") and c.status is Status.FAILS for c in found)


def test_t4_is_illustrated_only():
    verdict = run_check(load_all()["TLB26-T4"])
    assert verdict.status is verdict.expected is Status.ILLUSTRATED


def test_a_broken_start_ends_otherwise():
    """Control of T1's subject: with a zero row of the mask the run does not interpolate."""
    problem = datasets.golden()
    W = np.array([[1.0, 1, -1, -1], [-1, 1, 1, -1]]) / 2
    c = course(problem, Network(W, np.ones(2)), -100.0)
    assert c.process.ending == "spurious"
    assert c.run.loss[-1] == pytest.approx(1 / 8)
