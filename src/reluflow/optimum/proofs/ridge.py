r"""Certificates of the penalised loss :math:`L + \frac\lambda2 |\theta|^2`: the least of any width.

Its value at a network is a number. From below, for any c with :math:`|G_c(w)| \le \lambda |w|`,

.. math:: L(F) + \tfrac\lambda2 |\theta|^2 \ge L(F) + \langle c, F \rangle
          \ge \inf_F\, [L(F) + \langle c, F \rangle],

and the infimum is known for each loss (:func:`reluflow.optimum.penalised.dual_value`).
"""

from __future__ import annotations

from reluflow.arrays import Array
from reluflow.network import Network
from reluflow.optimum.certificate_file import Certificate
from reluflow.optimum.penalised import dual_value
from reluflow.optimum.penalised_stationarity import PenalisedStationarity
from reluflow.optimum.proofs.attempt import (
    WIDENINGS,
    is_small,
    make_certificate,
    outputs_of,
    plain_weights,
    prove,
    tidy,
)
from reluflow.optimum.proofs.ends import more_neuron
from reluflow.optimum.proofs.optima import GAP, sign_tree, without_noise
from reluflow.optimum.ridge import Ridge
from reluflow.problem import Problem


def ridge_certificate(
    problem: Problem, found: Ridge, net: Network | None = None
) -> Certificate | None:
    """Of the least penalised loss, and of how near to it ``net`` is.

    Parameters
    ----------
    problem : Problem
    found : Ridge
        Whose dual gives the bound.
    net : Network, optional
        What the statement is about; by default the network found, and then None is returned unless
        network and bound meet.
    """
    if net is None and found.gap > GAP * abs(found.value):
        return None
    W, a, _ = plain_weights(found.network if net is None else net)
    decay, dual = found.weight_decay, without_noise(problem, found.dual)
    value = _penalised_loss(problem, W, a, decay)
    for widening in WIDENINGS if is_small(problem, a) else ():
        # rounding may have left max |G_c| a little above the decay
        c = tidy(dual * (1.0 - widening))
        tree = sign_tree(problem, c, decay)
        if tree is None:
            continue
        bound = dual_value(problem, c) - widening * value
        claim = {"weight_decay": decay, "value": value * (1.0 + widening), "lower_bound": bound}
        arrays = {"W": W, "a": a, "dual": c, "tree": tree[0], "slopes": tree[1]}
        made = prove("ridge", problem, claim, arrays)
        if made is not None:
            return made
    claim = {"weight_decay": decay, "value": value, "lower_bound": min(found.lower_bound, value)}
    return make_certificate("ridge", problem, claim, {"W": W, "a": a, "dual": dual}, "CHECKED")


def not_best_certificate(
    problem: Problem, net: Network, found: PenalisedStationarity
) -> Certificate | None:
    """That one more neuron would lower the penalised loss of ``net``; None where none would."""
    if not found.gain > 0.0:
        return None
    W, a, _ = plain_weights(net)
    decay = found.weight_decay
    value, f = _penalised_loss(problem, W, a, decay), outputs_of(problem, W, a)
    for widening in (*WIDENINGS, 0.0) if is_small(problem, a) else (0.0,):
        vector, claim = more_neuron(problem, found, f, widening, cost=decay)
        claim = {"weight_decay": decay, "value": value * (1.0 + widening), **claim}
        arrays = {"W": W, "a": a, "vector": vector}
        made = prove("ridge-not-best", problem, claim, arrays) if widening else None
        if made is not None:
            return made
    return (
        make_certificate("ridge-not-best", problem, claim, arrays, "CHECKED")
        if claim["gain"] > 0.0
        else None
    )


def _penalised_loss(problem: Problem, W: Array, a: Array, decay: float) -> float:
    """The loss plus (decay/2) |theta|^2."""
    norm2 = float((W**2).sum() + (a**2).sum())
    return float(problem.value(outputs_of(problem, W, a))) + 0.5 * decay * norm2
