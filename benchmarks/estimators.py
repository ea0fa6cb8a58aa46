"""Estimators beside scikit-learn's own: score and time on its tables, by cross-validation."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

FOLDS = 5


def tables() -> dict[str, tuple[Any, Any, bool]]:
    """Name to samples, labels and whether these are classes."""
    from sklearn import datasets

    iris = datasets.load_iris(return_X_y=True)
    digits = datasets.load_digits(return_X_y=True)
    pair = np.isin(digits[1], (3, 8))
    rows = iris[1] > 0
    return {
        "breast cancer": (*datasets.load_breast_cancer(return_X_y=True), True),
        "iris, versicolor and virginica": (iris[0][rows], iris[1][rows], True),
        "digits 3 and 8": (digits[0][pair], digits[1][pair], True),
        "moons": (*datasets.make_moons(300, noise=0.2, random_state=0), True),
        "circles": (*datasets.make_circles(300, noise=0.1, factor=0.5, random_state=0), True),
        "diabetes": (*datasets.load_diabetes(return_X_y=True), False),
        "friedman": (*datasets.make_friedman1(400, noise=1.0, random_state=0), False),
    }


def models(classes: bool) -> dict[str, Any]:
    """Name to model; every one sees standardised columns."""
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from reluflow.estimators import SmallInitClassifier, SmallInitRegressor

    small = SmallInitClassifier if classes else SmallInitRegressor
    mlp = MLPClassifier if classes else MLPRegressor
    line = LogisticRegression(max_iter=1000) if classes else RidgeCV(np.logspace(-3, 3, 13))
    given = {
        "small init, flow": small(random_state=0),
        "small init, ten times longer": small(duration=50.0, random_state=0),
        "small init, descent": small(method="descent", random_state=0),
        "MLP": mlp(hidden_layer_sizes=(100,), max_iter=2000, random_state=0),
        "logistic" if classes else "ridge": line,
    }
    return {name: make_pipeline(StandardScaler(), model) for name, model in given.items()}


def measure(model: Any, X: Any, y: Any) -> tuple[float, float]:
    """Mean score over folds, and processor time of one fit."""
    from sklearn.base import clone
    from sklearn.model_selection import KFold, StratifiedKFold

    kind = StratifiedKFold if hasattr(model, "predict_proba") else KFold
    scores, spent = [], 0.0
    for train, test in kind(FOLDS, shuffle=True, random_state=0).split(X, y):
        fitted = clone(model)
        began = time.process_time()
        fitted.fit(X[train], y[train])
        spent += time.process_time() - began
        scores.append(fitted.score(X[test], y[test]))
    return float(np.mean(scores)), spent / FOLDS


def run(console: Callable[[str], object] = print) -> list[dict[str, Any]]:
    """Print accuracy or R^2 on unseen rows and the time of a fit, side by side; the rows."""
    rows: list[dict[str, Any]] = []
    console(f"{'table':<32}{'model':<30}{'score':>8}{'seconds a fit':>15}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for table, (X, y, classes) in tables().items():
            for name, model in models(classes).items():
                few = slice(None, None, max(1, len(y) // 40))
                model.fit(X[few], y[few])  # compiles kernels, outside of the time
                score, seconds = measure(model, X, y)
                console(f"{table:<32}{name:<30}{score:8.3f}{seconds:15.3f}")
                rows.append({"table": table, "model": name, "score": score, "seconds": seconds})
    return rows


if __name__ == "__main__":
    run()
