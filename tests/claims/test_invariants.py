"""Invariants hold on a flow, fail on a corrupted one, and speak of flows alone."""

from dataclasses import replace

import numpy as np
import pytest

from reluflow import Network, datasets, descend, initialize
from reluflow.claims import Status, certify
from reluflow.claims.claim import load_all
from reluflow.claims.hypotheses import balance
from reluflow.claims.invariants import dead


def status(run, id):
    other = ("smoothed", "decay")  # flows of another kind
    found = {v.status for v in certify(run.problem, run, id) if v.part not in other}
    (only,) = found
    return only


def scale_one(W, a):
    a[20:, 5] *= 1.01


def flip_one(W, a):
    a[30, 7] *= -1


def revive(W, a):
    W[25, 0], a[25, 0] = 0.1, 0.1


def jump_back(W, a):
    W[20], a[20] = W[0], a[0]


def teleport(W, a):
    # the loss of the records is kept below, so only the distance is wrong
    W[20, 3] += 1.0


@pytest.mark.parametrize(
    ("id", "corrupt"),
    [
        ("BF24-L1", scale_one),
        ("MMV24-B1", scale_one),
        ("LLWA21-LB.16", scale_one),
        ("TK24-INV", scale_one),
        ("TK24-INV", flip_one),
        ("LLWA21-CB.18", flip_one),
        ("MMV24-B2", flip_one),
        ("MMV24-B2", revive),
        ("LLWA21-LB.17", revive),
        ("LLWA21-LB.15", jump_back),
    ],
)
def test_corruption_is_noticed(flow_run, with_states, id, corrupt):
    assert status(flow_run, id) is Status.HOLDS
    assert status(with_states(flow_run, corrupt), id) is Status.FAILS


def test_distance_against_fall_of_the_loss(flow_run, with_states):
    moved = replace(with_states(flow_run, teleport), loss=flow_run.loss)
    (verdict,) = certify(moved.problem, moved, "LLWA21-LB.15")
    assert [c.status for c in verdict.comparisons] == [Status.HOLDS, Status.FAILS]


def test_dead_neurons(flow_run, with_states):
    problem = flow_run.problem
    dead = ~(problem.X @ flow_run.networks[0].W.T > 0).any(axis=0)
    dead[0] = False  # the zero neuron
    assert dead.any()

    def stir(W, a):
        W[30:, np.flatnonzero(dead)[0]] *= 1.001

    verdicts = {v.id: v for v in certify(problem, flow_run, ["MMV24-L12"]) if v.comparisons}
    assert verdicts["MMV24-L12"].status is Status.HOLDS
    stirred = with_states(flow_run, stir)
    found = [v for v in certify(problem, stirred, "MMV24-L12") if v.comparisons]
    assert [v.status for v in found] == [Status.FAILS]


def test_descent_and_unbalanced_starts_are_out_of_scope(flow_run):
    problem = flow_run.problem
    net = initialize(problem, 5, rng=0)
    steps = descend(problem, net, lr=0.1, steps=20, save=[0, 10, 20])
    for id in ("BF24-L1", "TK24-INV", "LLWA21-LB.15", "MMV24-B2"):
        assert status(steps, id) is Status.OUT_OF_SCOPE

    from reluflow import flow

    loose = flow(
        problem, initialize(problem, 5, kind="gaussian", rng=0), t_end=1.0, save=[0, 0.5, 1]
    )
    assert status(loose, "BF24-L1") is Status.HOLDS  # conserved, balanced or not
    for id in ("TK24-INV", "LLWA21-CB.18", "MMV24-B2"):
        assert status(loose, id) is Status.OUT_OF_SCOPE


def test_tiny_scales_are_judged_at_their_own_size():
    from reluflow import flow

    problem = datasets.golden()
    net = initialize(problem, 6, log_scale=-500.0, kind="sphere", normalize="none", signs=1, rng=0)
    run = flow(problem, net, t_end=300.0, save=np.linspace(0, 300, 7))
    assert status(run, "BF24-L1") is Status.HOLDS
    W, a, scale = run.networks.W, run.networks.a.copy(), run.networks.log_scale
    a[3, 2] *= 1.001
    bent = replace(run, networks=replace(run.networks, W=W, a=a, log_scale=scale))
    assert status(bent, "BF24-L1") is Status.FAILS


def test_gradient_bound_and_its_loss(flow_run):
    assert status(flow_run, "LLWA21-LE.10") is Status.OUT_OF_SCOPE  # half-square loss
    problem = datasets.symmetric_separable()
    net = initialize(problem, 4, rng=0)
    assert [v.status for v in certify(problem, net, "LLWA21-LE.10")] == [Status.HOLDS]


@pytest.mark.parametrize("name", ["MMV24-B2", "LLWA21-LB.17"])
def test_examples_of_frozen_neurons_have_one(name):
    start = load_all()[name].example(seed=0, m=10, records=5).start
    assert (np.isneginf(start.log_norms) & (start.a == 0)).sum() == 1


@pytest.mark.parametrize("name", ["BF24-L1", "MMV24-B1", "LLWA21-LB.16"])
def test_examples_of_the_conserved_quantity_are_not_all_at_zero(name):
    check = load_all()[name]
    run = check.example(seed=0, m=10, records=5)
    assert np.abs(balance(run.start.W, run.start.a)).min() > 1e-3
    assert check.check(run).bound == 1e-8


def test_a_neuron_on_the_edge_of_the_dead_cone_is_dead():
    problem = datasets.toy6()
    edge, x = np.array([-1.0, 0.7]), problem.X[1]  # an edge of the cone, and the sample it is of
    assert (np.delete(problem.X @ edge, 1) < 0).all()
    W = np.array([edge + size * x for size in (1e-15, 1e-9, -1e-9)])
    assert dead(problem, Network(W, np.ones(3))).tolist() == [True, False, True]


def test_with_weight_decay_the_balance_falls_as_the_law_says(with_states):
    from reluflow import flow

    problem = datasets.load("three-points")
    net = initialize(problem, 6, scale=0.1, kind="gaussian", rng=0)
    run = flow(problem, net, t_end=10.0, save=np.linspace(0, 10, 41), weight_decay=0.1)
    found = {v.part: v.status for v in certify(problem, run, "MMV24-B1")}
    assert found == {"": Status.OUT_OF_SCOPE, "decay": Status.HOLDS}

    def scale_a_little(W, a):
        a[20:, 2] *= 1.0001

    spoilt = with_states(run, scale_a_little)
    found = {v.part: v.status for v in certify(problem, spoilt, "MMV24-B1")}
    assert found["decay"] is Status.FAILS
    wrong = replace(run, settings={**run.settings, "weight_decay": 0.1001})  # another law
    found = {v.part: v.status for v in certify(problem, wrong, "MMV24-B1")}
    assert found["decay"] is Status.FAILS
