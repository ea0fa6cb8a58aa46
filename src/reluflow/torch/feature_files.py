"""Features of a trained model from .npz files, for `reluflow probe`."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from reluflow.errors import ReluflowError
from reluflow.torch.simplicity import Features

_MAX_BYTES = 1 << 31
_HELD_OUT = 0.25


def read_features(
    paths: Sequence[Path], labels: Path | None = None, seed: int = 0
) -> list[Features]:
    """Read one file an epoch.

    Parameters
    ----------
    paths : paths
        .npz files with ``features`` (n, k) and ``epoch``; ``simple`` and ``complex`` (n,), the two
        attributes; optional ``fit`` (n,), a mask of the samples on which probes are fitted, and
        ``run``, a name or number that tells several runs apart (the folder, if missing).
    labels : path, optional
        An .npz with ``simple``, ``complex`` and maybe ``fit``, used where a file has none.
    seed : int
        Of the split where no ``fit`` is given: a quarter of the samples is held out.
    """
    shared = {} if labels is None else _read(labels)
    return [_one(path, {**shared, **_read(path)}, seed) for path in paths]


def _one(path: Path, stored: dict[str, NDArray], seed: int) -> Features:
    missing = [name for name in ("features", "epoch", "simple", "complex") if name not in stored]
    if missing:
        got = ", ".join(sorted(stored)) or "nothing"
        raise ReluflowError(
            f"{path} has no {', '.join(missing)}: expected features, epoch, simple and complex, "
            f"got {got}; write it with numpy.savez, or give the attributes with --labels"
        )
    features = stored["features"]
    if features.ndim != 2 or features.dtype.kind not in "fiu" or not features.size:
        raise ReluflowError(
            f"{path}: features have type {features.dtype} and shape {features.shape}, expected "
            "numbers (n, k)"
        )
    n = len(features)
    if stored["epoch"].size != 1 or stored["epoch"].dtype.kind not in "iu":
        raise ReluflowError(f"{path}: epoch must be one whole number")
    for name in ("simple", "complex"):
        if stored[name].shape != (n,):
            raise ReluflowError(
                f"{path}: {name} has shape {stored[name].shape} for {n} samples: expected ({n},)"
            )
    if "fit" in stored:
        fit = stored["fit"]
        if fit.shape != (n,) or fit.dtype.kind not in "biu":
            raise ReluflowError(f"{path}: fit must be a mask of shape ({n},), got {fit.shape}")
        fit = fit.astype(bool)
    else:
        fit = np.ones(n, dtype=bool)
        fit[np.random.default_rng(seed).permutation(n)[: round(_HELD_OUT * n)]] = False
    if not 0 < fit.sum() < n:
        raise ReluflowError(f"{path}: {fit.sum()} of {n} samples to fit on: some must be held out")
    run = str(stored["run"]) if "run" in stored else str(path.parent)
    return Features(int(stored["epoch"]), features, stored["simple"], stored["complex"], fit, run)


def _read(path: Path) -> dict[str, NDArray]:
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise ReluflowError(f"{path} {what}: expected an .npz file")
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > _MAX_BYTES:
            raise ReluflowError(f"{path} holds {size:,} bytes, more than {_MAX_BYTES:,}")
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ReluflowError(
            f"{path} is not a readable .npz file ({error}): write it with numpy.savez"
        ) from None
