"""Which certificates are made, what they claim, and how they are stored."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reluflow import Network, Problem, ReluflowError, datasets, flow, initialize
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
from reluflow.optimum.proofs.optima import sign_tree


def by_kind(problem, net=None, kinds=None):
    return {made.kind: made for made in certificates(problem, net, kinds)}


def test_three_points():
    problem = datasets.three_points()
    line = Network([problem.known["beta_star"]], [1.0])
    made = by_kind(problem, line)
    assert set(made) == {"stationary", "spurious-minimum", "not-global"}
    assert {certificate.grade for certificate in made.values()} == {"PROVED"}
    claim = made["not-global"].claim
    assert claim["loss_lower"] <= problem.known["limit_loss"] <= claim["loss_upper"]
    assert claim["loss_upper"] - claim["loss_lower"] < 1e-12
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
        claim = {"margin": margin * (1 - 1e-11), "upper_bound": margin * (1 + 1e-11)}
        tree, slopes = sign_tree(problem, pairs * problem.y, 2 * claim["upper_bound"] * pairs.sum())
        arrays = {"X": problem.X, "y": problem.y, "W": W, "a": a, "dual": pairs}
        arrays |= {"tree": tree, "slopes": slopes}
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
    error, above = error + 1e-14, closed * (1 + 1e-14)
    claim = {"norm2": above, "lower_bound": closed * (1 - 1e-11), "error": error}
    tree, slopes = sign_tree(problem, dual, 1 + 1e-12)
    arrays = {"X": problem.X, "y": y, "W": W, "a": a, "dual": dual, "tree": tree, "slopes": slopes}
    by_hand = Certificate("min-norm", made.problem, claim, arrays)
    report = check_certificate(write_certificate(by_hand, tmp_path / "c.json"))
    assert report.ok, str(report)


@pytest.mark.parametrize("leak", [0.0, 0.5])
def test_kkt_but_not_global(leak):
    """[LLWA21] I.1: a KKT direction below the largest margin.

    Its slopes at kinks are at the end of [leak, 1], where no box can hold them: CHECKED.
    """
    problem = datasets.figure1_left(leak=leak)
    net = Network(problem.known["kkt_W"], problem.known["kkt_a"], leak=leak)
    for scaled in (net, net.scaled(-500.0), net.scaled(300.0)):
        made = by_kind(problem, scaled)
        assert made["kkt-margin"].grade == "CHECKED"
        assert made["kkt-margin"].claim["residual"] < 1e-9
        low = made["kkt-margin"].claim["margin"]
        assert low == pytest.approx(problem.known["kkt_margin"], rel=1e-9)
        assert low < 0.96 * made["max-margin-network"].claim["margin"]
        assert made["max-margin-network"].grade == "PROVED"
        assert made["kkt-margin"].check().status == "CHECKED"
    assert kkt(problem, net).margin < max_margin(problem).margin


@pytest.mark.parametrize("log_scale", [0.0, -500.0, 300.0])
def test_kkt_points_at_any_size(log_scale):
    problem = datasets.figure1_middle()
    net = max_margin(problem).network.scaled(log_scale)
    made = by_kind(problem, net)["kkt-margin"]
    assert made.grade == "PROVED"
    assert made.claim["distance"] < 1e-9
    best = by_kind(problem)["max-margin-network"].claim["margin"]
    assert made.claim["margin"] == pytest.approx(best, rel=1e-8)


def test_a_trained_network_is_near_an_exact_kkt_point():
    problem = datasets.two_points()
    net = initialize(problem, 16, scale=1e-3, rng=0)
    run = flow(problem, net, clock="loss", max_steps=20_000)
    made = by_kind(problem, run.final, ["kkt-margin"])["kkt-margin"]
    assert made.grade == "PROVED"
    assert 1e-9 < made.claim["distance"] < 0.1


def test_the_end_of_training_on_three_points():
    """[BF24] Figure 2: the flow ends near an exact local minimum that is not global."""
    problem = datasets.three_points()
    run = flow(problem, initialize(problem, 20, scale=1e-3, rng=0))
    made = by_kind(problem, run.final, ["spurious-minimum"])["spurious-minimum"]
    assert made.grade == "PROVED"
    assert made.claim["distance"] < 1e-6
    # where it is: the least-squares line, summed over the neurons that act
    leader, share = made.arrays["leader"].astype(int), made.arrays["share"]
    place = share[:, None] * made.arrays["place"][leader]
    acts = (problem.X @ place.T > 0.0).any(axis=0)
    line = (made.arrays["a"][acts, None] * place[acts]).sum(axis=0)
    assert line == pytest.approx(problem.known["beta_star"], abs=1e-12)
    assert made.arrays["radius"].max() < 1e-10


def test_jumps_of_golden():
    """[TLB26] Algorithm 1 on four unit vectors: order, samples, times and plateaus."""
    problem = datasets.golden()
    start = Network(problem.known["W0"], problem.known["signs"])
    (made,) = certificates(problem, start, ["algorithm1"])
    arrays = made.arrays
    assert tuple(arrays["order"]) == problem.known["order"]
    fitted = tuple(tuple(np.flatnonzero(row)) for row in arrays["fitted"])
    assert fitted == problem.known["sets"]
    assert arrays["time_lower"] == pytest.approx(problem.known["jump_times"], rel=1e-12)
    assert (arrays["time_lower"] < arrays["time_upper"]).all()
    assert arrays["loss_lower"].tolist() == arrays["loss_upper"].tolist() == [3.75, 0.625, 0.125, 0]
    assert made.claim["norm2_lower"] <= problem.known["norm2"] <= made.claim["norm2_upper"]


def test_neurons_held_on_kinks(samples):
    """The valley of `samples`: the first sample is on the hyperplane, at slope 1/2."""
    made = samples["stationary, kink"]
    c = -2.0 / 3.0  # of the first sample
    assert made.arrays["tau"] == pytest.approx([0.5 * c])
    assert made.arrays["kink_sample"].tolist() == [0.0]
    # at a slope outside [leak, 1] it is not stationary, and no proof says so
    problem = Problem(made.arrays["X"], [-2.0, 1.0, 0.0], leak=0.25)
    (report,) = [c for c in certificates(problem, Network(made.arrays["W"], made.arrays["a"]))]
    assert report.kind == "not-global"


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_interpolating_networks_are_near_exact_ones(seed):
    rng = np.random.default_rng(seed)
    problem = Problem(rng.normal(size=(3, 4)), rng.normal(size=3))
    W = rng.normal(size=(5, 4))
    F = np.maximum(problem.X @ W.T, 0.0)
    if np.linalg.svd(F, compute_uv=False)[-1] < 1e-2:
        return
    a = np.linalg.lstsq(F, problem.y)[0]
    made = by_kind(problem, Network(W, a))
    assert made["stationary"].grade == made["global-minimum"].grade == "PROVED"
    assert made["stationary"].claim["distance"] < 1e-10


@pytest.mark.slow
def test_share_of_proofs_on_random_problems():
    """Of stationary, margin and norm certificates; measured: all of 240 but one or two."""
    grades = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        d, n = int(rng.integers(2, 5)), int(rng.integers(3, 13))
        X, leak = rng.normal(size=(n, d)), (0.0, 0.0, 0.3)[seed % 3]
        square = Problem(X, rng.normal(size=n), leak=leak)
        signs = Problem(X, rng.choice([-1.0, 1.0], size=n), loss="logistic", leak=leak)
        run = flow(square, initialize(square, 12, scale=1e-2, rng=seed), max_steps=20_000)
        made = certificates(square, run.final, ["stationary"]) + certificates(square)
        best = max_margin(signs).network
        made += certificates(signs, best, ["kkt-margin", "max-margin-network"])
        grades += [certificate.grade for certificate in made]
    assert len(grades) > 200
    assert grades.count("PROVED") >= 0.98 * len(grades)


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


def test_nothing_is_said_where_there_is_nothing_to_say():
    signs = Problem([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0], loss="exponential")
    silent = Network(np.zeros((2, 2)), np.zeros(2))
    assert certificates(signs, silent, ["margin-optimum"]) == []
    assert certificates(signs, silent, ["gradient"]) == []  # on every kink
    wrong = Network([[1.0, 2.0]], [1e3])
    assert certificates(signs, wrong, ["gradient"]) == []  # e^2000
    made = certificates(Problem(np.zeros((2, 2)), [1.0, -1.0]), silent)
    assert {c.kind: c.grade for c in made} == {"stationary": "PROVED", "global-minimum": "PROVED"}
    assert made[-1].claim["lower_bound"] == pytest.approx(0.5)


def test_round_trip_is_exact(samples, tmp_path):
    for name, made in samples.items():
        back = read_certificate(write_certificate(made, tmp_path / "c.json"))
        assert (back.kind, back.claim) == (made.kind, made.claim), name
        for key, array in made.arrays.items():
            assert np.array_equal(back.arrays[key], array), (name, key)
    assert [path.name for path in tmp_path.iterdir()] == ["c.json"]
    document = json.loads((tmp_path / "c.json").read_text())
    assert document["format"] == "reluflow-certificate-2"


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
        ({"grade": "TRUE"}, "unknown grade 'TRUE'"),
        ({"claim": {"loss_lower": 0.0, "loss_upper": 1.0}}, "missing or too many are distance"),
        (
            {"claim": {"loss_lower": 0.0, "loss_upper": 1.0, "distance": np.inf}},
            "claim distance is inf",
        ),
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
