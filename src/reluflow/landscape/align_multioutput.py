"""Early alignment with several outputs: where each neuron of a silent network turns, and when."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from reluflow.arrays import Array, Sides
from reluflow.errors import ReluflowError
from reluflow.kernels.codes import EventKind, PathEnd
from reluflow.landscape.align import Alignment, Paths
from reluflow.landscape.early import branch_rule
from reluflow.landscape.multioutput import Rides, extremal_vectors, matrix_pull, ride, sides_of
from reluflow.network import Network
from reluflow.problem import Problem


@dataclass(frozen=True, eq=False, repr=False)
class VectorAlignment(Alignment):
    """Early alignment with several outputs; ``sign`` is 1 for growing neurons and else 0.

    Attributes
    ----------
    outer : array (m, K)
        Limit of a/|a|.

    The others are those of :class:`Alignment`; ``paths`` are not kept.
    """

    outer: Array = field(default_factory=lambda: np.empty((0, 0)))

    @cached_property
    def extremal(self) -> Any:
        """The critical points that ``destination`` points into."""
        return extremal_vectors(self.problem, self.pull) if self.given is None else self.given


def align(
    problem: Problem,
    net: Network,
    pull: ArrayLike | None = None,
    *,
    on_branch: str = "stay",
    cosine: float = 0.99,
    paths: bool = False,
    extremal: Any = None,
) -> VectorAlignment:
    """Follow each neuron of a silent network with several outputs: see :func:`reluflow.align`.

    Events are counted and their paths not kept, whatever ``paths``; a neuron that starts on a
    hyperplane counts as inactive there, so that ``on_branch`` plays no part.
    """
    branch_rule(on_branch)
    net.check_fits_problem(problem)
    if not 0.0 < cosine < 1.0:
        raise ReluflowError(f"cosine must lie strictly between 0 and 1, got {cosine!r}: try 0.99")
    C = matrix_pull(problem, pull)
    U = sides_of(problem, net.W)
    found = ride(problem, net.W, net.a, U, C, np.inf)
    sizes = np.linalg.norm(found.W, axis=1)
    direction = np.divide(
        found.W, sizes[:, None], out=np.zeros_like(found.W), where=sizes[:, None] > 0
    )
    outer = np.linalg.norm(found.A, axis=1)[:, None]
    grows = found.ends == PathEnd.GROWS
    with np.errstate(divide="ignore"):
        offset = found.log + np.log(sizes)
    counts = np.zeros((net.m, len(EventKind) + 1), dtype=np.int64)
    counts[:, [EventKind.CROSS, EventKind.SLIDE]] = found.counts
    none = np.zeros(net.m + 1, dtype=np.int64)
    empty = Paths(none, np.empty(0), np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int8))
    with np.errstate(invalid="ignore"):
        gain = offset - (net.log_norms - net.log_factors)
    return VectorAlignment(
        problem=problem,
        pull=C,
        cosine=float(cosine),
        on_branch="stay",
        direction=direction,
        growth=found.rate,
        sign=grows.astype(np.int8),
        time=_alignment_times(problem, C, found, direction, cosine),
        last_event=found.last,
        log_offset=offset + net.log_factors,
        log_gain=gain,
        ends=found.ends.astype(np.int8),
        counts=counts,
        paths=empty,
        given=extremal,
        outer=np.divide(found.A, outer, out=np.zeros_like(found.A), where=outer > 0),
    )


def _alignment_times(problem: Problem, C: Array, found: Rides, V: Array, cosine: float) -> Array:
    """From when on cos(w, V) stays at or above ``cosine``, to six digits; 0 for those at rest.

    After the last event the cosine of a growing neuron rises to 1; where it is large already, the
    time of that event is given.
    """
    grows = np.flatnonzero(found.ends == PathEnd.GROWS)
    times = np.zeros(len(V))
    if not grows.size:
        return times

    for j in grows.tolist():
        row, last = slice(j, j + 1), float(found.last[j])
        here = found.Z[row, : problem.d], found.Z[row, problem.d :], found.U[row]

        def cosine_at(t: float, here: tuple[Array, Array, Sides] = here, v: Array = V[j]) -> float:
            moved = ride(problem, *here, C, t).W[0]
            return float(moved @ v / np.linalg.norm(moved))

        if cosine_at(0.0) >= cosine:
            times[j] = last
            continue
        low, high = 0.0, 60.0 / float(found.rate[j])
        while high - low > 1e-6 * high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if cosine_at(middle) >= cosine else (middle, high)
        times[j] = last + high
    return times
