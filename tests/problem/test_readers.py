"""CSV and npz readers: what they take, and one sentence for everything they do not."""

from __future__ import annotations

import io
import pickle
import zipfile

import numpy as np
import pytest
from numpy.lib import format as npy

from reluflow import ReluflowError, datasets, losses

X = np.array([[1.0, 2.0], [-0.5, 1e-3], [3.0, 4.0]])
y = np.array([1.0, -1.0, 1.0])
ROWS = "1,2,1\n-0.5,1e-3,-1\n3,4,1\n"


def write(tmp_path, text, name="mine.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    "text",
    [
        ROWS,
        "a,b,label\n" + ROWS,
        "\n\na,b,label\n\n" + ROWS.replace("\n", "\n\n"),
        ROWS.replace("\n", "\r\n"),
        ROWS.rstrip("\n"),
        ROWS.replace(",", " , "),
        ROWS.replace(",", "\t,"),
        ROWS.replace(",", ",\t"),
        "\ufeff" + ROWS,
        "\ufeffa,b,c\n" + ROWS,
    ],
)
def test_csv(tmp_path, text):
    problem = datasets.read_csv(write(tmp_path, text))
    np.testing.assert_array_equal(problem.X, X)
    np.testing.assert_array_equal(problem.y, y)
    assert problem.name == "mine"
    header = {"features": ("a", "b")} if "a" in text.strip().splitlines()[0] else {}
    assert {k: v for k, v in problem.known.items() if k != "notes"} == header


def test_csv_options(tmp_path):
    path = write(tmp_path, ROWS)
    problem = datasets.load(path, loss="logistic", leak=0.1, reduction="sum", bias=1.0)
    assert problem.loss == losses.Logistic()
    assert (problem.leak, problem.reduction, problem.d) == (0.1, "sum", 3)


def test_csv_of_one_sample(tmp_path):
    problem = datasets.read_csv(write(tmp_path, "2,3\n"))
    assert (problem.n, problem.d) == (1, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "mine.csv is empty: expected lines of numbers"),
        ("\n \n", "mine.csv is empty"),
        ("a,b,c\n", "has a header but no samples"),
        ("1\n2\n", "has 1 column: expected at least one feature and the label"),
        ("1 2  3\n", "columns separated by spaces: expected commas, semicolons or tabs, replace"),
        ("a,b\n1,2\n\nnan,3\n", "has 1 blank cell in 1 row, the first at line 4 column 1: fill it"),
        ("1,2\n1,-inf\n", "line 2 column 2 holds -inf: expected finite"),
        ("a,b\n1,2\n1,2,3\n", "line 3 has 3 columns, expected 2"),
        ("1,2\n\n1\n", "line 3 has 1 columns, expected 2"),
        ("1,2\n1,x\n", "line 2 column 2 holds 'x': expected a number, drop that column"),
        ("a,b\n1,2\n,2\n", "has 1 blank cell in 1 row, the first at line 3 column 1: fill it"),
        ("1,x\n3,4\n", "line 1 column 2 holds 'x': expected a number"),
        ("1,inf\n1,2\n", "line 1 column 2 holds inf"),
        ('a,"b,c\n1,2,3\n', "line 1 opens a quote that is not closed: close it or remove it"),
        ("a" * 200_000 + ",b\n1,2\n", "line 1: field larger than field limit"),
    ],
)
def test_csv_refusals(tmp_path, text, message):
    with pytest.raises(ReluflowError, match=message):
        datasets.read_csv(write(tmp_path, text))


def test_csv_in_another_encoding(tmp_path):
    with pytest.raises(ReluflowError, match="is not text in UTF-8"):
        datasets.read_csv(write(tmp_path, "größe,y\n1,2\n", encoding="latin-1"))
    with pytest.raises(ReluflowError, match="is not text in UTF-8"):
        datasets.read_csv(write(tmp_path, ROWS * 4000 + "ö,1,1\n", encoding="latin-1"))


def test_csv_labels_are_checked_by_the_loss(tmp_path):
    with pytest.raises(ReluflowError, match=r"needs labels -1 and \+1, got 3"):
        datasets.read_csv(write(tmp_path, "1,2,3\n"), loss="logistic")


@pytest.mark.parametrize("name", ["data.csv", "data.npz"])
def test_missing_files_and_folders(tmp_path, name):
    with pytest.raises(ReluflowError, match=f"{name} does not exist: expected the path of"):
        datasets.load(tmp_path / name)
    (tmp_path / name).mkdir()
    with pytest.raises(ReluflowError, match=f"{name} is a folder"):
        datasets.load(tmp_path / name)


@pytest.mark.parametrize("name", ["data.csv", "data.npz"])
def test_large_files_are_refused_before_parsing(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"not even the right format")
    with pytest.raises(ReluflowError, match="has 25 bytes, more than max_bytes=10"):
        datasets.load(path, max_bytes=10)


def test_other_files(tmp_path):
    path = write(tmp_path, ROWS, "mine.txt")
    with pytest.raises(
        ReluflowError,
        match=r"is not a table this library reads: expected a file that ends in .csv, .tsv",
    ):
        datasets.load(path)
    with pytest.raises(ReluflowError, match=r"mine.csv has no option 'rng': expected one of loss"):
        datasets.load(write(tmp_path, ROWS), rng=0)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, ">f8", np.int16, np.bool_])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path, order, dtype, save):
    path = tmp_path / "mine.npz"
    array = np.asarray(X, dtype=dtype, order=order)
    save(path, X=array, y=y, other=np.arange(3))
    problem = datasets.load(path, loss="logistic")
    np.testing.assert_array_equal(problem.X, np.asarray(array, dtype=float))
    np.testing.assert_array_equal(problem.y, y)
    assert problem.name == "mine"
    assert problem.loss == losses.Logistic()


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a stranger's pickle was run",))


def test_npz_never_unpickles(tmp_path):
    path = tmp_path / "bad.npz"
    np.savez(path, X=np.array([[Bomb()]], dtype=object), y=np.ones(1))
    with pytest.raises(ReluflowError, match=r"array X has type object.*never unpickled"):
        datasets.read_npz(path)
    path.write_bytes(pickle.dumps({"X": X, "y": y}))
    with pytest.raises(ReluflowError, match=r"is not a readable .npz file"):
        datasets.read_npz(path)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": X}, "has no array 'y': expected X and y, got X"),
        ({"x": X, "y": y}, "has no array 'X': expected X and y, got x, y"),
        ({"X": X + 0j, "y": y}, "array X has type complex128, expected real numbers"),
        ({"X": X.astype(str), "y": y}, "array X has type <U.*expected real numbers"),
        ({"X": X[0], "y": y}, r"array X has shape \(2,\), expected 2 dimension"),
        ({"X": X, "y": y[:2]}, "y has 2 labels but X has 3 samples"),
        ({"X": np.zeros((0, 2)), "y": np.zeros(0)}, "X is empty"),
    ],
)
def test_npz_refusals(tmp_path, arrays, message):
    path = tmp_path / "mine.npz"
    np.savez(path, **arrays)
    with pytest.raises(ReluflowError, match=message):
        datasets.read_npz(path)


def header_only(shape, payload: bytes = b"", dtype="<f8") -> bytes:
    """An .npy member that announces a shape and holds other bytes."""
    file = io.BytesIO()
    npy.write_array_header_1_0(file, {"descr": dtype, "fortran_order": False, "shape": shape})
    return file.getvalue() + payload


def archive(path, **members):
    with zipfile.ZipFile(path, "w") as target:
        for key, data in members.items():
            target.writestr(key + ".npy", data)
    return path


def test_npz_sizes_are_checked_before_allocation(tmp_path):
    path = archive(tmp_path / "m.npz", X=header_only((10**9, 10**9)), y=header_only((1,)))
    with pytest.raises(ReluflowError, match=r"array X of shape .* needs .* more than max_bytes"):
        datasets.read_npz(path)
    path = archive(tmp_path / "m.npz", X=header_only((2, 2), bytes(24)), y=header_only((2,)))
    with pytest.raises(ReluflowError, match="array X holds fewer bytes than its shape"):
        datasets.read_npz(path)
    path = archive(tmp_path / "m.npz", X=header_only((2, 2), bytes(40)), y=header_only((2,)))
    with pytest.raises(ReluflowError, match="array X holds more bytes than its shape"):
        datasets.read_npz(path)


def test_npz_with_a_negative_size(tmp_path):
    path = archive(tmp_path / "m.npz", X=header_only((-1, 2), bytes(16)), y=header_only((1,)))
    with pytest.raises(ReluflowError, match="array X has a bad header"):
        datasets.read_npz(path)


def test_npz_with_a_bad_header(tmp_path):
    path = archive(tmp_path / "m.npz", X=b"\x93NUMPY nonsense", y=b"")
    with pytest.raises(ReluflowError, match="array X has a bad header"):
        datasets.read_npz(path)


def test_npz_truncated_or_corrupt(tmp_path):
    path = tmp_path / "m.npz"
    np.savez(path, X=np.random.default_rng(0).standard_normal((50, 4)), y=np.ones(50))
    data = path.read_bytes()
    for cut in (10, len(data) // 2, len(data) - 5):
        path.write_bytes(data[:cut])
        with pytest.raises(ReluflowError, match=r"is not a readable .npz file"):
            datasets.read_npz(path)
    middle = bytearray(data)
    middle[600] ^= 0xFF
    path.write_bytes(bytes(middle))
    with pytest.raises(ReluflowError, match=r"is not a readable .npz file \(Bad CRC"):
        datasets.read_npz(path)


def test_npz_damaged_anywhere_is_refused_or_read_whole(tmp_path):
    path = tmp_path / "m.npz"
    X, y = np.random.default_rng(0).standard_normal((20, 2)), np.ones(20)
    np.savez_compressed(path, X=X, y=y)
    data = path.read_bytes()
    for place in range(0, len(data), 3):
        damaged = bytearray(data)
        damaged[place] ^= 0x55
        path.write_bytes(bytes(damaged))
        try:
            problem = datasets.read_npz(path)
        except ReluflowError:
            continue
        np.testing.assert_array_equal(problem.X, X)
        np.testing.assert_array_equal(problem.y, y)


def test_a_built_in_name_wins_over_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, ROWS, "toy6")
    assert datasets.load("toy6").name == "toy6"
    assert datasets.load("toy6").n == 6
