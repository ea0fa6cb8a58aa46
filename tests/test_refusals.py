"""Sentences that no other test asks for: what is refused, and in which words."""

import re

import numpy as np
import pytest

import reluflow
from reluflow import Network, Problem, ReluflowError, datasets, flow, initialize, limit
from reluflow.network import axis_start
from reluflow.prediction.orthogonal import algorithm1
from reluflow.problem.losses import HalfSquare

PROBLEM = datasets.golden()
NET = Network(np.eye(4), np.ones(4))


class Hidden(HalfSquare):
    """A loss that no kernel computes."""

    name = "hidden"
    kernel = -1


def follow(problem=PROBLEM, **options):
    return flow(problem, NET, **{"t_end": 1.0, **options})


def jumps(problem, **options):
    return algorithm1(problem, **{"mask": np.ones((problem.n, 2)), "signs": 1, **options})


CASES = [
    (lambda: follow(rtol=1.0), "rtol must lie between 1e-13 and 1e-2, got 1.0"),
    (lambda: follow(t_end=-1.0), "t_end must be a finite time >= 0, got -1.0"),
    (lambda: follow(t_end=np.inf), "t_end must be a finite time >= 0, got inf"),
    (lambda: follow(max_steps=0), "max_steps must be at least 1, got 0"),
    (lambda: follow(on_branch="turn"), "on_branch must be 'stay' or 'leave', got 'turn'"),
    (lambda: follow(clock="steps"), "clock must be 'time' or 'loss', got 'steps'"),
    (lambda: follow(clock="loss"), "clock='loss' is for losses that vanish at infinity"),
    (
        lambda: follow(PROBLEM.replace(loss=Hidden())),
        "flow has no kernel for the loss 'hidden'",
    ),
    (lambda: follow(stop=3), "stop must be stationary(), loss_below(), settled()"),
    (lambda: reluflow.loss_below(), "loss_below takes a value or log=, one of the two"),
    (lambda: reluflow.loss_below(1.0, log=0.0), "loss_below takes a value or log="),
    (lambda: reluflow.loss_below(-1.0), "loss_below needs a positive value, got -1.0"),
    (lambda: jumps(PROBLEM.replace(leak=0.1)), "algorithm1 needs leak=0, got leak=0.1"),
    (
        lambda: jumps(Problem(np.eye(2), [1.0, -1.0], loss="logistic")),
        "algorithm1 needs the half-square or square loss, got logistic",
    ),
    (
        lambda: jumps(Problem([[1.0], [2.0]], [1.0, 1.0])),
        "algorithm1 needs orthonormal inputs, got 2 samples in 1 dimensions",
    ),
    (
        lambda: jumps(Problem([[1.0, 0.0], [0.5, 1.0]], [1.0, 1.0])),
        "algorithm1 needs orthonormal inputs, X X^T = I, got an error of 0.5",
    ),
    (lambda: jumps(PROBLEM, signs=None), "a mask needs signs=, +1 or -1"),
    (lambda: jumps(PROBLEM, signs=[1, 2]), "signs must be +1 or -1, one for all or one for each"),
    (
        lambda: limit(PROBLEM, directions=np.eye(4)[:2], signs=[1.0, 0.5]),
        "signs must be 2 entries of -1 and +1, one for each direction",
    ),
    (
        lambda: limit(PROBLEM, directions=np.zeros((1, 4)), signs=[1.0]),
        "directions must be finite and not zero",
    ),
    (lambda: limit(PROBLEM, directions=np.eye(4)), "directions need signs: give signs="),
    (
        lambda: limit(PROBLEM, directions=np.eye(3), signs=np.ones(3)),
        "directions has shape (3, 3), expected (m, 4)",
    ),
    (lambda: initialize(PROBLEM, 3, rng=-1), "rng must be a seed >= 0, a Generator"),
    (lambda: axis_start(PROBLEM, scales=(1.0, 1.0)), "axis_start needs four positive scales"),
    (
        lambda: axis_start(Problem([[1.0]], [1.0])),
        "axis_start needs at least two features, got d=1",
    ),
]


@pytest.mark.parametrize(("ask", "sentence"), CASES, ids=[sentence for _, sentence in CASES])
def test_refused_in_these_words(ask, sentence):
    with pytest.raises(ReluflowError, match=re.escape(sentence)):
        ask()
