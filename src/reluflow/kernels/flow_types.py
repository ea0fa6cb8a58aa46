"""What the kernels of the flow pass around: problem, cones, neurons, frame and method as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

N_NODES = 15  # nodes at which the pull is sampled within a step


class Data(NamedTuple):
    """Problem arrays as kernels take them."""

    X: np.ndarray
    norms: np.ndarray  # |x_k|
    y: np.ndarray
    kind: int  # codes.LossKind
    factor: float
    weight: float
    leak: float
    by_loss: bool  # clock ds = L dt: the pull is divided by L


class Cones(NamedTuple):
    """Occupied cones, flattened: columns, moments, slopes, faces."""

    offset: np.ndarray  # (G + 1,) columns of cone g are offset[g] .. offset[g + 1]
    lumped: np.ndarray  # (G,) columns are a basis with moments; else the neurons themselves
    Q: np.ndarray  # moments: r x r when lumped, r weights otherwise
    q_offset: np.ndarray
    size: np.ndarray  # (G,) common factor exp(2 log-scale) of Q
    S: np.ndarray  # (G, n) slopes: 1, leak, or 0 on a face
    N: np.ndarray  # orthonormal rows spanning the x_k of faces
    n_offset: np.ndarray


class Members(NamedTuple):
    """Neurons: z_j = exp(ls_j) Y Z_j, Y the columns of cone gid_j, or column col_j itself."""

    gid: np.ndarray
    col: np.ndarray
    Z: np.ndarray
    ls: np.ndarray


class Frame(NamedTuple):
    """Force at the start of a step, as a unit vector and a size per cone, and the step."""

    unit: np.ndarray
    rate: np.ndarray
    h: float


class Method(NamedTuple):
    """Coefficients of the Runge-Kutta pair and its dense output."""

    A: np.ndarray  # its row 12 has the weights of the solution
    E3: np.ndarray
    E5: np.ndarray
    D: np.ndarray
    c: np.ndarray  # stage times
    times: np.ndarray  # stage times, then nodes
    nodes: np.ndarray  # Chebyshev points in [0, 1]
    fit: np.ndarray  # from values at the nodes to Chebyshev coefficients


class Rules(NamedTuple):
    """How neurons are traced: error, sign and slope tolerances, and what a ridge does."""

    tol: float  # relative error of a step
    noise: float  # a sign is lost only beyond noise |w||x_k|
    floor: float  # rounding level of slope_k c_k
    policy: int  # codes.OnBranch
