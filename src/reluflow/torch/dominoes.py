"""Dominoes: an MNIST digit above a CIFAR-10 image ([TK24]_ Section 7, after Shah et al. 2020)."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import AnyArray
from reluflow.errors import ReluflowError
from reluflow.torch.images import Bytes, cifar10_images, mnist_images

MNIST_MEAN, MNIST_STD = 0.1307, 0.3081
CIFAR_MEAN, CIFAR_STD = (0.491, 0.482, 0.446), (0.202, 0.199, 0.201)
LABELS = ("objects", "digits")


def statistics(height: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean and deviation of pixels in [0, 1], each (3, height, 1); 64 rows have a digit above."""
    mean = np.empty((3, height, 1), np.float32)
    std = np.empty_like(mean)
    mean[:, :-32], std[:, :-32] = MNIST_MEAN, MNIST_STD
    mean[:, -32:] = np.asarray(CIFAR_MEAN)[:, None, None]
    std[:, -32:] = np.asarray(CIFAR_STD)[:, None, None]
    return mean, std


@dataclass(frozen=True, eq=False)
class Part:
    """Images (n, 64, 32, 3), or (n, 32, 32, 3) without digits, with both attributes.

    ``objects`` are classes of CIFAR-10, ``digits`` those of MNIST; the "reversed" test set of the
    paper is the same images with ``digits`` as labels.
    """

    images: Bytes
    objects: Bytes
    digits: Bytes

    def __len__(self) -> int:
        return len(self.images)

    def take(self, index: AnyArray) -> Part:
        """The chosen images."""
        return Part(self.images[index], self.objects[index], self.digits[index])

    def normalized(self) -> NDArray[np.float32]:
        """Images as (n, 3, height, width): each half by the mean and deviation of its data set."""
        shift, factor = statistics(self.images.shape[1])
        pixels = self.images.transpose(0, 3, 1, 2).astype(np.float32)
        return ((pixels / 255 - shift) / factor).astype(np.float32, copy=False)


@dataclass(frozen=True, eq=False)
class Dominoes:
    """The four parts of an experiment.

    ``train`` and ``validation`` have digits that tell the class; ``probe_train`` and
    ``probe_validation``, from the test files, have random digits.
    """

    train: Part
    validation: Part
    probe_train: Part
    probe_validation: Part


def dominoes(
    folder: str | os.PathLike[str] | None = None,
    *,
    match: float = 1.0,
    digits: bool = True,
    n_train: int | None = None,
    n_test: int | None = None,
    held_out: float = 0.25,
    jpeg: int | None = None,
    seed: int = 42,
    split_seed: int = 0,
) -> Dominoes:
    """Compose and split dominoes.

    Parameters
    ----------
    folder : path, optional
        Where the files of MNIST and CIFAR-10 are; RELUFLOW_DATA when missing.
    match : float
        Probability that the digit of a training image is its class (1 or 0.95 in the paper);
        other images get a digit of another class. No digit is used twice.
    digits : bool
        False gives the CIFAR-10 images alone, the paper's baseline.
    n_train, n_test : int, optional
        Use only the first so many CIFAR-10 images.
    held_out : float
        Share of the training and of the test images kept for validation.
    jpeg : int, optional
        Pass images through JPEG of this quality; the paper's files are JPEG of quality 75.
    seed : int
        Of the composition.
    split_seed : int
        Of the splits; the paper takes the seed of the training run.

    Returns
    -------
    Dominoes
    """
    if not 0.0 <= match <= 1.0:
        raise ReluflowError(f"match is a probability, expected 0 to 1, got {match!r}")
    if not 0.0 < held_out < 1.0:
        raise ReluflowError(f"held_out is a share, expected between 0 and 1, got {held_out!r}")
    parts: list[Part] = []
    for split, count, how in (("train", n_train, match), ("test", n_test, None)):
        rng = np.random.default_rng([seed, split == "test"])
        images, classes = (part[:count] for part in cifar10_images(folder, split))
        if digits:
            pool, labels = mnist_images(folder, split)
            chosen = choose_digits(labels, classes, how, rng)
            whole = Part(stack(pool[chosen], images), classes, labels[chosen])
        else:
            whole = Part(images, classes, classes)
        if jpeg is not None:
            whole = Part(through_jpeg(whole.images, jpeg), whole.objects, whole.digits)
        order = np.random.default_rng([split_seed, split == "test"]).permutation(len(whole))
        kept = len(whole) - round(held_out * len(whole))
        parts += [whole.take(np.sort(order[:kept])), whole.take(np.sort(order[kept:]))]
    return Dominoes(*parts)


def choose_digits(
    labels: AnyArray, classes: AnyArray, match: float | None, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Position of a digit for each class in ``classes``, none twice.

    With probability ``match`` one of the same class, else one of another; None draws at random.
    """
    order = rng.permutation(len(labels))
    if match is None:
        if len(order) < len(classes):
            raise ReluflowError(f"{len(labels)} digits are too few for {len(classes)} images")
        return order[: len(classes)]
    wrong = rng.random(len(classes)) >= match
    chosen = np.full(len(classes), -1, dtype=np.intp)
    for label in np.unique(classes):
        rows = np.flatnonzero((classes == label) & ~wrong)
        same = order[labels[order] == label]
        if len(same) < len(rows):
            raise ReluflowError(
                f"there are {len(same)} digits {label} for {len(rows)} images: use fewer images"
            )
        chosen[rows] = same[: len(rows)]
    free = np.setdiff1d(order, chosen, assume_unique=False)
    queue = list(rng.permutation(free))
    for row in np.flatnonzero(wrong):
        at = next((i for i, k in enumerate(queue) if labels[k] != classes[row]), None)
        if at is None:
            raise ReluflowError(f"no digit other than {classes[row]} is left: use fewer images")
        chosen[row] = queue.pop(at)
    return chosen


def stack(digits: Bytes, images: Bytes) -> Bytes:
    """Digits (n, 28, 28), enlarged to 32 x 32 grey pixels, above images (n, 32, 32, 3)."""
    out = np.empty((len(images), 64, 32, 3), dtype=np.uint8)
    out[:, :32] = enlarge(digits)[..., None]
    out[:, 32:] = images
    return out


def enlarge(digits: Bytes, size: int = 32) -> Bytes:
    """Bilinear enlargement by Pillow, as torchvision's Resize does it."""
    from PIL import Image

    how = Image.Resampling.BILINEAR
    return np.stack([np.asarray(Image.fromarray(d).resize((size, size), how)) for d in digits])


def through_jpeg(images: Bytes, quality: int) -> Bytes:
    """Images after compression, as they would be read back from files."""
    from PIL import Image

    out = np.empty_like(images)
    for i, image in enumerate(images):
        with io.BytesIO() as file:
            Image.fromarray(image).save(file, "JPEG", quality=quality)
            out[i] = np.asarray(Image.open(file).convert("RGB"))
    return out
