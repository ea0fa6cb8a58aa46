"""The frame of claims: comparisons, verdicts, hypotheses, forms, certify."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluflow import Network, Problem, ReluflowError, datasets, descend, initialize
from reluflow.claims import Evidence, Hypothesis, Status, at_least, at_most, certify, equals
from reluflow.claims.claim import REGISTRY, Check, Found, load_all, predicate, register
from reluflow.claims.run import evaluate, run_check, try_check, verdict_of
from reluflow.claims.verdict import count_statuses, decide, from_dict
from reluflow.report.page import verdict_rows

numbers = st.floats(-1e6, 1e6)
errors = st.floats(0, 1e3)


@given(numbers, numbers, errors)
def test_comparison_is_decided_by_the_error(measured, bound, error):
    below = at_most(measured, bound, error=error).status
    above = at_least(measured, bound, error=error).status
    if measured <= bound - error and bound - measured >= error:
        assert below is Status.HOLDS
    if measured > bound + error and measured - bound > error:
        assert below is Status.FAILS
        assert above is Status.HOLDS
    # mirrored
    assert at_least(-measured, -bound, error=error).status is below


def test_equality_infinities_and_nan():
    assert at_most(1, 1).status is Status.HOLDS
    assert at_most(1, 1, error=1e-9).status is Status.UNDECIDED
    assert at_most(1 + 1e-10, 1, error=1e-9).status is Status.UNDECIDED
    assert at_most(np.inf, np.inf).status is Status.HOLDS
    assert at_most(np.nan, 1).status is Status.UNDECIDED
    assert equals(1.1, 1.0, tolerance=0.2).status is Status.HOLDS
    assert equals(1.3, 1.0, tolerance=0.2).status is Status.FAILS


def test_a_failed_hypothesis_comes_first_and_nothing_decides_nothing():
    bad, good, open_ = (Hypothesis("h", ok) for ok in (False, True, None))
    fails = at_most(2, 1)
    assert decide([fails], [bad, good]) is Status.OUT_OF_SCOPE
    assert decide([fails], [good]) is Status.FAILS
    assert decide([fails], []) is Status.FAILS
    assert decide([fails], [good, open_]) is Status.UNDECIDED  # it refutes nothing
    assert decide([at_most(0, 1), at_most(np.nan, 1)], []) is Status.UNDECIDED
    assert decide([at_most(0, 1)], [good, open_]) is Status.HOLDS
    assert decide([], [good]) is Status.MET
    assert decide([], [open_]) is Status.UNDECIDED
    assert decide([], []) is Status.UNDECIDED


def make(check, **changes):
    made = Check("BF24-L1", "stated", "test", __name__, check=check, **changes)
    return made


def test_verdict_carries_statement_hypotheses_and_survives_json():
    @predicate("nothing is wrong")
    def fine(evidence):
        return True, "looked"

    evidence = Evidence.of(datasets.three_points())
    check = make(
        lambda e: [at_most(1, 2, what="a"), at_most(math.inf, 1, what="b")],
        given=(fine,),
        unchecked=("the moon is full",),
    )
    verdict = evaluate(check, evidence)
    assert verdict.status is Status.UNDECIDED
    assert "not every hypothesis" in verdict.note
    assert verdict.measured == math.inf
    assert verdict.sense == "<="
    assert "a_j^2-|w_j|^2" in verdict.statement
    assert [h.state for h in verdict.hypotheses] == ["ok", "unchecked"]
    text = json.dumps(verdict.to_dict(), allow_nan=False)
    assert from_dict(json.loads(text)) == verdict
    assert "b: inf <= 1" in verdict.line()


def test_notes_and_reasons_reach_the_reader():
    miss = Found([at_most(2, 1, what="size")], (), "Seen: a; b; c; d.")
    check = Check("BF24-T2", "printed", "test", __name__, reason="it was too big")
    verdict = verdict_of(check, miss, (), {}, known=True)
    assert (verdict.expected, verdict.reason) == (Status.FAILS, "it was too big")
    stored = verdict.to_dict()
    assert stored["reason"] == "it was too big"
    assert from_dict(stored) == verdict
    assert from_dict({k: v for k, v in stored.items() if k != "reason"}).reason == ""
    below = [line for line in verdict.text().splitlines()[1:] if "as printed" not in line]
    assert below == ["    Seen: a; b; c; d.", "    remark: it was too big"]
    (row,) = verdict_rows([verdict])
    lines = [line for line in row["measured"] if "as printed" not in line]
    assert lines[:3] == ["counterexample: size: 2 <= 1", "remark: it was too big", "Seen:"]
    assert lines[3:] == ["a", "b", "c", "d."]
    # a claim that holds keeps its note for the page; a user's own run has no expectation
    fine = verdict_of(make(None), Found([at_most(0, 1)], (), "All seen."), (), {}, known=True)
    assert fine.text() == fine.line()
    assert verdict_rows([fine])[0]["measured"] == ["0 <= 1", "All seen."]
    assert verdict_of(check, miss, (), {}).reason == ""


def test_what_is_not_so_is_said_with_its_detail():
    away = verdict_of(make(None), Found(()), [Hypothesis("small", False, "it is 3")], {})
    assert away.text().splitlines()[1:] == ["    it is 3"]


def test_nothing_is_expected_where_nothing_can_be_looked_at():
    absent = Found((), [Hypothesis("the data are there", False)], possible=False)
    check = Check(
        "BF24-L1",
        "stated",
        "test",
        __name__,
        experiment=lambda seed: absent,
        sizes={"quick": {}, "full": {}},
    )
    verdict = run_check(check)
    assert verdict.status is Status.OUT_OF_SCOPE
    assert verdict.expected is None
    assert not verdict.surprising


def test_labels_tell_the_checks_of_an_id_apart():
    """Forms and parts are named, and no two checks of the ledger go by one label."""
    labels = []
    for check in load_all().values():
        verdict = verdict_of(check, Found(()), (), {})
        assert from_dict(verdict.to_dict()).part == check.part
        labels.append(verdict.label)
    assert len(set(labels)) == len(labels)
    assert {"BF24-T2 (printed)", "BF24-T2 (repaired)"} <= set(labels)


def test_figures_add_no_check_that_takes_evidence():
    """So that `certify` does without loading them; in a process of its own, as others load all."""
    code = (
        "from reluflow.claims.claim import load_all, load_checks\n"
        "before, every = ({k for k, c in load().items() if c.check} for load in "
        "(load_checks, load_all))\n"
        "assert before == every and len(load_all()) > len(every), every ^ before"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_missing_evidence_is_out_of_scope_and_the_check_is_not_called():
    def never(evidence):
        raise AssertionError("called")

    problem = datasets.three_points()
    verdict = evaluate(make(never, needs=("path", "flow")), Evidence.of(problem))
    assert verdict.status is Status.OUT_OF_SCOPE
    assert "networks were recorded" in verdict.line()
    run = descend(problem, initialize(problem, 3, rng=0), lr=0.1, steps=5, save=[0, 1, 5])
    verdict = evaluate(make(never, needs=("path", "flow")), Evidence.of(problem, run))
    assert [h.name for h in verdict.hypotheses] == ["the run is a gradient flow"]


def test_hypotheses_found_on_the_way_count():
    check = make(lambda e: Found([at_most(0, 1)], [Hypothesis("scale", False, "too big")]))
    verdict = evaluate(check, Evidence.of(datasets.three_points()))
    assert verdict.status is Status.OUT_OF_SCOPE


def test_registry_refuses_mistakes():
    load_all()
    name = next(iter(REGISTRY))
    with pytest.raises(ReluflowError, match="is registered by"):
        register(Check(REGISTRY[name].id, REGISTRY[name].form, REGISTRY[name].part, "elsewhere"))
    with pytest.raises(ReluflowError, match="form must be one of"):
        register(Check("BF24-L1", "rumoured", "", "x"))
    with pytest.raises(ReluflowError, match="needs must be among"):
        register(Check("BF24-L1", "stated", "", "x", needs=("luck",)))


def test_sizes_seeds_and_errors_of_experiments():
    seen = []

    def count(seed, draws):
        seen.append((seed, draws))
        return at_most(draws, 10)

    check = Check(
        "BF24-L1",
        "stated",
        "test",
        __name__,
        experiment=count,
        sizes={"quick": {"draws": 3}, "full": {"draws": 30}},
    )
    assert run_check(check, "quick", seed=5).status is Status.HOLDS
    full = run_check(check, "full")
    assert full.surprising
    assert full.settings == {"size": "full", "seed": 0, "draws": 30}
    assert seen == [(5, 3), (0, 30)]
    with pytest.raises(ReluflowError, match="size must be one of"):
        run_check(check, "huge")

    def stops(seed):
        raise ReluflowError("no data here")

    check = Check(
        "BF24-L1", "stated", "test", __name__, experiment=stops, sizes={"quick": {}, "full": {}}
    )
    verdict = try_check(check)
    assert verdict.status is Status.UNDECIDED
    assert verdict.note == "no data here"


def test_certify_by_name_and_by_what_applies(flow_run, monkeypatch):
    problem = flow_run.problem
    found = certify(problem, flow_run)
    ids = {v.id for v in found}
    assert {"BF24-L1", "LLWA21-LB.16", "LLWA21-LB.17", "TK24-INV"} <= ids
    assert all(v.form != "printed" for v in found)
    assert not [v for v in found if v.status is Status.FAILS]
    assert [v.id for v in certify(problem, flow_run, "BF24-L1")] == ["BF24-L1"]
    printed = certify(problem, flow_run, ["BF24-T2"])
    assert {v.form for v in printed} == {"printed", "repaired"}
    data_only = certify(problem)
    assert {v.id for v in data_only} >= {"BF24-A3", "MMV24-L5", "TLB26-A1"}
    with pytest.raises(ReluflowError, match=r"did you mean BF24-L1\?"):
        certify(problem, flow_run, "BF24-L1x")
    with pytest.raises(ReluflowError, match="makes its own experiment"):
        certify(problem, flow_run, "BF24-L3")
    monkeypatch.delitem(load_all(), "LLWA21-LF.10")
    with pytest.raises(ReluflowError, match="has no check yet"):
        certify(problem, flow_run, "LLWA21-LF.10")
    with pytest.raises(ReluflowError, match="expected a Trajectory or a Network"):
        certify(problem, np.ones(3))


def test_certify_writes_certificates_that_check(tmp_path):
    from reluflow.optimum.checker import check_certificate

    problem = datasets.symmetric_separable()
    w = problem.known["w_star"]
    net = Network(np.array([w, -w]) / 2, np.array([1.0, -1.0]) / 2, leak=problem.leak)
    certify(problem, net, "LLWA21-A3.2", folder=tmp_path / "made")
    files = sorted((tmp_path / "made").glob("*.json"))
    assert files
    assert all(check_certificate(path, problem.X, problem.y).ok for path in files)
    with pytest.raises(ReluflowError, match="certificates are about a network"):
        certify(problem, folder=tmp_path / "none")


def test_evidence_is_computed_once():
    evidence = Evidence.of(datasets.three_points())
    assert evidence.landscape is evidence.landscape
    wrong = Network(np.ones((1, 3)), np.ones(1))
    with pytest.raises(ReluflowError, match="W has 3 columns"):
        Evidence.of(Problem(np.eye(2), np.ones(2)), wrong)


def test_a_miss_under_an_undecided_hypothesis_is_undecided():
    @predicate("cannot tell")
    def open_question(evidence):
        return None, "too large"

    evidence = Evidence.of(datasets.three_points())
    miss = make(lambda e: at_most(2, 1), given=(open_question,))
    assert evaluate(miss, evidence).status is Status.UNDECIDED
    named = make(lambda e: at_most(2, 1), unchecked=("the scale is small",))
    verdict = evaluate(named, evidence)
    assert verdict.status is Status.UNDECIDED
    assert "not every hypothesis" in verdict.text()


def test_a_failure_shows_the_hypotheses_it_meets():
    check = Check("BF24-T2", "printed", "test", __name__)
    met = Hypothesis("inputs in the boxes", True, "eta = 0.1")
    verdict = verdict_of(check, Found([at_most(2, 1)]), [met], {})
    assert verdict.status is Status.FAILS
    assert "    met here: inputs in the boxes (eta = 0.1)" in verdict.text().splitlines()
    assert f"    hypotheses as printed: {verdict.quoted}" in verdict.text().splitlines()
    assert "inputs in the boxes (eta = 0.1)" in verdict_rows([verdict])[0]["rests on"]
    assert verdict.quoted


def test_a_slip_shows_print_and_meaning():
    check = Check("BF24-A1", "slip", "test", __name__, printed="(f-y)^2", meant="(f-y)^2/2")
    verdict = verdict_of(check, Found([at_most(0, 1)]), (), {}, known=True)
    assert (verdict.status, verdict.expected) == (Status.HOLDS, Status.HOLDS)
    assert verdict.text().splitlines()[1:] == ["    printed: (f-y)^2", "    meant: (f-y)^2/2"]
    assert from_dict(json.loads(json.dumps(verdict.to_dict()))) == verdict
    with pytest.raises(ReluflowError, match="has `printed` and `meant`"):
        register(Check("BF24-A1", "slip", "test", __name__))
    with pytest.raises(ReluflowError, match="only a clause that fails as printed"):
        register(Check("BF24-L1", "control", "test", __name__, expected=Status.FAILS))


def test_a_numpy_boolean_decides_as_a_boolean_does():
    bad = Hypothesis("h", np.bool_(False))
    assert bad.ok is False
    assert decide([at_most(2, 1)], [bad]) is Status.OUT_OF_SCOPE
    assert Hypothesis("h", np.bool_(True)).state == "ok"


def test_assumptions_are_counted_apart():
    met = verdict_of(make(None), Found(()), [Hypothesis("small", True)], {})
    assert met.status is Status.MET
    held = verdict_of(make(None), Found([at_most(0, 1)]), (), {})
    seen = verdict_of(Check("TLB26-T4", "stated", "", __name__), Found([at_most(0, 1)]), (), {})
    assert seen.status is Status.ILLUSTRATED
    assert count_statuses([held, held, met, seen]) == (
        "2 verdicts: 2 holds. 1 assumption is met. 1 is illustrated only."
    )
