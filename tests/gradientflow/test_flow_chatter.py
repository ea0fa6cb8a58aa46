"""Steps that do not locate kinks, and neurons that slide on one: it is located from there on."""

import numpy as np
import pytest

from reluflow import Problem, every, flow, initialize
from reluflow.gradientflow.chatter import LOOKS, OFTEN, PERIOD, Chatter
from reluflow.gradientflow.relocate import located_rtol
from reluflow.gradientflow.stops import Stop


def drawn(seed):
    """Twelve points in space with labels that eight neurons cannot fit: some end on kinks."""
    rng = np.random.default_rng(seed)
    problem = Problem(rng.standard_normal((12, 3)), rng.standard_normal(12))
    return problem, initialize(problem, 8, scale=1e-2, rng=seed)


@pytest.mark.parametrize("seed", range(6))
def test_a_sliding_neuron_does_not_take_a_million_steps(seed):
    """Step errors are 1e-8 of each; without a change of mover 20,000 steps end before t = 5."""
    problem, net = drawn(seed)
    run = flow(problem, net, t_end=60.0, kinks=False, rtol=1e-8, max_steps=3_000)
    exact = flow(problem, net, t_end=60.0, rtol=1e-10)
    assert run.status.code == "finished"
    (change,) = run.settings["handovers"]
    assert change["to"] == "located"
    assert change["rtol"] == 1e-8
    assert f"were not located until {change['at']}, where neurons slide on kinks" in run.status
    assert np.abs(run.final(problem.X) - exact.final(problem.X)).max() < 1e-7
    slides = exact.events["time"][exact.events["kind"] == 2]
    assert change["position"] > slides.min()  # not before there is a reason


@pytest.mark.parametrize("rtol", [1e-4, 1e-6])
def test_the_error_falls_with_the_tolerance(rtol):
    problem, net = drawn(1)
    run = flow(problem, net, t_end=60.0, kinks=False, rtol=rtol, max_steps=3_000)
    assert run.status.code == "finished"
    assert run.settings["handovers"][0]["rtol"] == pytest.approx(max(rtol**2, 1e-8))
    exact = flow(problem, net, t_end=60.0)
    assert np.abs(run.final(problem.X) - exact.final(problem.X)).max() < rtol


def test_tolerances_go_both_ways():
    assert located_rtol(1e-3) == pytest.approx(1e-6)
    assert located_rtol(1e-4) == pytest.approx(1e-8)
    assert located_rtol(1e-6) == 1e-8
    assert located_rtol(1e-10) == 1e-10


def steps_of(chatter, path):
    """What the watch says at the end of each step along a path of one neuron in one dimension."""
    said = []
    for before, ahead, after in path:
        if chatter.due():
            said.append(chatter.look(*(np.array([[w]]) for w in (before, ahead, after))))
    return said


def test_crossing_is_not_sliding():
    crossing = [(1.0 - 0.1 * i, 0.9 - 0.1 * i, 0.9 - 0.1 * i) for i in range(LOOKS)]
    rest = [(1.0, 1.0, 1.0)] * PERIOD
    assert steps_of(Chatter(np.ones((1, 1))), rest + crossing) == [False] * LOOKS


@pytest.mark.parametrize("after", [-1.0, 1.0])
def test_to_and_fro_is_sliding_on_either_side_too(after):
    """The neuron changes its side, or only its velocity at the start of a step would do that."""
    rest, touch = [(1.0, 1.0, 1.0)] * PERIOD, [(1.0, -1.0, after)]
    quiet = [(1.0, 1.0, 1.0)] * (LOOKS // OFTEN - 1)
    said = steps_of(Chatter(np.ones((1, 1))), rest + (touch + quiet) * OFTEN)
    assert said == [False] * (LOOKS - 1) + [True]


def test_not_while_many_other_kinks_are_met():
    """Locating those would cost more than sliding neurons do."""
    X = np.vstack([[1.0, 0.0], np.column_stack([np.zeros(40), 1.0 + np.arange(40.0)])])
    chatter = Chatter(X)
    one, other = np.array([[1.0, 1.0]]), np.array([[-1.0, 1.0]])
    for i in range(PERIOD + LOOKS):
        after = other if i % 2 == 0 else one
        after = after * [1.0, -1.0 if i == PERIOD + 3 else 1.0]
        if chatter.due():
            assert not chatter.look(one if i % 2 == 0 else other, after, after)


class Killer(Stop):
    """Ends the process, as far as the flow can tell, when it is asked for the n-th time."""

    def __init__(self, calls):
        self.calls, self.asked = calls, 0

    def __repr__(self):
        return "Killer"

    def met(self, mover, problem):
        self.asked += 1
        if self.asked == self.calls:
            raise KeyError("killed")


@pytest.mark.parametrize("call", [PERIOD + LOOKS // 2, PERIOD + LOOKS + 20])
def test_a_kill_in_a_watch_or_after_it_changes_nothing(tmp_path, call):
    problem, net = drawn(3)
    options = dict(t_end=20.0, kinks=False, rtol=1e-8, save=every(1.0), max_steps=3_000)
    whole = flow(problem, net, stop=Killer(-1), **options)
    saved = dict(checkpoint=tmp_path / "run.npz", checkpoint_seconds=0.0)
    with pytest.raises(KeyError):
        flow(problem, net, stop=Killer(call), **options, **saved)
    again = flow(problem, net, stop=Killer(-1), **options, **saved)
    assert again.status == whole.status
    assert again.settings["handovers"] == whole.settings["handovers"]
    assert np.array_equal(again.networks.W, whole.networks.W)
    assert again.cost == whole.cost
