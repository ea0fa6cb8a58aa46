"""Neurons sorted by activation cone: the state of a flow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array, Indices
from reluflow.kernels.codes import BRANCH, LEAVE, SLIDE
from reluflow.kernels.flow_arrival import empty_log, flush, note, resolve
from reluflow.kernels.flow_field import pull
from reluflow.kernels.flow_members import group_max, group_rows, moments, sync
from reluflow.kernels.flow_scan import empty_wheel, file_all
from reluflow.kernels.flow_types import Cones, Data, Members
from reluflow.network import Network
from reluflow.problem import Problem

# a wheel costs as much per step as looking at 8 neurons for each column of the propagator
CROWDED = 8
# up to so many the neurons of a cone that point the same way are cleared as one instead
BUNDLED, NARROW = 64, 0.1


class State:
    """Unit vectors, log-scales and cones of all neurons, and the columns that move them.

    Neuron j is ``exp(ls[j]) * Y Z[j]``, Y the columns of its cone (the identity after
    :meth:`rebuild`), or column ``col[j]`` itself when its cone holds few neurons.
    """

    def __init__(self, data: Data, Z: Array, ls: Array, V: NDArray[np.int8]) -> None:
        self.data, self.Z, self.ls = data, Z, ls
        self.U = np.empty((0, V.shape[1]), np.int8)
        self.gid = np.zeros(Z.shape[0], np.int64)
        self._keys: dict[bytes, int] = {}
        self.assign(np.arange(Z.shape[0]), V)
        self.rebuild()

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.Z.shape[1]) - 1

    @property
    def members(self) -> Members:
        """Neurons as kernels take them."""
        return Members(self.gid, self.col, self.Z, self.ls)

    def assign(self, which: Indices, V: NDArray[np.int8]) -> None:
        """Give the listed neurons new patterns (rows of V)."""
        group, first = np.empty(which.size, np.int64), np.empty(which.size, np.int64)
        count = group_rows(V, group, first)
        self.gid[which] = np.array([self._cone(u) for u in V[first[:count]]], np.int64)[group]

    def _cone(self, u: NDArray[np.int8]) -> int:
        key = u.tobytes()
        if key not in self._keys:
            self._keys[key] = len(self._keys)
            self.U = np.vstack([self.U, u[None]])
        return self._keys[key]

    def rebuild(self) -> None:
        """Start columns afresh from present neurons: call after :meth:`sync`."""
        self._drop_empty()
        G, width = self.U.shape[0], self.d + 1
        counts = np.bincount(self.gid, minlength=G)
        lumped = counts > width
        r = np.where(lumped, width, counts)
        offset = np.concatenate([[0], np.cumsum(r)]).astype(np.int64)
        q_offset = np.concatenate([[0], np.cumsum(np.where(lumped, r * r, r))]).astype(np.int64)
        single = np.flatnonzero(~lumped[self.gid])
        single = single[np.argsort(self.gid[single], kind="stable")]
        self.col = np.full(self.gid.size, -1, np.int64)
        columns = np.flatnonzero(~np.repeat(lumped, r))
        self.col[single] = columns
        self.C = np.empty((int(offset[-1]), width))
        self.C[np.repeat(lumped, r)] = np.tile(np.eye(width), (int(lumped.sum()), 1))
        self.C[columns] = self.Z[single]
        self.log_size = np.empty(G)
        group_max(self.gid, self.ls, self.log_size)
        S = np.where(self.U > 0, 1.0, np.where(self.U < 0, self.data.leak, 0.0))
        self.faces = (self.U == 0).any(axis=1)
        N, n_offset = self._faces()
        Q = np.empty(int(q_offset[-1]))
        size = np.exp(2.0 * self.log_size)
        self.cones = Cones(offset, lumped, Q, q_offset, size, S, N, n_offset, self.U, self.faces)
        moments(self.cones, self.members, self.log_size, Q)
        self.growth = np.zeros(G)
        self.wind()

    def wind(self) -> None:
        """File the neurons of crowded cones under the slack they have now."""
        counts = np.bincount(self.gid, minlength=self.U.shape[0])
        crowded = self.cones.lumped & (counts > CROWDED * (self.d + 1))
        for g in np.flatnonzero(crowded & (counts <= BUNDLED * (self.d + 1))):
            Z = self.Z[self.gid == g]
            crowded[g] = float(np.ptp(Z, axis=0).max()) > NARROW
        often = np.flatnonzero(~crowded[self.gid])
        self.often = often[np.argsort(self.gid[often], kind="stable")]
        self.wheel = empty_wheel(crowded, self.gid.size)
        file_all(self.data, self.cones, self.C, self.members, self.wheel)

    def _drop_empty(self) -> None:
        used = np.flatnonzero(np.bincount(self.gid, minlength=self.U.shape[0]))
        if used.size < self.U.shape[0]:
            place = np.zeros(self.U.shape[0], np.int64)
            place[used] = np.arange(used.size)
            self.gid, self.U = place[self.gid], self.U[used]
            self._keys = {u.tobytes(): g for g, u in enumerate(self.U)}

    def _faces(self) -> tuple[Array, NDArray[np.int64]]:
        rows, n_offset = [np.empty((0, self.d))], [0]
        for g in range(self.U.shape[0]):
            count = 0
            if self.faces[g]:
                _, s, vt = np.linalg.svd(self.data.X[self.U[g] == 0], full_matrices=False)
                count = int(np.sum(s > 1e-12 * s[0])) if s[0] > 0 else 0
                rows.append(vt[:count])
            n_offset.append(n_offset[-1] + count)
        return np.ascontiguousarray(np.vstack(rows)), np.array(n_offset, np.int64)

    def shrink(self, log_factor: float) -> None:
        """Divide every neuron by exp(log_factor): what weight decay does in a step."""
        self.ls -= log_factor
        self.log_size -= log_factor
        self.cones.size[:] = np.exp(2.0 * self.log_size)

    def sync(self) -> None:
        """Bring ``Z`` and ``ls`` to the present (columns are then stale: rebuild)."""
        sync(self.cones, self.C, self.members)

    def neurons(self, C: Array | None = None) -> tuple[Array, Array]:
        """Copies of unit vectors and log-scales with the columns at ``C`` (now, by default)."""
        Z, ls = self.Z.copy(), self.ls.copy()
        sync(self.cones, self.C if C is None else C, Members(self.gid, self.col, Z, ls))
        return Z, ls

    def vectors(self, g: int, which: int | NDArray[np.int64], C: Array) -> Array:
        """Listed neurons of cone g, in units of their scales, with the columns at ``C``."""
        if self.cones.lumped[g]:
            lo = self.cones.offset[g]
            return np.asarray(self.Z[which] @ C[lo : lo + self.d + 1])
        return C[self.col[which]]


def begin(problem: Problem, net: Network, data: Data, policy: int) -> tuple[State, Array]:
    """State of a network at the start, exact kinks settled; also the events of doing so."""
    net.check_fits(problem.d)
    Z = np.column_stack([net.W, net.a])
    top = np.max(np.abs(Z), axis=1)
    safe = np.where(top > 0, top, 1.0)
    Z /= safe[:, None]
    size = np.linalg.norm(Z, axis=1)
    size[size == 0] = 1.0
    Z /= size[:, None]
    ls = net.log_factors + np.log(safe) + np.log(size)
    f, c = problem.outputs(net), np.empty(problem.n)
    pull(data, f, c)
    return place(data, Z, ls, c, policy)


def place(data: Data, Z: Array, ls: Array, c: Array, policy: int) -> tuple[State, Array]:
    """State of unit vectors Z with log-scales ls under the pull c; events of settling kinks."""
    n = data.y.size
    V = np.sign(Z[:, :-1] @ data.X.T).astype(np.int8)
    V[:, data.norms == 0] = -1
    events = np.zeros((1 + 4 * V.size, 4))
    for j in np.flatnonzero((V == 0).any(axis=1)):
        log = empty_log(n)
        _settle_start(data, V[j], Z[j], c, log, policy)
        flush(log, j, events)
    return State(data, Z, ls, V), events


def _settle_start(
    data: Data, u: NDArray[np.int8], z: Array, c: Array, log: Array, policy: int
) -> None:
    """Sides of the samples with <w, x_k> = 0 exactly at the start."""
    before = u.copy()
    resolve(data, u, z, c, policy)
    for k in np.flatnonzero(before == 0):
        ridge = z[-1] * c[k] > 0
        if u[k] == 0:
            note(log, k, 0.0, BRANCH if ridge else SLIDE)
        elif ridge and policy == LEAVE:
            note(log, k, 0.0, BRANCH)
