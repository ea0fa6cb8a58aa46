"""Drivers, workers and schedulers killed in mid-sweep: no row is missing or doubled."""

import importlib
import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from reluflow.errors import ReluflowError
from reluflow.sweeps import read_table, sweep
from reluflow.sweeps.store import journal_of

GRID = {"x": list(range(60))}
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


def start(folder, out, executor):
    (folder / "driver.py").write_text(DRIVER)
    command = [sys.executable, str(folder / "driver.py"), str(out), executor]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def wait_for_rows(out, count, driver):
    """Until the journal has some rows."""
    journal = journal_of(out)
    while driver.poll() is None:
        if journal.exists() and journal.read_bytes().count(b"\n") > count:
            return
        time.sleep(0.01)
    raise AssertionError(f"the driver ended early: {driver.stderr.read()}")


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
def test_driver_killed_at_random_moments(tmp_path, expected, executor):
    rng = np.random.default_rng(0)
    out = tmp_path / "t.parquet"
    workers = []
    for _ in range(10 if executor == "2" else 3):
        driver = start(tmp_path, out, executor)
        time.sleep(rng.uniform(0.3, 2.5))
        if driver.poll() is None:
            workers += children(driver.pid)
            driver.kill()
        driver.communicate()
    last = start(tmp_path, out, executor)
    assert last.wait(timeout=120) == 0, last.stderr.read()
    last.communicate()
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
def test_ctrl_c_keeps_the_rows_and_the_same_call_goes_on(tmp_path, expected):
    out = tmp_path / "t.parquet"
    driver = start(tmp_path, out, "2")
    wait_for_rows(out, 10, driver)
    driver.send_signal(signal.SIGINT)
    assert driver.wait(timeout=60) == 0, driver.stderr.read()
    driver.communicate()
    counts = read_table(out).counts()
    assert 10 <= counts["ok"] < 120
    done = sweep("helpers:slow_draw", GRID, seeds=2, out=out, executor="serial")
    assert rows(done) == expected


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    here = os.path.dirname(__file__)
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([here, before or ""])
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as made:
        yield made
    if before is None:
        del os.environ["PYTHONPATH"]


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
def test_dask_worker_killed_in_mid_sweep(tmp_path, cluster, expected):
    from distributed import Client

    out = tmp_path / "t.parquet"
    with Client(cluster, set_as_default=False) as client:
        pids = list(client.run(os.getpid).values())
    driver = start(tmp_path, out, repr(cluster.scheduler_address))
    wait_for_rows(out, 5, driver)
    os.kill(pids[0], signal.SIGKILL)
    assert driver.wait(timeout=120) == 0, driver.stderr.read()
    driver.communicate()
    assert rows(read_table(out)) == expected


@pytest.mark.slow
def test_dask_point_that_kills_its_worker_is_a_failed_row(cluster):
    table = sweep("helpers:deadly", {"x": list(range(8))}, executor=cluster.scheduler_address)
    assert table.counts() == {"ok": 7, "failed": 1, "missing": 0}


@pytest.mark.slow
def test_scheduler_lost_and_found(tmp_path, expected, monkeypatch):
    distributed = pytest.importorskip("distributed")
    out = tmp_path / "t.parquet"
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
    scheduler = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "distributed.cli.dask_scheduler",
            "--port",
            "0",
            "--no-dashboard",
            "--scheduler-file",
            str(tmp_path / "scheduler.json"),
        ],
        stderr=subprocess.DEVNULL,
    )
    while not (tmp_path / "scheduler.json").exists():
        time.sleep(0.05)
    address = json.loads((tmp_path / "scheduler.json").read_text())["address"]
    worker = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "distributed.cli.dask_worker",
            address,
            "--no-dashboard",
            "--no-nanny",
            "--nthreads",
            "1",
            "--death-timeout",
            "5",
        ],
        stderr=subprocess.DEVNULL,
    )
    try:
        driver = start(tmp_path, out, repr(address))
        wait_for_rows(out, 5, driver)
        scheduler.kill()
        _, said = driver.communicate(timeout=120)
        assert driver.returncode != 0
        assert "connection to the Dask scheduler was lost" in said
    finally:
        scheduler.kill()
        worker.kill()
        scheduler.wait()
        worker.wait()
    assert 5 <= read_table(out).counts()["ok"] < 120
    with distributed.LocalCluster(**options) as found:
        done = sweep("helpers:slow_draw", GRID, seeds=2, out=out, executor=found.scheduler_address)
    assert rows(done) == expected


def test_unreachable_scheduler_is_one_sentence(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(importlib.import_module("reluflow.sweeps.cluster"), "CONNECT", 0.5)
    for address in ("tcp://127.0.0.1:1", "nonsense://x"):
        with pytest.raises(ReluflowError, match="cannot reach a Dask scheduler") as caught:
            sweep("helpers:draw", {"x": 1}, executor=address)
        assert "\n" not in str(caught.value)
