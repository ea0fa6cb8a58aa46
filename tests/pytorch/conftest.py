"""Small image files in the original formats, and torch on one thread."""

import gzip
import pickle

import numpy as np
import pytest


def write_idx(path, array):
    header = bytes([0, 0, 8, array.ndim]) + b"".join(
        int(size).to_bytes(4, "big") for size in array.shape
    )
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wb") as file:
        file.write(header + array.tobytes())


@pytest.fixture(name="folder")
def _folder(tmp_path):
    """MNIST (gzip and plain) and CIFAR-10 batches of random images that show their class."""
    rng = np.random.default_rng(0)
    mnist = tmp_path / "mnist"
    mnist.mkdir()
    for stem, n, end in (("train", 900, ".gz"), ("t10k", 300, "")):
        labels = np.arange(n, dtype=np.uint8) % 10
        images = rng.integers(0, 60, (n, 28, 28)).astype(np.uint8)
        images[np.arange(n), 2 + 2 * labels] = 255  # a bright row tells the digit
        write_idx(mnist / f"{stem}-images-idx3-ubyte{end}", images)
        write_idx(mnist / f"{stem}-labels-idx1-ubyte{end}", labels)
    batches = tmp_path / "cifar-10-batches-py"
    batches.mkdir()
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        labels = rng.permutation(np.arange(80) % 10)
        data = rng.integers(0, 256, (80, 3072)).astype(np.uint8)
        data[:, :1024] = 25 * labels[:, None]  # red tells the class
        content = {"data": data, "labels": labels.tolist(), "batch_label": name, "filenames": []}
        with open(batches / name, "wb") as file:
            pickle.dump(content, file, protocol=2)
    return tmp_path
