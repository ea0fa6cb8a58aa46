r"""Implicit steps, for late phases in which outputs relax far faster than neurons move.

At margins q the pull of a loss of margins settles at a rate proportional to q while neurons take
a time of order one to grow: explicit steps are as short as 1/q. Radau IIA takes steps as long as
the motion of the neurons allows. Its stages are solved by Newton's method in two unknowns each, the
columns Y_i and the logarithms xi_i = log |c| of the pulls that move them,

.. math:: Y_i = y_0 + h \sum_j A_{ij} M(e^{\xi_j}) Y_j, \qquad \xi_i = \log |c|(f(Y_i)).

Both equations bend little, although c(f(Y)) by itself changes beyond all bounds with the Y of a
first guess (an error of 1 % in Y is one of q/50 in xi). The pull within the step is then known by
the polynomial through its logarithms, without the loss of digits that q (Y) would cost.
"""

from __future__ import annotations

import math

import numpy as np

from reluflow.arrays import Array, Indices
from reluflow.gradientflow.linearised import Coupling, Linearised, Solve, Values, bends
from reluflow.gradientflow.present import Present
from reluflow.gradientflow.tableaux import radau
from reluflow.gradientflow.trial import LOCAL, Trial
from reluflow.kernels.codes import SQUARE
from reluflow.kernels.flow_field import log_pull, outputs, pull
from reluflow.kernels.flow_types import N_NODES, Frame

ITERATIONS = 14  # of Newton's method, at most
EXACT = 5e-3  # of the tolerance of a step: how well its equations are solved
ROUNDING = 1e-14  # relative to columns: as well as they can be solved
STALLED = 10.0  # times that much is good enough where iterations come no nearer
SLOW = 0.2  # contraction above which J is computed anew, at the stages found so far
FAILED = 40.0  # error, in units of the tolerance, of a step whose stages were not found
PULLED = 1e-6  # how well pulls are found, relative to the largest
FURTHEST, FAINT = 3.0, 20.0  # most growth of log |c| in one iteration, unless it is so small


class ImplicitTrial(Trial):
    """As :class:`Trial`, by one step of Radau IIA; columns are taken as they are, in no frame."""

    order = 6  # of the error estimate, plus one

    def __init__(self, now: Present) -> None:
        super().__init__(now)
        self.radau = radau()
        self.coupling = Coupling(now.state)
        self.log = now.state.data.kind != SQUARE
        x = np.append(0.0, self.radau.nodes)
        powers = _basis(x, x.size)
        self._dense = np.linalg.inv(powers)
        self._at_nodes = _basis(self.method.nodes, x.size) @ self._dense
        self._from_nodes = (
            np.polynomial.chebyshev.chebvander(2.0 * self.radau.nodes - 1.0, N_NODES - 1)
            @ self.method.fit
        )

    # ------------------------------------------------------------------ stages
    def attempt(self, h: float) -> float:
        """Step by h; the error in units of the tolerance."""
        now, s = self.now, self.now.state
        self.frame = Frame(now.unit, np.zeros_like(now.rates), h, now.t)
        tol = LOCAL * now.rtol
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            found = self._solve(h, max(EXACT * tol, ROUNDING))
            if not found:
                return FAILED
            first = self.radau.real / h
            raw = self.coupling.move(s.C, now.D) / first
            raw += np.tensordot(self.radau.E, self.Y - s.C, axes=1)
            estimate, _ = self.solvers[0](first * raw)
            error = self._size(np.real(estimate), s.growth + h * now.rates) / tol
        self.new[:] = self.Y[-1]
        return error if math.isfinite(error) else 1e10

    def _solve(self, h: float, tol: float) -> bool:
        """Newton's method for the stages: whether it found them."""
        now, s, table = self.now, self.now.state, self.radau
        data, extra = s.data, self._from_nodes @ self.extra[16:]
        start = np.log(np.abs(now.c)) if self.log else now.c
        if self.log and not np.isfinite(start).all():
            log_pull(data, now.f, start)
        self.Y = np.stack([_turned(s.C, now, self.coupling.own, x * h) for x in table.nodes])
        self.xi = np.repeat(start[None], table.nodes.size, axis=0)
        self.logs_at = np.zeros(table.nodes.size)
        inverse = np.linalg.inv(table.A) / h
        last, anew = math.inf, True
        for _ in range(ITERATIONS):
            off, f = self._look(extra)
            c = data.y * np.exp(self.xi) if self.log else self.xi
            if anew:
                self._linearise(f, h)
            V = self.coupling.move(self.Y, self.coupling.forces(c))
            away = c * off if self.log else off  # what the pulls are off by
            V -= self.coupling.move(self.Y, self.coupling.forces(away))
            rest = V - np.tensordot(inverse, self.Y - s.C, axes=1)
            change, df = self._correct(rest)
            if not np.isfinite(change).all():
                return False
            self.Y += change
            pulled = self._move_pulls(self._step_of_pull(df) - off)
            size = self._size(np.sqrt(np.sum(change**2, axis=0)), s.growth + h * now.rates)
            # rounding may let it come no nearer: what is left is then still below the tolerance
            near = size <= tol or STALLED * tol >= size > 0.5 * last
            if near and pulled <= max(PULLED, 1e-12 * float(np.abs(f).max(initial=0.0))):
                return True
            if not size < 1e6:
                return False
            anew, last = size > SLOW * last, size
        return False

    def _move_pulls(self, step: Array) -> float:
        """Change xi; how much that changes pulls, relative to the largest.

        A pull too small to matter may change by any factor, one that matters not all at once.
        """
        if not self.log:
            self.xi += step
            return float(np.abs(step).max() / max(float(np.abs(self.xi).max()), 1e-300))
        top = float(self.xi.max())
        new = np.minimum(self.xi + step, np.maximum(self.xi + FURTHEST, top - FAINT))
        change = float(np.max(np.exp(np.maximum(self.xi, new) - top) * np.abs(new - self.xi)))
        self.xi = new
        return change

    def _look(self, extra: Array) -> tuple[Array, Array]:
        """How far xi is from the pulls at the outputs of the stages, and these outputs."""
        s = self.now.state
        off, f = np.empty_like(self.xi), np.empty_like(self.xi)
        for i in range(f.shape[0]):
            outputs(s.data, s.cones, self.Y[i], f[i])
            f[i] += extra[i]
            if self.log:
                self.logs_at[i] = log_pull(s.data, f[i], off[i])
            else:
                self.logs_at[i] = pull(s.data, f[i], off[i])
        return self.xi - off, f

    def _linearise(self, f: Array, h: float) -> None:
        """J in the middle of the stages as they are now, and its resolvents."""
        data, middle = self.now.state.data, self.xi.shape[0] // 2
        xi = self.xi.mean(axis=0)
        c = data.y * np.exp(xi) if self.log else xi
        self.J = Linearised(self.coupling, self.Y[middle], c, bends(data, f[middle]))
        self.solvers: list[Solve] = [self.J.resolvent(v / h) for v in self._values()]

    def _values(self) -> list[complex]:
        """Eigenvalues, the real one as a float."""
        first, *others = self.radau.eigenvalues
        return [float(first.real), *(complex(v) for v in others)]

    def _correct(self, rest: Array) -> tuple[Array, Array]:
        """Newton's correction of columns and outputs for a residual, stage by stage."""
        T, inverse = self.radau.T, self.radau.T_inverse
        change = np.zeros(rest.shape)
        df = np.zeros((rest.shape[0], self.xi.shape[1]))
        for i, solve in enumerate(self.solvers):
            side: Values = np.tensordot(inverse[i], rest, axes=1)
            dY, g = solve(side.real if i == 0 else side)
            change += np.real(T[:, i, None, None] * dY)
            df += np.real(T[:, i, None] * g)
        return change, df

    def _step_of_pull(self, df: Array) -> Array:
        """Change of xi by a change of outputs."""
        data = self.now.state.data
        if not self.log:
            return np.asarray(-self.J.bend * df)
        step: Array = -self.J.bend * data.y * df
        return step + (df @ self.J.c)[:, None] if data.by_loss else step

    def _size(self, change: Array, growth: Array) -> float:
        """Largest column of a change, relative as in `kernels.flow_step.step_error`."""
        cones, own = self.now.state.cones, self.coupling.own
        q, size = np.sum(change**2, axis=1), np.sum(self.Y[-1] ** 2, axis=1)
        single = ~cones.lumped[own]
        worst = float(np.max(q[single] / np.maximum(size[single], 1e-300), initial=0.0))
        if cones.lumped.any():
            each = self.coupling.add_up(q)[cones.lumped]
            worst = max(worst, float(np.max(each * np.exp(2.0 * growth[cones.lumped]))))
        return math.sqrt(worst)

    # ------------------------------------------------------------------ within the step
    def dense(self) -> None:
        """The polynomial through the stages, as :mod:`~reluflow.kernels.flow_path` writes it."""
        self.sampled = False
        stages = np.concatenate([self.now.state.C[None], self.Y])
        self.F[:] = 0.0
        self.F[: stages.shape[0]] = np.tensordot(self._dense, stages, axes=1)

    def _sample(self) -> None:
        """The pull, and log L, at nodes within the step, from polynomials through the stages."""
        now, data = self.now, self.now.state.data
        start = np.empty_like(now.f)
        first = log_pull(data, now.f, start) if self.log else pull(data, now.f, start)
        values = self._at_nodes @ np.vstack([start, self.xi])
        self.keep(data.y * np.exp(values) if self.log else values)
        logs = self._at_nodes @ np.append(first, self.logs_at)
        self.logs[:] = self.method.fit @ logs


def _basis(x: Array, count: int) -> Array:
    """1, x, x(1-x), x^2(1-x), ... at each x: the basis of dense output (`kernels.flow_path`)."""
    factors = [x if i % 2 == 0 else 1.0 - x for i in range(count - 1)]
    return np.asarray(np.cumprod(np.column_stack([np.ones_like(x), *factors]), axis=1), float)


def _turned(C: Array, now: Present, own: Indices, t: float) -> Array:
    """Columns after a time t under the present pull."""
    unit, grow = now.unit[own], (now.rates * t)[own]
    p, a = np.sum(C[:, :-1] * unit, axis=1), C[:, -1]
    change = (np.cosh(grow) - 1.0) * p + np.sinh(grow) * a
    return np.column_stack(
        [C[:, :-1] + change[:, None] * unit, np.cosh(grow) * a + np.sinh(grow) * p]
    )
