"""A disk that is full: one sentence, exit code 2, and what was there before is still there."""

import pytest

from reluflow import ReluflowError, Trajectory, datasets, descend, initialize
from reluflow.runtime import Checkpoint, write_text

RUN = ("simulate", "three-points", "--m", 20, "--t-end", 5)


def test_simulate_on_a_disk_of_40_kB(reluflow, small_disk):
    (small_disk / "before.txt").write_text("kept")
    done = reluflow(*RUN, "-o", small_disk / "run.nc")
    assert done.refused, done.err
    assert "cannot write" in done.err
    assert "No space left on device" in done.err
    assert [path.name for path in small_disk.iterdir()] == ["before.txt"]
    assert (small_disk / "before.txt").read_text() == "kept"


def test_simulate_where_files_stay_small(reluflow, tmp_path):
    """As on a full disk, for those who may not mount one; the old run stays readable."""
    assert reluflow(*RUN, "-o", "run.nc").code == 0
    before = (tmp_path / "run.nc").read_bytes()
    other = reluflow(*RUN, "--seed", 1, "--overwrite", "-o", "run.nc", file_bytes=100_000)
    assert other.refused, other.err
    assert "cannot write run.nc: File too large" in other.err
    assert (tmp_path / "run.nc").read_bytes() == before
    again = reluflow(*RUN, "--seed", 1, "--overwrite", "-o", "run.nc")
    assert again.code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.nc"]


@pytest.mark.slow
def test_explain_on_a_disk_of_40_kB(reluflow, small_disk):
    (small_disk / "before.txt").write_text("kept")
    done = reluflow("explain", "three-points", "-o", small_disk, "--m", 20)
    assert done.refused, done.err
    assert "cannot write" in done.err
    assert (small_disk / "before.txt").read_text() == "kept"
    assert not list(small_disk.rglob("*.part"))
    assert not (small_disk / "report.json").exists()


@pytest.mark.slow
def test_explain_again_on_a_full_disk_keeps_the_old_report(reluflow, tmp_path):
    assert reluflow("explain", "three-points", "-o", "out", "--m", 20).code == 0
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.*")}
    done = reluflow("explain", "three-points", "-o", "out", "--m", 30, file_bytes=100_000)
    assert done.refused, done.err
    assert all(path.read_bytes() == content for path, content in before.items())


@pytest.mark.parametrize("what", ["text", "run", "checkpoint"])
def test_every_file_is_written_beside(what, tmp_path, monkeypatch):
    """An error at the last moment leaves the old file and no part of the new one."""
    problem = datasets.three_points()
    run = descend(problem, initialize(problem, 3, rng=0), lr=0.1, steps=3)
    target = tmp_path / "file"
    write = {
        "text": lambda: write_text(target, "new"),
        "run": lambda: run.save(target),
        "checkpoint": lambda: Checkpoint(target, "key", 1.0).write({}),
    }[what]
    target.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.replace", full)
        with pytest.raises(ReluflowError, match=r"cannot write .*file: No space left on device"):
            write()
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert target.read_text() == "old"
    write()
    if what == "run":
        assert Trajectory.load(target).loss.tolist() == run.loss.tolist()


def test_a_run_whose_file_cannot_be_written_keeps_its_checkpoint(cli_simulation, tmp_path):
    """The work is not lost: the next call goes on from the end, and gives the same numbers."""
    simulate, config = cli_simulation
    whole = simulate(config, tmp_path / "whole.nc").run
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trajectory, "save", _full_disk)
        with pytest.raises(ReluflowError, match="cannot write"):
            simulate(config, tmp_path / "run.nc")
    assert list(tmp_path.glob("run.nc.*.checkpoint"))
    again = simulate(config, tmp_path / "run.nc")
    assert again.made == "resumed"
    assert again.run.loss.tobytes() == whole.loss.tobytes()
    assert again.run.final.W.tobytes() == whole.final.W.tobytes()
    assert str(again.run.status) == str(whole.status)
    assert again.run.cost.get("steps") == whole.cost.get("steps")
    assert not list(tmp_path.glob("*.checkpoint"))


def _full_disk(run, path):
    raise ReluflowError(f"cannot write {path}: No space left on device")


@pytest.fixture(params=["stationary", "loss", "end", "steps", "descent", "unlocated"])
def cli_simulation(request):
    """A configuration for each way in which a run can end."""
    from reluflow.cli.config import read_config
    from reluflow.cli.simulation import simulate

    run = {
        "stationary": {},
        "loss": {"stop_loss": 0.1},
        "end": {"t_end": 20.0},
        "steps": {"max_steps": 20},
        "descent": {"lr": 0.01, "steps": 300},
        "unlocated": {"kinks": False, "stop_loss": 0.1},
    }[request.param]
    network = {"m": 5, "scale": 0.1, "seed": 0}
    config = read_config(None, {"data": {"source": "three-points"}, "network": network, "run": run})
    return simulate, config
