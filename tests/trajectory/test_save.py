"""When records are taken."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluflow import ReluflowError, datasets, descend, every, geometric, initialize, when

PROBLEM = datasets.three_points()
NET = initialize(PROBLEM, 6, scale=0.1, rng=0)


def steps_of(save, steps=100):
    return descend(PROBLEM, NET, lr=0.01, steps=steps, save=save).steps.tolist()


def test_policies():
    assert steps_of(None) == [0, 100]
    assert steps_of([3, 1, 3, 50]) == [1, 3, 50]
    assert steps_of([]) == []
    assert steps_of(every(40)) == [0, 40, 80, 100]
    assert steps_of(every(50)) == [0, 50, 100]
    assert steps_of(geometric(2)) == [0, 1, 3, 7, 15, 31, 63, 100]
    assert steps_of(when(lambda problem, net, step: step in (20, 60), check=20)) == [20, 60]


def test_geometric_spacing_makes_the_frames_of_bf24():
    """0, 1, then int(1.1 * last) + 1, and the end: 135 frames of 2,000,000 steps."""
    policy, frames = geometric(1.1), [0]
    while frames[-1] < 1_999_999:
        frames.append(min(int(policy.after(frames[-1], True)), 1_999_999))
    expected = [0, 1]
    while expected[-1] < 1_999_999:
        expected.append(min(int(1.1 * expected[-1]) + 1, 1_999_999))
    assert frames == expected
    assert len(frames) == pytest.approx(135, abs=1)


@given(st.floats(1e-3, 1e3), st.floats(0, 1e6))
def test_regular_spacing_always_moves_on(k, position):
    following = every(k).after(position, False)
    assert position < following <= position + k * (1 + 1e-9)
    assert following / k == pytest.approx(round(following / k))


@given(st.floats(1.001, 10), st.floats(0, 1e6))
def test_geometric_spacing_always_moves_on(ratio, position):
    for whole in (False, True):
        following = geometric(ratio).after(np.floor(position) if whole else position, whole)
        assert following > position or (whole and following > np.floor(position))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: every(0), "every\\(k\\) needs k > 0"),
        (lambda: geometric(1.0), "geometric needs ratio > 1"),
        (lambda: when(3), "when needs a function"),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ReluflowError, match=message):
        make()
