"""One NetCDF file per run: read and written without pickle, sizes checked before reading.

The file is made in memory and its bytes are written beside and renamed: a disk that fills up meets
plain bytes, not an open HDF5 file. Behind the NetCDF file, where readers do not look, stands a hash
of it: bytes that changed on a disk or on the way are noticed, whatever they mean.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.problem import Problem, losses
from reluflow.runtime.files import write_bytes
from reluflow.runtime.plain import to_plain
from reluflow.trajectory.states import States
from reluflow.trajectory.status import Status

if TYPE_CHECKING:
    import xarray as xr

    from reluflow.trajectory.trajectory import Trajectory

FORMAT = "reluflow-run-1"
SEVERAL = "reluflow-run-2"  # y and a have a dimension "output" more; the rest is the same
MARK = b"\nreluflow-sha256 "  # the hash of all before it follows, and the end of the file
_SEAL = len(MARK) + 65
_EXPANSION = 1100  # bytes that one byte of a compressed file can stand for, and a little more
_TRIAL_SECONDS = 20  # of processor time
_TRIAL = f"""
import sys, h5py
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, ({_TRIAL_SECONDS}, {_TRIAL_SECONDS}))
except ImportError:
    pass
with h5py.File(sys.argv[1], "r") as file:
    list(file.attrs.items())
    for entry in file.values():
        list(entry.attrs.items())
        if isinstance(entry, h5py.Dataset) and entry.nbytes < {1 << 28}:
            entry[()], [len(dim) for dim in entry.dims]
"""
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
    output = ("output",) if problem.several else ()
    data: Fields = {
        "loss": (("record",), run.loss),
        "log_loss": (("record",), run.log_loss),
        "X": (("sample", "feature"), problem.X),
        "y": (("sample", *output), problem.y),
        "final_W": (("neuron", "feature"), final.W),
        "final_a": (("neuron", *output), final.a),
    }
    if final.log_scale is not None:
        data["final_log_scale"] = (("neuron",), final.log_scale)
    if run.networks is not None:
        data["W"] = (("record", "neuron", "feature"), run.networks.W)
        data["a"] = (("record", "neuron", *output), run.networks.a)
        if run.networks.log_scale is not None:
            data["log_scale"] = (("record", "neuron"), run.networks.log_scale)
    for name, values in run.observables.items():
        data[f"observable_{name}"] = (("record", *run.observable_dims[name]), values)
    for name, column in run.events.items():
        data[f"event_{name}"] = (("event",), column)
    return data


def _attributes(run: Trajectory) -> dict[str, str]:
    """Format, problem, status, cost, settings and names of dimensions, all but the first JSON."""
    problem = run.problem
    classes = {"classes": problem.classes} if problem.classes is not None else {}
    about = {
        "problem": {
            "name": problem.name,
            **classes,
            "loss": problem.loss.name,
            "factor": problem.loss.factor,
            "leak": problem.leak,
            "reduction": problem.reduction,
            "bias": problem.bias,
            "smoothing": problem.smoothing,
            "feature_names": problem.feature_names,
            "label_names": problem.label_names,
        },
        "status": {"code": run.status.code, "sentence": str(run.status), "ok": run.status.ok},
        "cost": dict(run.cost),
        "settings": dict(run.settings),
        "dims": {f"observable_{name}": dims for name, dims in run.observable_dims.items()},
    }
    form = SEVERAL if problem.several else FORMAT
    return {"format": form, **{k: json.dumps(v, default=to_plain) for k, v in about.items()}}


def save(run: Trajectory, path: str | os.PathLike[str]) -> None:
    """Write ``run`` to ``path``: beside it first, then renamed."""
    target = Path(path)
    if not target.parent.is_dir():
        raise ReluflowError(f"folder {target.parent} does not exist: create it first")
    write_bytes(target, to_bytes(run))


def to_bytes(run: Trajectory) -> bytes:
    """The NetCDF file that xarray writes of `to_dataset`, made without it, and its hash."""
    buffer = io.BytesIO()
    _write(run, buffer)
    with buffer.getbuffer() as made:
        seal = MARK + hashlib.sha256(made).hexdigest().encode() + b"\n"
    buffer.seek(0, io.SEEK_END)
    buffer.write(seal)
    return buffer.getvalue()


def _write(run: Trajectory, buffer: io.BytesIO) -> None:
    """Fill the buffer with the file."""
    import h5netcdf
    import h5py

    variables, coordinates = _variables(run), _coordinates(run)
    with h5netcdf.File(buffer, "w") as file:
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
    try:
        if not _check_seal(source):
            _try_elsewhere(source)
        return _read(source, max_bytes)
    except ReluflowError:
        raise
    except Exception as error:  # whatever the libraries raise on a file that is not what it seems
        why = " ".join(str(error).split())[:200] or type(error).__name__
        raise ReluflowError(f"{source} cannot be read as a stored run: {why}") from None


def _check_seal(source: Path) -> bool:
    """Compare a file with the hash behind it; False for one of other software, which has none."""
    size = source.stat().st_size
    with open(source, "rb") as file:
        file.seek(max(size - _SEAL, 0))
        seal = file.read()
        if not seal.startswith(MARK):
            return False
        file.seek(0)
        digest, left = hashlib.sha256(), size - _SEAL
        while left and (piece := file.read(min(left, 1 << 20))):
            digest.update(piece)
            left -= len(piece)
    if seal[len(MARK) : -1] != digest.hexdigest().encode():
        raise ReluflowError(
            f"{source} cannot be read as a stored run: its bytes are not those that were written, "
            "restore it or make it again"
        )
    return True


def _try_elsewhere(source: Path) -> None:
    """Read a file without a hash in another process first.

    HDF5 is written in C, and some files lead it into an endless loop, or further: whoever has to
    read files of unknown origin loses that process and not this one.
    """
    if not sys.executable:
        return
    command = [sys.executable, "-c", _TRIAL, str(source)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=10 * _TRIAL_SECONDS)
        if done.returncode == 0:
            return
        why = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    except subprocess.TimeoutExpired:
        why = ""
    raise ValueError(why.partition(": ")[2] or "HDF5 does not come to an end with it")


def _read(source: Path, max_bytes: int) -> dict[str, Any]:
    """The fields of a NetCDF file: attributes first, then sizes, and arrays last.

    Plain HDF5 is enough for that. Names of dimensions are asked of the library only where the
    attributes do not have them: on damaged files it may search for them without an end.
    """
    import h5py

    with h5py.File(source, "r") as file:
        if _text(file, "format") not in (FORMAT, SEVERAL):
            raise ReluflowError(f"{source} is not a run of format {FORMAT}")
        found = {
            name: entry
            for name, entry in file.items()
            if isinstance(entry, h5py.Dataset) and not _is_bare_dimension(entry)
        }
        size = sum(math.prod(entry.shape) * entry.dtype.itemsize for entry in found.values())
        if size > max_bytes:
            raise ReluflowError(
                f"{source} holds {size} bytes, more than max_bytes={max_bytes}: "
                "raise max_bytes if the file is trusted"
            )
        if size > _EXPANSION * source.stat().st_size:
            raise ValueError(f"it claims {size} bytes, more than the file can hold")
        about = {k: json.loads(_text(file, k)) for k in ("problem", "status", "cost", "settings")}
        if "dims" in file.attrs:
            dims = {name: tuple(d) for name, d in json.loads(_text(file, "dims")).items()}
        else:
            dims = {name: _dims(entry) for name, entry in found.items()}
        return _fields({name: _values(entry) for name, entry in found.items()}, dims, about)


def _text(file: Any, name: str) -> str:
    """An attribute of the file; empty where there is none."""
    value = file.attrs.get(name, "")
    return value.decode() if isinstance(value, bytes) else str(value)


def _is_bare_dimension(entry: Any) -> bool:
    """Whether this only gives a dimension its size."""
    return bytes(entry.attrs.get("NAME", b"")).startswith(b"This is a netCDF dimension but not")


def _dims(entry: Any) -> tuple[str, ...]:
    """Names of the dimensions of an array, the first left out."""
    return tuple(str(dim[0].name).rpartition("/")[2] for dim in list(entry.dims)[1:])


def _values(entry: Any) -> NDArray[Any]:
    import h5py

    if h5py.check_string_dtype(entry.dtype) is not None:
        return np.asarray(entry.asstr()[()])
    flags = entry.attrs.get("dtype") in ("bool", b"bool")
    return np.asarray(entry[()]).astype(bool) if flags else np.asarray(entry[()])


def _fields(
    data: dict[str, NDArray[Any]], dims: dict[str, tuple[str, ...]], about: dict[str, Any]
) -> dict[str, Any]:
    """What a Trajectory is made of."""
    spec = about["problem"]
    bias = spec["bias"]
    if spec["loss"] not in losses.LOSSES:
        raise ValueError(f"unknown loss {spec['loss']!r}")
    X = data["X"]
    problem = Problem(
        X if bias is None else X[:, :-1],
        data["y"],
        loss=losses.LOSSES[spec["loss"]](spec["factor"]),
        leak=spec["leak"],
        reduction=spec["reduction"],
        bias=bias,
        smoothing=spec.get("smoothing", 0.0),
        name=spec["name"],
        feature_names=spec.get("feature_names"),
        label_names=spec.get("label_names"),
        known={"classes": tuple(spec["classes"])} if "classes" in spec else {},
    )
    look = {"leak": problem.leak, "bias": bias, "smoothing": problem.smoothing}
    states = None
    if "W" in data:
        states = States(data["W"], data["a"], data.get("log_scale"), **look)
    observed = [name for name in data if name.startswith("observable_")]
    return dict(
        problem=problem,
        steps=data["step"].astype(np.int64),
        times=data["time"].astype(float),
        loss=data["loss"],
        log_loss=data["log_loss"],
        networks=states,
        observables={name[11:]: data[name] for name in observed},
        observable_dims={name[11:]: dims[name] for name in observed},
        final=Network(data["final_W"], data["final_a"], data.get("final_log_scale"), **look),
        status=Status(about["status"]["code"], about["status"]["sentence"], about["status"]["ok"]),
        cost=about["cost"],
        settings=about["settings"],
        events={name[6:]: data[name] for name in data if name.startswith("event_")},
    )
