"""`limit` against `flow` from e^-3000 and e^-30000: where they differ, the prediction says why."""

import numpy as np
import pytest

from reluflow import Problem, ReluflowError, flow, initialize, limit

SCALES = (3000.0, 30000.0)
STEPS = 10_000
TIME, LEVEL = 5e-3, 1e-3  # relative difference of jump times, and of losses over the first


def draw(seed):
    """Gaussian samples in two to four dimensions, real labels (square) or +-1 (logistic)."""
    rng = np.random.default_rng([17, seed])
    d, n, m = int(rng.integers(2, 5)), int(rng.integers(4, 11)), int(rng.integers(4, 11))
    X = rng.standard_normal((n, d))
    if seed % 2:
        problem = Problem(X, rng.choice([-1.0, 1.0], n), loss="logistic")
    else:
        problem = Problem(X, rng.standard_normal(n), loss="square")
    return problem, initialize(problem, m, scale=1.0, rng=rng)


def simulate(problem, net, process, L):
    """A run past the last predicted jump, with records around each and in the middle between.

    A run of more than STEPS steps is compared as far as it came.
    """
    times = process.jump_times(log_scale=-L)
    rates = [process.rates[i, who].max() for i, who in enumerate(process.neurons)]
    rest = process.relaxation[-1] if np.isfinite(process.relaxation[-1]) else 0.0
    end = times[-1] + max(60.0 / rates[-1], min(12.0 * rest, 0.5 * times[-1]))
    nodes = np.concatenate([[0.0], times, [end]])
    middles = 0.5 * (nodes[1:] + nodes[:-1])
    middles[-1] = nodes[-1]
    near = [t * np.linspace(0.98, 1.02, 81) for t in times]
    near += [t + np.linspace(-8.0, 8.0, 41) / g for t, g in zip(times, rates, strict=True)]
    save = np.unique(np.concatenate([middles, *near]))
    save = save[(save > 0.0) & (save <= nodes[-1])]
    start = net.scaled(-L - net.log_norms.max())
    run = flow(problem, start, t_end=nodes[-1], save=save, max_steps=STEPS)
    return run, middles


def differences(problem, net, process, L):
    """What differs: words on jump times, plateaus and the end, empty where they agree."""
    run, middles = simulate(problem, net, process, L)
    first, found = process.losses[0], []
    loss, reached = np.asarray(run.loss), float(run.times[-1])
    known = process.jump_times(log_scale=-L)
    for i, level in enumerate(0.5 * (process.losses[:-1] + process.losses[1:])):
        below = np.flatnonzero(loss <= level)
        if not below.size:
            if known[i] * (1.0 + TIME) < reached:
                found.append(f"jump {i + 1} is not seen")
            continue
        k = below[0]
        seen = np.interp(-level, -loss[k - 1 : k + 1], run.times[k - 1 : k + 1]) if k else 0.0
        if abs(seen / known[i] - 1.0) > TIME:
            found.append(f"jump {i + 1} at {seen / L:.5g} L, predicted {known[i] / L:.5g} L")
    for i, (t, level) in enumerate(zip(middles, process.losses, strict=True)):
        if np.isinf(process.relaxation[i]):
            continue  # samples on their way to infinity: their loss falls like 1/t
        if t <= reached and abs(np.interp(t, run.times, loss) - level) > LEVEL * first:
            found.append(
                f"plateau {i} at {np.interp(t, run.times, loss):.5g}, predicted {level:.5g}"
            )
    return found


def report(seeds, scales=SCALES):
    """One row for each problem and scale: seed, scale, ending, differences (None: flow has no
    answer), status."""
    rows = []
    for seed in seeds:
        problem, net = draw(seed)
        process = limit(problem, net)
        for L in scales:
            found = []
            if process.n_jumps:
                try:
                    found = differences(problem, net, process, L)
                except ReluflowError:
                    found = None
            rows.append((seed, L, process.ending, found, process.status))
    return rows


def unexplained(rows):
    """Rows that differ although the status names no reason."""
    reasons = ("exact balance", "Not followed", "to rest before the next jump only from scales")
    return [row[:4] for row in rows if row[3] and not any(reason in row[4] for reason in reasons)]


def test_problems_agree_or_say_why():
    """Seven problems that agree or rest on balance, and one with a plateau that e^-3000 skips."""
    assert not unexplained(report([0, 2, 4, 6, 7, 8, 9, 32], SCALES[:1]))


@pytest.mark.nightly
def test_sixty_problems_agree_or_say_why():
    assert not unexplained(report(range(60)))
