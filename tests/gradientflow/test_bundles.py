"""Neurons that point the same way meet kinks as one; several kinks are passed in one step."""

import numpy as np
import pytest

import reluflow as rf
from reluflow.gradientflow.stops import loss_below


def table(seed: int, scale: float = 1e-5) -> tuple[rf.Problem, rf.Network]:
    """A random table with labels of a small teacher, and a small start."""
    rng = np.random.default_rng([19, seed])
    n, d = int(rng.integers(30, 81)), int(rng.integers(2, 7))
    X = rng.standard_normal((n, d))
    teacher = rng.standard_normal((3, d))
    y = np.maximum(X @ teacher.T, 0.0) @ rng.choice([-1.0, 1.0], 3) + 0.1 * rng.standard_normal(n)
    if seed % 2:
        y, loss = np.where(y > np.median(y), 1.0, -1.0), "logistic"
    else:
        y, loss = (y - y.mean()) / y.std(), "half_square"
    problem = rf.Problem(X, y, loss=loss, leak=(0.0, 0.0, 0.1)[seed % 3], bias=1.0)
    return problem, rf.initialize(problem, m=40, scale=scale, rng=seed)


def until_third_fall(problem: rf.Problem, net: rf.Network) -> float:
    """A time that contains the first falls of the loss and what follows them."""
    stop = loss_below(0.9 * problem.silent_loss)
    first = rf.flow(problem, net, stop=stop, rtol=1e-5, states=True, t_end=1e4, progress=False)
    return 3.0 * float(first.times[-1])


def largest_gap(problem: rf.Problem, one: rf.Trajectory, two: rf.Trajectory) -> float:
    pairs = zip(one.path(), two.path(), strict=True)
    return max(float(np.abs(problem.outputs(a) - problem.outputs(b)).max()) for a, b in pairs)


def check(seed: int) -> tuple[rf.Trajectory, rf.Trajectory]:
    problem, net = table(seed)
    end = until_third_fall(problem, net)
    given = {"t_end": end, "rtol": 1e-8, "save": list(np.linspace(0.0, end, 25)), "progress": False}
    together = rf.flow(problem, net, kinks=True, **given)
    alone = rf.flow(problem, net, kinks=True, bundles=False, **given)
    assert largest_gap(problem, together, alone) <= 1e-6
    return together, alone


@pytest.mark.parametrize("seed", range(4))
def test_bundles_change_nothing_beyond_the_tolerance(seed):
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 30))
def test_bundles_on_more_tables(seed):
    check(seed)


def test_every_neuron_meets_the_same_kinks():
    """Events are those of all neurons, each at its own moment."""
    together, alone = check(2)
    assert together.cost["bundles"] > 0
    assert "bundles" not in alone.cost

    def met(run):
        rows = {}
        for j, k, t in zip(
            *(run.events[name] for name in ("neuron", "sample", "time")), strict=True
        ):
            rows.setdefault((int(j), int(k)), []).append(float(t))
        return rows

    one, two = met(together), met(alone)
    assert one.keys() == two.keys()
    gaps = [abs(a - b) for key in one for a, b in zip(one[key], two[key], strict=True)]
    assert max(gaps) <= 1e-4 * together.times[-1]


def test_error_falls_with_the_tolerance():
    """Two rings: neurons fan out and meet hundreds of kinks, one by one and in bundles."""
    rng = np.random.default_rng(3)
    angle = rng.uniform(0.0, 2.0 * np.pi, 80)
    radius = np.where(np.arange(80) % 2, 1.0, 0.5) + 0.05 * rng.standard_normal(80)
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    problem = rf.Problem(
        X / X.std(axis=0), np.where(np.arange(80) % 2, 1.0, -1.0), loss="logistic", bias=1.0
    )
    net = rf.initialize(problem, m=60, scale=1e-4, rng=0)
    end = until_third_fall(problem, net)
    save = list(np.linspace(0.0, end, 9))
    runs = {
        rtol: rf.flow(problem, net, t_end=end, rtol=rtol, save=save, kinks=True, progress=False)
        for rtol in (1e-5, 1e-7, 1e-9)
    }
    best = runs[1e-9]
    assert largest_gap(problem, runs[1e-5], best) <= 30 * 1e-5
    assert largest_gap(problem, runs[1e-7], best) <= 30 * 1e-7
    assert runs[1e-5].cost["steps"] < best.cost["steps"]


def test_records_inside_a_leap_do_not_depend_on_each_other():
    problem, net = table(0, 1e-30)
    end = 0.3 * until_third_fall(problem, net)
    given = {"t_end": end, "kinks": True, "progress": False}
    many = rf.flow(problem, net, save=list(np.linspace(0.0, end, 12)), **given)
    few = rf.flow(problem, net, save=[0.0, many.times[7], end], **given)
    assert many.cost["leaps"] > 0
    assert np.allclose(many.path()[7].directions, few.path()[1].directions, rtol=0, atol=1e-12)
    assert np.allclose(many.path()[7].log_norms, few.path()[1].log_norms, rtol=0, atol=1e-11)


def test_a_large_neuron_that_swings_about_a_kink_at_rest_is_stable():
    """Its crossings change next to nothing, but what they do feeds back on it K h B > 1 times."""
    rng = np.random.default_rng(54)
    d, n = int(rng.integers(2, 5)), int(rng.integers(3, 13))
    problem = rf.Problem(rng.normal(size=(n, d)), rng.normal(size=n))
    net = rf.initialize(problem, 12, scale=1e-2, rng=54)
    run = rf.flow(problem, net, max_steps=20_000, progress=False)
    assert run.status.code == "stationary"
    assert run.loss[-1] <= 1e-12
