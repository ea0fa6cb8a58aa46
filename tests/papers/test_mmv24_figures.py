"""[MMV24]_ figures: the plane, and pairs of digits on images made here and on MNIST where it is."""

from pathlib import Path

import numpy as np
import pytest

from reluflow import Network, Problem, ReluflowError, datasets, descend, initialize
from reluflow.claims.claim import load_all
from reluflow.claims.run import run_check
from reluflow.claims.verdict import Status
from reluflow.papers import reproduce
from reluflow.papers.catalogue import all_figures, sketches_of
from reluflow.papers.figure import Skipped
from reluflow.papers.mmv24.figures import digits as mmv24_digits
from reluflow.papers.mmv24.figures import mnist as mmv24_mnist
from reluflow.papers.mmv24.figures import plane as mmv24_plane
from reluflow.papers.reproduce import write_index
from reluflow.plot.traces import Band, Line

DIGITS = ("F5", "F10", "F11", "F12", "F13")
PLANE = ("F1", "F6", "F7", "F8", "F9")


def quick(name):
    spec = all_figures()["MMV24", name]
    return spec.make(seed=0, **spec.sizes["quick"])


def write_idx(path: Path, array: np.ndarray) -> None:
    header = bytes([0, 0, 8, array.ndim]) + b"".join(int(n).to_bytes(4, "big") for n in array.shape)
    path.write_bytes(header + array.astype(np.uint8).tobytes())


@pytest.fixture
def stripes(tmp_path, monkeypatch):
    """MNIST files whose digits are noisy stripes at places of their own, 30 images each."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 3, 7, 8], 30)
    images = rng.integers(0, 60, (labels.size, 28, 28))
    for image, label in zip(images, labels, strict=True):
        image[:, 3 * label : 3 * label + 3] += rng.integers(60, 190)
    for split in ("train", "t10k"):
        write_idx(tmp_path / f"{split}-images-idx3-ubyte", images)
        write_idx(tmp_path / f"{split}-labels-idx1-ubyte", labels)
    monkeypatch.setenv("RELUFLOW_DATA", str(tmp_path))
    mmv24_digits.course.cache_clear()
    yield
    mmv24_digits.course.cache_clear()


@pytest.mark.parametrize("name", PLANE)
def test_the_plane_shows_what_it_must(name):
    made = quick(name)
    assert made.seen
    for comparison in made.seen:
        assert comparison.status is Status.HOLDS, comparison
    assert made.caption


def test_drops_are_counted():
    problem = datasets.toy6()
    net = initialize(problem, 20, scale=1e-6, kind="gaussian", normalize="none", rng=0)
    run = descend(problem, net, lr=2e-3, steps=9000, save=range(0, 9001, 100))
    drops, _ = mmv24_plane.drops_of(run)
    assert len(drops) == 1  # the second comes near 12,000


def test_outside_by_hand():
    problem = datasets.two_points(0.1)
    net = Network(
        np.array([[1.0, -0.05], [1.0, 1.0], [-1.0, -1.0], [1.0, 1.0]]),
        np.array([1.0, 1.0, 1.0, -1.0]),
    )
    # x_1 alone, both, none, both but of the other sign
    assert mmv24_plane.outside_traps(problem, net).tolist() == [False, False, False, True]
    net = Network(np.array([[1.0, -0.2]]), np.ones(1))
    assert mmv24_plane.outside_traps(problem, net).tolist() == [True]


def test_counts_do_not_depend_on_the_way_they_are_swept():
    once = mmv24_plane.count_outside(0.001, 3)
    assert once["at 7,000"] == mmv24_plane.count_over_starts(0.001, 6)["at 7,000"][3]


def test_the_start_of_figure_7_is_the_one_drawn():
    seen = {c.what: c for c in mmv24_plane.figure7(runs=1, seed=4).seen}
    assert seen["outside at 7,000, the start shown"].measured == 1  # start 0 has none
    assert seen["outside at 7,000, any start"].measured == 0


def test_neurons_that_changed_sign_are_told_apart():
    found = mmv24_plane.count_outside(0.001, 14)
    assert found["along"] > 0.999
    assert found["along, late"] < 0.97  # it became positive near iteration 2,500


def test_pairs_by_block():
    X = np.array([[1.0, 0.0], [1.0, 0.1], [-1.0, 0.0], [0.2, -1.0]])
    share, blocks = mmv24_digits.right_pairs(Problem(X, np.array([1.0, 1.0, -1.0, -1.0])))
    assert blocks == [1.0, 0.5, 0.5]  # x_4 is of the other class but on their side
    assert share == 0.625


@pytest.mark.parametrize("name", DIGITS)
def test_without_mnist_a_figure_says_what_it_needs(name, tmp_path, monkeypatch):
    monkeypatch.setenv("RELUFLOW_DATA", str(tmp_path))
    mmv24_digits.course.cache_clear()
    with pytest.raises(Skipped, match=r"train-images-idx3-ubyte.*RELUFLOW_DATA"):
        quick(name)


def test_courses_on_stripes(stripes):
    one = mmv24_digits.course((1, 0), None, "descent", 0, 1000)
    two = mmv24_digits.course((1, 0), None, "flow", 0, 1000)
    assert one.problem.n == 60
    assert np.allclose(one.steps, two.steps)
    assert np.allclose(one.run["mean_cosines"], two.run["mean_cosines"], atol=0.02)
    groups = one.groups
    assert groups.shape == (2, len(one.steps), 50)
    assert (np.isnan(groups[0]) == ~np.isnan(groups[1])).all()  # each neuron has one sign
    assert one.falls_below(2.0) == 0.0
    assert one.falls_below(-1.0) == np.inf
    W, a = one.run.final.weights()
    assert np.allclose(mmv24_digits.mean_neurons(one.run.final)[0], W[a > 0].mean(axis=0))
    pictures = mmv24_mnist.pictures_of([one, two], (1, 0))
    assert [len(p.panels) for p in pictures] == [6, 4]
    numbers = mmv24_mnist.measure([one, two])
    assert numbers["class_sum_cosine"] == pytest.approx(-1.0)
    gaps = mmv24_mnist.compare_methods([one, two])
    assert all(np.isfinite(c.measured) for c in gaps[1:])


def test_mini_batches_keep_their_share(stripes):
    problem = mmv24_digits.digits(1, 0, None)
    size, per_epoch = mmv24_digits.batches(problem)
    assert (per_epoch, -(-problem.n // size)) == (7, 7)
    made = mmv24_digits.figure13(per_class=None, epochs=10, seed=0)
    assert len(made.pictures[0].panels) == 3
    assert made.numbers["loss_after_1"] < 1.0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["F5", "F13"])
def test_mnist_shows_what_it_must(name, mnist_folder, monkeypatch):
    monkeypatch.setenv("RELUFLOW_DATA", str(mnist_folder))
    for comparison in quick(name).seen:
        assert comparison.status is Status.HOLDS, comparison


# ---------------------------------------------------------------- Figure 1, axes, sketches
def test_figure_1_has_a_sample_outside_the_half_space():
    """As in the paper: x_1 and x_2 are active, x_3 is not; the half-space is grey."""
    (picture,) = quick("F1").pictures
    for panel in picture.panels:
        (shade,) = [trace for trace in panel.traces if isinstance(trace, Band)]
        lines = {t.label: t for t in panel.traces if isinstance(t, Line) and t.label}
        w = np.array([lines["neuron w"].x[1], lines["neuron w"].y[1]])
        for k, active in (
            ("x_1, label +1", True),
            ("x_2, label -1", True),
            ("x_3, label -1", False),
        ):
            x = np.array([lines[k].x[1], lines[k].y[1]])
            assert (x @ w > 0) == active
            edge = np.interp(x[0], shade.x, shade.low)
            assert (x[1] > edge) == active  # the band is that half-space
        assert np.allclose(np.outer(shade.x, w[0]) + np.outer(shade.low, w[1]), 0.0, atol=1e-12)


def test_figures_12_and_13_are_drawn_over_epochs(stripes):
    few = mmv24_digits.figure13(per_class=None, epochs=5, seed=0)
    for panel in few.pictures[0].panels:
        assert (panel.xscale, panel.xlabel) == ("linear", "epoch")
        assert panel.traces[0].x[-1] == pytest.approx(5.0)


def test_drawings_without_data_are_named_as_left_out():
    figures = {name for paper, name in all_figures() if paper == "MMV24"}
    left = {sketch.name for sketch in sketches_of("mmv24")}
    assert figures | left == {f"F{k}" for k in range(1, 22)}
    assert not figures & left
    known = {check.id for check in load_all().values()}
    for sketch in sketches_of():
        assert set(sketch.claims) <= known
        assert "a sketch without data" in sketch.sentence
    with pytest.raises(ReluflowError, match="MMV24 F15 is left out, a sketch without data"):
        reproduce("mmv24", "f15", "none", "quick")


def test_the_page_names_what_is_left_out(tmp_path):
    verdict = run_check(load_all()["MMV24-L11"])
    page = write_index(tmp_path, [], [verdict], {}, "quick", sketches_of("MMV24")).read_text()
    assert "Figures of MMV24 left out" in page
    assert page.count("is left out, a sketch without data") == 11
    without = write_index(tmp_path, [], [verdict], {}, "quick").read_text()
    assert "left out" not in without
