"""Pulls against the losses they come from, and timer wheels against a list of deadlines."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluflow import losses
from reluflow.kernels.pull import Targets, all_pulls, exploded, exponentials, pulls
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


@pytest.mark.parametrize("name", [n for n, kind in losses.LOSSES.items() if not kind().classes])
def test_pulls_are_weighted_slopes(name):
    loss = losses.LOSSES[name](1.7)
    rng = np.random.default_rng(0)
    f, y, weight = 5 * rng.normal(size=101), rng.choice([-1.0, 1.0], 101), rng.random(101)
    f[:2] = 0.0, 1000.0  # a silent sample, and one far beyond what e^f can hold
    c = np.empty(101)
    targets = Targets(y, weight, loss.kernel, loss.kernel_factor, True)
    all_pulls(targets, f, c, np.empty(101))
    slow = -weight * loss.slope(np.clip(f, -708.0, 708.0) if loss.kernel else f, y)
    assert np.allclose(c, slow, rtol=1e-14, atol=0)


def test_pulls_of_a_batch_count_repeats_and_skip_padding():
    f, y, weight = np.zeros(4), np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4)
    c = np.empty(4)
    batch = np.array([2, 0, 2, -1])
    pulls(Targets(y, weight, 0, 1.0, True), f, batch, c, np.empty(4))
    assert np.allclose(c, [1 / 3, 0, 2.0, 0])
    pulls(Targets(y, weight, 0, 1.0, False), f, batch, c, np.empty(4))
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


def test_wheel_against_a_list_of_marks():
    """mark = step floor((p + min(s, 7 step)(1 - 1e-9)) / step), step = 2^(floor(log2 s) - 2)."""
    rng = np.random.default_rng(4)
    m = 80
    head, mark = np.full((2, SLOTS), NONE), np.full((2, SLOTS), np.inf)
    used, link, due = np.zeros(2, np.int64), np.full(m, NONE), np.full(2, np.inf)
    path, out = np.zeros(2), np.empty(m, np.int64)
    listed, free = {}, list(range(m))
    for _ in range(300):
        u = int(rng.integers(2))
        for _ in range(min(int(rng.integers(4)), len(free))):
            j, slack = free.pop(), float(np.exp(rng.uniform(-12.0, 4.0)))
            file_neuron(u, j, slack, path, head, mark, used, link, due)
            step = 2.0 ** (np.floor(np.log2(slack)) - 2)
            deadline = path[u] + min(slack, 7 * step) * (1 - 1e-9)
            listed[j] = u, step * np.floor(deadline / step)
        marks = [when for v, when in listed.values() if v == u]
        assert due[u] == min(marks, default=np.inf)
        path[u] += rng.exponential(0.5)
        if path[u] > due[u]:  # as in a run: what is due goes out before more is filed
            count = take(u, path[u], head, mark, used, link, due, out)
            late = {j for j, (v, when) in listed.items() if v == u and when < path[u]}
            assert set(out[:count].tolist()) == late
            free += [listed.pop(j) and j for j in late]
