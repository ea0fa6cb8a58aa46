"""Theorems on random small tables: what the errors of a run can explain refutes none of them."""

from types import SimpleNamespace

import numpy as np
import pytest

from reluflow import Problem, explain
from reluflow.claims.evidence import Evidence
from reluflow.claims.hypotheses import gradient_flow
from reluflow.claims.invariants import kept_by_flow
from reluflow.claims.verdict import Status


def a_run(rtol=1e-8, steps=100, handovers=()):
    """What a claim asks a run for its errors."""
    settings = {"kind": "flow", "rtol": rtol, "handovers": list(handovers)}
    return SimpleNamespace(settings=settings, cost={"steps": steps, "leaps": 0}, networks=None)


def evidence_of(**options):
    evidence = object.__new__(Evidence)
    object.__setattr__(evidence, "run", a_run(**options))
    return evidence


@pytest.mark.parametrize(
    ("measured", "status"),
    [(5e-8, Status.HOLDS), (5e-7, Status.UNDECIDED), (5e-6, Status.FAILS)],
)
def test_a_law_fails_only_beyond_all_errors_of_steps(measured, status):
    """100 steps of 1e-8 each: 1e-7 is allowed, and 1e-6 may have added up."""
    assert kept_by_flow(evidence_of(), measured, "drift").status is status


def test_steps_that_do_not_locate_kinks_leave_the_flow_unchecked():
    found = gradient_flow(evidence_of(handovers=[{"rtol": 1e-3}, {"rtol": 1e-8}]))
    assert found.ok is None
    assert "errors up to 0.001 in a step" in found.detail
    assert gradient_flow(evidence_of()).ok is True


def table(seed):
    """A small table of any kind: scales of columns, whole numbers, zeros and ones, one sign."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 24)), int(rng.integers(1, 6))
    X = rng.standard_normal((n, d))
    X = [X, X * 10.0 ** rng.uniform(-2, 2, d), np.round(X), 1.0 * (X > 0), np.abs(X)][seed % 5]
    loss = ("half_square", "logistic", "square", "exponential")[seed // 5 % 4]
    y = X @ rng.standard_normal(d) + rng.standard_normal(n) * rng.choice([0.0, 0.3])
    y = np.where(y > np.median(y), 1.0, -1.0) if seed // 5 % 2 else y
    return Problem(X, y, loss=loss, bias=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_no_theorem_fails_on_a_table(seed):
    """All of them are proved, and none of these clauses is known to be false as printed."""
    rng = np.random.default_rng(seed)
    m, scale = int(rng.choice([10, 50, 200])), float(rng.choice([1e-3, 1e-6, 1e-12]))
    found = explain(table(seed), m, scale, progress=False)
    assert [v.id for v in found.claims if v.status is Status.FAILS] == []
