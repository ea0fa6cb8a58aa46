"""Deadlines of neurons in lumped cones: when each must next be looked at for kinks.

A neuron is filed in the timer wheel of its cone under its slack, the least |<w, x_k>| / |x_k| in
units of its scale; the path of a cone is how far any row x_k^T P (of unit x_k) has travelled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from reluflow.kernels.flow_members import member
from reluflow.kernels.inner import inner
from reluflow.kernels.vectors import dot
from reluflow.kernels.wheel import NONE, SLOTS, file_neuron


class Wheel(NamedTuple):
    """Timer wheels of lumped cones, see :mod:`reluflow.kernels.wheel`."""

    row: np.ndarray  # (G,) wheel of a cone, or -1 where looking at each neuron is cheaper
    path: np.ndarray  # (wheels,) way travelled
    head: np.ndarray  # (wheels, SLOTS)
    mark: np.ndarray
    used: np.ndarray  # (wheels,)
    due: np.ndarray
    link: np.ndarray  # (m,)


def empty_wheel(crowded: np.ndarray, m: int) -> Wheel:
    """Wheels with nobody in them, one for each cone that is ``crowded``."""
    count = int(crowded.sum())
    row = np.where(crowded, np.cumsum(crowded) - 1, -1)
    head, mark = np.full((count, SLOTS), NONE), np.full((count, SLOTS), np.inf)
    used, due, link = np.zeros(count, np.int64), np.full(count, np.inf), np.empty(m, np.int64)
    return Wheel(row, np.zeros(count), head, mark, used, due, link)


@inner
def slack_of(data, u, z, faces):
    """Least |<w, x_k>| / |x_k| over samples off the faces, and |a| on a face."""
    d = data.X.shape[1]
    slack = np.inf
    for k in range(u.size):
        if u[k] == 0 or data.norms[k] == 0.0:
            continue
        slack = min(slack, abs(dot(data.X, k, z)) / data.norms[k])
    return min(slack, abs(z[d])) if faces else slack


@inner
def file_again(wheel, g, j, slack):
    """File neuron j of cone g."""
    file_neuron(
        wheel.row[g],
        j,
        slack,
        wheel.path,
        wheel.head,
        wheel.mark,
        wheel.used,
        wheel.link,
        wheel.due,
    )


@njit(cache=True)
def file_all(data, cones, U, faces, C, members, wheel):
    """File every neuron of a cone with a wheel, columns at C."""
    z = np.empty(members.Z.shape[1])
    for j in range(members.gid.size):
        g = members.gid[j]
        if wheel.row[g] >= 0:
            member(cones.lumped[g], cones.offset[g], C, members.Z, j, z)
            file_again(wheel, g, j, slack_of(data, U[g], z, faces[g]))
