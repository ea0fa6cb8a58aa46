"""Budgets of the limit process: what the clock decided before a kill is decided so after it."""

import json

import numpy as np
import pytest

from reluflow import Problem, ReluflowError, explain, initialize, limit
from reluflow.explanation import explain as main_job
from reluflow.runtime import budget
from reluflow.runtime.budget import Clock
from reluflow.runtime.checkpoint import Checkpoint, KeptFile


class Killed(BaseException):
    """As a SIGKILL: nothing below catches it."""


class Time:
    """A clock on which ``tick`` seconds pass between two looks, and which kills at its end."""

    def __init__(self, tick, end):
        self.tick, self.end, self.looks = tick, end, 0

    def process_time(self):
        self.looks += 1
        if self.looks > self.end:
            raise Killed
        return self.looks * self.tick


@pytest.fixture
def clock(monkeypatch):
    """Let what follows live on a machine on which so much time passes between two looks."""

    def use(tick, end=float("inf")):
        made = Time(tick, end)
        monkeypatch.setattr(budget, "time", made)
        return made

    monkeypatch.setattr(Checkpoint, "due", lambda self: self.path is not None)
    return use


def draw(n, d, several=False):
    rng = np.random.default_rng(3)
    problem = Problem(rng.normal(size=(n, d)), rng.normal(size=(n, 2) if several else n))
    return problem, initialize(problem, 6, 1e-3, rng=0)


BUDGETS = {  # problem, and the budget that ends its process, or its proofs, after some looks
    "process": (draw(5, 2), {"max_seconds": 1.5}),
    "proofs": (draw(40, 5), {"seconds": 26.0}),  # 24 looks of the process, then those of proofs
    "several outputs": (draw(5, 2, several=True), {"max_seconds": 2.5}),
}


def numbers(process):
    """All that a report says of a process."""
    return json.dumps(process.to_dict(), sort_keys=True)


@pytest.mark.parametrize("what", BUDGETS)
@pytest.mark.parametrize("tick", [0.001, 100.0], ids=["idle", "busy"])
def test_a_process_that_ended_is_the_same_on_a_machine_of_another_speed(
    clock, tmp_path, what, tick
):
    (problem, net), options = BUDGETS[what]
    clock(1.0)
    first = limit(problem, net, checkpoint=KeptFile(tmp_path / "limit.npz"), **options)
    if what == "proofs":
        assert first.found == ("gain",)
    else:
        assert first.ending == "budget"
    clock(tick)
    second = limit(problem, net, checkpoint=KeptFile(tmp_path / "limit.npz"), **options)
    assert numbers(second) == numbers(first)
    clock(tick)  # without the file it would have become another one
    assert numbers(limit(problem, net, **options)) != numbers(first)


@pytest.mark.parametrize("what", BUDGETS)
def test_looks_that_were_paid_for_are_free(clock, tmp_path, what):
    """Killed at its second look: a machine that is slow then takes nothing of it back."""
    (problem, net), options = BUDGETS[what]
    clock(1.0)
    whole = limit(problem, net, **options)
    clock(1.0, end=2)
    with pytest.raises(Killed):
        limit(problem, net, checkpoint=tmp_path / "limit.npz", **options)
    clock(1.0)
    rest = limit(problem, net, checkpoint=tmp_path / "limit.npz", **options)
    assert numbers(rest) == numbers(whole)
    assert not (tmp_path / "limit.npz").exists()


def test_seconds_count_on_after_each_kill(clock, tmp_path):
    """A budget of ten seconds in four lives: none of them begins with ten."""
    clock(1.0)
    lives, spent = 0, []
    while True:
        lives += 1
        clock(1.0, end=5 + len(spent))  # beyond the looks that are repeated
        kept = Clock(Checkpoint(tmp_path / "clock.npz", "key", 1.0), 10.0)
        try:
            while not kept.decide(lambda seconds: spent.append(seconds) or seconds > 10.0):
                pass
            break
        except Killed:
            continue
    assert lives == 3
    assert spent == list(range(1, 12))
    kept.end()
    assert not (tmp_path / "clock.npz").exists()


def test_the_looks_of_another_process_are_refused(tmp_path, clock):
    """In a file of the user; one that the program keeps for itself is made anew."""
    (problem, net), _ = BUDGETS["process"]
    path = tmp_path / "limit.npz"
    clock(1.0)
    limit(problem, net, max_seconds=1.5, checkpoint=KeptFile(path))
    with pytest.raises(ReluflowError, match="belongs to a run with other data"):
        limit(problem, net, max_seconds=5.5, checkpoint=path)
    assert limit(problem, net, max_seconds=1e3, checkpoint=KeptFile(path)).ending != "budget"
    path.write_bytes(b"PK" + bytes(50))
    with pytest.raises(ReluflowError, match="is not a checkpoint"):
        limit(problem, net, max_seconds=1e3, checkpoint=path)
    assert limit(problem, net, max_seconds=1e3, checkpoint=KeptFile(path)).ending != "budget"


@pytest.mark.slow
@pytest.mark.parametrize("several", [False, True], ids=["one output", "several"])
def test_a_killed_explanation_goes_on_with_the_process_it_had(
    clock, tmp_path, monkeypatch, several
):
    """Its simulation was planned by the jumps that were found in the time given."""
    from reluflow.explanation.multioutput import stages

    problem = draw(5, 2, several)[0] if several else Problem(np.eye(3), [3.0, -2.0, 1.0])
    place = stages if several else main_job
    many = 1.25e6 if several else 1.5e5  # seconds enough for the simulation, on a true clock
    how = {"m": 6 if several else 30, "scale": 1e-3, "seconds": many, "out": tmp_path / "out"}

    def killed(*_):
        raise Killed

    clock(1e5)
    with monkeypatch.context() as patch:
        patch.setattr(place, "simulate", killed)
        with pytest.raises(Killed):
            explain(problem, **how)
    clock(1e2)  # idle now: a fresh budget would lead much further
    found = explain(problem, **how)
    assert found.process.ending == "budget"
    clock(1e5)
    whole = explain(problem, **{**how, "out": tmp_path / "whole"})
    assert numbers(found.process) == numbers(whole.process)
    assert found.run.loss.tobytes() == whole.run.loss.tobytes()
    reports = [json.loads((tmp_path / n / "report.json").read_text()) for n in ("out", "whole")]
    for report in reports:
        report["run"].pop("cost", None)
    assert reports[0] == reports[1]
    assert sorted(p.name for p in (tmp_path / "out").iterdir() if p.suffix) == [
        "report.html",
        "report.json",
        "run.nc",
    ]


def test_ctrl_c_ends_an_explanation_whatever_the_clock_says(tmp_path, monkeypatch):
    """It cuts the process short like a budget, and is not taken for one."""
    import importlib

    module = importlib.import_module("reluflow.prediction.limit")

    class Pressed(module.Interrupt):
        def __enter__(self):
            self.requested = True
            return self

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(module, "Interrupt", Pressed)
    problem, net = draw(5, 2)
    process = limit(problem, net)
    assert process.interrupted
    assert process.ending == "budget"
    with pytest.raises(KeyboardInterrupt):
        explain(problem, m=6, out=tmp_path)
