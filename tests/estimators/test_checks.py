"""scikit-learn's own checks of estimators, all of them."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from reluflow.estimators import SmallInitClassifier, SmallInitRegressor


# none is expected to fail
@parametrize_with_checks(
    [
        SmallInitRegressor(n_neurons=30, random_state=0),
        SmallInitRegressor(n_neurons=30, method="descent", random_state=0),
        SmallInitClassifier(n_neurons=30, random_state=0),
        SmallInitClassifier(n_neurons=30, method="descent", random_state=0),
    ]
)
def test_as_scikit_learn_asks(estimator, check):
    check(estimator)
