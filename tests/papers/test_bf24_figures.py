"""[BF24]_ Figures 1 to 3: what must be seen is seen, and not seen once the run is spoilt."""

from dataclasses import replace

import numpy as np
import pytest

from reluflow import Network, ReluflowError
from reluflow.papers.bf24.figures import teacher as bf24_teacher
from reluflow.papers.bf24.figures import three_points as bf24_three_points
from reluflow.papers.bf24.runs import bundles, join_runs, neurons_in_effect, teacher_run
from reluflow.papers.catalogue import select_figures
from reluflow.plot.panels import neurons_panel


def failed(comparisons):
    return [c.what for c in comparisons if c.status.name != "HOLDS"]


def test_figure_1_shows_data_in_the_boxes():
    drawn = bf24_three_points.figure1(**bf24_three_points.FIGURE1)
    assert failed(drawn.seen) == []
    assert drawn.numbers["box_eta"] == pytest.approx(0.1)
    narrow = bf24_three_points.figure1(box_eta=0.05, draws=20)
    assert failed(narrow.seen) == ["least box_eta of the points shown"]


@pytest.fixture(scope="module")
def small():
    return bf24_three_points.three_points_run(m=1000, scale=1e-3, lr=1e-3, steps=100_000, seed=0)


def spoilt(made, row, change):
    """The run with the weights of one of its four rows changed."""
    W, a = made.run.networks.W.copy(), made.run.networks.a.copy()
    change(W[row], a[row])
    networks = replace(made.run.networks, W=W, a=a)
    return replace(made, run=replace(made.run, networks=networks))


def test_figure_2_shows_the_way_to_the_line(small):
    assert failed(bf24_three_points.compare_with_figure(small, 1e-3, 1e-3)) == []
    grown, near = small.ends
    assert 3300 < grown < 4300 < near < 8000  # 5 % of the fall done, 0.5 % left
    assert small.half == pytest.approx(4831, abs=700)


def test_figure_2_fails_on_a_spoilt_run(small):
    def off_the_line(W, a):
        W *= 1.01

    def one_turned(W, a):
        W[np.flatnonzero(a > 0)[0]] = (1.0, 0.0)  # active on the last sample alone

    def turned(W, a):
        W[:] = W @ np.array([[0.9, 0.436], [-0.436, 0.9]])

    def bunched(W, a):
        W[:] = np.linalg.norm(W, axis=1, keepdims=True) * np.array([[0.0, 1.0]])

    def where(row, change):
        return " ".join(
            failed(bf24_three_points.compare_with_figure(spoilt(small, row, change), 1e-3, 1e-3))
        )

    assert "mean squared error" in where(3, off_the_line)
    assert "|f - line| on [-1, 1]" in where(3, off_the_line)
    assert "neurons active on some samples" in where(3, one_turned)
    assert "D* (degrees)" in where(1, turned)
    assert "|f - line|" in where(2, turned)
    assert "angles against uniform" in where(0, bunched)
    late = replace(small, half=small.half + 1000)
    assert "step of half the fall" in " ".join(
        failed(bf24_three_points.compare_with_figure(late, 1e-3, 1e-3))
    )


def test_figure_2_needs_a_run_to_the_end():
    with pytest.raises(ReluflowError, match="give more steps"):
        bf24_three_points.three_points_run(m=50, scale=1e-3, lr=1e-3, steps=4500, seed=0)


def test_a_film_is_made_only_when_asked_for():
    assert bf24_three_points.film(0, 1e-3, 1e-3, 1000, 0) == {}
    run = bf24_three_points.film(20, 1e-3, 1e-3, 1000, 0)["run"]
    assert len(run.networks) == len(run.steps) > 40
    assert run.steps[-1] == 1000


def test_neurons_in_effect():
    angles = np.radians([10.0, 11.0, 100.0, 179.0, -179.0, 250.0, 300.0])
    W = np.column_stack([np.cos(angles), np.sin(angles)])
    a = np.array([1.0, 1.0, -1.0, 1.0, 1.0, 1e-4, 1.0])
    assert neurons_in_effect(Network(W, a)) == 4  # 10, 100, 180 across the cut, 300
    W[1], a[1] = W[0] @ np.array([[0.0, 1.0], [-1.0, 0.0]]), -1.0  # joins the one at 100
    assert neurons_in_effect(Network(W, a)) == 4
    a[1] = 0.5  # cancels half of it, which changes nothing
    assert neurons_in_effect(Network(W, a)) == 4


def test_every_neuron_in_effect_has_its_mark():
    """Angles and parts of the sum of |a||w|; a mark at the rim for each, however small."""
    angles = np.radians([10.0, 12.0, 179.0, -179.0, -60.0, 250.0])
    size = np.array([1.0, 1.0, 0.5, 0.5, 0.01, 1e-4])
    W = size[:, None] * np.column_stack([np.cos(angles), np.sin(angles)])
    net = Network(W, np.array([1.0, 1.0, -1.0, -1.0, 1.0, 1.0]))
    total = size.sum()  # |a| = 1
    found = bundles(net)
    assert np.degrees([angle for angle, _ in found]) % 360 == pytest.approx([300, 11, 180])
    assert [part for _, part in found] == pytest.approx(np.array([0.01, 2.0, 1.0]) / total)
    assert neurons_in_effect(net) == 3
    panel = neurons_panel(net)
    marks = bf24_teacher._mark_bundles(panel, net).traces[-1]
    assert list(marks.x) == [angle for angle, _ in found]
    assert set(marks.y) == {panel.ylim[1]}


def test_dips():
    x = np.linspace(-1, 1, 201)
    assert bf24_teacher.dips(x) == 0
    assert bf24_teacher.dips(np.abs(x)) == 1
    assert bf24_teacher.dips(np.cos(3 * np.pi * x)) == 2
    assert bf24_teacher.dips(0.005 * np.cos(9 * np.pi * x)) == 0  # too shallow


def test_a_run_and_its_continuation_are_one():
    run = teacher_run(1, 40, 1e-3, 30.0)
    assert (np.diff(run.times) > 0).all()
    assert run.times[0] == 0.0
    assert run.times[-1] == pytest.approx(30.0)
    assert len(run.networks) == len(run.times) == len(run.loss)
    for i in (0, 40, -1):  # losses belong to their networks
        assert run.problem.value(run.problem.outputs(run.networks[i])) == pytest.approx(run.loss[i])
    assert join_runs(run, run).times[-1] == pytest.approx(60.0)


@pytest.mark.slow
def test_figure_3_keeps_five_neurons():
    (spec,) = select_figures("bf24", "f3")
    made = bf24_teacher.course(1, 1000, 1e-3, 2000.0)
    assert failed(bf24_teacher.compare_with_figure(made)) == []
    count = made.bundles[-1]
    assert f"At the end there are {count}, at " in bf24_teacher._caption(made, 1)
    assert len(bf24_teacher._rows(made)[-1].traces[-1].x) == count
    assert spec.sizes["full"]["m"] == 200_000
    few = bf24_teacher.Course(made.run)
    few.__dict__["bundles"] = np.minimum(made.bundles, 3)  # as if no fourth neuron came
    assert few.frames[3] == few.frames[4]
    assert "the last neurons start: neurons" in failed(bf24_teacher.compare_with_figure(few))
    lost = made.run.networks.a.copy()
    lost[
        -1, np.abs(np.arctan2(made.run.networks.W[-1, :, 1], made.run.networks.W[-1, :, 0])) > 3.0
    ] = 0.0
    bad = replace(made.run, networks=replace(made.run.networks, a=lost))
    assert "end: neurons" in failed(bf24_teacher.compare_with_figure(bf24_teacher.Course(bad)))
