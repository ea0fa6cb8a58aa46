"""Figures of [TLB26]_: the chosen draw, what must be seen, flow and descent."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from reluflow import datasets, initialize
from reluflow.papers.catalogue import all_figures, select_figures
from reluflow.papers.tlb26.figures import one_jump as tlb26_one_jump
from reluflow.papers.tlb26.figures import six_neurons as tlb26_six_neurons
from reluflow.papers.tlb26.figures import sizes as tlb26_sizes
from reluflow.papers.tlb26.figures.general import general_pictures
from reluflow.papers.tlb26.figures.sizes import (
    RATIOS_M,
    ensemble,
    he_run,
    miss_probability,
    train,
)
from reluflow.plot.render import draw
from reluflow.plot.traces import Line, Points
from reluflow.prediction.orthogonal import algorithm1


def holds(spec, size="quick"):
    drawn = spec.make(**spec.sizes[size])
    bad = [c for c in drawn.seen if c.status.name != "HOLDS"]
    assert not bad, bad
    assert drawn.pictures
    assert drawn.summary
    return drawn


def test_all_figures_are_there():
    assert [spec.name for spec in select_figures("tlb26")] == [f"F{i}" for i in range(1, 7)]
    assert all(("TLB26", f"F{i}") in all_figures() for i in range(1, 7))


def test_the_chosen_draw():
    _, _, process = tlb26_six_neurons.setting()
    assert process.norm2 == pytest.approx(30.0228, abs=5e-5)
    assert process.min_norm2 == pytest.approx(15.76, abs=5e-3)
    assert [len(s) for s in process.sets] == [36, 15, 9, 3, 1]
    epochs = process.times * tlb26_six_neurons.L / tlb26_six_neurons.LR
    assert np.allclose(epochs, [505_452, 568_902, 627_106, 713_236, 1_030_544], atol=1)
    first = process.half_fit_times(log_scale=-1000.0)[0] / tlb26_six_neurons.LR
    assert first == pytest.approx(506_088, abs=1)
    assert first * tlb26_six_neurons.lag() == pytest.approx(506_589, abs=1)


def test_schematic():
    holds(select_figures("tlb26", "f2")[0])


def test_a_fit_that_depends_on_the_scale_is_seen(monkeypatch):
    """Control: phases of a run whose real time is stretched with log(1/scale)."""
    phases = tlb26_one_jump.phases

    def stretched(c):
        return tuple(t * c.L / 80.0 for t in phases(c))

    monkeypatch.setattr(tlb26_one_jump, "phases", stretched)
    seen = tlb26_one_jump.figure2(scale=80.0).seen
    bad = [c.what for c in seen if c.status.name == "FAILS"]
    assert any("time to fit" in what for what in bad)
    assert any("time to realign" in what for what in bad)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["f1", "f3", "f4"])
def test_staircase_norms_and_directions(name):
    holds(select_figures("tlb26", name)[0])


@pytest.mark.slow
def test_general_data_are_predicted():
    assert all(c.status.name == "HOLDS" for c in general_pictures().seen)


def test_ensembles():
    rng = np.random.default_rng(1)
    made = ensemble(32, 16, 1000, rng)
    uncovered = np.mean(made["uncovered"] > 0)
    exact = miss_probability(32, 16)
    assert exact == pytest.approx(0.2400, abs=0.0045)  # 80,000 draws, 3 standard errors
    assert uncovered == pytest.approx(exact, abs=3 * np.sqrt(exact * (1 - exact) / 1000))
    made = ensemble(32, 256, 60, rng)
    assert np.mean(made["norm2"] / made["least"]) == pytest.approx(RATIOS_M[256], abs=0.06)


def test_training_stays_below_the_limit_at_practical_scales():
    norm2, limit, loss = train(16, 32, 0.5, 20_000, 0)
    assert loss < 1e-8
    assert 0.8 * limit < norm2 < limit
    start, end, left = he_run(64, 0)
    assert left < 1e-6
    assert start < end


def test_a_start_that_leaves_a_sample_out_is_drawn_again():
    """At width 16 and seed 1 the first draw leaves three of 32 samples without a neuron."""
    problem = datasets.orthonormal(32, law="normal", loss="square", rng=1)
    first = initialize(problem, 16, 1e-8, "sphere", 1)
    assert algorithm1(problem, first).uncovered.size == 3
    norm2, limit, loss = train(32, 16, 1.0, 20_000, 1)
    assert loss < 1e-6
    assert problem.known["min_norm2"] < norm2 < limit


def test_unfitted_and_too_small_norms_are_seen(monkeypatch):
    """Control of F6: trained points that are not fitted, below the minimum, growing."""
    made = {16: (10.0, 18.0, 1e-3), 64: (11.0, 16.5, 0.0)}
    monkeypatch.setattr(tlb26_sizes, "train", lambda n, m, *_: made[m])
    seen = tlb26_sizes.figure6(draws=20, widths=(16, 64), he=(16, 64), points=(16, 64)).seen
    bad = [c.what for c in seen if c.status.name == "FAILS"]
    assert [what for what in bad if what.startswith("trained")] == [
        "trained from 1e-8: loss left",
        "trained: norm2 over the minimum, - 1",
        "trained: change of norm2 with the width",
    ]


def covered_by_legend(panel):
    """How many points of the lines and marks of a panel lie under its legend, once drawn."""
    axes = draw(panel)
    axes.figure.canvas.draw()
    box = axes.get_legend().get_window_extent()
    under = 0
    for trace in panel.traces:
        if not isinstance(trace, Line | Points):
            continue
        x, y = (np.log10(np.asarray(v, dtype=float)) for v in (trace.x, trace.y))
        at = np.linspace(0, len(x) - 1, 400)  # along the segments, too
        places = np.arange(len(x))
        points = 10.0 ** np.column_stack([np.interp(at, places, x), np.interp(at, places, y)])
        shown = points if isinstance(trace, Line) else 10.0 ** np.column_stack([x, y])
        under += sum(box.contains(*p) for p in axes.transData.transform(shown))
    plt.close(axes.figure)
    return under


@pytest.mark.parametrize("he", [(16, 64, 256), (16, 64, 256, 1024, 4096)])
def test_the_legend_of_figure_6_covers_nothing(he, monkeypatch):
    """Runs are as those of the quick and of a larger size: (m + 1)/3 before training."""
    monkeypatch.setattr(tlb26_sizes, "train", lambda n, m, *_: (18.0 - m / 64, 16.0, 0.0))
    monkeypatch.setattr(tlb26_sizes, "he_run", lambda m, _: ((m + 1) / 3, (m + 60) / 3, 0.0))
    drawn = tlb26_sizes.figure6(draws=20, widths=(16, 64, 256, 4096), he=he, points=(16, 64))
    left = drawn.pictures[0].panels[0]
    assert covered_by_legend(left) == 0
    inside = replace(left, legend="upper left", title="as it was")
    assert (covered_by_legend(inside) > 0) == (he[-1] == 256)
