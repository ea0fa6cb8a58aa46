"""The best network of any width under weight decay, with a bound that meets it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from reluflow.arrays import Array, Mask, decay_rate
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.landscape.bound import max_G
from reluflow.landscape.canonical import row_space
from reluflow.network import Network
from reluflow.optimum.columns import check_search, top
from reluflow.optimum.own_size import SAME
from reluflow.optimum.penalised import (
    Penalised,
    best_in_cones,
    check_loss,
    dual_value,
    sharper_points,
)
from reluflow.optimum.pool import LANDSCAPE_TOL, MET, Pool, promising_directions
from reluflow.optimum.program import Task, merge_neurons
from reluflow.problem import Problem

REACHED = 1e-9  # a new cone must offer more than this beyond the decay, relatively
USED = 1e-9  # part of the labels that a neuron must make to count
AGREE = 1e-10  # relative difference of values that count as equal


@dataclass(frozen=True, eq=False)
class Ridge:
    """lower_bound <= least loss + (weight_decay/2) |theta|^2 of any network <= value.

    Attributes
    ----------
    weight_decay : float
    value, lower_bound : float
        Penalised loss of the network found, and a bound for networks of every width.
    loss, norm2 : float
        Its parts: the loss and |W|^2 + |a|^2.
    network : Network
        Balanced, one neuron for each direction in use; one zero neuron where silence is best.
    dual : array (n,)
        A pull c with max |G_c| <= weight_decay that gives ``lower_bound``.
    largest_gain : float
        Upper bound on max |G_c| at the network's own pull: ``weight_decay`` at an optimum.
    rounds, cones : int
        Programs solved, and cones in the last one.
    """

    weight_decay: float
    value: float
    lower_bound: float
    loss: float
    norm2: float
    network: Network = field(repr=False)
    dual: Array = field(repr=False)
    largest_gain: float
    rounds: int
    cones: int

    @property
    def gap(self) -> float:
        """value - lower_bound."""
        return self.value - self.lower_bound

    @property
    def exact(self) -> bool:
        """Whether network and bound meet, to 1e-8 of the value."""
        return self.gap <= MET * abs(self.value)

    @property
    def status(self) -> str:
        """ "optimal" or "gap left"."""
        return "optimal" if self.exact else "gap left"

    def __str__(self) -> str:
        proved = "the least of any width" if self.exact else f"at least {self.lower_bound:.6g}"
        return (
            f"weight decay {self.weight_decay:.6g}: penalised loss {self.value:.6g} ({proved}), "
            f"loss {self.loss:.6g}, squared norm {self.norm2:.6g}"
        )


def largest_decay(problem: Problem, sign: int | None = None, budget: int | None = None) -> float:
    r"""The weight decay from which on the silent network is best: :math:`\max |G_{c_0}|`.

    c_0 is the pull of the silent network; the value is an upper bound that search and rounding
    allow for.
    """
    return max_G(problem, problem.pull, sign, budget=budget, gap=LANDSCAPE_TOL).upper_bound


@check_arguments
def ridge(
    problem: Problem,
    weight_decay: float,
    sign: int | None = None,
    *,
    rounds: int = 100,
    budget: int | None = None,
    rng: np.random.Generator | int | None = 0,
) -> Ridge:
    r"""Least penalised loss of a network of any width, with a bound that meets it.

    .. math:: \min_\theta L(\theta) + \tfrac\lambda2 \|\theta\|^2 \;=\;
              \max_{\max |G_c| \le \lambda} \; \inf_F \, [L(F) + \langle c, F \rangle]

    The left side becomes convex with one vector for each activation cone (see
    `reluflow.optimum.penalised`); cones are added while the landscape of the pull shows a direction
    with :math:`|G_c| > \lambda`, and Newton's method sharpens the end.

    Parameters
    ----------
    problem : Problem
        Square, logistic or exponential loss; any labels.
    weight_decay : float
        lambda > 0. As it tends to 0 the networks of square losses tend to those of `min_norm`.
    sign : {1, -1}, optional
        Only networks whose outer weights all have this sign.
    rounds : int
        Most programs to solve.
    budget : int, optional
        Nodes of each search of the landscape, as for `max_G`; when they run out the bound is
        weaker, still valid, and the gap says by how much.
    rng : int, Generator or None
        Starts of the ascents that look for cones.

    Returns
    -------
    Ridge

    Examples
    --------
    >>> import numpy as np
    >>> from reluflow import Problem
    >>> found = ridge(Problem(np.array([[1.0]]), np.array([2.0])), 0.5)
    >>> found.network(np.array([[1.0]])).round(9), found.exact  # soft thresholding: 2 - 0.5
    (array([1.5]), True)
    """
    return RidgeSearch(problem, sign, rounds, budget, rng).at(weight_decay)


class RidgeSearch:
    """Penalised optima of one problem; cones found for one weight decay serve the next.

    Parameters
    ----------
    problem, sign, rounds, budget, rng
        As for :func:`ridge`.
    """

    def __init__(
        self,
        problem: Problem,
        sign: int | None = None,
        rounds: int = 100,
        budget: int | None = None,
        rng: np.random.Generator | int | None = 0,
    ) -> None:
        check_search(sign, rounds)
        problem.check_kinks("ridge")
        check_loss(problem)
        self.problem, self.sign, self.rounds, self.budget = problem, sign, rounds, budget
        self.rng = np.random.default_rng(rng)
        self.silent_above = largest_decay(problem, sign, budget)
        self.length = _power_of_two(float(problem.norms.max(initial=0.0)))
        self.basis = _basis(problem)
        small = Problem(
            problem.X @ self.basis.T / self.length,
            problem.y,
            loss=problem.loss,
            leak=problem.leak,
            reduction=problem.reduction,
        )
        self.task = Task.of(small, False, sign)
        self.pool = Pool(self.task)

    def at(self, weight_decay: float) -> Ridge:
        """The best network at this weight decay."""
        decay = decay_rate(weight_decay)
        if decay == 0.0:
            raise ReluflowError(
                "ridge needs weight_decay > 0, got 0: min_norm gives the limit of small ones"
            )
        if decay >= self.silent_above:
            return self._silent(decay)
        point, used = self._generate(decay / self.length)
        candidates = [point, *sharper_points(self.task, decay / self.length, point)]
        results = [self._result(decay, each, used) for each in candidates]
        # values are flat at the minimum: of those that agree, the one with the fewest neurons
        good = max(10.0 * min(r.gap for r in results), AGREE * abs(results[0].value))
        best = min((r for r in results if r.gap <= good), key=lambda r: (len(r.network.a), r.gap))
        bound = max(results, key=lambda r: r.lower_bound)
        return best if bound is best else _with_bound(best, bound)

    def _silent(self, decay: float) -> Ridge:
        """The zero network, which is best."""
        p = self.problem
        net = Network(np.zeros((1, p.d)), np.zeros(1), leak=p.leak, bias=p.bias)
        c, loss = np.array(p.pull), p.silent_loss
        bound = min(dual_value(p, c), loss)
        return Ridge(decay, loss, bound, loss, 0.0, net, c, self.silent_above, 0, 0)

    def _generate(self, decay: float) -> tuple[Penalised, int]:
        """Solve and add cones until none is better; in the coordinates of the task."""
        task, pool = self.task, self.pool
        small, none = task.problem, np.zeros((0, task.problem.d))
        level = decay * (1.0 + REACHED)
        if not len(pool.s):
            pool.add(*promising_directions(task, small.pull, none, level, self.rng))
        if not len(pool.s):  # ascent missed what the bounded search knows
            best = top(small, small.pull, task.sign, self.budget)
            pool.add(best.vector[None], np.array([float(best.sign)]))
        used = 0
        while used < self.rounds:
            used += 1
            point = _solve(task, pool, decay)
            c = small.pull_at(task.outputs(point.v, point.s))
            extra = _directions(point)
            if pool.add(*promising_directions(task, c, extra, level, self.rng)):
                continue
            best = top(small, c, task.sign, self.budget)
            if best.value > level and pool.add(best.vector[None], np.array([float(best.sign)])):
                continue
            break
        return point, used

    def _result(self, decay: float, point: Penalised, used: int) -> Ridge:
        """Network, value and bound of a point, in the units of the problem."""
        p = self.problem
        v, s = merge_neurons(point.v @ self.basis / self.length, point.s, 1e-12, 1e-9)
        sizes = np.linalg.norm(v, axis=1)
        root = np.sqrt(sizes)
        net = Network(v / root[:, None], s * root, leak=p.leak, bias=p.bias)
        f = p.outputs(net)
        loss, norm2 = float(p.value(f)), 2.0 * float(sizes.sum())
        c = p.pull_at(f)
        reach = max(top(p, c, self.sign, self.budget).upper_bound, 0.0)
        dual = c * min(1.0, decay / reach) if reach > 0.0 else c
        value = loss + 0.5 * decay * norm2
        bound = min(dual_value(p, dual), value)
        return Ridge(decay, value, bound, loss, norm2, net, dual, reach, used, len(self.pool.s))


def _solve(task: Task, pool: Pool, decay: float) -> Penalised:
    """The best network of a pool; walls are added until no vector leaves its cone."""
    while True:
        point = best_in_cones(task, decay, pool.patterns, pool.s, pool.walls)
        if point is None:
            raise ReluflowError(
                "the cone program of the penalised loss could not be solved: expected data of "
                "moderate size, rescale the samples or drop repeated ones"
            )
        sizes = np.linalg.norm(point.v, axis=1, keepdims=True)
        outside = pool.patterns * (point.v @ task.normals.T) < -1e-10 * sizes
        outside &= _used(task, point)[:, None] & ~pool.walls
        if not outside.any():
            return point
        pool.walls |= outside


def _used(task: Task, point: Penalised) -> Mask:
    """Neurons (B,) that make more than a trace of some label, or of the largest output."""
    most = np.abs(task.problem.X @ point.v.T).max(axis=0)
    unit = max(float(np.abs(task.problem.y).max()), float(most.max(initial=0.0)))
    return np.asarray(most > USED * unit)


def _directions(point: Penalised) -> Array:
    """Unit vectors of the neurons in use."""
    sizes = np.linalg.norm(point.v, axis=1)
    used = sizes > 1e-9 * sizes.sum()
    return np.asarray(point.v[used] / sizes[used, None])


def _with_bound(best: Ridge, other: Ridge) -> Ridge:
    """A result with the better bound of another."""
    return replace(best, lower_bound=min(other.lower_bound, best.value), dual=other.dual)


def _basis(problem: Problem) -> Array:
    """Orthonormal rows that span the samples."""
    on = problem.norms > 0.0
    if not on.any():
        return np.eye(problem.d)
    span = row_space(problem.X[on] / problem.norms[on, None], SAME)
    return span if len(span) < problem.d else np.eye(problem.d)


def _power_of_two(x: float) -> float:
    return float(2.0 ** np.ceil(np.log2(x))) if x > 0.0 else 1.0
