"""What a killed command left, damaged since: the next one says so, or ends as it would have."""

import io
import json

import numpy as np
from damage import changed_bytes, changed_json, pick

_kept = {}


class Killed(BaseException):
    """As a SIGKILL: nothing in the library catches it."""


def _problem(several):
    from reluflow import Problem, initialize

    rng = np.random.default_rng(5)
    problem = Problem(rng.standard_normal((6, 3)), rng.standard_normal((6, 2) if several else 6))
    return problem, initialize(problem, 4, 1e-2, rng=0)


def _call(engine, several, path):
    """A short run with a checkpoint."""
    from reluflow import descend, flow

    problem, net = _problem(several)
    given = {"checkpoint": path, "checkpoint_seconds": 0.0, "weight_decay": 0.01}
    if engine == "descent":
        return descend(problem, net, lr=0.05, steps=400, save=[0, 200, 400], **given)
    return flow(problem, net, t_end=8.0, kinks=engine == "flow", **given)


def changed_arrays(data, rng):
    """An archive of arrays that can be read, with its key, in which one array is another."""
    with np.load(io.BytesIO(data), allow_pickle=False) as stored:
        arrays = dict(stored)
    name = pick(rng, sorted(set(arrays) - {"key"}))
    old = arrays[name]
    match int(rng.integers(6)):
        case 0:
            del arrays[name]
        case 1:
            arrays[name] = old[..., None]
        case 2:
            arrays[name] = old.astype("U8")
        case 3:
            arrays[name] = np.zeros(7)
        case 4:
            arrays["one_more"] = old
        case _:
            arrays[name] = old.reshape(-1)[:0]
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def checkpoints(rng, place):
    """Checkpoints of every engine: the same numbers in the end, or one sentence."""
    from reluflow.runtime import checkpoint as module
    from reluflow.runtime.checkpoint import KeptFile

    engine, several = pick(rng, ("descent", "flow", "unlocated")), bool(rng.random() < 0.5)
    path = place / "run.checkpoint"
    path.unlink(missing_ok=True)
    if (engine, several) not in _kept:
        whole = _call(engine, several, path)
        write = module.Checkpoint.write

        def once(self, state):
            write(self, state)
            raise Killed

        module.Checkpoint.write = once
        try:
            _call(engine, several, path)
        except Killed:
            pass
        finally:
            module.Checkpoint.write = write
        _kept[engine, several] = whole, path.read_bytes()
    whole, data = _kept[engine, several]
    damaged = changed_bytes(data, rng) if rng.random() < 0.6 else changed_arrays(data, rng)
    path.write_bytes(damaged)
    run = _call(engine, several, KeptFile(path) if rng.random() < 0.5 else path)
    assert run.loss.tobytes() == whole.loss.tobytes(), f"{engine}, {several}: other numbers"


def journals(rng, place):
    """Tables of a sweep that was killed: every point once in the end, or one sentence."""
    from reluflow.sweeps import read_table, sweep

    out = place / pick(rng, ("t.jsonl", "t.parquet"))
    for path in place.glob("t.*"):
        path.unlink()
    if out.suffix not in _kept:
        sweep("min_norm", {"problem.name": ["golden", "toy6"]}, out=out, executor="serial")
        _kept[out.suffix] = out.read_bytes()
        _kept["rows"] = read_table(out).counts()
    out.write_bytes(changed_bytes(_kept[out.suffix], rng))
    journal = place / "t.parquet.journal"
    if out.suffix == ".parquet" and ".jsonl" in _kept and rng.random() < 0.7:
        out.unlink()
        journal.write_bytes(changed_bytes(_kept[".jsonl"], rng))
    table = sweep("min_norm", {"problem.name": ["golden", "toy6"]}, out=out, executor="serial")
    assert table.counts() == _kept["rows"], table.counts()


def reports(rng, place):
    """report.json of another time: whatever is in it, an explanation may replace it."""
    from reluflow.explanation.files import report_on_other_data
    from reluflow.explanation.settings import Settings

    problem, _ = _problem(False)
    key = Settings(4, 1e-2, 0, None, None, 1.0, None, 0.0).key(problem)
    document = {"software": "reluflow 0.2.0", "problem": {"name": "x", "n": 3}, "key": key}
    text = json.dumps(changed_json(document, rng)).encode()
    (place / "report.json").write_bytes(changed_bytes(text, rng) if rng.random() < 0.5 else text)
    said = report_on_other_data(place, pick(rng, (key, "another")))
    assert said is None or isinstance(said, str)
