"""Directions as images, for data whose features are pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from reluflow.errors import ReluflowError
from reluflow.plot.traces import Image, Panel, Picture


def image_shape(
    d: int, shape: tuple[int, int] | None = None, bias: float | None = None
) -> tuple[int, int]:
    """Rows and columns of pixels: those given, or a square.

    Parameters
    ----------
    d : int
        Number of features, a bias included.
    shape : (rows, columns), optional
    bias : float, optional
        Not None if the last feature is a bias, which is no pixel.
    """
    pixels = d - (bias is not None)
    if shape is None:
        side = math.isqrt(pixels)
        shape = (side, side)
        remedy = "give the shape of the images"
    else:
        remedy = "check the image shape"
    if len(shape) != 2 or min(shape) < 1 or shape[0] * shape[1] != pixels:
        raise ReluflowError(
            f"{pixels} features are not {' x '.join(map(str, shape))} pixels: {remedy}"
        )
    return int(shape[0]), int(shape[1])


def directions_picture(
    directions: ArrayLike,
    shape: tuple[int, int] | None = None,
    *,
    titles: Sequence[str] | None = None,
    bias: float | None = None,
    most: int = 12,
    columns: int = 4,
    title: str = "",
) -> Picture:
    """Each direction as an image, red where it is positive and blue where negative.

    Parameters
    ----------
    directions : array (k, d)
        Rows to draw, each in the range of its own largest entry.
    shape : (rows, columns), optional
        Of the pixels; a square by default.
    titles : k texts, optional
    bias : float, optional
        Not None if the last feature is a bias; its weight is written below the title.
    most : int
        Images at most; the title says if some are left out.
    columns : int
        Images in a row.
    title : str
    """
    V = np.atleast_2d(np.asarray(directions, dtype=float))
    rows, cols = image_shape(V.shape[1], shape, bias)
    if titles is not None and len(titles) != len(V):
        raise ReluflowError(f"{len(titles)} titles for {len(V)} directions: give one for each")
    panels = []
    for k, v in enumerate(V[:most]):
        words = titles[k] if titles is not None else f"direction {k}"
        if bias is not None:
            words += f"\nbias {v[-1] * bias:.3g}"
        pixels = v[: rows * cols].reshape(rows, cols)
        panels.append(Panel([Image(pixels)], words, equal=True, axes=False))
    if not panels:
        raise ReluflowError("there are no directions to draw: give at least one row")
    if len(V) > most:
        left = f"{most} of {len(V)} directions"
        title = f"{title}, {left}" if title else left
    columns = min(columns, len(panels))
    return Picture(panels, columns, title, "directions", width=2.2, height=2.2 * rows / cols + 0.4)
