"""flow against 50-digit runs, closed forms and its own order."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from reluflow import Network, Problem
from reluflow.errors import ReluflowError
from reluflow.gradientflow import flow
from reluflow.gradientflow.cones import begin
from reluflow.gradientflow.solver import Solver, Taken
from reluflow.gradientflow.tableaux import Tableau, dormand_prince_8, order_defect, trees
from reluflow.gradientflow.terms import data_of
from reluflow.kernels.codes import EVENT_NAMES

CASES = json.loads(Path(__file__).with_name("reference.json").read_text())


def solve(case, **options):
    problem = Problem(case["X"], case["y"], loss=case["loss"], leak=case["leak"])
    return flow(problem, Network(case["W"], case["a"]), t_end=case["t_end"], **options)


def simple_events(rows):
    """Events by neuron and time, without moments at which w passes through 0 (many at once)."""
    rows = sorted((int(j), float(t), int(k), kind) for j, k, t, kind in rows)
    crowded = {
        (a[0], a[1]) for a, b in itertools.pairwise(rows) if a[0] == b[0] and b[1] - a[1] < 1e-9
    }
    return [r for r in rows if not any(r[0] == j and abs(r[1] - t) < 1e-9 for j, t in crowded)]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c['loss']}-{c['scale']:g}-{c['leak']}")
def test_agrees_with_fifty_digits(case):
    run = solve(case)
    ratio = run.final.a / np.linalg.norm(run.final.W, axis=1)
    angle = np.linalg.norm(run.final.directions - case["directions"], axis=1)
    assert angle.max() < 1e-8  # the requirement is 1e-6
    assert np.abs(run.final.log_norms - case["log_norms"]).max() < 1e-8
    assert np.abs(ratio - case["ratio"]).max() < 1e-8
    found = [
        (j, k, t, EVENT_NAMES[kind])
        for j, k, t, kind in zip(
            *(run.events[n] for n in ("neuron", "sample", "time", "kind")), strict=True
        )
    ]
    ours, theirs = simple_events(found), simple_events(case["events"])
    assert [(r[0], r[2], r[3]) for r in ours] == [(r[0], r[2], r[3]) for r in theirs]
    for a, b in zip(ours, theirs, strict=True):
        assert abs(a[1] - b[1]) <= 1e-9 * b[1]


@pytest.mark.parametrize("rtol", [1e-4, 1e-6, 1e-10])
def test_error_follows_tolerance(rtol):
    case = CASES[8]
    run = solve(case, rtol=rtol)
    assert np.abs(run.final.log_norms - case["log_norms"]).max() < rtol


@pytest.mark.slow
def test_reference_can_be_repeated():
    from tests.gradientflow.reference import cases
    from tests.gradientflow.reference import solve as repeat

    case = repeat(cases()[0])
    assert np.allclose(case["log_norms"], CASES[0]["log_norms"], rtol=0, atol=1e-14)


def fixed_steps(count):
    """Neurons of one smooth stretch after ``count`` equal steps."""
    problem = Problem([[1.0, 0.2], [0.3, 1.0]], [1.0, 2.0], loss="half_square")
    net = Network([[0.6, 0.5], [0.2, 0.9]], [0.7, 0.4])
    state, _ = begin(problem, net, data_of(problem, "time"), 0)
    solver = Solver(state, 1e-8, 0)
    for _ in range(count):
        solver.trial.attempt(2.0 / count)
        solver.trial.dense()
        assert not solver.trial.scan().size
        solver.take(Taken(2.0 / count))
        solver.finish()
    Z, ls = solver.state.neurons()
    return Z * np.exp(ls)[:, None]


def test_order_of_convergence():
    exact = fixed_steps(128)
    counts = np.array([3, 4, 6, 8])
    errors = [np.abs(fixed_steps(n) - exact).max() for n in counts]
    slope = -np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert slope > 7.5


def test_dense_output_is_the_flow_at_that_time():
    case = CASES[4]
    times = np.linspace(0.0, case["t_end"], 17)
    run = solve(case, save=times)
    for i in (3, 8, 13):
        alone = solve({**case, "t_end": times[i]})
        assert np.allclose(run.networks[i].directions, alone.final.directions, atol=1e-8)
        assert np.allclose(run.networks[i].log_norms, alone.final.log_norms, atol=1e-8)


def test_tableau_checks_itself():
    table = dormand_prince_8()
    assert [len(trees(p)) for p in range(1, 9)] == [1, 1, 2, 4, 9, 20, 48, 115]
    assert order_defect(table.A[:12, :12], table.B, 8) < 1e-13
    assert order_defect(table.A[:12, :12], table.B, 9) > 1e-8
    with pytest.raises(ReluflowError, match="order 8"):
        Tableau(table.A, table.B[::-1].copy(), table.c, table.E3, table.E5, table.D, 8)
