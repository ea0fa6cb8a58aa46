"""The process that gradient flow tends to as its start shrinks: the public function."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from reluflow.arrays import Array
from reluflow.errors import ReluflowError
from reluflow.landscape.bound import max_G
from reluflow.network import Network
from reluflow.prediction.balance import balance_words
from reluflow.prediction.crew import NO_RATE
from reluflow.prediction.process import ON_BALANCE, JumpProcess, Lazy
from reluflow.prediction.staircase import BUDGET, Plateau, Staircase
from reluflow.prediction.starts import Start, from_directions, from_infinite_width, from_network
from reluflow.prediction.transit import remaining_loss
from reluflow.problem import Problem
from reluflow.runtime.progress import Interrupt

_AT_REST = 20.0  # relaxation times that a plateau lasts if a run is to come to rest on it
_RESTLESS = 1000.0  # log(1/scale) beyond which a plateau is said to need a very small scale
_FITTED = 1e-20  # loss, relative to the silent network's, that counts as interpolation


def limit(
    problem: Problem,
    net: Network | None = None,
    *,
    directions: ArrayLike | None = None,
    signs: ArrayLike | None = None,
    tie: float = 1e-9,
    max_jumps: int = 10_000,
    max_seconds: float | None = None,
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
    max_jumps : int
        Budget of jumps.
    max_seconds : float, optional
        Budget of time, looked at now and then.

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
    problem.check_kinks("limit")
    if net is not None and directions is not None:
        raise ReluflowError("give either net or directions, not both")
    if net is not None:
        start = from_network(problem, net)
    elif directions is not None:
        start = from_directions(problem, directions, signs)
    elif signs is not None:
        raise ReluflowError("signs were given without directions: give directions= as well")
    else:
        start = from_infinite_width(problem)
    stairs = Staircase(problem, start.units, dict(start.dead), start.relaxation)
    with Interrupt() as interrupt:
        began = time.monotonic()

        def tick() -> bool:
            late = max_seconds is not None and time.monotonic() - began > max_seconds
            return interrupt.requested or late

        stairs.run(max_jumps, tie, tick)
    return _result(problem, start, stairs)


def _result(problem: Problem, start: Start, stairs: Staircase) -> JumpProcess:
    m, plateaus, jumps = len(start.signs), stairs.plateaus, stairs.jumps
    rates = np.zeros((len(plateaus), m))
    exponents = np.full((len(plateaus), m), -1.0)
    active = np.zeros((len(plateaus), m), dtype=bool)
    constants = np.full((len(plateaus), m), np.nan)
    for i, plateau in enumerate(plateaus):
        if i:
            exponents[i] = exponents[i - 1] + rates[i - 1] * (plateau.start - plateaus[i - 1].start)
        for _, rate, exponent, members, K in plateau.dormant:
            rates[i, members], exponents[i, members] = rate, exponent
            if not plateau.diverging:
                constants[i, members] = K
        for *_, members, _share in plateau.active:
            active[i, members], exponents[i, members] = True, 0.0
    networks = Lazy(len(plateaus), lambda i: _saddle(problem, start, plateaus[i]))
    losses = np.array(
        [_loss(problem, net, plateau) for net, plateau in zip(networks, plateaus, strict=True)]
    )
    ending, status, gain, bound = _ending(problem, stairs, losses)
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

        direction, words = limit_direction(problem, networks[-1])
        status += words
        notes.append(
            "neurons that are still dormant: they would be felt only when log log t is of the "
            "order of log(1/scale)"
        )
    balance = ""
    if ending not in ("budget", "unresolved"):
        starts, pulls = [each.start for each in plateaus], [each.pull for each in plateaus]
        who = [jump.members for jump in jumps]
        balance = balance_words(problem, stairs.shrunk, who, starts, pulls)
    if balance:
        ending, status = f"{ending}{ON_BALANCE}", f"{status} {balance}"
    status += _restless(plateaus)
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
        balance=balance,
        weights=start.weights,
        offsets=np.array([jump.offset for jump in jumps]),
        constants=constants,
        relaxation=np.array([plateau.relaxation for plateau in plateaus]),
        residuals=np.array([plateau.residual for plateau in plateaus]),
    )


def _restless(plateaus: list[Plateau]) -> str:
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


def _saddle(problem: Problem, start: Start, plateau: Plateau) -> Network:
    """The network of a plateau: active neurons, zeros for the others."""
    W, a = np.zeros((len(start.signs), problem.d)), np.zeros(len(start.signs))
    for v, s, log, members, share in plateau.active:
        size = np.exp(log) * np.sqrt(share)
        W[members], a[members] = size[:, None] * v, s * size
    return Network(W, a, leak=problem.leak, bias=problem.bias)


def _loss(problem: Problem, net: Network, plateau: Plateau) -> float:
    f = problem.outputs(net)
    if plateau.diverging:
        return remaining_loss(problem, f, plateau.pull)
    return float(problem.value(f))


def _directions(problem: Problem, m: int, plateau: Plateau) -> Array:
    """Unit limit directions of all neurons on a plateau, zero rows for dead ones."""
    V = np.zeros((m, problem.d))
    for v, _, _, members, _ in plateau.active:
        V[members] = v
    for v, _, _, members, _ in plateau.dormant:
        V[members] = v
    return V


def _ending(problem: Problem, stairs: Staircase, losses: Array) -> tuple[str, str, float, float]:
    """Code, sentence, and the rate of the best further neuron with its upper bound."""
    if stairs.trouble:
        code = "budget" if stairs.trouble in BUDGET else "unresolved"
        return code, f"Not followed to the end: {stairs.trouble}.", np.nan, np.nan
    if not np.any(stairs.pull):
        if stairs.diverging:
            return "infinity", "Every sample is fitted with a margin that grows for ever", 0.0, 0.0
        return "interpolates", "The process ends at an interpolator: the loss is 0.", 0.0, 0.0
    best = max_G(problem, stairs.pull)
    level = f"loss {losses[-1]:.6g}"
    small = NO_RATE * stairs.unit
    if best.upper_bound <= 10.0 * small:
        return (
            "global",
            f"Ends at a global minimum, {level}: no neuron would gain.",
            0.0,
            (best.upper_bound),
        )
    if best.value <= 10.0 * small:
        words = f"a further neuron gains at most {best.upper_bound:.3g}, none was found that does"
        return "stationary", f"Ends at {level}; {words}.", best.value, best.upper_bound
    return (
        "spurious",
        f"Ends at a spurious stationary point, {level}: none of the dormant neurons grows, but one "
        f"more neuron would, at rate {best.value:.6g}.",
        best.value,
        best.upper_bound,
    )
