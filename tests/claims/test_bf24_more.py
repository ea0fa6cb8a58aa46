"""[BF24]_: balance, mixed neurons and ends with several neurons; spoilt evidence fails."""

import numpy as np
import pytest

from reluflow import Problem, datasets, descend, initialize
from reluflow.claims import Evidence, Status
from reluflow.claims.claim import load_all
from reluflow.claims.run import evaluate
from reluflow.papers.bf24.claims import alignment as bf24_alignment
from reluflow.papers.bf24.claims import early as bf24_early
from reluflow.papers.bf24.claims import growth as bf24_growth
from reluflow.papers.bf24.claims import late as bf24_late
from reluflow.papers.bf24.claims.late import Late, mixed_neurons
from reluflow.papers.bf24.claims.remarks import search_best_fit
from reluflow.papers.bf24.runs import Story, aligning_run, run_in_phases


def status_of(name, evidence):
    return evaluate(load_all()[name], evidence).status


def misses(name, evidence):
    """Whether a bound is missed; where the scale of the start is unchecked that is UNDECIDED."""
    verdict = evaluate(load_all()[name], evidence)
    assert verdict.status is (
        Status.UNDECIDED if any(h.ok is None for h in verdict.hypotheses) else Status.FAILS
    )
    return verdict.deciding.status is Status.FAILS


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
    story = Story(run_in_phases(0, 60))
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
