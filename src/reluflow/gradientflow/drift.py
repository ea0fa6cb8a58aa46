r"""The slow phase of weight decay: along the set of fits towards smaller weights, in time 1/lambda.

With a small weight decay lambda training has two clocks. In times of order log(1/scale) neurons
jump and the data are fitted. There the loss pulls with :math:`c = O(\lambda)` only, and in the
clock :math:`s = \lambda t`

.. math:: \frac{dz_j}{ds} = (M_{u_j}(c / \lambda) - I) z_j :

a motion of order 1 within the set of fits, with c / lambda as the force that keeps f there, and a
return to that set at the rate (tangent kernel) / lambda, which an explicit step must resolve and an
implicit one need not. Steps here are those of the Radau IIA method of order 5 (scipy's), with the
exact Jacobian

.. math:: \frac1\lambda \Big( \mathrm{diag}(M_{u_j} - \lambda I) - J^T \mathrm{diag}(b)\, J \Big),
          \qquad J = \partial f / \partial z, \quad b_k = |dc_k / df_k|,

from one kink to the next; at a kink a neuron crosses or slides by the rules of `flow`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from reluflow.arrays import Array, Mask, Sides, decay_rate, frozen_array, whole_number
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.gradientflow.cones import begin
from reluflow.gradientflow.terms import data_of
from reluflow.kernels.codes import STAY
from reluflow.network import Network
from reluflow.problem import Problem

MOST = 4000  # weights beyond which the Jacobian is too large
FELT = 1e-10  # of the largest neuron: smaller ones keep their pattern, which f does not feel
BEYOND = 1e-12  # cosine by which a kink is passed before it counts as met
MOST_EVENTS = 10_000
AT_REST = 1e-7  # speed in the clock s, over the norm of all weights, below which it has ended


class Best(Protocol):
    """What is known of the best penalised network: `reluflow.ridge` gives it."""

    lower_bound: float
    norm2: float


@dataclass(frozen=True, eq=False)
class Drift:
    """A run of the slow phase.

    Attributes
    ----------
    problem : Problem
    weight_decay : float
    clock : array (K,)
        s = weight_decay * t of the records.
    networks : tuple of K networks
    losses, norms2 : arrays (K,)
        Loss and |W|^2 + |a|^2 of each.
    gradients : int
        Evaluations of the velocity, those of Jacobians counted as one each.
    jacobians : int
        Jacobians among them.
    kinks : int
        Times at which a neuron met or left a kink.
    rest : float
        |dz/ds| / |z| at the end.
    status : str
        How it ended, in a sentence.
    """

    problem: Problem
    weight_decay: float
    clock: Array
    networks: tuple[Network, ...] = field(repr=False)
    losses: Array
    norms2: Array
    gradients: int
    jacobians: int
    kinks: int
    rest: float
    status: str

    @property
    def final(self) -> Network:
        """The last network."""
        return self.networks[-1]

    @property
    def at_rest(self) -> bool:
        """Whether the drift has come to its end."""
        return self.rest <= AT_REST

    def against_best(self, best: Best) -> tuple[float, str]:
        """Penalised loss of the end over the least of any width, less 1, and what that means.

        ``best`` is the result of `ridge` at this weight decay.
        """
        value = float(self.losses[-1]) + 0.5 * self.weight_decay * float(self.norms2[-1])
        excess = value / best.lower_bound - 1.0
        if excess <= 1e-6:
            return excess, "the drift has come to the best penalised network of any width"
        where = "ends at" if self.at_rest else "is on its way, at"
        return excess, (
            f"the drift {where} a penalised loss of {value:.6g}, {100.0 * excess:.3g} % above the "
            f"least of any width; its squared norm is {self.norms2[-1]:.6g}, that of the best "
            f"network {best.norm2:.6g}"
        )


@check_arguments
def drift(
    problem: Problem,
    net: Network,
    weight_decay: float,
    *,
    span: float = 10.0,
    save: int | ArrayLike = 50,
    rtol: float = 1e-6,
) -> Drift:
    r"""Follow the slow phase of weight decay from a network that fits, in the clock lambda t.

    Parameters
    ----------
    problem : Problem
        Any loss that `flow` takes.
    net : Network
        Where to start: the end of a run, or any network of moderate size. Far from a fit the first
        steps are those of the fast phase, and short.
    weight_decay : float
        lambda > 0; the smaller, the stiffer the return to the fit, at no cost here.
    span : float
        Where to end, in the clock lambda t: imbalances |w|^2 - a^2 have fallen by e^(-2 span) then.
    save : int or array
        Records: so many, evenly, or at these values of the clock.
    rtol : float
        Relative error of a step. Neurons below 1e-10 of the largest are not followed to their own
        accuracy.

    Returns
    -------
    Drift

    Notes
    -----
    The cost is that of solving systems of m (d + 1) equations: for networks of up to some thousand
    weights. `flow` with the same ``weight_decay`` takes wide ones, by explicit steps.
    """
    decay = decay_rate(weight_decay)
    if decay == 0.0:
        raise ReluflowError("drift needs weight_decay > 0, got 0: without decay a fit is at rest")
    problem.check_kinks("drift")
    net.check_fits(problem.d)
    if net.m * (problem.d + 1) > MOST:
        raise ReluflowError(
            f"drift takes up to {MOST} weights, got {net.m * (problem.d + 1)}: use flow with "
            f"weight_decay={decay:g}"
        )
    if not (np.isfinite(span) and span > 0.0):
        raise ReluflowError(f"span must be positive and finite, got {span!r}")
    if isinstance(save, int | np.integer):
        records = np.linspace(0.0, span, whole_number(save, "save", 1, 10**6))
    else:
        records = np.sort(frozen_array(save, "save", 1))
    if not 0.0 < rtol < 1.0:
        raise ReluflowError(f"rtol must lie between 0 and 1, got {rtol!r}")
    if not ((records >= 0.0) & (records <= span)).all():
        raise ReluflowError(f"save must lie between 0 and span, {span:g}")
    return _Run(problem, net, decay, rtol).follow(records, span)


class _Run:
    """Neurons, their patterns and counts on the way."""

    def __init__(self, problem: Problem, net: Network, decay: float, rtol: float) -> None:
        self.problem, self.decay, self.rtol = problem, decay, rtol
        self.data = data_of(problem, "time")
        state, _ = begin(problem, net, self.data, STAY)
        self.U: Sides = state.U[state.gid].copy()
        self.z = (np.exp(state.ls)[:, None] * state.Z).ravel()
        self.shape = state.Z.shape
        self.gradients = self.jacobians = self.kinks = 0
        self._set_pieces()

    def _set_pieces(self) -> None:
        """Slopes and faces of the present patterns."""
        X, leak = self.problem.X, self.problem.leak
        self.slopes = np.where(self.U > 0, 1.0, np.where(self.U < 0, leak, 0.0))
        self.faces = {int(j): np.flatnonzero(self.U[j] == 0) for j in np.where(self.U == 0)[0]}
        self.inverses = {j: np.linalg.pinv(X[on].T) for j, on in self.faces.items()}

    def _off_faces(self, D: Array) -> Array:
        """Forces (m, d) projected off the samples on whose hyperplanes neurons slide."""
        for j, on in self.faces.items():
            D[j] -= self.problem.X[on].T @ (self.inverses[j] @ D[j])
        return D

    def _parts(self, z: Array) -> tuple[Array, Array, Array, Array]:
        """W, a, <w_j, x_k> and f."""
        Z = z.reshape(self.shape)
        W, a = Z[:, :-1], Z[:, -1]
        along = W @ self.problem.X.T
        return W, a, along, a @ (self.slopes * along)

    def velocity(self, s: float, z: Array) -> Array:
        """dz/ds."""
        self.gradients += 1
        W, a, _, f = self._parts(z)
        D = self._off_faces((self.slopes * self.problem.pull_at(f)) @ self.problem.X)
        V = np.column_stack([a[:, None] * D, np.sum(W * D, axis=1)])
        return np.asarray(V.ravel() / self.decay - z)

    def jacobian(self, s: float, z: Array) -> Array:
        """Derivative of :meth:`velocity`."""
        self.gradients += 1
        self.jacobians += 1
        problem, (m, e) = self.problem, self.shape
        _, a, along, f = self._parts(z)
        D = self._off_faces((self.slopes * problem.pull_at(f)) @ problem.X)
        J = np.empty((problem.n, m, e))
        for j in range(m):
            x = problem.X
            if j in self.faces:
                x = x - (x @ self.inverses[j].T) @ problem.X[self.faces[j]]
            J[:, j, :-1] = (a[j] * self.slopes[j])[:, None] * x
            J[:, j, -1] = self.slopes[j] * along[j]
        flat = J.reshape(problem.n, m * e)
        bend = problem.weight * problem.loss.bend(f, problem.y)
        out = -(flat.T * bend) @ flat
        for j in range(m):
            at = slice(j * e, j * e + e - 1)
            out[at, j * e + e - 1] += D[j]
            out[j * e + e - 1, at] += D[j]
        return np.asarray(out / self.decay - np.eye(m * e))

    # ------------------------------------------------------------------ kinks
    def _felt(self, z: Array) -> Mask:
        size = np.linalg.norm(z.reshape(self.shape), axis=1)
        return np.asarray(size > FELT * size.max(initial=0.0))

    def _distances(self, z: Array) -> Array:
        """(m, n): cosine to each kink that a neuron may meet, slack of each slope on a face."""
        W, _, along, f = self._parts(z)
        problem = self.problem
        size = np.maximum(np.linalg.norm(W, axis=1), 1e-300)[:, None] * problem.norms
        out = np.where(self.U != 0, self.U * along / np.where(size > 0.0, size, 1.0), np.inf)
        out[:, problem.norms == 0.0] = np.inf
        c = problem.pull_at(f)
        for j, on in self.faces.items():
            base = (self.slopes[j] * c) @ problem.X
            pressed = -(self.inverses[j] @ base)  # slope_k c_k that keeps it on the face
            pull = np.where(c[on] != 0.0, c[on], 1e-300)
            slope = pressed / pull
            out[j, on] = np.minimum(slope - problem.leak, 1.0 - slope)
        out[~self._felt(z)] = np.inf
        return out

    def meets_kink(self, s: float, z: Array) -> float:
        """Falls through 0 where a neuron meets a kink, or must leave one."""
        return float(self._distances(z).min()) + BEYOND

    def _settle(self, s: float) -> None:
        """Give the neuron that has met a kink its new pattern."""
        from reluflow.kernels.flow_arrival import arrive, empty_log

        distance = self._distances(self.z)
        j, k = (int(i) for i in np.unravel_index(distance.argmin(), distance.shape))
        Z = self.z.reshape(self.shape)
        size = float(np.linalg.norm(Z[j]))
        unit = Z[j] / size
        c = self.problem.pull_at(self._parts(self.z)[3])
        arrive(self.data, self.U[j], unit, c, k, s, empty_log(self.problem.n), STAY)
        self.kinks += 1
        Z[j] = size * unit
        self._set_pieces()
        if j in self.faces:  # onto the face itself
            on = self.faces[j]
            Z[j, :-1] -= self.problem.X[on].T @ (self.inverses[j] @ Z[j, :-1])

    # ------------------------------------------------------------------ the run
    def follow(self, records: Array, span: float) -> Drift:
        """Go on to ``span`` from kink to kink."""
        from scipy.integrate import solve_ivp

        def kink(s: float, z: Array) -> float:
            return self.meets_kink(s, z)

        kink.terminal, kink.direction = True, -1.0  # type: ignore[attr-defined]
        s, states, status = 0.0, [], "finished"
        while s < span and self.kinks < MOST_EVENTS:
            while self.meets_kink(s, self.z) <= 0.0 and self.kinks < MOST_EVENTS:
                self._settle(s)
            found = solve_ivp(
                self.velocity,
                (s, span),
                self.z,
                method="Radau",
                jac=self.jacobian,
                rtol=self.rtol,
                atol=1e-3 * self.rtol * float(np.abs(self.z).max()),
                events=kink,
                dense_output=True,
            )
            end = float(found.t[-1])
            inside = records[(records >= s) & ((records < end) | (end >= span))]
            states += [found.sol(r) for r in inside]
            s, self.z = end, found.y[:, -1].copy()
            if found.status < 0:
                status = f"stopped at {s:.4g}: {found.message}"
                break
            if found.status == 1:
                self._settle(s)
        return self._result(records[: len(states)], states, s, status)

    def _result(self, clock: Array, states: Sequence[Array], s: float, status: str) -> Drift:
        problem = self.problem
        networks = tuple(
            Network(Z[:, :-1], Z[:, -1], leak=problem.leak, bias=problem.bias)
            for Z in (state.reshape(self.shape) for state in states)
        )
        speed = self.velocity(s, self.z)
        self.gradients -= 1  # of the verdict, not of the run
        rest = float(np.linalg.norm(speed) / np.linalg.norm(self.z))
        words = f"The drift reached lambda t = {s:.6g}"
        words += ", where it rests." if rest <= AT_REST else ", still on its way."
        return Drift(
            problem,
            self.decay,
            np.array(clock),
            networks,
            np.array([problem.loss_of(net) for net in networks]),
            np.array([float(np.sum(state**2)) for state in states]),
            self.gradients,
            self.jacobians,
            self.kinks,
            rest,
            words if status == "finished" else f"The drift {status}.",
        )
