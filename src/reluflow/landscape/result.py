"""The table of extremal vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.runtime.plain import to_plain


@dataclass(frozen=True, eq=False)
class ExtremalVectors:
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
    patterns: NDArray[np.int8]
    faces: tuple[tuple[int, ...], ...]
    degenerate: NDArray[np.bool_]
    indices: NDArray[np.intp]
    basin_fractions: Array | None
    basins: str
    zeros: str
    exact: bool
    method: str

    @property
    def rates(self) -> Array:
        return np.abs(self.values)

    @property
    def signs(self) -> NDArray[np.int8]:
        return np.sign(self.values).astype(np.int8)

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
