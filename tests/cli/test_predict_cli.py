"""reluflow predict: text, JSON and pictures."""

import json

import numpy as np
import pytest
from PIL import Image

from reluflow import datasets, extremal_vectors, initialize, limit


def test_text_says_what_the_library_finds(cli):
    done = cli("predict", "three-points", "--m", 50, "--seed", 3)
    assert done.code == 0, done.err
    problem = datasets.three_points()
    process = limit(problem, initialize(problem, 50, 1e-6, rng=3))
    assert "all)" in done.out
    assert f"{process.times[0]:.7f}" in done.out
    assert process.status in done.out


def test_json_carries_the_same_numbers(cli):
    done = cli("predict", "three-points", "--m", 50, "--log-scale", -2000, "--json")
    found = json.loads(done.out)
    problem = datasets.three_points()
    net = initialize(problem, 50, log_scale=-2000, rng=0)
    process = limit(problem, net)
    exact = extremal_vectors(problem)
    assert np.allclose(found["extremal_vectors"]["vectors"], exact.vectors)
    assert found["extremal_vectors"]["exact"] is True
    assert found["process"]["times"] == pytest.approx(process.times.tolist())
    expected = process.jump_times(log_scale=net.log_norms.max())
    assert found["jump_times"] == pytest.approx(expected.tolist())
    fates = found["alignment"]
    assert sum(fates["to"].values()) + sum(fates["others"].values()) == 50


def test_infinite_width_needs_no_start(cli):
    found = json.loads(cli("predict", "three-points", "--width", "infinite", "--json").out)
    assert found["alignment"] is None
    assert found["jump_times"] is None
    assert found["process"]["view"].startswith("infinite width")


def test_pictures_and_quiet(cli, tmp_path):
    (tmp_path / "mine.csv").write_text("1,0,0,0,1\n0,1,0,0,2\n0,0,1,1,1\n")
    done = cli(
        "predict", "mine.csv", "--m", 20, "-o", "out/deep", "--image-shape", "2x2", "--quiet"
    )
    assert (done.code, done.out, done.err) == (0, "", "")
    made = {path.name for path in (tmp_path / "out" / "deep").iterdir()}
    names = ("landscape", "staircase", "exponents", "saddles", "directions")
    assert made == {f"{name}.png" for name in names} | {"predict.json"}
    stored = json.loads((tmp_path / "out" / "deep" / "predict.json").read_text())
    assert stored["problem"]["name"] == "mine"
    for name in names:
        with Image.open(tmp_path / "out" / "deep" / f"{name}.png") as picture:
            assert np.asarray(picture.convert("L")).std() > 5


def test_options_of_a_dataset(cli):
    line = ("predict", "separable", "--with", "n=4", "--with", "d=3", "--m", 6, "--json")
    found = json.loads(cli(*line).out)
    assert (found["problem"]["n"], found["problem"]["d"]) == (4, 3)


def test_text_has_short_numbers_and_says_from_where_the_jump_comes(cli, tmp_path):
    (tmp_path / "large.csv").write_text("1e10,2,1e30\n1,-1e10,1e30\n-1e10,0.3,1e30\n")
    done = cli("predict", "large.csv", "--m", 10)
    assert "0" * 20 not in done.out
    one = cli("predict", "three-points", "--m", 20).out
    assert "From --scale 1e-06 (largest |w_j| 5.2e-07) the jump comes at time 19.35" in one
    far = cli("predict", "toy6", "--m", 10, "--log-scale", -3000).out
    assert "From --log-scale -3000 (largest |w_j| exp(-3000.3)) the jumps come at times " in far


@pytest.mark.parametrize(("command", "scale"), [("predict", "1e-6"), ("simulate", "1e-3")])
def test_help_tells_the_defaults_that_are_used(cli, command, scale):
    from reluflow.cli.config import Neurons
    from reluflow.network.init import KINDS

    words = " ".join(cli(command, "--help").out.split())
    start = Neurons()
    assert f"Number of neurons; {start.m} by default." in words
    assert f"Size of the initial weights; {scale} by default." in words
    assert f"{start.kind} (by default), {', '.join(KINDS[1:-1])} or {KINDS[-1]}." in words
    assert f"Seed of the initial weights; {start.seed} by default." in words
