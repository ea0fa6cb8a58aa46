"""Which certificates are made, what they claim, and how they are stored."""

import json

import numpy as np
import pytest

from reluflow import Network, Problem, ReluflowError, datasets
from reluflow.optimum import (
    Certificate,
    certificates,
    check_certificate,
    kkt,
    max_margin,
    min_norm,
    read_certificate,
    write_certificate,
)


def by_kind(problem, net=None, kinds=None):
    return {made.kind: made for made in certificates(problem, net, kinds)}


def test_three_points():
    problem = datasets.three_points()
    line = Network([problem.known["beta_star"]], [1.0])
    made = by_kind(problem, line)
    assert set(made) == {"stationary", "not-global"}
    assert made["not-global"].claim["loss"] == pytest.approx(problem.known["limit_loss"])
    assert made["not-global"].claim["gain"] == pytest.approx(0.028051720359, abs=1e-10)
    best = by_kind(problem)["min-norm"]
    assert best.claim["norm2"] - best.claim["lower_bound"] < 1e-9
    fit = by_kind(problem, Network(best.arrays["W"], best.arrays["a"]))
    assert set(fit) == {"stationary", "global-minimum", "min-norm"}


@pytest.mark.parametrize("leak", [0.0, 0.3, 0.5])
def test_symmetric_data_from_the_linear_dual(leak, tmp_path):
    """[LLWA21] Theorem 4.2: (w*, -w*, 1, -1)/2 with the dual of each pair halved proves itself."""
    for d in (2, 4, 6):
        problem = datasets.symmetric_separable(5, d, rng=d, leak=leak)
        linear = by_kind(problem, None, ["max-margin-linear"])["max-margin-linear"]
        w, dual = linear.arrays["w"], linear.arrays["dual"]
        pairs = 0.5 * (dual + np.roll(dual, problem.n // 2))
        W, a = 0.5 * np.array([w, -w]), np.array([0.5, -0.5])
        p = problem.X @ W.T
        margin = float((problem.y * (np.maximum(p, leak * p) @ a)).min())
        assert margin == pytest.approx(0.25 * (1 + leak) * linear.claim["margin"], rel=1e-12)
        claim = {"margin": margin, "upper_bound": margin * (1 + 1e-11)}
        arrays = {"X": problem.X, "y": problem.y, "W": W, "a": a, "dual": pairs}
        made = Certificate("max-margin-network", linear.problem, claim, arrays)
        report = check_certificate(write_certificate(made, tmp_path / "c.json"))
        assert report.ok, str(report)


def test_orthonormal_by_hand(tmp_path):
    """2 (|y+| + |y-|), with the multipliers y/|y+-|."""
    problem = datasets.orthonormal(12, rng=1, law="normal")
    y, up = problem.y, problem.y > 0
    plus, minus = np.linalg.norm(y[up]), np.linalg.norm(y[~up])
    made = by_kind(problem)["min-norm"]
    closed = 2.0 * (plus + minus)
    assert made.claim["norm2"] == pytest.approx(closed, rel=1e-8)
    v_plus, v_minus = y[up] @ problem.X[up], -y[~up] @ problem.X[~up]
    W = np.array([v_plus / np.sqrt(plus), v_minus / np.sqrt(minus)])
    a = np.array([np.sqrt(plus), -np.sqrt(minus)])
    dual = np.where(up, y / plus, y / minus)
    error = float(np.abs(problem.outputs(Network(W, a)) - y).max())
    claim = {"norm2": closed, "lower_bound": closed * (1 - 1e-11), "error": error}
    arrays = {"X": problem.X, "y": y, "W": W, "a": a, "dual": dual}
    by_hand = Certificate("min-norm", made.problem, claim, arrays)
    report = check_certificate(write_certificate(by_hand, tmp_path / "c.json"))
    assert report.ok, str(report)


@pytest.mark.parametrize("leak", [0.0, 0.5])
def test_kkt_but_not_global(leak, tmp_path):
    """[LLWA21] I.1: a KKT direction below the largest margin, both certified."""
    problem = datasets.figure1_left(leak=leak)
    net = Network(problem.known["kkt_W"], problem.known["kkt_a"], leak=leak)
    for scaled in (net, net.scaled(-500.0), net.scaled(300.0)):
        made = by_kind(problem, scaled)
        assert made["kkt-margin"].claim["residual"] < 1e-9
        low = made["kkt-margin"].claim["margin"]
        assert low == pytest.approx(problem.known["kkt_margin"], rel=1e-9)
        assert low < 0.96 * made["max-margin-network"].claim["margin"]
        report = check_certificate(write_certificate(made["kkt-margin"], tmp_path / "c.json"))
        assert report.ok, str(report)
    assert kkt(problem, net).margin < max_margin(problem).margin


def test_dormant_neurons_are_left_out():
    problem = datasets.three_points()
    net = Network([problem.known["beta_star"], [0.3, -2.0]], [1.0, 1.0], log_scale=[0.0, -900.0])
    made = by_kind(problem, net, ["stationary"])["stationary"]
    assert made.arrays["W"].shape == (1, 2)


def test_what_does_not_hold_is_absent():
    problem = datasets.three_points()
    moving = Network([[1.0, 2.0]], [1.0])
    assert set(by_kind(problem, moving)) == {"not-global"}
    crossed = Problem([[1.0], [1.0]], [1.0, -1.0], loss="logistic")
    assert by_kind(crossed, Network([[1.0]], [1.0])) == {}
    square = Problem([[1.0, 0.0], [1.0, 0.0]], [1.0, 2.0])
    assert by_kind(square) == {}  # no network fits two labels at one point
    assert min_norm(square).network is None


def test_round_trip_is_exact(samples, tmp_path):
    for name, made in samples.items():
        back = read_certificate(write_certificate(made, tmp_path / "c.json"))
        assert (back.kind, back.claim) == (made.kind, made.claim), name
        for key, array in made.arrays.items():
            assert np.array_equal(back.arrays[key], array), (name, key)
    assert [path.name for path in tmp_path.iterdir()] == ["c.json"]
    document = json.loads((tmp_path / "c.json").read_text())
    assert document["format"] == "reluflow-certificate-1"


def test_nothing_half_written(samples, tmp_path, monkeypatch):
    target = tmp_path / "c.json"
    write_certificate(samples["stationary"], target)
    before = target.read_bytes()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "disk full")))
    with pytest.raises(ReluflowError, match=r"cannot write .*disk full"):
        write_certificate(samples["not-global"], target)
    assert target.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["c.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "proof"}, "unknown kind 'proof'"),
        ({"claim": {"loss": 1.0}}, "missing or too many are residual"),
        ({"claim": {"loss": 1.0, "residual": np.inf}}, "claim residual is inf"),
        ({"arrays": {"a": np.ones(2)}}, r"array a has shape \(2,\)"),
        ({"arrays": {"W": np.full((1, 2), np.nan)}}, "array W holds an entry"),
    ],
)
def test_certificates_check_themselves(samples, change, message):
    good = samples["stationary"]
    parts = {"kind": good.kind, "problem": good.problem, "claim": good.claim, **change}
    parts["arrays"] = {**good.arrays, **change.get("arrays", {})}
    with pytest.raises(ReluflowError, match=message):
        Certificate(**parts)


def test_messages(tmp_path, samples):
    problem = datasets.three_points()
    with pytest.raises(ReluflowError, match="unknown kind 'best'"):
        certificates(problem, None, ["best"])
    with pytest.raises(ReluflowError, match="is about a network: pass net"):
        certificates(problem, None, ["stationary"])
    with pytest.raises(ReluflowError, match="does not exist: create it first"):
        write_certificate(samples["stationary"], tmp_path / "no" / "c.json")
    with pytest.raises(ReluflowError, match="does not exist or is not a file"):
        read_certificate(tmp_path / "c.json")
    path = tmp_path / "c.json"
    path.write_text('{"format": "other"}')
    with pytest.raises(ReluflowError, match="unknown format 'other'"):
        read_certificate(path)
