"""Classification by a two-layer network trained from small weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import validate_data

from reluflow.arrays import AnyArray, Array
from reluflow.errors import ReluflowError
from reluflow.estimators.base import SmallInitBase

#: loss -> factor c with P(+1 | f) = 1 / (1 + exp(-c f)), the probability that minimises it; of
#: several classes P(e | f) = exp(c f_e) / sum_h exp(c f_h)
LOSSES = {"logistic": 1.0, "exponential": 2.0}
OF_CLASSES = {"logistic": "softmax", "exponential": "multiclass_exponential"}


class SmallInitClassifier(ClassifierMixin, SmallInitBase):  # type: ignore[misc]
    r"""Two-layer ReLU network for two or more classes, trained from small weights.

    The columns are as in :class:`SmallInitRegressor`. For two classes the network has one output
    and labels are -1 and +1 in the order of ``classes_``; for K of them it has K outputs, one a
    class, which share their neurons and are trained as one network.

    Parameters
    ----------
    n_neurons, scale, leak, bias, duration, learning_rate, max_steps, weight_decay, random_state
        As in :class:`SmallInitRegressor`.
    method : {"flow", "descent", "limit"}
        As there; where the limit process of two classes runs to infinity its direction is taken at
        the size at which the least margin on the data is 5.
    loss : {"logistic", "exponential"}
        What is minimised; for more than two classes softmax cross-entropy, or the sum of
        exp(f_e - f_y) over the other classes e.
    standardize : bool
        Centre and scale columns.

    Attributes
    ----------
    classes_ : array (K,)
        The classes; of two, those of -1 and of +1.
    outer_ : array (k, K)
        For more than two classes, unit outer weights of ``directions_``: which classes each of
        them raises and lowers.
    network_, directions_, shares_, jumps_, stages_, stage_losses_, problem_, result_
        As in :class:`SmallInitRegressor`.
    n_features_in_, feature_names_in_ : as in scikit-learn

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]])
    >>> model = SmallInitClassifier(random_state=0).fit(X, ["up", "side", "up", "side"])
    >>> model.predict(X).tolist()
    ['up', 'side', 'up', 'side']
    """

    def __init__(
        self,
        n_neurons: int = 100,
        scale: float = 1e-3,
        method: str = "flow",
        *,
        loss: str = "logistic",
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

    def fit(self, X: Any, y: Any) -> SmallInitClassifier:
        """Train on samples X (n, d) and labels y (n,) of two classes or more."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        kind = type_of_target(y)
        if kind not in ("binary", "multiclass"):
            raise ReluflowError(f"y must hold one class for each sample, its type is {kind}")
        if self.loss not in LOSSES:
            raise ReluflowError(f"loss must be one of {', '.join(LOSSES)}, got {self.loss!r}")
        self.classes_, place = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ReluflowError(
                f"the labels have one class only, {self.classes_[0]!r}: a classifier needs two"
            )
        names = tuple(str(name) for name in self.classes_)
        if len(names) == 2:
            self._fit(X, np.where(place > 0, 1.0, -1.0), names)
        else:
            self._fit(X, np.eye(len(names))[place], names, OF_CLASSES[self.loss])
        return self

    def decision_function(self, X: Any) -> Array:
        """f at the rows of X: (n,), positive for ``classes_[1]``; (n, K) for K > 2 classes."""
        inputs = self._inputs(X)
        return np.asarray(self.network_(inputs))

    def predict(self, X: Any) -> AnyArray:
        """Classes of the rows of X."""
        return self._classes(self.decision_function(X))

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, K) of the classes: those at which the outputs minimise the loss."""
        return self._probabilities(self.decision_function(X))

    def staged_predict(self, X: Any) -> Iterator[AnyArray]:
        """Classes plateau by plateau: features in the order in which they are learned."""
        for f in self._stage_outputs(X):
            yield self._classes(f)

    def staged_predict_proba(self, X: Any) -> Iterator[Array]:
        """Probabilities plateau by plateau."""
        for f in self._stage_outputs(X):
            yield self._probabilities(f)

    def _classes(self, f: Array) -> AnyArray:
        place = np.argmax(f, axis=1) if f.ndim == 2 else (f > 0.0).astype(int)
        return np.asarray(self.classes_[place])

    def _probabilities(self, f: Array) -> Array:
        if f.ndim == 2:
            return np.asarray(softmax(LOSSES[self.loss] * f, axis=1))
        positive = expit(LOSSES[self.loss] * f)
        return np.column_stack([1.0 - positive, positive])
