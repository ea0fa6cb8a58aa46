r"""Neurons of every frame of a run, as one small matrix per activation cone and frame.

While a neuron stays in cone u it moves by a linear map that is the same for all neurons of the
cone (:math:`z_j(t') = P_u z_j(t)` with :math:`z_j = (w_j, a_j)`). So a frame is

- for each cone with many neurons a matrix :math:`P_u = e^{h} Q`, fitted to some of its neurons, and
- the few neurons for which that misses (they crossed a kink, or their cone is nearly empty), each
  with its vector, its log-size and its new cone.

The reader keeps unit vectors and log-sizes apart: :math:`u_j \leftarrow Q u_j / |Q u_j|` and
:math:`s_j \leftarrow s_j + h + \log|Q u_j|`. `Packer` follows what the reader has, in the reader's
single precision, and sends a neuron whole as soon as it would be drawn in a wrong place: errors
stay below `_ANGLE` and `_LOG` in every frame, however long the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.network import Network
from reluflow.problem import Problem

_ANGLE = 1e-3  # distance of unit vectors, well below a pixel, up to which a place is right
_LOG = 4e-3  # the same for log-sizes
_FIT = 96  # neurons a matrix is fitted to
_PATTERN_WORK = 20_000_000  # neurons times samples looked at in a frame
DRAWN = 200_000  # neurons drawn at most
SMALLEST = -1e30  # log-size of a neuron that is zero

Single = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class View:
    """Which coordinates of w are drawn.

    Up to three features are drawn as they are. Of more, the coordinates along two orthonormal
    directions and the length of the rest: then frames list every neuron, for lengths do not move
    linearly.
    """

    axes: Array | None  # (2, d), None for the coordinates themselves

    @property
    def linear(self) -> bool:
        """Whether drawn coordinates move linearly within a cone."""
        return self.axes is None

    def draw(self, W: Array) -> Array:
        """Coordinates to draw of inner weights, shape (m, 2) or (m, 3)."""
        if self.axes is None:
            return W if W.shape[1] > 1 else np.column_stack([W, np.zeros(len(W))])
        near = W @ self.axes.T
        rest = np.linalg.norm(W - near @ self.axes, axis=1)
        return np.column_stack([near, rest])


def principal_axes(problem: Problem, net: Network) -> Array:
    """Two orthonormal directions that carry most of a network's output, shape (2, d).

    Those of the largest weights sum_j (|a_j| |w_j|) v_j v_j^T on the neurons' unit vectors v_j;
    for a silent network, those in which the samples pull.
    """
    sizes = net.log_norms + net.log_outer
    top = float(sizes.max(initial=-np.inf))
    if np.isfinite(top):
        V = net.directions * np.exp(0.5 * (sizes - top))[:, None]
    else:
        V = problem.pull[:, None] * problem.X
    if (
        np.linalg.matrix_rank(V.T @ V, hermitian=True) < 2
    ):  # one direction carries all: the second is that of the data
        size = max(float(np.linalg.norm(problem.X)), 1e-300)
        spread = problem.X * (float(np.linalg.norm(V)) / size)
        V = np.vstack([V, 1e-3 * spread])
    _, vectors = np.linalg.eigh(V.T @ V)  # d by d, however many neurons there are
    first: Array = vectors[:, ::-1].T[:2]
    lead = np.take_along_axis(first, np.abs(first).argmax(axis=1)[:, None], axis=1)
    return first * np.where(lead < 0.0, -1.0, 1.0)


class Packer:
    """Packs the networks of a run, given one after the other.

    Parameters
    ----------
    problem : Problem
        Gives the cones.
    view : View
    """

    def __init__(self, problem: Problem, view: View) -> None:
        self.problem, self.view = problem, view
        self._counts: list[tuple[int, int]] = []
        names = ("cone", "shift", "matrix", "index", "vector", "log_size", "group")
        self._parts: dict[str, list[NDArray[Any]]] = {name: [] for name in names}
        self._keys: dict[bytes, int] = {}
        self._chosen: NDArray[np.intp] | None = None
        self._u: Single = np.empty((0, 0), np.float32)  # what the reader has
        self._s: Single = np.empty(0, np.float32)
        self._group: NDArray[np.uint32] = np.empty(0, np.uint32)
        self._m = 0

    def add(self, net: Network) -> None:
        """Pack the next frame."""
        if self._chosen is None:
            self._m = net.m
            most = max(1, min(DRAWN, _PATTERN_WORK // self.problem.n))
            if not self.view.linear:
                most = min(most, 2000)
            step = max(1, -(-net.m // most))
            self._chosen = np.arange(0, net.m, step)
        net = net if self._chosen.size == net.m else net.subset(self._chosen)
        u, s = _unit_vectors(self.view.draw(net.W), net.a, net.log_factors)
        group = self._groups(net.W)
        if not self._u.size:
            self._list(np.arange(u.shape[0]), u, s, group, [])
            return
        cones = self._move(u, s, group) if self.view.linear else []
        off = np.linalg.norm(self._u - u, axis=1) > _ANGLE
        off |= np.abs(self._s - s) > _LOG
        self._list(np.flatnonzero(off), u, s, group, cones)

    @property
    def frames(self) -> int:
        """Frames packed so far."""
        return len(self._counts)

    def _groups(self, W: Array) -> NDArray[np.uint32]:
        """Number of each neuron's cone."""
        if not self.view.linear:
            return np.zeros(len(W), np.uint32)
        packed = np.packbits(W @ self.problem.X.T > 0.0, axis=1)
        rows = np.ascontiguousarray(packed).view(f"V{packed.shape[1]}").ravel()
        found, where = np.unique(rows, return_inverse=True)
        numbers = [self._keys.setdefault(key.tobytes(), len(self._keys)) for key in found]
        return np.asarray(np.array(numbers, np.uint32)[where])

    def _move(self, u: Array, s: Array, group: NDArray[np.uint32]) -> list[int]:
        """Move what the reader has by one matrix for each cone; the cones that have one."""
        done: list[int] = []
        q = u.shape[1]
        stayed = (self._group == group) & (self._s > SMALLEST) & (s > SMALLEST)
        order = np.argsort(self._group, kind="stable")
        bounds = np.flatnonzero(np.diff(self._group[order])) + 1
        for members in np.split(order, bounds):
            keep = members[stayed[members]]
            if keep.size <= q:
                continue
            fitted = keep[:: max(1, keep.size // _FIT)]
            growth = s[fitted] - self._s[fitted]
            shift = np.float32(growth.max())
            target = u[fitted] * np.exp(growth - shift)[:, None]
            Q = np.linalg.lstsq(self._u[fitted].astype(float), target, rcond=1e-10)[0].T
            Q = Q.astype(np.float32)
            if np.allclose(Q, np.eye(q), atol=1e-6) and abs(shift) < 1e-6:
                continue  # nothing moves here
            moved = self._u[members] @ Q.T
            size = np.linalg.norm(moved, axis=1)
            size[size == 0.0] = 1.0
            self._u[members] = moved / size[:, None]
            self._s[members] += shift + np.log(size)
            self._parts["cone"].append(self._group[members[:1]])
            self._parts["shift"].append(np.array([shift], np.float32))
            self._parts["matrix"].append(Q.ravel())
            done.append(int(self._group[members[0]]))
        return done

    def _list(
        self,
        which: NDArray[np.intp],
        u: Array,
        s: Array,
        group: NDArray[np.uint32],
        cones: list[int],
    ) -> None:
        """List neurons whole."""
        if not self._u.size:
            self._u, self._s = u.astype(np.float32), s.astype(np.float32)
            self._group = group.copy()
        self._u[which], self._s[which], self._group[which] = u[which], s[which], group[which]
        self._parts["index"].append(which.astype(np.uint32))
        self._parts["vector"].append(self._u[which].ravel())
        self._parts["log_size"].append(self._s[which])
        self._parts["group"].append(group[which])
        self._counts.append((len(cones), which.size))

    def pack(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What is known of all frames, and their arrays by name."""
        empty = {"cone": np.uint32, "index": np.uint32, "group": np.uint32}
        arrays = {
            name: np.concatenate([np.empty(0, empty.get(name, np.float32)), *parts])
            for name, parts in self._parts.items()
        }
        arrays["counts"] = np.array(self._counts, np.uint32).ravel()
        about = {
            "width": int(self._u.shape[1]) if self._u.size else 0,
            "drawn": int(self._u.shape[0]),
            "neurons": self._m,
            "frames": len(self._counts),
            "groups": len(self._keys) or 1,
            "axes": None if self.view.axes is None else self.view.axes.tolist(),
        }
        return about, arrays


def _unit_vectors(W: Array, a: Array, log_factors: Array) -> tuple[Array, Array]:
    """Unit vectors of (w, a) and the log of their lengths."""
    Z = np.column_stack([W, a])
    size = np.linalg.norm(Z, axis=1)
    safe = np.where(size > 0.0, size, 1.0)
    logs = np.where(size > 0.0, np.log(safe) + log_factors, SMALLEST)
    return Z / safe[:, None], logs


def unpack(about: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> list[tuple[Array, Array]]:
    """Unit vectors and log-sizes of every frame: what the front end computes, in NumPy."""
    q, m = about["width"], about["drawn"]
    u, s = np.zeros((m, q), np.float32), np.zeros(m, np.float32)
    group = np.zeros(m, np.uint32)
    made, cone, row = [], 0, 0
    for cones, listed in arrays["counts"].reshape(-1, 2):
        for c in range(cone, cone + int(cones)):
            members = group == arrays["cone"][c]
            Q = arrays["matrix"][c * q * q : (c + 1) * q * q].reshape(q, q)
            moved = u[members] @ Q.T
            size = np.linalg.norm(moved, axis=1)
            size[size == 0.0] = 1.0
            u[members] = moved / size[:, None]
            s[members] += arrays["shift"][c] + np.log(size)
        rows = slice(row, row + int(listed))
        which = arrays["index"][rows]
        u[which] = arrays["vector"][rows.start * q : rows.stop * q].reshape(-1, q)
        s[which], group[which] = arrays["log_size"][rows], arrays["group"][rows]
        cone, row = cone + int(cones), row + int(listed)
        made.append((u.astype(float), s.astype(float)))
    return made
