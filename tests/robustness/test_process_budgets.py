"""Budgets of the limit process: what the clock decided before a kill is decided so after it."""

import json
import time

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

    def thread_time(self):
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


def three_classes():
    rng = np.random.default_rng(3)
    label = np.arange(60) % 3
    X = rng.normal(size=(60, 3)) + 2.0 * np.eye(3)[label]
    return Problem(X, np.array(["a", "b", "c"])[label], loss="softmax")


def kill_at(patch, place, name, call):
    """Let the process die in a call of a function."""
    real, calls = getattr(place, name), []

    def counted(*given, **named):
        calls.append(None)
        if len(calls) == call:
            raise Killed
        return real(*given, **named)

    patch.setattr(place, name, counted)


@pytest.mark.slow
@pytest.mark.parametrize("several", [False, True], ids=["one output", "three classes"])
def test_an_explanation_killed_twice_comes_to_the_same_numbers(tmp_path, monkeypatch, several):
    """Killed in its prediction and in its run, both cut short by its budget.

    The machine is three times as fast, or a tenth as fast, in its later lives.
    """
    from reluflow.explanation import simulate
    from reluflow.explanation.multioutput import stages
    from reluflow.gradientflow.loop import Loop
    from reluflow.prediction import transit
    from reluflow.prediction.multioutput import transit as transit_of_vectors

    step = (transit_of_vectors, "doubled_step") if several else (transit, "_step")
    problem, m, seconds = (three_classes(), 8, 0.5) if several else (draw(40, 5)[0], 120, 0.3)
    # what takes long and looks at no clock
    monkeypatch.setattr(stages, "best_network", lambda _: None)
    for name in ("find_optimum", "train_from_large", "check_claims"):
        monkeypatch.setattr(main_job, name, lambda *_: None)
    monkeypatch.setattr(Checkpoint, "due", lambda self: self.path is not None)
    for place in (simulate, stages):  # these budgets are so small that a busy machine meets it
        monkeypatch.setattr(place, "GUARD", 1e9)
    clocks = {name: getattr(time, name) for name in ("thread_time", "process_time", "monotonic")}

    def life(folder, speed, *kill):
        with monkeypatch.context() as patch:
            for name, real in clocks.items():
                patch.setattr(time, name, lambda real=real: real() / speed)
            if kill:
                kill_at(patch, *kill)
            return explain(problem, m=m, scale=1e-3, seconds=seconds, out=tmp_path / folder)

    whole = life("whole", 1.0)
    assert whole.process.ending == "budget"
    assert whole.run.status.code == "max_seconds"
    with pytest.raises(Killed):
        life("killed", 1.0, *step, 10)
    with pytest.raises(Killed):
        life("killed", 3.0, Loop, "_move", 40)
    found = life("killed", 0.1)
    assert numbers(found.process) == numbers(whole.process)
    assert found.run.loss.tobytes() == whole.run.loss.tobytes()
    assert found.run.final.W.tobytes() == whole.run.final.W.tobytes()
    reports = [json.loads((tmp_path / n / "report.json").read_text()) for n in ("killed", "whole")]
    assert reports[0] == reports[1]


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
