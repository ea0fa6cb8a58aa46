"""The simplicity-bias summary of [TK24]_ Section 7, from features at several epochs."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import AnyArray
from reluflow.errors import ReluflowError
from reluflow.runtime.words import plural
from reluflow.torch.probe import Drop, Probe, Score, drop


@dataclass(frozen=True, eq=False)
class Features:
    """Features of one run at one epoch, with both attributes of every sample.

    ``fit`` is a mask of the samples probes are fitted on; the others measure them.
    """

    epoch: int
    features: AnyArray
    simple: AnyArray
    complex: AnyArray
    fit: NDArray[np.bool_]
    run: str = "run"


def simplicity_bias(
    stored: Sequence[Features],
    *,
    C: float | None = 1000.0,
    early: int | None = None,
    late: int | None = None,
    unpenalized: bool = True,
    restarts: int = 50,
) -> dict[str, Any]:
    """The summary of [TK24]_ Section 7: what probes find early and late in training.

    Parameters
    ----------
    stored : sequence of Features
        Several epochs of one or more runs.
    C : float
        Inverse strength of the penalty.
    early, late : int, optional
        Epochs to compare; by default the last one and the stored one nearest to a quarter of it.
    unpenalized : bool
        Whether to fit the complex attribute without penalty too.
    restarts : int
        Largest number of fits at each epoch.

    Returns
    -------
    dict
        ``epochs``; for each of "simple", "complex" and "complex, no penalty" a table ``accuracy``
        and ``coefficients`` (runs x epochs), and ``drop``; ``ratio`` of coefficients without and
        with penalty at the late epoch; ``sentences``.
    """
    runs: dict[str, dict[int, Features]] = {}
    for item in stored:
        if item.epoch in runs.setdefault(item.run, {}):
            raise ReluflowError(f"epoch {item.epoch} of {item.run} is there twice")
        runs[item.run][item.epoch] = item
    epochs = sorted(next(iter(runs.values()))) if runs else []
    if len(epochs) < 2 or any(sorted(run) != epochs for run in runs.values()):
        found = "; ".join(f"{name}: {sorted(run)}" for name, run in runs.items()) or "nothing"
        raise ReluflowError(f"expected the same two or more epochs of every run, got {found}")
    late = epochs[-1] if late is None else late
    early = min(epochs, key=lambda e: abs(e - late / 4)) if early is None else early
    if not {early, late} <= set(epochs) or early >= late:
        raise ReluflowError(f"cannot compare epochs {early} and {late}: there are {epochs}")
    out: dict[str, Any] = {"epochs": epochs, "runs": list(runs), "early": early, "late": late}
    probes: list[tuple[str, str, float | None]] = [
        ("simple", "simple", C),
        ("complex", "complex", C),
    ]
    if unpenalized:
        probes.append(("complex, no penalty", "complex", None))
    for name, attribute, strength in probes:
        scores = []
        for run in runs.values():
            probe = Probe(strength, restarts=restarts)
            scores.append({e: _score(probe, run[e], attribute) for e in epochs})
        out[name] = {
            "accuracy": [[run[e].accuracy for e in epochs] for run in scores],
            "coefficients": [[run[e].coefficients for e in epochs] for run in scores],
            "settled": [[run[e].settled for e in epochs] for run in scores],
            "drop": drop(scores, early, late),
        }
    return {**out, **_words(out)}


def _score(probe: Probe, item: Features, attribute: str) -> Score:
    labels, fit = getattr(item, attribute), item.fit
    return probe.score(item.features[fit], labels[fit], item.features[~fit], labels[~fit])


def _words(out: Mapping[str, Any]) -> dict[str, Any]:
    epochs, early, late = out["epochs"], out["early"], out["late"]
    at = {e: i for i, e in enumerate(epochs)}

    def mean(name: str, what: str, epoch: int) -> float:
        return float(np.mean(np.array(out[name][what])[:, at[epoch]]))

    lost: Drop = out["complex"]["drop"]
    sentences = [
        f"Simple attribute: {mean('simple', 'accuracy', late):.1%} at epoch {late}.",
        f"Complex attribute: {mean('complex', 'accuracy', early):.1%} at epoch {early}, "
        f"{mean('complex', 'accuracy', late):.1%} at epoch {late}: a drop of {lost.mean:.2%}"
        + (f" (sd {lost.sd:.2%})" if lost.runs > 1 else "")
        + f", p = {lost.p:.2g} ({lost.test}, {lost.runs} {plural(lost.runs, 'run')}).",
    ]
    ratio = None
    if "complex, no penalty" in out:
        free = mean("complex, no penalty", "coefficients", late)
        ratio = free / mean("complex", "coefficients", late)
        sentences.append(
            f"Without penalty: {mean('complex, no penalty', 'accuracy', late):.1%} at epoch "
            f"{late}, with coefficients {ratio:.3g} times as large."
        )
    return {"ratio": ratio, "sentences": sentences}


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


def _one(path: Path, stored: dict[str, AnyArray], seed: int) -> Features:
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


def _read(path: Path) -> dict[str, AnyArray]:
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
