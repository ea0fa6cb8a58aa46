"""One loop for both movers: stops, budgets, checkpoints, going over from one to the other."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from reluflow import Network, Problem, datasets, initialize
from reluflow.gradientflow import flow, loss_below, settled, solver, stationary, stops
from reluflow.gradientflow.stops import Stop, Watch
from reluflow.trajectory import Status, every


@pytest.fixture(scope="module")
def problem():
    return datasets.three_points()


@pytest.fixture(scope="module")
def net(problem):
    return initialize(problem, 12, scale=1e-2, rng=0)


@dataclass(frozen=True)
class Grown(Stop):
    """A condition of a user: the norm of the outputs."""

    size: float

    def met(self, mover, problem):
        if np.linalg.norm(mover.f) < self.size:
            return None
        return Status("grown", "The outputs have grown.")


class Low:
    """A condition that is no Stop: the loss has fallen below 0.3."""

    def met(self, mover, problem):
        low = problem.value(mover.f) < 0.3
        return Status("low", "That is low enough.") if low else None


@dataclass(frozen=True)
class Third(Stop):
    """The third time that the loss is below 0.3: something to remember."""

    def watch(self, problem):
        return _Count(self, problem)


class _Count(Watch):
    def met(self, mover):
        low = self.problem.value(mover.f) < 0.3
        self.memory["count"] = self.memory.get("count", 0) + low
        return Status("third", "The third time.") if self.memory["count"] >= 3 else None


def both(problem, net, stop, **options):
    """The run with kinks located, and the one without."""
    return (
        flow(problem, net, stop=stop, save=every(1.0), **options),
        flow(problem, net, stop=stop, save=every(1.0), kinks=False, rtol=1e-7, **options),
    )


@pytest.mark.parametrize(
    ("stop", "code", "off"),
    [
        (loss_below(0.1), "loss", 1e-5),
        (lambda p, n, t: t > 6.0, "predicate", 0.3),
        (Grown(0.5), "grown", 0.3),
        (Low(), "low", 0.3),
        (stops.Worked(-1.0), "max_seconds", 0.0),
    ],
)
def test_a_stop_is_the_same_on_both_movers(problem, net, stop, code, off):
    located, unlocated = both(problem, net, stop, max_steps=5000)
    assert located.status.code == unlocated.status.code == code
    assert abs(located.times[-1] - unlocated.times[-1]) <= off
    assert "not located" in unlocated.status
    assert "not located" not in located.status


@pytest.mark.parametrize(
    ("make", "tol", "clock"), [(stationary, 1e-3, "time"), (settled, 0.04, "loss")]
)
def test_rest_is_the_same_on_both_movers(make, tol, clock):
    """Steps with kinks located are long and tested at their ends: to a factor of two in tol."""
    easy = Problem([[1.0, 0.4], [-1.0, 0.3]], [1.0, -1.0], loss="exponential", leak=0.2)
    easy = easy if clock == "loss" else easy.replace(loss="square")
    start = initialize(easy, 4, scale=0.1, rng=0)
    early, late = (
        flow(easy, start, stop=make(part * tol), clock=clock, rtol=1e-12) for part in (2.0, 0.5)
    )
    run = flow(easy, start, stop=make(tol), clock=clock, kinks=False, rtol=1e-6)
    assert {early.status.code, late.status.code, run.status.code} == {make.__name__}
    assert early.times[-1] < run.times[-1] < late.times[-1]


def test_the_first_of_several_thresholds_ends_the_run(problem, net):
    for run in both(problem, net, [loss_below(0.05), loss_below(0.2)]):
        assert "0.2, the target" in run.status
        assert run.loss[-1] == pytest.approx(0.2, abs=1e-8)


def test_a_stop_can_be_used_again(problem, net):
    """It keeps nothing of a run: the second is the same as the first."""
    stop = [stationary(1e-15), Third()]
    first, second = (flow(problem, net, stop=stop, kinks=kinks).times for kinks in (None, None))
    assert np.array_equal(first, second)
    assert flow(problem, net, stop=stop, kinks=False).status.code == "third"


def test_still_networks_are_recorded_on_both_movers():
    still = Problem([[1.0, 0.0]], [1.0])
    for kinks in (True, False):
        asleep = Network([[-1.0, 0.0]], [1.0])
        run = flow(still, asleep, t_end=5.0, kinks=kinks, save=[0.0, 1.0, 2.5, 5.0])
        assert run.times.tolist() == [0.0, 1.0, 2.5, 5.0]


class Kill(Exception):
    pass


class Killer:
    """Raises in the given call; a condition that never holds."""

    def __init__(self, call):
        self.call = call

    def __repr__(self):
        return "Killer"

    def met(self, mover, problem):
        self.call -= 1
        if self.call == 0:
            raise Kill


def interrupted(problem, net, path, call, stop=(), **options):
    """A run that is killed in a call of its stop, and the continuation of its checkpoint."""
    with pytest.raises(Kill):
        flow(
            problem,
            net,
            stop=[*stop, Killer(call)],
            checkpoint=path,
            checkpoint_seconds=0.0,
            **options,
        )
    return flow(problem, net, stop=[*stop, Killer(-1)], checkpoint=path, **options)


@pytest.mark.parametrize("kinks", [True, False])
def test_a_stop_remembers_across_a_checkpoint(problem, net, tmp_path, kinks):
    options = dict(kinks=kinks, save=every(0.5))
    whole = flow(problem, net, stop=[Third(), Killer(-1)], **options)
    assert whole.status.code == "third"
    call = int(whole.cost["steps"])  # between the first time and the third
    again = interrupted(problem, net, tmp_path / "run.npz", call, [Third()], **options)
    assert again.status == whole.status
    assert np.array_equal(again.times, whole.times)
    assert np.array_equal(again.networks.W, whole.networks.W)
    assert again.cost == whole.cost


class Clock:
    """A clock that goes on by one second whenever it is read."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


@pytest.mark.parametrize("kinks", [True, False])
def test_seconds_spent_before_a_checkpoint_count(problem, net, tmp_path, monkeypatch, kinks):
    """Of a budget of sixty, the continuation has what the first part left."""
    clock = Clock()
    monkeypatch.setattr("reluflow.gradientflow.loop.clock_time.monotonic", clock)
    options = dict(kinks=kinks, t_end=1e3, max_seconds=60.0, progress=False)
    path = tmp_path / "run.npz"
    whole = flow(problem, net, stop=[Killer(-1)], **options)
    assert whole.status.code == "max_seconds"
    again = interrupted(problem, net, path, 8, [], **options)
    assert again.status.code == "max_seconds"
    assert again.cost["steps"] <= whole.cost["steps"]  # a fresh budget would last for more
    assert not path.exists()


@pytest.mark.parametrize("kinks", [True, False])
def test_work_ends_a_run_at_the_same_step_after_a_kill(problem, net, tmp_path, kinks):
    """Also at every other size of the machine: no clock is looked at."""
    stop = [stops.Worked(0.02)]
    options = dict(kinks=kinks, t_end=1e3, progress=False)
    whole = flow(problem, net, stop=[*stop, Killer(-1)], **options)
    assert whole.status.code == "max_seconds"
    assert "budget of work, about 0.02 seconds" in whole.status
    again = interrupted(problem, net, tmp_path / "run.npz", 8, stop, **options)
    assert again.cost == whole.cost
    assert again.final.W.tobytes() == whole.final.W.tobytes()
    assert 8 < whole.cost["steps"] < flow(problem, net, **options).cost["steps"]


# ------------------------------------------------------------------ handing over
@pytest.fixture
def hasty(monkeypatch):
    """A few landings are enough to hand over."""
    monkeypatch.setattr(solver, "LANDINGS", 4)
    monkeypatch.setattr(solver, "WAY", 1e3)


def test_handover_goes_on_where_the_other_left(problem, net, hasty):
    exact = flow(problem, net, t_end=20.0, kinks=True, save=every(0.5))
    run = flow(problem, net, t_end=20.0, save=every(0.5))
    (change,) = run.settings["handovers"]
    assert change["to"] == "unlocated"
    assert change["rtol"] == 1e-4
    assert change["at"] in run.status
    assert "landings led no further" in run.status
    assert "not located" not in exact.status
    assert "handovers" not in exact.settings
    assert run.times.tolist() == exact.times.tolist()
    before = run.times < change["position"]
    assert np.array_equal(run.networks.W[before], exact.networks.W[before])
    assert np.allclose(run.loss, exact.loss, atol=1e-3)
    assert run.cost["landings"] == 4
    known = exact.events["time"] <= change["position"]
    assert np.array_equal(run.events["time"], exact.events["time"][known])


def test_checkpoints_hold_the_mover_that_was_handed_over_to(problem, net, hasty, tmp_path):
    options = dict(t_end=20.0, save=every(0.5))
    whole = flow(problem, net, stop=Killer(-1), **options)
    for call in (3, int(whole.cost["steps"]) - 3):
        again = interrupted(problem, net, tmp_path / "run.npz", call, **options)
        assert again.status == whole.status
        assert np.array_equal(again.networks.W, whole.networks.W)
        assert np.array_equal(again.events["time"], whole.events["time"])
        assert again.cost == whole.cost
        assert again.settings["handovers"] == whole.settings["handovers"]


def test_no_side_that_lasts_is_no_end(problem, net, monkeypatch):
    """Even where kinks are to be located to the end."""
    monkeypatch.setattr(solver, "MOST_ARRIVALS", -10 * net.m - 1)
    run = flow(problem, net, t_end=20.0, kinks=True)
    assert run.status.code == "finished"
    assert "where neurons stand on several kinks at once" in run.status
    assert run.loss[-1] == pytest.approx(flow(problem, net, t_end=20.0).loss[-1], abs=1e-3)


def circles(n=300, factor=0.5, noise=0.05):
    """Two noisy circles, one inside the other."""
    angle = np.linspace(0.0, 2 * np.pi, n // 2, endpoint=False)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.vstack([ring, factor * ring]) + noise * np.random.default_rng(0).standard_normal((n, 2))
    return Problem(X, np.repeat([-1.0, 1.0], n // 2), loss="logistic", bias=1.0)


def test_circles_are_finished():
    """Two hundred neurons in bundles meet each kink a hundred times, and it is located."""
    problem = circles()
    net = initialize(problem, 200, scale=1e-6, rng=0)
    run = flow(problem, net, t_end=400.0, rtol=1e-5, observe="accuracy")
    assert run.status.code == "finished"
    assert "From time" not in run.status
    assert run.cost["landings"] < 2000
    rough = flow(problem, net, t_end=400.0, kinks=False, observe="accuracy")
    assert run.loss[-1] == pytest.approx(rough.loss[-1], rel=0.05)


def test_a_run_busy_with_landings_hands_over(monkeypatch):
    """With little patience, at some landings, the run ends where unlocated steps do."""
    monkeypatch.setattr("reluflow.gradientflow.solver.LANDINGS", 20)
    monkeypatch.setattr("reluflow.gradientflow.solver.WORTH", math.inf)  # kinks are not passed
    problem = circles()
    net = initialize(problem, 200, scale=1e-6, rng=0)
    run = flow(problem, net, t_end=400.0, rtol=1e-5, observe="accuracy", bundles=False)
    assert run.status.code == "finished"
    assert "From time" in run.status
    assert run.settings["handovers"]
    rough = flow(problem, net, t_end=400.0, kinks=False, observe="accuracy")
    assert run.loss[-1] == pytest.approx(rough.loss[-1], rel=0.05)
