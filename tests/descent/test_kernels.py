"""Compiled kernels against slow twins."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluflow import losses
from reluflow.descent.tree import chains, cones_of, flips_of, plant
from reluflow.kernels.pull import all_pulls, exploded, exponentials, pulls
from reluflow.kernels.wheel import NONE, SLOTS, file_neuron, take, take_all


def test_exponentials_to_two_units_in_the_last_place():
    x = np.concatenate([np.linspace(-708, 708, 4001), np.linspace(-1, 1, 2001), [0.0]])
    out = x.copy()
    exponentials(out, np.empty_like(x))
    with mpmath.workdps(40):
        exact = np.array(
            [
                float(mpmath.mpf(float(o)) / mpmath.exp(mpmath.mpf(float(v))) - 1)
                for o, v in zip(out, x, strict=True)
            ]
        )
    assert np.max(np.abs(exact)) < 2 * 2.3e-16


@pytest.mark.parametrize("name", losses.LOSSES)
def test_pulls_are_weighted_slopes(name):
    loss = losses.LOSSES[name](1.7)
    rng = np.random.default_rng(0)
    f, y, weight = 5 * rng.normal(size=101), rng.choice([-1.0, 1.0], 101), rng.random(101)
    c = np.empty(101)
    all_pulls(loss.kernel, loss.kernel_factor, f, y, weight, c, np.empty(101))
    assert np.allclose(c, -weight * loss.slope(f, y), rtol=1e-14, atol=0)


def test_pulls_of_a_batch_count_repeats_and_skip_padding():
    f, y, weight = np.zeros(4), np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4)
    c = np.empty(4)
    pulls(0, 1.0, f, y, weight, np.array([2, 0, 2, -1]), True, c, np.empty(4))
    assert np.allclose(c, [1 / 3, 0, 2.0, 0])
    pulls(0, 1.0, f, y, weight, np.array([2, 0, 2, -1]), False, c, np.empty(4))
    assert np.allclose(c, [1, 0, 6, 0])


def test_exploded_sees_nan_inf_and_limit():
    assert not exploded(np.array([1.0, -2.0]), 3.0)
    for bad in (np.nan, np.inf, -4.0):
        assert exploded(np.array([0.0, bad]), 3.0)


@given(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=60), st.integers(0, 10_000))
def test_wheel_never_looks_late_nor_more_than_a_quarter_early(slacks, seed):
    m = len(slacks)
    head, mark = np.full((1, SLOTS), NONE), np.full((1, SLOTS), np.inf)
    used, link, due = np.zeros(1, np.int64), np.full(m, NONE), np.array([np.inf])
    start = float(np.random.default_rng(seed).uniform(0, 30))
    path = np.array([start])
    for j, slack in enumerate(slacks):
        file_neuron(0, j, slack, path, head, mark, used, link, due)
    out = np.empty(m, np.int64)
    left = dict(enumerate(slacks))
    while left and due[0] < np.inf:
        path[0] = np.nextafter(max(due[0], path[0]), np.inf) + 1e-12
        for j in out[: take(0, path[0], head, mark, used, link, due, out)]:
            slack = left.pop(int(j))
            travelled = path[0] - start
            assert travelled <= slack + 1e-9 * path[0]
            assert travelled >= min(0.7 * slack, 100.0) - 1e-9
    assert not left


def test_wheel_gives_everything_back():
    head, mark = np.full((1, SLOTS), NONE), np.full((1, SLOTS), np.inf)
    used, link, due = np.zeros(1, np.int64), np.full(50, NONE), np.array([np.inf])
    slacks = [0.0, np.inf, *np.geomspace(1e-12, 1e12, 48)]
    for j, slack in enumerate(slacks):
        file_neuron(0, j, slack, np.zeros(1), head, mark, used, link, due)
    out = np.empty(50, np.int64)
    assert take_all(0, head, mark, used, link, due, out) == 50
    assert sorted(out) == list(range(50))
    assert used[0] == 0
    assert (head == NONE).all()


def test_tree_reaches_every_pattern_by_its_flips():
    rng = np.random.default_rng(1)
    X, W = rng.normal(size=(20, 3)), rng.normal(size=(300, 3))
    patterns, cone = cones_of(X, W)
    assert not patterns[0].any()
    assert np.array_equal(patterns[cone], W @ X.T > 0)
    order, parents = plant(patterns)
    start, count, sample, sign = flips_of(patterns[order], parents)
    assert order[0] == 0
    assert (parents[1:] < np.arange(1, len(order))).all()
    rebuilt = np.zeros((len(order), 20))
    for u in range(len(order)):
        rebuilt[u] = rebuilt[parents[u]] if u else 0
        for q in range(start[u], start[u] + count[u]):
            rebuilt[u, sample[q]] += sign[q]
    assert np.array_equal(rebuilt, patterns[order])


def test_chains_list_the_members_of_each_cone():
    cone = np.array([2, 0, 2, 2, 4, 0])
    head, link, count = chains(cone, 6)
    for u in range(6):
        members, j = [], head[u]
        while j != NONE:
            members.append(int(j))
            j = link[j]
        assert sorted(members) == np.flatnonzero(cone == u).tolist()
        assert count[u] == len(members)
