"""Probes: what a linear model finds in the features of a network ([TK24]_ Section 7).

Needs scikit-learn, not PyTorch: features come as arrays.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow.arrays import AnyArray
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
        before: AnyArray | None = None
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


def _check(X: AnyArray, y: AnyArray, V: AnyArray, z: AnyArray) -> None:
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
        p = (
            float(stats.ttest_rel(before, after, alternative="greater").pvalue)
            if sd > 0
            else (0.0 if lost.mean() > 0 else 1.0)
        )
        return Drop(early, late, float(lost.mean()), sd, p, "paired t over runs", len(lost))
    first, last = scores[0][early].right, scores[0][late].right
    worse, better = int((first & ~last).sum()), int((~first & last).sum())
    p = 1.0
    if worse + better:
        p = float(stats.binomtest(worse, worse + better, alternative="greater").pvalue)
    return Drop(early, late, float(lost[0]), float("nan"), p, "sign test over samples", 1)
