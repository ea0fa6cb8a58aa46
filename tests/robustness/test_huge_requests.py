"""Sizes are checked before memory is taken, and counts before anything is enumerated."""

import tracemalloc
import zipfile

import numpy as np
import pytest

from reluflow import ReluflowError
from reluflow.problem.readers import read_columns
from reluflow.sweeps import sweep
from reluflow.sweeps.grid import MOST_POINTS, make_grid, seeds_of


@pytest.fixture
def little_memory():
    """The test may take 50 MB; what it refuses must cost nothing."""
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50e6


HUGE = {
    "seeds": ({"x": 1}, 10**20),
    "listed seeds": ({"x": 1}, range(10**12)),
    "num": ({"x": {"from": 0, "to": 1, "num": 10**9}}, 1),
    "logarithmic": ({"x": {"from": 1, "to": 2, "num": 10**9, "log": True}}, 1),
    "step": ({"x": {"from": 0, "to": 1.0, "step": 1e-9}}, 1),
    "tiny step": ({"x": {"from": 0, "to": 1e300, "step": 1e-300}}, 1),
    "range": ({"x": range(10**10)}, 1),
    "product": ({name: list(range(1000)) for name in "xyz"}, 1),
    "both": ({"x": list(range(1000))}, 10**6),
}


@pytest.mark.parametrize("what", HUGE)
def test_a_grid_that_is_too_large_is_one_sentence(what, little_memory):
    grid, seeds = HUGE[what]
    with pytest.raises(ReluflowError, match="more than the 10,000,000 points") as caught:
        make_grid(grid, seeds)
    assert "\n" not in str(caught.value)


def test_the_largest_grid_is_made_without_its_points(little_memory):
    grid = make_grid({"x": {"from": 1, "to": 10, "num": 10}}, MOST_POINTS // 10)
    assert len(grid) == MOST_POINTS
    last = grid.point(MOST_POINTS - 1)
    assert (last.seed, last.settings["x"]) == (MOST_POINTS // 10 - 1, 10)
    assert seeds_of(0, last.draw).entropy == 0
    assert len(str(grid.describe())) < 1000  # the title of its table stays short


def test_seeds_of_ordinary_sweeps_are_described_as_before():
    assert make_grid({"x": 1}, 3).describe()["seeds"] == [0, 1, 2]


def test_the_command_refuses(reluflow, tmp_path):
    (tmp_path / "s.toml").write_text('task = "min_norm"\nseeds = 100000000000000000000\n')
    done = reluflow("sweep", "s.toml", memory=4 << 30)
    assert done.refused, done.err
    leak = "{from = 0.0, to = 0.5, num = 1000000000}"
    (tmp_path / "s.toml").write_text(
        f'task = "min_norm"\n[problem]\nname = "golden"\nleak = {leak}\n'
    )
    done = reluflow("sweep", "s.toml", memory=4 << 30)
    assert done.refused, done.err
    assert "1,000,000,000 values" in done.err


def test_sweep_of_a_task_refuses_before_it_runs():
    with pytest.raises(ReluflowError, match=r"seeds has 1e\+20 values"):
        sweep("min_norm", {"problem.name": "golden"}, seeds=10**20)


@pytest.mark.slow
def test_an_array_that_expands_a_thousandfold_is_refused(tmp_path, little_memory):
    """880 kB of zeros in 880 MB: not a byte of it is read."""
    path = tmp_path / "bomb.npz"
    row = bytes(1 << 20)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, shape in (("X", (1 << 20, 100)), ("y", (1 << 20,))):
            head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}".ljust(117) + "\n"
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                file.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
                for _ in range(8 * int(np.prod(shape)) // len(row)):
                    file.write(row)
    assert path.stat().st_size < 1e6
    with pytest.raises(ReluflowError, match=r"expands from .* to 838,860,800 bytes"):
        read_columns(path)


def test_labels_are_counted_before_samples_are_read(tmp_path, little_memory):
    path = tmp_path / "data.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, shape in (("X", (10, 10)), ("y", (11,))):
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, np.zeros(shape))
    with pytest.raises(ReluflowError, match="y has 11 labels but X has 10 samples"):
        read_columns(path)


def test_compressed_data_are_read_as_they_were(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 30)), rng.standard_normal(200)
    np.savez_compressed(tmp_path / "a.npz", X=np.asfortranarray(X), y=y)
    table = read_columns(tmp_path / "a.npz")
    assert np.array_equal(np.column_stack(table.cells), np.column_stack([X, y]))


@pytest.mark.parametrize("ending", ["parquet", "xlsx"])
def test_tables_that_expand_are_refused(tmp_path, ending):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    pytest.importorskip("openpyxl")
    path = tmp_path / f"t.{ending}"
    frame = pandas.DataFrame(np.zeros((5000, 3)), columns=list("abc"))
    getattr(frame, {"parquet": "to_parquet", "xlsx": "to_excel"}[ending])(path, index=False)
    size = path.stat().st_size
    assert len(read_columns(path)) == 5000
    with pytest.raises(ReluflowError, match=r"expands to .* bytes"):
        read_columns(path, max_bytes=max(size + 1, 100_000))
