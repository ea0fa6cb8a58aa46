"""Extremal vectors: the directions to which small neurons turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow._views import Shown
from reluflow.arrays import Array, Mask, Sides, generator_of
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.landscape import arrangement, branch, multistart
from reluflow.landscape.alignment import pattern
from reluflow.landscape.canonical import (
    PATTERN_TOL,
    ZERO_TOL,
    Canonical,
    canonical,
    orthogonal,
    unit_pull,
)
from reluflow.landscape.kinds import Critical, lift, outside, project_all, verify
from reluflow.landscape.sweep import arc_basins, sweep
from reluflow.problem import Problem
from reluflow.runtime.plain import to_plain

ARRANGEMENT_WORK = 3e7
BRANCH_KINKS = 12  # of one sign: branch ends soon
BRANCH_TRIES = 16  # in all: branch is tried, for so many nodes
TRIED_NODES = 1_000_000
METHODS = ("auto", "sweep", "arrangement", "branch", "multistart")


@dataclass(frozen=True, eq=False)
class ExtremalVectors(Shown):
    """Critical points of G on the unit sphere, by falling |G|; one row each.

    Attributes
    ----------
    vectors : array, shape (k, d)
        Unit directions w. Where D = 0 a whole face is critical and w is one direction in it.
    values : array, shape (k,)
        G(w); D(w) = G(w) w.
    kinds : tuple of str
        "max", "min", "saddle" when G(w) is not 0 or the extremum is strict; where a whole face has
        D = 0: "weak max", "weak min", "flat", "degenerate saddle". The directions orthogonal to
        all samples that pull are one such face when slopes exist that balance all pulls.
    patterns : int8 array, shape (k, n)
        Sign of <w, x_k>, 0 on the hyperplane.
    faces : tuple of tuples
        Samples with a pull whose hyperplane holds w.
    rates : array, shape (k,)
        |G(w)|, the rate at which a neuron with output sign `signs` grows there.
    signs : array, shape (k,)
        Sign of G(w).
    degenerate : bool array, shape (k,)
        D = 0, or a slope at the end of its box: a small change of the data may remove the point.
    indices : array, shape (k,)
        Morse index (dimensions in which G falls); -1 where degenerate.
    basin_fractions : array, shape (k, 2) or None
        Share of the sphere that climbs (column 0, positive neurons) or descends (column 1) to w.
    basins : str
        How they were found: "exact", "quadrature ..." or "none".
    zeros : str
        Which critical sets with D = 0 are listed: "all faces", "open cones" or "found".
    exact : bool
        Whether the list of extremal vectors (D not 0) is complete. Above rank 2 it is also False
        where rounding blurs faces: normals dependent up to less than 1e-7 but not to `tol`, a point
        within 10 `tol` of a hyperplane, a value below 1e-6 sum_k |c_k| |x_k| but not 0.
    method : str
        The method used.
    """

    vectors: Array
    values: Array
    kinds: tuple[str, ...]
    patterns: Sides
    faces: tuple[tuple[int, ...], ...]
    degenerate: Mask
    indices: NDArray[np.intp]
    basin_fractions: Array | None
    basins: str
    zeros: str
    exact: bool
    method: str

    @property
    def rates(self) -> Array:
        """|G(w)|, the rate at which a neuron of that sign grows there."""
        return np.abs(self.values)

    @property
    def signs(self) -> Sides:
        """Sign of G(w)."""
        return np.asarray(np.sign(self.values).astype(np.int8))

    def __len__(self) -> int:
        return len(self.kinds)

    def of_kind(self, *kinds: str) -> NDArray[np.intp]:
        """Rows of the given kinds."""
        return np.flatnonzero(np.isin(np.array(self.kinds, dtype=object), kinds))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        names = ("vectors", "values", "kinds", "faces", "basin_fractions", "basins")
        return dict(to_plain({name: getattr(self, name) for name in (*names, "exact", "method")}))

    def __repr__(self) -> str:
        head = "all" if self.exact else "found"
        lines = [f"ExtremalVectors({len(self)} {head}, method={self.method!r})"]
        share = self.basin_fractions
        for i in range(min(len(self), 20)):
            w = " ".join(f"{x: .4f}" for x in self.vectors[i, :6])
            w += " ..." if self.vectors.shape[1] > 6 else ""
            face = ",".join(map(str, self.faces[i][:6])) + ("..." if len(self.faces[i]) > 6 else "")
            basin = "" if share is None else f"  basins {share[i, 0]:.3f}/{share[i, 1]:.3f}"
            mark = " (degenerate)" if self.degenerate[i] else ""
            lines.append(
                f"  {self.kinds[i]:<17} G={self.values[i]: .6g}  w=[{w}]  face {{{face}}}"
                f"{basin}{mark}"
            )
        if len(self) > 20:
            lines.append(f"  and {len(self) - 20} more")
        return "\n".join(lines)


def choose(form: Canonical) -> str:
    """The method of "auto", by the reduced dimension r and the number H of distinct kinks."""
    if form.r == 2 and form.H > 0:
        return "sweep"
    looks = arrangement.work(form.H, form.r)
    few = few_kinks(form)
    if form.H <= 1 or looks <= (1e6 if few else ARRANGEMENT_WORK):
        return "arrangement"
    return "branch" if few or form.H <= BRANCH_TRIES else "multistart"


def few_kinks(form: Canonical) -> bool:
    """Whether the kinks of either sign are so few that branch ends within its budget."""
    return max(int((form.kappa > 0).sum()), int((form.kappa < 0).sum())) <= BRANCH_KINKS


@check_arguments
def extremal_vectors(
    problem: Problem,
    pull: ArrayLike | None = None,
    method: str = "auto",
    *,
    tol: float = PATTERN_TOL,
    starts: int = 1000,
    budget: int = 5_000_000,
    basin_points: int = 2000,
    rng: np.random.Generator | int | None = 0,
) -> ExtremalVectors:
    r"""Critical points of :math:`G_c(w) = \sum_k c_k \phi(\langle w, x_k\rangle)` on the sphere.

    A unit w is critical when some :math:`D \in \{\sum_k s_k c_k x_k\}` (s_k the slope of sample k,
    free in [leak, 1] on its hyperplane) is a multiple of w; then D = G(w) w is the element of
    minimal norm ([BF24]_ Def. 1, Eq. 17). Positive neurons turn to the maxima, negative ones to
    the minima, and grow at the rate |G(w)|.

    Parameters
    ----------
    problem : Problem
        Samples, labels, loss and leak.
    pull : array, shape (n,), optional
        The c_k; default ``problem.pull``.
    method : str
        "sweep": data of rank 2, by angle. "arrangement": every face, for small rank. "branch":
        search over consistent patterns, for few samples in any dimension. "multistart": ascent and
        descent from `starts` directions; every end is verified, saddles are not looked for and
        `exact` is False. "auto": sweep for rank 2; arrangement while the faces around rays number
        at most 3e7 (1e6 with at most 12 kinks of either sign); branch up to 12 kinks of either
        sign or 16 in all; else multistart. With more than 12 of one sign branch has 1e6 nodes at
        most, and multistart takes its place when they run out (nearly orthogonal samples, whose
        critical points number 2^n). Samples on one hyperplane count once, and the rank is that of
        samples that pull.
    tol : float
        Products below ``tol`` |w| |x_k| count as zero; hyperplanes closer than this are merged.
    starts : int
        Directions used by "multistart".
    budget : int
        Nodes of "branch" for each sign; when they run out `exact` is False.
    basin_points : int
        Points of the quadrature of basins in three dimensions; 0 for none.
    rng : Generator or int, optional
        Source of the random starts.

    Returns
    -------
    ExtremalVectors
    """
    if method not in METHODS:
        raise ReluflowError(
            f"method must be one of {', '.join(METHODS)}, got {method!r}: 'auto' chooses by size"
        )
    c, unit = unit_pull(problem, pull)
    form = canonical(problem.X, c, problem.leak, tol)
    d = problem.d
    if form.r == 0:  # G is 0 everywhere
        return _flat(problem, c, tol)
    tried = False
    if method == "auto":
        method = choose(form)
        tried = method == "branch" and not few_kinks(form)
    if method == "sweep" and form.r > 2:
        raise ReluflowError(
            f"method 'sweep' needs data of rank 2, got rank {form.r}: use 'arrangement' or 'auto'"
        )
    if method == "sweep" and (form.r == 1 or form.H == 0):  # no circle to sweep, or no kink on it
        method = "arrangement"

    exact, zeros, shares, basins = True, "all faces", None, "none"
    if method == "sweep":
        points, slopes = sweep(form)
        if d == 2:
            shares, basins = arc_basins(points, slopes), "exact"
        else:
            points = lift(form, points, d)
    elif method == "arrangement":
        found, lines, ray_patterns, exact = arrangement.candidates(form)
        points = verify(form, found, d, _inside(form, found, lines, ray_patterns))
    elif method == "branch":
        nodes = min(budget, TRIED_NODES) if tried else budget
        found, inside, exact, whole = branch.candidates(form, nodes)
        if tried and not exact:
            method = "multistart"
        else:
            points, zeros = verify(form, found, d, inside), "open cones" if whole else "found"
    if method == "multistart":
        found, inside = multistart.candidates(form, starts, generator_of(rng))
        points, zeros, exact = verify(form, found, d, inside), "found", False
    if d > form.r:
        points = points + outside(form, d)
    exact = exact and (method == "sweep" or _certain(form, points))
    order = sorted(
        range(len(points)), key=lambda i: (-round(abs(points[i].value), 12), -points[i].value)
    )
    points = [points[i] for i in order]
    if shares is not None:
        shares = shares[order]
    elif d == 3 and form.r == 3 and basin_points > 0:
        shares = multistart.sphere_basins(form, points, basin_points)
        basins = f"quadrature, {basin_points} points"
    return _result(problem, c, unit, form, points, shares, basins, zeros, exact, method)


def _certain(form: Canonical, points: list[Critical]) -> bool:
    """Whether no point is so close to a hyperplane, or so small, that rounding decides its face."""
    for p in points:
        near = np.abs(form.N @ p.z)[p.pattern != 0]
        if (near < 10 * form.tol).any() or 0 < abs(p.value) < 1e6 * ZERO_TOL * form.scale:
            return False
    return True


def _inside(form: Canonical, found: Sides, lines: Array, ray_patterns: Sides) -> Array:
    """A direction inside each face on which G is flat: the sum of the rays of its closure."""
    inside = np.zeros((len(found), form.r))
    if not len(lines):
        return inside
    flat = np.linalg.norm(project_all(form, found), axis=1) <= 2 * ZERO_TOL * form.scale
    sides, rays = _words(found), _words(ray_patterns)
    for i in np.flatnonzero(flat):
        # rays of the closure have no sign that the face has not
        touching = np.flatnonzero(~(rays & ~sides[:, i, None]).any(axis=0))
        z = lines[touching].sum(axis=0)
        size = np.linalg.norm(z)
        inside[i] = z / size if size > 0 else z
    return inside


def _words(patterns: Sides) -> NDArray[np.uint64]:
    """Bits of the signs of each pattern (count, H), in words (2 H / 64 or more, count)."""
    bits = np.packbits(np.hstack([patterns > 0, patterns < 0]), axis=1)
    padded = np.zeros((len(bits), -(-bits.shape[1] // 8) * 8), dtype=np.uint8)
    padded[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(padded.view(np.uint64).T)


def _faces(problem: Problem, c: Array, patterns: Sides) -> tuple[tuple[int, ...], ...]:
    """For each pattern the samples with a pull whose hyperplane holds it."""
    pulls = (c != 0.0) & (problem.norms > 0.0)
    return tuple(tuple(np.flatnonzero((u == 0) & pulls).tolist()) for u in patterns)


def _result(
    problem: Problem,
    c: Array,
    unit: float,
    form: Canonical,
    points: list[Critical],
    shares: Array | None,
    basins: str,
    zeros: str,
    exact: bool,
    method: str,
) -> ExtremalVectors:
    z = np.array([p.z for p in points]).reshape(len(points), form.r)
    vectors = z @ form.basis
    for sign, row in zip((1.0, -1.0), np.flatnonzero(~z.any(axis=1)), strict=False):
        vectors[row] = sign * orthogonal(form.basis)
    patterns = pattern(problem, vectors, form.tol)
    on = form.member >= 0
    for i, p in enumerate(points):
        patterns[i, on] = np.where(p.pattern[form.member[on]] == 0, 0, patterns[i, on])
    return ExtremalVectors(
        vectors=vectors,
        values=unit * np.array([p.value for p in points]),
        kinds=tuple(p.kind for p in points),
        patterns=patterns,
        faces=_faces(problem, c, patterns),
        degenerate=np.array([p.degenerate for p in points], dtype=bool),
        indices=np.array([p.index for p in points], dtype=np.intp),
        basin_fractions=shares,
        basins=basins,
        zeros=zeros,
        exact=exact,
        method=method,
    )


def _flat(problem: Problem, c: Array, tol: float) -> ExtremalVectors:
    """G = 0 everywhere (no pull, or a pull that cancels): one flat row stands for the sphere.

    On the line the sphere is two points, a row each.
    """
    w = np.array([[1.0], [-1.0]]) if problem.d == 1 else np.eye(1, problem.d)
    u = pattern(problem, w, tol)
    return ExtremalVectors(
        vectors=w,
        values=np.zeros(len(w)),
        kinds=("flat",) * len(w),
        patterns=u,
        faces=_faces(problem, c, u),
        degenerate=np.ones(len(w), dtype=bool),
        indices=np.full(len(w), -1, dtype=np.intp),
        basin_fractions=np.full((len(w), 2), 1.0 / len(w)),
        basins="exact",
        zeros="all faces",
        exact=True,
        method="none",
    )
