"""Probes: normalisation, convergence, the drop and its test. No torch needed."""

import numpy as np
import pytest
from scipy import stats

from reluflow import ReluflowError
from reluflow.torch.probe import Probe, Score, drop
from reluflow.torch.simplicity import Features, simplicity_bias


def made(rng, n=600, k=8, strength=1.0):
    """Features of which two carry the simple attribute and two, weaker, the complex one."""
    simple, complex_ = rng.integers(0, 3, n), rng.integers(0, 3, n)
    X = rng.normal(size=(n, k)) * 0.3
    angle = 2 * np.pi / 3
    X[:, 0] += 3 * np.cos(angle * simple)
    X[:, 1] += 3 * np.sin(angle * simple)
    X[:, 2] += strength * np.cos(angle * complex_)
    X[:, 3] += strength * np.sin(angle * complex_)
    return X, simple, complex_


def test_probe_is_the_regularised_optimum():
    """Gradient of sum(loss) + |w|^2 / (2 C) is below 1e-4; scikit-learn's own score is met."""
    X, y, _ = made(np.random.default_rng(0))
    probe = Probe(10.0)
    score = probe.score(X, y, X[:100], y[:100])
    assert score.settled
    Z = X / np.sqrt(np.mean(np.sum(X**2, axis=1)))
    p = probe._model.predict_proba(Z) - np.eye(3)[y]
    gradient = p.T @ Z + probe._model.coef_ / 10.0
    assert np.abs(gradient).max() <= 1e-4
    assert score.coefficients == pytest.approx(np.sqrt(np.mean(probe._model.coef_**2)))
    assert score.accuracy == score.right.mean() == probe._model.score(Z[:100], y[:100])


def test_scale_of_features_does_not_matter():
    X, y, _ = made(np.random.default_rng(1))
    a = Probe().score(X[:400], y[:400], X[400:], y[400:])
    b = Probe().score(1e6 * X[:400], y[:400], 1e6 * X[400:], y[400:])
    assert b.accuracy == a.accuracy
    assert b.coefficients == pytest.approx(a.coefficients, rel=1e-3)


def test_a_probe_goes_on_where_it_ended():
    X, y, _ = made(np.random.default_rng(2), strength=0.2)
    probe = Probe()
    first = probe.score(X, y, X, y)
    assert probe.score(X, y, X, y).coefficients == first.coefficients


def test_drop_over_runs_is_the_paired_t_test():
    rng = np.random.default_rng(0)
    before, after = 0.45 + 0.01 * rng.normal(size=6), 0.37 + 0.01 * rng.normal(size=6)
    empty = np.zeros(0, dtype=bool)
    runs = [
        {64: Score(b, 1.0, empty, True), 256: Score(a, 1.0, empty, True)}
        for b, a in zip(before, after, strict=True)
    ]
    found = drop(runs, 64, 256)
    lost = before - after
    t = lost.mean() / (lost.std(ddof=1) / np.sqrt(6))
    assert found.p == pytest.approx(stats.t.sf(t, 5))
    assert found.mean == pytest.approx(lost.mean())
    assert found.sd == pytest.approx(lost.std(ddof=1))
    assert drop(runs[::-1], 256, 64).p > 0.99  # the other way round nothing drops


def test_drop_of_one_run_is_the_sign_test():
    right = np.zeros(100, dtype=bool)
    early, late = right.copy(), right.copy()
    early[:30], late[25:32] = True, True  # 25 lost, 2 won
    run = {1: Score(0.3, 1.0, early, True), 2: Score(0.07, 1.0, late, True)}
    found = drop([run], 1, 2)
    assert found.p == pytest.approx(stats.binomtest(25, 27, alternative="greater").pvalue)
    assert found.test == "sign test over samples"
    assert drop([{1: run[1], 2: run[1]}], 1, 2).p == 1.0


def stored(strengths, runs=("a",)):
    out = []
    for r, run in enumerate(runs):
        for epoch, strength in strengths.items():
            X, simple, complex_ = made(np.random.default_rng([r, 7]), strength=strength)
            out.append(Features(epoch, X, simple, complex_, np.arange(600) < 450, run))
    return out


def test_summary_sees_what_was_put_in():
    found = simplicity_bias(stored({0: 0.0, 8: 1.0, 32: 0.02}, ("a", "b")))
    assert found["early"] == 8
    assert min(found["simple"]["accuracy"][0]) > 0.98
    lost = found["complex"]["drop"]
    assert lost.mean > 0.3
    assert lost.p < 0.05
    assert found["ratio"] >= 1
    assert "a drop of" in found["sentences"][1]
    kept = simplicity_bias(stored({0: 0.0, 8: 1.0, 32: 1.0}, ("a", "b")), unpenalized=False)
    assert abs(kept["complex"]["drop"].mean) < 0.05
    assert kept["ratio"] is None
    for bad in ([], stored({1: 1.0}), stored({1: 1.0, 2: 1.0}) + stored({1: 1.0}, ("b",))):
        with pytest.raises(ReluflowError, match="expected the same two or more epochs"):
            simplicity_bias(bad)
    with pytest.raises(ReluflowError, match="twice"):
        simplicity_bias(stored({1: 1.0, 2: 1.0}) * 2)
    with pytest.raises(ReluflowError, match="cannot compare"):
        simplicity_bias(stored({1: 1.0, 2: 1.0}), early=2, late=1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": np.zeros((5, 0))}, "same k"),
        ({"labels": np.zeros(3)}, "one label a sample"),
        ({"labels": np.zeros(5)}, "at least two classes"),
        ({"features": np.full((5, 2), np.nan)}, "not finite"),
    ],
)
def test_bad_features(change, message):
    given = {"features": np.ones((5, 2)), "labels": np.arange(5), **change}
    with pytest.raises(ReluflowError, match=message):
        Probe().score(given["features"], given["labels"], np.ones((5, 2)), np.arange(5))
    with pytest.raises(ReluflowError, match="C must be positive"):
        Probe(0.0)
