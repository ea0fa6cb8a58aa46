"""Budgets of seconds: what was spent before a kill is spent after it, whichever way of moving."""

import pytest

from reluflow import Problem, ReluflowError, Trajectory, flow, initialize
from reluflow.gradientflow import loop
from reluflow.runtime import checkpoint as checkpoints
from reluflow.runtime.checkpoint import KeptFile

TICK = 0.01  # seconds that pass between two looks at the clock


class Killed(BaseException):
    """As a SIGKILL: nothing below catches it."""


class Clock:
    """Passes TICK at each look, and kills who looks after its end."""

    def __init__(self, end=float("inf")):
        self.now, self.end = 0.0, end

    def monotonic(self):
        self.now += TICK
        if self.now > self.end:
            raise Killed
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """Let the next run live in the time of a clock of its own."""

    def use(end=float("inf")):
        made = Clock(end)
        for module, name in ((loop, "clock_time"), (checkpoints, "time")):
            monkeypatch.setattr(module, name, made)
        return made

    return use


@pytest.fixture
def setting(rng=3):
    import numpy as np

    draw = np.random.default_rng(rng)
    problem = Problem(draw.standard_normal((12, 4)), draw.standard_normal(12))
    return problem, initialize(problem, 8, 1e-3, rng=0)


@pytest.mark.parametrize("kinks", [True, False], ids=["located", "unlocated"])
def test_a_killed_run_gets_the_rest_of_its_budget(clock, setting, tmp_path, kinks):
    """Killed three times at 0.6 of the budget: the fourth call is not given a whole one."""
    problem, net = setting
    options = {"kinks": kinks, "rtol": 1e-10 if kinks else 1e-7, "t_end": 1e6, "max_steps": 10**6}
    path = tmp_path / "run.checkpoint"
    options |= {"checkpoint": path, "checkpoint_seconds": 60.0, "max_seconds": 4.0}
    clock()
    whole = flow(problem, net, **options)
    assert whole.status.code == "max_seconds"
    for end in (2.4, 1.0):
        clock(end)
        with pytest.raises(Killed):
            flow(problem, net, **options)
        assert path.exists()  # nothing of the budget would be remembered otherwise
    left = clock()
    last = flow(problem, net, **options)
    assert last.status.code == "max_seconds"
    # a share of 0.05 of the budget may be forgotten at each kill
    assert left.now < 4.0 - 2.4 - 1.0 + 2 * 0.05 * 4.0 + 0.5
    assert last.cost["steps"] == pytest.approx(whole.cost["steps"], rel=0.25)


@pytest.mark.parametrize("kinks", [True, False], ids=["located", "unlocated"])
def test_a_run_ended_by_its_budget_ends_the_same_after_a_kill(clock, setting, tmp_path, kinks):
    """Between its end and its storing: bit for bit, not with a fresh budget."""
    problem, net = setting
    options = {"kinks": kinks, "rtol": 1e-10 if kinks else 1e-7, "t_end": 1e6, "max_steps": 10**6}
    kept = KeptFile(tmp_path / "run.checkpoint")
    options |= {"checkpoint": kept, "max_seconds": 1.0}
    clock()
    first = flow(problem, net, **options)
    assert first.status.code == "max_seconds"
    clock()
    second = flow(problem, net, **options)
    assert second.loss.tobytes() == first.loss.tobytes()
    assert second.final.W.tobytes() == first.final.W.tobytes()
    assert second.times.tobytes() == first.times.tobytes()
    assert str(second.status) == str(first.status)
    assert second.cost == first.cost


def test_simulate_with_a_budget_ends_the_same_after_a_kill(tmp_path, monkeypatch):
    """The command: killed when it is about to store the run that its budget has ended."""
    from reluflow.cli.config import read_config
    from reluflow.cli.simulation import simulate

    config = read_config(
        None,
        {
            "data": {"source": "three-points"},
            "network": {"m": 30},
            "run": {"max_seconds": 0.3, "t_end": 1e6, "rtol": 1e-12, "kinks": False},
        },
    )

    def killed(run, path):
        made.append(run)
        raise Killed

    made = []
    with monkeypatch.context() as patch:
        patch.setattr(Trajectory, "save", killed)
        with pytest.raises(Killed):
            simulate(config, tmp_path / "run.nc")
    again = simulate(config, tmp_path / "run.nc")
    assert again.made == "resumed"
    assert again.run.status.code == made[0].status.code == "max_seconds"
    assert again.run.cost["steps"] == made[0].cost["steps"]
    assert again.run.final.W.tobytes() == made[0].final.W.tobytes()


def test_a_last_state_without_a_place_does_not_end_the_run(setting, tmp_path, monkeypatch):
    """The run may still find one: the checkpoint before it stays."""
    problem, net = setting

    def full(self, state):
        raise ReluflowError("cannot write: No space left on device")

    monkeypatch.setattr(checkpoints.Checkpoint, "write", full)
    run = flow(problem, net, t_end=1.0, checkpoint=KeptFile(tmp_path / "run.checkpoint"))
    assert run.status.ok
