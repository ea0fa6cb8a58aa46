"""reluflow simulate: one stored run, resumable, the same as the library's."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from reluflow import Trajectory, datasets, descend, every, flow, initialize
from reluflow.cli.config import read_config
from reluflow.cli.simulation import problem_of, start_of

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_descent_is_that_of_the_library(cli, tmp_path):
    done = cli("simulate", "toy6", "--m", 9, "--lr", 0.01, "--steps", 300, "--every", 100, "--json")
    assert done.code == 0, done.err
    about = json.loads(done.out)
    run = Trajectory.load(tmp_path / "run.nc")
    problem = datasets.toy6()
    same = descend(problem, initialize(problem, 9, rng=0), lr=0.01, steps=300, save=every(100))
    assert np.array_equal(run.final.W, same.final.W)
    assert run.steps.tolist() == [0, 100, 200, 300]
    assert about["made"] == "now"
    assert about["loss"] == same.loss[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["run.nc"]


def test_flow_is_that_of_the_library_and_is_not_made_twice(cli, tmp_path):
    line = ("simulate", "three-points", "--m", 12, "--scale", "1e-4", "--t-end", 15, "-o", "a/b.nc")
    assert cli(*line).code == 0
    run = Trajectory.load(tmp_path / "a" / "b.nc")
    problem = datasets.three_points()
    same = flow(problem, initialize(problem, 12, 1e-4, rng=0), t_end=15, save=every(15 / 200))
    assert np.array_equal(run.loss, same.loss)
    assert len(run) == 201
    written = (tmp_path / "a" / "b.nc").stat().st_mtime_ns
    again = cli(*line)
    assert again.code == 0
    assert "b.nc is finished already" in again.out
    assert (tmp_path / "a" / "b.nc").stat().st_mtime_ns == written
    other = cli(*line, "--seed", 1)
    assert other.code == 2
    assert "holds a run with other settings" in other.err
    assert cli(*line, "--seed", 1, "--overwrite").code == 0
    assert not np.array_equal(Trajectory.load(tmp_path / "a" / "b.nc").final.W, run.final.W)


def test_options_win_over_the_file(cli, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "mine.csv").write_text("1,0,1\n0,1,2\n")
    (tmp_path / "data" / "run.toml").write_text(
        "[data]\nsource = 'mine.csv'\n[network]\nm = 5\nseed = 4\n[run]\nt_end = 3.0\n"
    )
    assert cli("simulate", "data/run.toml", "--m", 7, "-o", "out.nc").code == 0
    run = Trajectory.load(tmp_path / "out.nc")
    assert run.final.m == 7
    assert run.settings["config"]["network"]["seed"] == 4
    assert run.problem.name == "mine"


def test_a_diverged_run_is_stored_and_exits_1(cli, tmp_path):
    far = ("--lr", 1000, "--scale", 1, "--leak", 0.5, "--steps", 500)
    done = cli("simulate", "three-points", *far)
    assert done.code == 1
    assert "smaller lr" in done.out
    assert Trajectory.load(tmp_path / "run.nc").status.code == "diverged"
    assert [path.name for path in tmp_path.iterdir()] == ["run.nc"]


def test_a_wide_run_keeps_numbers_instead_of_networks(cli, tmp_path):
    assert cli("simulate", "xor", "--m", 60_000, "--lr", 0.1, "--steps", 3).code == 0
    run = Trajectory.load(tmp_path / "run.nc")
    assert run.networks is None
    assert set(run.observables) == {"norm2", "stable_rank", "margin", "normalized_margin"}


def test_pictures_and_animation(cli, tmp_path):
    done = cli(
        "simulate",
        "three-points",
        "--m",
        10,
        "--t-end",
        12,
        "--every",
        2,
        "--pictures",
        "pictures",
        "--animation",
        "film.gif",
    )
    assert done.code == 0, done.err
    made = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")}
    assert made == {"run.nc", "film.gif", "pictures/curves.png", "pictures/end.png"}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_examples_are_valid(path):
    config = read_config(path)
    problem = problem_of(config)
    assert start_of(config, problem).m == config.network.m


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [
        ["--m", "400", "--lr", "0.05", "--steps", "3000", "--every", "500"],
        ["--m", "150", "--scale", "1e-6", "--t-end", "300", "--every", "20"],
    ],
    ids=["descend", "flow"],
)
def test_the_same_command_continues_after_a_kill(how, tmp_path):
    line = [sys.executable, "-m", "reluflow.cli.main", "simulate", "gaussian-teacher"]
    line += ["--with", "n=60", "--with", "d=20", "--observe", "norm2"]
    line += [*how, "--checkpoint-seconds", "0.01", "--json"]
    kills, rng = 0, np.random.default_rng(0)
    for _ in range(3):
        job = subprocess.Popen([*line, "-o", "run.nc"], cwd=tmp_path, stdout=subprocess.DEVNULL)
        while not list(tmp_path.glob("*.checkpoint")) and job.poll() is None:
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.3))
        if job.poll() is None:
            os.kill(job.pid, signal.SIGKILL)
            kills += 1
        job.wait()
    assert kills > 0
    assert not (tmp_path / "run.nc").exists()
    last = subprocess.run([*line, "-o", "run.nc"], cwd=tmp_path, capture_output=True, text=True)
    assert json.loads(last.stdout)["made"] == "resumed", last.stderr
    subprocess.run([*line, "-o", "calm.nc"], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)
    killed, calm = (Trajectory.load(tmp_path / name) for name in ("run.nc", "calm.nc"))
    assert np.array_equal(killed.final.W, calm.final.W)
    assert np.array_equal(killed.loss, calm.loss)
    assert np.array_equal(killed["norm2"], calm["norm2"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["calm.nc", "run.nc"]


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no folder that takes no file")
def test_a_place_that_takes_no_file_is_told_before_the_run(cli, monkeypatch):
    monkeypatch.setattr("reluflow.cli.simulation._run", lambda *_: pytest.fail("the run began"))
    done = cli("simulate", "three-points", "-o", "/proc/x.nc")
    assert done.code == 2
    assert done.err == (
        "reluflow: cannot write /proc/x.nc: no such file or directory, give another -o\n"
    )


def test_one_record_is_told_as_one(cli):
    done = cli("simulate", "three-points", "--m", 5, "--lr", 0.1, "--steps", 0)
    assert "\n1 record (" in done.out


def test_an_animation_of_a_run_of_observables_keeps_networks_too(cli, tmp_path):
    text = (
        '[data]\nsource = "three-points"\n[network]\nm = 6\nseed = 0\nscale = 1e-2\n'
        '[run]\nt_end = 10.0\n[save]\nevery = 1.0\nobserve = ["log_norms"]\n'
    )
    config, film = tmp_path / "run.toml", tmp_path / "film.gif"
    config.write_text(text)
    made = cli("simulate", config, "-o", tmp_path / "run.nc", "--animation", film)
    assert made.code == 0, made.err
    assert film.stat().st_size > 1000
    config.write_text(text + "states = false\n")
    refused = cli("simulate", config, "-o", tmp_path / "other.nc", "--animation", film)
    assert refused.code == 2
    assert "an animation needs recorded networks: set states = true" in refused.err
    assert not (tmp_path / "other.nc").exists()
