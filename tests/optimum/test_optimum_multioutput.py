"""Margins, KKT conditions and best networks with several outputs."""

import numpy as np
import pytest

from reluflow import (
    Network,
    Problem,
    ReluflowError,
    descend,
    initialize,
    kkt,
    limit,
    max_margin,
    min_norm,
    stationarity,
)
from reluflow.landscape.multioutput import value

RNG = np.random.default_rng(0)
X = RNG.normal(size=(8, 3))
CLASSES = Problem(X, np.arange(8) % 3, loss="softmax")
REAL = Problem(X, RNG.normal(size=(8, 2)))


def margin(problem, net):
    f = problem.outputs(net)
    own = f[np.arange(problem.n), problem.labels]
    return np.min(own - np.where(problem.y > 0, -np.inf, f).max(axis=1)) / net.norm2


def test_largest_margin_is_bounded_from_both_sides():
    best = max_margin(CLASSES)
    assert best.status == "optimal"
    assert margin(CLASSES, best.network) == pytest.approx(best.margin, rel=1e-12)
    assert best.margin <= best.upper_bound <= best.margin * (1 + 1e-6)
    C = np.where(CLASSES.y > 0, best.dual.sum(axis=1, keepdims=True), -best.dual)
    grid = np.random.default_rng(1).normal(size=(20_000, 3))
    grid /= np.linalg.norm(grid, axis=1, keepdims=True)
    assert value(CLASSES, grid, C).max() <= 2 * best.upper_bound
    rng = np.random.default_rng(2)
    for _ in range(20):
        net = Network(rng.normal(size=(4, 3)), rng.normal(size=(4, 3)))
        assert margin(CLASSES, net) <= best.upper_bound


def test_the_best_network_is_a_kkt_point_and_a_random_one_is_not():
    best = max_margin(CLASSES)
    found = kkt(CLASSES, best.network, tol=1e-5, kink_tol=1e-5)
    assert found.residual < 1e-4
    assert found.margin == pytest.approx(best.margin, rel=1e-9)
    assert found.multipliers.sum() == pytest.approx(1 / (2 * found.margin), rel=1e-3)
    assert (found.multipliers[CLASSES.y > 0] == 0).all()
    W, A = best.network.W.copy(), best.network.a.copy()
    W[0] *= 1.3
    assert kkt(CLASSES, Network(W, A), tol=1e-5, kink_tol=1e-5).residual > 1e-2


def test_least_norm_is_bounded_from_both_sides():
    best = min_norm(REAL)
    assert best.status == "optimal"
    assert np.abs(best.network(X) - REAL.y).max() < 1e-9
    assert best.lower_bound <= best.norm2 <= best.lower_bound * (1 + 1e-6)
    top = value(REAL, RNG.normal(size=(1, 3)), best.dual)
    assert 2 * np.sum(best.dual * REAL.y) / best.lower_bound >= top / 10


def test_two_equal_outputs_have_the_optima_of_one():
    y = np.where(np.arange(8) % 3 > 0, 1.0, -1.0)
    number = Problem(X, y, loss="logistic")
    matrix = Problem(np.sqrt(2) * X, np.column_stack([y, y]), loss="logistic")
    one, column = max_margin(number), max_margin(matrix)
    assert column.margin == pytest.approx(one.margin, rel=1e-6)
    assert column.upper_bound == pytest.approx(one.upper_bound, rel=1e-6)
    z = REAL.y[:, 0]
    pair = Problem(np.sqrt(2) * X, np.column_stack([z, z]))
    least = min_norm(Problem(X, z)), min_norm(pair)
    assert least[1].norm2 == pytest.approx(least[0].norm2, rel=1e-6)
    net = initialize(number, 12, scale=1.0, rng=1)
    run = descend(number, net, lr=0.5, steps=20_000)
    assert run.loss[-1] < 0.05
    same = Network(run.final.W, np.column_stack([run.final.a, run.final.a]) / np.sqrt(2))
    a, b = kkt(number, run.final), kkt(matrix, same)
    assert b.residual == pytest.approx(a.residual, abs=1e-12)
    assert b.margin == pytest.approx(a.margin, rel=1e-12)
    assert np.abs(a.multipliers - b.multipliers.sum(axis=1)).max() <= 1e-9 * a.multipliers.max()
    assert a.imbalance == pytest.approx(b.imbalance, abs=1e-12)


def test_one_more_neuron_gains_what_it_says():
    net = initialize(REAL, 3, scale=0.01, rng=0)
    end = limit(REAL, net, max_jumps=1).final  # a saddle, polished
    point = stationarity(REAL, end)
    assert point.kind == "stationary, not global"
    assert point.relative < 1e-7
    size = np.sqrt(point.size)
    more = Network(np.vstack([end.W, size * point.vector]), np.vstack([end.a, size * point.outer]))
    assert REAL.loss_of(end) - REAL.loss_of(more) == pytest.approx(point.gain, rel=1e-9)
    assert stationarity(REAL, net).kind == "not stationary"
    assert stationarity(REAL, min_norm(REAL).network).kind == "global minimum"


def test_margins_need_classes():
    with pytest.raises(ReluflowError, match="needs classes or labels"):
        max_margin(REAL)
    with pytest.raises(ReluflowError, match="one sign of all outer weights is for one output"):
        min_norm(REAL, sign=1)


@pytest.mark.parametrize(("several", "steps"), [(False, 200), (True, 400)])
def test_far_from_a_kkt_point_the_active_set_is_not_the_narrowest(several, steps):
    # there twice the residual of the widest set is above 1, so that every set seems as good
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20, 4)) + 3.0 * np.eye(4)[np.arange(20) % 4]
    y = np.arange(20) % 4
    problem = Problem(X, y, loss="softmax")
    if not several:
        problem = Problem(X, np.where(y % 2, 1.0, -1.0), loss="logistic")
    run = descend(problem, initialize(problem, 30, scale=0.3, rng=0), lr=0.1, steps=steps)
    found, wide = kkt(problem, run.final), kkt(problem, run.final, tol=1.0)
    alone = kkt(problem, run.final, tol=1e-9)
    assert 0.5 < wide.residual < 0.9 * alone.residual
    assert found.residual <= 0.1 + 0.9 * wide.residual


def test_a_search_cut_short_still_gives_bounds():
    best, least = max_margin(CLASSES), min_norm(REAL)
    for options in ({"rounds": 1}, {"seconds": 0.0}):
        some, few = max_margin(CLASSES, **options), min_norm(REAL, **options)
        assert some.margin <= best.margin * (1 + 1e-9)
        assert some.upper_bound >= best.margin * (1 - 1e-9)
        assert margin(CLASSES, some.network) == pytest.approx(some.margin, rel=1e-12)
        assert few.lower_bound <= least.norm2 * (1 + 1e-9)
        assert few.norm2 >= least.norm2 * (1 - 1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_bounds_without_a_search_hold(seed):
    """rounds=0: equal multipliers, or the labels, prove a bound that the best network obeys."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6, 2))
    classes = Problem(X, np.arange(6) % 3, loss="softmax")
    alone, best = max_margin(classes, rounds=0), max_margin(classes)
    assert alone.network is None
    assert best.upper_bound <= alone.upper_bound * (1.0 + 1e-9)
    assert best.margin <= alone.upper_bound
    numbers = Problem(X[:3], rng.normal(size=(3, 2)))
    bound, least = min_norm(numbers, rounds=0), min_norm(numbers)
    assert bound.network is None
    assert 0.0 < bound.lower_bound <= least.norm2 * (1.0 + 1e-9)
