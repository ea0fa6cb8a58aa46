"""Compiled kernels: without a place for them, with damaged files, and after a change of source."""

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import reluflow
from reluflow._compiled import source_stamp

CALL = """
import numpy as np
from reluflow.kernels.pull import exploded
import reluflow.kernels.planar, reluflow.kernels.dense
print(exploded(np.array([1.0, 2.0]), 1.5), exploded(np.array([1.0]), 1.5))
"""
NO_PLACE = """
import numba.core.caching as caching
def refuse(self):
    raise OSError(30, "Read-only file system")
caching._CacheLocator.ensure_cache_path = refuse
"""
ON_TOP = """
import numba
@numba.njit
def twice(values):
    return exploded(values, 1.5), exploded(2.0 * values, 1.5)
print(*twice(np.array([1.0])))
"""
WITHOUT_BITCODE = """
import reluflow._compiled
reluflow._compiled.llvm = None
"""
COMMAND = """
import sys
sys.argv = ["reluflow", *sys.argv[1:]]
from reluflow.cli.main import main
main()
"""


def run(script, *arguments, folder=None, file_bytes=None):
    """A script in a process of its own, with a folder of its own for compiled kernels."""

    def limit():
        if file_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))

    environment = {**os.environ, "RELUFLOW_WITHOUT_CACHE": ""}
    if folder is not None:
        environment["NUMBA_CACHE_DIR"] = str(folder)
    return subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
        preexec_fn=limit,
    )


def test_without_a_place_kernels_compile_and_it_is_said_once():
    done = run(NO_PLACE + CALL)
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout == "True False\n"
    assert done.stderr.count("no folder for compiled kernels can be written") == 1


@pytest.mark.slow
def test_commands_work_without_a_place(tmp_path):
    arguments = ("simulate", "three-points", "--m", "4", "--lr", "0.1", "--steps", "3")
    done = run(NO_PLACE + COMMAND, *arguments, "-o", str(tmp_path / "run.nc"))
    assert done.returncode == 0, done.stderr[-500:]
    sentence = done.stderr.strip()
    assert "\n" not in sentence
    assert sentence.startswith("reluflow: no folder for compiled kernels can be written")
    refused = run(NO_PLACE + COMMAND, "warm")
    assert refused.returncode == 2
    assert "set NUMBA_CACHE_DIR" in refused.stderr


@pytest.mark.parametrize("first", ["", WITHOUT_BITCODE])
@pytest.mark.parametrize("then", ["", WITHOUT_BITCODE])
def test_kernels_are_compiled_on_top_of_loaded_ones(tmp_path, first, then):
    """Bitcode that was not read when a kernel was loaded is there when another one needs it."""
    assert run(first + CALL, folder=tmp_path).stdout == "True False\n"
    made = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nb[ic]")}
    assert made
    done = run(then + CALL + ON_TOP, folder=tmp_path)
    assert done.stdout == "True False\nFalse True\n", done.stderr[-500:]
    assert made == {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.nb[ic]")}


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_files_cut_short_are_made_again(tmp_path, ending):
    assert run(CALL, folder=tmp_path).stdout == "True False\n"
    files = list(tmp_path.rglob(f"*.{ending}"))
    assert files
    for keep in (0, 7, 0.5):
        for path in files:
            data = path.read_bytes()
            path.write_bytes(data[: int(keep if keep >= 1 else keep * len(data))])
        done = run(CALL, folder=tmp_path)
        assert done.stdout == "True False\n", done.stderr[-500:]
        assert done.stderr == ""
        assert all(path.stat().st_size > 100 for path in files)


def test_a_full_disk_leaves_kernels_uncompiled_but_working(tmp_path):
    done = run(CALL, folder=tmp_path, file_bytes=50)
    assert done.stdout == "True False\n", done.stderr[-500:]
    assert not list(tmp_path.rglob("*.nbc"))


def test_code_belongs_to_all_sources_it_was_made_from(tmp_path):
    """A change in a kernel that another one calls makes both of them new."""
    shutil.copytree(Path(reluflow.__file__).parent / "kernels", tmp_path / "kernels")
    caller, called, other = (tmp_path / "kernels" / f"{n}.py" for n in ("planar", "dense", "wheel"))
    before = [source_stamp(str(path)) for path in (caller, called, other)]
    called.write_text(called.read_text() + "\n# changed\n")
    source_stamp.cache_clear()
    after = [source_stamp(str(path)) for path in (caller, called, other)]
    assert [old != new for old, new in zip(before, after, strict=True)] == [True, True, False]


def test_every_kernel_is_kept_by_us():
    """None by Numba's own cache, which would not notice such a change."""
    from reluflow import _compiled
    from reluflow.cli.warming import kernels

    kept = [kernel for _, kernel in kernels() if _compiled.kept_in(kernel) is not None]
    assert len(kept) > 60
    assert all(isinstance(kernel._cache, _compiled._Cache) for kernel in kept)
    assert np.all([kernel.py_func.__code__.co_filename.endswith(".py") for kernel in kept])


@pytest.mark.slow
def test_warm_leaves_nothing_to_compile(tmp_path):
    """An explanation and simulations after it find every kernel they need."""
    done = run(COMMAND, "warm", folder=tmp_path)
    assert done.returncode == 0, done.stderr[-500:]
    made = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")}
    assert len(made) > 60
    out = tmp_path / "out"
    for arguments in (
        ("explain", "three-points", "--m", "30", "-o", str(out)),
        ("simulate", "three-points", "--lr", "0.01", "--steps", "50", "-o", str(out / "d.nc")),
        ("simulate", "toy6", "--t-end", "5", "--m", "10", "-o", str(out / "f.nc")),
    ):
        assert run(COMMAND, *arguments, folder=tmp_path).returncode == 0
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nbc")}
    assert after == made


SHAPES = """
import numpy as np
from reluflow import Problem, align, descend, extremal_vectors, flow, initialize, limit
from reluflow import stationarity
from reluflow.cli.warming import kernels
rng = np.random.default_rng(0)
for n, d, loss in ((6, 1, "square"), (1, 3, "half_square"), (6, 3, "logistic"), (7, 2, "square")):
    X, y = rng.standard_normal((n, d)), np.sign(rng.standard_normal(n))
    problem = Problem(X, y, loss=loss)
    net = initialize(problem, 5, 1e-3, rng=0)
    extremal_vectors(problem), align(problem, net), limit(problem, net)
    for kinks in (True, False):
        flow(problem, net, t_end=3.0, kinks=kinks, max_steps=2000)
    for backend in ("dense", "lumped"):
        run = descend(problem, net, lr=0.01, steps=10, backend=backend)
    stationarity(problem, run.final)
print("again:", *[name for name, kernel in kernels() if len(kernel.signatures) > 1])
print("strided:", *[name for name, kernel in kernels()
                   if any(order in str(kernel.signatures) for order in ("'F'", "'A'"))])
"""


def test_shapes_of_tables_do_not_compile_kernels_again():
    """One feature once made frozen views where others had copies: 30 s of compiling.

    Lumped steps are compiled for each number of features on purpose.
    """
    done = run(SHAPES)
    assert done.returncode == 0, done.stderr[-500:]
    again, strided = done.stdout.splitlines()
    assert set(again.split()[1:]) <= {"lumped.lumped_steps"}
    assert strided == "strided:"  # a matrix in the wrong order made dense steps five times slower
