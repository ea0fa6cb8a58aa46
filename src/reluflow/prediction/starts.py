"""Starts of the limit process: a network, directions and signs alone, or infinite width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import KDTree

from reluflow.arrays import Array, Mask, Sides
from reluflow.errors import ReluflowError
from reluflow.kernels.codes import GROWS, RESTS, SHRINKS, UNRESOLVED
from reluflow.landscape.align import Alignment, align
from reluflow.landscape.early import most_events
from reluflow.landscape.extremal import extremal_vectors
from reluflow.landscape.products import sample_products
from reluflow.network import Network
from reluflow.prediction.crew import settling_times
from reluflow.prediction.staircase import Jump, Unit, rounded_rate
from reluflow.problem import Problem

_NAMED = 6  # neurons listed of many


@dataclass(frozen=True, eq=False)
class Doubt:
    """Something the limit does not determine; {} in its words stands for the neurons."""

    words: str
    neurons: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def text(self, jumps: Sequence[Jump]) -> str:
        """The words with the neurons by index, and when they jump, if they do."""
        text = self.words.format(_neuron_list(self.neurons)) if self.neurons.size else self.words
        late = [
            f"{_neuron_list(some)} (jump {i})"
            for i, jump in enumerate(jumps, start=1)
            if (some := np.intersect1d(self.neurons, jump.members)).size
        ]
        if late:
            shown = ", ".join(late[:_NAMED]) + (", ..." if len(late) > _NAMED else "")
            text += f", later jumps of these: {shown}"
        return text


def _neuron_list(neurons: NDArray[np.int64]) -> str:
    """``neuron 3``, ``neurons 3, 5`` or ``25 neurons (0, 3, 5, 8, 9, 12, ...)``."""
    if len(neurons) == 1:
        return f"neuron {neurons[0]}"
    first = ", ".join(str(j) for j in neurons[:_NAMED])
    if len(neurons) <= _NAMED:
        return f"neurons {first}"
    return f"{len(neurons)} neurons ({first}, ...)"


@dataclass(frozen=True, eq=False)
class Start:
    """Neurons settled on the first plateau.

    Attributes
    ----------
    units : list of Unit
        Neurons that share a direction and a sign.
    signs : array (m,)
        Signs of the outer weights from then on, 0 for dead neurons.
    dead : dict
        Neurons that never move again, with their exponent.
    view : str
        What was assumed.
    relaxation : float
        Time in which the neurons settle.
    open : tuple of Doubt
        What the limit does not determine.
    weights : array (m,) or None
        Shares of an infinite population.
    """

    units: list[Unit]
    signs: NDArray[np.int8]
    dead: dict[int, float]
    view: str
    relaxation: float
    open: tuple[Doubt, ...] = ()
    weights: Array | None = None


def from_network(
    problem: Problem,
    net: Network,
    view: str = "this network",
    alignment: Alignment | None = None,
) -> Start:
    """Settle the neurons of a network on the landscape of the silent network.

    ``alignment`` is where they settle, if that is known.
    """
    settled = align(problem, net, paths=False) if alignment is None else alignment
    ends, sign, V = settled.ends, settled.sign, settled.direction
    largest = net.log_norms.max()
    K = settled.log_offset - (largest if np.isfinite(largest) else 0.0)
    unit = problem.total_pull
    rates = np.array([rounded_rate(rate, unit) for rate in settled.growth])
    alive = ((ends == GROWS) | (ends == SHRINKS) | (ends == RESTS)) & (sign != 0)
    alive &= np.isfinite(K)
    groups = _groups(V, sign, alive)
    heads = np.array([members[K[members].argmax()] for members in groups], dtype=int)
    sides = _sides(problem, net, heads)
    settling = settling_times(settled.last_event, rates)
    units = [
        Unit(V[j], float(sign[j]), members, K[members], U, g=rates[j])
        for j, members, U in zip(heads, groups, sides, strict=True)
    ]
    return Start(
        units=units,
        signs=np.where(alive, sign, 0).astype(np.int8),
        dead=dict.fromkeys(np.flatnonzero(~alive).tolist(), -1.0),
        view=view,
        relaxation=float(settling[alive].max(initial=0.0)),
        open=_open_questions(ends, settled.n_branches, rates),
    )


def from_directions(problem: Problem, directions: ArrayLike, signs: ArrayLike | None) -> Start:
    """Balanced neurons of equal size along the given directions."""
    V = np.array(directions, dtype=float)
    if V.ndim != 2 or V.shape[1] != problem.d or len(V) == 0:
        raise ReluflowError(
            f"directions has shape {V.shape}, expected (m, {problem.d}): one row for each neuron"
        )
    size = np.linalg.norm(V, axis=1)
    if not (np.isfinite(V).all() and (size > 0).all()):
        raise ReluflowError("directions must be finite and not zero: drop the offending rows")
    if signs is None:
        raise ReluflowError("directions need signs: give signs=, one of -1 and +1 for each row")
    s = np.array(signs, dtype=float)
    if s.shape != (len(V),) or not np.isin(s, (-1.0, 1.0)).all():
        raise ReluflowError(
            f"signs must be {len(V)} entries of -1 and +1, one for each direction, got {signs!r}"
        )
    net = Network(V / size[:, None], s, leak=problem.leak, bias=problem.bias)
    return from_network(problem, net, "directions and signs only, balanced and of equal size")


def from_infinite_width(problem: Problem) -> Start:
    """One neuron for each basin of positive measure, of either sign."""
    found = extremal_vectors(problem)
    share = found.basin_fractions
    rows, signs, weights = [], [], []
    for s, column, kind in ((1, 0, "max"), (-1, 1, "min")):
        for i in found.of_kind(kind):
            part = np.nan if share is None else share[i, column]
            if share is None or part > 0.0:
                rows.append(i)
                signs.append(s)
                weights.append(part)
    if not rows:
        raise ReluflowError(
            "no direction of this problem attracts neurons: expected a pull that is not zero"
        )
    net = Network(found.vectors[rows], np.array(signs, float), leak=problem.leak, bias=problem.bias)
    start = from_network(problem, net)
    notes = ["relative sizes of the groups (taken as the square root of their basins' measure)"]
    if share is None:
        notes = ["relative sizes of the groups (taken equal: the basins' measures are not known)"]
    w = np.array(weights)
    w = np.full(len(w), 1.0 / len(w)) if share is None else w
    for unit in start.units:
        unit.K = 0.5 * np.log(w[unit.members])
    words = "every basin of positive measure is populated"
    if not found.exact:
        words = "every basin that was found is populated; the list may not be complete"
    flat = [
        k.startswith(("weak", "flat")) and (p > 0).any()
        for k, p in zip(found.kinds, found.patterns, strict=True)
    ]
    if any(flat):
        notes.append("neurons on the set of directions that feel no pull at first")
    return Start(
        units=start.units,
        signs=start.signs,
        dead=start.dead,
        relaxation=start.relaxation,
        view=f"infinite width: {words}, so the process depends on the data alone",
        open=tuple(Doubt(note) for note in notes),
        weights=w,
    )


def _sides(problem: Problem, net: Network, heads: NDArray[np.int64]) -> Sides:
    """Sides of the hyperplanes on which the largest neuron of each group ends."""
    from reluflow.kernels.early import ride_all

    unknown = np.full((len(heads), problem.n), 2, dtype=np.int8)
    hold = np.ones(len(heads), dtype=bool)
    pull, most = np.array(problem.pull), most_events(problem.n)
    W, a = net.W[heads], net.a[heads]
    K, leak = sample_products(problem), problem.leak
    ends = ride_all(W, a, unknown, problem.X, pull, leak, hold, 0.0, np.inf, most, K)
    return np.asarray(ends[4])


def _groups(V: Array, sign: NDArray[np.int8], alive: Mask) -> list[NDArray[np.int64]]:
    """Indices of living neurons with the same limit direction and sign."""
    index = np.flatnonzero(alive)
    if index.size == 0:
        return []
    keys = np.column_stack([V[index], sign[index]])
    coarse, first, inverse = np.unique(
        np.round(keys, 9), axis=0, return_index=True, return_inverse=True
    )
    label = np.arange(len(coarse))
    for i, near in enumerate(KDTree(keys[first]).query_ball_point(keys[first], 1e-7)):
        label[i] = min(label[j] for j in near)
    of = label[inverse.ravel()]
    order = np.argsort(of, kind="stable")
    cuts = np.flatnonzero(np.diff(of[order])) + 1
    return sorted(np.split(index[order], cuts), key=lambda members: members[0])


def _open_questions(
    ends: NDArray[np.int8],
    branches: NDArray[np.int64],
    rates: Array,
) -> tuple[Doubt, ...]:
    asked = (
        (branches > 0, "the path of {} after a repelling hyperplane (taken to stay on it)"),
        (ends == UNRESOLVED, "the path of {}, which could not be followed"),
        (
            rates < 0,
            "the fate of {}, shrinking at first (balance taken as exact; imbalance ends it sooner)",
        ),
    )
    return tuple(Doubt(words, np.flatnonzero(rows)) for rows, words in asked if rows.any())
