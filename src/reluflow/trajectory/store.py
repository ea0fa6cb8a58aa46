"""One NetCDF file per run: read and written without pickle, sizes checked before reading."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.problem import Problem, losses
from reluflow.runtime import beside
from reluflow.runtime.plain import to_plain
from reluflow.trajectory.states import States
from reluflow.trajectory.status import Status

if TYPE_CHECKING:
    import xarray as xr

    from reluflow.trajectory.trajectory import Trajectory

FORMAT = "reluflow-run-1"
Fields = dict[str, tuple[tuple[str, ...], Any]]  # name -> (dimensions, values)


def to_dataset(run: Trajectory) -> xr.Dataset:
    """Records, final state and problem of a run, settings as attributes."""
    import xarray as xr

    return xr.Dataset(_variables(run), coords=_coordinates(run), attrs=_attributes(run))


def _coordinates(run: Trajectory) -> Fields:
    """Where the records stand."""
    return {"step": (("record",), run.steps), "time": (("record",), run.times)}


def _variables(run: Trajectory) -> Fields:
    """Records, final state and data."""
    problem, final = run.problem, run.final
    data: Fields = {
        "loss": (("record",), run.loss),
        "log_loss": (("record",), run.log_loss),
        "X": (("sample", "feature"), problem.X),
        "y": (("sample",), problem.y),
        "final_W": (("neuron", "feature"), final.W),
        "final_a": (("neuron",), final.a),
    }
    if final.log_scale is not None:
        data["final_log_scale"] = (("neuron",), final.log_scale)
    if run.networks is not None:
        data["W"] = (("record", "neuron", "feature"), run.networks.W)
        data["a"] = (("record", "neuron"), run.networks.a)
        if run.networks.log_scale is not None:
            data["log_scale"] = (("record", "neuron"), run.networks.log_scale)
    for name, values in run.observables.items():
        data[f"observable_{name}"] = (("record", *run.observable_dims[name]), values)
    for name, column in run.events.items():
        data[f"event_{name}"] = (("event",), column)
    return data


def _attributes(run: Trajectory) -> dict[str, str]:
    """Format, problem, status, cost and settings, the latter four as JSON."""
    problem = run.problem
    about = {
        "problem": {
            "name": problem.name,
            "loss": problem.loss.name,
            "factor": problem.loss.factor,
            "leak": problem.leak,
            "reduction": problem.reduction,
            "bias": problem.bias,
            "smoothing": problem.smoothing,
        },
        "status": {"code": run.status.code, "sentence": str(run.status), "ok": run.status.ok},
        "cost": dict(run.cost),
        "settings": dict(run.settings),
    }
    return {"format": FORMAT, **{k: json.dumps(v, default=to_plain) for k, v in about.items()}}


def save(run: Trajectory, path: str | os.PathLike[str]) -> None:
    """Write ``run`` to ``path``: beside it first, then renamed."""
    target = Path(path)
    if not target.parent.is_dir():
        raise ReluflowError(f"folder {target.parent} does not exist: create it first")
    try:
        with beside(target) as part:
            _write(run, part)
    except OSError as error:
        raise ReluflowError(f"cannot write {target}: {error.strerror or error}") from None


def _write(run: Trajectory, path: Path) -> None:
    """The NetCDF file that xarray writes of `to_dataset`, without importing it."""
    import h5netcdf
    import h5py

    variables, coordinates = _variables(run), _coordinates(run)
    with h5netcdf.File(path, "w") as file:
        for name, (dims, values) in {**variables, **coordinates}.items():
            array = np.asarray(values)
            for dim, size in zip(dims, array.shape, strict=True):
                if dim not in file.dimensions:
                    file.dimensions[dim] = size
            kind = {"b": np.int8, "U": h5py.string_dtype()}.get(array.dtype.kind, array.dtype)
            stored = file.create_variable(name, dims, kind, data=array.astype(kind))
            if array.dtype.kind == "b":
                stored.attrs["dtype"] = "bool"  # how xarray marks them
            if "record" in dims and name not in coordinates:
                stored.attrs["coordinates"] = " ".join(coordinates)
        for name, text in _attributes(run).items():
            file.attrs[name] = text


def load(path: str | os.PathLike[str], max_bytes: int) -> dict[str, Any]:
    """The fields of a run written by :func:`save`."""
    source = Path(path)
    if not source.is_file():
        raise ReluflowError(f"{source} does not exist or is not a file: expected a stored run")
    import xarray as xr

    try:
        with xr.open_dataset(
            source, engine="h5netcdf", decode_times=False, phony_dims="access"
        ) as stored:
            if stored.attrs.get("format") != FORMAT:
                raise ReluflowError(f"{source} is not a run of format {FORMAT}")
            if stored.nbytes > max_bytes:
                raise ReluflowError(
                    f"{source} holds {stored.nbytes} bytes, more than max_bytes={max_bytes}: "
                    "raise max_bytes if the file is trusted"
                )
            return _from_dataset(stored.load())
    except ReluflowError:
        raise
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise ReluflowError(f"{source} cannot be read as a stored run: {error}") from None


def _from_dataset(data: xr.Dataset) -> dict[str, Any]:
    about = {k: json.loads(data.attrs[k]) for k in ("problem", "status", "cost", "settings")}
    spec = about["problem"]
    bias = spec["bias"]
    if spec["loss"] not in losses.LOSSES:
        raise ValueError(f"unknown loss {spec['loss']!r}")
    X = data["X"].values
    problem = Problem(
        X if bias is None else X[:, :-1],
        data["y"].values,
        loss=losses.LOSSES[spec["loss"]](spec["factor"]),
        leak=spec["leak"],
        reduction=spec["reduction"],
        bias=bias,
        smoothing=spec.get("smoothing", 0.0),
        name=spec["name"],
    )
    look = {"leak": problem.leak, "bias": bias, "smoothing": problem.smoothing}
    states = None
    if "W" in data:
        scale = data["log_scale"].values if "log_scale" in data else None
        states = States(data["W"].values, data["a"].values, scale, **look)
    final_scale = data["final_log_scale"].values if "final_log_scale" in data else None
    observed = [str(name) for name in data.data_vars if str(name).startswith("observable_")]
    return dict(
        problem=problem,
        steps=data["step"].values.astype(np.int64),
        times=data["time"].values.astype(float),
        loss=data["loss"].values,
        log_loss=data["log_loss"].values,
        networks=states,
        observables={name[11:]: data[name].values for name in observed},
        observable_dims={name[11:]: tuple(map(str, data[name].dims[1:])) for name in observed},
        final=Network(data["final_W"].values, data["final_a"].values, final_scale, **look),
        status=Status(about["status"]["code"], about["status"]["sentence"], about["status"]["ok"]),
        cost=about["cost"],
        settings=about["settings"],
        events={
            str(name)[6:]: data[name].values for name in data.data_vars if str(name)[:6] == "event_"
        },
    )
