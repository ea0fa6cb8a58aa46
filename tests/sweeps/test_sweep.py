"""Tables: the same rows whoever runs the points, kept through failures, crashes and reruns."""

import json
import sys

import numpy as np
import pytest

from reluflow import Trajectory, datasets, initialize
from reluflow.errors import ReluflowError
from reluflow.sweeps import read_table, sweep
from reluflow.sweeps.executors import Futures
from reluflow.sweeps.grid import make_grid, seeds_of
from reluflow.sweeps.work import Job, run_points

GRID = {"x": list(range(12)), "y": [0, 1]}


def rows(table):
    """Rows without the one column that measures this machine."""
    return [{k: v for k, v in row.items() if k != "seconds"} for row in table.rows()]


def same(first, second):
    """Equal rows, their columns in the same order; nan equals nan."""
    texts = [[json.dumps(row) for row in rows(table)] for table in (first, second)]
    return texts[0] == texts[1]


def test_serial_and_processes_give_the_same_table(tmp_path):
    serial = sweep("helpers:draw", GRID, seeds=3, executor="serial")
    parallel = sweep("helpers:draw", GRID, seeds=3, executor=2, out=tmp_path / "t.parquet")
    assert same(serial, parallel)
    assert serial.complete
    assert parallel.complete
    assert len(rows(serial)) == 72
    assert not (tmp_path / "t.parquet.journal").exists()
    frame = parallel.to_pandas()
    assert frame["even"].dtype == bool
    assert frame["value"].nunique() == 72
    assert list(frame.columns)[-1] == "seconds"


def test_a_row_can_be_run_again_from_what_it_says():
    table = sweep("helpers:draw", GRID, seeds=2, seed=7, executor="serial")
    row = list(table.rows())[17]
    rng = np.random.default_rng(seeds_of(7, row["draw"]))
    assert row["value"] == float(rng.standard_normal()) + row["x"]


def test_runs_equal_the_functions_they_call(tmp_path):
    from reluflow import flow

    table = sweep(
        "flow",
        {"problem": {"name": "toy6"}, "init": {"m": 4, "scale": [1e-3, 1e-2]}, "clock.t_end": 5.0},
        observe=["norm2", "norms"],
        keep=True,
        out=tmp_path / "runs.parquet",
        executor="serial",
    )
    problem = datasets.toy6()
    for row in table.rows():
        start = seeds_of(0, row["draw"]).spawn(3)[1]
        net = initialize(problem, 4, scale=row["init.scale"], rng=start)
        run = flow(problem, net, t_end=5.0)
        assert row["loss"] == problem.value(problem.outputs(run.final))
        assert row["norms.max"] == np.exp(run.final.log_norms).max()
        kept = Trajectory.load(tmp_path / "runs-runs" / f"{row['point']}.nc")
        np.testing.assert_array_equal(kept.final.W, run.final.W)


@pytest.mark.parametrize(
    ("task", "grid", "observe", "columns"),
    [
        (
            "descend",
            {"problem.name": "toy6", "init.m": 3, "clock.lr": [0.01, 0.1], "clock.steps": 20},
            ["kind", "gain"],
            {"loss", "ending", "kind", "gain"},
        ),
        (
            "limit",
            {"problem.name": "golden", "init.m": [2, 3]},
            ["norm2"],
            {"jumps", "last_jump", "ending", "loss", "norm2"},
        ),
        (
            "align",
            {"problem.name": "xor-orbit", "init.m": [4, 8]},
            ["captured"],
            {"growing", "captured", "extrema", "all_captured"},
        ),
        (
            "max_margin",
            {"problem.name": "figure1-left", "problem.leak": [0.25, 0.5]},
            [],
            {"margin", "upper_bound", "exact"},
        ),
        (
            "min_norm",
            {"problem.name": "orthonormal", "problem.n": [3, 4]},
            [],
            {"norm2", "lower_bound", "exact"},
        ),
        ("TK24-L5.3/repaired", {"draws": [500, 1000]}, [], {"verdict", "measured", "bound"}),
    ],
)
def test_every_kind_of_task(task, grid, observe, columns):
    table = sweep(task, grid, seeds=2, observe=observe, executor="serial")
    found = list(table.rows())
    assert [row["status"] for row in found] == ["ok"] * 4, found[0]["message"]
    assert all(columns <= set(row) for row in found)
    assert all(row["message"] for row in found)


def test_random_data_are_drawn_anew_unless_a_seed_is_given():
    grid = {"problem.name": "orthonormal", "problem.n": 4}
    fresh = [row["norm2"] for row in sweep("min_norm", grid, seeds=3, executor="serial").rows()]
    assert len(set(fresh)) == 3
    fixed = sweep("min_norm", {**grid, "problem.rng": 1}, seeds=3, executor="serial")
    expected = datasets.orthonormal(4, rng=1).known["min_norm2"]
    assert [row["norm2"] for row in fixed.rows()] == pytest.approx([expected] * 3)


def test_failures_are_rows_and_retry_runs_only_those(tmp_path):
    out, marker = tmp_path / "t.parquet", tmp_path / "marker"
    grid = {"x": list(range(10)), "marker": str(marker)}
    first = sweep("helpers:picky", grid, out=out, executor="serial")
    assert first.counts() == {"ok": 5, "failed": 5, "missing": 0}
    found = list(first.rows())
    assert found[3]["message"] == "x is 3, an odd number: use an even one"
    assert "value" not in found[3]
    marker.touch()
    again = sweep("helpers:picky", grid, out=out, executor="serial")
    assert again.counts()["failed"] == 5
    retried = sweep("helpers:picky", grid, out=out, executor="serial", retry=True)
    assert retried.counts() == {"ok": 10, "failed": 0, "missing": 0}
    final = list(retried.rows())
    assert [row["value"] for row in final] == list(range(10))
    assert all(final[i]["seconds"] == found[i]["seconds"] for i in range(0, 10, 2))


def test_other_exceptions_are_failures_too():
    table = sweep("helpers:crashes", {"x": [2, 3]}, executor="serial")
    assert [row["status"] for row in table.rows()] == ["ok", "failed"]
    assert list(table.rows())[1]["message"] == "ZeroDivisionError: by zero"
    for task, words in (("arrays", "a table holds numbers"), ("shadows", "another column")):
        (row,) = sweep(f"helpers:{task}", {"x": 1}, executor="serial").rows()
        assert row["status"] == "failed"
        assert words in row["message"]


def test_resume_runs_what_is_missing(tmp_path):
    """A journal cut in the middle of a line, as a kill leaves it."""
    whole = sweep("helpers:draw", GRID, out=tmp_path / "whole.jsonl", executor="serial")
    lines = (tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)
    cut = tmp_path / "cut.parquet"
    journal = tmp_path / "cut.parquet.journal"
    journal.write_bytes(b"".join(lines[:8]) + lines[8][: len(lines[8]) // 2])
    assert read_table(cut).counts() == {"ok": 7, "failed": 0, "missing": 17}
    done = sweep("helpers:draw", GRID, out=cut, executor="serial")
    assert same(whole, done)
    old, new = list(whole.rows()), list(done.rows())
    assert [new[i]["seconds"] for i in range(7)] == [old[i]["seconds"] for i in range(7)]


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_changed_settings_are_another_sweep(tmp_path, suffix):
    out = tmp_path / f"t{suffix}"
    sweep("helpers:draw", {"x": [1, 2]}, out=out, executor="serial")
    with pytest.raises(ReluflowError, match=r"another sweep \(x differs\): changed settings are"):
        sweep("helpers:draw", {"x": [1, 2, 3]}, out=out, executor="serial")
    with pytest.raises(ReluflowError, match=r"another sweep \(seed differs\)"):
        sweep("helpers:draw", {"x": [1, 2]}, out=out, seed=1, executor="serial")
    assert read_table(out).points == 2
    made = sweep("helpers:draw", {"x": [1, 2, 3]}, out=out, new=True, executor="serial")
    assert made.counts()["ok"] == 3
    assert same(made, read_table(out))


def test_columns_of_mixed_types_and_missing_values(tmp_path):
    import helpers

    made = sweep(helpers.crashes, {"x": [1, 2.5, 3]}, out=tmp_path / "t.parquet", executor="serial")
    frame = made.to_pandas()
    assert list(frame["x"]) == [1.0, 2.5, 3.0]
    assert np.isnan(frame["size"].iloc[2])
    assert list(frame["status"]) == ["ok", "ok", "failed"]


def test_xarray(tmp_path):
    table = sweep("helpers:draw", GRID, seeds=3, executor="serial")
    found = table.to_xarray(["value"])
    assert dict(found.sizes) == {"x": 12, "y": 2, "seed": 3}
    row = next(r for r in table.rows() if (r["x"], r["y"], r["seed"]) == (5, 1, 2))
    assert float(found["value"].sel(x=5, y=1, seed=2)) == row["value"]
    with pytest.raises(ReluflowError, match="no column 'nothing'"):
        table.to_xarray(["nothing"])


def test_two_drivers_exclude_each_other(tmp_path):
    from reluflow.sweeps.journal import Journal

    title = {"sweep": {}, "id": "a", "points": 1}
    held = Journal(tmp_path / "t.jsonl", title, 1)
    with pytest.raises(ReluflowError, match="another process is writing"):
        Journal(tmp_path / "t.jsonl", title, 1)
    held.close()


def test_bad_calls_are_one_sentence(tmp_path):
    cases = [
        (("nothing", {"a": 1}), {}, "unknown task 'nothing'"),
        (("helpers:nothing", {"a": 1}), {}, "cannot import the task"),
        (("no_such_module:f", {"a": 1}), {}, "cannot import the task"),
        ((lambda x: x, {"x": 1}), {}, "cannot be imported"),
        (("helpers:draw", {"x": 1, "z": 2}), {}, "unknown field 'z'"),
        (("helpers:draw", {"y": 1}), {}, "the field 'x' is missing"),
        (("TK24-L5.3", {}), {}, "has several checks"),
        (("TK24-L5.3/repaired", {"drawz": 1}), {}, "unknown field 'drawz'"),
        (("flow", {"init.m": 3}), {}, "problem.name is missing"),
        (("flow", {"problem.name": "toy6"}), {}, "init.m is missing"),
        (("flow", {"problem.name": "toy7", "init.m": 3}), {}, "unknown dataset 'toy7'"),
        (("flow", {"problem": {"name": "toy6", "n": 3}, "init.m": 3}), {}, "field 'problem.n'"),
        (("flow", {"problem.name": "toy6", "init.width": 3}), {}, "field 'init.width'"),
        (("flow", {"problem.name": "toy6", "init.m": 3, "clock.lr": 1}), {}, "field 'clock.lr'"),
        (("descend", {"problem.name": "toy6", "init.m": 3}), {}, "clock.lr is missing"),
        (("min_norm", {"problem.name": "toy6", "init.m": 3}), {}, "unknown field 'init.m'"),
        (("helpers:draw", {"x": 1}), {"observe": ["norms"]}, "observe is for runs"),
        (("helpers:draw", {"x": 1}), {"executor": 0}, "at least 1"),
        (("helpers:draw", {"x": 1}), {"executor": 1.5}, "executor is None"),
        (("helpers:draw", {"x": 1}), {"keep": True}, "give out= as well"),
        (("helpers:draw", {"x": 1}), {"out": tmp_path / "t.csv"}, "a .parquet or .jsonl"),
        (("helpers:draw", {"x": 1}), {"out": tmp_path}, "a .parquet or .jsonl"),
    ]
    for arguments, options, words in cases:
        with pytest.raises(ReluflowError) as caught:
            sweep(*arguments, **{"executor": "serial", **options})
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)


def test_files_that_are_no_tables(tmp_path):
    import pandas

    (tmp_path / "words.parquet").write_text("words")
    pandas.DataFrame({"a": [1]}).to_parquet(tmp_path / "other.parquet")
    (tmp_path / "other.jsonl").write_text("[1, 2]\n")
    for name in ("words.parquet", "other.parquet", "other.jsonl", "none.parquet"):
        before = (tmp_path / name).read_bytes() if (tmp_path / name).exists() else None
        with pytest.raises(ReluflowError) as caught:
            read_table(tmp_path / name)
        assert "\n" not in str(caught.value)
        if before is not None:
            with pytest.raises(ReluflowError):
                sweep("helpers:draw", {"x": 1}, out=tmp_path / name, executor="serial")
            assert (tmp_path / name).read_bytes() == before


def test_damaged_tables_are_one_sentence_or_made_whole(tmp_path):
    """Bytes of a finished table changed: the sweep is refused, or every point is there once.

    In a Parquet table with its own values: its seal covers every byte. (The text of a .jsonl may
    be changed by hand.)
    """
    rng = np.random.default_rng(0)
    grid = {"x": list(range(5))}
    refused = 0
    for name in ("t.parquet", "t.jsonl"):
        out = tmp_path / name
        values = [
            r["value"] for r in sweep("helpers:draw", grid, out=out, executor="serial").rows()
        ]
        whole = out.read_bytes()
        for _ in range(200):
            damaged = bytearray(whole)
            place = int(rng.integers(len(whole)))
            damaged[place : place + 3] = rng.bytes(3)
            out.write_bytes(damaged)
            sentence = ""
            try:
                again = sweep("helpers:draw", grid, out=out, executor="serial")
                assert again.counts() == {"ok": 5, "failed": 0, "missing": 0}
                if name == "t.parquet":
                    assert [row["value"] for row in again.rows()] == values
            except ReluflowError as error:
                sentence = str(error)
            refused += sentence != ""
            assert "\n" not in sentence
            for path in tmp_path.glob("t.*"):
                path.unlink()
    assert refused > 200


def test_a_title_with_another_number_of_points_is_refused(tmp_path):
    """A reader that believed it would drop finished rows, or wait for rows that never come."""
    out = tmp_path / "t.jsonl"
    sweep("helpers:draw", {"x": [1, 2]}, out=out, executor="serial", seeds=3)
    text = out.read_text()
    for changed in ('"points": 0', '"points": 7'):
        out.write_text(text.replace('"points": 6', changed))
        with pytest.raises(ReluflowError, match="is not the journal of a sweep"):
            read_table(out)


def test_sealed_tables_are_ordinary_parquet_files(tmp_path):
    import pandas

    out = tmp_path / "t.parquet"
    table = sweep("helpers:draw", {"x": [1, 2]}, out=out, executor="serial", seeds=20_000)
    assert len(pandas.read_parquet(out)) == table.counts()["ok"] == 40_000  # several groups of rows


@pytest.mark.parametrize("title", ["[]", '{"sweep": 1, "id": "x", "points": 5}', '{"id": {}}'])
def test_a_journal_with_another_first_line_is_refused(tmp_path, title):
    out = tmp_path / "t.jsonl"
    out.write_text(title + "\n")
    with pytest.raises(ReluflowError, match="is not the journal of a sweep"):
        sweep("helpers:draw", {"x": [1, 2]}, out=out, executor="serial")


def test_rows_of_a_journal_that_are_none_are_run_again(tmp_path):
    out = tmp_path / "t.jsonl"
    first = list(sweep("helpers:draw", {"x": [1, 2]}, out=out, executor="serial").rows())
    lines = out.read_text().splitlines()
    for bad in ('{"index": 0, "status": []}', '{"index": "0"}', "[" * 5000, "7", "null"):
        out.write_text("\n".join([lines[0], bad, lines[2]]) + "\n")
        again = sweep("helpers:draw", {"x": [1, 2]}, out=out, executor="serial").rows()
        assert [row["value"] for row in again] == [row["value"] for row in first]


def test_a_worker_that_dies_costs_one_point():
    table = sweep("helpers:deadly", {"x": list(range(40))}, executor=2)
    assert table.counts() == {"ok": 39, "failed": 1, "missing": 0}
    (bad,) = [row for row in table.rows() if row["status"] == "failed"]
    assert bad["x"] == 5
    assert "worker process died" in bad["message"]


def test_workers_that_always_die_end_the_sweep():
    with pytest.raises(ReluflowError, match="die before they finish any point"):
        sweep("helpers:always_deadly", {"x": list(range(40))}, executor=2)


def test_worker_processes_use_one_thread_each():
    (row,) = sweep("helpers:threads", {}, executor=2).rows()
    assert (row["blas"], row["numba"]) == (1, 1)


def test_memory_does_not_grow_with_points():
    """Points and rows pass through; what stays is a few bytes for each point."""
    from reluflow.sweeps.grid import make_grid

    grid = make_grid({"x": range(1000), "y": range(1000)}, seeds=10)
    assert len(grid) == 10**7
    assert grid.point(10**7 - 1).settings == {"x": 999, "y": 999}
    assert sys.getsizeof(grid) < 1000


def test_each_sees_every_row_and_a_sweep_in_a_worker_stays_there():
    seen = []
    table = sweep("helpers:nested", {"x": [1, 2, 3]}, executor=2, each=seen.append)
    assert sorted(row["x"] for row in seen) == [1, 2, 3]
    assert [row["message"] for row in seen if row["status"] != "ok"] == []
    assert all(row["alone"] for row in table.rows())
    assert sum(row["total"] for row in table.rows()) == 6


class Handed(tuple):
    """What was handed out, hashed by identity as futures are."""

    __hash__ = object.__hash__


class Dropping(Futures):
    """An executor that loses the first results of some points, as a cluster may."""

    workers = 2

    def __init__(self, losses):
        self.losses = dict(losses)

    def submit(self, job, chunk):
        return Handed(([point.settings["x"] for point in chunk], run_points(job, chunk)))

    def wait(self, pending):
        return list(pending)[:1]

    def result(self, future):
        for x in future[0]:
            if self.losses.get(x, 0) > 0:
                self.losses[x] -= 1
                return None
        return future[1]


@pytest.mark.parametrize(("losses", "failed"), [({2: 1}, 0), ({2: 2, 4: 1}, 0), ({3: 9}, 1)])
def test_lost_results_are_run_again_and_hopeless_points_fail(losses, failed):
    points = make_grid({"x": list(range(6))}, 1, 0, (), ())
    executor = Dropping(losses)
    chunks = [[points.point(i) for i in pair] for pair in ((0, 1), (2, 3), (4, 5))]
    job = Job("helpers:draw", points.root, (), False)
    found = [done.row for some in executor.run(job, chunks) for done in some]
    assert sorted(row["x"] for row in found) == list(range(6))
    assert sum(row["status"] == "failed" for row in found) == failed
