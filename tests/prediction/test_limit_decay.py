"""The limit process with weight decay: against runs from small scales, ridge and closed forms."""

import numpy as np
import pytest

from reluflow import Problem, ReluflowError, flow, initialize, limit, max_G, ridge
from reluflow.landscape.alignment import G

# random cases whose jumps a run at 1e-60 can show, and whose last plateau it reaches soon after
CLEAR = (0, 1, 3, 6, 7, 9, 13, 14, 15, 16, 18, 21, 22, 23, 29, 30, 31, 34, 35, 36)


def random_case(seed):
    rng = np.random.default_rng(1000 + seed)
    problem = Problem(rng.normal(size=(6, 3)), rng.normal(size=6))
    decay = max_G(problem).value * rng.uniform(0.05, 0.5)
    return problem, decay


def start_of(problem, seed, scale):
    return initialize(problem, 8, scale=scale, kind="balanced", rng=seed)


def half_times(run, losses):
    """When the loss has fallen half of the way from each level to the next."""
    found = []
    for middle in 0.5 * (losses[:-1] + losses[1:]):
        i = int(np.argmax(run.loss <= middle))
        found.append(np.interp(middle, run.loss[[i, i - 1]], run.times[[i, i - 1]]))
    return np.array(found)


@pytest.mark.parametrize(
    "seed",
    [*CLEAR[:2], *(pytest.param(s, marks=pytest.mark.slow) for s in CLEAR[2:])],
)
@pytest.mark.parametrize("scale", [1e-60, 1e-120])
def test_jump_times_and_levels_of_runs(seed, scale):
    problem, decay = random_case(seed)
    process = limit(problem, start_of(problem, seed, 1.0), weight_decay=decay)
    start = start_of(problem, seed, scale)
    times = process.jump_times(log_scale=float(start.log_norms.max()))
    grid = [np.linspace(0.0, 1.1 * times[-1] + 20.0, 100)]
    grid += [t + np.linspace(-20.0, 20.0, 200) for t in times]
    save = np.unique(np.concatenate(grid))
    save = save[(save >= 0.0) & (save <= grid[0][-1])]
    how = {"save": save, "observe": "outputs", "weight_decay": decay}
    run = flow(problem, start, t_end=float(grid[0][-1]), **how)
    assert np.abs(half_times(run, process.losses) / times - 1.0).max() < 1e-3
    assert run.loss[-1] == pytest.approx(process.losses[-1], rel=1e-6)
    assert process.weight_decay == decay


@pytest.mark.parametrize("seed", range(12))
def test_plateaus_are_critical_and_slow_groups_never_jump(seed):
    problem, decay = random_case(seed)
    process = limit(problem, start_of(problem, seed, 1.0), weight_decay=decay)
    assert np.nanmax(process.residuals) < 1e-12
    for i, net in enumerate(process.networks):
        c = problem.pull_at(problem.outputs(net))
        W = process.directions[i]
        gross = process.signs * G(problem, W, c)
        dormant = ~process.active[i] & W.any(axis=1)
        assert np.allclose(process.rates[i, dormant], gross[dormant] - decay, atol=1e-9)
        assert np.allclose(gross[process.active[i]], decay, atol=1e-9)  # at rest against the decay
        if i < process.n_jumps:
            assert (gross[process.neurons[i]] > decay).all()


def test_a_group_below_the_decay_never_jumps():
    # two orthonormal samples: gains 1 and 1/2 of the pull; only the first beats a decay between
    problem = Problem(np.eye(2), np.array([2.0, 1.0]))
    where = {"directions": [[1.0, -1.0], [-1.0, 1.0]], "signs": [1, 1]}
    process = limit(problem, weight_decay=0.7, **where)
    assert process.n_jumps == 1
    assert process.times == pytest.approx([1.0 / (1.0 - 0.7)])
    assert process.final(problem.X) == pytest.approx([2.0 - 2 * 0.7, 0.0])  # y - n lambda
    assert process.ending == "spurious"  # a neuron that reads both samples would grow
    assert process.gain == pytest.approx(np.hypot(0.7, 0.5) - 0.7)
    silent = limit(problem, weight_decay=2.0, **where)
    assert silent.n_jumps == 0
    assert silent.ending == "global"
    assert "nothing grows against the decay" in silent.status


@pytest.mark.parametrize("seed", [1, 6, 7, 13])
def test_a_global_end_is_that_of_ridge(seed):
    problem, decay = random_case(seed)
    process = limit(problem, start_of(problem, seed, 1.0), weight_decay=decay)
    assert process.ending == "global"
    W, a = process.final.weights()
    value = process.losses[-1] + 0.5 * decay * float(np.sum(W**2) + np.sum(a**2))
    assert value == pytest.approx(ridge(problem, decay).value, rel=1e-9)


def test_no_decay_is_the_same_process():
    problem, _ = random_case(2)
    net = start_of(problem, 2, 1.0)
    plain, none = limit(problem, net), limit(problem, net, weight_decay=0.0)
    assert np.array_equal(plain.times, none.times)
    assert np.array_equal(plain.losses, none.losses)


def test_margin_losses_stay_finite():
    problem = Problem(np.eye(2), np.array([1.0, -1.0]), loss="logistic")
    where = {"directions": [[1.0, -1.0], [-1.0, 1.0]], "signs": [1, -1]}
    process = limit(problem, weight_decay=0.1, **where)
    # c = lambda on each sample: 1/(2 (1 + e^q)) = 0.1
    assert process.final(problem.X) == pytest.approx([np.log(4.0), -np.log(4.0)])
    assert process.ending == "global"


def test_refusal():
    problem, _ = random_case(0)
    with pytest.raises(ReluflowError, match="weight_decay must be"):
        limit(problem, weight_decay=-1)
