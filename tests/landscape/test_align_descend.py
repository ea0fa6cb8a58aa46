"""Prediction against simulation: `align` and `descend` send every neuron to the same place."""

import numpy as np
import pytest

from reluflow import Problem, align, datasets, descend, early, initialize


def random_problem(d, leak):
    rng = np.random.default_rng(5)
    return Problem(rng.normal(size=(9, d)), rng.choice([-1.0, 1.0], 9), loss="logistic", leak=leak)


DATASETS = {
    "three points": datasets.three_points,
    "toy6": datasets.toy6,
    "xor orbit": datasets.xor_orbit,
    "orthonormal": lambda: datasets.orthonormal(8, law="normal"),
    "random, d=3": lambda: random_problem(3, 0.0),
    "random, d=4, leaky": lambda: random_problem(4, 0.2),
}


@pytest.mark.parametrize("name", DATASETS)
def test_same_destinations(name):
    """Small steps for a long silent time: weights start at e^-300, so that f stays zero."""
    problem = DATASETS[name]()
    net = initialize(problem, 80, log_scale=-300.0, rng=7)
    predicted = align(problem, net)
    fastest = np.max(predicted.growth)
    lr = 0.005 / fastest
    run = descend(problem, net, lr=lr, steps=20_000, save=[0, 600, 20_000])
    assert np.max(np.abs(run.final(problem.X))) < 1e-100
    final = run.final.directions
    cosine = np.sum(final * predicted.direction, axis=1)
    sure = ~predicted.branched
    arrived = predicted.time < 0.5 * 20_000 * lr
    growing = predicted.growing & sure & arrived
    assert growing.sum() > 0.25 * net.m
    assert np.min(cosine[growing]) > 1 - 1e-3
    assert np.array_equal(np.sign(run.final.a[growing]), predicted.sign[growing])
    vectors = predicted.extremal.vectors
    row = predicted.destination[growing]
    assert (row >= 0).all()
    away = np.max(np.abs(final[growing] - vectors[row]), axis=1)
    assert np.max(away) < 0.05
    dead = predicted.dead & sure
    if problem.leak == 0:
        assert not (problem.X @ run.final.W[dead].T > 0).any()
    # shrinking is unstable (the error of a step grows as fast as other neurons do), so neurons
    # that shrink for ever are held to the exact state at an early time
    anti = predicted.anti_aligned & sure
    exact = early(problem, net, 600 * lr)
    gap = run.networks[1].log_norms[anti] - exact.log_norms[anti]
    assert np.max(np.abs(gap), initial=0.0) < 0.02


@pytest.mark.parametrize("name", DATASETS)
def test_states_on_the_way(name):
    """The frozen-pull state at a given time: cosines to 1e-5 with steps of 5e-6 growth times."""
    problem = DATASETS[name]()
    net = initialize(problem, 40, scale=1e-10, rng=2)
    predicted = align(problem, net)
    time = 2.0 / np.max(predicted.growth)
    exact = early(problem, net, time).directions
    found = descend(problem, net, lr=time / 400_000, steps=400_000).final.directions
    sure = ~predicted.branched
    vectors = predicted.extremal.vectors
    gap = np.abs(found @ vectors.T - exact @ vectors.T)[sure]
    assert np.max(gap) < 1e-5
