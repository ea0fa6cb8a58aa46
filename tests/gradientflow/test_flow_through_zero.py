"""Neurons whose w reaches 0, and leaps that a neuron with very many kinks cuts short."""

import numpy as np
import pytest

import reluflow as rf
from reluflow.gradientflow import leaper
from reluflow.landscape.align import align


def dominated(seed: int, log_scale: float) -> tuple[rf.Problem, rf.Network]:
    """Random data in the plane and neurons with |a| > |w|, many of which slide into w = 0."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(3, 9)), 12
    problem = rf.Problem(rng.standard_normal((n, 2)), rng.standard_normal(n))
    W = rng.standard_normal((m, 2))
    a = rng.choice([-1.0, 1.0], m) * np.linalg.norm(W, axis=1) * (1.0 + 2.0 * rng.random(m))
    return problem, rf.Network(W, a, np.full(m, log_scale))


@pytest.mark.parametrize("seed", range(0, 24))
def test_a_neuron_that_reaches_zero_goes_on_as_early_alignment_says(seed):
    """It grows behind 0 along the same direction, or stays at w = 0 exactly."""
    problem, net = dominated(seed, -5000.0)  # so small that the pull stays what it is
    found = align(problem, net)
    met = [j for j in range(net.m) if "origin" in [e.kind for e in found.paths[j]]]
    if not met:
        pytest.skip("no neuron of this seed reaches w = 0")
    slowest = min([found.growth[j] for j in met if found.growing[j]], default=1.0)
    end = float(np.max(found.last_event[met])) + 20.0 / slowest
    final = rf.flow(problem, net, t_end=end, progress=False).final
    for j in met:
        if found.growing[j]:
            assert final.directions[j] @ found.direction[j] > 1.0 - 1e-6, j
        else:
            assert final.log_norms[j] < final.log_outer[j] - 25.0, j


@pytest.mark.parametrize("part", [0.4, 0.0])
def test_a_leap_that_is_cut_short_changes_nothing(part, monkeypatch):
    """All neurons come part of the way only: shorter leaps, or steps where there is none."""
    problem = rf.datasets.load("three-points")
    net = rf.initialize(problem, 20, scale=1e-30, rng=0)
    given = {"t_end": 40.0, "progress": False}
    whole = rf.flow(problem, net, **given)
    leap_all, cut = leaper.leap_all, []

    def interrupted(*arguments):
        reached, H = leap_all(*arguments), arguments[6]
        if H > 1.0 or part == 0.0:
            cut.append(H)
            return part * H
        return reached

    monkeypatch.setattr(leaper, "leap_all", interrupted)
    run = rf.flow(problem, net, **given)
    assert cut
    assert run.status.code == whole.status.code
    np.testing.assert_allclose(run.final.directions, whole.final.directions, atol=1e-6)
    np.testing.assert_allclose(run.final.log_norms, whole.final.log_norms, atol=1e-5)
    if part == 0.0:
        assert run.cost["leaps"] == 0
