"""A view: one job at a time, the newest first, cancelled when asked."""

import threading
import time

import pytest

from reluflow.playback.messages import from_block
from reluflow.studio.session import Session

POINTS = {"source": "points", "rows": [[-1.0, 0.5], [0.5, 1.0], [1.0, -0.25]]}


class Front:
    """A front end that listens."""

    def __init__(self):
        self.messages = []
        self._new = threading.Condition()
        self.session = Session(self.take)

    def take(self, block):
        with self._new:
            self.messages.append(from_block(block))
            self._new.notify_all()

    def ask(self, kind, number, **settings):
        settings = {"data": POINTS, "bias": 1, "start": {"m": 20}, **settings}
        self.session.receive({"type": kind, "id": number, "side": "A", "settings": settings})

    def wait(self, wanted, seconds=90):
        """The first message, seen or to come, that is wanted."""
        end = time.monotonic() + seconds
        seen = 0
        with self._new:
            while time.monotonic() < end:
                for message, arrays in self.messages[seen:]:
                    if wanted(message):
                        return message, arrays
                seen = len(self.messages)
                self._new.wait(1.0)
        raise AssertionError(f"not among {[m['type'] for m, _ in self.messages]}")

    def done(self, number):
        return self.wait(lambda m: m["type"] == "done" and m["id"] == number)[0]


@pytest.fixture(scope="module")
def front():
    made = Front()
    yield made
    made.session.close()


def test_a_prediction_comes_in_parts(front):
    front.ask("predict", 1)
    assert front.done(1)["ok"]
    kinds = [m["type"] for m, _ in front.messages if m.get("id") == 1]
    assert kinds == ["problem", "landscape", "process", "process", "done"]
    first, whole = [m["process"] for m, _ in front.messages if m["type"] == "process"]
    assert first["partial"]
    assert not whole["partial"]
    assert first["times"] == whole["times"][:1]


def test_of_many_drags_the_last_one_is_predicted(front):
    for k in range(30):
        rows = [[-1.0, 0.5 + 0.01 * k], *POINTS["rows"][1:]]
        front.ask("predict", 100 + k, data={"source": "points", "rows": rows})
    front.done(129)
    problem = front.wait(lambda m: m["type"] == "problem" and m["id"] == 129)[0]["problem"]
    assert problem["y"][0] == pytest.approx(0.79)
    assert front.wait(lambda m: m["type"] == "process" and m["id"] == 129)[0]["process"]
    began = {m["id"] for m, _ in front.messages if m["type"] == "problem" and m["id"] >= 100}
    assert len(began) < 30  # those in between were dropped before they began


def test_cancel_ends_a_long_run_and_the_worker_goes_on(front):
    front.ask("simulate", 200, start={"m": 100_000})
    front.wait(lambda m: m["type"] == "progress" and m["id"] == 200)
    front.session.receive({"type": "cancel"})
    done = front.done(200)
    assert done["cancelled"]
    assert not any(m["type"] == "run" and m["id"] == 200 for m, _ in front.messages)
    front.ask("simulate", 201)
    assert front.done(201)["ok"]
    run = front.wait(lambda m: m["type"] == "run" and m["id"] == 201)
    assert run[1]["loss"][-1] == run[0]["run"]["end_loss"]


def test_a_prediction_cancels_a_run_of_older_settings(front):
    front.ask("simulate", 300, start={"m": 100_000})
    front.wait(lambda m: m["type"] == "progress" and m["id"] == 300)
    front.ask("predict", 301)
    assert front.done(300)["cancelled"]
    assert front.done(301)["ok"]


@pytest.mark.slow
def test_a_worker_that_does_not_listen_is_replaced(front, monkeypatch):
    front.ask("predict", 399)
    assert front.done(399)["ok"]  # the worker is made for the first job
    monkeypatch.setattr("reluflow.studio.session._GRACE", 0.5)
    monkeypatch.setattr(front.session._engine, "cancel", lambda: None)
    front.ask("simulate", 400, start={"m": 200_000})
    front.wait(lambda m: m["type"] == "progress" and m["id"] == 400)
    front.session.receive({"type": "cancel"})
    assert front.done(400)["cancelled"]
    front.ask("predict", 401)
    assert front.done(401)["ok"]


def test_weights_that_are_not_small_have_a_plan_as_well():
    """The first jump of usual weights is predicted at time 0: frames still go on."""
    import reluflow as rf
    from reluflow.studio.simulation import Planned, make_plan

    problem = rf.datasets.three_points()
    net = rf.initialize(problem, 200, scale=1.0, rng=0)
    process = rf.limit(problem, net)
    assert process.jump_times(log_scale=float(net.log_norms.max()))[0] == 0.0
    plan = make_plan(problem, net, 0.7, None, process, None)
    assert len(plan.times) > 100
    assert plan.times[-1] > 5.0
    assert Planned(()).after(0.0, whole=False) > 0.0
