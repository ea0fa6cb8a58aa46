"""Directions of large data with several outputs, estimated."""

import numpy as np
import pytest

from reluflow import Problem, extremal_vectors
from reluflow.landscape import estimate_multioutput
from reluflow.landscape.estimate_multioutput import estimated_directions
from reluflow.landscape.multioutput import value


@pytest.fixture
def clouds():
    """Three clouds in the plane, so that all maxima can be listed."""
    rng = np.random.default_rng(2)
    centres = np.array([[2.0, 0.0], [-1.0, 1.7], [-1.0, -1.7]])
    labels = np.arange(120) % 3
    return Problem(centres[labels] + 0.3 * rng.normal(size=(120, 2)), labels, loss="softmax")


def test_the_highest_are_those_of_the_list(clouds, monkeypatch):
    exact = extremal_vectors(clouds)
    assert exact.exact
    monkeypatch.setattr(estimate_multioutput, "_SOME", 60)  # the first climb sees half of them
    found = estimated_directions(clouds)
    assert not found.exact
    assert "estimated" in found.method
    tops = exact.vectors[exact.of_kind("max")]
    assert len(found) >= 1
    near = found.vectors @ tops.T
    assert (near.max(axis=1) > 0.99).all()  # each is one of the list, up to its kink
    assert found.values[0] == pytest.approx(exact.values.max(), rel=1e-3)
    assert found.values == pytest.approx(value(clouds, found.vectors), rel=1e-12)
    assert (np.diff(found.values) <= 0.0).all()
    assert found.basin_fractions.sum() == pytest.approx(1.0)


def test_outer_directions_are_along_what_pulls(clouds):
    found = estimated_directions(clouds)
    S = np.maximum(found.vectors @ clouds.X.T, 0.0) @ clouds.pull
    unit = S / np.linalg.norm(S, axis=1, keepdims=True)
    assert pytest.approx(unit, abs=1e-12) == found.outer
