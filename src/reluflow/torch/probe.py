"""Probes: what a linear model finds in the features of a network ([TK24]_ Section 7).

Needs scikit-learn, not PyTorch: features come as arrays.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow.errors import ReluflowError


@dataclass(frozen=True, eq=False)
class Score:
    """What a probe found: accuracy on held-out samples, size of its coefficients.

    ``coefficients`` is their quadratic mean, ``right`` tells which held-out samples were
    classified rightly, ``settled`` whether the last refit hardly changed the coefficients.
    """

    accuracy: float
    coefficients: float
    right: NDArray[np.bool_]
    settled: bool


class Probe:
    r"""Multinomial logistic regression on normalised features, started where it ended before.

    Features are divided by :math:`\sqrt{\tfrac1n \sum_{ij} X_{ij}^2}` of the training samples, so
    that sizes of coefficients can be compared between epochs. L-BFGS stops early on hard problems;
    it is started again from its own end until coefficients change by less than 1e-6 of the
    largest. It ends where no entry of the gradient of the summed loss exceeds 1e-4, which was
    scikit-learn's rule when the paper was written (newer versions take the mean).

    Parameters
    ----------
    C : float or None
        Inverse strength of the penalty, 1000 in the paper; None for no penalty.
    restarts : int
        Largest number of fits.
    max_iter : int
        Iterations of each fit.
    solver : {"lbfgs", "newton-cholesky"}
        Of scikit-learn. The second, Newton's method, is the faster and the more accurate one up
        to about 2000 coefficients, if there is a penalty.
    """

    def __init__(
        self,
        C: float | None = 1000.0,
        *,
        restarts: int = 50,
        max_iter: int = 20_000,
        solver: str = "lbfgs",
    ) -> None:
        if C is not None and not C > 0:
            raise ReluflowError(f"C must be positive, or None for no penalty, got {C!r}")
        from sklearn.linear_model import LogisticRegression

        self.C, self.restarts = C, restarts
        self._tol = 1e-4
        self._model = LogisticRegression(
            C=np.inf if C is None else C, max_iter=max_iter, warm_start=True, solver=solver
        )

    def score(
        self, features: ArrayLike, labels: ArrayLike, held_out: ArrayLike, held_labels: ArrayLike
    ) -> Score:
        """Fit on some samples, measure on others.

        Parameters
        ----------
        features : array, shape (n, k)
        labels : array, shape (n,)
        held_out : array, shape (n', k)
        held_labels : array, shape (n',)
        """
        X, V = (np.asarray(part, dtype=np.float64) for part in (features, held_out))
        y, z = np.asarray(labels), np.asarray(held_labels)
        _check(X, y, V, z)
        size = float(np.sqrt(np.mean(np.sum(X * X, axis=1)))) or 1.0
        self._model.set_params(tol=self._tol / len(X))
        settled = False
        before: NDArray | None = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # whether it converged is said in the score
            for _ in range(self.restarts):
                self._model.fit(X / size, y)
                after = self._model.coef_
                if (
                    before is not None
                    and np.abs(after - before).max() <= 1e-6 * np.abs(after).max()
                ):
                    settled = True
                    break
                before = after.copy()
        right = self._model.predict(V / size) == z
        rms = float(np.sqrt(np.mean(self._model.coef_**2)))
        return Score(float(right.mean()), rms, right, settled)


def _check(X: NDArray, y: NDArray, V: NDArray, z: NDArray) -> None:
    if X.ndim != 2 or V.ndim != 2 or X.shape[1:] != V.shape[1:] or not X.shape[1]:
        raise ReluflowError(
            f"features have shapes {X.shape} and {V.shape}: expected (n, k) with the same k"
        )
    if y.shape != X.shape[:1] or z.shape != V.shape[:1]:
        raise ReluflowError(
            f"there are {X.shape[0]} and {V.shape[0]} samples but labels of shapes {y.shape} and "
            f"{z.shape}: expected one label a sample"
        )
    if len(np.unique(y)) < 2:
        raise ReluflowError("all labels are the same: a probe needs at least two classes")
    if not (np.isfinite(X).all() and np.isfinite(V).all()):
        raise ReluflowError("features have values that are not finite: was the training stable?")


@dataclass(frozen=True)
class Drop:
    """Accuracy lost between two epochs.

    ``mean`` and ``sd`` are over runs; ``p`` is that of a one-sided paired test of "no drop":
    Student's t over runs or, with one run, the sign test over held-out samples.
    """

    early: int
    late: int
    mean: float
    sd: float
    p: float
    test: str
    runs: int


def drop(scores: Sequence[Mapping[int, Score]], early: int, late: int) -> Drop:
    """Loss of accuracy from one epoch to a later one, with its test.

    Parameters
    ----------
    scores : one mapping from epoch to Score for each run
    early, late : int
        Epochs, both in every run.
    """
    from scipy import stats

    before = np.array([run[early].accuracy for run in scores])
    after = np.array([run[late].accuracy for run in scores])
    lost = before - after
    if len(lost) > 1:
        sd = float(lost.std(ddof=1))
        p = float(stats.ttest_rel(before, after, alternative="greater").pvalue) if sd > 0 else (
            0.0 if lost.mean() > 0 else 1.0
        )  # fmt: skip
        return Drop(early, late, float(lost.mean()), sd, p, "paired t over runs", len(lost))
    first, last = scores[0][early].right, scores[0][late].right
    worse, better = int((first & ~last).sum()), int((~first & last).sum())
    p = 1.0
    if worse + better:
        p = float(stats.binomtest(worse, worse + better, alternative="greater").pvalue)
    return Drop(early, late, float(lost[0]), float("nan"), p, "sign test over samples", 1)


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
