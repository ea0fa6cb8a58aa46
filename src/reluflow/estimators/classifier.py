"""Classification by a two-layer network trained from small weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import validate_data

from reluflow.arrays import AnyArray, Array
from reluflow.errors import ReluflowError
from reluflow.estimators.base import SmallInitBase

#: loss -> factor c with P(+1 | f) = 1 / (1 + exp(-c f)), the probability whose log loss it is
LOSSES = {"logistic": 1.0, "exponential": 2.0}


class SmallInitClassifier(ClassifierMixin, SmallInitBase):  # type: ignore[misc]
    r"""Two-layer ReLU network for two classes, trained from small weights.

    Labels are -1 and +1 in the order of ``classes_``; f and the columns are as in
    :class:`SmallInitRegressor`. The network has one output: for more classes wrap it in
    :class:`sklearn.multiclass.OneVsRestClassifier`.

    Parameters
    ----------
    n_neurons, scale, leak, bias, duration, learning_rate, max_steps, weight_decay, random_state
        As in :class:`SmallInitRegressor`.
    method : {"flow", "descent", "limit"}
        As there; where the limit process runs to infinity its direction is taken at the size at
        which the least margin on the data is 5.
    loss : {"logistic", "exponential"}
        What is minimised.
    standardize : bool
        Centre and scale columns.

    Attributes
    ----------
    classes_ : array (2,)
        The labels of -1 and of +1.
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any) -> SmallInitClassifier:
        """Train on samples X (n, d) and labels y (n,) of two classes."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        kind = type_of_target(y)
        if kind != "binary":
            raise ReluflowError(
                f"Only binary classification is supported. The type of the target is {kind}: use "
                "sklearn.multiclass.OneVsRestClassifier(SmallInitClassifier(...))"
            )
        if self.loss not in LOSSES:
            raise ReluflowError(f"loss must be one of {', '.join(LOSSES)}, got {self.loss!r}")
        self.classes_, place = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ReluflowError(
                f"the labels have one class only, {self.classes_[0]!r}: a classifier needs two"
            )
        signs = np.where(place > 0, 1.0, -1.0)
        self._fit(X, signs, tuple(str(name) for name in self.classes_))
        return self

    def decision_function(self, X: Any) -> Array:
        """f at the rows of X: positive for ``classes_[1]``."""
        inputs = self._inputs(X)
        return np.asarray(self.network_(inputs))

    def predict(self, X: Any) -> AnyArray:
        """Classes of the rows of X."""
        return self._classes(self.decision_function(X))

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, 2) of the two classes, of which the loss is the log loss."""
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
        return np.asarray(self.classes_[(f > 0.0).astype(int)])

    def _probabilities(self, f: Array) -> Array:
        positive = expit(LOSSES[self.loss] * f)
        return np.column_stack([1.0 - positive, positive])
