"""Pictures: what is on the axes, that they render small, and that no global state is touched."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from reluflow import Network, Problem, ReluflowError, initialize
from reluflow.landscape.early import early
from reluflow.landscape.extremal import extremal_vectors
from reluflow.plot import neurons
from reluflow.plot.panels import neurons_panel
from reluflow.plot.sphere import (
    plot_alignment_circle,
    plot_alignment_sphere,
    plot_values,
)

THREE = Problem(X=np.array([[-0.75, 1.0], [-0.5, 1.0], [0.125, 1.0]]), y=np.array([1.1, 0.1, 0.8]))


def gaussian(seed: int, n: int, d: int, leak: float = 0.0) -> Problem:
    rng = np.random.default_rng(seed)
    return Problem(rng.standard_normal((n, d)), rng.standard_normal(n), leak=leak)


def png(ax) -> bytes:
    buffer = io.BytesIO()
    ax.figure.savefig(buffer, format="png", dpi=80)
    return buffer.getvalue()


def labels(ax) -> list[str]:
    return [t.get_text() for t in ax.get_legend().get_texts()]


def test_circle_shows_g_its_maximum_and_the_cones():
    ax = plot_alignment_circle(THREE)
    curve = max(ax.lines, key=lambda line: len(line.get_xdata()))
    angle, value = curve.get_data()
    assert angle[np.argmax(value)] == pytest.approx(111.2, abs=0.3)
    assert value.max() == pytest.approx(0.714969, abs=1e-5)
    assert sum(line.get_linestyle() == "--" and len(line.get_xdata()) > 0 for line in ax.lines) == 6
    assert {"maximum", "hyperplane of a sample"} <= set(labels(ax))
    assert ax.get_title() == "4 critical points of G (all)"
    assert png(ax).startswith(b"\x89PNG")


def test_circle_with_many_samples_leaves_the_hyperplanes_out():
    ax = plot_alignment_circle(gaussian(0, 200, 2))
    assert not any(line.get_linestyle() == "--" for line in ax.lines)
    png(ax)


@pytest.mark.parametrize("leak", [0.0, 0.2])
def test_sphere_marks_every_critical_point_where_it_is(leak):
    problem = gaussian(1, 6, 3, leak)
    found = extremal_vectors(problem)
    ax = plot_alignment_sphere(problem, extremal=found)
    assert ax.name == "mollweide"
    clouds = [c for c in ax.collections if isinstance(c, PathCollection)]
    points = np.vstack([np.asarray(c.get_offsets()) for c in clouds])
    lon, lat = points.T
    w = np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])
    assert len(w) == len(found.vectors)
    assert np.allclose((w @ found.vectors.T).max(axis=0), 1.0, atol=1e-9)
    assert len(png(ax)) < 400_000


def test_values_are_bars_by_kind():
    problem = gaussian(97, 9, 4, 0.2)
    found = extremal_vectors(problem)
    ax = plot_values(problem, extremal=found)
    heights = sorted(bar.get_height() for bar in ax.patches)
    assert np.allclose(heights, np.sort(found.values[np.abs(found.values) > 1e-12]))
    fewer = plot_values(problem, extremal=found, most=5)
    assert len(fewer.patches) == 5
    assert "the 5 largest of" in fewer.get_title()
    orthonormal = plot_values(Problem(np.eye(4), np.ones(4)))
    assert "with D = 0 not drawn" in orthonormal.get_title()
    png(orthonormal)


def test_values_without_any_pull():
    ax = plot_values(THREE, pull=np.zeros(3))
    assert len(ax.patches) == 0
    png(ax)


def test_neurons_by_angle_norm_and_sign():
    net = Network(np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]), np.array([1.0, -1.0, 0.0]))
    ax = neurons(net, THREE)
    cloud = ax.collections[0]
    assert np.allclose(cloud.get_offsets(), [[0.0, 1.0], [np.pi / 2, 2.0], [0.0, 0.0]])
    red, blue = cloud.get_facecolors()[:2]
    assert red[0] > red[2]
    assert blue[2] > blue[0]
    assert np.allclose(cloud.get_facecolors()[2][:3], 0.0)
    assert ax.get_rorigin() < 0 == ax.get_rmin()  # the inner circle is norm 0
    assert len(ax.get_yticklabels()) == 0
    assert sum(line.get_linestyle() == "--" for line in ax.lines) == 6
    assert ax.get_title() == ""
    png(ax)


def test_many_neurons_stay_small_and_are_called_a_subsample():
    net = initialize(THREE, 200_000, rng=0)
    ax = neurons(net, THREE)
    assert len(ax.collections[0].get_offsets()) <= 20_100
    assert "of 200000 neurons drawn" in ax.get_title()
    assert np.isclose(ax.collections[0].get_offsets()[:, 1].max(), np.exp(net.log_norms.max()))
    buffer = io.BytesIO()
    ax.figure.savefig(buffer, format="svg")
    assert buffer.tell() < 1_000_000


def test_neurons_too_small_for_floats_are_drawn_relative_to_the_largest():
    net = early(THREE, initialize(THREE, 50, log_scale=-1000.0, rng=0), 4.0)
    radius = neurons(net).collections[0].get_offsets()[:, 1]
    assert radius.max() == pytest.approx(1.0)
    png(neurons(Network(np.zeros((2, 2)), np.ones(2))))


def test_given_axes_are_used_and_returned():
    figure = Figure()
    flat, polar = figure.add_subplot(1, 3, 1), figure.add_subplot(1, 3, 2, projection="polar")
    earth = figure.add_subplot(1, 3, 3, projection="mollweide")
    assert plot_alignment_circle(THREE, ax=flat) is flat
    assert neurons(initialize(THREE, 5, rng=0), ax=polar, size=1.0) is polar
    assert plot_alignment_sphere(gaussian(2, 4, 3), ax=earth) is earth
    figure.savefig(io.BytesIO(), format="png")


def test_pyplot_is_not_imported():
    code = (
        "import sys, numpy as np; from reluflow import Problem\n"
        "import reluflow.plot.sphere as pictures\n"
        "assert 'matplotlib' not in sys.modules\n"
        "pictures.plot_values(Problem(np.eye(2), np.ones(2)))\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_wrong_dimension_or_projection_is_explained():
    with pytest.raises(ReluflowError, match="plot_alignment_sphere"):
        plot_alignment_circle(gaussian(0, 3, 3))
    with pytest.raises(ReluflowError, match="plot_values"):
        plot_alignment_sphere(THREE)
    with pytest.raises(ReluflowError, match="2 features"):
        neurons_panel(initialize(gaussian(0, 3, 3), 4, rng=0))
    with pytest.raises(ReluflowError, match="polar"):
        neurons(initialize(THREE, 4, rng=0), ax=Figure().add_subplot())
