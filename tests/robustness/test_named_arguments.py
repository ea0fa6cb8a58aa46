"""Arguments that no call can mean: one sentence each."""

import math

import numpy as np
import pytest

from reluflow import (
    Problem,
    ReluflowError,
    align,
    datasets,
    descend,
    extremal_vectors,
    initialize,
    ledger,
    limit,
    max_margin,
    min_norm,
)
from reluflow.landscape import max_G

PROBLEM = datasets.three_points()
NET = initialize(PROBLEM, 3, rng=0)
WIDE = Problem(np.eye(3), np.ones(3), loss="logistic")
CALLS = {
    "initialize rng=-1": lambda: initialize(PROBLEM, 3, rng=-1),
    "descend rng=-1": lambda: descend(PROBLEM, NET, lr=0.1, steps=1, rng=-1),
    "max_G rng=-1": lambda: max_G(PROBLEM, rng=-1),
    "extremal rng=-1": lambda: extremal_vectors(PROBLEM, method="multistart", rng=-1),
    "max_margin rng=-1": lambda: max_margin(WIDE, rng=-1),
    "min_norm rng=-1": lambda: min_norm(PROBLEM, rng=-1),
    "xor rng=-1": lambda: datasets.load("xor", rng=-1),
    "teacher rng=-1": lambda: datasets.gaussian_teacher(rng=-1),
    "ledger(-1)": lambda: ledger(-1),
    "ledger([])": lambda: ledger(["BF24"]),
    "max_G(budget=inf)": lambda: max_G(PROBLEM, budget=math.inf),
    "max_G(budget=nan)": lambda: max_G(PROBLEM, budget=math.nan),
    "max_G(budget=1e30)": lambda: max_G(PROBLEM, budget=10**30),
    "max_G(budget=0)": lambda: max_G(PROBLEM, budget=0),
    "align(paths=1e30)": lambda: align(PROBLEM, NET, paths=10**30),
    "align(paths=text)": lambda: align(PROBLEM, NET, paths="yes"),
    "limit(tie=2-D)": lambda: limit(PROBLEM, NET, tie=np.ones((2, 2))),
    "limit(tie=nan)": lambda: limit(PROBLEM, NET, tie=math.nan),
    "limit(tie=-1)": lambda: limit(PROBLEM, NET, tie=-1.0),
}


@pytest.mark.parametrize("call", CALLS)
def test_one_sentence(call):
    with pytest.raises(ReluflowError) as caught:
        CALLS[call]()
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert len(sentence) < 300
    assert any(name in sentence for name in ("rng", "which", "budget", "paths", "tie"))


def test_what_can_be_meant_is_taken():
    assert max_G(PROBLEM, budget=np.int64(500)).value == max_G(PROBLEM, budget=500).value
    for kept in (True, np.True_, False):
        assert (
            align(PROBLEM, NET, paths=kept).growth.tolist() == align(PROBLEM, NET).growth.tolist()
        )
