r"""What the kernels of the flow pass around: problem, cones, neurons, frame and method as arrays.

A neuron is z_j = (w_j, a_j). In the cone u of its signs it obeys

.. math:: z_j' = M_u(c) z_j, \qquad M_u = [[0, D_u], [D_u^T, 0]], \qquad D_u = \sum_k s_{uk} c_k x_k

with the slopes s_uk of the activation (1, leak, or 0 on a face) and the pull c. The matrix is the
same for all neurons of a cone, so a cone is moved by a few **columns** y_i with y_i' = M_u y_i.
Tuples of arrays cost nothing between kernels; one that comes from Python is taken apart once a
call, some tenths of a microsecond for each array.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

N_NODES = 15  # nodes at which the pull is sampled within a step


class Data(NamedTuple):
    """Problem arrays as kernels take them."""

    X: np.ndarray
    XT: np.ndarray  # its columns, one after the other: loops over samples then vectorise
    norms: np.ndarray  # |x_k|
    y: np.ndarray
    kind: int  # codes.LossKind
    factor: float
    weight: float
    leak: float
    by_loss: bool  # clock ds = L dt: the pull is divided by L


class Cones(NamedTuple):
    """Occupied cones, flattened: columns, moments, slopes, faces, patterns."""

    offset: np.ndarray  # (G + 1,) columns of cone g are offset[g] .. offset[g + 1]
    lumped: np.ndarray  # (G,) columns are a basis with moments; else the neurons themselves
    Q: np.ndarray  # moments: r x r when lumped, r weights otherwise
    q_offset: np.ndarray
    size: np.ndarray  # (G,) common factor exp(2 log-scale) of Q
    S: np.ndarray  # (G, n) slopes: 1, leak, or 0 on a face
    N: np.ndarray  # orthonormal rows spanning the x_k of faces
    n_offset: np.ndarray
    U: np.ndarray  # (G, n) sign patterns: -1, 0 (on the face of x_k), 1
    faces: np.ndarray  # (G,) whether a sign is 0


class Members(NamedTuple):
    """Neurons: z_j = exp(ls_j) Y Z_j, Y the columns of cone gid_j, or column col_j itself."""

    gid: np.ndarray
    col: np.ndarray
    Z: np.ndarray
    ls: np.ndarray


class Frame(NamedTuple):
    """A step: the force at its start, as unit vector and size per cone, its length and time."""

    unit: np.ndarray
    rate: np.ndarray
    h: float
    start: float


class Corrections(NamedTuple):
    """What makes f of the outputs of columns, at ``Method.times``."""

    extra: np.ndarray  # (times, n) what neurons that change cone within the step add
    fade: np.ndarray  # (times,) what weight decay multiplies the sum by; empty without decay


class Dense(NamedTuple):
    """The inside of a step: dense output of columns, and the pull as a Chebyshev series."""

    F: np.ndarray  # (8, N, d + 1), in the frame of the step
    cn: np.ndarray  # (terms, n)


class Meetings(NamedTuple):
    """When in a step each neuron first meets a kink (part of the step), and whose.

    The sample is -1 where the outer weight of a neuron on a face passes through zero.
    """

    theta: np.ndarray
    sample: np.ndarray


class Traced(NamedTuple):
    """Neurons carried past kinks: unit vectors, log-scales, patterns, and the list of events."""

    Z: np.ndarray
    ls: np.ndarray
    V: np.ndarray
    events: np.ndarray
    past: np.ndarray  # place in the step to which each was carried beyond a kink, else -1


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
