"""One Runge-Kutta step on trial: its error, its dense output, and who meets a kink in it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reluflow.arrays import Array, Indices
from reluflow.gradientflow.present import Present
from reluflow.gradientflow.terms import method
from reluflow.kernels import flow_step as rk
from reluflow.kernels.flow_field import field, outputs
from reluflow.kernels.flow_members import starts
from reluflow.kernels.flow_path import coefficients
from reluflow.kernels.flow_scan import scan
from reluflow.kernels.flow_trace import trace_some
from reluflow.kernels.flow_types import (
    N_NODES,
    Cones,
    Corrections,
    Dense,
    Frame,
    Meetings,
    Rules,
    Traced,
)

LOCAL = 0.02  # tolerance of one step in units of rtol


class Trial:
    """Storage and result of a step; nothing of the present is changed."""

    order = 8  # power of the step in its error

    def __init__(self, now: Present) -> None:
        self.now, self.method = now, method()
        s = now.state
        N, width = s.C.shape
        n, G = s.data.y.size, s.U.shape[0]
        self.K, self.F = np.zeros((16, N, width)), np.empty((8, N, width))
        self.v, self.new = np.empty((N, width)), np.empty((N, width))
        self.work, self.spare = np.empty((N, width)), np.empty((N, width))
        self.field = np.empty(n), np.empty(n), np.empty((G, s.d))  # f, c, D of a stage
        self.extra = np.zeros((self.method.times.size, n))
        self.corrections = Corrections(self.extra, np.empty(0))
        self.theta, self.kink = np.empty(s.gid.size), np.empty(s.gid.size, np.int64)
        self.ways = np.zeros(s.wheel.path.size)
        self.cn, self.logs = np.zeros((1, n)), np.zeros(N_NODES)
        self.sampled = False

    # ------------------------------------------------------------------ columns
    def attempt(self, h: float) -> float:
        """Step by h; the error in units of the tolerance."""
        now, s = self.now, self.now.state
        self.frame = Frame(now.unit, now.rates, h, now.t)
        if now.decay:
            fade = np.exp(-2.0 * now.decay * h * self.method.times)
            self.corrections = Corrections(self.extra, fade)
        self._stages(1, 13, self.v, self.new)
        growth = s.growth + h * now.rates
        error = rk.step_error(
            s.cones, self.method, self.frame, s.C, self.new, self.K, growth, self.work, self.spare
        )
        error /= LOCAL * now.rtol
        if not np.isfinite(self.new).all():  # it explodes, and nan shows no error
            return 1e10
        return error if math.isfinite(error) else 1e10

    def dense(self) -> None:
        """Prepare dense output."""
        self.sampled = False
        self._stages(13, 16, self.spare, self.work)
        K, F = self.K.reshape(16, -1), self.F.reshape(8, -1)
        coefficients(self.now.state.C.ravel(), self.v.ravel(), K, self.method.D, self.frame.h, F)

    def _stages(self, first: int, last: int, v: Array, new: Array) -> None:
        s = self.now.state
        rk.stages(
            s.data,
            s.cones,
            self.method,
            self.frame,
            self.corrections,
            first,
            last,
            s.C,
            self.K,
            self.field,
            v,
            new,
        )

    def sample(self) -> None:
        """Sample the pull, and log L, at nodes within the step, once for each step."""
        if not self.sampled:
            self.sampled = True
            self._sample()

    def _sample(self) -> None:
        s = self.now.state
        cn = np.empty((N_NODES, s.data.y.size))
        given = s.data, s.cones, self.method, self.frame, self.corrections
        rk.sample_pull(*given, self.F, self.work, cn, self.logs)
        self._keep_coefficients(cn)

    def keep(self, pulls: Array) -> None:
        """Hold the pull by its values at the nodes."""
        self._keep_coefficients(self.method.fit @ pulls)

    def _keep_coefficients(self, cn: Array) -> None:
        heard = (np.abs(cn) > 3e-16 * np.max(np.abs(cn), axis=0)).any(axis=1)
        self.cn = cn[: 1 + np.max(np.flatnonzero(heard), initial=0)]  # the rest is rounding

    def columns_at(self, theta: float) -> Array:
        """Columns at a fraction of the step."""
        s = self.now.state
        C = np.empty_like(s.C)
        rk.at(s.cones, self.frame, self.F, theta, C)
        return C

    def _cones_at(self, theta: float) -> Cones:
        """Cones at a fraction of the step: weight decay has lowered their sizes."""
        now = self.now
        if not now.decay:
            return now.state.cones
        fade = math.exp(-2.0 * now.decay * theta * self.frame.h)
        return now.state.cones._replace(size=now.state.cones.size * fade)

    def outputs_at(self, theta: float) -> Array:
        """f on the samples at a fraction of the step."""
        s = self.now.state
        f = np.empty(s.data.y.size)
        outputs(s.data, self._cones_at(theta), self.columns_at(theta), f)
        return f

    def log_loss_at(self, theta: Any) -> Any:
        """log L at fractions of the step, once sampled."""
        return np.polynomial.chebyshev.chebval(2.0 * np.asarray(theta) - 1.0, self.logs)

    def field_at_end(self) -> tuple[Array, Array]:
        """Pull and forces at the end of the step."""
        s = self.now.state
        f, c, D = (np.empty_like(v) for v in self.field)
        field(s.data, self._cones_at(1.0), self.new, f, c, D)
        return c, D

    # ------------------------------------------------------------------ neurons
    def _rules(self) -> Rules:
        now = self.now
        return Rules(0.1 * LOCAL * now.rtol, now.rtol, now.floor, now.policy)

    def scan(self) -> Indices:
        """Neurons that meet a kink; ``theta`` and ``kink`` say when and whose."""
        s = self.now.state
        if s.faces.any():
            self.sample()
        found = np.empty(s.gid.size, np.int64)
        count = scan(
            s.data,
            s.cones,
            self.frame,
            Dense(self.F, self.cn),
            s.members,
            s.often,
            s.wheel,
            self._rules(),
            self.ways,
            found,
            Meetings(self.theta, self.kink),
        )
        return np.sort(found[:count])

    def contributions(self, which: Indices) -> Array:
        """Half of |z_j|^2 of the listed neurons at the start of the step."""
        B = np.empty(which.size)
        starts(self.now.state.cones, self.now.state.members, self.F, which, B)
        return B

    def trace(
        self, which: Indices, theta: float, record: bool = False, on: Traced | None = None
    ) -> Traced:
        """Neurons that meet kinks in the step, carried to theta: vectors, scales, patterns, log.

        With ``record``, what they add to f by leaving their cones is added to ``extra``; that is
        at most sqrt(rtol) of what moves c, so less accuracy does. From ``on``, what was found for
        the same neurons at a smaller theta, they are carried on, in place.
        """
        now, s, rules = self.now, self.now.state, self._rules()
        if record:
            rules = rules._replace(tol=max(rules.tol, 0.01 * math.sqrt(now.rtol)))
        out = on
        if out is None:
            V = np.empty((which.size, s.U.shape[1]), np.int8)
            events, past = np.zeros((1 + 8 * V.size + 64, 4)), np.full(which.size, -1.0)
            out = Traced(np.empty((which.size, s.d + 1)), np.empty(which.size), V, events, past)
        trace_some(
            s.data,
            self.method,
            s.cones,
            self.frame,
            Dense(self.F, self.cn),
            s.members,
            Meetings(self.theta, self.kink),
            which,
            theta,
            rules,
            out,
            self.extra if record else self.extra[:0],
        )
        return out
