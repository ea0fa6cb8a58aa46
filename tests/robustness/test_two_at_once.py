"""Two processes in one place: the second is told who is at work, at once, and harms nothing."""

import os
import signal
import subprocess
import sys
import time

import pytest

from reluflow import ReluflowError
from reluflow.runtime.files import beside, hold, is_running

HOLDER = """
import sys, time
from pathlib import Path
from reluflow.runtime.files import hold
with hold(Path(sys.argv[1]), "the folder out"):
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def holder(tmp_path):
    """Start a process that holds a lock until it is killed."""
    started = []

    def start(lock):
        child = subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(lock)], stdout=subprocess.PIPE, text=True
        )
        started.append(child)
        assert child.stdout.readline() == "held\n"
        return child

    yield start
    for child in started:
        child.kill()
        child.communicate()


def test_the_second_is_told_who_holds_it(holder, tmp_path):
    lock = tmp_path / "lock"
    first = holder(lock)
    with pytest.raises(ReluflowError) as caught, hold(lock, "the folder out"):
        pass
    assert f"process {first.pid} on " in str(caught.value)
    assert "the folder out" in str(caught.value)
    assert lock.exists()


def test_a_killed_holder_holds_nothing(holder, tmp_path):
    lock = tmp_path / "lock"
    first = holder(lock)
    first.send_signal(signal.SIGKILL)
    first.wait()
    with hold(lock, "it"):
        assert f"process {os.getpid()} on " in lock.read_text()
    assert not lock.exists()


def test_a_lock_removed_by_its_holder_is_not_taken_by_two(tmp_path, monkeypatch):
    """Opened before its holder removed it, locked after: it is no longer the lock."""
    import fcntl

    lock = tmp_path / "lock"
    real, seen = fcntl.flock, []

    def removed_in_between(file, how):
        real(file, how)
        if not seen:
            seen.append(os.fstat(file.fileno()).st_ino)
            lock.unlink()

    monkeypatch.setattr(fcntl, "flock", removed_in_between)
    with hold(lock, "it"):
        with pytest.raises(ReluflowError, match="another process"), hold(lock, "it"):
            pass
        assert lock.exists()


def test_a_folder_without_locks_is_open_to_all(tmp_path, monkeypatch):
    import fcntl

    def none(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    with hold(tmp_path / "lock", "it"), hold(tmp_path / "lock", "it"):
        pass


def test_parts_have_names_of_their_own(tmp_path):
    target = tmp_path / "a.txt"
    with beside(target) as first, beside(target) as second:
        assert first != second
        first.write_text("1")
        second.write_text("2")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_parts_of_killed_processes_are_removed_and_those_of_others_are_not(tmp_path):
    target = tmp_path / "a.txt"
    with beside(target) as own:
        host = own.name.split(".")[-2].rpartition("-")[0].rpartition("-")[0]
        own.write_text("1")
        child = subprocess.Popen([sys.executable, "-c", ""])
        child.wait()
        assert not is_running(child.pid)
        dead = tmp_path / f"a.txt.{host}-{child.pid}-00000000.part"
        alive = tmp_path / f"a.txt.{host}-{os.getppid()}-00000000.part"
        far, old = (tmp_path / f"a.txt.{name}-1-00000000.part" for name in ("far", "old"))
        another = tmp_path / f"b.txt.{host}-{child.pid}-00000000.part"
        for path in (dead, alive, far, old, another):
            path.write_text("half")
        os.utime(old, (time.time() - 2e5, time.time() - 2e5))
        with beside(target) as second:
            second.write_text("2")
        assert not dead.exists()
        assert not old.exists()
        assert own.exists()
        assert alive.exists()
        assert far.exists()
        assert another.exists()


def begin(tmp_path, *arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "reluflow", *map(str, arguments)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(lock, process):
    """Until a process has taken its lock."""
    end = time.monotonic() + 120.0
    while not lock.exists() and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    assert lock.exists() or process.poll() is not None, "no lock was taken"


LONG = ("simulate", "three-points", "--m", 50, "--lr", 1e-6, "--steps", 10**9, "-o", "run.nc")


def test_two_simulations_of_one_file(tmp_path, reluflow):
    """The second ends at once; the first, had it gone on, would have stored its run."""
    first = begin(tmp_path, *LONG)
    try:
        wait_for(tmp_path / "run.nc.lock", first)
        second = reluflow(*LONG)
        assert second.refused, second.err
        assert f"another process is at work on run.nc (process {first.pid} on " in second.err
        assert first.poll() is None
        first.send_signal(signal.SIGINT)
        _, said = first.communicate(timeout=120)
        assert first.returncode == 130, said
    finally:
        first.kill()
        first.communicate()
    assert not (tmp_path / "run.nc.lock").exists()


@pytest.mark.slow
def test_two_explanations_in_one_folder(tmp_path, reluflow):
    arguments = ("explain", "three-points", "--m", 40, "-o", "out")
    first = begin(tmp_path, *arguments)
    wait_for(tmp_path / "out" / ".explain" / "lock", first)
    second = reluflow(*arguments)
    _, error = first.communicate(timeout=300)
    assert first.returncode == 0, error
    assert second.refused, second.err
    assert f"process {first.pid} on " in second.err
    assert second.out == ""
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "certificates",
        "report.html",
        "report.json",
        "run.nc",
    ]
