"""Pairs of MNIST digits, centred, as in [MMV24]_ Figures 5 and 10-13."""

from __future__ import annotations

import gzip
import math
import os
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow.arrays import frozen_array
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
    if split not in FILES:
        raise ReluflowError(f"split must be 'train' or 'test', got {split!r}")
    if per_class is not None:
        whole(per_class, "per_class", 1)
    images, labels = read_split(folder, split, download)
    chosen = [images[labels == digit] for digit in digits]
    for digit, part in zip(digits, chosen, strict=True):
        if len(part) < (per_class or 1):
            raise ReluflowError(
                f"the {split} split has {len(part)} images of digit {digit}: "
                f"expected at least {per_class or 1}, lower per_class"
            )
    parts = [part[:per_class] for part in chosen]
    X = np.concatenate(parts).astype(np.float64) / 255.0
    y = np.repeat([1.0, -1.0], [len(part) for part in parts])
    known: dict[str, Any] = {"digits": digits}
    if isinstance(center, bool | np.bool_):
        known["mean"] = X.mean(axis=0) if center else np.zeros(X.shape[1])
        if center:
            known["class_sum_cosine"] = -1.0
    else:
        known["mean"] = frozen_array(center, "center", 1)
        if known["mean"].shape != (X.shape[1],):
            raise ReluflowError(
                f"center has {known['mean'].size} entries but images have {X.shape[1]} pixels: "
                "give the mean of the training problem, known['mean']"
            )
    X -= known["mean"]
    name = f"mnist-{digits[0]}-{digits[1]}"
    return Problem(X, y, as_loss(loss), leak, reduction, name=name, known=known)


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
