"""scikit-learn estimators: two-layer ReLU networks trained from small weights.

`SmallInitRegressor` and `SmallInitClassifier` go where scikit-learn's own estimators go: into
pipelines, grid searches and cross-validation. What they add is the course of training:
``staged_predict`` steps through the plateaus, ``directions_`` are what the network reads,
``explain()`` gives the whole report.
"""

from reluflow.estimators.classifier import SmallInitClassifier
from reluflow.estimators.regressor import SmallInitRegressor

__all__ = ["SmallInitClassifier", "SmallInitRegressor"]
