"""Regression by a two-layer network trained from small weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from reluflow.arrays import Array
from reluflow.errors import ReluflowError
from reluflow.estimators.base import SmallInitBase

LOSSES = ("half_square", "square")


class SmallInitRegressor(RegressorMixin, SmallInitBase):  # type: ignore[misc]
    r"""Two-layer ReLU network for numbers, trained from small weights.

    .. math:: f(x) = \sum_j a_j \phi(\langle w_j, (z, b)\rangle), \quad
              z_i = (x_i - \mu_i) / \sigma_i, \quad \phi(z) = \max(z, \mathrm{leak}\, z)

    Parameters
    ----------
    n_neurons : int
        Width.
    scale : float
        Size of the initial weights: the smaller, the fewer directions are learned at a time.
    method : {"flow", "descent", "limit"}
        Gradient flow (kinks not located, step errors below 1e-3); gradient descent; or, without
        training, the process that training tends to as the scale goes to 0 (for small data: it
        follows every neuron exactly).
    loss : {"half_square", "square"}
        What is minimised.
    leak : float
        Slope of the activation on negative inputs.
    bias : float or None
        Value of a constant feature; None for none.
    standardize : bool
        Centre and scale columns, and the labels too; predictions are in the labels' own units.
    duration : float
        How long to train, in units of the time that the fastest neuron needs to grow from
        ``scale`` to size 1; longer training learns more features. Not for "limit".
    learning_rate : float, optional
        Step size of descent; by default a fifth of what the curvature of the data allows.
    max_steps : int
        Steps at most; a warning says when they do not suffice.
    weight_decay : float
        lambda of the penalty (lambda/2) (|W|^2 + |a|^2) on the loss that the network sees: a
        direction that pulls by less than lambda is never learned. Growth is slower with it, and
        training as much longer (ten times at most).
    random_state : int, RandomState or None
        Of the initial weights.

    Attributes
    ----------
    network_ : Network
        Of the (standardised) columns.
    directions_ : array (k, d)
        Unit directions that carry the network at the end, the constant feature last.
    shares_ : array (k,)
        Share of each in the output, negative for those with negative output weights.
    jumps_ : array
        Times at which the loss fell from one plateau to the next.
    stages_, stage_losses_ : networks, array
        One a plateau, and their losses in the units the network sees.
    problem_ : Problem
        What was trained on.
    result_ : Trajectory, JumpProcess or None
        What the method returned; None if nothing pulls on the network (constant labels).
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> model = SmallInitRegressor(random_state=0).fit(X, np.abs(X[:, 0]))
    >>> model.score(X, np.abs(X[:, 0])) > 0.9
    True
    """

    def __init__(
        self,
        n_neurons: int = 100,
        scale: float = 1e-3,
        method: str = "flow",
        *,
        loss: str = "half_square",
        leak: float = 0.0,
        bias: float | None = 1.0,
        standardize: bool = True,
        duration: float = 5.0,
        learning_rate: float | None = None,
        max_steps: int = 100_000,
        weight_decay: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.n_neurons = n_neurons
        self.scale = scale
        self.method = method
        self.loss = loss
        self.leak = leak
        self.bias = bias
        self.standardize = standardize
        self.duration = duration
        self.learning_rate = learning_rate
        self.max_steps = max_steps
        self.weight_decay = weight_decay
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> SmallInitRegressor:
        """Train on samples X (n, d) and numbers y (n,)."""
        title = getattr(y, "name", None)
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        if self.loss not in LOSSES:
            raise ReluflowError(f"loss must be one of {', '.join(LOSSES)}, got {self.loss!r}")
        y = np.asarray(y, dtype=np.float64)
        self.label_mean_, self.label_scale_, seen = 0.0, 1.0, y
        if self.standardize:
            self.label_mean_, spread = float(y.mean()), float(y.std())
            if spread > 1e-13 * float(np.abs(y).max()):
                self.label_scale_ = spread
                seen = (y - self.label_mean_) / spread
            else:  # constant: nothing pulls, and the mean is the answer
                seen = np.zeros_like(y)
        self._fit(X, seen, (title,) if isinstance(title, str) and title else None)
        return self

    def predict(self, X: Any) -> Array:
        """Numbers at the rows of X, in the labels' units."""
        inputs = self._inputs(X)
        return self._in_label_units(self.network_(inputs))

    def staged_predict(self, X: Any) -> Iterator[Array]:
        """Predictions plateau by plateau: features in the order in which they are learned."""
        for f in self._stage_outputs(X):
            yield self._in_label_units(f)

    def _in_label_units(self, f: Array) -> Array:
        return self.label_mean_ + self.label_scale_ * f
