r"""What a critical point is: the local structure of G on the sphere, read off finitely many rays.

Near a unit w, along the great circle through the tangent v,

.. math:: G(w \cos t + v \sin t) = G(w) \cos t + g(v) \sin t, \qquad
          g(v) = \langle D_0, v \rangle + \sum_{h \in K} \kappa_h |\langle v, n_h \rangle|,

exactly for small t, with K the kinks through w and D_0 the gradient of the other terms. So v leads
up where g(v) > 0, down where g(v) < 0, and where g(v) = 0 down if G(w) > 0, up if G(w) < 0, level
if G(w) = 0. As g is linear on each cone of the arrangement of K and w is critical, its signs on the
rays of that arrangement decide everything, in general position or not. In general position this is
the rule of [BF24]_ (Eq. 28-29 and Lemma 14).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reluflow.arrays import Array, Mask, Sides
from reluflow.landscape.arrangement import in_span, log_subsets, rays
from reluflow.landscape.canonical import ZERO_TOL, Canonical, row_space

_RAY_WORK = 1e11  # multiplications beyond which tangents are drawn at random instead
_DRAWN = 2000


@dataclass(frozen=True)
class Critical:
    """One critical point: unit z, value, kind, pattern of its face; index -1 if degenerate."""

    z: Array
    value: float
    kind: str
    pattern: Sides
    degenerate: bool
    index: int


def project(form: Canonical, v: Sides) -> Array:
    """D_v projected on the intersection of the hyperplanes where v is 0."""
    D = form.m + (v * form.kappa) @ form.N
    on = v == 0
    if on.any():
        Q = row_space(form.N[on], form.tol)
        D = D - Q.T @ (Q @ D)
        D = D - Q.T @ (Q @ D)
    return D


def project_all(form: Canonical, found: Sides) -> Array:
    """:func:`project` of many patterns, those with the same hyperplanes together."""
    D = form.m + (found * form.kappa) @ form.N
    packed = np.packbits(found == 0, axis=1)
    sets, which = np.unique(packed, axis=0, return_inverse=True)
    order = np.argsort(which.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(which.ravel(), minlength=len(sets)))
    for mine in np.split(order, ends[:-1]):
        on = found[mine[0]] == 0
        if on.any():
            Q = row_space(form.N[on], form.tol)
            for _ in range(2):
                D[mine] -= (D[mine] @ Q.T) @ Q
    return D


def may_be_critical(form: Canonical, found: Sides) -> Mask:
    """Patterns whose projected gradient vanishes, or has the signs of the pattern (or opposite)."""
    D = project_all(form, found)
    size = np.linalg.norm(D, axis=1)
    p = (D @ form.N.T) * found
    p *= np.where(p.sum(axis=1) > 0, 1.0, -1.0)[:, None]
    slack = 0.5 * form.tol * size  # half of what :func:`verify` asks for: this is another rounding
    fits = ((p > slack[:, None]) | (found == 0)).all(axis=1)
    return np.asarray(fits | (size <= 2 * ZERO_TOL * form.scale))


def balanced(form: Canonical, v: Sides, D: Array) -> bool:
    """Whether slopes in the box make the gradient on face v equal to D (criticality)."""
    from reluflow.kernels.boxls import box_least_norm

    on = v == 0
    if not on.any():
        return True
    base = form.m + (v * form.kappa) @ form.N - D
    Z = np.ascontiguousarray(form.kappa[on, None] * form.N[on])
    rest = np.empty(form.r)
    box_least_norm(base, Z, -1.0, np.empty(len(Z)), rest)
    allowed = max(4 * form.tol * float(np.linalg.norm(D)), 4 * ZERO_TOL * form.scale)
    return bool(np.linalg.norm(rest) <= allowed)


def kind(form: Canonical, z: Array, v: Sides, d: int) -> tuple[str, bool, int]:
    """Kind, degeneracy and Morse index (descending dimensions) of a critical unit z on face v.

    d is the dimension of the full space: directions outside the span of the data count. Where
    there are too many rays, random tangents stand for them: what they show to rise or fall does,
    but a saddle may then be taken for an extremum, and the point counts as degenerate.
    """
    on = v == 0
    D0 = form.m + (v * form.kappa) @ form.N
    value = float(z @ D0)
    level = 0 if abs(value) <= ZERO_TOL * form.scale else int(np.sign(value))
    NK, kap = form.N[on], form.kappa[on]
    up = down = still = False
    rank = 0
    if on.any():
        basis = row_space(NK, form.tol)
        rank = len(basis)
        tangents, all_rays = _tangents(in_span(NK, form.tol), form.tol)
        tangents = tangents @ basis if rank < form.r else tangents
        linear, bent = tangents @ D0, np.abs(tangents @ NK.T)
        g = linear + bent @ kap
        size = np.abs(linear) + bent @ np.abs(kap) + abs(value)
        flat = np.abs(g) <= np.maximum(form.tol * size, 4 * ZERO_TOL * form.scale)
        still = bool(flat.any()) or not all_rays
        up, down = bool((g[~flat] > 0).any()), bool((g[~flat] < 0).any())
    loose = still or rank < d - 1  # some tangent has g = 0
    degenerate = level == 0 or still
    if loose:
        up, down = up or level < 0, down or level > 0
    if up and down:
        name = "saddle" if level else "degenerate saddle"
    elif up or down:
        name = "min" if up else "max"
        if level == 0 and loose:
            name = "weak " + name
    elif d == 1 and level:
        name = "max" if level > 0 else "min"
    else:
        name = "flat"
    index = -1
    if not degenerate and rank == len(kap):
        index = int((kap < 0).sum()) + (d - 1 - rank if level > 0 else 0)
    return name, degenerate, index


def _tangents(N: Array, tol: float) -> tuple[Array, bool]:
    """The rays of the arrangement of N (K, rank), or random directions if that is too much work."""
    K, rank = N.shape
    cost = log_subsets(K, rank - 1) + 3.0 * np.log(max(rank, 1))
    if rank == K or cost <= np.log(_RAY_WORK):
        return rays(N, tol)[0], True
    drawn = np.random.default_rng(20240229).standard_normal((_DRAWN, rank))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True), False


def verify(form: Canonical, found: Sides, d: int, inside: Array | None = None) -> list[Critical]:
    """Critical points on the given faces; every one is checked, whatever the search that found it.

    ``inside`` (len(found), r) holds a direction of each face for those with D = 0.
    """
    out: list[Critical] = []
    for i in np.flatnonzero(may_be_critical(form, found)) if len(found) else ():
        v = found[i]
        D = project(form, v)
        size = float(np.linalg.norm(D))
        if size <= ZERO_TOL * form.scale:  # the whole face is critical, of value 0
            if inside is not None and inside[i].any() and balanced(form, v, np.zeros(form.r)):
                out.append(_critical(form, inside[i], 0.0, v, d))
            continue
        off = v != 0
        p = (form.N @ D * v)[off]
        s = 1.0 if p.sum() > 0 or not off.any() else -1.0
        if (s * p > form.tol * size).all() and balanced(form, v, D):
            for t in (s,) if off.any() else (s, -s):  # on all hyperplanes -D is as good as D
                out.append(_critical(form, t * D / size, t * size, v, d))
    return out


def _critical(form: Canonical, z: Array, value: float, v: Sides, d: int) -> Critical:
    name, degenerate, index = kind(form, z, v, d)
    return Critical(z, value, name, v, degenerate, index)


def lift(form: Canonical, points: list[Critical], d: int) -> list[Critical]:
    """The same points with kinds for the sphere of the full space."""
    return [_critical(form, p.z, p.value, p.pattern, d) for p in points]


def outside(form: Canonical, d: int) -> list[Critical]:
    """The directions orthogonal to the span of G (z = 0 stands for them) if they are critical.

    They form a sphere of dimension d - r - 1: one connected face, but for d = r + 1 two opposite
    points, a row each.
    """
    v, zero = np.zeros(form.H, dtype=np.int8), np.zeros(form.r)
    if not balanced(form, v, zero) or (form.H == 0 and form.m.any()):
        return []
    name, degenerate, _ = kind(form, zero, v, d)
    return [Critical(zero, 0.0, name, v, degenerate, -1)] * (2 if d == form.r + 1 else 1)
