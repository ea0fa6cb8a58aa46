"""The checker proves what is written and names the step at which a change fails."""

import ast
import copy
import json
import math
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluflow.optimum.checker as checker
import reluflow.optimum.exact as exact
from reluflow import Network, Problem, datasets
from reluflow.landscape import max_G
from reluflow.optimum import Certificate, certificates, check_certificate, write_certificate
from reluflow.optimum.checker import Case, check_document
from reluflow.optimum.exact import Ball, Reject
from reluflow.optimum.proofs.optima import sign_tree

KINDS = [
    "max-margin-linear",
    "kkt-margin",
    "kkt-margin, d=3",
    "max-margin-network",
    "max-margin-network, d=3",
    "margin-optimum",
    "min-norm",
    "min-norm, d=3",
    "ridge",
    "ridge, d=3",
    "ridge-not-best",
    "gradient",
    "stationary",
    "stationary, kink",
    "spurious-minimum",
    "not-global",
    "global-minimum",
    "algorithm1",
]


@pytest.mark.parametrize("name", KINDS)
def test_proves_what_is_written(name, samples, stored):
    report = check_certificate(stored(name), X=samples[name].arrays["X"])
    assert report.ok, str(report)
    assert report.status == samples[name].grade == "PROVED"
    assert report.kind == samples[name].kind
    assert report.failed == []
    assert report.statement
    assert "{" not in report.statement
    assert f"cost: {report.cost} products" in str(report)


def entry(name, place, change):
    """Change one entry of an array."""

    def apply(document):
        values = document["arrays"][name]["data"]
        values[place] = change(values[place])

    return apply


def claim(name, change):
    def apply(document):
        document["claim"][name] = change(document["claim"][name])

    return apply


def about(name, value):
    return lambda document: document["problem"].__setitem__(name, value)


def top(name, value):
    return lambda document: document.__setitem__(name, value)


def text_of(change):
    return lambda document: change(json.dumps(document))


TINY = 2.0**-50  # no tolerance: changes of this relative size are told apart

CORRUPTIONS = [
    # changed data
    ("max-margin-linear", entry("X", 0, lambda v: v - 0.5), "margin"),
    ("max-margin-network", entry("X", 1, lambda v: v + 0.3), "bound of G"),
    ("min-norm", entry("X", 0, lambda v: v * 1.001), "fit"),
    ("ridge", entry("X", 0, lambda v: v * 1.001), "bound of G"),
    ("ridge, d=3", entry("X", 0, lambda v: v + 0.3), "bound of G"),
    ("stationary", entry("X", 0, lambda v: v + 1e-3), "stationary point"),
    ("stationary", entry("X", 0, lambda v: v + 1e-9), "stationary point"),
    ("kkt-margin", entry("X", 0, lambda v: v + 1e-9), "KKT point"),
    ("global-minimum", entry("X", 0, lambda v: v * (1 + 1e-9)), "loss"),
    ("algorithm1", entry("X", 0, lambda v: v * (1 + TINY)), "orthonormal"),
    # labels
    ("max-margin-linear", entry("y", 0, lambda v: -v), "margin"),
    ("kkt-margin", entry("y", 0, lambda v: 0.5), "format"),
    ("kkt-margin, d=3", entry("y", 1, lambda v: -v), "all classified"),
    ("not-global", entry("y", 1, lambda v: v + 0.1), "loss from below"),
    ("ridge", entry("y", 1, lambda v: v + 0.1), "dual value"),
    ("ridge", entry("y", 1, lambda v: v - 0.1), "value"),
    ("ridge, d=3", entry("y", 1, lambda v: -v), "value"),
    ("global-minimum", entry("y", 0, lambda v: v + 1e-3), "loss"),
    ("algorithm1", entry("y", 0, lambda v: v + 1e-9), "plateau 0"),
    # margins, norms, losses
    ("max-margin-linear", claim("margin", lambda v: 1.0 + TINY), "margin"),
    ("max-margin-network", claim("margin", lambda v: v * (1 + 4 * TINY)), "margin"),
    ("margin-optimum", claim("margin_lower", lambda v: v * (1 + TINY)), "margin"),
    ("margin-optimum", claim("margin_upper", lambda v: v * (1 - TINY)), "margin"),
    ("kkt-margin", claim("margin", lambda v: v * (1 + TINY)), "margin"),
    ("min-norm", claim("norm2", lambda v: v * (1 - TINY)), "norm"),
    ("ridge", claim("value", lambda v: v * (1 - 1e-12)), "value"),
    ("ridge, d=3", claim("value", lambda v: v * (1 - 1e-12)), "value"),
    ("ridge", claim("weight_decay", lambda v: -v), "weight decay"),
    ("ridge", claim("weight_decay", lambda v: 0.0), "weight decay"),
    ("ridge", claim("weight_decay", lambda v: v * (1 - 1e-12)), "bound of G"),
    ("ridge", claim("weight_decay", lambda v: v * (1 + 1e-9)), "value"),
    ("ridge-not-best", claim("weight_decay", lambda v: v * (1 + 1e-9)), "value"),
    ("ridge-not-best", claim("value", lambda v: v * (1 - 1e-12)), "value"),
    ("ridge-not-best", claim("gain", lambda v: v * (1 + 1e-9)), "gain"),
    ("ridge-not-best", claim("sign", lambda v: -v), "gain"),
    ("ridge-not-best", claim("size", lambda v: -v), "sign and size"),
    ("ridge-not-best", claim("size", lambda v: 2 * v), "gain"),
    ("ridge-not-best", entry("vector", 0, lambda v: 1.1 * v), "gain"),
    ("stationary", claim("loss_lower", lambda v: v * (1 + 1e-9)), "loss from below"),
    ("stationary", claim("loss_upper", lambda v: v * (1 - 1e-9)), "loss from above"),
    ("not-global", claim("gain", lambda v: v * (1 + 1e-9)), "gain"),
    ("not-global", claim("size", lambda v: -v), "sign and size"),
    ("spurious-minimum", claim("gain", lambda v: v * (1 + 1e-9)), "gain"),
    ("algorithm1", claim("norm2_lower", lambda v: v * (1 + 1e-9)), "norm"),
    ("gradient", claim("norm", lambda v: v * (1 - 1e-9)), "norm"),
    ("gradient", claim("norm", lambda v: -v), "norm"),
    ("gradient", entry("W", 0, lambda v: 0.0), "loss from below"),
    # bounds
    ("max-margin-linear", claim("upper_bound", lambda v: 1.0 - TINY), "upper bound"),
    ("max-margin-network", claim("upper_bound", lambda v: 0.375 * (1 - TINY)), "bound of G"),
    ("max-margin-network, d=3", claim("upper_bound", lambda v: v * (1 - 1e-9)), "bound of G"),
    ("max-margin-network", claim("upper_bound", lambda v: -v), "bound of G"),
    ("min-norm", claim("lower_bound", lambda v: v * (1 + 1e-9)), "bound of G"),
    ("ridge", claim("lower_bound", lambda v: v * (1 + 1e-12)), "dual value"),
    ("ridge, d=3", claim("lower_bound", lambda v: v * (1 + 1e-12)), "dual value"),
    ("min-norm, d=3", claim("lower_bound", lambda v: 12.0 * (1 + TINY)), "bound of G"),
    ("min-norm", claim("lower_bound", lambda v: -v), "dual value"),
    ("min-norm", claim("error", lambda v: 0.0), "fit"),
    ("min-norm", claim("error", lambda v: 10.0), "dual value"),
    ("kkt-margin", claim("distance", lambda v: v * (1 - 1e-9)), "distance"),
    ("kkt-margin", claim("distance", lambda v: -v), "distance"),
    ("stationary", claim("distance", lambda v: v * 0.5), "distance"),
    ("global-minimum", claim("lower_bound", lambda v: 1e-30), "lower bound"),
    # multipliers
    ("max-margin-linear", entry("dual", 0, lambda v: v + 0.1), "upper bound"),
    ("max-margin-linear", entry("dual", 1, lambda v: -1e-30), "multipliers >= 0"),
    ("max-margin-network", entry("dual", 0, lambda v: -0.5), "multipliers >= 0"),
    ("max-margin-network, d=3", entry("dual", 0, lambda v: v + 0.01), "bound of G"),
    ("min-norm", entry("dual", 0, lambda v: v * 1.1), "bound of G"),
    ("ridge", entry("dual", 0, lambda v: v * (1 + 2e-12)), "bound of G"),
    ("ridge", entry("dual", 0, lambda v: v * (1 - 1e-9)), "dual value"),
    ("ridge, d=3", entry("dual", 0, lambda v: -v), "dual value"),
    ("ridge, d=3", entry("dual", 0, lambda v: 1.0), "dual value"),
    # the proof
    ("kkt-margin", entry("center", 0, lambda v: v * (1 + 1e-9)), "KKT point"),
    ("kkt-margin", entry("radius", 0, lambda v: -v), "KKT point"),
    ("kkt-margin", entry("inverse", 0, lambda v: -v), "KKT point"),
    ("kkt-margin", entry("pattern", 0, lambda v: -v), "KKT point"),
    ("kkt-margin", entry("active", 0, lambda v: 0.5), "KKT point"),
    ("kkt-margin, d=3", entry("sign", 0, lambda v: -v), "sides"),
    ("kkt-margin", entry("share", 0, lambda v: -v), "KKT point"),
    ("stationary", entry("radius", 0, lambda v: v * 1e-9), "stationary point"),
    ("stationary", entry("radius", 0, lambda v: -v), "stationary point"),
    ("stationary", entry("place", 0, lambda v: v + 1e-9), "stationary point"),
    ("stationary", entry("row_index", 0, lambda v: 1.0), "stationary point"),
    ("stationary", entry("leader", 0, lambda v: 1.0), "stationary point"),
    ("stationary, kink", entry("tau", 0, lambda v: v + 1e-9), "stationary point"),
    ("stationary, kink", entry("kink_sample", 0, lambda v: 1), "stationary point"),
    ("stationary, kink", entry("kink_sample", 0, lambda v: 7), "stationary point"),
    ("max-margin-network, d=3", entry("tree", -1, lambda v: 1), "bound of G"),
    ("max-margin-network, d=3", entry("tree", 0, lambda v: 99), "bound of G"),
    ("max-margin-network, d=3", entry("slopes", 0, lambda v: 1.5), "bound of G"),
    ("ridge, d=3", entry("tree", 0, lambda v: 99), "bound of G"),
    ("ridge, d=3", entry("slopes", 0, lambda v: 1.5), "bound of G"),
    ("algorithm1", entry("order", 0, lambda v: 1), "jump 0"),
    ("algorithm1", entry("fitted", 2, lambda v: 1.0), "samples 0"),
    ("algorithm1", entry("time_upper", 1, lambda v: v * (1 - 1e-9)), "time 1"),
    ("algorithm1", entry("loss_upper", 1, lambda v: v * (1 - TINY)), "plateau 1"),
    # networks
    ("kkt-margin", entry("W", 0, lambda v: v * 1.001), "margin"),
    ("max-margin-network", entry("a", 0, lambda v: -v), "all classified"),
    ("margin-optimum", entry("W", 0, lambda v: v * 1.001), "margin"),
    ("min-norm", entry("W", 0, lambda v: v + 1e-6), "fit"),
    ("ridge", entry("W", 0, lambda v: v + 1e-4), "value"),
    ("stationary", entry("W", 0, lambda v: v + 1e-4), "loss from above"),
    ("stationary", entry("a", 0, lambda v: -v), "stationary point"),
    ("global-minimum", entry("a", 0, lambda v: v * 1.01), "loss"),
    ("not-global", claim("sign", lambda v: -v), "gain"),
    ("algorithm1", entry("a", 0, lambda v: 0.5), "start"),
    # the problem
    ("max-margin-network", about("leak", 0.4), "margin"),
    ("stationary", about("leak", 2.0), "format"),
    ("stationary", about("loss", "square"), "stationary point"),
    ("not-global", about("loss", "cosine"), "format"),
    ("stationary", about("reduction", "sum"), "stationary point"),
    ("not-global", about("factor", 3.0), "loss from above"),
    ("ridge, d=3", about("factor", 3.0), "value"),
    ("ridge, d=3", about("loss", "exponential"), "value"),
    ("ridge", about("reduction", "sum"), "value"),
    ("algorithm1", about("leak", 0.1), "orthonormal"),
    # the file
    ("stationary", top("format", "reluflow-certificate-1"), "format"),
    ("stationary", top("kind", "not-global"), "format"),
    ("max-margin-network", top("kind", "min-norm"), "format"),
    ("stationary", top("kind", "true"), "format"),
    ("stationary", top("kind", ["stationary"]), "format"),
    ("stationary", top("problem", None), "format"),
    ("stationary", top("arrays", []), "format"),
    ("stationary", lambda document: document["arrays"].pop("a"), "format"),
    ("stationary", lambda document: document.pop("claim"), "format"),
    ("stationary", entry("W", 0, lambda v: math.nan), "format"),
    ("stationary", entry("W", 0, lambda v: math.inf), "format"),
    ("stationary", entry("W", 0, lambda v: 1e-100), "format"),
    ("stationary", entry("W", 0, lambda v: 10**400), "format"),
    ("stationary", entry("W", 0, lambda v: "1"), "format"),
    ("stationary", entry("W", 0, lambda v: None), "format"),
    ("stationary", entry("W", 0, lambda v: True), "format"),
    ("stationary", entry("W", 0, lambda v: [0.5]), "format"),
    ("stationary", claim("distance", lambda v: "small"), "format"),
    ("stationary", claim("distance", lambda v: [v]), "format"),
    ("stationary", lambda d: d["arrays"]["X"].__setitem__("shape", [2, 3]), "format"),
    ("stationary", lambda d: d["arrays"]["X"].__setitem__("shape", [10**15, 10**15]), "format"),
    ("stationary", lambda d: d["arrays"]["X"].__setitem__("shape", [-3, -2]), "format"),
    ("stationary", lambda d: d["arrays"]["X"].__setitem__("shape", 6), "format"),
    ("stationary", text_of(lambda text: text.replace("0.125", "1e999")), "format"),
    ("stationary", text_of(lambda text: text[: len(text) // 2]), "format"),
    ("stationary", text_of(lambda text: "[" * 100_000), "format"),
    ("stationary", text_of(lambda text: "17"), "format"),
    ("stationary", text_of(lambda text: "null"), "format"),
    ("stationary", text_of(lambda text: "9" * 5000), "format"),
]


@pytest.mark.parametrize("number", range(len(CORRUPTIONS)))
def test_names_the_step_that_fails(number, stored):
    name, change, expected = CORRUPTIONS[number]
    report = check_certificate(stored(name, change))
    assert not report.ok
    assert report.status == "REJECTED"
    assert report.failed == [expected], str(report)
    assert report.checks[-1].remark  # a sentence


def test_data_given_must_be_those_of_the_certificate(stored, samples):
    X, y = samples["stationary"].arrays["X"], samples["stationary"].arrays["y"]
    assert check_certificate(stored("stationary"), X=X, y=y).ok
    assert check_certificate(stored("stationary"), X=X + 1e-15).failed == ["data"]
    assert check_certificate(stored("stationary"), y=y[:2]).failed == ["data"]
    assert check_certificate(stored("stationary"), y="labels").failed == ["format"]


def test_files_that_are_no_certificates(tmp_path):
    path = tmp_path / "file.json"
    assert "No such file" in check_certificate(path).checks[0].remark
    path.write_bytes(pickle.dumps({"format": checker.__name__}))
    assert check_certificate(path).failed == ["format"]
    path.write_text("{}" + " " * 1000)
    assert "max_bytes" in check_certificate(path, max_bytes=100).checks[0].remark


def test_checked_is_not_proved(samples):
    made = samples["stationary"]
    arrays = {name: made.arrays[name] for name in ("X", "y", "W", "a")}
    bare = Certificate(made.kind, made.problem, {"loss": 0.1}, arrays, "CHECKED")
    report = bare.check()
    assert report.status == "CHECKED"
    assert not report.ok
    assert "no proof" in report.checks[-1].remark
    # the word alone proves nothing
    assert check_document({**bare.document(), "grade": "PROVED"}).status == "REJECTED"


# It stands alone


FILES = [Path(checker.__file__), Path(exact.__file__)]


def test_is_two_short_files():
    """What a stranger must read before believing a proof."""
    lengths = [len(path.read_text().splitlines()) for path in FILES]
    assert lengths[0] < 750
    assert lengths[1] < 150


def test_imports_nothing_but_the_standard_library():
    allowed = {
        "__future__",
        "collections.abc",
        "dataclasses",
        "flint",
        "fractions",
        "functools",
        "importlib",
        "json",
        "math",
        "operator",
        "os",
        "sys",
        "typing",
    }
    allowed.add("reluflow.optimum.exact")  # the other file
    for node in (node for path in FILES for node in ast.walk(ast.parse(path.read_text()))):
        if isinstance(node, ast.Import):
            assert {alias.name for alias in node.names} <= allowed
        elif isinstance(node, ast.ImportFrom):
            assert node.module in allowed


def test_compares_no_floats():
    """Floats occur where numbers are read or displayed, and nowhere else."""
    users = set()
    for function in (node for path in FILES for node in ast.walk(ast.parse(path.read_text()))):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Constant) and isinstance(node.value, float):
                    users.add(function.name)
                if isinstance(node, ast.Name) and node.id in ("float", "LARGEST"):
                    users.add(function.name)
    assert users == {"nearest", "numbers"}


@pytest.mark.parametrize("name", KINDS)
def test_bare_python_comes_to_the_same_verdict(name, stored, tmp_path):
    """The two files alone, without NumPy, and by `fractions` where this one has python-flint."""
    script, _ = (shutil.copy(path, tmp_path) for path in FILES)
    for change, code in ((None, 0), (claim(*WEAKEST[name]), 1)):
        path = stored(name, change)
        done = subprocess.run(
            [sys.executable, "-S", "-I", script, path], capture_output=True, text=True
        )
        assert done.stderr == ""
        assert done.returncode == code
        assert done.stdout.strip() == str(check_certificate(path))


# a change that makes each statement false
WEAKEST = {
    "max-margin-linear": ("upper_bound", lambda v: 0.9 * v),
    "kkt-margin": ("distance", lambda v: 0.9 * v),
    "kkt-margin, d=3": ("distance", lambda v: -v),
    "max-margin-network": ("upper_bound", lambda v: 0.9 * v),
    "max-margin-network, d=3": ("upper_bound", lambda v: 0.9 * v),
    "margin-optimum": ("margin_lower", lambda v: 1.1 * v),
    "min-norm": ("lower_bound", lambda v: 1.1 * v),
    "min-norm, d=3": ("lower_bound", lambda v: 1.1 * v),
    "ridge": ("lower_bound", lambda v: 1.1 * v),
    "ridge, d=3": ("value", lambda v: 0.9 * v),
    "ridge-not-best": ("gain", lambda v: 1.1 * v),
    "gradient": ("norm", lambda v: 0.9 * v),
    "stationary": ("loss_upper", lambda v: 0.9 * v),
    "stationary, kink": ("loss_upper", lambda v: 0.9 * v),
    "spurious-minimum": ("gain", lambda v: 1.1 * v),
    "not-global": ("gain", lambda v: 1.1 * v),
    "global-minimum": ("lower_bound", lambda v: 0.1),
    "algorithm1": ("norm2_upper", lambda v: 0.9 * v),
}


# Its parts


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6))
def test_bound_of_G_is_one_and_tight(seed):
    """Against the landscape's own search; a bound below the maximum is never confirmed."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 11)), int(rng.integers(1, 6))
    X, c = rng.normal(size=(n, d)), rng.normal(size=n)
    if seed % 3 == 0 and n > 3:
        X[1], X[2], X[3] = -2.0 * X[0], 3.0 * X[0], 0.0
    problem = Problem(X, np.ones(n), leak=(0.0, 0.3)[seed % 2])
    best = max_G(problem, c)
    assert bounded(problem, c, best.upper_bound * (1 + 1e-9), best.upper_bound * (1 + 1e-9))
    assert not bounded(problem, c, best.upper_bound * (1 + 1e-9), best.value * (1 - 1e-9))


def bounded(problem, c, written, claimed):
    """Whether a tree written for one bound shows another."""
    tree = sign_tree(problem, c, written)
    assert tree is not None
    case = Case()
    case.X, case.leak = checker.numbers(problem.X.tolist()), checker.numbers(problem.leak)
    case.n, case.d, case.size = problem.n, problem.d, {"h": len(tree[1])}
    case.array = {
        name: checker.numbers(v.tolist()) for name, v in zip(("tree", "slopes"), tree, strict=True)
    }
    try:
        case.bound_G(checker.numbers(c.tolist()), checker.numbers(claimed))
    except Reject:
        return False
    return True


def test_bound_of_G_for_a_thousand_samples_in_the_plane():
    rng = np.random.default_rng(0)
    problem = Problem(rng.normal(size=(1000, 2)), np.ones(1000))
    c = rng.normal(size=1000)
    best = max_G(problem, c)
    assert bounded(problem, c, 0.0, best.upper_bound)
    assert not bounded(problem, c, 0.0, best.value * (1 - 1e-9))


@settings(max_examples=50, deadline=None)
@given(st.floats(-150, 150))
def test_exponentials_and_logarithms_are_enclosed(x):
    mpmath = pytest.importorskip("mpmath")
    number = exact.Q(*x.as_integer_ratio())
    with mpmath.workdps(600):
        assert holds(exact.exponential(number), mpmath.exp(mpmath.mpf(x)))
        assert holds(exact.root(abs(number)), mpmath.sqrt(abs(mpmath.mpf(x))))
        ball = exact.log_one_plus(exact.exponential(number))
        value = mpmath.log1p(mpmath.exp(mpmath.mpf(x)))
        assert abs(exact.nearest(ball.mid) - value) <= 1e-13 * value + 1e-60
        assert holds(ball, value)


def holds(ball, value):
    """Whether a number of mpmath lies in a ball, whose ends no float is put for."""
    low, high = (exact.fraction(end) for end in (ball.lo, ball.hi))
    return low.numerator <= value * low.denominator and value * high.denominator <= high.numerator


@settings(max_examples=50, deadline=None)
@given(st.floats(1e-60, 1e60))
def test_logarithms_and_entropies_are_enclosed(x):
    mpmath = pytest.importorskip("mpmath")
    number = exact.Q(*x.as_integer_ratio())
    with mpmath.workdps(600):
        log = mpmath.log(mpmath.mpf(x))
        for ball, value in ((exact.logarithm(number), log), (exact.entropy(number), -x * log)):
            assert holds(ball, value)
            assert abs(exact.nearest(ball.mid) - value) <= 1e-13 * abs(value)
    assert exact.logarithm(exact.ONE).rad == exact.entropy(exact.ZERO).rad == 0


@given(*[st.fractions(-100, 100)] * 2, *[st.fractions(0, 10)] * 2)
def test_balls_hold_sums_and_products(u, v, r, s):
    p, q = Ball(u, r), Ball(v, s)
    for x in (u - r, u, u + r):
        for y in (v - s, v, v + s):
            assert (p + q).lo <= x + y <= (p + q).hi
            assert (p * q).lo <= x * y <= (p * q).hi


def test_work_is_bounded(monkeypatch, samples):
    monkeypatch.setattr(checker, "MOST_PRODUCTS", 100)
    report = samples["max-margin-network"].check()
    assert report.status == "REJECTED"
    assert "more than 100 products" in report.checks[-1].remark


@pytest.mark.parametrize("loss", ["logistic", "exponential"])
def test_margin_losses_are_enclosed(loss):
    problem = Problem([[1.0, 0.0], [0.0, 1.0]], [1.0, -1.0], loss=loss)
    net = Network([[1.0, 0.5], [-0.5, 2.0]], [0.1, 0.3])
    more, slope = certificates(problem, net, ["not-global", "gradient"])
    assert more.grade == slope.grade == "PROVED"
    assert slope.claim["loss_lower"] <= problem.value(problem.outputs(net))
    # the gradient by differences of the loss
    theta, found = np.concatenate([net.W.ravel(), net.a]), []
    for step in 1e-6 * np.eye(6):
        ends = [theta + step, theta - step]
        up, down = (
            problem.value(problem.outputs(Network(t[:4].reshape(2, 2), t[4:]))) for t in ends
        )
        found.append((up - down) / 2e-6)
    assert slope.claim["norm"] == pytest.approx(np.linalg.norm(found), rel=1e-6)
    for made, name, factor in ((more, "gain", 1 + 1e-6), (slope, "norm", 1 - 1e-6)):
        false = copy.deepcopy(made.document())
        false["claim"][name] *= factor
        assert check_document(false).failed == [name]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_random_optima_are_proved(tmp_path_factory, seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 9)), int(rng.integers(2, 5))
    X, leak = rng.normal(size=(n, d)), (0.0, 0.3)[seed % 2]
    folder = tmp_path_factory.mktemp("certificates")
    for problem in (
        Problem(X, rng.choice([-1.0, 1.0], size=n), loss="logistic", leak=leak),
        Problem(X, rng.normal(size=n), leak=leak),
    ):
        for number, made in enumerate(certificates(problem)):
            report = check_certificate(write_certificate(made, folder / f"{number}.json"))
            assert report.ok, str(report)


def test_report_reads_well(stored):
    text = str(check_certificate(stored("not-global")))
    assert text.startswith("not-global: PROVED\nloss in [0.0875")
    assert "passed     gain: 0.0280517204 against 0.0280517204, the loss falls by gain > 0" in text
    false = str(check_certificate(stored("not-global", claim("gain", lambda v: 1.0))))
    assert false.startswith("not-global: REJECTED\n")
    assert "failed     gain, not shown that the loss falls by gain > 0" in false


def test_certificate_of_theta_mm():
    """[TK24] Sec. 5: four equal neurons on the axes reach min(|main| - |off|)/8, the maximum."""
    for problem in (datasets.xor_orbit(), datasets.symmetric_xor(draws=20)):
        axes = np.zeros((4, problem.d))
        axes[:, :2] = [[1, 0], [0, 1], [-1, 0], [0, -1]]
        net = Network(axes, [1.0, -1.0, 1.0, -1.0])
        (made,) = certificates(problem, net, ["margin-optimum"])
        known = problem.known["max_margin"]
        assert made.claim["margin_lower"] == pytest.approx(known, rel=1e-14)
        assert math.nextafter(made.claim["margin_lower"], 1.0) >= made.claim["margin_upper"]
        # a little less than the optimum is not it
        bent = Network(axes * [[1.0], [1.0], [1.0], [1.0 + 1e-9]], net.a)
        assert certificates(problem, bent, ["margin-optimum"]) == []
