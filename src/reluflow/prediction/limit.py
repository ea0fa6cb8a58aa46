"""The process that gradient flow tends to as its start shrinks: the public function."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from reluflow.arrays import Array, decay_rate, real_number
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.landscape.align import Alignment
from reluflow.landscape.bound import MaxG, max_G
from reluflow.network import Network
from reluflow.prediction.balance import balance_words
from reluflow.prediction.crew import NO_RATE
from reluflow.prediction.process import ON_BALANCE, JumpProcess, Lazy
from reluflow.prediction.spending import clock_of
from reluflow.prediction.staircase import BUDGET, Plateau, Staircase, rounded_rate
from reluflow.prediction.starts import Start, from_directions, from_infinite_width, from_network
from reluflow.prediction.transit import remaining_loss
from reluflow.problem import Problem
from reluflow.runtime.budget import Clock, Work
from reluflow.runtime.progress import Interrupt

_AT_REST = 20.0  # relaxation times that a plateau lasts if a run is to come to rest on it
_RESTLESS = 1000.0  # log(1/scale) beyond which a plateau is said to need a very small scale
_ALL_NODES = 200_000  # of the search for the largest gain
_SEARCH, _NODE = 1.5e-5, 5e-8  # work of that search and of each node, for each entry of X
_PROGRAM = 0.1  # work of a program of cones
_REFINED = 4_096  # nodes after which a bound that no longer decides anything is left as it is

Late = Callable[[float, float], bool]  # see `_lateness`


@check_arguments
def limit(
    problem: Problem,
    net: Network | None = None,
    *,
    directions: ArrayLike | None = None,
    signs: ArrayLike | None = None,
    tie: float = 1e-9,
    weight_decay: float = 0.0,
    max_jumps: int = 10_000,
    max_seconds: float | None = None,
    seconds: float | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    counted: bool = False,
    alignment: Alignment | None = None,
) -> JumpProcess:
    r"""The saddle-to-saddle process of gradient flow from ``scale * net`` as scale tends to 0.

    With :math:`\beta_j = \log|w_j| / \log(1/scale)` and time :math:`\tau = t / \log(1/scale)`:

    1. all :math:`\beta_j = -1`; the pull c is that of the silent network;
    2. dormant neurons settle on :math:`s_j G_c` and grow at its value there,
       :math:`\beta_j' = s_j G_c(v_j)`;
    3. the first to reach :math:`\beta = 0` jump, as one group where they share direction, sign and
       exponent;
    4. the active neurons and the group follow the flow to its next critical point, polished to
       rounding, while the dormant ones ride along;
    5. c is the pull there; again from 2 until nobody grows.

    Nothing is trained: between jumps everything is in closed form.

    Parameters
    ----------
    problem : Problem
        Any data and loss.
    net : Network, optional
        Directions, signs and relative sizes of the start. Without it (and without
        ``directions``) the width is infinite: every basin is populated.
    directions, signs : arrays (m, d) and (m,), optional
        The same without sizes: balanced neurons of equal norm.
    tie : float
        Jump times closer than this, relative, are one jump; its proportions follow from the
        constant factors of the start and are named in ``undetermined``.
    weight_decay : float
        lambda of the penalty (lambda/2) (|W|^2 + |a|^2). Rates are then s_j G_c(v_j) - lambda, so
        that a group with s_j G_c(v_j) <= lambda never jumps, and plateaus are critical points of
        the penalised loss; "global" and "spurious" are said of that.
    max_jumps : int
        Budget of jumps.
    max_seconds : float, optional
        Budget of processor time for the process, which is cut short there; looked at now and then.
    seconds : float, optional
        Budget of processor time for all, within which what was found is proved: the process comes
        first and whole, then the bound on what a further neuron gains and the direction at infinity
        get the time that is left. ``found`` names what is not proved. Margins that have grown for
        long, and can go on without a change of other outputs, are not followed far out, which
        ``status`` says. By default everything is computed to the end, whatever that takes.
    checkpoint : path, optional
        File that remembers what is spent of these budgets: the same call after a kill repeats what
        was decided by the clock and has the rest of them, not fresh ones. Removed at the end.
    counted : bool
        Count these budgets in work instead of processor time: seconds are then about those of an
        ordinary core (within a factor of three or so), and the same call gives the same process on
        every machine and after every kill, without a checkpoint.
    alignment : Alignment, optional
        Of :func:`reluflow.align` for the same problem and network, where it is known: neurons
        are then not followed to their first directions again.

    Returns
    -------
    JumpProcess
        ``ending`` says how it ends: "interpolates" (loss 0), "global" (no further neuron of any
        direction would lower the loss), "spurious" (one would, by rate ``gain``, but none of the
        dormant ones grows), "infinity" (margin losses: all samples are fitted with growing
        margin, towards ``limit_direction``), "budget" or "unresolved". Where neurons shrink below
        their start, so that any imbalance of |a| and |w| would change what follows, ", exact
        balance" is added to it, and ``status`` names them.

    Notes
    -----
    [TLB26]_ proves this for orthonormal inputs, where `reluflow.prediction.algorithm1` is its
    closed form. For general data it is a computation, not a theorem: each saddle comes with its
    stationarity residual, and gaps between jump times say how small a scale must be to show the
    same order. ``offsets`` are the constants of the real times
    :math:`t_i = \tau_i \log(1/scale) + C_i` at which half of the fall of the loss across jump i is
    done, scale being the largest |w_j| of the start.

    Examples
    --------
    >>> import numpy as np
    >>> from reluflow import Problem, limit
    >>> problem = Problem(X=np.eye(2), y=np.array([2.0, 1.0]))
    >>> process = limit(problem, directions=[[1.0, -1.0], [-1.0, 1.0]], signs=[1, 1])
    >>> process.times, process.ending
    (array([1., 2.]), 'interpolates')
    """
    decay = decay_rate(weight_decay)
    if decay:
        problem.check_one_output("limit with weight_decay")
    if problem.several and directions is None:
        from reluflow.prediction.multioutput.limit import limit as limit_of_vectors

        how: dict[str, Any] = {"tie": tie, "max_jumps": max_jumps, "checkpoint": checkpoint}
        how |= {"max_seconds": max_seconds, "seconds": seconds, "counted": counted}
        return limit_of_vectors(problem, net, **how)
    problem.check_kinks("limit")
    if not 0.0 <= real_number(tie, "tie") < 1.0:
        raise ReluflowError(f"tie is a relative distance from 0 to 1, got {tie!r}: try 1e-9")
    if alignment is not None and net is None:
        raise ReluflowError("alignment was given without the network it belongs to: give net=")
    if net is not None and directions is not None:
        raise ReluflowError("give either net or directions, not both")
    if net is not None:
        start = from_network(problem, net, alignment=_checked(alignment, problem, net))
    elif directions is not None:
        start = from_directions(problem, directions, signs)
    elif signs is not None:
        raise ReluflowError("signs were given without directions: give directions= as well")
    else:
        start = from_infinite_width(problem)
    if decay:
        for unit in start.units:
            unit.g = rounded_rate(unit.g - decay, problem.total_pull)
    stairs = Staircase(problem, start.units, dict(start.dead), start.relaxation, decay)
    given = {"max_jumps": max_jumps, "max_seconds": max_seconds, "seconds": seconds}
    first = {
        "V": np.array([unit.v for unit in start.units]),
        "K": np.concatenate([np.zeros(0), *(unit.K for unit in start.units)]),
        "signs": start.signs,
    }
    given |= {"tie": tie, "weight_decay": decay}
    clock = clock_of(problem, first, given, checkpoint, counted)
    most = np.inf if max_seconds is None else max_seconds
    with Interrupt() as interrupt:

        def tick(work: float) -> bool:
            return interrupt.requested or clock.decide(lambda spent: spent > most, work)

        stairs.run(max_jumps, tie, tick, quick=seconds is not None)
    process = _result(problem, start, stairs, _lateness(clock, seconds))
    clock.end(interrupt.requested)
    return replace(process, interrupted=interrupt.requested)


def _lateness(clock: Clock | Work, seconds: float | None) -> Late | None:
    """``late(work, needed)``: after so much work, is what is left too little for what comes next?

    None for no end.
    """
    if seconds is None:
        return None
    return lambda work, needed: clock.decide(lambda spent: spent + needed >= seconds, work)


def _checked(alignment: Any, problem: Problem, net: Network) -> Alignment | None:
    """The alignment of this network, or a sentence."""
    if alignment is None:
        return None
    if not isinstance(alignment, Alignment) or alignment.sign.size != net.m:
        raise ReluflowError(
            f"alignment must be that of the {net.m} neurons of net, got {alignment!r}: give "
            "align(problem, net)"
        )
    if alignment.problem is not problem or (alignment.pull != problem.pull).any():
        raise ReluflowError(
            "alignment belongs to another problem or pull: give align(problem, net)"
        )
    return alignment


def _result(problem: Problem, start: Start, stairs: Staircase, late: Late | None) -> JumpProcess:
    """The process with its ending; proofs go on until ``late`` their next step, see `_lateness`."""
    m, plateaus, jumps = len(start.signs), stairs.plateaus, stairs.jumps
    rates = np.zeros((len(plateaus), m))
    exponents = np.full((len(plateaus), m), -1.0)
    active = np.zeros((len(plateaus), m), dtype=bool)
    constants = np.full((len(plateaus), m), np.nan)
    for i, plateau in enumerate(plateaus):
        if i:
            exponents[i] = exponents[i - 1] + rates[i - 1] * (plateau.start - plateaus[i - 1].start)
        for dormant in plateau.dormant:
            members = dormant.members
            rates[i, members], exponents[i, members] = dormant.rate, dormant.exponent
            if not plateau.diverging:
                constants[i, members] = dormant.K
        for acting in plateau.active:
            active[i, acting.members], exponents[i, acting.members] = True, 0.0
    networks = Lazy(len(plateaus), lambda i: _saddle(problem, start, plateaus[i]))
    losses = np.array(
        [_loss(problem, net, plateau) for net, plateau in zip(networks, plateaus, strict=True)]
    )
    ending, status, gain, bound, found = _ending(problem, stairs, losses, late)
    found += ("infinity",) if stairs.assumed else ()
    notes = [doubt.text(jumps) for doubt in start.open]
    tied = [str(i + 1) for i, jump in enumerate(jumps) if jump.tied]
    if tied:
        notes.append(
            f"the proportions at jump(s) {', '.join(tied)}, where several directions tie (they "
            "follow from the constant factors of the start)"
        )
    direction = None
    if ending == "infinity":
        from reluflow.prediction.infinity import limit_direction

        stop = (lambda: False) if late is None else (lambda: late(_PROGRAM, 0.0))
        direction, words, settled = limit_direction(problem, networks[-1], stop)
        status += words
        found += () if settled else ("limit_direction",)
        notes.append(
            "neurons that are still dormant: they would be felt only when log log t is of the "
            "order of log(1/scale)"
        )
    balance = ""
    if ending not in ("budget", "unresolved"):
        starts, pulls = [each.start for each in plateaus], [each.pull for each in plateaus]
        who = [jump.members for jump in jumps]
        balance = balance_words(problem, stairs.shrunk, who, starts, pulls, stairs.decay)
    if balance:
        ending, status = f"{ending}{ON_BALANCE}", f"{status} {balance}"
    status += _restless_words(plateaus) + _endless_words(plateaus)
    if stairs.assumed:
        status += " Found, not proved: margins that had grown for long are taken to grow for ever."
    return JumpProcess(
        problem=problem,
        signs=start.signs,
        times=np.array([jump.time for jump in jumps]),
        losses=losses,
        neurons=tuple(jump.members for jump in jumps),
        samples=tuple(jump.samples for jump in jumps),
        networks=networks,
        directions=Lazy(len(plateaus), lambda i: _directions(problem, m, plateaus[i])),
        rates=rates,
        exponents=exponents,
        active=active,
        gaps=np.array([jump.gap for jump in jumps]),
        status=status,
        ending=ending,
        gain=gain,
        gain_bound=bound,
        limit_direction=direction,
        view=start.view,
        undetermined=tuple(notes),
        found=found,
        balance=balance,
        weights=start.weights,
        offsets=np.array([jump.offset for jump in jumps]),
        constants=constants,
        relaxation=np.array([plateau.relaxation for plateau in plateaus]),
        residuals=np.array([plateau.residual for plateau in plateaus]),
        weight_decay=stairs.decay,
    )


def _restless_words(plateaus: list[Plateau]) -> str:
    """Words on plateaus that runs from scales like e^-1000 leave before they are at rest."""
    needed = {
        i: _AT_REST * here.relaxation / (after.start - here.start)
        for i, (here, after) in enumerate(pairwise(plateaus))
        if i and np.isfinite(here.relaxation) and after.start > here.start
    }
    late = [i for i, L in needed.items() if L > _RESTLESS]
    if not late:
        return ""
    which = (
        f"Plateau {late[0]} comes"
        if len(late) == 1
        else f"Plateaus {', '.join(map(str, late))} come"
    )
    return (
        f" {which} to rest before the next jump only from scales below "
        f"e^-{max(needed[i] for i in late):.2g}; a run from a larger one need not show the level."
    )


def _endless_words(plateaus: list[Plateau]) -> str:
    """Words on plateaus before a jump on which margins grow for ever (margin losses)."""
    which = [i for i, plateau in enumerate(plateaus[:-1]) if plateau.diverging]
    if not which:
        return ""
    first = "Plateau" if len(which) == 1 else "Plateaus"
    return (
        f" {first} {', '.join(map(str, which))} never {'rests' if len(which) == 1 else 'rest'}: "
        "margins grow like log t there, so that a run from any scale one can reach is above the "
        "level and times of later jumps are of leading order."
    )


def _saddle(problem: Problem, start: Start, plateau: Plateau) -> Network:
    """The network of a plateau: active neurons, zeros for the others."""
    W, a = np.zeros((len(start.signs), problem.d)), np.zeros(len(start.signs))
    for unit in plateau.active:
        size = np.exp(unit.log) * np.sqrt(unit.share)
        W[unit.members], a[unit.members] = size[:, None] * unit.v, unit.s * size
    return Network(W, a, leak=problem.leak, bias=problem.bias)


def _loss(problem: Problem, net: Network, plateau: Plateau) -> float:
    f = problem.outputs(net)
    if plateau.diverging:
        return remaining_loss(problem, f, plateau.pull)
    return float(problem.value(f))


def _directions(problem: Problem, m: int, plateau: Plateau) -> Array:
    """Unit limit directions of all neurons on a plateau, zero rows for dead ones."""
    V = np.zeros((m, problem.d))
    for unit in plateau.active:
        V[unit.members] = unit.v
    for dormant in plateau.dormant:
        V[dormant.members] = dormant.v
    return V


class _Ending(NamedTuple):
    """Code, sentence, the rate of the best further neuron with its bound, and what is unproved."""

    code: str
    status: str
    gain: float
    bound: float
    found: tuple[str, ...] = ()


def _ending(problem: Problem, stairs: Staircase, losses: Array, late: Late | None) -> _Ending:
    """How the process ends."""
    if stairs.trouble:
        code = "budget" if stairs.trouble in BUDGET else "unresolved"
        return _Ending(code, f"Not followed to the end: {stairs.trouble}.", np.nan, np.nan)
    if stairs.decay:
        return _penalised_ending(problem, stairs, losses, late)
    if not np.any(stairs.pull):
        if stairs.diverging:
            words = "Every sample is fitted with a margin that grows for ever"
            return _Ending("infinity", words, 0.0, 0.0)
        words = "The process ends at an interpolator: the loss is 0."
        return _Ending("interpolates", words, 0.0, 0.0)
    small = 10.0 * NO_RATE * stairs.unit
    best = max_G(problem, stairs.pull) if late is None else _gain(problem, stairs.pull, small, late)
    level = f"loss {losses[-1]:.6g}"
    if best.upper_bound <= small:
        words = f"Ends at a global minimum, {level}: no neuron would gain."
        return _Ending("global", words, 0.0, best.upper_bound)
    if best.value <= small:
        words = f"a further neuron gains at most {best.upper_bound:.3g}, none was found that does"
        words = f"Ends at {level}; {words}."
        return _Ending("stationary", words, best.value, best.upper_bound, ("gain",))
    rate = f"at rate {best.value:.6g}"
    if late is not None and not best.exact:
        rate += f", the largest found (at most {best.upper_bound:.3g})"
    words = (
        f"Ends at a spurious stationary point, {level}: none of the dormant neurons grows, but one "
        f"more neuron would, {rate}."
    )
    found = () if best.exact else ("gain",)
    return _Ending("spurious", words, best.value, best.upper_bound, found)


def _penalised_ending(
    problem: Problem, stairs: Staircase, losses: Array, late: Late | None
) -> _Ending:
    """How the process ends with weight decay: a further neuron gains what is beyond the decay."""
    small, decay = 10.0 * NO_RATE * stairs.unit, stairs.decay
    level = decay + small
    best = max_G(problem, stairs.pull) if late is None else _gain(problem, stairs.pull, level, late)
    value, bound = max(best.value - decay, 0.0), max(best.upper_bound - decay, 0.0)
    what = f"of the penalised loss, loss {losses[-1]:.6g}"
    if not stairs.jumps:
        what += " (nothing grows against the decay)" if bound <= small else ""
    if bound <= small:
        words = f"Ends at a global minimum {what}: no neuron would grow against the decay."
        return _Ending("global", words, 0.0, bound)
    if value <= small:
        words = f"a further neuron gains at most {bound:.3g}, none was found that does"
        return _Ending(
            "stationary", f"Ends at a stationary point {what}; {words}.", value, bound, ("gain",)
        )
    words = (
        f"Ends at a spurious stationary point {what}: none of the dormant neurons grows, but one "
        f"more neuron would, at rate {value:.6g}."
    )
    return _Ending("spurious", words, value, bound, () if best.exact else ("gain",))


def _gain(problem: Problem, pull: Array, small: float, late: Late) -> MaxG:
    """The largest rate of a further neuron, the search widened while that can decide something.

    Ascent finds a value at once, branch and bound tightens the bound. With a value above ``small``
    or a bound below it the end is decided, and only a short search goes on from there.
    """
    nodes = 64

    def work(nodes: int) -> float:
        return (_SEARCH + _NODE * nodes) * problem.X.size

    while True:
        best = max_G(problem, pull, budget=nodes)
        decided = best.value > small or best.upper_bound <= small
        most = _REFINED if decided else _ALL_NODES
        if best.exact or nodes >= most or late(work(best.nodes), work(4 * nodes)):
            return best
        nodes = min(4 * nodes, _ALL_NODES)
