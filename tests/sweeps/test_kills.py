"""Drivers, workers and schedulers killed in mid-sweep: no row is missing or doubled."""

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from reluflow.errors import ReluflowError
from reluflow.sweeps import read_table, sweep
from reluflow.sweeps.store import journal_of

GRID = {"x": list(range(60))}
LONG = 300.0  # seconds after which something hangs, on a machine with much else to do
DRIVER = """
import sys
from reluflow.sweeps import sweep
if __name__ == "__main__":
    sweep("helpers:slow_draw", {"x": list(range(60))}, seeds=2, out=sys.argv[1],
          executor=eval(sys.argv[2]))
"""


def rows(table):
    return [json.dumps({k: v for k, v in row.items() if k != "seconds"}) for row in table.rows()]


@pytest.fixture(scope="module")
def expected():
    sys.path.insert(0, os.path.dirname(__file__))
    try:
        return rows(sweep("helpers:slow_draw", GRID, seeds=2, executor="serial"))
    finally:
        sys.path.pop(0)


class Driver:
    """A sweep in a process of its own; what it says goes to a file, which cannot fill up."""

    def __init__(self, folder, out, executor):
        (folder / "driver.py").write_text(DRIVER)
        self.out, self.log = out, folder / "driver.log"
        command = [sys.executable, str(folder / "driver.py"), str(out), executor]
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(command, stderr=log)

    @property
    def said(self):
        return self.log.read_text()

    def wait_for_rows(self, count):
        """Until the journal has some rows."""
        journal, end = journal_of(self.out), time.monotonic() + LONG
        while self.process.poll() is None and time.monotonic() < end:
            if journal.exists() and journal.read_bytes().count(b"\n") > count:
                return
            time.sleep(0.01)
        raise AssertionError(f"ended early, or stands still: {self.said}")

    def end(self):
        """Its exit code."""
        return self.process.wait(timeout=LONG)

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def start(tmp_path):
    """Start drivers; those that a failed test leaves are killed."""
    started = []

    def make(out, executor):
        started.append(Driver(tmp_path, out, executor))
        return started[-1]

    yield make
    for driver in started:
        driver.kill()


def is_alive(pid):
    """A zombie that nobody has collected yet is not alive."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["'serial'", "2"])
def test_driver_killed_at_random_moments(tmp_path, start, expected, executor):
    rng = np.random.default_rng(0)
    out = tmp_path / "t.parquet"
    workers = []
    for _ in range(10 if executor == "2" else 3):
        driver = start(out, executor)
        time.sleep(rng.uniform(0.3, 2.5))
        if driver.process.poll() is None:
            workers += children(driver.process.pid)
        driver.kill()
    last = start(out, executor)
    assert last.end() == 0, last.said
    table = read_table(out)
    assert rows(table) == expected
    assert not journal_of(out).exists()
    deadline = time.monotonic() + 20.0
    while any(map(is_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(is_alive, workers)), "workers outlive their driver"


@pytest.mark.slow
def test_driver_killed_while_it_writes_the_table(tmp_path, expected, monkeypatch):
    """At every file operation of the end: the table, its rename, the journal's removal."""
    import pathlib

    out = tmp_path / "t.parquet"

    class Killed(BaseException):
        pass

    for method, ending in (("replace", ".part"), ("unlink", "t.parquet.journal")):
        original = getattr(pathlib.Path, method)

        def stop(self, *arguments, original=original, ending=ending, **options):
            if self.name.startswith("t.parquet") and self.name.endswith(ending):
                raise Killed
            return original(self, *arguments, **options)

        out.unlink(missing_ok=True)
        journal_of(out).unlink(missing_ok=True)
        with monkeypatch.context() as patch:
            patch.setattr(pathlib.Path, method, stop)
            with pytest.raises(Killed):
                sweep("helpers:slow_draw", GRID, seeds=2, out=out, executor="serial")
        assert journal_of(out).exists()
        assert rows(read_table(out)) == expected
        again = sweep("helpers:slow_draw", GRID, seeds=2, out=out, executor="serial")
        assert rows(again) == expected
        assert not journal_of(out).exists()


@pytest.mark.slow
def test_ctrl_c_keeps_the_rows_and_the_same_call_goes_on(tmp_path, start, expected):
    out = tmp_path / "t.parquet"
    driver = start(out, "2")
    driver.wait_for_rows(10)
    driver.process.send_signal(signal.SIGINT)
    assert driver.end() == 0, driver.said
    counts = read_table(out).counts()
    assert 10 <= counts["ok"] < 120
    done = sweep("helpers:slow_draw", GRID, seeds=2, out=out, executor="serial")
    assert rows(done) == expected


@pytest.fixture(scope="module")
def make_cluster():
    """Clusters of two worker processes that find the tasks of this folder."""
    distributed = pytest.importorskip("distributed")
    with pytest.MonkeyPatch.context() as patch:
        here, before = os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")
        patch.setenv("PYTHONPATH", os.pathsep.join([here, before]))
        yield lambda: distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        )


@pytest.fixture(scope="module")
def cluster(make_cluster):
    with make_cluster() as made:
        yield made


@pytest.mark.slow
def test_dask_gives_the_same_table(tmp_path, cluster, expected):
    from distributed import Client

    with Client(cluster, set_as_default=False) as client:
        table = sweep(
            "helpers:slow_draw", GRID, seeds=2, out=tmp_path / "c.parquet", executor=client
        )
        assert rows(table) == expected
        runs = {"problem.name": "toy6", "init.m": [3, 5], "clock.t_end": 3.0}
        on_cluster = sweep("flow", runs, seeds=3, executor=client, observe=["norm2"])
        assert rows(on_cluster) == rows(sweep("flow", runs, seeds=3, executor=2, observe=["norm2"]))
        assert client.status == "running"
    by_address = sweep("helpers:slow_draw", GRID, seeds=2, executor=cluster.scheduler_address)
    assert rows(by_address) == expected


@pytest.mark.slow
def test_dask_worker_killed_in_mid_sweep(tmp_path, start, cluster, expected):
    from distributed import Client

    out = tmp_path / "t.parquet"
    with Client(cluster, set_as_default=False) as client:
        pids = list(client.run(os.getpid).values())
    driver = start(out, repr(cluster.scheduler_address))
    driver.wait_for_rows(5)
    os.kill(pids[0], signal.SIGKILL)
    assert driver.end() == 0, driver.said
    assert rows(read_table(out)) == expected


@pytest.mark.slow
def test_dask_point_that_kills_its_worker_is_a_failed_row(tmp_path, make_cluster, monkeypatch):
    """In a cluster of its own, which it may ruin.

    Dask gives up a worker that dies before its nanny knows it, as happens where the deadly point
    waits for it: then the sweep says that there is nobody left, and goes on elsewhere.
    """
    dask = pytest.importorskip("dask")
    module = importlib.import_module("reluflow.sweeps.cluster")
    monkeypatch.setattr(module, "NO_WORKERS", 30.0)
    monkeypatch.setattr(module, "FETCH", 10.0)
    monkeypatch.syspath_prepend(os.path.dirname(__file__))
    grid, out, sentence = {"x": list(range(8))}, tmp_path / "t.jsonl", ""
    # Dask tries it on two workers instead of four, each of which takes its time to start
    with dask.config.set({"distributed.scheduler.allowed-failures": 1}), make_cluster() as ruined:
        try:
            sweep("helpers:deadly", grid, out=out, executor=ruined.scheduler_address)
        except ReluflowError as error:
            sentence = str(error)
    if sentence:
        assert sentence.startswith("the Dask cluster has had no worker for 30 seconds")
        assert read_table(out).counts()["missing"] > 0
    table = sweep("helpers:deadly", grid, out=out, executor=1)
    assert table.counts() == {"ok": 7, "failed": 1, "missing": 0}
    (failed,) = [row for row in table.rows() if row["status"] == "failed"]
    assert failed["x"] == 5


@pytest.mark.slow
def test_a_cluster_without_workers_does_not_keep_the_sweep_waiting(tmp_path, expected, monkeypatch):
    """All workers leave in mid-sweep: one sentence, and every point once after a rerun."""
    distributed = pytest.importorskip("distributed")
    module = importlib.import_module("reluflow.sweeps.cluster")
    monkeypatch.setattr(module, "NO_WORKERS", 1.0)
    monkeypatch.setattr(module, "STAFF_EVERY", 0.2)
    out, said, seen = tmp_path / "t.jsonl", [], []
    monkeypatch.syspath_prepend(os.path.dirname(__file__))
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ) as left:

        def leave(row):
            seen.append(row)
            if len(seen) == 5:
                left.scale(0)

        def run():
            try:
                address = left.scheduler_address
                sweep("helpers:slow_draw", GRID, seeds=2, out=out, executor=address, each=leave)
            except ReluflowError as error:
                said.append(str(error))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(LONG)
        assert not thread.is_alive(), "the sweep waits for ever"
    assert said
    assert said[0].startswith("the Dask cluster has had no worker for 1 seconds")
    assert 5 <= read_table(out).counts()["ok"] < 120
    done = sweep("helpers:slow_draw", GRID, seeds=2, out=out, executor="serial")
    assert rows(done) == expected


@pytest.fixture
def scheduler(tmp_path, make_cluster):
    """A scheduler and a worker in processes of their own."""
    distributed = pytest.importorskip("distributed")
    place = tmp_path / "scheduler.json"
    dask = [sys.executable, "-m"]
    nowhere = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    options = ["--port", "0", "--no-dashboard", "--scheduler-file", str(place)]
    server = subprocess.Popen([*dask, "distributed.cli.dask_scheduler", *options], **nowhere)
    options = ["--scheduler-file", str(place), "--no-dashboard", "--no-nanny", "--nthreads", "1"]
    end = time.monotonic() + LONG
    while not _is_whole(place) and server.poll() is None and time.monotonic() < end:
        time.sleep(0.05)
    worker = subprocess.Popen([*dask, "distributed.cli.dask_worker", *options], **nowhere)
    address = json.loads(place.read_text())["address"]
    with distributed.Client(address, timeout=LONG, set_as_default=False) as client:
        client.wait_for_workers(1, timeout=LONG)  # a sweep itself would wait for a minute only
    yield server, address
    for process in (worker, server):
        process.kill()
        process.wait()


def _is_whole(path):
    """Whether a document of JSON has been written to its end."""
    try:
        return bool(json.loads(path.read_text()))
    except (OSError, ValueError):
        return False


@pytest.mark.slow
def test_scheduler_lost_and_found(tmp_path, start, scheduler, make_cluster, expected):
    server, address = scheduler
    out = tmp_path / "t.parquet"
    driver = start(out, repr(address))
    driver.wait_for_rows(5)
    server.kill()
    assert driver.end() != 0
    assert "connection to the Dask scheduler was lost" in driver.said
    assert 5 <= read_table(out).counts()["ok"] < 120
    with make_cluster() as found:
        done = sweep("helpers:slow_draw", GRID, seeds=2, out=out, executor=found.scheduler_address)
    assert rows(done) == expected


def test_unreachable_scheduler_is_one_sentence(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(importlib.import_module("reluflow.sweeps.cluster"), "CONNECT", 0.5)
    for address in ("tcp://127.0.0.1:1", "nonsense://x"):
        with pytest.raises(ReluflowError, match="cannot reach a Dask scheduler") as caught:
            sweep("helpers:draw", {"x": 1}, executor=address)
        assert "\n" not in str(caught.value)
