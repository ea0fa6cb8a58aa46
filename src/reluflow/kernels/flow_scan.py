"""Who may meet a kink in a step: a bound for whole cones first, then neuron by neuron."""

import numpy as np
from numba import njit

from reluflow.kernels.flow_crossing import first_event, first_exit
from reluflow.kernels.flow_dense import REACH
from reluflow.kernels.flow_face import has_face
from reluflow.kernels.flow_members import path_of
from reluflow.kernels.flow_vector import dot
from reluflow.kernels.inner import inner


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


@njit(cache=True)
def slacks(data, U, faces, gid, Z, out):
    """Slack of every neuron, with its cone's columns at the identity."""
    for j in range(gid.size):
        out[j] = slack_of(data, U[gid[j]], Z[j], faces[gid[j]])


@inner
def travelled(data, cones, frame, U, F, g, faces, reach, rows):
    """Bound on how far any x_k^T P (of unit x_k) moves during the step.

    ``reach`` receives the bound of each sample (the last entry is that of a), ``rows`` the row
    vectors x_k^T P (and that of a) at the start.
    """
    d = data.X.shape[1]
    lo, hi, far = cones.offset[g], cones.offset[g + 1], 0.0
    grow = frame.rate[g] * frame.h
    along, outer = 0.0, 0.0
    for q in range(8):
        p2, a2 = 0.0, 0.0
        for i in range(lo, hi):
            s = dot(frame.unit, g, F[q, i])
            p2 += s * s
            a2 += F[q, i, d] ** 2
        along += REACH[q] * np.sqrt(p2)
        outer += REACH[q] * np.sqrt(a2)
    ch, sh = np.cosh(grow) - 1.0, np.sinh(grow)
    for k in range(-1 if faces else 0, data.y.size):
        if k >= 0 and (U[g, k] == 0 or data.norms[k] == 0.0):
            continue
        place = k if k >= 0 else data.y.size
        total = 0.0
        for q in range(8):
            square = 0.0
            for i in range(lo, hi):
                s = F[q, i, d] if k < 0 else dot(data.X, k, F[q, i]) / data.norms[k]
                square += s * s
                if q == 0:
                    rows[place, i - lo] = s
            if q > 0:
                total += REACH[q] * np.sqrt(square)
        if k < 0:
            total += ch * outer + sh * along
        else:
            beta = dot(data.X, k, frame.unit[g])
            total += abs(beta) / data.norms[k] * (ch * along + sh * outer)
        far = max(far, total)
        reach[place] = total
    return far


@inner
def room(rows, reach, g, Z, j):
    """Slack of lumped neuron j at the start of a step, and whether the step may use it up."""
    slack, near = np.inf, False
    for k in range(reach.shape[1]):
        if reach[g, k] < 0.0:
            continue
        h = 0.0
        for i in range(Z.shape[1]):
            h += rows[g, k, i] * Z[j, i]
        slack = min(slack, abs(h))
        near = near or abs(h) <= reach[g, k]
    return slack, near


@njit(cache=True)
def scan(data, method, cones, frame, U, F, cn, members, deadline, odometer, rules, theta, sample):
    """First event of every neuron in a step: theta[j] in [0, 1] (2.0: none) and its sample.

    A lumped neuron is looked at only when its cone has travelled past its deadline. Returns the
    number of neurons with an event. Deadlines and odometers are renewed.
    """
    gid, Z = members.gid, members.Z
    G, m = cones.size.size, gid.size
    ends, through = np.full(G, 2.0), np.full(G, -1)
    faces = np.zeros(G, np.bool_)
    n, width = U.shape[1], Z.shape[1]
    before = odometer.copy()
    reach = np.full((G if cones.lumped.any() else 0, n + 1), -1.0)
    rows = np.zeros((reach.shape[0], n + 1, width))
    for g in range(G):
        faces[g] = has_face(U[g])
        if cones.lumped[g]:
            odometer[g] += travelled(data, cones, frame, U, F, g, faces[g], reach[g], rows[g])
        if faces[g]:
            ends[g], through[g] = first_exit(data, method, U[g], cn, 0.0, 1.0, rules.floor)
    path = np.empty((8, width))
    found = 0
    for j in range(m):
        g = gid[j]
        theta[j] = ends[g]
        sample[j] = through[g]
        look = True
        if cones.lumped[g]:
            look = False
            if deadline[j] <= odometer[g]:
                slack, look = room(rows, reach, g, Z, j)
                deadline[j] = before[g] + slack
        if look:
            path_of(cones, members, F, j, path)
            x, hit = first_event(
                data, U[g], path, frame.unit[g], frame.rate[g] * frame.h, faces[g], rules.noise
            )
            if x < theta[j]:
                theta[j], sample[j] = x, hit
        if theta[j] <= 1.0:
            found += 1
    return found
