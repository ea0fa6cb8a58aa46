"""MNIST pairs: synthetic IDX files for the reader, the real files where there are any."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from reluflow import ReluflowError, datasets, losses
from reluflow.problem.datasets.mnist import FILES, read_idx

COUNTS = {"train": [5, 7, 4, 6, 5, 5, 5, 8, 5, 5], "test": [3] * 10}


def idx(array: np.ndarray) -> bytes:
    sizes = np.array(array.shape, dtype=">u4").tobytes()
    return bytes([0, 0, 8, array.ndim]) + sizes + array.astype(np.uint8).tobytes()


def synthetic(split: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([3, split == "test"])
    labels = rng.permutation(np.repeat(np.arange(10), COUNTS[split]))
    return rng.integers(0, 256, (len(labels), 28, 28)), labels


@pytest.fixture(params=[".gz", ""])
def folder(request, tmp_path, monkeypatch):
    monkeypatch.delenv("RELUFLOW_DATA", raising=False)
    for split, names in FILES.items():
        for name, array in zip(names, synthetic(split), strict=True):
            data = idx(array)
            (tmp_path / (name + request.param)).write_bytes(
                gzip.compress(data) if request.param else data
            )
    return tmp_path


@pytest.mark.parametrize("split", ["train", "test"])
def test_pair(folder, split):
    problem = datasets.mnist_pair(7, 2, folder, split=split)
    images, labels = synthetic(split)
    raw = images.reshape(-1, 784)
    want = np.concatenate([raw[labels == 7], raw[labels == 2]]) / 255
    np.testing.assert_allclose(problem.known["mean"], want.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(problem.X, want - want.mean(axis=0), atol=1e-14)
    counts = [COUNTS[split][7], COUNTS[split][2]]
    np.testing.assert_array_equal(problem.y, np.repeat([1.0, -1.0], counts))
    assert problem.known["digits"] == (7, 2)
    assert problem.name == "mnist-7-2"
    assert (problem.loss, problem.reduction) == (losses.Exponential(), "mean")
    # the identity behind cos(x_+, x_-) = -1
    plus, minus = (problem.X[problem.y == s].sum(axis=0) for s in (1, -1))
    np.testing.assert_allclose(plus, -minus, atol=1e-12)
    cosine = plus @ minus / np.linalg.norm(plus) / np.linalg.norm(minus)
    np.testing.assert_allclose(cosine, problem.known["class_sum_cosine"], rtol=1e-12)


@pytest.mark.parametrize("split", ["train", "test"])
def test_ten_digits_are_ten_classes(folder, split):
    problem = datasets.load("mnist-digits", folder=folder, split=split, bias=1.0)
    images, labels = synthetic(split)
    raw = images.reshape(-1, 784) / 255
    assert (problem.K, problem.d, problem.loss.name) == (10, 785, "softmax")
    assert problem.classes == tuple("0123456789")
    assert problem.name == "mnist-digits"
    np.testing.assert_array_equal(np.bincount(problem.labels), COUNTS[split])
    np.testing.assert_allclose(problem.known["mean"], raw.mean(axis=0), rtol=1e-13)
    sevens = problem.X[problem.labels == 7, :784] + problem.known["mean"]
    np.testing.assert_allclose(sevens, raw[labels == 7], atol=1e-14)


def test_some_digits_in_the_order_given(folder):
    problem = datasets.mnist_digits((7, 2, 4), folder, per_class=3, center=False)
    assert (problem.K, problem.n, problem.name) == (3, 9, "mnist-7-2-4")
    assert [problem.classes[c] for c in problem.labels] == ["7"] * 3 + ["2"] * 3 + ["4"] * 3
    assert not problem.known["mean"].any()
    with pytest.raises(ReluflowError, match="expected at least two different ones"):
        datasets.mnist_digits((3, 3), folder)
    with pytest.raises(ReluflowError, match="has 7 images of digit 1: expected at least 8"):
        datasets.mnist_digits((7, 1), folder, per_class=8)


def test_defaults(folder):
    problem = datasets.mnist_pair(folder=folder)
    assert problem.known["digits"] == (1, 0)
    assert problem.n == COUNTS["train"][0] + COUNTS["train"][1]


def test_first_images_of_each_class(folder):
    whole = datasets.mnist_pair(7, 2, folder, center=False)
    part = datasets.mnist_pair(7, 2, folder, center=False, per_class=2)
    np.testing.assert_array_equal(part.y, [1, 1, -1, -1])
    np.testing.assert_array_equal(part.X[:2], whole.X[:2])
    np.testing.assert_array_equal(part.X[2:], whole.X[8:10])
    assert whole.X.min() >= 0
    assert whole.X.max() <= 1
    assert "class_sum_cosine" not in whole.known


def test_test_images_about_the_training_mean(folder):
    train = datasets.mnist_pair(1, 0, folder)
    test = datasets.mnist_pair(1, 0, folder, split="test", center=train.known["mean"])
    plain = datasets.mnist_pair(1, 0, folder, split="test", center=False)
    np.testing.assert_allclose(test.X, plain.X - train.known["mean"], atol=1e-15)
    with pytest.raises(ReluflowError, match="center has 3 entries but images have 784 pixels"):
        datasets.mnist_pair(1, 0, folder, center=np.zeros(3))


def test_folder_from_the_environment(folder, monkeypatch, tmp_path_factory):
    monkeypatch.setenv("RELUFLOW_DATA", str(folder))
    by_env = datasets.load("mnist", positive=3, negative=8)
    above = tmp_path_factory.mktemp("data")
    (above / "mnist").symlink_to(folder, target_is_directory=True)
    monkeypatch.setenv("RELUFLOW_DATA", str(above))
    nested = datasets.load("mnist", positive=3, negative=8)
    np.testing.assert_array_equal(by_env.X, nested.X)
    np.testing.assert_array_equal(datasets.mnist_pair(3, 8, above).X, nested.X)


def test_missing_files_are_named(tmp_path, monkeypatch):
    monkeypatch.delenv("RELUFLOW_DATA", raising=False)
    for options in ({}, {"folder": tmp_path}, {"folder": tmp_path / "absent"}):
        with pytest.raises(ReluflowError) as caught:
            datasets.mnist_pair(**options)
        message = str(caught.value)
        for name in (name for pair in FILES.values() for name in pair):
            assert name in message
        assert "RELUFLOW_DATA" in message
        assert "download=True" in message
        if options:
            assert str(options["folder"]) in message


def test_only_one_of_two_files(folder):
    next(folder.glob("train-labels*")).unlink()
    with pytest.raises(ReluflowError, match="MNIST is not there"):
        datasets.mnist_pair(1, 0, folder)
    assert datasets.mnist_pair(1, 0, folder, split="test").n == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"positive": 10}, "a digit must be a whole number from 0 to 9, got 10"),
        ({"negative": "0"}, "negative must be a whole number, got '0'"),
        ({"positive": 4, "negative": 4}, "positive and negative are both 4"),
        ({"split": "all"}, "split must be 'train' or 'test', got 'all'"),
        ({"per_class": 0}, "per_class must be a whole number of at least 1, got 0"),
        ({"per_class": 6}, "has 5 images of digit 0: expected at least 6, lower per_class"),
    ],
)
def test_refusals(folder, options, message):
    with pytest.raises(ReluflowError, match=message):
        datasets.mnist_pair(**{"folder": folder, **options})


GOOD = idx(np.arange(24).reshape(2, 3, 4))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "starts with nothing, expected 00000803"),
        (b"PK\x03\x04" + GOOD[4:], "starts with 504b0304, expected 00000803"),
        (idx(np.arange(3)), "starts with 00000801, expected 00000803"),
        (GOOD[:10], "ends inside its header"),
        (GOOD[:-1], r"holds only 23 bytes, expected 24 for shape \(2, 3, 4\)"),
        (GOOD + b"x", "holds more bytes, expected 24"),
        (GOOD[:4] + b"\xff" * 12, "announces .* bytes of shape .* the file is not MNIST"),
    ],
)
@pytest.mark.parametrize("packed", [True, False])
def test_bad_idx_files(tmp_path, data, message, packed):
    path = tmp_path / ("images.gz" if packed else "images")
    path.write_bytes(gzip.compress(data) if packed else data)
    with pytest.raises(ReluflowError, match=message):
        read_idx(path, 3)


def test_good_idx_file(tmp_path):
    path = tmp_path / "images"
    path.write_bytes(GOOD)
    np.testing.assert_array_equal(read_idx(path, 3), np.arange(24).reshape(2, 3, 4))


def test_bad_gzip(tmp_path):
    path = tmp_path / "images.gz"
    packed = gzip.compress(GOOD)
    damaged = bytearray(packed)
    damaged[15] ^= 0xFF
    for data in (GOOD, packed[:-12], bytes(damaged)):
        path.write_bytes(data)
        with pytest.raises(ReluflowError, match=r"images.gz .*download it again|expected 00000803"):
            read_idx(path, 3)


def test_files_that_do_not_belong_together(folder):
    for name in FILES["train"][1:]:
        for path in folder.glob(name + "*"):
            data = idx(np.zeros(3))
            path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    with pytest.raises(ReluflowError, match=r"has 55 images but .* has 3 labels"):
        datasets.mnist_pair(1, 0, folder)


def test_download_through_openml(monkeypatch, tmp_path):
    monkeypatch.delenv("RELUFLOW_DATA", raising=False)
    calls = []

    def fetch(name, **options):
        calls.append((name, options))
        X = np.zeros((60_010, 4))
        X[60_000:] = 255.0
        y = np.array([str(i % 10) for i in range(60_010)], dtype=object)
        return X, y

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    train = datasets.mnist_pair(1, 0, tmp_path, download=True, center=False)
    test = datasets.mnist_pair(1, 0, download=True, split="test", center=False)
    assert [name for name, _ in calls] == ["mnist_784", "mnist_784"]
    assert (train.n, test.n) == (12_000, 2)
    assert train.X.max() == 0.0
    assert test.X.min() == 1.0


def test_files_come_before_a_download(folder, monkeypatch):
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda *a, **k: pytest.fail("fetched"))
    assert datasets.mnist_pair(1, 0, folder, download=True).d == 784


def test_failed_download(monkeypatch, tmp_path):
    def fetch(*args, **options):
        raise OSError("no route to host")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    with pytest.raises(ReluflowError, match=r"could not be downloaded .*no route to host"):
        datasets.mnist_pair(1, 0, tmp_path, download=True)


def test_real_files(mnist_folder):
    train = datasets.mnist_pair(1, 0, mnist_folder)
    assert ((train.y > 0).sum(), (train.y < 0).sum()) == (6742, 5923)
    test = datasets.mnist_pair(3, 8, mnist_folder, split="test")
    assert ((test.y > 0).sum(), (test.y < 0).sum()) == (1010, 974)
    assert np.abs(train.X.mean(axis=0)).max() < 1e-12


def test_real_digits_zero_and_one_are_mostly_correlated_by_class(mnist_folder):
    problem = datasets.mnist_pair(1, 0, mnist_folder, per_class=1000)
    Z = problem.y[:, None] * problem.X
    Z /= np.linalg.norm(Z, axis=1)[:, None]
    products = Z @ Z.T
    assert 0.90 < np.mean(products > 0) < 0.96
    assert products.min() < 0  # the assumption of the theorem fails on real digits
