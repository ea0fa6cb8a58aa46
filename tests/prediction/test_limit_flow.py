"""The two roads meet: predicted jumps of random general data against simulated ones.

Prediction and simulation share no solver. What a pair of scales (1e-100, 1e-200) cannot show is
told from the prediction alone, before any simulation, and counted as undecided:

- a gap below 5 % between a jump and the next candidate, constants included (`gaps_at`);
- a plateau shorter than three relaxation times (`rests_at` below 3), after which e^-3 of the way
  to it is left and dates the next fall, a last one that takes longer than the run, or a jump time
  of which the constant makes up more than a third;
- neurons that shrink for ever only if they are balanced beyond rounding;
- jumps so far apart that the run would take too long.
"""

import numpy as np
import pytest

from reluflow import Problem, flow, initialize
from reluflow.prediction import limit

LOGS = (100 * np.log(10.0), 200 * np.log(10.0))
REST = 3.0  # relaxation times that a plateau must last


def instance(seed):
    rng = np.random.default_rng(seed)
    d, n, m = int(rng.integers(2, 6)), int(rng.integers(3, 13)), int(rng.integers(4, 31))
    problem = Problem(rng.standard_normal((n, d)), rng.standard_normal(n))
    return problem, initialize(problem, m, scale=1.0, rng=rng)


def undecided(process):
    """Why these scales cannot show the limit, or an empty string."""
    if (process.rates < 0).any():
        return "shrinks"
    gap = min(process.gaps_at(log_scale=-L).min(initial=np.inf) for L in LOGS)
    if gap < 0.05:
        return "gap"
    rest = min(process.rests_at(log_scale=-L).min(initial=np.inf) for L in LOGS)
    if rest < REST or (np.abs(process.offsets) > 0.3 * LOGS[0] * process.times).any():
        return "slow"
    last = process.jump_times(log_scale=-LOGS[0]).max()
    if np.nanmax(process.relaxation[-1:]) > 0.1 * last:  # the run ends before it is at rest
        return "slow"
    return "long" if process.jump_times(log_scale=-LOGS[1]).max() > 1e4 else ""


def simulated(problem, net, process, L):
    """When half of each fall of the loss is done, losses where each plateau is flattest, and the
    final loss of a run."""
    times = process.jump_times(log_scale=-L)
    rates = [process.rates[i, group].max() for i, group in enumerate(process.neurons)]
    starts = np.concatenate([[0.0], times[:-1]])
    rest = np.nanmax(process.relaxation[-1:])
    end = times[-1] + 30.0 * min(max(rest, 1.0 / min(rates)), 0.1 * times[-1])
    save = [np.linspace(a, b, 60) for a, b in zip(starts, times, strict=True)]
    save += [t + np.linspace(-12, 12, 121) / g for t, g in zip(times, rates, strict=True)]
    save = np.unique(np.concatenate([*save, [end]]))
    run = flow(
        problem,
        net.scaled(-L - net.log_norms.max()),
        t_end=end,
        save=save[(save >= 0) & (save <= end)],
        states=True,
    )
    t = np.asarray(run.times)
    half = []
    for before, after in zip(process.losses[:-1], process.losses[1:], strict=True):
        k = np.flatnonzero(run.loss <= 0.5 * (before + after))[0]
        half.append(np.interp(-0.5 * (before + after), -run.loss[k - 1 : k + 1], t[k - 1 : k + 1]))
    slope = np.abs(np.diff(run.loss) / np.diff(t))
    flat = []
    for a, b in zip(starts, times, strict=True):
        inside = np.flatnonzero((t[:-1] >= a) & (t[1:] <= b))
        flat.append(run.loss[inside[slope[inside].argmin()]])
    return np.array(half), np.array(flat), float(run.loss[-1])


def compare(seeds, wanted):
    """Check instances until ``wanted`` were decided; returns the count of each reason not to."""
    counts = {"decided": 0, "gap": 0, "slow": 0, "shrinks": 0, "long": 0, "no jump": 0}
    for seed in seeds:
        problem, net = instance(seed)
        process = limit(problem, net)
        assert process.ending not in ("unresolved", "budget"), (seed, process.status)
        why = "no jump" if process.n_jumps == 0 else undecided(process)
        counts[why or "decided"] += 1
        if why:
            continue
        found = [simulated(problem, net, process, L) for L in LOGS]
        quotient = (found[1][0] - found[0][0]) / (LOGS[1] - LOGS[0])
        where = f"seed {seed}"
        np.testing.assert_allclose(quotient, process.times, rtol=1e-3, err_msg=where)
        np.testing.assert_allclose(found[1][1], process.losses[:-1], atol=1e-6, err_msg=where)
        assert found[1][2] == pytest.approx(process.losses[-1], abs=1e-6), where
        order = np.argsort(found[1][0], kind="stable")
        np.testing.assert_array_equal(order, np.arange(process.n_jumps), err_msg=where)
        if counts["decided"] == wanted:
            break
    return counts


def test_random_data_against_flow():
    counts = compare([3, 8, 25, 29, 33, 34, 53, 54, 59, 60, 62], 8)
    assert counts["decided"] == 8, counts


@pytest.mark.slow
def test_fifty_random_problems_against_flow(record_property):
    counts = compare(range(300), 50)
    record_property("counts", counts)
    print(counts)
    assert counts["decided"] == 50, counts


@pytest.mark.parametrize("loss", ["half_square", "square", "logistic", "exponential"])
def test_a_jump_is_half_done_when_half_of_the_fall_of_the_loss_is(loss):
    """One definition for every loss: at the predicted time the run's loss is half way between the
    plateaus. Groups of margin losses have half of their squared norm far later, or never."""
    rng = np.random.default_rng(12)
    X = np.column_stack([rng.standard_normal((12, 2)), np.ones(12)])
    y = np.where(X[:, 0] + 0.8 * rng.standard_normal(12) > 0, 1.0, -1.0)
    problem = Problem(X, y, loss=loss)
    net = initialize(problem, 10, scale=1.0, rng=rng)
    process = limit(problem, net)
    L = 700.0
    times = process.jump_times(log_scale=-L)
    known = np.isfinite(process.offsets) & (process.rests_at(log_scale=-L) > 20.0)
    assert known[0]
    run = flow(problem, net.scaled(-L - net.log_norms.max()), t_end=times[-1] + 1.0, save=times)
    middle = 0.5 * (process.losses[:-1] + process.losses[1:])
    fall = process.losses[:-1] - process.losses[1:]
    share = (np.interp(times, run.times, run.loss) - middle) / fall
    assert np.abs(share[known]).max() < 1e-2


@pytest.mark.slow
def test_moons_jump_when_predicted_at_1e_20():
    """Two moons with logistic loss: 198.1 and 218.2, where half of the squared norms comes at
    222.7 and 238.8."""
    sklearn = pytest.importorskip("sklearn.datasets")
    X, labels = sklearn.make_moons(200, noise=0.1, random_state=0)
    problem = Problem(X, 2.0 * labels - 1.0, loss="logistic", bias=1.0)
    net = initialize(problem, 200, scale=1e-20, rng=0)
    process = limit(problem, net)
    first = process.jump_time(0, log_scale=net.log_norms.max())
    run = flow(problem, net, t_end=first + 1.0, save=first + np.linspace(-1.0, 1.0, 41))
    level = 0.5 * (process.losses[0] + process.losses[1])
    seen = np.interp(-level, -run.loss, run.times)
    assert first == pytest.approx(seen, abs=0.05)
