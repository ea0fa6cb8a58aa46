"""Certificates of every kind, made once from problems with known answers."""

import json

import numpy as np
import pytest

from reluflow import Network, Problem, datasets
from reluflow.optimum import certificates, write_certificate


def _made(problem, net, kind):
    (certificate,) = certificates(problem, net, [kind])
    return certificate


@pytest.fixture(scope="session")
def samples():
    """One certificate of each kind, "stationary" with kinks included."""
    line = datasets.three_points()
    neuron = Network([line.known["beta_star"]], [1.0])
    left = datasets.figure1_left(leak=0.5)
    curved = Network(left.known["kkt_W"], left.known["kkt_a"], leak=0.5)
    corner = datasets.figure1_left(leak=0.0)
    orthonormal = Problem(np.eye(3), np.array([3.0, -1.0, 4.0]))
    fit = Network([[3.0, 0.0, 4.0], [0.0, 1.0, 0.0]], [1.0, -1.0])
    # the first sample on the hyperplane of the neuron, balanced by the others at slope 1/2
    valley = Problem([[1.0, 0.0], [1.0, 1.0], [-1.0, 1.0]], [-2.0, 2.5, 1.5], leak=0.25)
    resting = Network([[0.0, np.sqrt(2.0)]], [np.sqrt(2.0)])
    return {
        "max-margin-linear": _made(left, None, "max-margin-linear"),
        "kkt-margin": _made(left, curved, "kkt-margin"),
        "kkt-margin, ReLU": _made(
            corner, Network(corner.known["kkt_W"], corner.known["kkt_a"]), "kkt-margin"
        ),
        "max-margin-network": _made(left, None, "max-margin-network"),
        "max-margin-network, d=3": _made(datasets.figure1_middle(), None, "max-margin-network"),
        "min-norm": _made(orthonormal, None, "min-norm"),
        "stationary": _made(line, neuron, "stationary"),
        "stationary, kink": _made(valley, resting, "stationary"),
        "not-global": _made(line, neuron, "not-global"),
        "global-minimum": _made(orthonormal, fit, "global-minimum"),
    }


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
