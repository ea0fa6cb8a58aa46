"""The cost model behind ``backend="auto"``: nanoseconds per step, fitted on one machine.

Only ratios matter. ``benchmarks/descend.py`` prints predicted and measured times, so a reader
can see how far the model can be trusted.

lumped: fixed(n, d) + cones * cone(d) + flips * flip(d) + looks * look(n, d) + moves * move(n, d)
        + loose neurons * loose(d)
fused:  m * n * pair(d) + n * sample
blas:   call + m * n * (pass + d * product)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SAMPLE = 3.0  # pull of one sample


def lumped_weights(n: int, d: int) -> NDArray[np.float64]:
    """Cost per step, cone, flip, look, move and loose neuron of the lumped kernel."""
    e = d + 1
    signs = 120.0 if d == 2 else n * (1.0 + 0.8 * d) + 40.0  # two features: one angle tells all
    return np.array(
        [
            n * (SAMPLE + 1.5 * d) + 50.0,
            15.0 + 3.0 * e * e,
            1.5 * d + 2.0,
            signs + 2.0 * e * e + 20.0,
            signs + e**3 + 200.0,
            20.0 + 3.0 * d,
        ]
    )


def fused_work(n: int, d: int, m: int) -> float:
    """Cost of a step of the fused kernel."""
    return m * (n * (0.6 + 0.25 * d) + 20.0) + n * SAMPLE + 50.0


def blas_work(n: int, d: int, m: int) -> float:
    """Cost of a step by matrix products."""
    return 30_000.0 + m * n * (2.5 + 0.06 * d) + n * 20.0


def dense_work(n: int, d: int, m: int) -> float:
    """Cost of a dense step, by the cheaper of the two ways."""
    return min(fused_work(n, d, m), blas_work(n, d, m))
