"""Neurons that shrink below their start: what rests on exact balance says so."""

import numpy as np
import pytest

from reluflow import Network, Problem, flow, limit
from reluflow.prediction.process import ENDINGS, ON_BALANCE


def ridge(y=1.0):
    """x_0 with a negative label holds a positive neuron on its kink, where x_1 makes it shrink."""
    X = np.array([[1.0, 0.0], [-0.3, 1.0], [-0.2, -1.0]])
    return Problem(X, np.array([-2.0, -1.0, y]), reduction="sum")


def start(gap=0.0):
    """One neuron on the ridge, |a| = (1 + gap) |w|."""
    return Network(W=[[0.0, 1.0]], a=[1.0 + gap])


def test_a_shrinking_neuron_that_imbalance_would_save_is_named():
    process = limit(ridge(), start())
    assert process.n_jumps == 0
    assert process.ending == f"spurious{ON_BALANCE}"
    assert process.ending in ENDINGS
    assert "exact balance" in process.status
    assert "neuron 0 would jump near time" in process.status
    assert process.balance in process.status
    assert process.to_dict()["balance"] == process.balance


@pytest.mark.parametrize("gap", [1e-3, -1e-3])
def test_the_jump_named_is_that_of_the_unbalanced_start(gap):
    """The time said to be that with |a| > |w|, or |a| < |w|, is the jump of such a start."""
    mark = ">" if gap > 0 else "<"
    words = limit(ridge(), start()).balance
    said = [part for part in words.split("near time ")[1:] if f"|a| {mark} |w|" in part]
    process = limit(ridge(), start(gap))
    assert bool(said) == bool(process.n_jumps)
    if said:
        assert float(said[0].split()[0]) == pytest.approx(process.times[0], rel=1e-3)


def test_the_run_from_an_unbalanced_start_ends_where_its_own_limit_does():
    """|a| > |w|: the neuron passes through zero and fits x_2, far from where balance would end."""
    process, L = limit(ridge(), start(1e-3)), 400.0
    assert process.n_jumps == 1
    t_end = 1.2 * L * process.times[0] + 30.0
    run = flow(ridge(), start(1e-3).scaled(-L - start(1e-3).log_norms.max()), t_end=t_end)
    assert run.loss[-1] == pytest.approx(process.losses[1], abs=1e-3 * process.losses[0])
    assert process.losses[1] < 0.9 * limit(ridge(), start()).losses[-1]


def test_without_shrinking_neurons_nothing_is_added():
    process = limit(Problem(np.eye(2), np.array([2.0, 1.0])), Network(np.ones((1, 2)), [1.5]))
    assert process.balance == ""
    assert ON_BALANCE not in process.ending
    assert "balance" not in process.status


def test_a_neuron_that_is_not_balanced_is_followed_as_it_is():
    process = limit(ridge(), start(0.5))
    assert ON_BALANCE not in process.ending
