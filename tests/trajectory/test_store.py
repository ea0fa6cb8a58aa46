"""Runs on disk."""

from dataclasses import replace

import numpy as np
import pytest
import xarray

from reluflow import ReluflowError, Trajectory, datasets, descend, initialize

PROBLEM = datasets.three_points(leak=0.1)


def make(**options):
    net = initialize(PROBLEM, 5, rng=0, **options)
    return descend(PROBLEM, net, lr=0.05, steps=50, save=[0, 25, 50])


def test_extreme_scales_survive(tmp_path):
    run = make(log_scale=-1000.0)
    run.save(tmp_path / "run.nc")
    back = Trajectory.load(tmp_path / "run.nc")
    assert np.array_equal(back.networks[2].log_scale, run.networks[2].log_scale)
    assert np.array_equal(back.final.log_norms, run.final.log_norms)
    assert back.problem.leak == 0.1
    assert back.problem.bias == 1.0
    assert np.array_equal(back.problem.X, PROBLEM.X)


def test_dataset_and_provenance():
    run = make(scale=0.1)
    data = run.dataset
    assert data["W"].dims == ("record", "neuron", "feature")
    assert data["step"].values.tolist() == [0, 25, 50]
    assert set(run.settings["versions"]) == {"reluflow", "numpy", "scipy", "numba", "python"}
    assert run.settings["steps"] == 50


def test_the_file_is_the_dataset(tmp_path):
    """Written without xarray, read by it: whole numbers, truth values and text included."""
    observed = {"grows": np.array([True, False, True]), "cones": np.arange(3, dtype=np.int8)}
    run = replace(
        make(log_scale=-3.0),
        observables=observed,
        observable_dims={"grows": (), "cones": ()},
        events={"kind": np.array(["cross", "slide"]), "time": np.array([0.5, np.nan])},
    )
    run.save(tmp_path / "run.nc")
    with xarray.open_dataset(tmp_path / "run.nc", engine="h5netcdf") as stored:
        assert stored.identical(run.dataset)


def test_nothing_half_written(tmp_path):
    with pytest.raises(ReluflowError, match="does not exist: create it first"):
        make(scale=0.1).save(tmp_path / "no" / "run.nc")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x89HDF\r\n\x1a\n" + b"\0" * 100])
def test_garbage_is_refused(content, tmp_path):
    path = tmp_path / "run.nc"
    path.write_bytes(content)
    with pytest.raises(ReluflowError, match="cannot be read as a stored run"):
        Trajectory.load(path)


def test_missing_foreign_and_huge_files(tmp_path):
    with pytest.raises(ReluflowError, match="does not exist"):
        Trajectory.load(tmp_path / "none.nc")
    run = make(scale=0.1)
    foreign = tmp_path / "foreign.nc"
    run.dataset.assign_attrs(format="other").to_netcdf(foreign, engine="h5netcdf")
    with pytest.raises(ReluflowError, match="is not a run of format"):
        Trajectory.load(foreign)
    run.save(tmp_path / "run.nc")
    with pytest.raises(ReluflowError, match="more than max_bytes=10"):
        Trajectory.load(tmp_path / "run.nc", max_bytes=10)
