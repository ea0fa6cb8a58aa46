"""MNIST and CIFAR-10 from the files of their original distributions, as arrays of bytes."""

from __future__ import annotations

import io
import os
import pickle
import pickletools
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import AnyArray
from reluflow.errors import ReluflowError
from reluflow.problem.datasets import mnist

Bytes = NDArray[np.uint8]

#: Files of the Python version of CIFAR-10.
BATCHES = {"train": tuple(f"data_batch_{i}" for i in range(1, 6)), "test": ("test_batch",)}
SUBSET = "cifar10_subset.npz"
#: Subfolders in which files are looked for, after the folder itself.
CIFAR_FOLDERS = ("cifar-10-batches-py", "cifar10")
_MAX_BYTES = 1 << 26  # twice a batch file
_MAX_ARRAY = 1 << 28
_INTEGERS = tuple(f"{sign}{size}" for sign in "ui" for size in (1, 2, 4, 8))
_BROKEN = (
    pickle.UnpicklingError,
    EOFError,
    ImportError,
    MemoryError,
    OverflowError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)


def mnist_images(
    folder: str | os.PathLike[str] | None = None, split: str = "train"
) -> tuple[Bytes, Bytes]:
    """MNIST digits from IDX files, compressed by gzip or not.

    Parameters
    ----------
    folder : path, optional
        Folder with the four files, or one with a subfolder ``mnist``; the environment variable
        RELUFLOW_DATA when missing.
    split : {"train", "test"}

    Returns
    -------
    images : uint8 array, shape (n, 28, 28)
    labels : uint8 array, shape (n,)
    """
    _check_split(split)
    images, labels = mnist.read_split(folder, split, download=False)
    return images.reshape(len(images), 28, 28), labels


def cifar10_images(
    folder: str | os.PathLike[str] | None = None, split: str = "train"
) -> tuple[Bytes, Bytes]:
    """CIFAR-10 from its Python batches, or from ``cifar10_subset.npz``.

    Parameters
    ----------
    folder : path, optional
        Folder with ``data_batch_1`` ... ``test_batch``, or with an .npz of ``x_train``,
        ``y_train``, ``x_test``, ``y_test`` (n, 32, 32, 3); subfolders ``cifar-10-batches-py`` and
        ``cifar10`` are tried too. RELUFLOW_DATA when missing.
    split : {"train", "test"}

    Returns
    -------
    images : uint8 array, shape (n, 32, 32, 3)
    labels : uint8 array, shape (n,)

    Notes
    -----
    The batches are pickles. Only the array, string and container types they consist of are let
    through; anything else in such a file is refused unread. No array is larger than its file.
    """
    _check_split(split)
    root = folder if folder is not None else os.environ.get(mnist.FOLDER_VARIABLE)
    places = [] if not root else [Path(root), *(Path(root) / name for name in CIFAR_FOLDERS)]
    for place in places:
        if all((place / name).is_file() for name in BATCHES[split]):
            parts = [_batch(place / name) for name in BATCHES[split]]
            return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
        if (place / SUBSET).is_file():
            return _subset(place / SUBSET, split)
    where = " or ".join(str(place) for place in places) or "a folder"
    raise ReluflowError(
        f"CIFAR-10 is not there: expected {', '.join(BATCHES['train'])}, test_batch or {SUBSET} "
        f"in {where}; give folder= or set {mnist.FOLDER_VARIABLE}"
    )


def _check_split(split: str) -> None:
    if split not in BATCHES:
        raise ReluflowError(f"split must be 'train' or 'test', got {split!r}")


class _Type:
    """Stands for ``numpy.dtype`` while a file is read: its name and byte order."""

    def __init__(self, name: str, *ignored: Any) -> None:
        self.name, self.order = name, "|"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = state[1]


class _Array:
    """Stands for ``numpy.ndarray``: shape and type as announced, bytes as they are in the file."""

    def __init__(self, *ignored: Any) -> None:
        self.state: tuple[Any, ...] = ()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.state = state

    def array(self) -> AnyArray:
        """The array, if there are as many bytes as its shape and type ask for."""
        _, shape, kind, columns_first, raw = self.state
        if not isinstance(kind, _Type) or kind.name not in _INTEGERS or columns_first:
            raise ValueError("expected arrays of integers in row order")
        raw = raw.encode("latin1") if isinstance(raw, str) else raw
        return np.frombuffer(raw, np.dtype(f"{kind.order}{kind.name}")).reshape(shape)


class _Plain(pickle.Unpickler):
    """Reads arrays, numbers, strings, lists and dicts; nothing that could run or claim memory."""

    def find_class(self, module: str, name: str) -> Any:
        """What stands for the few names a pickled array is made of."""
        if module in ("numpy.core.multiarray", "numpy._core.multiarray") and name == "_reconstruct":
            return _Array
        if module == "numpy" and name in ("ndarray", "dtype"):
            return _Array if name == "ndarray" else _Type
        if (module, name) == ("_codecs", "encode"):
            return _encode
        raise pickle.UnpicklingError(f"{module}.{name} does not belong into a CIFAR-10 batch")


def _encode(text: str, encoding: str = "latin1") -> bytes:
    return text.encode(encoding)


def _unpickle(content: bytes) -> Any:
    """What a batch holds; lengths and places announced in it are checked before they are used."""
    for code, argument, _ in pickletools.genops(content):
        if code.name.endswith("PUT") and not 0 <= int(argument or 0) <= len(content):
            raise pickle.UnpicklingError(f"place {argument} in a file of {len(content)} bytes")
    return _Plain(io.BytesIO(content), encoding="latin1").load()


def _as_array(value: Any) -> AnyArray:
    return value.array() if isinstance(value, _Array) else np.asarray(value)


def _batch(path: Path) -> tuple[Bytes, Bytes]:
    if path.stat().st_size > _MAX_BYTES:
        raise ReluflowError(
            f"{path} has {path.stat().st_size:,} bytes, a CIFAR-10 batch about 31 million: "
            "the file is not what its name says"
        )
    try:
        content = _unpickle(path.read_bytes())
        data, labels = _as_array(content["data"]), _as_array(content["labels"])
    except _BROKEN as error:
        raise ReluflowError(
            f"{path} is not a CIFAR-10 batch ({error}): download it again"
        ) from None
    if data.dtype != np.uint8 or data.ndim != 2 or data.shape[1] != 3072:
        raise ReluflowError(
            f"{path} holds data of type {data.dtype} and shape {data.shape}, expected uint8 "
            "(n, 3072): download it again"
        )
    images = np.ascontiguousarray(data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    return images, _labels(labels, len(images), path)


def _subset(path: Path, split: str) -> tuple[Bytes, Bytes]:
    try:
        with np.load(path, allow_pickle=False) as stored:
            for name in (f"x_{split}", f"y_{split}"):
                if stored.zip.getinfo(f"{name}.npy").file_size > _MAX_ARRAY:
                    raise ReluflowError(f"{path}: array {name} is larger than CIFAR-10 itself")
            images, labels = stored[f"x_{split}"], stored[f"y_{split}"]
    except ReluflowError:
        raise
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ReluflowError(f"{path} cannot be read ({error}): write it again") from None
    if images.dtype != np.uint8 or images.ndim != 4 or images.shape[1:] != (32, 32, 3):
        raise ReluflowError(
            f"{path}: x_{split} has type {images.dtype} and shape {images.shape}, expected uint8 "
            "(n, 32, 32, 3)"
        )
    return images, _labels(labels, len(images), path)


def _labels(labels: AnyArray, n: int, path: Path) -> Bytes:
    if (
        labels.shape != (n,)
        or labels.dtype.kind not in "iu"
        or not ((labels >= 0) & (labels <= 9)).all()
    ):
        raise ReluflowError(f"{path}: expected {n} labels from 0 to 9, got shape {labels.shape}")
    return labels.astype(np.uint8)
