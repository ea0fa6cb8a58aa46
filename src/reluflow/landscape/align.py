"""Where early alignment takes each neuron, in closed form piece by piece."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow._views import Shown
from reluflow.arrays import Array, Mask
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.kernels.codes import EVENT_NAMES, Destination, EventKind, PathEnd
from reluflow.landscape.early import branch_rule, frozen_pull, most_events
from reluflow.landscape.products import sample_products
from reluflow.network import Network
from reluflow.problem import Problem

DEAD, ANTI_ALIGNED, RESTING, UNLISTED, UNRESOLVED = map(int, Destination)

_SAME = 1e-7  # distance of two unit vectors that counts as the same direction


class Event(NamedTuple):
    """One event of a neuron's path; ``sample`` is -1 for "sign" and "origin"."""

    time: float
    sample: int
    kind: str


@dataclass(frozen=True, eq=False, repr=False)
class Paths:
    """Events of all neurons, those of neuron j in rows ``first[j]:first[j + 1]``.

    Kinds (codes are those of `kernels.codes.EventKind`): "cross" a hyperplane; "slide": reaches it
    and stays on it because both sides push back (the edge of the dead cone included); "exit":
    leaves one it was on; "branch": it is on a repelling one, where staying and leaving are both
    solutions; "sign": the outer weight passes through zero; "origin": w passes through zero.
    """

    first: NDArray[np.int64]
    times: Array
    samples: NDArray[np.int32]
    codes: NDArray[np.int8]

    def __len__(self) -> int:
        return self.first.size - 1

    def __getitem__(self, j: int) -> list[Event]:
        if not -len(self) <= j < len(self):
            raise IndexError(f"neuron {j} of {len(self)}")
        rows = slice(self.first[j % len(self)], self.first[j % len(self) + 1])
        parts = (self.times[rows].tolist(), self.samples[rows].tolist(), self.codes[rows])
        return [Event(t, k, EVENT_NAMES[code]) for t, k, code in zip(*parts, strict=True)]

    def __repr__(self) -> str:
        return f"Paths({len(self)} neurons, {self.times.size} events)"


@dataclass(frozen=True, eq=False, repr=False)
class Alignment(Shown):
    r"""Early alignment of m neurons: where each goes, how fast, and by which cones.

    Attributes
    ----------
    problem, pull, cosine, on_branch
        What was asked for.
    direction : array (m, d)
        Limit of w/|w|; the zero vector for a neuron that ends at w = 0.
    growth : array (m,)
        Eventual rate of log|w|, :math:`s\, G_c(v)` at the limit direction v and eventual sign s;
        0 for neurons that come to rest, negative for anti-aligned ones.
    sign : array (m,)
        Eventual sign of the outer weight, 0 if it ends exactly at zero.
    time : array (m,)
        Time from which cos(w, direction) stays at or above ``cosine``.
    last_event : array (m,)
        Time of the last event: from then on the activation pattern is final.
    log_offset, log_gain : arrays (m,)
        log|w(t)| - growth * t in the limit, and the same less log|w(0)|.
    n_crossings, n_slides, n_branches, n_sign_changes : arrays (m,)
        Numbers of events; ``counts`` has them as columns.
    ends, counts : arrays
        How each path ends, by its code in ``kernels.codes``, and its events by kind.
    given : extremal vectors, optional
        To which destinations are assigned.
    paths : Paths
        The events themselves; empty unless asked for.
    growing, dead, anti_aligned, resting, unresolved : masks (m,)
        Exactly one holds for each neuron. Dead: no active sample is left (leak = 0), so it never
        moves again. Anti-aligned: shrinks to w = 0 for ever along ``direction``, without reaching
        it. Resting: another fixed point (no net pull, or a = 0 orthogonal to the pull, perhaps
        only in the limit). Unresolved: the path could not be followed.
    """

    problem: Problem
    pull: Array
    cosine: float
    on_branch: str
    direction: Array
    growth: Array
    sign: NDArray[np.int8]
    time: Array
    last_event: Array
    log_offset: Array
    log_gain: Array
    ends: NDArray[np.int8] = field(repr=False)
    counts: NDArray[np.int64] = field(repr=False)
    paths: Paths
    given: Any = field(default=None, repr=False)

    @property
    def growing(self) -> Mask:
        """Neurons that grow along an extremal vector."""
        return np.asarray(self.ends == PathEnd.GROWS)

    @property
    def dead(self) -> Mask:
        """Neurons without an active sample at the end."""
        return np.asarray(self.ends == PathEnd.STILL)

    @property
    def anti_aligned(self) -> Mask:
        """Neurons that shrink as long as the network is silent."""
        return np.asarray(self.ends == PathEnd.SHRINKS)

    @property
    def resting(self) -> Mask:
        """Neurons at, or tending to, another fixed point."""
        return np.asarray(self.ends == PathEnd.RESTS)

    @property
    def unresolved(self) -> Mask:
        """Neurons whose path was given up."""
        return np.asarray(self.ends == PathEnd.UNRESOLVED)

    @property
    def branched(self) -> Mask:
        """Neurons whose path is not the only solution; ``on_branch`` chose it."""
        return self.n_branches > 0

    @property
    def n_crossings(self) -> NDArray[np.int64]:
        """Hyperplanes crossed by each neuron."""
        return self.counts[:, EventKind.CROSS]

    @property
    def n_slides(self) -> NDArray[np.int64]:
        """Attracting hyperplanes each neuron came to lie on."""
        return self.counts[:, EventKind.SLIDE]

    @property
    def n_branches(self) -> NDArray[np.int64]:
        """Choices between staying and leaving met by each neuron."""
        return self.counts[:, EventKind.BRANCH]

    @property
    def n_sign_changes(self) -> NDArray[np.int64]:
        """Changes of the sign of each outer weight."""
        return self.counts[:, EventKind.SIGN]

    @cached_property
    def extremal(self) -> Any:
        """The extremal vectors that ``destination`` points into."""
        if self.given is not None:
            return self.given
        from reluflow.landscape.extremal import extremal_vectors

        return extremal_vectors(self.problem, self.pull)

    @cached_property
    def row(self) -> NDArray[np.int64]:
        """Row of ``extremal.vectors`` that equals each limit direction, -1 if none does."""
        from scipy.spatial import KDTree

        row = np.full(self.sign.size, -1)
        some = self.growing | self.anti_aligned
        if some.any() and len(self.extremal.vectors):
            gap, near = KDTree(self.extremal.vectors).query(self.direction[some])
            row[some] = np.where(gap <= _SAME, near, -1)
        return row

    @cached_property
    def destination(self) -> NDArray[np.int64]:
        """Row of ``extremal.vectors`` a growing neuron turns to, or a code below zero.

        -1 dead, -2 anti-aligned, -3 resting, -4 grows along a direction that is not in the list
        (possible when ``extremal.exact`` is False; ``direction`` is exact all the same), -5
        unresolved.
        """
        out = np.array([0, DEAD, ANTI_ALIGNED, RESTING, UNRESOLVED])[self.ends]
        if self.growing.any():
            row = self.row[self.growing]
            out[self.growing] = np.where(row >= 0, row, UNLISTED)
        return out

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: how many neurons meet which fate, and when they are aligned."""
        fates = ("growing", "dead", "anti_aligned", "resting", "unresolved")
        rows, counts = np.unique(self.destination[self.destination >= 0], return_counts=True)
        return {
            "neurons": int(self.sign.size),
            **{name: int(getattr(self, name).sum()) for name in fates},
            "to": {str(row): int(n) for row, n in zip(rows, counts, strict=True)},
            "cosine": self.cosine,
            "time": float(self.time[self.growing].max(initial=0.0)),
        }

    def __repr__(self) -> str:
        names = ("growing", "dead", "anti_aligned", "resting", "unresolved")
        sizes = {name: int(getattr(self, name).sum()) for name in names}
        words = ", ".join(
            f"{size} {name.replace('_', '-')}" for name, size in sizes.items() if size
        )
        return f"Alignment({self.sign.size} neurons: {words})"


@check_arguments
def align(
    problem: Problem,
    net: Network,
    pull: ArrayLike | None = None,
    *,
    on_branch: str = "stay",
    cosine: float = 0.99,
    paths: bool = True,
    extremal: Any = None,
) -> Alignment:
    r"""Follow each neuron of a silent network to the direction it aligns with.

    With the pull c frozen, :math:`w' = a D_u`, :math:`a' = \langle w, D_u \rangle` is linear in
    the cone u of the neuron, and :math:`\langle w(t), x_k \rangle` depends on time through
    :math:`p = \langle w, D_u/|D_u| \rangle` alone, which is monotone while a keeps its sign: the
    next hyperplane is the nearest one in p, and its time follows from
    :math:`p(t) = P e^{|D_u| t} + Q e^{-|D_u| t}`. At hyperplane k let :math:`v_1` and
    :math:`v_{leak}` be the velocities of :math:`\langle w, x_k \rangle` with the two slopes:

    - same sign: it crosses;
    - opposite signs, :math:`a c_k < 0`: attracting, it slides, with the D of minimal norm on the
      face (box-constrained least squares when several samples meet);
    - opposite signs, :math:`a c_k > 0`: repelling; staying and leaving are both solutions.

    A neuron with |a| > |w| may shrink to w = 0 along a ray, sliding or not. It goes on behind zero
    in the direction it came with, keeps to the hyperplanes it slides on while they hold it there,
    and climbs s G from there; it rests at w = 0 where nothing pulls behind zero or the pull drives
    it back.

    Parameters
    ----------
    problem : Problem
        Samples, labels, loss and activation.
    net : Network
        Start; balanced or not, of any size (``log_scale`` of -1000 included).
    pull : array (n,), optional
        The frozen pull; by default ``problem.pull``, that of a silent network.
    on_branch : {"stay", "leave"}
        On a repelling hyperplane, stay (regular solutions of [MMV24]_, relu'(0) = leak on the
        dead cone) or leave at once, to the active side if it can.
    cosine : float in (0, 1)
        The cosine with the limit direction whose time is reported.
    paths : bool
        Whether to keep the events of each neuron.
    extremal : optional
        A result of :func:`reluflow.extremal_vectors` for the same pull, to point into; by default
        computed when ``destination`` is first read.

    Returns
    -------
    Alignment

    Notes
    -----
    Definitions: [BF24]_ sections 3 and 4 (extremal vectors, D of minimal norm); balanced neurons
    in one cone follow :math:`\cos(t) = \tanh(\operatorname{artanh} \cos(0) + |D_u| t)`
    ([MMV24]_, [TLB26]_ Lemma 3). Hyperplane tests use the rounding error accumulated along the
    path, :math:`1.4 \cdot 10^{-14} |w| |x_k|` at the start.

    Examples
    --------
    >>> import numpy as np
    >>> problem = Problem(X=np.eye(2), y=np.array([1.0, 2.0]))
    >>> net = Network(W=[[1.0, 1.0], [1.0, -1.0]], a=np.sqrt([2.0, 2.0]))
    >>> align(problem, net).direction.round(3)
    array([[0.447, 0.894],
           [1.   , 0.   ]])
    """
    from reluflow.kernels.early import align_all

    c = frozen_pull(problem, net, pull)
    if not isinstance(paths, bool | np.bool_):
        raise ReluflowError(f"paths must be True or False, got {paths!r}: True keeps the events")
    if not 0.0 < cosine < 1.0:
        raise ReluflowError(f"cosine must lie strictly between 0 and 1, got {cosine!r}: try 0.99")
    ends, sign, numbers, direction, counts, events = align_all(
        net.W,
        net.a,
        problem.X,
        c,
        problem.leak,
        branch_rule(on_branch),
        float(cosine),
        bool(paths),
        most_events(problem.n),
        sample_products(problem),
    )
    growth, offset, time, last = numbers
    with np.errstate(invalid="ignore"):
        gain = offset - (net.log_norms - net.log_factors)
    return Alignment(
        problem=problem,
        pull=c,
        cosine=float(cosine),
        on_branch=on_branch,
        direction=direction,
        growth=growth,
        sign=sign,
        time=time,
        last_event=last,
        log_offset=offset + net.log_factors,
        log_gain=gain,
        ends=ends,
        counts=counts,
        paths=Paths(*events),
        given=extremal,
    )
