"""Figures of [LLWA21]_: what must be seen in them, and that it would be missed."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from reluflow import Network, datasets, flow, initialize, loss_below
from reluflow.claims.verdict import Status
from reluflow.papers.catalogue import all_figures, select_figures
from reluflow.papers.llwa21.figures import boundaries as llwa21
from reluflow.papers.llwa21.figures import edges as llwa21_edges
from reluflow.papers.llwa21.figures import teacher as llwa21_teacher
from reluflow.papers.llwa21.figures import trained as llwa21_trained
from reluflow.papers.llwa21.figures.trained import case, linear, one_neuron, trained
from reluflow.runtime.plain import to_plain
from reluflow.sweeps.tasks import resolve

NAMES = ["F1L", "F1M", "F1R", "F2", "F3", "F4", "Tab1"]


def holds(name, **changed):
    spec = all_figures()["LLWA21", name]
    drawn = spec.make(**{**spec.sizes["quick"], **changed})
    bad = [c for c in drawn.seen if c.status is not Status.HOLDS]
    assert not bad, bad
    assert drawn.pictures
    assert drawn.summary
    assert drawn.caption
    json.dumps(drawn.numbers, default=to_plain)
    return drawn


def failing(comparisons):
    return [c.what for c in comparisons if c.status is Status.FAILS]


def test_all_figures_are_there():
    assert {spec.name for spec in select_figures("llwa21")} == set(NAMES)


def test_bent_direction_and_where_it_leads():
    drawn = holds("F1L")
    assert drawn.numbers["kkt_ratio"] == pytest.approx(0.949619, abs=1e-6)
    assert drawn.numbers["trained_ratio"] > 0.99999


def test_margins_of_the_middle_and_right_data():
    for name, known in (("middle", 2.283), ("right", 2.478)):
        this = case(name)
        assert this.best.margin / this.end_margin == pytest.approx(known, abs=5e-4)
        assert this.best.upper_bound == pytest.approx(this.best.margin, rel=1e-8)
        assert this.end_margin == pytest.approx(this.problem.known["limit_margin"], rel=1e-12)
        assert this.line.margin == pytest.approx(2 * this.end_margin, rel=1e-9)


def test_bends_and_distances_are_noticed():
    this = case("left")
    known = this.problem.known
    bent = Network(known["kkt_W"], known["kkt_a"], leak=0.5)
    straight = linear(known["w_star"], 0.5)
    assert llwa21._bend(this, straight) == pytest.approx(0.0, abs=1e-12)
    assert llwa21._bend(this, bent) == pytest.approx(np.tan(known["beta"]) / 14, abs=1e-4)
    assert this.sup_error(straight.scaled(3.0)) < 1e-12
    assert this.sup_error(bent) > 0.05  # figures allow 0.02
    tilted = one_neuron(np.array([0.6, 0.0, 0.8]), 0.5)
    assert case("middle").sup_error(tilted) > 0.1
    assert llwa21.share_reached(case("middle"), tilted, case("middle").end_margin) < 0.9


def test_large_starts_end_bent_and_small_ones_linear():
    large = llwa21_trained.end_of("middle", 1.0, 20, 30.0, seed=0)
    small = llwa21_trained.end_of("middle", 1e-6, 20, 30.0, seed=0)
    assert large["smoothed"] > 1.5
    assert 0.9 < small["smoothed"] < small["margin"] < 1.0
    # the smoothed margin never falls once the loss is below log(2)/n
    found = llwa21_trained.margins("middle", trained("middle", 60.0, 0, 1.0))
    assert found[1] > large["smoothed"]


def test_a_threshold_that_is_not_there_is_missed():
    scales = [1e-1, 1e-5]
    good = {
        "margin": np.array([[2.2, 2.1], [0.999, 0.998]]),
        "smoothed": np.array([[2.0, 2.0], [0.98, 0.97]]),
    }
    assert not failing(llwa21_trained.threshold("hard", scales, good))
    upside = {key: value[::-1] for key, value in good.items()}
    assert len(failing(llwa21_trained.threshold("hard", scales, upside))) == 2
    poor = {**good, "margin": 0.9 * good["margin"]}
    assert len(failing(llwa21_trained.threshold("hard", scales, poor))) == 1


def test_sweeps_keep_the_draw_at_every_scale(monkeypatch):
    seen = []

    def note(name, scale, m, q, seed):
        seen.append((scale, seed))
        return {"margin": scale, "smoothed": seed % 7}

    monkeypatch.setattr(llwa21_trained, "end_of", note)
    monkeypatch.setattr(sys.modules["reluflow.sweeps.sweep"], "in_worker", lambda: True)
    note.__module__, note.__qualname__ = llwa21_trained.__name__, "end_of"
    resolve.cache_clear()  # sweeps find a task by its name and remember it
    try:
        found = llwa21_trained.sweep_scales("hard", [1e-1, 1e-3], 3, 10.0, seed=0)
    finally:
        resolve.cache_clear()
    draws = {scale: [s for at, s in seen if at == scale] for scale in (1e-1, 1e-3)}
    assert draws[1e-1] == draws[1e-3]
    assert len(set(draws[1e-1])) == 3
    assert np.array_equal(found["margin"], [[1e-1] * 3, [1e-3] * 3])


def test_ridge_valley_and_refraction():
    drawn = holds("F3")
    spreads = drawn.numbers["spreads"]
    assert spreads["ridge"] > 1e6 > spreads["refraction edge"] > spreads["valley"]


@pytest.mark.parametrize("edge", llwa21_edges.EDGES, ids=lambda e: e.name)
def test_speeds_are_those_of_the_flow(edge):
    step, height = 1e-3, 1e-3
    for side, speed in zip((1, -1), edge.speeds(), strict=True):
        W = llwa21_edges.path(edge.run(llwa21_edges.FIRST, side * height, step))
        assert (W[-1, 1] - W[0, 1]) / step == pytest.approx(speed, rel=0.05)


def test_another_label_turns_a_ridge_into_something_else():
    ridge = llwa21_edges.EDGES[0]
    assert not failing(llwa21_edges._sides(ridge, apart=True))
    shown = [c.measured for c in llwa21_edges._sides(ridge, apart=True)]
    assert shown == list(ridge.speeds())  # with their signs
    assert shown[0] > 0 > shown[1]
    flipped = replace(ridge, label=-1.0)
    assert failing(llwa21_edges._sides(flipped, apart=True))
    run = flipped.run(llwa21_edges.FIRST, 0.0, 1.0)
    assert llwa21_edges.events(run, llwa21_edges.BRANCH) == 0


def test_one_draw_of_the_teacher():
    def draw(symmetric):
        rng = np.random.default_rng(3)
        return llwa21_teacher.one_draw(20, symmetric, 0.5, 30.0, 4000, rng)

    plain_, paired = draw(False), draw(True)
    assert abs(plain_["svm"] - paired["svm"]) < 2.0  # the same sample, with and without the bias
    assert plain_["margin_ratio"] > 1.0 > paired["margin_ratio"] > 0.9
    assert plain_["agreement"] < paired["agreement"]
    assert abs(plain_["net"] - plain_["svm"]) < 8.0


def test_the_plane_of_teacher_and_svm():
    problem = datasets.gaussian_teacher(30, rng=0)
    rng = np.random.default_rng(0)
    net = Network(rng.standard_normal((7, problem.d)), rng.standard_normal(7), leak=0.5, bias=0.1)
    plane = llwa21_teacher.plane_of(problem)
    assert np.allclose(plane.T @ plane, np.eye(2))
    flat, restricted = llwa21_teacher.on_plane(problem, net)
    at = rng.standard_normal((20, 2))
    assert np.allclose(restricted(at), net(at @ plane.T), rtol=1e-12)
    assert np.allclose(flat.X[:, 0], problem.X[:, 0])  # along the teacher e_1
    line = llwa21_teacher.svm_line(problem)
    ends = np.column_stack([line.x, line.y]) @ plane.T
    lifted = np.hstack([ends, np.full((2, 1), 0.1)])
    assert np.allclose(lifted @ problem.known["w_star"], 0.0, atol=1e-12)


def test_a_table_that_disagrees_is_noticed():
    shape = (10, 4)
    rng = np.random.default_rng(0)
    svm = 10 + rng.standard_normal(shape)
    near = {
        "svm": svm,
        "net": svm - 1,
        "agreement": np.full(shape, 97.0) + 0.1 * svm,
        "margin_ratio": np.full(shape, 1.07) + 1e-3 * svm,
    }
    equal = {
        **near,
        "net": svm - 0.1,
        "agreement": np.full(shape, 99.8) - 1e-3 * svm,
        "margin_ratio": np.full(shape, 0.999),
    }
    assert not failing([llwa21_teacher._close(near, 2.5, "")])
    assert not failing(llwa21_teacher.near_but_not_equal(near, "", 1.03, 98.5))
    assert not failing(llwa21_teacher.equal_to_svm(equal, 0.01))
    far = {**near, "net": np.where(np.arange(10)[:, None] == 4, svm + 3, svm)}
    assert failing([llwa21_teacher._close(far, 2.5, "")])
    assert len(failing(llwa21_teacher.near_but_not_equal(equal, "", 1.03, 98.5))) == 2
    assert len(failing(llwa21_teacher.equal_to_svm(near, 0.01))) == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["F1M", "F1R", "F4", "Tab1"])
def test_quick_figures(name):
    holds(name)


@pytest.mark.slow
def test_locating_kinks_changes_little():
    problem = datasets.gaussian_teacher(10, rng=0)
    start = initialize(problem, llwa21_teacher.M, llwa21_teacher.SCALE, "he", rng=0)
    found = []
    for kinks in (False, True):
        run = flow(problem, start, clock="loss", stop=loss_below(log=-20.0), kinks=kinks)
        found.append(llwa21_teacher.measure(problem, run.final, 4000, 1))
    assert found[0]["margin_ratio"] == pytest.approx(found[1]["margin_ratio"], abs=2e-3)
    assert found[0]["net"] == pytest.approx(found[1]["net"], abs=0.2)


@pytest.mark.slow
def test_trained_networks_and_scales():
    drawn = holds("F2", draws=2)
    bent = drawn.numbers["scales of hard"]["bent"]
    assert bent[0] == 1.0
    assert bent[-1] == 0.0
    assert [picture.name for picture in drawn.pictures] == ["", "scales"]
