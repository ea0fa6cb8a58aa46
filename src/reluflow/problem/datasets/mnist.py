"""MNIST, centred: pairs of digits as in [MMV24]_ Figures 5 and 10-13, and all ten as classes."""

from __future__ import annotations

import gzip
import math
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow.arrays import Array, frozen_array
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.problem.datasets._common import whole
from reluflow.problem.losses import Loss, as_loss
from reluflow.problem.problem import Problem

Bytes = NDArray[np.uint8]

#: Environment variable that names the folder of data files.
FOLDER_VARIABLE = "RELUFLOW_DATA"
#: The four files, each with or without ".gz".
FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
_MAX_BYTES = 1 << 28  # five times the training images


@check_arguments
def mnist_pair(
    positive: int = 1,
    negative: int = 0,
    folder: str | os.PathLike[str] | None = None,
    *,
    split: str = "train",
    per_class: int | None = None,
    center: bool | ArrayLike = True,
    download: bool = False,
    loss: str | Loss = "exponential",
    leak: float = 0.0,
    reduction: str = "mean",
) -> Problem:
    """Two MNIST digits as classes +1 and -1, pixels in [0, 1], centred ([MMV24]_ Figure 5).

    Parameters
    ----------
    positive, negative : int
        Digits of label +1 and -1. The paper lists 0/1, 3/8 and 1/7 without saying which is
        which; 1 as the positive one is our proposal.
    folder : path, optional
        Folder with the four IDX files (``.gz`` or not), or one with a subfolder ``mnist`` that
        has them; the environment variable RELUFLOW_DATA when missing.
    split : {"train", "test"}
        Which images.
    per_class : int, optional
        Take only the first so many images of each digit.
    center : bool or array, shape (784,)
        Subtract the mean of all chosen images (True), nothing (False), or a given mean, such as
        ``known["mean"]`` of the training problem for a test set.
    download : bool
        Fetch MNIST from OpenML through scikit-learn when no folder has it.
    loss, leak, reduction
        The iteration counts the paper states need the mean and a loss of slope 1 at zero.

    Returns
    -------
    Problem
        d=784, the positive digit first. ``known``: ``mean`` (what was subtracted),
        ``digits``, and, when centred, ``class_sum_cosine`` = -1: the sums of the two classes are
        opposite by construction.
    """
    digits = tuple(_digit(value) for value in (positive, negative))
    if digits[0] == digits[1]:
        raise ReluflowError(f"positive and negative are both {digits[0]}: choose two digits")
    parts = _images_of(digits, folder, split, per_class, download)
    X, mean = _centred(np.concatenate(parts), center)
    y = np.repeat([1.0, -1.0], [len(part) for part in parts])
    known: dict[str, Any] = {"digits": digits, "mean": mean}
    if isinstance(center, bool | np.bool_) and center:
        known["class_sum_cosine"] = -1.0
    name = f"mnist-{digits[0]}-{digits[1]}"
    return Problem(X, y, as_loss(loss), leak, reduction, name=name, known=known)


@check_arguments
def mnist_digits(
    digits: Sequence[int] = tuple(range(10)),
    folder: str | os.PathLike[str] | None = None,
    *,
    split: str = "train",
    per_class: int | None = None,
    center: bool | ArrayLike = True,
    download: bool = False,
    loss: str | Loss = "softmax",
    leak: float = 0.0,
    reduction: str = "mean",
    bias: float | None = None,
) -> Problem:
    """The ten digits of MNIST as ten classes, or some of them, pixels in [0, 1], centred.

    Parameters
    ----------
    digits : list of int
        Which digits; at least two, at least three for several outputs to be worth while.
    folder, split, per_class, center, download
        As for :func:`mnist_pair`.
    loss, leak, reduction, bias
        Of the problem; the loss is one of classes.

    Returns
    -------
    Problem
        d=784, one output for each digit, images in the order of ``digits``. ``known``: ``mean``
        (what was subtracted) and ``digits``.
    """
    chosen = tuple(_digit(value) for value in digits)
    if len(set(chosen)) != len(chosen) or len(chosen) < 2:
        raise ReluflowError(f"digits are {list(chosen)}: expected at least two different ones")
    parts = _images_of(chosen, folder, split, per_class, download)
    X, mean = _centred(np.concatenate(parts), center)
    labels = np.repeat(chosen, [len(part) for part in parts])
    whole_set = chosen == tuple(range(10))
    name = "mnist-digits" if whole_set else "mnist-" + "-".join(map(str, chosen))
    known = {"digits": chosen, "mean": mean}
    return Problem(X, labels, as_loss(loss), leak, reduction, bias, name=name, known=known)


def _images_of(
    digits: Sequence[int],
    folder: str | os.PathLike[str] | None,
    split: str,
    per_class: int | None,
    download: bool,
) -> list[Bytes]:
    """Images (n, 784) of each digit, the first ``per_class`` of them."""
    if split not in FILES:
        raise ReluflowError(f"split must be 'train' or 'test', got {split!r}")
    if per_class is not None:
        whole(per_class, "per_class", 1)
    images, labels = read_split(folder, split, download)
    parts = [images[labels == digit] for digit in digits]
    for digit, part in zip(digits, parts, strict=True):
        if len(part) < (per_class or 1):
            raise ReluflowError(
                f"the {split} split has {len(part)} images of digit {digit}: "
                f"expected at least {per_class or 1}, lower per_class"
            )
    return [part[:per_class] for part in parts]


def _centred(images: Bytes, center: bool | ArrayLike) -> tuple[Array, Array]:
    """Pixels in [0, 1] less a mean, and that mean: their own, none or a given one."""
    X = images.astype(np.float64) / 255.0
    if isinstance(center, bool | np.bool_):
        mean = X.mean(axis=0) if center else np.zeros(X.shape[1])
    else:
        mean = frozen_array(center, "center", 1)
        if mean.shape != (X.shape[1],):
            raise ReluflowError(
                f"center has {mean.size} entries but images have {X.shape[1]} pixels: "
                "give the mean of the training problem, known['mean']"
            )
    X -= mean
    return X, mean


def _digit(value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value <= 9:
        raise ReluflowError(f"a digit must be a whole number from 0 to 9, got {value!r}")
    return int(value)


def read_split(
    folder: str | os.PathLike[str] | None, split: str, download: bool
) -> tuple[Bytes, Bytes]:
    """Images (n, pixels) and labels (n,) of one split, from files or from OpenML."""
    root = folder if folder is not None else os.environ.get(FOLDER_VARIABLE)
    places = [] if not root else [Path(root), Path(root) / "mnist"]
    for place in places:
        found = [_find_file(place / name) for name in FILES[split]]
        if found[0] and found[1]:
            return _read_pair(found[0], found[1])
    if download:
        return _fetch(split)
    wanted = ", ".join(name for pair in FILES.values() for name in pair)
    where = " or ".join(str(place) for place in places) or "a folder"
    raise ReluflowError(
        f"MNIST is not there: expected the four files {wanted} (each may end in .gz) in {where}; "
        f"set {FOLDER_VARIABLE}, give folder=... or download=True (--with download=true)"
    )


def _find_file(path: Path) -> Path | None:
    packed = path.with_name(path.name + ".gz")
    return packed if packed.is_file() else path if path.is_file() else None


def _read_pair(image_path: Path, label_path: Path) -> tuple[Bytes, Bytes]:
    images, labels = read_idx(image_path, 3), read_idx(label_path, 1)
    if len(images) != len(labels):
        raise ReluflowError(
            f"{image_path} has {len(images)} images but {label_path} has {len(labels)} labels: "
            "the files do not belong together, download them again"
        )
    return images.reshape(len(images), -1), labels


def read_idx(path: Path, ndim: int, max_bytes: int = _MAX_BYTES) -> Bytes:
    """Read an IDX file of unsigned bytes with ``ndim`` sizes, gzip-compressed or plain."""
    opener: Any = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as file:
            return _read_idx(file, path, ndim, max_bytes)
    except (OSError, EOFError, zlib.error) as error:
        raise ReluflowError(f"{path} cannot be read ({error}): download it again") from None


def _read_idx(file: IO[bytes], path: Path, ndim: int, max_bytes: int) -> Bytes:
    header = file.read(4 + 4 * ndim)
    magic = bytes([0, 0, 8, ndim])
    if header[:4] != magic:
        raise ReluflowError(
            f"{path} starts with {header[:4].hex() or 'nothing'}, expected {magic.hex()} (an IDX "
            f"file of bytes with {ndim} size(s)): the file is not what its name says"
        )
    if len(header) < 4 + 4 * ndim:
        raise ReluflowError(f"{path} ends inside its header: download it again")
    shape = tuple(int(size) for size in np.frombuffer(header[4:], dtype=">u4"))
    count = math.prod(shape)
    if count > max_bytes:
        raise ReluflowError(
            f"{path} announces {count:,} bytes of shape {shape}, more than {max_bytes:,}: "
            "the file is not MNIST"
        )
    data = file.read(count + 1)
    if len(data) != count:
        state = "more" if len(data) > count else f"only {len(data):,}"
        raise ReluflowError(
            f"{path} holds {state} bytes, expected {count:,} for shape {shape}: download it again"
        )
    return np.frombuffer(data, dtype=np.uint8).reshape(shape)


def _fetch(split: str) -> tuple[Bytes, Bytes]:
    from sklearn.datasets import fetch_openml  # slow to import, needed here only

    try:
        X, y = fetch_openml("mnist_784", version=1, return_X_y=True, as_frame=False)
    except (OSError, ValueError) as error:
        raise ReluflowError(
            f"MNIST could not be downloaded from OpenML ({error}): check the connection, or give "
            "a folder with the files"
        ) from None
    part = slice(0, 60_000) if split == "train" else slice(60_000, None)
    return np.asarray(X[part]).astype(np.uint8), np.asarray(y[part]).astype(np.uint8)
