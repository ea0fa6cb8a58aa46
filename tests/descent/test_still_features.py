"""Features that are zero on every sample stay out of matrix products and keep their weights."""

import sys

import numpy as np
import pytest

from reluflow import Network, Problem, descend
from reluflow.descent.dense import Blas

RNG = np.random.default_rng(0)
LOOP = sys.modules["reluflow.descent.descend"]  # the function hides the module of its name
KEPT = np.array([0, 2, 5, 6])


def padded(smoothing=0.0):
    """Sixty samples with eight features, four of them always zero, and 30 neurons."""
    X = np.zeros((60, 8))
    X[:, KEPT] = RNG.standard_normal((60, 4))
    problem = Problem(X, np.sign(X[:, 0] + 0.1), smoothing=smoothing)
    return problem, Network(0.3 * RNG.standard_normal((30, 8)), 0.3 * RNG.standard_normal(30))


@pytest.mark.parametrize("batch_size", [None, 16])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_as_without_them(dtype, batch_size, monkeypatch):
    problem, net = padded()
    # matrix products for float64 as well
    monkeypatch.setattr(LOOP, "fused_work", lambda n, d, m: np.inf)
    how = {
        "lr": 0.05,
        "steps": 100,
        "backend": "dense",
        "dtype": dtype,
        "rng": 1,
        "batch_size": batch_size,
    }
    whole = descend(problem, net, **how)
    assert "blas" in whole.cost["kernel"]
    bare = descend(problem.replace(X=problem.X[:, KEPT]), Network(net.W[:, KEPT], net.a), **how)
    tolerance = 1e-4 if dtype == "float32" else 1e-12
    assert np.allclose(whole.final.W[:, KEPT], bare.final.W, atol=tolerance)
    others = np.setdiff1d(np.arange(8), KEPT)
    assert np.array_equal(whole.final.W[:, others], net.W[:, others].astype(dtype))
    assert np.allclose(whole.loss, bare.loss, atol=tolerance)


def test_a_smoothed_activation_moves_them():
    problem, net = padded(smoothing=0.5)
    run = descend(problem, net, lr=0.05, steps=20)
    others = np.setdiff1d(np.arange(8), KEPT)
    assert np.abs(run.final.W[:, others] - net.W[:, others]).max() > 1e-6


def test_a_killed_run_goes_on_bit_for_bit(tmp_path, monkeypatch):
    problem, net = padded()
    how = {"lr": 0.05, "backend": "dense", "dtype": "float32", "steps": 60}
    once = descend(problem, net, **how)

    taken, real = [], Blas._step

    def dies(self, rate, batch):
        if len(taken) == 30:
            raise KeyError("killed")
        taken.append(rate)
        return real(self, rate, batch)

    path = tmp_path / "run.ckpt"
    monkeypatch.setattr(Blas, "_step", dies)
    monkeypatch.setattr(LOOP, "_CHUNK_SECONDS", 1e-9)
    with pytest.raises(KeyError):
        descend(problem, net, checkpoint=path, checkpoint_seconds=0.0, **how)
    monkeypatch.setattr(Blas, "_step", real)
    again = descend(problem, net, checkpoint=path, checkpoint_seconds=0.0, **how)
    assert again.cost["resumed"] > 0
    assert np.array_equal(again.final.W, once.final.W)
    assert np.array_equal(again.final.a, once.final.a)
