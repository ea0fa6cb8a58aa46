"""Shared fixtures: the slow twins that solvers are held to, and where the MNIST files are."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci")


def plain_descent(problem, net, rates, *, batches=None, both=True):
    """Gradient descent as one would write it; phi'(0) = leak. Returns (W, a)."""
    W, a = (np.array(part) for part in net.weights())
    for t, rate in enumerate(rates):
        S = problem.X @ W.T
        slope = np.where(S > 0, 1.0, problem.leak)
        c = problem.pull_at((slope * S) @ a)
        if batches is not None:
            batch = batches[t][batches[t] >= 0]
            scale = problem.n / batch.size if problem.reduction == "mean" else 1.0
            c = c * np.bincount(batch, minlength=problem.n) * scale
        D = (slope * c[:, None]).T @ problem.X
        W, a = W + rate * a[:, None] * D, a + rate * np.sum(W * D, axis=1) * both
    return W, a


@pytest.fixture(name="plain_descent")
def _plain_descent():
    return plain_descent


@pytest.fixture(scope="session")
def mnist_folder() -> Path:
    """Folder with the MNIST files: RELUFLOW_DATA, or shared/data beside the repository."""
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    for root in filter(None, (os.environ.get("RELUFLOW_DATA"), beside)):
        for folder in (Path(root), Path(root) / "mnist"):
            if (folder / "train-images-idx3-ubyte.gz").is_file():
                return folder
    pytest.skip("MNIST files not found: set RELUFLOW_DATA to the folder that has them")


@pytest.fixture(autouse=True)
def _close_figures():
    """Pictures are pyplot's where some test has imported it; none stays open after its test."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
