"""Image files are data: read exactly, or refused with a sentence."""

import os
import pickle
import tracemalloc

import numpy as np
import pytest

from reluflow import ReluflowError
from reluflow.torch.dominoes import choose_digits, dominoes, enlarge, statistics, through_jpeg
from reluflow.torch.images import cifar10_images, mnist_images


def test_original_formats(folder):
    images, labels = mnist_images(folder)
    assert images.shape == (900, 28, 28)
    assert (images[np.arange(900), 2 + 2 * labels] == 255).all()
    assert len(mnist_images(folder, "test")[0]) == 300
    images, labels = cifar10_images(folder)
    assert images.shape == (400, 32, 32, 3)
    assert (images[..., 0] == 25 * labels[:, None, None]).all()  # red is the first channel
    with open(folder / "cifar-10-batches-py" / "data_batch_1", "rb") as file:
        first = pickle.load(file)["data"][3]  # our own file, written by the fixture
    assert (images[3].transpose(2, 0, 1).ravel() == first).all()


def test_subset_file(folder, tmp_path):
    place = tmp_path / "other" / "cifar10"
    place.mkdir(parents=True)
    x, y = cifar10_images(folder)
    np.savez(place / "cifar10_subset.npz", x_train=x, y_train=y, x_test=x[:7], y_test=y[:7])
    assert (cifar10_images(tmp_path / "other")[0] == x).all()
    assert len(cifar10_images(tmp_path / "other", "test")[1]) == 7
    np.savez(place / "cifar10_subset.npz", x_train=x.astype(float), y_train=y)
    with pytest.raises(ReluflowError, match="expected uint8"):
        cifar10_images(tmp_path / "other")
    with pytest.raises(ReluflowError, match="cannot be read"):
        cifar10_images(tmp_path / "other", "test")


class Bad:
    def __reduce__(self):
        return os.system, ("exit 1",)


@pytest.mark.parametrize("content", [Bad(), {"data": Bad()}, [1], {"data": 3, "labels": 2}])
def test_pickles_that_are_no_batch_are_refused(folder, content):
    path = folder / "cifar-10-batches-py" / "test_batch"
    path.write_bytes(pickle.dumps(content))
    with pytest.raises(ReluflowError, match="test_batch"):
        cifar10_images(folder, "test")
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ReluflowError, match="test_batch"):
        cifar10_images(folder, "test")


SHAPE = (1_302_084, 3072)  # 4e9 bytes


class Announced:
    """Pickled like an array of this shape, with a few bytes of content."""

    def __init__(self, shape, kind="u1", content=b"few"):
        self.state = (1, shape, np.dtype(kind), False, content)

    def __reduce__(self):
        return np.empty(0).__reduce__()[0], (np.ndarray, (0,), b"b"), self.state


class Made:
    """Pickled like an array of this shape that is built at once."""

    def __init__(self, maker, *arguments):
        self.made = maker, arguments

    def __reduce__(self):
        return self.made


def announced_bytes(size):
    """A pickle of a dictionary whose data say that they are so many bytes."""
    return b"\x80\x04}X\x04\x00\x00\x00data\x8e" + size.to_bytes(8, "little") + b"fews."


MAKE = np.empty(0).__reduce__()[0]
LARGE = {
    "state": pickle.dumps({"data": Announced(SHAPE), "labels": [1]}),
    "objects": pickle.dumps({"data": Announced(SHAPE, "O", [1]), "labels": [1]}),
    "reconstruct": pickle.dumps({"data": Made(MAKE, np.ndarray, SHAPE, b"b"), "labels": [1]}),
    "ndarray": pickle.dumps({"data": Made(np.ndarray, SHAPE, np.dtype("u1")), "labels": [1]}),
    "type": pickle.dumps({"data": Made(np.ndarray, (1,), np.dtype("V2000000000")), "labels": [1]}),
    "bytes": announced_bytes(4_000_000_000),
    "memo": b"\x80\x02}r" + (2**28).to_bytes(4, "little") + b".",
}


@pytest.mark.parametrize("content", LARGE.values(), ids=LARGE)
def test_announced_sizes_are_not_allocated(folder, content):
    path = folder / "cifar-10-batches-py" / "test_batch"
    path.write_bytes(content)
    assert len(content) < 1000
    tracemalloc.start()
    try:
        with pytest.raises(ReluflowError, match="is not a CIFAR-10 batch"):
            cifar10_images(folder, "test")
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("protocol", range(5))
def test_batches_of_every_protocol(folder, protocol):
    x, y = cifar10_images(folder, "test")
    flat = np.ascontiguousarray(x.transpose(0, 3, 1, 2)).reshape(len(x), 3072)
    path = folder / "cifar-10-batches-py" / "test_batch"
    for labels in (y.tolist(), y.astype(">i8"), y.astype("<i4")):
        path.write_bytes(pickle.dumps({"data": flat, "labels": labels}, protocol=protocol))
        again = cifar10_images(folder, "test")
        assert (again[0] == x).all()
        assert (again[1] == y).all()


def test_what_is_missing_is_said(tmp_path, monkeypatch):
    monkeypatch.delenv("RELUFLOW_DATA", raising=False)
    with pytest.raises(ReluflowError, match="CIFAR-10 is not there"):
        cifar10_images(tmp_path)
    with pytest.raises(ReluflowError, match="RELUFLOW_DATA"):
        cifar10_images()
    with pytest.raises(ReluflowError, match="split must be"):
        mnist_images(tmp_path, "validation")


def test_dominoes_match_and_split(folder):
    data = dominoes(folder)
    assert [len(p) for p in (data.train, data.validation)] == [300, 100]
    assert [len(p) for p in (data.probe_train, data.probe_validation)] == [60, 20]
    for part in (data.train, data.validation):
        assert (part.digits == part.objects).all()
        assert part.images.shape[1:] == (64, 32, 3)
        assert (part.images[:, 32:, :, 0] == 25 * part.objects[:, None, None]).all()
    share = np.mean(data.probe_train.digits == data.probe_train.objects)
    assert share < 0.35
    other = dominoes(folder, split_seed=1)
    assert not np.array_equal(other.train.objects, data.train.objects)
    again = dominoes(folder)
    assert np.array_equal(again.train.images, data.train.images)
    alone = dominoes(folder, digits=False, n_train=40, n_test=20)
    assert alone.train.images.shape == (30, 32, 32, 3)
    with pytest.raises(ReluflowError, match="match is a probability"):
        dominoes(folder, match=1.5)


def test_the_digit_above_is_the_enlarged_digit(folder):
    data = dominoes(folder)
    above = {image.tobytes() for image in data.train.images[:, :32, :, 0]}
    known = {image.tobytes() for image in enlarge(mnist_images(folder)[0])}
    assert above <= known
    assert (data.train.images[:, :32] == data.train.images[:, :32, :, :1]).all()


@pytest.mark.parametrize("match", [1.0, 0.95, 0.0])
def test_digits_are_used_once_and_match_as_often_as_asked(match):
    rng = np.random.default_rng(1)
    labels, classes = rng.integers(0, 10, 4000), rng.integers(0, 10, 2500)
    chosen = choose_digits(labels, classes, match, rng)
    assert len(set(chosen.tolist())) == 2500
    share = np.mean(labels[chosen] == classes)
    assert share == match if match in (0.0, 1.0) else abs(share - match) < 0.02
    with pytest.raises(ReluflowError, match="use fewer images"):
        choose_digits(labels[:100], classes, match, rng)


def test_normalisation():
    """Each half by the values of its data set, to the accuracy of float32."""
    mean, std = statistics(64)
    assert np.allclose(mean[:, 0, 0], 0.1307)
    assert np.allclose(std[:, 31, 0], 0.3081)
    assert np.allclose(mean[:, 32, 0], [0.491, 0.482, 0.446])
    assert np.allclose(std[:, 63, 0], [0.202, 0.199, 0.201])
    assert np.allclose(statistics(32)[0], mean[:, 32:])


def test_normalised_images(folder):
    part = dominoes(folder).validation
    x = part.normalized()
    assert x.dtype == np.float32
    assert x.shape == (100, 3, 64, 32)
    assert x[5, 1, 40, 7] == pytest.approx(
        (part.images[5, 40, 7, 1] / 255 - 0.482) / 0.199, abs=1e-5
    )
    assert x[5, 2, 8, 9] == pytest.approx(
        (part.images[5, 8, 9, 2] / 255 - 0.1307) / 0.3081, abs=1e-5
    )


def test_jpeg_loses_little(folder):
    images = dominoes(folder).validation.images[:4]
    back = through_jpeg(np.full_like(images, 90), 75)
    assert np.abs(back.astype(int) - 90).max() <= 2
    assert not np.array_equal(through_jpeg(images, 75), images)
