"""Critical points found by ascent and descent from many starts: verified, but maybe not all."""

from __future__ import annotations

import numpy as np

from reluflow.arrays import Array, Sides
from reluflow.landscape.canonical import Canonical


def climb(form: Canonical, starts: Array, sign: float = 1.0) -> tuple[Array, np.ndarray]:
    """Ends (B, r) of the ascent of sign * G from unit rows, and whether each one ended."""
    from reluflow.kernels.landscape_ascent import ascend

    W = np.array(starts, dtype=np.float64, order="C")
    status = np.zeros(len(W), dtype=np.int64)
    most = 50 * (form.H + 10)
    args = (form.N, sign * form.m, sign * form.kappa)
    ascend(*args, W, form.tol, 1e-12 * form.scale, most, status)
    return W, status == 1


def starts(form: Canonical, count: int, rng: np.random.Generator) -> Array:
    """Unit rows: the normals both ways, the mean gradient both ways, and random directions."""
    fixed = np.vstack([form.N, -form.N, form.m[None], -form.m[None]])
    if len(fixed) > count:
        fixed = fixed[rng.permutation(len(fixed))[:count]]
    W = np.vstack([fixed, rng.normal(size=(max(count - len(fixed), 0), form.r))])
    size = np.linalg.norm(W, axis=1)
    return W[size > 0] / size[size > 0, None]


def candidates(form: Canonical, count: int, rng: np.random.Generator) -> tuple[Sides, Array]:
    """Distinct patterns of the ends, with one end each."""
    W = starts(form, count, rng)
    ends = np.concatenate([e[ok] for e, ok in (climb(form, W), climb(form, W, -1.0))])
    v, first = np.unique(form.signs(ends), axis=0, return_index=True)
    return v, ends[first]
