"""Observables against their definitions, at ordinary and at extreme scales."""

import numpy as np
import pytest

from reluflow import Network, Problem, ReluflowError, cosines, datasets, descend, initialize
from reluflow.trajectory.observables import OBSERVABLES, velocity

RNG = np.random.default_rng(0)
PROBLEM = Problem(RNG.normal(size=(9, 2)), RNG.choice([-1.0, 1.0], 9), loss="exponential", leak=0.1)
NET = initialize(PROBLEM, 7, scale=1.0, kind="gaussian", rng=1)


def value(name, net=NET):
    return OBSERVABLES[name](PROBLEM, net)


def test_definitions():
    W, a, f = NET.W, NET.a, PROBLEM.outputs(NET)
    norms = np.linalg.norm(W, axis=1)
    s = np.linalg.svd(W, compute_uv=False)
    total = np.sum(W**2) + np.sum(a**2)
    expected = {
        "outputs": f,
        "norms": norms,
        "log_norms": np.log(norms),
        "outer": a,
        "frobenius": np.linalg.norm(W),
        "norm2": total,
        "angles": np.angle(W[:, 0] + 1j * W[:, 1]),
        "cones": len({tuple(row) for row in (W @ PROBLEM.X.T > 0)}),
        "balance": (a**2 - norms**2) / (a**2 + norms**2),
        "invariant": a**2 - norms**2,
        "margin": np.min(PROBLEM.y * f),
        "normalized_margin": np.min(PROBLEM.y * f) / total,
        "accuracy": np.mean(PROBLEM.y * f > 0),
        "stable_rank": np.sum(s**2) / s[0] ** 2,
        "spectral_norm": s[0],
    }
    for name, answer in expected.items():
        assert np.allclose(value(name), answer, rtol=1e-12), name
    assert set(OBSERVABLES) - set(expected) == {"change_norms", "change_directions"}


def test_changes_of_norms_and_directions_follow_mmv24():
    """Both against finite differences along the flow."""
    dW, _ = velocity(PROBLEM, NET)
    h = 1e-6
    after, before = NET.W + h * dW, NET.W - h * dW
    norms = (np.sum(after**2) - np.sum(before**2)) / (2 * h)
    unit = [w / np.linalg.norm(w, axis=1, keepdims=True) for w in (after, before)]
    turns = np.sum(np.linalg.norm(unit[0] - unit[1], axis=1)) / (2 * h)
    assert value("change_norms") == pytest.approx(norms, rel=1e-6)
    assert value("change_directions") == pytest.approx(turns, rel=1e-6)


def test_velocity_is_the_step_of_descent():
    dW, da = velocity(PROBLEM, NET)
    after = descend(PROBLEM, NET, lr=1e-3, steps=1).final
    assert np.allclose(after.W, NET.W + 1e-3 * dW, rtol=1e-13)
    assert np.allclose(after.a, NET.a + 1e-3 * da, rtol=1e-13)


@pytest.mark.parametrize("name", ["stable_rank", "normalized_margin", "balance", "angles", "cones"])
def test_scale_free_measures_at_e_minus_1000(name):
    assert np.allclose(value(name, NET.scaled(-1000.0)), value(name), rtol=1e-12)
    assert np.allclose(value("log_norms", NET.scaled(-1000.0)), value("log_norms") - 1000.0)


def test_cosines_and_user_functions_are_recorded():
    def largest(problem, net):
        return np.max(np.abs(net.a))

    run = descend(
        PROBLEM,
        NET,
        lr=1e-2,
        steps=5,
        save=[0, 5],
        observe=[cosines([[1.0, 0.0], [0.0, 2.0]]), largest],
    )
    assert run["cosines"].shape == (2, 7, 2)
    assert np.allclose(run["cosines"][0], NET.directions)
    assert run["largest"][0] == np.max(np.abs(NET.a))
    assert run.networks is None
    assert run.dataset["observable_cosines"].dims == ("record", "neuron", "cosines_direction")


def test_outputs_recorded_without_networks_are_those_of_the_network():
    for backend in ("lumped", "dense"):
        problem = datasets.symmetric_xor(draws=4)
        net = initialize(problem, 20, scale=0.5, rng=0)
        run = descend(
            problem,
            net,
            lr=0.1,
            steps=200,
            save=[0, 77, 200],
            observe="outputs",
            states=True,
            backend=backend,
        )
        for record, state in enumerate(run.networks):
            assert np.allclose(run["outputs"][record], state(problem.X), rtol=1e-12, atol=1e-15)
            assert run.loss[record] == pytest.approx(float(problem.value(state(problem.X))))


def test_refusals():
    with pytest.raises(ReluflowError, match="cosines needs finite non-zero directions"):
        cosines([[0.0, 0.0]])
    with pytest.raises(ReluflowError, match="angles need two features, got d=3"):
        OBSERVABLES["angles"](None, Network(np.ones((1, 3)), np.ones(1)))
    run = descend(PROBLEM, NET, lr=1e-2, steps=1)
    with pytest.raises(ReluflowError, match="nothing called 'norms' was recorded"):
        run["norms"]
