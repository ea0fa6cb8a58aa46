"""Wrong arguments: every public function, every parameter, and not one bare error from inside.

A call may be refused in a sentence (ReluflowError), refused by Python (TypeError), or make sense
after all; what must not leave the library is an error of the machinery.
"""

import inspect
import os
from functools import cache

import numpy as np
import pytest

import reluflow as rf
from reluflow import datasets, plot

P = rf.Problem(np.array([[1.0, 0.2], [-0.3, 1.0], [0.5, -1.0]]), np.array([1.0, -1.0, 1.0]))
N = rf.initialize(P, 4, rng=0)
GOLDEN = datasets.golden()
RUN = rf.descend(P, N, lr=0.1, steps=6, save=rf.every(1))

WRONG = {
    "None": None,
    "text": "abc",
    "negative": -1,
    "not a number": float("nan"),
    "huge": 10**400,
    "complex": 1j,
    "list of text": ["a", "b"],
    "wrong shape": np.ones((2, 7, 3)),
    "object": object(),
    "dict": {"a": 1},
    "empty": [],
    "network of another size": rf.Network(np.ones((2, 5)), np.ones(2)),
    "problem": P,
    "array of nan": np.full(3, np.nan),
    "fraction": 2.5,
    "infinity": float("inf"),
    "zero": 0,
}


@cache
def process():
    return rf.limit(P, N)


WORKS = {  # arguments with which each function works, or fails for want of a file alone
    rf.algorithm1: lambda: {"problem": GOLDEN, "net": rf.initialize(GOLDEN, 4, rng=0)},
    rf.align: lambda: {"problem": P, "net": N},
    rf.axis_start: lambda: {"problem": P},
    rf.certificates: lambda: {"problem": P, "net": N},
    rf.certify: lambda: {"problem": P, "run_or_net": N, "claims": "BF24-L1"},
    rf.check_certificate: lambda: {"file": "none.json"},
    rf.cosines: lambda: {"directions": np.eye(2)},
    rf.descend: lambda: {"problem": P, "net": N, "lr": 0.1, "steps": 3},
    rf.early: lambda: {"problem": P, "net": N, "t": 1.0},
    rf.every: lambda: {"k": 1.0},
    rf.explain: lambda: {
        "problem": P,
        "m": 3,
        "scale": 1e-2,
        "seconds": 1.0,
        "lr": 0.1,
        "steps": 5,
        "progress": False,
    },
    rf.extremal_vectors: lambda: {"problem": P},
    rf.flow: lambda: {"problem": P, "net": N, "t_end": 1.0, "max_steps": 1000},
    rf.geometric: dict,
    rf.initialize: lambda: {"problem": P, "m": 3},
    rf.kkt: lambda: {"problem": P.replace(loss="logistic"), "net": N},
    rf.ledger: dict,
    rf.limit: lambda: {"problem": P, "net": N},
    rf.loss_below: lambda: {"value": 0.1},
    rf.max_G: lambda: {"problem": P},
    rf.max_margin: lambda: {"problem": P.replace(loss="logistic")},
    rf.min_norm: lambda: {"problem": P},
    rf.notes_of: lambda: {"problem": P},
    rf.drift: lambda: {"problem": P, "net": N, "weight_decay": 0.1, "span": 0.01, "save": 3},
    rf.ridge: lambda: {"problem": P, "weight_decay": 0.1},
    rf.ridge_path: lambda: {"problem": P, "smallest": 0.5, "points": 2},
    rf.phases: lambda: {"run": RUN},
    rf.read_table: lambda: {"path": "none.parquet"},
    rf.reproduce: lambda: {"paper": "no such paper"},
    rf.settled: dict,
    rf.stationarity: lambda: {"problem": P, "net": N},
    rf.stationary: dict,
    rf.sweep: lambda: {"task": "no such task", "grid": {"init.m": [2]}},
    rf.to_file_units: lambda: {"problem": P, "W": np.eye(2)},
    rf.unseen_scores: lambda: {"problem": P, "net": N},
    rf.when: lambda: {"predicate": lambda problem, net, t: True},
    rf.write_certificate: lambda: {"certificate": None, "path": "c.json"},
    rf.Problem: lambda: {"X": P.X, "y": P.y},
    rf.Problem.from_table: lambda: {"table": "none.csv"},
    rf.Network: lambda: {"W": np.eye(2), "a": np.ones(2)},
    plot.loss: lambda: {"run": RUN},
    plot.sizes: lambda: {"run": RUN},
    plot.neurons: lambda: {"net": RUN},
    plot.function: lambda: {"net": RUN},
    plot.boundary: lambda: {"net": RUN, "resolution": 20},
    plot.landscape: lambda: {"problem": P},
    plot.jumps: lambda: {"process": process()},
    plot.exponents: lambda: {"process": process()},
    plot.alignment: lambda: {"what": RUN},
    plot.margins: lambda: {"run": RUN},
    plot.verdict: lambda: {"explanation": None},
    plot.animate: lambda: {"run": RUN, "path": "a.png"},
}
WORKS |= {
    getattr(datasets, name): dict
    for name in datasets.__all__
    if inspect.isfunction(getattr(datasets, name)) and name not in ("load", "read_csv", "read_npz")
}
WORKS[datasets.load] = lambda: {"name_or_path": "none.csv"}
WORKS[datasets.read_csv] = WORKS[datasets.read_npz] = lambda: {"path": "none.csv"}

# parameters whose wrong values mean what they say: the whole of the papers; a folder of that name
MEANT = {("reproduce", "paper"), ("explain", "out"), ("explain", "y")}


def public_functions():
    """Those that ``reluflow`` and ``reluflow.plot`` list."""
    for place in (rf, plot):
        names = (getattr(place, name) for name in place.__all__)
        yield from (value for value in names if inspect.isfunction(value))


def test_no_public_function_is_forgotten():
    assert set(public_functions()) <= set(WORKS)


def calls(function):
    """(parameter, kind of wrong value, arguments) of every call to try."""
    for name, parameter in inspect.signature(function).parameters.items():
        many = parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        if many or (function.__name__, name) in MEANT:
            continue
        for kind, value in WRONG.items():
            yield name, kind, {**WORKS[function](), name: value}


@pytest.mark.parametrize("function", WORKS, ids=lambda function: function.__name__)
@pytest.mark.filterwarnings("ignore")
def test_wrong_arguments_are_refused_in_a_sentence(function, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tried, sentences = 0, {}
    for name, kind, arguments in calls(function):
        tried += 1
        try:
            function(**arguments)
        except (rf.ReluflowError, TypeError) as error:
            sentences[name, kind] = str(error).strip()
        except Exception as error:
            pytest.fail(f"{name}={kind} ends in {type(error).__name__}: {error}")
    if function is not rf.check_certificate:  # whose answer to a bad file is a report
        assert tried == 0 or len(sentences) > 0.4 * tried
    for call, sentence in sentences.items():
        assert 0 < len(sentence) < 600, call
    assert not [path for path in os.listdir(tmp_path) if path.endswith(".part")]


OBJECTS = {  # methods that a user calls with a network, a number or a name
    "problem": (P, ("loss_of", "outputs", "class_name", "replace")),
    "network": (N, ("__call__", "predict", "score", "scaled")),
    "run": (RUN, ("__getitem__", "at")),
}


@pytest.mark.parametrize(
    ("name", "method"), [(name, method) for name, (_, all_) in OBJECTS.items() for method in all_]
)
def test_methods_refuse_in_a_sentence_too(name, method):
    call, refused = getattr(OBJECTS[name][0], method), 0
    for kind, value in WRONG.items():
        try:
            call(value)
        except (rf.ReluflowError, TypeError):
            refused += 1
        except Exception as error:
            pytest.fail(f"{name}.{method}({kind}) ends in {type(error).__name__}: {error}")
    assert refused >= 5


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", ["plateau_at", "loss_at", "exponents_at", "jump_times", "at"])
def test_predictions_refuse_in_a_sentence_too(method):
    for kind, value in WRONG.items():
        try:
            getattr(process(), method)(value)
        except (rf.ReluflowError, TypeError):
            continue
        except Exception as error:
            pytest.fail(f"{method}({kind}) ends in {type(error).__name__}: {error}")


def test_neurons_and_records_go_by_number():
    with pytest.raises(rf.ReluflowError, match="neurons are chosen by indices from 0 to 3"):
        N.subset("first")
    with pytest.raises(rf.ReluflowError, match="neurons are chosen by indices from 0 to 3"):
        N.subset([7])
    with pytest.raises(rf.ReluflowError, match=r"records go by their number, got 0\.5"):
        RUN.networks[0.5]
    with pytest.raises(IndexError):
        RUN.networks[99]  # which ends the iteration over a sequence
