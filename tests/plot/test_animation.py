"""Animations and curves: axes that stay, values that are those of the run."""

import numpy as np
import pytest
from PIL import Image

from reluflow import (
    ReluflowError,
    datasets,
    descend,
    every,
    extremal_vectors,
    flow,
    geometric,
    initialize,
    limit,
)
from reluflow.plot.animation import animate, scenes_of
from reluflow.plot.curves import (
    cosines_panel,
    curve_panels,
    log_norms_panel,
    loss_panel,
    margins_panel,
    stable_rank_panel,
)
from reluflow.plot.images import directions_picture, image_shape
from reluflow.plot.panels import boundary_panel, field_of
from reluflow.plot.traces import Line, Rule


@pytest.fixture(name="line", scope="module")
def _line():
    problem = datasets.three_points()
    net = initialize(problem, 20, 1e-3, rng=0)
    return net, flow(problem, net, t_end=40, save=every(1.0))


@pytest.fixture(name="xor", scope="module")
def _xor():
    problem = datasets.ideal_xor()
    net = initialize(problem, 30, 1e-3, rng=0)
    return descend(problem, net, lr=0.5, steps=600, save=geometric(1.5))


def axes_of(panel):
    return panel.xlim, panel.ylim, panel.xscale, panel.yscale, panel.polar, panel.hole


def test_axes_are_equal_from_first_to_last_frame(line, xor):
    golden = datasets.golden()
    deep = flow(golden, initialize(golden, 5, 1e-3, rng=0), t_end=12, save=every(2.0))
    for run in (line[1], xor, deep):
        scenes = scenes_of(run, 6)
        assert scenes.records[0] == 0
        assert scenes.records[-1] == len(run) - 1
        assert 2 <= len(scenes.records) <= 6
        for side in (scenes.left, scenes.right):
            assert len({axes_of(side(i)) for i in scenes.records}) == 1
            assert axes_of(side(0))[1] is not None


def test_nothing_leaves_the_axes(line):
    scenes = scenes_of(line[1])
    for i in scenes.records:
        neurons = scenes.right(i).traces[0]
        assert np.max(neurons.y) <= 1.0 + 1e-12
        low, high = scenes.left(i).ylim
        curve = next(t for t in scenes.left(i).traces if getattr(t, "label", "") == "network")
        assert low <= np.min(curve.y) <= np.max(curve.y) <= high


def test_gif_opens_and_its_frames_differ(line, tmp_path):
    path = animate(line[1], tmp_path / "films" / "line.gif", frames=5, fps=10, hold=1.0)
    assert [p.name for p in path.parent.iterdir()] == ["line.gif"]
    with Image.open(path) as film:
        assert film.format == "GIF"
        sizes, pixels, durations = set(), [], []
        for k in range(film.n_frames):
            film.seek(k)
            sizes.add(film.size)
            durations.append(film.info["duration"])
            pixels.append(np.asarray(film.convert("L"), dtype=float))
    assert len(pixels) == len(scenes_of(line[1], 5).records)
    assert sizes == {(960, 480)}
    assert durations == [100] * (len(pixels) - 1) + [1100]
    assert np.abs(pixels[0] - pixels[-1]).max() > 50
    frame = pixels[0][60:400, 60:70] < 100  # the left border of the axes stands still
    assert frame.any()
    assert all(
        (abs(p[60:400, 60:70] - pixels[0][60:400, 60:70]) < 60).mean() > 0.95 for p in pixels
    )


def test_what_cannot_be_animated(line, tmp_path, monkeypatch):
    net, run = line
    blind = flow(run.problem, net, t_end=1.0, observe=["norm2"])
    with pytest.raises(ReluflowError, match="at least 2 recorded networks"):
        animate(blind, tmp_path / "a.gif")
    with pytest.raises(ReluflowError, match=r"\.gif or \.mp4"):
        animate(run, tmp_path / "a.avi")
    with pytest.raises(ReluflowError, match="fps must be positive"):
        animate(run, tmp_path / "a.gif", fps=0)
    (tmp_path / "taken").write_text("")
    with pytest.raises(ReluflowError, match="cannot write into"):
        animate(run, tmp_path / "taken" / "a.gif")
    from matplotlib.animation import FFMpegWriter

    monkeypatch.setattr(FFMpegWriter, "isAvailable", classmethod(lambda cls: False))
    with pytest.raises(ReluflowError, match="needs ffmpeg"):
        animate(run, tmp_path / "a.mp4")
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]


def lines(panel):
    return [trace for trace in panel.traces if isinstance(trace, Line) and len(trace.x)]


def test_curves_show_the_run_and_the_prediction(line):
    net, run = line
    process = limit(run.problem, net)
    panel = loss_panel(run, process)
    jumps = [t.at for t in panel.traces if isinstance(t, Rule) and t.axis == "x"]
    assert jumps == pytest.approx(process.jump_times(log_scale=net.log_norms.max()).tolist())
    assert np.array_equal(lines(panel)[0].y, run.loss)
    sizes = np.array([trace.y for trace in lines(log_norms_panel(run))])
    expected = np.array([state.log_norms for state in run.networks]).T / np.log(10)
    assert np.allclose(np.sort(sizes, axis=0), np.sort(expected, axis=0))
    best = extremal_vectors(run.problem).vectors[:1]
    cosine = np.array([trace.y for trace in lines(cosines_panel(run, best))])
    assert np.allclose(np.sort(cosine[:, 0]), np.sort(net.directions @ best[0]))
    assert np.allclose(lines(stable_rank_panel(run))[0].y[-1], 1.0, atol=1e-3)
    with pytest.raises(ReluflowError, match="margins need labels"):
        margins_panel(run)
    assert len(curve_panels(run, process, best)) == 4


def test_a_run_of_numbers_gives_the_curves_it_can(line):
    net, run = line
    blind = flow(run.problem, net, t_end=5.0, save=every(1.0), observe=["stable_rank"])
    assert [p.title for p in curve_panels(blind)] == ["loss", "stable rank of W"]


def test_boundary_is_where_f_vanishes(xor):
    panel = boundary_panel(xor.final, xor.problem)
    (zero,) = lines(panel)
    path = np.column_stack([zero.x, zero.y])
    path = path[np.isfinite(path).all(axis=1)]
    _, _, f = field_of(xor.final, (*panel.xlim, *panel.ylim), 51)
    assert np.abs(xor.final(path)).max() < 0.02 * np.abs(f).max()
    with pytest.raises(ReluflowError, match="needs two features"):
        boundary_panel(xor.final, datasets.golden())


def test_directions_as_images():
    V = np.arange(14.0).reshape(2, 7)
    picture = directions_picture(V, (2, 3), bias=1.0, titles=["one", "two"])
    assert np.array_equal(picture.panels[1].traces[0].values, [[7, 8, 9], [10, 11, 12]])
    assert "bias 13" in picture.panels[1].title
    assert image_shape(784) == (28, 28)
    assert "2 of 5 directions" in directions_picture(np.eye(5, 9), most=2).title
    with pytest.raises(ReluflowError, match="10 features are not 3 x 3 pixels"):
        image_shape(10)


def test_frames_follow_what_changes_also_where_records_are_few():
    """A run that rests for most of its time: the first quarter of the film is not still."""
    problem = datasets.golden()
    net = initialize(problem, 6, log_scale=-200.0, kind="sphere", signs=1, rng=4)
    run = flow(problem, net, save=every(2.0))
    scenes = scenes_of(run, 120)
    quarter = run.networks[int(scenes.records[len(scenes.records) // 4])]
    turned = np.linalg.norm(quarter.directions - run.networks[0].directions, axis=1).mean()
    whole = np.linalg.norm(run.final.directions - run.networks[0].directions, axis=1).mean()
    assert turned > 0.3 * whole
    assert (scenes.records[0], scenes.records[-1]) == (0, len(run) - 1)
    before = run.times <= 0.5 * run.times[-1]
    shown = np.isin(np.arange(len(run)), scenes.records)
    assert shown[before].sum() < 0.7 * before.sum()  # rests are shortened
