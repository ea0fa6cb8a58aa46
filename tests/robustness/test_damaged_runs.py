"""Stored runs whose bytes changed: refused in one sentence, or the same run."""

import contextlib
import json

import numpy as np
import pytest

from reluflow import ReluflowError, Trajectory, datasets, descend, initialize
from reluflow.trajectory.store import MARK


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Bytes of a run, with its hash and without."""
    problem = datasets.three_points()
    run = descend(problem, initialize(problem, 5, rng=0), lr=0.05, steps=50, save=[0, 25, 50])
    path = tmp_path_factory.mktemp("runs") / "run.nc"
    run.save(path)
    return run, path.read_bytes()


def mutated(data, rng):
    """A copy with some bytes changed, moved, cut off or repeated."""
    out = bytearray(data)
    kind, place = rng.integers(6), int(rng.integers(len(data)))
    length = int(rng.integers(1, 64))
    if kind == 0:
        out[place] ^= 1 << int(rng.integers(8))
    elif kind == 1:
        out[place : place + length] = rng.bytes(length)
    elif kind == 2:
        del out[place:]
    elif kind == 3:
        del out[place : place + length]
    elif kind == 4:
        out[place:place] = rng.bytes(length)
    else:
        out[place : place + length] = bytes(length)
    return bytes(out)


def test_the_hash_is_behind_the_file(stored, tmp_path):
    run, data = stored
    assert data[-len(MARK) - 65 :].startswith(MARK)
    path = tmp_path / "run.nc"
    path.write_bytes(data[: data.rindex(MARK)])  # as other software writes it
    assert Trajectory.load(path).loss.tolist() == run.loss.tolist()
    place = data.index(run.loss.tobytes())
    path.write_bytes(data[:place] + b"\x17" + data[place + 1 :])  # a plausible loss, but not ours
    with pytest.raises(ReluflowError, match="its bytes are not those that were written"):
        Trajectory.load(path)


def read(path):
    """The run; None if it is refused, in one sentence."""
    sentence = ""
    try:
        return Trajectory.load(path)
    except ReluflowError as error:
        sentence = str(error)
    assert "\n" not in sentence
    return None


def test_a_changed_byte_is_noticed(stored, tmp_path):
    """Wherever it is, unless it is in the mark of the hash itself."""
    _, data = stored
    rng = np.random.default_rng(0)
    path = tmp_path / "run.nc"
    for place in rng.integers(data.rindex(MARK), size=60):
        path.write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
        assert read(path) is None


@pytest.mark.slow
def test_damaged_files_without_a_hash_are_refused_or_read(stored, tmp_path):
    """What the libraries raise is their affair: nothing but one sentence comes out."""
    _, data = stored
    bare = data[: data.rindex(MARK)]
    rng = np.random.default_rng(1)
    path = tmp_path / "run.nc"
    refused = 0
    for _ in range(60):
        path.write_bytes(mutated(bare, rng))
        refused += read(path) is None
    assert refused > 10


@pytest.mark.parametrize("count", [30, pytest.param(240, marks=pytest.mark.slow)])
def test_damaged_files_are_refused_or_the_same(stored, tmp_path, count):
    """Whatever became of the bytes: a run that is read is the one that was written."""
    run, data = stored
    rng = np.random.default_rng(4)
    path = tmp_path / "run.nc"
    refused = 0
    for _ in range(count):
        path.write_bytes(mutated(data, rng))
        back = read(path)
        refused += back is None
        if back is not None:
            assert back.loss.tobytes() == run.loss.tobytes()
            assert back.final.W.tobytes() == run.final.W.tobytes()
            assert back.settings == run.settings
    assert refused > 0.8 * count


@pytest.mark.parametrize("what", ["while True: pass", "import os; os.kill(os.getpid(), 11)"])
def test_a_file_that_leads_the_library_astray_is_refused(stored, tmp_path, monkeypatch, what):
    """An endless loop or a crash in C costs another process its life."""
    from reluflow.trajectory import store

    path = tmp_path / "run.nc"
    path.write_bytes(stored[1][: stored[1].rindex(MARK)])
    limit = "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\n"
    monkeypatch.setattr(store, "_TRIAL", limit + what)
    with pytest.raises(ReluflowError, match="does not come to an end"):
        Trajectory.load(path)


def test_claimed_sizes_are_compared_with_the_file(stored, tmp_path):
    """A file of some kilobytes cannot hold gigabytes: refused before they are taken."""
    import h5py

    path = tmp_path / "run.nc"
    path.write_bytes(stored[1][: stored[1].rindex(MARK)])
    with h5py.File(path, "a") as file:
        file.create_dataset("observable_huge", (1 << 31,), "u1")  # never written: takes no place
    with pytest.raises(ReluflowError, match="more than the file can hold"):
        Trajectory.load(path)


@pytest.mark.slow
def test_a_damaged_run_does_not_break_a_resumed_explanation(tmp_path, reluflow):
    """Neither the finished one nor the one of a killed explanation, nor its report."""
    arguments = ("explain", "three-points", "--m", 20, "-o", "out")
    assert reluflow(*arguments).code == 0
    out = tmp_path / "out"
    run, report = out / "run.nc", out / "report.json"
    whole, said = run.read_bytes(), json.loads(report.read_text())
    place = whole.index(Trajectory.load(run).loss.tobytes())
    damages = [whole[: len(whole) // 2], whole[:place] + b"\x17" + whole[place + 1 :], b""]
    for damage in damages:
        run.write_bytes(damage)
        (out / ".explain").mkdir()
        (out / ".explain" / "run.nc").write_bytes(damage)
        report.write_text("{")
        done = reluflow(*arguments)
        assert done.code == 0, done.err
        assert json.loads(report.read_text())["verdict"] == said["verdict"]
        assert Trajectory.load(run).loss.tobytes() == _loss(whole, tmp_path)


def _loss(data, tmp_path):
    path = tmp_path / "whole.nc"
    path.write_bytes(data)
    return Trajectory.load(path).loss.tobytes()


def test_a_damaged_checkpoint_is_one_sentence(tmp_path):
    from reluflow.runtime import Checkpoint

    path = tmp_path / "run.checkpoint"
    saved = Checkpoint(path, "key", 1.0)
    saved.write({"W": np.arange(200.0), "t": np.array(1.0)})
    data = path.read_bytes()
    rng = np.random.default_rng(2)
    for _ in range(150):
        path.write_bytes(mutated(data, rng))
        state = None
        with contextlib.suppress(ReluflowError):
            state = saved.read()
        if state is not None:
            assert state.keys() == {"W", "t"}
            assert np.array_equal(state["W"], np.arange(200.0))


@pytest.mark.parametrize("what", ["another array", "one less", "one more", "another version"])
def test_a_checkpoint_whose_arrays_are_others_is_refused(tmp_path, monkeypatch, what):
    """Under its own key: exchanged since, or written by a version that keeps other things."""
    from reluflow.runtime import checkpoint

    path = tmp_path / "run.checkpoint"
    saved = checkpoint.Checkpoint(path, "key", 1.0)
    if what == "another version":
        with monkeypatch.context() as patch:
            patch.setattr(checkpoint, "__version__", "0.0.1")
            saved.write({"W": np.arange(3.0)})
    else:
        saved.write({"W": np.arange(3.0)})
        assert saved.read()["W"].tolist() == [0.0, 1.0, 2.0]
        with np.load(path) as stored:
            arrays = dict(stored)
        changed = {"another array": {"W": np.arange(4.0)}, "one more": {"a": np.ones(1)}}
        arrays |= changed.get(what, {})
        if what == "one less":
            del arrays["W"]
        with open(path, "wb") as file:
            np.savez(file, **arrays)
    with pytest.raises(ReluflowError, match="is not a checkpoint this version can read: delete it"):
        saved.read()
    assert checkpoint.Checkpoint(checkpoint.KeptFile(path), "key", 1.0).read() is None


@pytest.mark.parametrize("several", [False, True], ids=["one output", "several"])
@pytest.mark.parametrize("engine", ["descent", "flow", "unlocated"])
def test_a_run_with_a_checkpoint_of_other_arrays_starts_anew_or_is_refused(
    tmp_path, engine, several
):
    """Six neurons become five in the file of a run that was interrupted."""
    from reluflow import Problem, flow
    from reluflow.runtime.checkpoint import Checkpoint, KeptFile

    rng = np.random.default_rng(0)
    problem = Problem(rng.standard_normal((5, 3)), rng.standard_normal((5, 2) if several else 5))
    net = initialize(problem, 6, 1e-2, rng=0)
    path = tmp_path / "run.checkpoint"

    class Killed(BaseException):
        pass

    def call(place):
        given = {"checkpoint": place, "checkpoint_seconds": 0.0}
        if engine == "descent":
            return descend(problem, net, lr=0.05, steps=400, save=[0, 200, 400], **given)
        return flow(problem, net, t_end=8.0, kinks=engine == "flow", **given)

    whole = call(None)
    with pytest.MonkeyPatch.context() as patch:
        write = Checkpoint.write

        def once(self, state):
            write(self, state)
            raise Killed

        patch.setattr(Checkpoint, "write", once)
        with pytest.raises(Killed):
            call(path)
    with np.load(path) as stored:
        arrays = {k: v[:5] if v.ndim and len(v) == 6 else v for k, v in stored.items()}
    with open(path, "wb") as file:
        np.savez(file, **arrays)
    with pytest.raises(ReluflowError, match="delete it to start anew"):
        call(path)
    assert call(KeptFile(path)).loss.tobytes() == whole.loss.tobytes()
