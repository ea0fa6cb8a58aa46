"""False statements are rejected, however their numbers are chosen; nothing raises."""

import copy
import json
import math

import numpy as np
import pytest
from truth import is_true

from reluflow import Network, Problem, datasets
from reluflow.optimum import certificates, check_certificate
from reluflow.optimum.checker import check_document

SPEC = {"name": "forged", "loss": "half_square", "factor": 1.0, "leak": 0.0, "reduction": "mean"}


def forged(kind, claim, grade="PROVED", problem=SPEC, **arrays):
    stored = {}
    for name, values in arrays.items():
        array = np.asarray(values, dtype=float)
        stored[name] = {"shape": list(array.shape), "data": array.ravel().tolist()}
    return {
        "format": "reluflow-certificate-2",
        "kind": kind,
        "grade": grade,
        "problem": problem,
        "claim": claim,
        "arrays": stored,
    }


def huge(size):
    """A sample of enormous size beside ordinary ones, whose loss and margin are 0.245 and 0.5."""
    X = [[1.0, 0.0], [0.0, 1.0], [size, 0.0]]
    W, a = [[0.0, 1.0]], [1.0]
    logistic = {**SPEC, "loss": "logistic"}
    up = {"W": [[1.0, 0.0], [0.0, 1.0]], "a": [1.0, 1.0]}
    tree = {"tree": np.zeros(0), "slopes": np.zeros((0, 3))}
    yield forged(
        "not-global",
        {"loss_lower": 122.9, "loss_upper": 123.1, "sign": 1.0, "size": 1.0, "gain": 0.1},
        X=X,
        y=[0.7, 0.3, 0.0],
        W=W,
        a=a,
        vector=[0.0, -1.0],
    )
    yield forged(
        "max-margin-network",
        {"margin": 777.0, "upper_bound": 777.0},
        problem=logistic,
        X=X,
        y=[1.0, 1.0, 1.0],
        dual=[1.0, 1.0, 0.0],
        **up,
        **tree,
    )
    yield forged(
        "max-margin-linear",
        {"margin": 777.0, "upper_bound": 777.0},
        problem=logistic,
        X=X,
        y=[1.0, 1.0, 1.0],
        dual=[1.0, 1.0, 0.0],
        w=[1.0, 1.0],
    )
    yield forged(
        "global-minimum",
        {"loss": 0.0, "lower_bound": 0.0},
        X=X,
        y=[0.7, 0.3, 0.0],
        W=W,
        a=a,
    )


@pytest.mark.parametrize("size", [1e155, 1e80, 1e20])
@pytest.mark.parametrize("number", range(4))
def test_an_enormous_sample_hides_nothing(size, number):
    report = check_document(list(huge(size))[number])
    assert report.status == "REJECTED", str(report)


@pytest.mark.parametrize("size", [1e8, 1e80])
def test_a_giant_dead_neuron_hides_no_gradient(size):
    """The proof of a stationary network with the weights of one that is not beside a giant."""
    problem = datasets.three_points()
    net = Network([problem.known["beta_star"], [1.0, -1.0]], [1.0, 1.0])
    (true,) = certificates(problem, net, ["stationary"])
    document = true.document()
    assert check_document(document).ok
    data = document["arrays"]
    data["W"]["data"][2:] = data["place"]["data"][2:] = [size, -size]
    assert check_document(document).ok  # inactive on every sample: it may be as large as it likes
    data["W"]["data"][0] += 0.5
    for place in (data["place"]["data"][0], data["W"]["data"][0]):
        data["place"]["data"][0] = place
        report = check_document(document)
        assert report.status == "REJECTED", str(report)


def test_a_tiny_sample_is_a_sample():
    """Loss .25 on the sample of size 1e-11; wide networks fit it, so the infimum is 0."""
    X, y = [[1.0, 0.0], [0.0, 1e-11]], [1.0, 1.0]
    document = forged(
        "global-minimum", {"loss": 0.25, "lower_bound": 0.25}, X=X, y=y, W=[[1.0, 0.0]], a=[1.0]
    )
    assert check_document(document).failed == ["lower bound"]
    document["claim"]["lower_bound"] = 0.0
    assert check_document(document).ok


def test_nearly_parallel_samples_are_not_parallel():
    """Labels +1 and -1 at an angle of 1e-11: the infimum is 0, not .5."""
    X, y = [[1.0, 0.0], [1.0, 1e-11]], [1.0, -1.0]
    document = forged(
        "global-minimum", {"loss": 0.5, "lower_bound": 0.5}, X=X, y=y, W=[[0.0, 0.0]], a=[0.0]
    )
    assert check_document(document).failed == ["lower bound"]
    document["arrays"]["X"]["data"][3] = 0.0  # and when they are parallel it is .5
    assert check_document(document).ok


def test_small_labels_on_small_samples_count():
    """Label 1e-10 on a sample of size 1e-12 needs the squared norm 200, not 2."""
    tree = {"tree": np.zeros(0), "slopes": np.zeros((0, 1))}
    for error, failed in ((1e-12, "fit"), (1e-10, "dual value"), (1.0, "dual value")):
        document = forged(
            "min-norm",
            {"norm2": 2.0, "lower_bound": 2.0, "error": error},
            X=[[1e-12]],
            y=[1e-10],
            W=[[1.0]],
            a=[1.0],
            dual=[1e12],
            **tree,
        )
        assert check_document(document).failed == [failed]
    (true,) = certificates(Problem([[1e-12]], [1e-10]), None, ["min-norm"])
    assert true.claim["norm2"] == pytest.approx(200.0)


@pytest.mark.parametrize("content", [None, [], {}, 17, "x", [1, [2, [3]]], {"format": {}}])
def test_whatever_a_file_holds_is_rejected(content, tmp_path):
    path = tmp_path / "c.json"
    path.write_text(json.dumps(content))
    assert check_certificate(path).failed == ["format"]


# Random mutations

BASES = [
    "max-margin-linear",
    "kkt-margin",
    "max-margin-network",
    "margin-optimum",
    "min-norm",
    "ridge",
    "ridge-not-best",
    "gradient",
    "stationary",
    "spurious-minimum",
    "not-global",
    "global-minimum",
]
STRANGE = (None, "1", [], {}, True, math.nan, math.inf, 1e200, -1e-200, 10**30, 0, -1, 2.0**70)


def mutated(document, rng):
    """A copy with one to three things changed."""
    out = copy.deepcopy(document)
    for _ in range(rng.integers(1, 4)):
        kind = rng.random()
        name = str(rng.choice(sorted(out["arrays"]))) if out["arrays"] else "X"
        if kind < 0.55 and out["arrays"].get(name, {}).get("data"):
            values = out["arrays"][name]["data"]
            place = int(rng.integers(len(values)))
            values[place] = another(values[place], rng)
        elif kind < 0.85 and out["claim"]:
            claim = str(rng.choice(sorted(out["claim"])))
            out["claim"][claim] = another(out["claim"][claim], rng)
        elif kind < 0.92:
            field = str(rng.choice(["leak", "factor", "loss", "reduction"]))
            changes = {"loss": ["square", "logistic", "half_square"], "reduction": ["sum", "mean"]}
            choices = changes.get(field, [0.0, 0.1, 0.5, 1.0, 2.0])
            out["problem"][field] = choices[int(rng.integers(len(choices)))]
        elif kind < 0.95 and out["arrays"].get(name):
            out["arrays"][name]["shape"] = [int(rng.integers(0, 5)) for _ in range(2)]
        elif kind < 0.97:
            out["arrays"].pop(name, None)
        else:
            out["kind"] = str(rng.choice(BASES))
    return out


def another(value, rng):
    if not isinstance(value, int | float) or isinstance(value, bool) or rng.random() < 0.1:
        return STRANGE[int(rng.integers(len(STRANGE)))]
    size = 10.0 ** rng.uniform(-16, 1)
    changes = (value * (1 + size), value * (1 - size), value + size, -value, 0.0, 2.0 * value)
    return changes[int(rng.integers(len(changes)))]


def statement(document):
    """What a document is about, without its proof."""
    arrays = {
        k: v for k, v in document["arrays"].items() if k in ("X", "y", "W", "a", "w", "vector")
    }
    about = {k: v for k, v in document["problem"].items() if k != "name"}
    return json.dumps([document["kind"], about, document["claim"], arrays], sort_keys=True)


def survivors(samples, count, seed):
    """Mutated documents that are still proved; those that say the same as before are left out."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        base = samples[BASES[number % len(BASES)]].document()
        document = mutated(base, rng)
        report = check_document(document)
        assert report.status in ("PROVED", "REJECTED")
        assert is_reasoned(report), str(report)
        if report.ok and statement(document) != statement(base):
            yield document


def is_reasoned(report):
    """Whether a rejection is a step of the proof that fails, and not an accident of arithmetic."""
    return not any("malformed" in check.remark for check in report.checks)


def zeroed(document):
    """Copies with a claim, an entry, an array or everything set to 0."""
    for name in document["claim"]:
        out = copy.deepcopy(document)
        out["claim"][name] = 0
        yield name, out
    for name, array in document["arrays"].items():
        for i in range(min(len(array["data"]), 12)):
            out = copy.deepcopy(document)
            out["arrays"][name]["data"][i] = 0.0
            yield f"{name}[{i}]", out
        out = copy.deepcopy(document)
        out["arrays"][name]["data"] = [0.0] * len(array["data"])
        yield name, out
    for name in ("leak", "factor"):
        out = copy.deepcopy(document)
        out["problem"][name] = 0.0
        yield name, out


def test_whatever_is_zero_is_refused_with_a_reason_or_true(samples):
    """Nothing is divided by before it is known not to be 0: a bound, a norm, a rate, a wait."""
    for kind, certificate in samples.items():
        base = certificate.document()
        for what, document in zeroed(base):
            report = check_document(document)
            assert is_reasoned(report), f"{kind}, {what}: {report}"
            if report.ok and statement(document) != statement(base) and kind in BASES:
                assert is_true(document, dual_of(document)), f"{kind}, {what}"


def test_no_lower_bound_of_zero(samples):
    document = samples["min-norm"].document()
    document["claim"]["lower_bound"] = 0
    report = check_document(document)
    assert report.failed == ["dual value"]
    assert is_reasoned(report), str(report)  # not for want of a division that could be done


def test_entries_are_numbers_and_indices_exist(samples):
    """A list in place of a number, a neuron before the first, an entry behind the last."""
    document = samples["max-margin-linear"].document()
    document["arrays"]["y"]["data"][0] = [1.0]
    assert "holds a list" in str(check_document(document))
    for name, value in (("free_neuron", -1), ("free_entry", 2), ("row_index", 3)):
        document = samples["stationary"].document()
        if document["arrays"][name]["data"]:
            document["arrays"][name]["data"][0] = value
            report = check_document(document)
            assert report.status == "REJECTED"
            assert is_reasoned(report), str(report)


def dual_of(document):
    """The multipliers to bound with; those of the document, which the test is free to use."""
    return document["arrays"].get("dual", {"data": []})["data"]


def test_the_certificates_themselves_are_true(samples):
    for name in BASES:
        document = samples[name].document()
        assert is_true(document, dual_of(document)), name


def test_mutations_that_are_proved_are_true(samples):
    found = [is_true(d, dual_of(d)) for d in survivors(samples, 180, 0)]
    assert all(found)
    assert found  # some claims became weaker, and are still true


@pytest.mark.slow
def test_a_thousand_mutations_that_are_proved_are_true(samples):
    found = [is_true(d, dual_of(d)) for d in survivors(samples, 1000, 1)]
    assert all(found)
    assert len(found) > 50
