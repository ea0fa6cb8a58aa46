"""The limit of gradient flow as the start shrinks: a staircase of saddles, and who jumps when."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow._views import Shown
from reluflow.arrays import Array, Indices, Mask, real_number
from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.runtime.plain import to_plain

Item = TypeVar("Item")
__all__ = ["ENDINGS", "JumpProcess", "Lazy", "log_inverse"]
ON_BALANCE = ", exact balance"
"""Added to an ending that holds for exactly balanced starts, |a| = |w|, alone."""
_CONCLUSIONS = ("interpolates", "spurious", "global", "stationary", "infinity")
ENDINGS = (
    *_CONCLUSIONS,
    *(f"{word}{ON_BALANCE}" for word in _CONCLUSIONS),
    "tie",
    "budget",
    "unresolved",
)


_GAP = 0.05  # gap over the time of a jump below which a run may jump in another order
_REST = 3.0  # relaxation times of a plateau after which e^-3 of the way to it is left


class Lazy(Sequence[Item], Generic[Item]):
    """A sequence whose items are made when asked for; the ``keep`` latest stay in memory."""

    def __init__(self, length: int, make: Callable[[int], Item], keep: int = 4) -> None:
        self._length, self._make, self._keep = length, make, keep
        self._made: OrderedDict[int, Item] = OrderedDict()

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...

    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._length))]
        if not -self._length <= index < self._length:
            raise IndexError(f"item {index} of {self._length}")
        i = int(index) % self._length
        if i not in self._made:
            self._made[i] = self._make(i)
            if len(self._made) > self._keep:
                self._made.popitem(last=False)
        return self._made[i]

    def __iter__(self) -> Iterator[Item]:
        return (self[i] for i in range(self._length))


def log_inverse(scale: float | None, log_scale: float | None) -> float:
    """L = log(1/scale) > 0 from ``scale`` or its logarithm."""
    if (scale is None) == (log_scale is None):
        raise ReluflowError("give either scale (1e-40) or its logarithm log_scale (-1000)")
    if log_scale is None:
        scale = real_number(scale, "scale")
        if not 0.0 < scale < 1.0:
            raise ReluflowError(
                f"scale must lie strictly between 0 and 1, got {scale:g}: "
                "use log_scale= for one below 1e-300"
            )
        return -math.log(scale)
    log_scale = real_number(log_scale, "log_scale")
    if not -math.inf < log_scale < 0.0:
        raise ReluflowError(f"log_scale must be negative and finite, got {log_scale:g}")
    return -log_scale


@dataclass(frozen=True, eq=False, repr=False)
class JumpProcess(Shown):
    r"""Saddle-to-saddle process: the limit of gradient flow from ``scale`` times a start.

    With L = log(1/scale) and time :math:`\tau = t / L`, the flow converges as scale tends to 0
    to a network that is constant between K jump times. On plateau i = 0..K the dormant neurons
    keep a direction and have norm :math:`scale^{-\beta_j(\tau)}`, where the exponents start at
    -1, are continuous and grow linearly at rate :math:`s_j G_c(v_j)`; a neuron jumps when its
    exponent reaches 0 ([TLB26]_ for orthonormal inputs).

    Attributes
    ----------
    problem : Problem
    signs : array (m,), int8
        Signs of the outer weights; 0 if unknown or dead.
    times : array (K,)
        Jump times in units of log(1/scale), ascending.
    losses : array (K+1,)
        Loss on each plateau; ``losses[0]`` is that of the silent network.
    neurons : K index arrays
        Who becomes non-zero at each jump; several when a group jumps as one.
    samples : K index arrays
        Samples on which the jumping group is active at the new saddle (orthonormal inputs: the
        newly fitted ones).
    networks : sequence of K+1 networks
        The saddles, all m neurons, zero rows for dormant ones; made when asked for if large.
    directions : sequence of K+1 arrays (m, d)
        Unit limit directions on each plateau; zero rows for dead neurons.
    rates : array (K+1, m)
        Slopes of the exponents; 0 for active and dead neurons, negative for shrinking ones.
    exponents : array (K+1, m)
        Exponents at the start of each plateau; row 0 is -1.
    active : array (K+1, m), bool
        Neurons that are not zero at the saddle.
    gaps : array (K,)
        How much later the next candidate outside the group would have jumped, over
        ``times[i]``; inf if there is none. Small gaps need small scales.
    status : str
        How the process ends, in a sentence.
    ending : str
        The same as a code: one of :data:`ENDINGS`; ", exact balance" is part of it where the
        conclusion holds for |a| = |w| beyond rounding alone.
    gain, gain_bound : float
        Largest growth rate a further neuron could have at the end, max of :math:`s G_c(v)` over
        unit v and signs, found and bounded from above; nan if unknown, 0 at a global minimum.
    limit_direction : Network or None
        Where the weights diverge to (margin losses), normalised.
    view : str
        What was assumed of the start.
    undetermined : tuple of str
        What the limit leaves open, with the neurons concerned and their jumps, if they jump.
    balance : str
        Empty, or a sentence on the neurons that shrink below their start: any imbalance of |a| and
        |w| would change what follows. It is part of ``status``.
    weights : array (m,) or None
        Infinite width: share of the population that each neuron stands for.
    offsets : array (K,) or None
        C_i of the real jump times :math:`t_i = L \tau_i + C_i`, at which half of the fall of the
        loss across jump i is done, for a start whose largest inner weight has norm ``scale``; nan
        where unknown.
    constants : array (K+1, m) or None
        On plateau i a dormant neuron has :math:`\log|w_j| = L \beta_j(t/L) + K_j` in real time t;
        these are the K_j, nan for active and dead neurons.
    relaxation : array (K+1,) or None
        Real time in which active and dormant neurons come to rest on each plateau (the slowest
        mode, the last event of a dormant neuron); a plateau much shorter than that is not seen.
    residuals : array (K+1,)
        Stationarity residual of each saddle.
    branches : tuple of JumpProcess
        Each continuation of a tie, from the start.
    found : tuple of str
        What was found but not proved within the budget: "gain" (``gain_bound`` is above it),
        "limit_direction" (a neighbouring cone may have a larger margin), "infinity" (samples taken
        to be fitted with growing margin, since their margins grew for long).
    weight_decay : float
        lambda: rates are s G_c(v) - lambda, plateaus are critical points of the penalised loss, and
        ``gain`` is what a further neuron has beyond lambda; ``losses`` are those of the data alone.
    interrupted : bool
        Whether Ctrl-C came while it was computed, and perhaps cut it short.
    """

    problem: Problem
    signs: NDArray[np.int8]
    times: Array
    losses: Array
    neurons: tuple[Indices, ...]
    samples: tuple[Indices, ...]
    networks: Sequence[Network]
    directions: Sequence[Array]
    rates: Array
    exponents: Array
    active: Mask
    gaps: Array
    status: str
    ending: str
    gain: float = math.nan
    gain_bound: float = math.nan
    limit_direction: Network | None = None
    view: str = "this network"
    undetermined: tuple[str, ...] = ()
    weights: Array | None = None
    offsets: Array | None = None
    constants: Array | None = None
    relaxation: Array | None = None
    residuals: Array = field(default_factory=lambda: np.empty(0))
    branches: tuple[JumpProcess, ...] = ()
    balance: str = ""
    found: tuple[str, ...] = ()
    weight_decay: float = 0.0
    interrupted: bool = False

    def __post_init__(self) -> None:
        if self.ending not in ENDINGS:
            raise ReluflowError(f"unknown ending {self.ending!r}: one of {', '.join(ENDINGS)}")
        K, m = len(self.times), len(self.signs)
        if self.residuals.size == 0:
            object.__setattr__(self, "residuals", np.full(K + 1, np.nan))
        lengths = {"neurons": K, "samples": K, "gaps": K, "losses": K + 1, "residuals": K + 1}
        lengths |= {"networks": K + 1, "directions": K + 1}
        for name, length in lengths.items():
            if len(getattr(self, name)) != length:
                raise ReluflowError(
                    f"{name} has {len(getattr(self, name))} items for {K} jumps: expected {length}"
                )
        for name in ("rates", "exponents", "active"):
            if getattr(self, name).shape != (K + 1, m):
                raise ReluflowError(
                    f"{name} has shape {getattr(self, name).shape}: expected {(K + 1, m)}"
                )
        for item in fields(self):
            value = getattr(self, item.name)
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    @property
    def n_jumps(self) -> int:
        """K, the number of jumps."""
        return len(self.times)

    @property
    def m(self) -> int:
        """Number of neurons."""
        return len(self.signs)

    @property
    def final(self) -> Network:
        """The network at the end of the process."""
        return self.networks[-1]

    def plateau_at(self, tau: ArrayLike) -> NDArray[np.intp]:
        """Index of the plateau at time ``tau`` (in units of log(1/scale)); at a jump the later."""
        return np.asarray(np.searchsorted(self.times, _not_negative(tau, "tau"), side="right"))

    def exponents_at(self, tau: ArrayLike) -> Array:
        """Exponents beta, shape (..., m): log norm over log(1/scale), 0 for active neurons."""
        plateau = self.plateau_at(tau)
        since = np.asarray(tau, dtype=float) - np.concatenate([[0.0], self.times])[plateau]
        return np.asarray(self.exponents[plateau] + since[..., None] * self.rates[plateau])

    def loss_at(self, tau: ArrayLike) -> Array:
        """The staircase of the loss at times ``tau`` (in units of log(1/scale))."""
        return self.losses[self.plateau_at(tau)]

    def jump_times(self, scale: float | None = None, log_scale: float | None = None) -> Array:
        """Real times of all jumps from a start of this scale: L times[i], plus known offsets.

        Each is the time at which the loss is (losses[i] + losses[i + 1]) / 2, whatever the loss.
        """
        times = log_inverse(scale, log_scale) * self.times
        if self.offsets is not None:
            times = times + np.nan_to_num(self.offsets)
        return np.maximum.accumulate(np.maximum(times, 0.0)) if len(times) else times

    def jump_time(
        self, i: int, scale: float | None = None, log_scale: float | None = None
    ) -> float:
        """Real time of jump ``i`` (0 is the first) from a start of this scale."""
        return float(self.jump_times(scale, log_scale)[i])

    def gaps_at(self, scale: float | None = None, log_scale: float | None = None) -> Array:
        """Gaps between each jump and the next candidate at this scale, constants included.

        Where one is small or negative, a run from this scale may jump in another order than the
        limit; nan where the constants are not known.
        """
        L = log_inverse(scale, log_scale)
        gaps = np.full(self.n_jumps, np.nan)
        if self.constants is None:
            return gaps
        for i, group in enumerate(self.neurons):
            start = self.times[i - 1] if i else 0.0
            g, K = self.rates[i], self.constants[i]
            grows = (g > 0.0) & np.isfinite(K)
            g = np.where(grows, g, 1.0)
            when = L * start - (L * self.exponents[i] + np.where(grows, K, 0.0)) / g
            when[~grows] = np.inf
            first = when[group].min()
            if np.isinf(first):  # the group's constants are not known
                continue
            others = np.delete(when, group)
            gaps[i] = (others.min(initial=np.inf) - first) / max(first, 1e-300)
        return gaps

    def rests_at(self, scale: float | None = None, log_scale: float | None = None) -> Array:
        """Length of each plateau before a jump over its relaxation time, at this scale.

        Below about 20 a run from this scale jumps on before it has come to rest.
        """
        length = np.diff(np.concatenate([[0.0], self.jump_times(scale, log_scale)]))
        if self.relaxation is None:
            return np.full(self.n_jumps, np.nan)
        return length / np.maximum(self.relaxation[:-1], 1e-300)

    def overlaps_at(self, scale: float | None = None, log_scale: float | None = None) -> Mask:
        """Whether each jump comes, at this scale, before the one before it is done.

        A jump takes about the time 1/g in which its group, growing at rate g, grows e-fold; two
        that are closer than that are one fall of the loss.
        """
        apart = np.diff(self.jump_times(scale, log_scale))
        found = np.zeros(self.n_jumps, dtype=bool)
        for i in range(1, self.n_jumps):
            found[i] = apart[i - 1] * self._pace(i - 1) < 1.0
        return found

    def _pace(self, i: int) -> float:
        """Rate at which the group of jump ``i`` grows as it jumps."""
        return float(np.max(self.rates[i][self.neurons[i]], initial=0.0))

    def doubts_at(
        self, scale: float | None = None, log_scale: float | None = None
    ) -> tuple[str, ...]:
        """Why a run from this scale may show a jump at another time, one text (or "") for each.

        A jump inherits the doubts of those before it: a run that left the predicted path once need
        not come back to it.
        """
        L = log_inverse(scale, log_scale)
        gaps, rests = self.gaps_at(log_scale=-L), self.rests_at(log_scale=-L)
        times, overlaps = self.jump_times(log_scale=-L), self.overlaps_at(log_scale=-L)
        reasons: list[str] = []
        for i in range(self.n_jumps):
            found = []
            if gaps[i] < _GAP:
                found.append(f"the next candidate is {max(gaps[i], 0.0):.2g} of the time later")
            if overlaps[i]:
                apart = f"{times[i] - times[i - 1]:.2g}"
                found.append(f"it comes {apart} after jump {i}, before that one is done")
            if i and self.relaxation is not None and np.isinf(self.relaxation[i]):
                what = "margins" if self.problem.loss.margin else "weights"
                found.append(f"the plateau before it never rests: {what} grow for ever")
            elif rests[i] < _REST:
                found.append(f"the plateau before it lasts {rests[i]:.2g} relaxation times only")
            if self.offsets is not None and np.isnan(self.offsets[i]):
                found.append("its time is known to leading order in log(1/scale) only")
            if self.balance:
                found.append("neurons that shrink below their start stay so by exact balance alone")
            found += self._further_doubts(i, L)
            if i and reasons[-1] and not found:
                found.append(f"jump {i} is in doubt")
            reasons.append("; ".join(found))
        return tuple(reasons)

    def _further_doubts(self, i: int, L: float) -> list[str]:
        """What else may move jump ``i`` of a run, L being log(1/scale)."""
        return []

    def predicted_loss(
        self, t: ArrayLike, scale: float | None = None, log_scale: float | None = None
    ) -> Array:
        """Loss at real times ``t`` from a start of this scale, by the staircase."""
        jumps = self.jump_times(scale, log_scale)
        return self.losses[np.searchsorted(jumps, _not_negative(t, "t"), side="right")]

    def at(self, t: float, scale: float | None = None, log_scale: float | None = None) -> Network:
        """The network at real time ``t`` from a start of this scale.

        Active neurons are those of the saddle; dormant ones have their limit direction and the
        norm scale^(-beta), balanced; dead ones are zero.
        """
        L = log_inverse(scale, log_scale)
        jumps = self.jump_times(scale, log_scale)
        i = int(np.searchsorted(jumps, _not_negative(t, "t"), side="right"))
        start = self.times[i - 1] if i else 0.0
        stop = self.times[i] if i < self.n_jumps else math.inf
        beta = self.exponents[i] + (min(max(float(t) / L, start), stop) - start) * self.rates[i]
        saddle, on = self.networks[i], self.active[i]
        direction = self.directions[i]
        alive = direction.any(axis=1)
        return Network(
            np.where(on[:, None], saddle.W, direction),
            np.where(on, saddle.a, np.where(alive, self.signs, 0.0)),
            log_scale=np.where(on, saddle.log_factors, L * beta),
            leak=self.problem.leak,
            bias=self.problem.bias,
        )

    def table(self) -> list[dict[str, Any]]:
        """One dictionary per jump: time, who, on which samples, loss after it, gap, offset."""
        return [
            {
                "jump": i + 1,
                "time": float(self.times[i]),
                "neurons": self.neurons[i].tolist(),
                "samples": self.samples[i].tolist(),
                "loss": float(self.losses[i + 1]),
                "gap": float(self.gaps[i]),
                "offset": math.nan if self.offsets is None else float(self.offsets[i]),
            }
            for i in range(self.n_jumps)
        ]

    def to_dict(self, full: bool = False) -> dict[str, Any]:
        """Plain data for JSON; ``full`` adds exponents, rates and the saddles' weights.

        The one JSON form of a process, which `predict --json` prints and report.json holds; nan is
        None and an infinity "inf" there.
        """
        names = ["times", "losses", "gaps", "residuals", "status", "ending", "gain", "gain_bound"]
        names += ["view", "undetermined", "balance", "found", "offsets", "signs", "weights"]
        if full:
            names += ["rates", "exponents", "active"]
        out = {name: getattr(self, name) for name in names}
        out |= {"problem": self.problem.name, "jumps": self.table()}
        if self.weight_decay:
            out["weight_decay"] = self.weight_decay
        if self.limit_direction is not None:
            out["limit_direction"] = _plain_weights(self.limit_direction)
        if full:
            out["networks"] = [_plain_weights(net) for net in self.networks]
        out["branches"] = [branch.to_dict(full) for branch in self.branches]
        plain: dict[str, Any] = to_plain(out)
        return plain

    def __repr__(self) -> str:
        from reluflow.prediction.views import as_text

        return as_text(self)


def _plain_weights(net: Network) -> dict[str, Array]:
    return dict(zip("Wa", net.weights(), strict=True))


def _not_negative(value: ArrayLike, name: str) -> Array:
    try:
        time = np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ReluflowError(f"{name} must be a number or an array, got {value!r}") from None
    if not (time >= 0.0).all():
        raise ReluflowError(f"{name} must not be negative, got {value!r}")
    return time
