"""The simplicity-bias summary of [TK24]_ Section 7 from features at several epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.errors import ReluflowError
from reluflow.torch.probe import Drop, Probe, Score, drop


@dataclass(frozen=True, eq=False)
class Features:
    """Features of one run at one epoch, with both attributes of every sample.

    ``fit`` is a mask of the samples probes are fitted on; the others measure them.
    """

    epoch: int
    features: NDArray
    simple: NDArray
    complex: NDArray
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
        + f", p = {lost.p:.2g} ({lost.test}, {lost.runs} run{'s' if lost.runs > 1 else ''}).",
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
