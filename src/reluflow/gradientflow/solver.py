"""The mover that locates kinks: Runge-Kutta steps that land on them, leaps under constant pull."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array, Indices
from reluflow.gradientflow.cones import State
from reluflow.gradientflow.implicit import ImplicitTrial
from reluflow.gradientflow.landing import (
    WORTH,
    Effects,
    bundle,
    company,
    correct,
    land,
    middle,
    must_stop,
)
from reluflow.gradientflow.leaper import Leaper
from reluflow.gradientflow.mover import Handover, Mover, Snapshot, time_in_words, turning_of
from reluflow.gradientflow.present import Present
from reluflow.gradientflow.trial import Trial
from reluflow.gradientflow.unlocated import Unlocated
from reluflow.kernels.codes import BRANCH, SQUARE, STAY
from reluflow.kernels.flow_field import pull_at
from reluflow.kernels.flow_types import Data, Traced

LONGEST = 4.0  # most e-folds of growth in one step
LOOKS = 16  # steps between two looks at the method
STIFF, PAYS = 3.0, 30.0  # step times relaxation rate: explicit no longer, implicit still pays
LARGEST, LARGEST_SQUARE = 20_000, 1_000  # numbers in all columns, for implicit steps
REBASE = 2.0  # a propagator is renewed once it may have grown by this many e-folds
AT_ONCE = 1e-12  # part of a step within which a kink is met now, not after a step of that length
NOBODY = np.empty(0, np.int64)
FALL, PARTS = 4.0, 12  # of log L in one part of a quadrature of 1 / L, and most parts of a step
GAUSS = np.polynomial.legendre.leggauss(10)  # nodes and weights on [-1, 1]
_UNSURE = 8  # arrivals in a row after which the present pull is not trusted
STEP_ERROR = 0.1  # error of steps in units of rtol, on the safe side
MOST_ARRIVALS = 1000  # in a row, without time passing, and ten more for each neuron
LANDINGS, WAY = 500, 5.0  # so many landings, on the way of so many steps without, are too many
MOST_RTOL = 1e-2  # of steps that do not locate kinks
_STAYED = (
    "Neurons stayed {} times on a kink that both sides push away from; on_branch='leave' gives the "
    "solution that leaves."
)
_UNDECIDED = range(32, 72)  # those after which the next step is half as long


class Taken(NamedTuple):
    """An accepted step: its length, neurons with kinks in it, arrivals at kink k at its end."""

    h: float
    which: Indices = NOBODY
    arrivals: Indices = NOBODY
    k: int = -2


class Solver(Present):
    """Moves a :class:`State`, by steps and leaps.

    Parameters
    ----------
    state, rtol, policy
        As for :class:`Present`.
    damped : bool
        As for :class:`Unlocated`, which may have to go on.
    patient : bool
        Whether kinks are located however long that takes.
    events : array, optional
        What has been met at the start, as :func:`reluflow.gradientflow.cones.begin` gives it.
    bundles : bool
        Whether neurons that point the same way meet a kink as one.
    decay : float
        Weight decay.
    most : float
        Landings after which kinks are no longer located.
    """

    kind = "located"
    pending: Taken | None  # the step prepared last, None if it is a leap
    reach: float  # where it ends
    inside: tuple[float, Traced] | None = None  # where in it neurons at kinks were looked at last
    locate: Callable[[Unlocated], Mover] | None = None  # what goes on after a mover that does not

    def __init__(
        self,
        state: State,
        rtol: float,
        policy: int,
        damped: bool = False,
        patient: bool = True,
        events: Array | None = None,
        bundles: bool = True,
        decay: float = 0.0,
        most: float = math.inf,
    ) -> None:
        super().__init__(state, rtol, policy, decay)
        if events is not None:
            self.note(events)
        self.damped, self.patient, self.bundles, self.most = damped, patient, bundles, most
        self.trial, self.leaper = Trial(self), Leaper(self)
        self.implicit = False  # whether steps are implicit now
        # number of steps before which no implicit one is tried; outputs under a square loss mostly
        # relax to a rest soon, from which leaps go on
        self.explicit_until = 40 * LOOKS if state.data.kind == SQUARE else 0
        self.passed = 0.0  # way since the last look at :meth:`_choose_method`
        self.stuck = 0  # arrivals in a row without time passing
        self.landed, self.way = 0, 0.0  # landings of late; how far, in steps without landings
        fast = max(self.fastest, decay)
        self.h = 0.05 / fast if fast > 0 else math.inf  # a cautious first step
        if decay:  # f fades at once, and comes back at the rate of the tangent kernel
            back = self.stiffness()[0] * float(np.sum(np.exp(self.log_sizes())))
            self.h = min(self.h, 1.0 / back) if back > 0.0 else self.h

    @property
    def data(self) -> Data:
        """The problem as kernels take it."""
        return self.state.data

    def renew(self) -> None:
        """Start columns afresh after neurons were brought up to date."""
        super().renew()
        self.trial = ImplicitTrial(self) if self.implicit else Trial(self)

    # ------------------------------------------------------------------ moves
    def step(self, end: float) -> float | None:
        """Prepare a leap if that pays, else a step; the position it reaches."""
        limit = end - self.t
        leap = self.leaper.longest(limit)
        if leap is not None and math.isfinite(leap.length):
            reach = self.leaper.prepare(leap, end)
            if reach is not None:
                self.pending, self.way = None, self.way + 1.0
                return reach
        elif leap is not None or not math.isfinite(self.h):
            return math.inf
        taken = self._step(limit)
        if taken is None:
            return None
        self.reach = self.t + taken.h
        if limit - taken.h <= 1e-15 * self.reach:
            self.reach = end
        return self.reach

    def _step(self, limit: float) -> Taken | None:
        """One accepted step of at most ``limit``; None if neurons stand on a kink now."""
        if self.cost["steps"] % LOOKS == 0:
            self._choose_method()
        s, trial = self.state, self.trial
        h = whole = self._accept(limit)
        trial.dense()
        which, arrivals, k = trial.scan(), NOBODY, -2
        met = Effects.of(trial, which) if which.size else None
        stop = met.must_stop(h) if met is not None else -1
        if met is not None and stop >= 0:
            theta, k = float(trial.theta[stop]), int(trial.kink[stop])
            if theta <= min(AT_ONCE, 1e-3 * self.rtol) or theta * h <= 1e-15 * self.t:
                self.landed += 1
                self._arrive(company(trial, stop, k, s.C), k, self._pull_ahead())
                return None
            group = bundle(trial, met, stop) if self.bundles else NOBODY
            shorter = self._pass(met) if group.size < WORTH else None
            if shorter is not None:
                (h, which), k = shorter, -2
            else:
                self.landed += 1
                h, arrivals, which = self._land(met, group, stop, k)
        if which.size and correct(trial, which, h):
            which = np.setdiff1d(trial.scan(), arrivals)
        self.way += h / whole
        taken = Taken(h, which, arrivals, k)
        self.take(taken)
        return taken

    def _choose_method(self) -> None:
        """Implicit steps where explicit ones are as short as stability demands, while they pay.

        An implicit step costs as much as some ten explicit ones; those of this pair are stable up
        to about 6 / rate. With weight decay outputs fade within a step, which only these know.
        """
        if self.decay:
            return
        s, steps = self.state, self.cost["steps"]
        rate = self.leaper.relaxation(np.ones(s.U.shape[0], dtype=bool), self.stiffness()[1])
        way, self.passed = self.passed, 0.0
        if self.implicit:
            if way * rate >= PAYS * LOOKS:
                return
            self.implicit, self.explicit_until = False, steps + 20 * LOOKS
        elif (
            self.h * rate < STIFF
            or steps < self.explicit_until
            or s.C.size > (LARGEST_SQUARE if s.data.kind == SQUARE else LARGEST)
        ):
            return
        else:
            self.implicit = True
        self.h = min(self.h, STIFF / rate)
        self.trial = ImplicitTrial(self) if self.implicit else Trial(self)

    def _pass(self, met: Effects) -> tuple[float, Indices] | None:
        """A shorter step that passes several kinks, if there is one: its length, who meets them."""
        trial = self.trial
        h = met.passable(trial.frame.h)
        if np.sum(met.tau < h) < WORTH:
            return None
        trial.attempt(h)
        trial.dense()
        which = trial.scan()
        if must_stop(trial, which) >= 0:
            return None
        self.h = min(self.h, 3.0 * h)  # kinks are as dense ahead as here
        return h, which

    def _land(
        self, met: Effects, group: Indices, stop: int, k: int
    ) -> tuple[float, Indices, Indices]:
        """End the step on a kink of a bundle: its length, who arrives, who passes another."""
        trial = self.trial
        h = float(trial.theta[stop]) * trial.frame.h
        if group.size > 1:
            mid = middle(trial, group, met.contributions(group))
            shorter = land(trial, mid, k, float(trial.theta[mid]) * trial.frame.h)
            group = np.sort(group)
            rest = np.setdiff1d(trial.scan(), group)
            if must_stop(trial, rest) < 0:
                self.cost["bundles"] += 1
                return shorter, group, rest
        h = land(trial, stop, k, h)
        arrivals = company(trial, stop, k, trial.new)
        return h, arrivals, np.setdiff1d(trial.scan(), arrivals)

    def _accept(self, limit: float) -> float:
        """Try steps until one meets the tolerance; its length. Sets the next step size."""
        fast = self.fastest
        self.trial.extra[:] = 0.0
        h = min(self.h, limit, LONGEST / fast if fast > 0 else math.inf)
        whole = h >= limit
        while (error := self.trial.attempt(h)) > 1.0:
            self.cost["rejected"] += 1
            h *= max(0.2, 0.9 * error ** (-1 / self.trial.order))
            whole = False
        following = h * min(6.0, 0.9 * max(error, 1e-12) ** (-1 / self.trial.order))
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
        self.reach = self.t + step.h
        if step.which.size or self.state.data.by_loss:
            self.trial.sample()
        self.pending, self.inside = step, None
        self.passed += step.h
        self.stuck = 0
        self.cost["steps"] += 1
        self.cost["evaluations"] += 16
        if self.implicit:
            self.cost["implicit"] += 1

    def finish(self) -> None:
        """Move to the end of the prepared step."""
        if self.pending is None:
            self.leaper.finish()
        else:
            self._finish_step(self.pending)
            self.t = self.reach

    def _finish_step(self, step: Taken) -> None:
        """Move columns, then those neurons that met kinks."""
        s, trial = self.state, self.trial
        h, which, arrivals, k = step
        moved = trial.trace(which, 1.0) if which.size else None
        at_end = trial.field_at_end() if arrivals.size else None
        self.log_time = self._log_time_at(step, 1.0)
        self.t += h
        s.C[:] = trial.new
        s.wheel.path[:] += trial.ways
        s.growth += 1.05 * h * self.rates
        if self.decay:
            s.shrink(self.decay * h)
            moved = moved and moved._replace(ls=moved.ls - self.decay * h)
        if moved is None and not arrivals.size:
            self.look()
            if (s.growth[s.cones.lumped] > REBASE).any() or self._far_from_unit():
                s.sync()
                self.renew()
            return
        s.sync()
        if at_end is not None:
            c, D = at_end
            g = s.gid[arrivals[0]]
            if arrivals.size > 1 and k >= 0 and s.U[g, k] != 0:
                self.settle(arrivals, k, c, D[g])
            else:
                self.settle(arrivals, k, c)
        if moved is not None:
            s.Z[which], s.ls[which] = moved.Z, moved.ls
            s.assign(which, moved.V)
            self.note(moved.events)
            self.cost["traces"] += which.size
        self.renew()

    def _far_from_unit(self) -> bool:
        """Whether columns have left the range in which their squares are floats."""
        size = np.max(np.abs(self.state.C))
        return bool(size > 1e60 or size < 1e-60)

    # ------------------------------------------------------------------ within a step
    def present(self) -> Snapshot:
        """Neurons now."""
        return Snapshot(self.t, *self.state.neurons(), self.log_time)

    def within(self, position: float) -> Snapshot:
        """Neurons at a position inside the prepared step."""
        if self.pending is None:
            return self.leaper.within(position)
        theta = min((position - self.t) / self.pending.h, 1.0)
        return self._at(self.pending, theta)._replace(position=position)

    def where(self, excess: Callable[[Array], float]) -> Snapshot | None:
        """Neurons where a falling function of the outputs reaches 0 inside the prepared step.

        By bisection to rounding, as outputs are known at little cost. In a leap they hardly change.
        """
        if self.pending is None or excess(self.trial.outputs_at(1.0)) > 0.0:
            return None
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = 0.5 * (low + high)
            if excess(self.trial.outputs_at(middle)) > 0.0:
                low = middle
            else:
                high = middle
        return self._at(self.pending, high)

    def _at(self, step: Taken, theta: float) -> Snapshot:
        """Neurons at a fraction of the step just taken."""
        C = self.trial.columns_at(theta) if theta < 1.0 else self.trial.new
        Z, ls = self.state.neurons(C)
        which = step.which
        if which.size:
            before, on = self.inside or (0.0, None)
            moved = self.trial.trace(which, theta, on=on if before <= theta else None)
            self.inside = theta, moved  # records come in order
            Z[which], ls[which] = moved.Z, moved.ls
        if self.decay:
            ls -= self.decay * theta * step.h
        return Snapshot(self.t + theta * step.h, Z, ls, self._log_time_at(step, theta))

    def _log_time_at(self, step: Taken, theta: float) -> float:
        """log of the flow time at a fraction of the step just taken."""
        h = step.h
        if not self.state.data.by_loss:
            return float(np.logaddexp(self.log_time, math.log(max(theta * h, 1e-320))))
        # dt = ds / L: where log L falls far in a step its end alone counts, part by part
        fall = abs(self.trial.log_loss_at(0.0) - self.trial.log_loss_at(theta))
        parts = np.arange(1.0, min(max(math.ceil(fall / FALL), 1), PARTS) + 1.0)
        cuts = theta * np.append(np.maximum(1.0 - FALL * (parts - 1.0) / max(fall, FALL), 0.0), 0.0)
        widths = cuts[:-1] - cuts[1:]
        x, w = GAUSS
        x = (cuts[1:, None] + 0.5 * widths[:, None] * (x + 1.0)).ravel()
        weights = (0.5 * h * widths[:, None] * w).ravel()
        logs = self.trial.log_loss_at(x)
        low = float(logs.min())
        total = float(weights @ np.exp(low - logs))
        return float(np.logaddexp(self.log_time, math.log(max(total, 1e-320)) - low))

    # ------------------------------------------------------------------ handing over
    def handover(self) -> Handover | None:
        """Go on without locating kinks where no side of one lasts, or where landings dominate.

        A landing costs about four tries of a step of high order, and a step without any is worth
        some thirty of the low order that :class:`Unlocated` takes. So with more than a hundred
        landings on the way of one such step, locating them is what the run is busy with. The rule
        counts and does not time: the same run hands over at the same place everywhere.
        """
        if self.stuck > MOST_ARRIVALS + 10 * self.state.gid.size:
            return self._go_on("where neurons stand on several kinks at once and no side lasts")
        if self.cost["landings"] >= self.most:
            return self._go_on(f"after {self.cost['landings']} landings")
        if self.way > WAY:
            self.landed, self.way = 0, 0.0
        if self.patient or self.landed < LANDINGS:
            return None
        return self._go_on(
            f"where {self.landed} landings led no further than {self.way:.2g} steps without "
            "landings would"
        )

    def _go_on(self, reason: str) -> Handover:
        """Hand neurons, clocks and counts over to a mover that does not locate kinks."""
        rtol = min(math.sqrt(self.rtol), MOST_RTOL)
        mover = Unlocated(self.data, *self.state.neurons(), rtol, self.damped, self.decay)
        mover.t, mover.log_time, mover.events = self.t, self.log_time, self.events
        mover.cost.update(self.cost)
        mover.since = f"From {time_in_words(self)} on, {reason}, kinks"
        mover.locate = self.locate
        return Handover(mover, reason)

    # ------------------------------------------------------------------ for stops
    def gradient(self) -> float:
        """Largest norm over cones of the subgradient of minimal norm, at most |D_u| sqrt(2 B_u).

        With weight decay, the norm of that of the penalised loss.
        """
        if self.decay:
            _, ls, V = self.velocities()
            return float(np.linalg.norm(np.exp(ls)[:, None] * V))
        with np.errstate(divide="ignore"):
            log_grad = np.log(self.rates) + 0.5 * (self.log_sizes() + math.log(2.0))
        return math.exp(float(np.max(log_grad, initial=-math.inf)))

    def grows(self, rate: float) -> bool:
        """Whether a neuron grows, or still turns, at more than this rate."""
        s = self.state
        if self.decay:
            Z, _, V = self.velocities()
            growth = np.sum(Z * V, axis=1)
            turning = np.linalg.norm(V - growth[:, None] * Z, axis=1)
            rising = (self.rates - self.decay > rate)[s.gid]  # others shrink wherever they turn
            return bool(((growth > rate) | (rising & (turning > rate))).any())
        members = np.flatnonzero((self.rates > rate)[s.gid])
        if not members.size:
            return False
        Z, _ = s.neurons()
        Z, D = Z[members], self.D[s.gid[members]]
        along = np.sum(Z[:, :-1] * D, axis=1)
        growth = 2.0 * Z[:, -1] * along
        dW = Z[:, -1:] * D - growth[:, None] * Z[:, :-1]
        da = along - growth * Z[:, -1]
        turning = np.sqrt(np.sum(dW**2, axis=1) + da**2)
        return bool(((growth > rate) | (turning > rate)).any())

    def noise(self) -> tuple[float, float]:
        """Error that steps leave in the rates and in the gradient.

        Steps of relative error e move f by about e B, B half the squared norm, the rates by e K B,
        K the stiffness of the pull, and the subgradient by e K B^(3/2). At rest sum_k c_k f_k = 0;
        where the terms do not cancel weights grow for ever, and no small velocity is a rest.
        """
        terms = self.c * self.f
        if self.data.kind != SQUARE and float(terms.sum()) > 0.5 * float(np.abs(terms).sum()):
            return 0.0, 0.0
        B = float(np.sum(np.exp(self.log_sizes())))
        noise = STEP_ERROR * self.rtol * self.stiffness()[0] * B
        return noise, noise * math.sqrt(B)

    def turning(self) -> tuple[float, float]:
        """Rates at which log |theta| grows and the direction theta/|theta| moves."""
        if self.decay:
            Z, ls, V = self.velocities()
            scale = np.exp(ls - ls.max())[:, None]
            return turning_of(scale * Z, scale * V)
        log_B, s = self.log_sizes(), self.state
        keep = (log_B > np.max(log_B) - 60.0)[s.gid]
        Z, ls = s.neurons()
        scale = np.exp(ls[keep] - np.max(ls[keep]))[:, None]
        Z, D = scale * Z[keep], self.D[s.gid[keep]]
        return turning_of(Z, np.column_stack([Z[:, -1:] * D, np.sum(Z[:, :-1] * D, axis=1)]))

    # ------------------------------------------------------------------ for the record
    def remark(self) -> str:
        """How often neurons stayed where solutions are not unique."""
        kinds = np.concatenate([np.empty(0), *(rows[:, 3] for rows in self.events)])
        stayed = int(np.sum(kinds == BRANCH))
        return _STAYED.format(stayed) if stayed and self.policy == STAY else ""

    def total_cost(self) -> dict[str, float]:
        """Counts of moves and events, the number of cones now."""
        cost: dict[str, float] = {k: int(v) for k, v in self.cost.items()}
        return {**cost, "cones": int(self.state.U.shape[0]), "log_time": float(self.log_time)}

    def pack(self) -> dict[str, NDArray[Any]]:
        """Everything the continuation depends on."""
        s = self.state
        numbers = [self.t, self.log_time, self.h, self.scale, self.top, self.leaper.still]
        arrays: dict[str, NDArray[Any]] = {"Z": s.Z, "ls": s.ls, "U": s.U, "gid": s.gid}
        events = np.vstack([np.empty((0, 4)), *self.events])
        numbers += [float(self.stuck), float(self.landed), self.way]
        numbers += [float(self.implicit), float(self.explicit_until), self.passed, self.most]
        more = {"C": s.C, "growth": s.growth, "events": events, "numbers": np.array(numbers)}
        if self.decay:  # sizes relative to each other have been rounded at every step
            more |= {"Q": s.cones.Q, "log_size": s.log_size}
        return {**arrays, **more}

    def unpack(self, packed: Mapping[str, NDArray[Any]]) -> None:
        """Restore what :meth:`pack` gave."""
        V = packed["U"][packed["gid"]]
        state = State(self.data, packed["Z"].copy(), packed["ls"].copy(), V)
        state.gid, state.U = packed["gid"].copy(), packed["U"].copy()
        state._keys = {u.tobytes(): g for g, u in enumerate(state.U)}
        state.rebuild()
        state.C[:], state.growth[:] = packed["C"], packed["growth"]
        if self.decay:
            state.cones.Q[:], state.log_size[:] = packed["Q"], packed["log_size"]
            state.shrink(0.0)
        state.wind()
        self.state = state
        self.look()
        numbers = [float(v) for v in packed["numbers"]]
        self.implicit = bool(numbers[9])
        self.explicit_until, self.passed, self.most = int(numbers[10]), *numbers[11:]
        self.trial = ImplicitTrial(self) if self.implicit else Trial(self)
        self.t, self.log_time, self.h, self.scale, self.top, self.leaper.still = numbers[:6]
        self.stuck, self.landed, self.way = int(numbers[6]), int(numbers[7]), numbers[8]
        self.events = [packed["events"]]
