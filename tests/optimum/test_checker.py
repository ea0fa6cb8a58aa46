"""The checker accepts what is written and names what is wrong with what was changed."""

import ast
import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reluflow.optimum.checker as checker
from reluflow import Problem, datasets
from reluflow.landscape import max_G
from reluflow.optimum import Certificate, certificates, check_certificate, exact, write_certificate

KINDS = [
    "max-margin-linear", "kkt-margin", "kkt-margin, ReLU", "max-margin-network",
    "max-margin-network, d=3", "min-norm", "stationary", "stationary, kink", "not-global",
    "global-minimum",
]  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_accepts_what_is_written(name, samples, stored):
    report = check_certificate(stored(name), X=samples[name].arrays["X"])
    assert report.ok, str(report)
    assert report.kind == samples[name].kind
    assert report.failed == []
    assert "accepted" in str(report)


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


CORRUPTIONS = [
    # changed data
    ("max-margin-linear", entry("X", 0, lambda v: v - 0.5), "margin"),
    ("max-margin-network", entry("X", 1, lambda v: v + 0.3), "upper bound"),
    ("min-norm", entry("X", 0, lambda v: v * 1.001), "fit"),
    ("stationary", entry("X", 0, lambda v: v + 1e-3), "residual"),
    ("kkt-margin", entry("X", 0, lambda v: v + 1e-3), "residual"),
    # labels
    ("max-margin-linear", entry("y", 0, lambda v: -v), "all classified"),
    ("kkt-margin", entry("y", 1, lambda v: 0.5), "format"),
    ("not-global", entry("y", 1, lambda v: v + 0.1), "loss"),
    ("global-minimum", entry("y", 0, lambda v: v + 1e-3), "excess"),
    # margins, norms, losses
    ("max-margin-linear", claim("margin", lambda v: v * (1 + 1e-9)), "margin"),
    ("max-margin-network", claim("margin", lambda v: v * 1.01), "margin"),
    ("kkt-margin", claim("margin", lambda v: v + 1e-6), "margin"),
    ("min-norm", claim("norm2", lambda v: v - 1e-6), "norm"),
    ("stationary", claim("loss", lambda v: v * 0.999), "loss"),
    ("not-global", claim("gain", lambda v: v * 1.0001), "gain"),
    ("not-global", claim("size", lambda v: -v), "sign and size"),
    # bounds
    ("max-margin-linear", claim("upper_bound", lambda v: v * (1 - 1e-6)), "upper bound"),
    ("max-margin-network", claim("upper_bound", lambda v: v * (1 - 1e-6)), "upper bound"),
    ("max-margin-network, d=3", claim("upper_bound", lambda v: v * (1 - 1e-7)), "upper bound"),
    ("max-margin-network", claim("upper_bound", lambda v: v * 1.01), "gap"),
    ("min-norm", claim("lower_bound", lambda v: v * 1.0001), "lower bound"),
    ("min-norm", claim("lower_bound", lambda v: v * 0.99), "gap"),
    ("min-norm", claim("lower_bound", lambda v: -v), "lower bound"),
    ("kkt-margin", claim("residual", lambda v: 0.5), "residual small"),
    ("stationary", claim("residual", lambda v: 0.5), "residual small"),
    ("global-minimum", claim("excess", lambda v: 0.1), "excess small"),
    # multipliers
    ("max-margin-linear", entry("dual", 0, lambda v: v + 0.1), "upper bound"),
    ("max-margin-linear", entry("dual", 1, lambda v: -1e-9), "multipliers >= 0"),
    ("max-margin-network", entry("dual", 0, lambda v: -0.5), "multipliers >= 0"),
    ("max-margin-network, d=3", entry("dual", 0, lambda v: v + 0.01), "upper bound"),
    ("kkt-margin", entry("dual", 0, lambda v: v * 1.1), "residual"),
    ("kkt-margin, ReLU", entry("dual", 1, lambda v: v + 0.1), "residual"),
    ("min-norm", entry("dual", 0, lambda v: v * 1.1), "lower bound"),
    # networks
    ("kkt-margin", entry("W", 0, lambda v: v * 1.001), "residual"),
    ("max-margin-network", entry("a", 0, lambda v: -v), "all classified"),
    ("min-norm", entry("W", 0, lambda v: v + 1e-6), "fit"),
    ("stationary", entry("W", 0, lambda v: v + 1e-4), "residual"),
    ("global-minimum", entry("a", 0, lambda v: v * 1.01), "excess"),
    ("max-margin-linear", entry("w", 0, lambda v: v * 2), "unit w"),
    ("not-global", entry("vector", 0, lambda v: v * 2), "unit vector"),
    ("not-global", claim("sign", lambda v: -v), "loss falls"),
    # kinks
    ("stationary, kink", entry("kink_slope", 0, lambda v: 1.0), "residual"),
    ("stationary, kink", entry("kink_slope", 0, lambda v: -2.0), "kink slopes"),
    ("stationary, kink", entry("kink_sample", 0, lambda v: 1), "kink distance"),
    ("stationary, kink", entry("kink_sample", 0, lambda v: 7), "kink places"),
    ("kkt-margin, ReLU", entry("kink_slope", 0, lambda v: 1.0 - v), "residual"),
    # the problem
    ("max-margin-network", about("leak", 0.4), "margin"),
    ("stationary", about("leak", 2.0), "format"),
    ("stationary", about("loss", "square"), "loss"),
    ("not-global", about("loss", "cosine"), "format"),
    ("stationary", about("reduction", "sum"), "loss"),
    ("stationary", about("factor", 3.0), "loss"),
    # the file
    ("stationary", top("format", "reluflow-certificate-2"), "format"),
    ("stationary", top("kind", "not-global"), "format"),
    ("max-margin-network", top("kind", "min-norm"), "format"),
    ("stationary", top("kind", "true"), "format"),
    ("stationary", lambda document: document["arrays"].pop("a"), "format"),
    ("stationary", lambda document: document.pop("claim"), "format"),
    ("stationary", entry("W", 0, lambda v: math.nan), "format"),
    ("stationary", entry("W", 0, lambda v: "1"), "format"),
    ("stationary", entry("W", 0, lambda v: None), "format"),
    ("stationary", claim("loss", lambda v: "small"), "format"),
    ("stationary", lambda d: d["arrays"]["X"].__setitem__("shape", [2, 3]), "format"),
    ("stationary", lambda d: d["arrays"]["X"].__setitem__("shape", [10**15, 10**15]), "format"),
    ("stationary", text_of(lambda text: text.replace(": 0.0875", ": 1e999")), "format"),
    ("stationary", text_of(lambda text: text[: len(text) // 2]), "format"),
    ("stationary", text_of(lambda text: "[" * 100_000), "format"),
    ("stationary", text_of(lambda text: "17"), "format"),
]


@pytest.mark.parametrize("number", range(len(CORRUPTIONS)))
def test_names_what_is_wrong(number, stored):
    name, change, expected = CORRUPTIONS[number]
    report = check_certificate(stored(name, change))
    assert not report.ok
    assert report.status == "rejected"
    assert expected in report.failed, str(report)


def test_data_given_must_be_those_of_the_certificate(stored, samples):
    X, y = samples["stationary"].arrays["X"], samples["stationary"].arrays["y"]
    assert check_certificate(stored("stationary"), X=X, y=y).ok
    assert check_certificate(stored("stationary"), X=X + 1e-9).failed == ["data"]
    assert check_certificate(stored("stationary"), y=y[:2]).failed == ["data"]


def test_files_that_are_no_certificates(tmp_path):
    path = tmp_path / "file.json"
    assert "does not exist" in check_certificate(path).checks[0].remark
    path.write_bytes(pickle.dumps({"format": checker.__name__}))
    assert check_certificate(path).failed == ["format"]
    path.write_text("{}" + " " * 1000)
    assert "max_bytes" in check_certificate(path, max_bytes=100).checks[0].remark


def test_checker_is_short_and_shares_no_numerical_code():
    source = Path(checker.__file__).read_text()
    assert len(source.splitlines()) < 300
    allowed = {
        "__future__", "json", "math", "os", "dataclasses", "pathlib", "typing", "fractions",
        "collections.abc", "numpy", "numpy.typing", "flint", "reluflow.errors", "reluflow._version",
        "reluflow.optimum.certificate_file", "reluflow.optimum.exact", "reluflow.runtime.files",
    }  # fmt: skip
    for module in ("checker.py", "certificate_file.py", "exact.py"):
        text = Path(checker.__file__).with_name(module).read_text()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                assert {alias.name for alias in node.names} <= allowed
            elif isinstance(node, ast.ImportFrom):
                names = {f"{node.module}.{alias.name}" for alias in node.names}
                assert node.module in allowed or names <= allowed, (module, names)


@settings(max_examples=50)
@given(st.integers(0, 10**6))
def test_bound_of_G_is_one_and_tight(seed):
    """Against the landscape's own search; a claim below the maximum is never confirmed."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 13)), int(rng.integers(1, 7))
    X, c = rng.normal(size=(n, d)), rng.normal(size=n)
    if seed % 3 == 0 and n > 3:
        X[1], X[2], X[3] = -2.0 * X[0], 3.0 * X[0], 0.0
    problem = Problem(X, np.ones(n), leak=(0.0, 0.3)[seed % 2])
    best = max_G(problem, c)
    bound, done = _case(problem).largest_G(c, best.upper_bound)
    assert done
    assert best.value <= bound <= best.value * (1 + 1e-9)
    low, _ = _case(problem).largest_G(c, 0.999 * best.value)
    assert low >= best.value * (1 - 1e-12)


def _case(problem, W=None, a=None):
    arrays = {"X": problem.X, "y": problem.y, "W": np.ones((1, problem.d)), "a": np.ones(1)}
    if W is not None:
        arrays |= {"W": np.array(W), "a": np.array(a)}
    kinks = {"kink_neuron": [], "kink_sample": [], "kink_slope": []}
    spec = {"loss": "half_square", "factor": 1.0, "leak": problem.leak, "reduction": "sum"}
    claims = {"loss": 0.0, "residual": 0.0}
    return checker.Case(Certificate("stationary", spec, claims, {**arrays, **kinks}))


def test_bound_of_G_for_thousands_of_samples_in_the_plane():
    rng = np.random.default_rng(0)
    problem = Problem(rng.normal(size=(1500, 2)), np.ones(1500))
    c = rng.normal(size=1500)
    best = max_G(problem, c)
    bound, done = _case(problem).largest_G(c, best.upper_bound)
    assert done
    assert best.value <= bound <= best.value * (1 + 1e-9)


def test_too_many_kinks_are_unverified_and_not_accepted(tmp_path):
    """A margin certificate whose dual spreads over 40 samples in three dimensions."""
    rng = np.random.default_rng(2)
    problem = Problem(rng.normal(size=(60, 3)), rng.choice([-1.0, 1.0], size=60), loss="logistic")
    W, a = np.ones((1, 3)), np.ones(1)
    dual = np.full(60, 1 / 60)
    claims = {"margin": 1.0, "upper_bound": 1.0}
    spec = {"loss": "logistic", "factor": 1.0, "leak": 0.0, "reduction": "mean"}
    arrays = {"X": problem.X, "y": problem.y, "W": W, "a": a, "dual": dual}
    made = Certificate("max-margin-network", spec, claims, arrays)
    report = check_certificate(write_certificate(made, tmp_path / "c.json"))
    status = {check.name: check.status for check in report.checks}
    assert status["upper bound"] == "unverified"
    assert not report.ok


@settings(max_examples=15)
@given(st.integers(0, 10**6))
def test_random_optima_are_accepted(tmp_path_factory, seed):
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


# Exact arithmetic


def test_exact_signs():
    assert exact.sign(exact.dot([1.0, 1.0, 1.0], [1e16, 1.0, -1e16])) == 1
    assert sum(p * q for p, q in zip([1.0, 1.0, 1.0], [1e16, 1.0, -1e16], strict=True)) == 0.0
    assert exact.sign(exact.rational(0.1) + exact.rational(0.2) - exact.rational(0.3)) == 1
    assert exact.output([[1.0], [1.0]], [1.0, -1.0], [2.0], 0.0) == 0
    assert exact.output([[-1.0]], [1.0], [2.0], 0.5) == -1


def test_sign_at_a_kink_is_exact():
    problem = Problem([[1e16, 1.0, -1e16]], [1.0])
    case = _case(problem, [[1.0, 1.0, 1.0]], [1.0])
    assert case.slopes() == pytest.approx(np.ones((1, 1)))
    case = _case(Problem([[1e16, -1.0, -1e16]], [1.0]), [[1.0, 1.0, 1.0]], [1.0])
    assert case.slopes() == pytest.approx(np.zeros((1, 1)))


@pytest.mark.parametrize(("last", "status"), [(2.0**-52, "passed"), (-(2.0**-53), "failed")])
def test_classification_is_exact(last, status):
    """f(x) is a difference of ones: its sign is beyond the checker's allowance for rounding."""
    case = _case(Problem([[1.0, 1.0]], [1.0]), np.eye(2), [1.0 + last, -1.0])
    case.margin_is(0.0)
    assert {check.name: check.status for check in case.report.checks}["all classified"] == status


@pytest.mark.parametrize(("sign", "falls"), [(1.0, "passed"), (-1.0, "failed")])
def test_a_gain_below_rounding_is_decided_exactly(tmp_path, sign, falls):
    spec = {"loss": "half_square", "factor": 1.0, "leak": 0.0, "reduction": "mean"}
    arrays = {"X": [[1.0]], "y": [1.0], "W": [[1.0]], "a": [1.0 - 2.0**-30], "vector": [1.0]}
    claims = {"loss": 2.0**-61, "sign": sign, "size": 2.0**-60, "gain": 0.0}
    made = Certificate("not-global", spec, claims, arrays)
    report = check_certificate(write_certificate(made, tmp_path / "c.json"))
    assert {check.name: check.status for check in report.checks}["loss falls"] == falls


def test_report_reads_well(stored):
    text = str(check_certificate(stored("not-global")))
    assert text.startswith("not-global: accepted")
    assert "passed     gain: 0.0280517204 against 0.0280517204" in text


def test_certificate_of_theta_mm(tmp_path):
    """[TK24] Sec. 5: four equal neurons on the axes reach min(|main| - |off|)/8, the maximum."""
    problem = datasets.xor_orbit()
    axes = np.zeros((4, problem.d))
    axes[:, :2] = [[1, 0], [0, 1], [-1, 0], [0, -1]]
    (found,) = certificates(problem, None, ["max-margin-network"])
    a = np.array([1.0, -1.0, 1.0, -1.0])
    f = np.maximum(problem.X @ axes.T, 0.0) @ a
    margin = float((problem.y * f).min() / 8.0)
    assert margin == pytest.approx(problem.known["max_margin"], rel=1e-14)
    claims = {"margin": margin, "upper_bound": found.claim["upper_bound"]}
    arrays = {**found.arrays, "W": axes, "a": a}
    made = Certificate("max-margin-network", found.problem, claims, arrays)
    report = check_certificate(write_certificate(made, tmp_path / "mm.json"))
    assert report.ok, str(report)
