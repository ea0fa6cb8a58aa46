"""Calls that nobody means: command lines, labels of many kinds, estimators, requests of a page."""

import contextlib
import io
import json
import sys
import warnings

import numpy as np
from damage import ODD, changed_bytes, changed_json, pick
from files import table_text

NUMBERS = (
    "-1", "0", "1", "3", "nan", "inf", "-inf", "1e999", "1e-320", "x", "", "1.5", "9" * 25, "-0",
    "1e-3", "0.5", "true", "[1]", "1,2",
)  # fmt: skip
TABLE = ("--label", "--classes", "--one-vs-rest", "--test", "--holdout", "--bias", "--loss")
OPTIONS = {
    "explain": ("--m", "--scale", "--seed", "--lr", "--steps", "--seconds", "--image-shape")
    + ("--weight-decay", *TABLE),
    "simulate": ("--m", "--scale", "--log-scale", "--seed", "--lr", "--rtol", "--every", "--clock")
    + TABLE,
    "predict": ("--m", "--seed", "--scale", "--loss", "--leak", *TABLE[:-1]),
    "certify": ("--claims", *TABLE),
    "claims": ("--json", "--paper"),
    "sweep": ("--seeds", "--workers", "-o"),
    "studio": ("--port",),
    "datasets": ("--json",),
}
WORDS = {
    "--label": ("y", "a", "c0", "0", "-1", *ODD),
    "--classes": ("u,v", "v,u", "u", "u,u", ",", "u,zz", "u,v,w", *ODD),
    "--one-vs-rest": ("u", "w", "zz", "1", *ODD),
    "--test": ("t.csv", "other.csv", "t.npz", ".", "nothing.csv", "three-points", *ODD),
    "--loss": ("square", "logistic", "exponential", "half_square", "hinge", *ODD),
}


def words_of_three(rng):
    """A table of three classes by name, whole or with odd cells."""
    rows = [["a", "b", "y"]]
    rows += [[f"{v:.3g}" for v in rng.standard_normal(2)] + ["uvw"[i % 3]] for i in range(9)]
    for _ in range(rng.integers(0, 2)):
        pick(rng, rows)[int(rng.integers(3))] = pick(rng, ODD)
    return "\n".join(",".join(row) for row in rows) + "\n"


def run_command(given):
    """Call the command line; its exit code and sentence are what they should be."""
    from reluflow.cli.main import main

    sys.argv = ["reluflow", *given]
    said, printed = io.StringIO(), io.StringIO()
    code = None
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(printed):
        try:
            main()
        except SystemExit as left:
            code = left.code or 0
    text = said.getvalue()
    assert code in (0, 1, 2), f"{given}: {code}"
    assert "Traceback" not in text, f"{given}: {text[-300:]}"
    assert "memory ran out" not in text, f"{given}: {text[-300:]}"
    if code == 2:
        assert len(text.strip().splitlines()) == 1, f"{given}: {text[-300:]}"
    return code


def arguments(rng, place):
    """Command lines: exit code and one sentence, whatever the options are."""
    for name in ("t.csv", "other.csv"):
        text = words_of_three(rng) if rng.random() < 0.7 else table_text(rng)
        (place / name).write_text(text, encoding="utf-8")
    np.savez(place / "t.npz", X=rng.standard_normal((4, 2)), y=rng.standard_normal((4, 2)))
    command = pick(rng, list(OPTIONS))
    given = [command]
    if command not in ("claims", "datasets"):
        known = ("three-points", "nothing", "", "golden", str(place), "x.csv", "/dev/null", "-")
        known = ("t.csv",) if rng.random() < 0.5 else known
        given.append(pick(rng, known[:1] if rng.random() < 0.6 else known))
    for option in OPTIONS[command]:
        if rng.random() < (0.4 if option not in TABLE else 0.2):
            given += [option, pick(rng, WORDS.get(option, NUMBERS))]
    if command in ("explain", "predict") or (command == "simulate" and rng.random() < 0.5):
        given += ["--m", "-1"]  # all the others are looked at first, and nothing long begins
    elif command == "simulate":
        given += ["--m", "3", "--lr", "0.1", "--steps", "3", "--overwrite"]
    elif command == "certify":
        given += ["--claims", "none"]  # found out after the data have been read
    elif command == "studio":
        given += ["--port", "99999"]  # it would serve for ever
    run_command(given)


def odd_array(rng, shape):
    """Numbers of this shape, or something that is hardly that."""
    plain = rng.standard_normal(shape)
    match int(rng.integers(12)):
        case 0:
            plain.flat[: plain.size // 2] = pick(rng, (np.nan, np.inf, 1e300, 1e-300, 0.0))
        case 1:
            with np.errstate(over="ignore"):
                return plain * pick(rng, (0.0, 1e-160, 1e60, 1e308))
        case 2:
            return plain.astype(pick(rng, ("f4", "i4", "?", "c16", "U3", "O")))
        case 3:
            return plain[..., None]
        case 4:
            return plain[:0]
        case 5:
            return plain.tolist()
        case 6:
            return pick(rng, (None, 3.0, "text", {}, [[1], [2, 3]], np.ones(())))
    return plain


def labels_of(rng, n):
    """Labels: numbers, matrices of several outputs, classes one-hot or by name."""
    K = pick(rng, (0, 1, 2, 3, 7, 200))
    match int(rng.integers(5)):
        case 0:
            return odd_array(rng, n)
        case 1:
            return odd_array(rng, (n, K))
        case 2:
            return np.eye(max(K, 1))[rng.integers(0, max(K, 1), n)]
        case 3:
            return np.array(pick(rng, (ODD, list("uvw"), ["one"])))[rng.integers(0, 1, n)]
        case _:
            return rng.integers(0, K + 1, n + int(rng.random() < 0.1))


def labels(rng, place):
    """Several outputs and weight decay: problem, start, a few steps of each engine."""
    from reluflow import Problem, descend, flow, initialize

    n, d = (int(v) for v in rng.integers(1, 6, 2))
    losses = (None, "square", "logistic", "exponential", "cross_entropy", "softmax", "x", 3)
    given = {} if rng.random() < 0.4 else {"loss": pick(rng, losses)}
    X = odd_array(rng, (n, d)) if rng.random() < 0.3 else rng.standard_normal((n, d))
    decay = pick(rng, (0.0, 0.0, 0.1, 1e-300, 1e300, -1.0, float("nan"), float("inf"), "x", None))
    problem = Problem(X, labels_of(rng, n), **{k: v for k, v in given.items() if v is not None})
    net = initialize(problem, int(rng.integers(0, 5)), pick(rng, (1e-3, 0.5, 1e-200)), rng=0)
    run = descend(problem, net, lr=0.1, steps=3, weight_decay=decay, progress=False)
    assert run.status.code, "a run without a status"
    flow(problem, net, t_end=0.5, max_steps=20, weight_decay=decay, progress=False)


PARAMETERS = {
    "n_neurons": (3, 0, -1, 1.5, "x", None, True, 10**15, float("nan")),
    "scale": (1e-3, 0, -1.0, "x", None, float("inf"), 1e-320),
    "method": ("flow", "descent", "limit", "x", None, 3),
    "loss": ("square", "logistic", "x", None, 3, "half_square", "exponential"),
    "leak": (0.0, 0.5, 1.0, -1.0, "x", None, float("nan")),
    "bias": (None, 1.0, 0.0, "x", float("nan"), 1e300),
    "standardize": (True, False, None, "x", 3),
    "duration": (1.0, 0.0, -1.0, float("inf"), float("nan"), "x", None, 1e-300),
    "learning_rate": (None, 0.1, 0.0, -1.0, float("nan"), "x", 1e300),
    "max_steps": (20, 0, -1, 1.5, None, "x", True),
    "weight_decay": (0.0, 0.1, 1e300, -1.0, float("nan"), "x", None),
    "random_state": (0, -1, None, "x", 1.5, 2**40),
}


def estimators(rng, place):
    """Parameters and data of the two estimators: fitted, or a ValueError of one sentence."""
    from reluflow import ReluflowError
    from reluflow.estimators import SmallInitClassifier, SmallInitRegressor

    n, d = int(rng.integers(1, 8)), int(rng.integers(1, 4))
    kind = pick(rng, (SmallInitRegressor, SmallInitClassifier))
    known = kind().get_params()
    given = {"n_neurons": 3, "max_steps": 20, "random_state": 0}
    for name, values in PARAMETERS.items():
        if name in known and rng.random() < 0.2:
            given[name] = pick(rng, values)
    X = odd_array(rng, (n, d)) if rng.random() < 0.4 else rng.standard_normal((n, d))
    y = labels_of(rng, n)
    wrong = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            kind(**given).fit(X, y).predict(odd_array(rng, (3, d)))
        except ReluflowError:
            raise
        except (ValueError, TypeError) as error:
            wrong = error
    # a ValueError of one line is what scikit-learn asks for; its own may say it otherwise
    said = str(wrong)
    ours = isinstance(wrong, ValueError) and "\n" not in said and "broadcast" not in said
    assert wrong is None or ours or "sklearn" in raised_in(wrong), f"{given}: {wrong!r}"


def raised_in(error):
    """The file that raised an error."""
    place = error.__traceback__
    while place.tb_next is not None:
        place = place.tb_next
    return place.tb_frame.f_code.co_filename


REQUEST = {
    "type": "predict",
    "id": 1,
    "side": "A",
    "kind": "csv",
    "settings": {
        "data": {"source": "points", "rows": [[1.0, 0.5, 1.0], [-1.0, 2.0, -1.0]]},
        "loss": "half_square",
        "leak": 0.0,
        "bias": 1.0,
        "start": {"m": 4, "scale": 1e-3, "kind": "balanced", "signs": "random", "seed": 0},
        "t_end": 5.0,
    },
}


class Silent:
    """A worker that takes jobs and never answers."""

    ready = alive = True

    def __init__(self):
        self.jobs = []

    def submit(self, job, blob):
        self.jobs.append((job, blob))
        return True

    def listen(self, hear):
        self.hear = hear

    cancel = close = lambda self: None


def studio(rng, place):
    """Messages of a page: taken, or refused in a sentence that names no error of ours."""
    from reluflow.playback.messages import from_block, to_block
    from reluflow.studio import worker
    from reluflow.studio.server import _read
    from reluflow.studio.session import Session

    worker.PREDICT_SECONDS, worker.RUN_SECONDS = 0.5, 0.5
    message = json.loads(json.dumps(REQUEST))
    if rng.random() < 0.4:
        text = words_of_three(rng) if rng.random() < 0.5 else table_text(rng)
        name = pick(rng, ("t.csv", "t.npz", "t", "../../t.csv", "t.parquet", "t.xlsx", *ODD))
        message["settings"]["data"] = {"source": "table", "name": name, "text": text}
    elif rng.random() < 0.3:
        message["settings"]["data"] = {"source": "built-in", "name": pick(rng, ("golden", *ODD))}
    message["type"] = pick(rng, ("predict", "predict", "simulate", "export", "cancel", "x"))
    for _ in range(rng.integers(0, 3)):
        message = changed_json(message, rng)
    blob = None
    if rng.random() < 0.2:
        block = to_block({"type": "predict"}, {"blob": np.arange(9, dtype=np.uint8)})
        _read({"bytes": changed_bytes(block, rng)})
        blob = rng.bytes(40)
    _read({"text": json.dumps(message)[: int(rng.integers(1, 900))]})
    sent, engine = [], Silent()
    session = Session(sent.append, engine)
    session.receive(message, blob)
    desk = worker.Desk(lambda message, arrays=None: sent.append(to_block(message, arrays)))
    for job, file in engine.jobs:
        worker._do(desk, job, file)
    session.close()
    refused = [m for m in (from_block(block)[0] for block in sent) if m["type"] == "refused"]
    for each in refused:
        said = each["sentence"]
        assert "unexpectedly" not in said, f"{message}: {said}"
        assert "memory ran out" not in said, f"{message}: {said}"
        assert "\n" not in said, f"{message}: {said}"
