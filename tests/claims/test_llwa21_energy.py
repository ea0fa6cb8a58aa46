"""[LLWA21]_ Lemma B.15 as an equality: the least subgradient, and what a wrong one would show."""

import numpy as np
import pytest

from reluflow import Network
from reluflow.claims import Status
from reluflow.claims.claim import load_all
from reluflow.claims.run import run_check
from reluflow.papers.llwa21.claims import kinks as llwa21_energy
from reluflow.papers.llwa21.claims.kinks import VALLEY, measure, min_norm_velocity
from reluflow.trajectory.observables import velocity


def valley(h):
    w = np.array([[0.15, h]])
    return Network(w, np.linalg.norm(w, axis=1), leak=0.2)


def test_the_least_subgradient_slides():
    on = min_norm_velocity(VALLEY, valley(0.0))[0]
    sides = [velocity(VALLEY, valley(h))[0][0] for h in (1e-9, -1e-9)]
    assert sides[0][1] < -0.01 < 0.01 < sides[1][1]  # both sides point into the valley
    assert on[1] == pytest.approx(0.0, abs=1e-15)
    assert on[0] > 0
    assert all(np.linalg.norm(on[:2]) < np.linalg.norm(side) for side in sides)


def test_off_the_kinks_it_is_the_gradient():
    net = valley(0.1)
    dW, da = velocity(VALLEY, net)
    assert np.allclose(min_norm_velocity(VALLEY, net), np.column_stack([dW, da]), atol=1e-15)


def test_the_gradient_of_one_side_is_noticed(monkeypatch):
    def one_sided(problem, net):
        return np.column_stack(velocity(problem, net))

    monkeypatch.setattr(llwa21_energy, "min_norm_velocity", one_sided)
    slope, energy, slid, _ = measure(VALLEY, valley(0.04), 12.0, 24)
    assert slid == 1
    assert slope > 0.1
    assert energy > 1e-3
    check = load_all()["LLWA21-LB.15/slide"]
    assert run_check(check).status is Status.FAILS
