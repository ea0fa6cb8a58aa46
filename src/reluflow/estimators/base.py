"""What the two estimators share: columns in, a fitted network, its stages and its report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from reluflow.arrays import Array
from reluflow.estimators.training import Course, Training
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.problem.losses import as_loss

if TYPE_CHECKING:
    from reluflow.explanation.explanation import Explanation


class SmallInitBase(BaseEstimator):  # type: ignore[misc]
    """A two-layer network trained from small weights, on columns that may be standardised."""

    if TYPE_CHECKING:  # set by the classes' own constructors
        n_neurons: int
        scale: float
        method: str
        loss: str
        leak: float
        bias: float | None
        standardize: bool
        duration: float
        learning_rate: float | None
        max_steps: int
        weight_decay: float
        random_state: Any
        n_features_in_: int

    def _course(self) -> Course:
        state = self.random_state
        if isinstance(state, int | np.integer):
            seed = int(state)
        else:
            seed = int(check_random_state(state).randint(np.iinfo(np.int32).max))
        self.seed_ = seed
        course = Course(
            self.n_neurons,
            self.scale,
            self.method,
            self.duration,
            self.learning_rate,
            self.max_steps,
            seed,
            self.weight_decay,
        )
        course.check()
        return course

    def _fit(
        self, X: Array, y: Array, labels: tuple[str, ...] | None, loss: str | None = None
    ) -> None:
        """Train on columns X and labels y as the network is to see them.

        ``loss`` is that of several classes, whose one-hot rows y are and whose names labels are.
        """
        course = self._course()
        self.mean_, self.scale_ = np.zeros(X.shape[1]), np.ones(X.shape[1])
        if self.standardize:
            self.mean_, spread = X.mean(axis=0), X.std(axis=0)
            constant = spread <= 1e-13 * np.abs(X).max(axis=0)
            self.scale_ = np.where(constant, 1.0, spread)
        names = getattr(self, "feature_names_in_", None)
        self.problem_ = Problem(
            self._columns(X),
            y,
            loss=as_loss(self.loss if loss is None else loss),
            leak=self.leak,
            bias=self.bias,
            name="training data",
            feature_names=None if names is None else tuple(str(name) for name in names),
            label_names=labels if loss is None else None,
            known={} if loss is None else {"classes": labels},
        )
        self._keep(course.train(self.problem_))

    def _keep(self, done: Training) -> None:
        from reluflow.explanation.end import groups_of
        from reluflow.explanation.multioutput.end import vector_groups

        self.network_: Network = done.network
        self.stages_ = done.stages
        self.jumps_ = done.jumps
        self.stage_losses_ = done.losses
        self.n_steps_ = done.steps
        self.result_ = done.result
        several = self.problem_.several
        find = vector_groups if several else groups_of
        carriers: Any = find(self.problem_, done.network) if done.result is not None else ()
        self.directions_ = np.array([group.direction for group in carriers]).reshape(
            -1, self.problem_.d
        )
        self.shares_ = np.array([group.sign * group.share for group in carriers])
        if several:
            self.outer_ = np.array([group.outer for group in carriers]).reshape(-1, self.problem_.K)

    def _columns(self, X: Array) -> Array:
        columns: Array = (X - self.mean_) / self.scale_
        return columns

    def _inputs(self, X: Any) -> Array:
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return self._columns(X)

    def _stage_outputs(self, X: Any) -> Iterator[Array]:
        inputs = self._inputs(X)
        for net in self.stages_:
            yield np.asarray(net(inputs))

    def explain(self, **options: Any) -> Explanation:
        """The whole report on the fitted data: :func:`reluflow.explain` with the same start.

        Parameters
        ----------
        **options
            Of :func:`reluflow.explain`: ``out=``, ``seconds=``, ...

        Returns
        -------
        Explanation
            Of the columns as the network sees them (standardised, if so asked).
        """
        from reluflow.explanation.explain import explain

        check_is_fitted(self)
        given = {"m": self.n_neurons, "scale": self.scale, "seed": self.seed_}
        return explain(self.problem_, **{**given, "weight_decay": self.weight_decay, **options})
