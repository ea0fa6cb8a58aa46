"""The moves of a flow: Runge-Kutta steps that land on kinks, and leaps under a constant pull."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from reluflow.arrays import Array, Indices
from reluflow.gradientflow.cones import State
from reluflow.gradientflow.landing import company, correct, land, must_stop
from reluflow.gradientflow.leaper import Leaper
from reluflow.gradientflow.present import Present
from reluflow.gradientflow.trial import Trial
from reluflow.kernels.flow_field import pull_at

LONGEST = 4.0  # most e-folds of growth in one step
REBASE = 2.0  # a propagator is renewed once it may have grown by this many e-folds
AT_ONCE = 1e-12  # part of a step within which a kink is met now, not after a step of that length
NOBODY = np.empty(0, np.int64)
_UNSURE = 8  # arrivals in a row after which the present pull is not trusted
_UNDECIDED = range(32, 72)  # those after which the next step is half as long


class Taken(NamedTuple):
    """An accepted step: its length, neurons with kinks in it, arrivals at kink k at its end."""

    h: float
    which: Indices = NOBODY
    arrivals: Indices = NOBODY
    k: int = -2


class Solver(Present):
    """Moves a :class:`State` and remembers the last move for dense output.

    A step is taken by :meth:`step` and, when dense output has been read, :meth:`finish`.
    """

    def __init__(self, state: State, rtol: float, policy: int) -> None:
        super().__init__(state, rtol, policy)
        self.trial, self.leaper = Trial(self), Leaper(self)
        self.stuck = 0  # arrivals in a row without time passing

    def renew(self) -> None:
        """Start columns afresh after neurons were brought up to date."""
        super().renew()
        self.trial = Trial(self)

    def first_step(self) -> float:
        """A cautious first step size."""
        return 0.05 / self.fastest if self.fastest > 0 else math.inf

    # ------------------------------------------------------------------ steps
    def step(self, limit: float) -> float:
        """One accepted step of at most ``limit``; returns its length (0 for an arrival)."""
        s, trial = self.state, self.trial
        h = self._accepted(limit)
        trial.dense()
        which, arrivals, k = trial.scan(), NOBODY, -2
        stop = must_stop(trial, which) if which.size else -1
        if stop >= 0:
            theta, k = float(trial.theta[stop]), int(trial.kink[stop])
            if theta <= min(AT_ONCE, 1e-3 * self.rtol) or theta * h <= 1e-15 * self.t:
                self._arrive(company(trial, stop, k, s.C), k, self._pull_ahead())
                return 0.0
            h = land(trial, stop, k, theta * h)
            arrivals = company(trial, stop, k, trial.new)
            which = np.setdiff1d(trial.scan(), arrivals)
        if which.size and correct(trial, which, h):
            which = np.setdiff1d(trial.scan(), arrivals)
        self.take(Taken(h, which, arrivals, k))
        return h

    def _accepted(self, limit: float) -> float:
        """Try steps until the error is met; sets the next step size."""
        fast = self.fastest
        self.trial.extra[:] = 0.0
        h = min(self.h, limit, LONGEST / fast if fast > 0 else math.inf)
        whole = h >= limit
        while (error := self.trial.attempt(h)) > 1.0:
            self.cost["rejected"] += 1
            h *= max(0.2, 0.9 * error ** (-1 / 8))
            whole = False
        following = h * min(6.0, 0.9 * max(error, 1e-12) ** (-1 / 8))
        self.h = following if not whole or following > h else max(following, self.h)
        return h

    def _pull_ahead(self) -> Array:
        """The pull that decides where neurons on a kink go: that of now, or of a little later.

        Where nothing pulls at the moment, the sign of its rounding error would send a neuron to
        the side that it is about to leave, again and again.
        """
        if self.stuck < _UNSURE:
            return self.c
        self.trial.sample()
        c = np.empty_like(self.c)
        pull_at(self.trial.cn, min(1.0, 1e-6 * 4.0 ** min(self.stuck - _UNSURE, 10)), c)
        return c

    def _arrive(self, which: Indices, k: int, c: Array) -> None:
        """Settle neurons that stand on the kink of sample k now.

        Where no side lasts, shorter steps let a neuron pass within the tolerance of signs, by
        which kinks that meet in one point come apart.
        """
        if self.stuck in _UNDECIDED:
            self.h = 0.5 * self.trial.frame.h
        self.state.sync()
        self.settle(which, k, c)
        self.renew()
        self.stuck += 1

    def take(self, step: Taken) -> None:
        """Accept the step on trial; :meth:`finish` moves to its end."""
        if step.which.size or self.state.data.by_loss:
            self.trial.sample()
        self.pending = step
        self.stuck = 0
        self.cost["steps"] += 1
        self.cost["evaluations"] += 16

    def finish(self) -> None:
        """Move to the end of the step just taken."""
        s, trial = self.state, self.trial
        h, which, arrivals, k = self.pending
        moved = trial.trace(which, 1.0) if which.size else None
        self.log_time = self.log_time_at(1.0)
        self.t += h
        s.C[:] = trial.new
        s.wheel.path[:] += trial.ways
        s.growth += 1.05 * h * self.rates
        if moved is None and not arrivals.size:
            self.look()
            if (s.growth[s.cones.lumped] > REBASE).any() or self._stretched():
                s.sync()
                self.renew()
            return
        s.sync()
        if arrivals.size:
            self.settle(arrivals, k, trial.field_at_end()[0])
        if moved is not None:
            s.Z[which], s.ls[which] = moved[0], moved[1]
            s.assign(which, moved[2])
            self.note(moved[3])
            self.cost["traces"] += which.size
        self.renew()

    def _stretched(self) -> bool:
        size = np.max(np.abs(self.state.C))
        return bool(size > 1e60 or size < 1e-60)

    # ------------------------------------------------------------------ dense output
    def within_step(self, theta: float) -> tuple[Array, Array]:
        """Unit vectors and log-scales at a fraction of the step just taken (before finish)."""
        C = self.trial.columns_at(theta) if theta < 1.0 else self.trial.new
        Z, ls = self.state.neurons(C)
        which = self.pending.which
        if which.size:
            Z[which], ls[which], _, _ = self.trial.trace(which, theta)
        return Z, ls

    def log_time_at(self, theta: float) -> float:
        """log of the flow time at a fraction of the step just taken (before finish)."""
        h = self.pending.h
        if not self.state.data.by_loss:
            return float(np.logaddexp(self.log_time, math.log(max(theta * h, 1e-320))))
        x, w = np.polynomial.legendre.leggauss(10)
        x = 0.5 * theta * (x + 1.0)
        logs = np.array([self.trial.log_loss_at(v) for v in x])
        terms = np.log(0.5 * theta * h * w) - logs
        top = float(terms.max())
        return float(np.logaddexp(self.log_time, top + math.log(np.sum(np.exp(terms - top)))))
