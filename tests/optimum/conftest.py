"""Certificates of every kind, made once from problems with known answers."""

import json

import numpy as np
import pytest

from reluflow import Network, Problem, datasets
from reluflow.optimum import certificates, max_margin, write_certificate


def _made(problem, net, kind, weight_decay=0.0):
    (certificate,) = certificates(problem, net, [kind], weight_decay)
    return certificate


@pytest.fixture(scope="session")
def samples():
    """One certificate of each kind, in the plane, in space, with kinks."""
    line = datasets.three_points()
    neuron = Network([line.known["beta_star"]], [1.0])
    left = datasets.figure1_left(leak=0.5)
    middle = datasets.figure1_middle()
    orthonormal = Problem(np.eye(3), np.array([3.0, -1.0, 4.0]))
    fit = Network([[3.0, 0.0, 4.0], [0.0, 1.0, 0.0]], [1.0, -1.0])
    # the first sample on the hyperplane of the neuron, balanced by the others at slope 1/2
    valley = Problem([[1.0, 0.0], [1.0, 1.0], [-1.0, 1.0]], [-2.0, 2.5, 1.5], leak=0.25)
    resting = Network([[0.0, np.sqrt(2.0)]], [np.sqrt(2.0)])
    xor = datasets.ideal_xor()
    axes = Network([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], [1.0, -1.0, 1.0, -1.0])
    golden = datasets.golden()
    return {
        "max-margin-linear": _made(left, None, "max-margin-linear"),
        "kkt-margin": _made(single(), alone(), "kkt-margin"),
        "kkt-margin, d=3": _made(middle, max_margin(middle).network, "kkt-margin"),
        "max-margin-network": _made(left, None, "max-margin-network"),
        "max-margin-network, d=3": _made(middle, None, "max-margin-network"),
        "margin-optimum": _made(xor, axes, "margin-optimum"),
        "min-norm": _made(plane(), None, "min-norm"),
        "min-norm, d=3": _made(orthonormal, None, "min-norm"),
        "ridge": _made(plane(), None, "ridge", 0.1),
        "ridge, d=3": _made(signs(), None, "ridge", 0.02),
        "ridge-not-best": _made(line, neuron, "ridge-not-best", 0.01),
        "gradient": _made(line, Network([[0.5, 1.0], [-0.3, 0.7]], [1.0, -0.5]), "gradient"),
        "stationary": _made(line, neuron, "stationary"),
        "stationary, kink": _made(valley, resting, "stationary"),
        "spurious-minimum": _made(line, neuron, "spurious-minimum"),
        "not-global": _made(line, neuron, "not-global"),
        "global-minimum": _made(orthonormal, fit, "global-minimum"),
        "algorithm1": _made(
            golden, Network(golden.known["W0"], golden.known["signs"]), "algorithm1"
        ),
    }


def single():
    """One sample, whose KKT point is known in closed form."""
    return Problem([[1.5, -2.0]], [1.0], loss="logistic")


def alone():
    """A neuron near that KKT point."""
    return Network([[0.38, -0.5]], [0.63])


def plane():
    """Three labels in the plane to be fitted."""
    return Problem([[1.0, 0.5], [-0.25, 1.0], [-0.5, -0.75]], [1.0, -0.5, 2.0])


def signs():
    """Four labels in space under the logistic loss, one sample misplaced."""
    X = [[1.0, 0.5, 0.0], [-0.25, 1.0, 0.5], [-0.5, -0.75, 1.0], [0.5, 0.5, 0.25]]
    return Problem(X, [1.0, -1.0, 1.0, -1.0], loss="logistic", leak=0.25)


@pytest.fixture
def stored(samples, tmp_path):
    """Writes a certificate, changes the document, and returns the path."""

    def write(name, change=None):
        path = write_certificate(samples[name], tmp_path / "certificate.json")
        if change is not None:
            document = json.loads(path.read_text())
            text = change(document)
            path.write_text(text if isinstance(text, str) else json.dumps(document))
        return path

    return write
