"""Limits judged from finite runs: by a power law over decades."""

import numpy as np
import pytest

from reluflow import Network, Problem
from reluflow.claims.limits import rate_seen, tends_to_zero
from reluflow.claims.verdict import Status
from reluflow.papers.llwa21.claims import limit
from reluflow.papers.llwa21.runs import recorded_run, smoothed_margin

X = np.geomspace(10.0, 1e4, 40)


@pytest.mark.parametrize("power", [0.02, 0.5, 2.0])
def test_the_power_of_a_fall(power):
    seen, span = rate_seen(X, 3.0 * X**-power)
    assert seen == pytest.approx(power)
    assert span == pytest.approx(3.0)
    crowded = np.sort(np.append(X, np.linspace(9e3, 1e4, 500)))  # records need not be even
    assert rate_seen(crowded, crowded**-power)[0] == pytest.approx(power)


def test_a_fall_at_the_rate_holds():
    assert tends_to_zero(X, X**-0.5, 0.5, "x").status is Status.HOLDS
    assert tends_to_zero(X, X**-0.7, 0.5, "x", expected=0.01).status is not Status.FAILS


def test_a_slow_fall_decides_nothing_where_the_limit_has_a_slow_mode():
    slow = 1e-2 * X**-0.015
    found = tends_to_zero(X, slow, 0.5, "residual", expected=0.013)
    assert found.status is Status.UNDECIDED
    assert found.measured == pytest.approx(0.015)
    assert "settles slowly" in found.what
    assert tends_to_zero(X, slow, 0.5, "residual", expected=0.5).status is Status.FAILS
    assert tends_to_zero(X, slow, 0.5, "residual").status is Status.FAILS


def test_a_fall_that_is_slower_than_expected_decides_nothing():
    """A run that ends while values still fall cannot refute that they tend to 0."""
    found = tends_to_zero(X, X**-0.44, 0.5, "x", expected=0.9)
    assert found.status is Status.UNDECIDED
    assert found.measured == pytest.approx(0.44)


def test_a_rise_fails_also_beside_a_slow_mode():
    assert tends_to_zero(X, X**0.3, 0.5, "x", expected=0.01).status is Status.FAILS


def test_the_last_decade_must_fall_too():
    stands = np.maximum(X**-0.5, 1000.0**-0.5)
    assert rate_seen(X, stands)[0] > 0.25
    assert tends_to_zero(X, stands, 0.5, "x", expected=0.5).status is Status.FAILS


def test_what_has_reached_its_error_has_fallen():
    assert tends_to_zero(X, np.full(40, 1e-9), 0.5, "x", floor=1e-8).status is Status.HOLDS


def test_a_sliding_neuron_has_the_best_slope_at_its_kink():
    """w = 0.5 e2 on the hyperplane of e1 up to rounding, of either sign: the angle is the same."""
    problem = Problem([[1.0, 0.0], [0.6, 0.8]], [-1.0, 1.0], loss="logistic")
    angles = []
    for off in (1e-17, -1e-17, 0.0):
        net = Network([[off, 30.0]], [30.0])
        angles.append(limit.off_radial(OneRecord(problem, net), 0))
    assert angles == pytest.approx([angles[0]] * 3, rel=1e-9)
    sides = [smoothed_margin(problem, Network([[off, 30.0]], [30.0]))[2] for off in (1e-17, -1e-17)]
    assert sides[0] != pytest.approx(sides[1], rel=1e-3)  # what the sign of rounding would say


class OneRecord:
    """Evidence of one network."""

    near_kink = 1e-9

    def __init__(self, problem, net):
        self.problem, self.net, self._known = problem, net, {}

    def path(self):
        return [self.net]


def test_the_sine_is_a_sine():
    evidence = recorded_run(seed=0, m=6, q_min=500.0)
    shown = limit.settling_records(evidence)
    sines = [limit.off_radial(evidence, i) for i in shown]
    assert all(0.0 <= sine <= 1.0 for sine in sines)
    found = limit.direction_to_kkt(evidence)
    assert [c.sense for c in found[3:]] == [">=", ">="]
    assert all("power of the fall" in c.what for c in found[3:])
    assert found[4].measured == pytest.approx(0.5, abs=0.01)  # KKT residual as 1/|theta|
