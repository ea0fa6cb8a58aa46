"""Summaries and pictures say what the rows say; the ready experiments measure what they claim."""

import numpy as np
import pandas
import pytest

from reluflow.errors import ReluflowError
from reluflow.plot.sweep import plot_sweep
from reluflow.sweeps import sweep
from reluflow.sweeps.experiments import jump_error, xor_capture
from reluflow.sweeps.table import split_constant, summary


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    rows = [
        {"m": m, "scale": s, "kind": k, "value": m + s * rng.random(), "hit": bool(m > s * 100)}
        for m in (2, 4, 8)
        for s in (0.01, 0.1, 1.0)
        for k in ("a", "b")
        for _ in range(5)
    ]
    return pandas.DataFrame(rows)


def test_lines_are_medians_with_quantile_bands(frame):
    figure = plot_sweep(frame, kind="lines", x="scale", y=["value"], by="kind")
    (ax,) = figure.axes
    assert ax.get_xscale() == "log"
    for line, kind in zip(ax.get_lines(), "ab", strict=True):
        of = frame[frame.kind == kind].groupby("scale")["value"]
        np.testing.assert_allclose(line.get_ydata(), of.median())
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    of = frame[frame.kind == "a"].groupby("scale")["value"]
    assert band.min() == pytest.approx(of.quantile(0.1).min())
    assert band.max() == pytest.approx(of.quantile(0.9).max())


def test_true_false_columns_are_shares(frame):
    figure = plot_sweep(frame, kind="lines", x="m", y=["hit"])
    np.testing.assert_allclose(
        figure.axes[0].get_lines()[0].get_ydata(), frame.groupby("m")["hit"].mean()
    )


def test_maps_have_a_cell_for_each_pair(frame):
    figure = plot_sweep(frame, kind="map", x="scale", y=["m"], value="value", by="kind")
    first, second, _bar = figure.axes
    for ax, kind in ((first, "a"), (second, "b")):
        of = frame[frame.kind == kind].groupby(["m", "scale"])["value"].mean().unstack()
        np.testing.assert_allclose(ax.images[0].get_array(), of)
        assert [t.get_text() for t in ax.get_yticklabels()] == ["2", "4", "8"]
    assert first.images[0].get_clim() == second.images[0].get_clim()


def test_bad_pictures_are_one_sentence(frame):
    for options, words in (
        ({"kind": "pie", "x": "m", "y": ["value"]}, "kind must be"),
        ({"kind": "lines", "x": "m"}, "lines need x and y"),
        ({"kind": "map", "x": "m", "y": ["scale"]}, "a map needs"),
        ({"kind": "lines", "x": "width", "y": ["value"]}, "no column 'width'"),
    ):
        with pytest.raises(ReluflowError, match=words):
            plot_sweep(frame, **options)


def test_summary_groups():
    table = sweep("helpers:draw", {"x": [0, 1], "y": [0, 1, 2]}, seeds=4, executor="serial")
    frame = table.to_pandas()
    found = summary(table, by=["x"], of=["value", "even", "word"], quantiles=[0.5])
    assert list(found["points"]) == [12, 12]
    np.testing.assert_allclose(found["value"], frame.groupby("x")["value"].mean())
    np.testing.assert_allclose(found["value q50"], frame.groupby("x")["value"].median())
    assert list(found["even"]) == [1.0, 0.0]
    assert found["word"][0] == "a (4 of 12)"
    with pytest.raises(ReluflowError, match="no column 'z'"):
        summary(table, of=["z"])
    with pytest.raises(ReluflowError, match="between 0 and 1"):
        summary(table, quantiles=[2.0])


def test_a_summary_shows_the_columns_that_differ():
    table = sweep("helpers:draw", {"x": [0, 1], "y": [1, 2]}, seeds=2, executor="serial")
    found = summary(table)
    assert len(found) == 4  # by all swept fields
    differing, same = split_constant(found)
    assert {"x", "y"} <= set(differing)
    assert same["points"] == 2
    assert not set(same) & set(differing)
    assert set(same) | set(differing) == set(found)
    assert split_constant(found.head(1))[1] == {}


def test_xor_capture_respects_the_union_bound_and_not_the_printed_one():
    for m in (4, 10):
        rng = np.random.default_rng(m)
        found = [xor_capture(m, rng) for _ in range(2000)]
        share = np.mean([row["all_four"] for row in found])
        error = 3 * np.sqrt(max(share * (1 - share), 1e-3) / 2000)
        assert share >= found[0]["bound"] - error
        if m == 4:
            assert share < found[0]["printed"] - error


@pytest.mark.slow
def test_jump_times_meet_the_limit_as_the_scale_falls():
    far, near = (jump_error(s, np.random.default_rng(1)) for s in (-20.0, -200.0))
    assert near["error"] == pytest.approx(far["error"] / 10, rel=0.2)  # C / log(1/scale)
    assert near["corrected"] < 1e-3 * near["error"]
