"""JumpProcess: piecewise linear exponents, staircase, networks at real times, views."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from reluflow import Network, Problem, ReluflowError, datasets, flow
from reluflow.prediction import JumpProcess, algorithm1
from reluflow.prediction.process import Lazy


@pytest.fixture(name="golden")
def _golden():
    problem = datasets.golden()
    return algorithm1(problem, Network(problem.known["W0"], problem.known["signs"]))


def small(**changes):
    problem = Problem(np.eye(2), [1.0, 1.0], name="<two>")
    zero = Network(np.zeros((1, 2)), np.zeros(1))
    given = {
        "problem": problem,
        "signs": np.ones(1, dtype=np.int8),
        "times": np.empty(0),
        "losses": np.array([0.5]),
        "neurons": (),
        "samples": (),
        "networks": [zero],
        "directions": [np.zeros((1, 2))],
        "rates": np.zeros((1, 1)),
        "exponents": -np.ones((1, 1)),
        "active": np.zeros((1, 1), dtype=bool),
        "gaps": np.empty(0),
        "status": "Nothing moves & <nothing> jumps.",
        "ending": "stationary",
    }
    return JumpProcess(**{**given, **changes})


def test_exponents_are_continuous_and_piecewise_linear(golden):
    assert np.allclose(golden.exponents_at(0.0), -1)
    for i, tau in enumerate(golden.times):
        assert np.allclose(golden.exponents_at(tau), golden.exponents[i + 1], atol=1e-14)
        before = golden.exponents_at(tau * (1 - 1e-12))
        assert np.allclose(before, golden.exponents[i + 1], atol=1e-11)
    tau = np.array([[0.1, 0.4], [1.0, 9.0]])
    beta = golden.exponents_at(tau)
    assert beta.shape == (2, 2, 3)
    assert np.allclose(beta[0, 1], -1 + 0.4 * np.array([5, math.sqrt(13), math.sqrt(5)]) / 4)
    assert np.allclose(beta[1, 1], 0)


def test_staircase(golden):
    tau = np.array([0.0, 0.79, 0.8, 1.35, 1.36, 3.0])
    assert np.allclose(golden.loss_at(tau), [3.75, 3.75, 0.625, 0.625, 0.125, 0])
    assert golden.loss_at(0.5) == 3.75
    assert golden.plateau_at(2.0) == 2


def test_real_times_use_the_constants(golden):
    L = 1000.0
    assert golden.jump_time(1, log_scale=-L) == golden.times[1] * L + golden.offsets[1]
    assert golden.jump_time(0, scale=1e-10) == golden.times[0] * math.log(1e10) + golden.offsets[0]
    t = golden.jump_times(log_scale=-L)
    around = np.concatenate([t - 1e-3, t + 1e-3])
    assert np.allclose(
        golden.predicted_loss(around, log_scale=-L), [3.75, 0.625, 0.125, 0.625, 0.125, 0]
    )


def test_network_at_a_real_time_is_that_of_a_flow(golden):
    L = 300 * math.log(10)
    start = Network(golden.problem.known["W0"], np.ones(3), log_scale=-L)
    times = np.array([0.4, 1.1, 1.9, 2.6]) * L
    run = flow(golden.problem, start, t_end=times[-1], save=times)
    for t, there in zip(times, run.networks, strict=True):
        here = golden.at(t, log_scale=-L)
        on = golden.active[golden.plateau_at(t / L)]
        assert np.allclose(here.log_norms[on], there.log_norms[on], atol=1e-10)
        # dormant norms are right to a factor of order one
        assert np.abs(here.log_norms - there.log_norms).max() < 3.0
        assert np.allclose(here.directions, there.directions, atol=1e-8)
        assert np.allclose(here.log_outer, here.log_norms, atol=1e-12)
        assert golden.predicted_loss(t, log_scale=-L) == pytest.approx(
            golden.problem.value(golden.problem.outputs(there)), abs=1e-10
        )


def test_start_and_dead_neurons():
    process = algorithm1([1.0, 1.0], mask=[[1, 0], [1, 0]], signs=1)
    net = process.at(0.0, scale=1e-5)
    assert np.allclose(net.log_norms[0], -math.log(1e5))
    assert not net.W[1].any()
    assert net.a[1] == 0
    late = process.at(1e9, scale=1e-5)
    assert np.allclose(process.problem.outputs(late), 1)


def test_bad_times_and_scales(golden):
    with pytest.raises(ReluflowError, match="must not be negative"):
        golden.exponents_at(-1.0)
    with pytest.raises(ReluflowError, match="must not be negative"):
        golden.at(math.nan, scale=0.1)
    for scale in (0.0, 1.0, 2.0, math.nan):
        with pytest.raises(ReluflowError, match="strictly between 0 and 1"):
            golden.at(1.0, scale=scale)
    for log_scale in (0.0, -math.inf, math.nan):
        with pytest.raises(ReluflowError, match="negative and finite"):
            golden.predicted_loss(1.0, log_scale=log_scale)
    with pytest.raises(ReluflowError, match="give either"):
        golden.jump_times()
    with pytest.raises(ReluflowError, match="give either"):
        golden.jump_time(0, 0.1, -2.0)


def test_fields_must_fit_together():
    with pytest.raises(ReluflowError, match="unknown ending"):
        small(ending="done")
    with pytest.raises(ReluflowError, match="losses has 2 items for 0 jumps"):
        small(losses=np.zeros(2))
    with pytest.raises(ReluflowError, match="rates has shape"):
        small(rates=np.zeros((2, 1)))
    assert np.isnan(small().residuals).all()
    with pytest.raises(ValueError, match="read-only"):
        small().losses[0] = 1.0


def test_text_and_html(golden):
    text = repr(golden)
    assert "3 neurons, 3 jumps" in text
    assert "1.3577795" in text
    assert "interpolates" in text
    assert len(text.splitlines()) == 8
    page = small()._repr_html_()
    assert "&lt;two&gt;" in page
    assert "&lt;nothing&gt;" in page
    assert "<nothing>" not in page
    assert golden._repr_html_().count("<tr>") == 5
    assert golden.table()[1]["neurons"] == [1]


def test_long_tables_are_shortened():
    n = 40
    process = algorithm1(np.arange(1.0, n + 1), mask=np.eye(n), signs=1)
    assert process.n_jumps == n
    assert len(repr(process).splitlines()) == 1 + 1 + 1 + 8 + 1 + 3 + 2
    wide = algorithm1(np.ones(3), mask=np.ones((3, 50)), signs=1)
    assert "5, ... (50)" in repr(wide)


def test_plain_data(golden):
    for full in (False, True):
        data = json.loads(json.dumps(golden.to_dict(full=full), allow_nan=False))
        assert np.allclose(data["times"], golden.times)
        assert data["gaps"][-1] == "inf"
        assert data["jumps"][0]["samples"] == [0, 1]
        assert data["branches"] == []
    assert np.allclose(data["networks"][-1]["W"], golden.final.W)
    tie = algorithm1([1.0, 1.0, 1.0], mask=[[1, 1], [1, 0], [0, 1]], signs=1)
    assert len(json.loads(json.dumps(tie.to_dict()))["branches"]) == 2


def test_lazy_sequence_makes_items_once_and_forgets_old_ones():
    made = []
    items = Lazy(10, lambda i: made.append(i) or i * i, keep=2)
    assert items[3] == items[3] == items[-7] == 9
    assert made == [3]
    assert items[1:3] == [1, 4]
    assert items[3] == 9
    assert made == [3, 1, 2, 3]
    assert list(items) == [i * i for i in range(10)]
    with pytest.raises(IndexError):
        items[10]


def test_rounding_of_a_loss_is_shown_as_zero(golden):
    noise, small_loss = golden.losses.copy(), golden.losses.copy()
    noise[-1], small_loss[-1] = 8.2e-33, 2e-20
    shown = replace(golden, losses=noise)
    assert "e-33" not in repr(shown)
    assert shown.table()[-1]["loss"] == 8.2e-33
    assert "2e-20" in repr(replace(golden, losses=small_loss))
