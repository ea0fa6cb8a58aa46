"""[TK24]_: the size of a basin, computed a second time on a fine circle."""

from __future__ import annotations

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.claim import experiment
from reluflow.claims.verdict import Comparison, at_least, at_most
from reluflow.landscape import extremal_vectors
from reluflow.problem import Problem


def climbing_shares(values: Array) -> dict[int, float]:
    """Share of a circle of values from which walking uphill ends at each local maximum.

    A maximum is reached from the places between the two minima around it.
    """
    up = np.roll(values, -1) > values
    tops = np.flatnonzero(np.roll(up, 1) & ~up)
    bottoms = np.flatnonzero(~np.roll(up, 1) & up)
    n, shares = len(values), {}
    for top in tops:
        before, after = np.min((top - bottoms) % n), np.min((bottoms - top) % n)
        shares[int(top)] = float(before + after) / n
    return shares


@experiment("TK24-T4.1b", part="by-scan", quick={"sets": 5, "angles": 200_000}, full={"sets": 50})
def basins_on_a_circle(seed: int, sets: int, angles: int) -> list[Comparison]:
    """In the plane the share of starts that turn to an extremum, q = half of it, by a walk on G.

    Positive neurons climb on G, negative ones descend. Every end of a basin is known to one angle.
    """
    rng = np.random.default_rng(seed)
    t = 2 * np.pi * np.arange(angles) / angles
    circle = np.array([np.cos(t), np.sin(t)])
    worst, far, sums, uneven = 0.0, 0.0, 0.0, 0.0
    for _ in range(sets):
        problem = Problem(rng.standard_normal((5, 2)), rng.standard_normal(5), leak=0.2)
        found = extremal_vectors(problem)
        assert found.basin_fractions is not None
        S = problem.X @ circle
        G = problem.pull @ np.maximum(S, problem.leak * S)
        for column, values in enumerate((G, -G)):
            left = found.basin_fractions[:, column].copy()
            for top, share in climbing_shares(values).items():
                gap = np.linalg.norm(found.vectors - circle[:, top], axis=1)
                row = int(gap.argmin())
                far = max(far, float(gap[row]))
                worst = max(worst, abs(left[row] - share))
                left[row] = 0.0
            sums = max(sums, float(np.abs(left).max()))
        uneven = max(uneven, float(np.ptp(found.basin_fractions, axis=1).max()))
    return [
        at_most(far, 8 * np.pi / angles, what="distance of a top of the circle to an extremum"),
        at_most(worst, 4 / angles, what="share of its basin, error"),
        at_most(sums, 1e-12, what="share of what is no extremum of that sign"),
        at_least(uneven, 0.1, what="difference between the two signs, largest"),
    ]
