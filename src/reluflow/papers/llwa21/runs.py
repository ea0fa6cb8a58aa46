"""[LLWA21]_: sizes of networks, embeddings of few neurons in many, and runs to large margins."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.special import log_expit

from reluflow.arrays import Array
from reluflow.claims.claim import predicate
from reluflow.claims.evidence import Evidence, once
from reluflow.claims.verdict import Hypothesis
from reluflow.errors import MissingEvidence
from reluflow.gradientflow.flow import flow
from reluflow.gradientflow.stops import loss_below
from reluflow.kernels.codes import BRANCH
from reluflow.network import Network, initialize
from reluflow.optimum.max_margin import NetworkMargin
from reluflow.problem import Problem, datasets
from reluflow.trajectory.save import every

RTOL = 1e-10  # of flows that are compared with a limit


def sides(problem: Problem) -> tuple[Array, Array, Array]:
    """mu, mu+, mu-: means of y_i x_i, with slopes 1 on one class and leak on the other."""
    Z = problem.y[:, None] * problem.X / problem.n
    plus = np.where(problem.y > 0, 1.0, problem.leak)
    minus = np.where(problem.y > 0, problem.leak, 1.0)
    return Z.sum(axis=0), plus @ Z, minus @ Z


def in_unit_ball(problem: Problem) -> Problem:
    """The data divided by max |x|, as the paper assumes."""
    radius = float(problem.norms.max())
    return Problem(problem.X / radius, problem.y, problem.loss, problem.leak, problem.reduction)


def direction(net: Network) -> Array:
    """theta / |theta|, all w first."""
    W, a = net.weights()
    theta = np.append(W.ravel(), a)
    return np.asarray(theta / np.linalg.norm(theta))


def network_of(theta: Array, m: int, leak: float = 0.0) -> Network:
    """The network of m neurons with these weights, all w first."""
    return Network(theta[:-m].reshape(m, -1), theta[-m:], leak=leak)


def m_distance(net: Network, other: Network) -> float:
    """max_j max(|w_j - w'_j|, |a_j - a'_j|)."""
    (W, a), (V, b) = net.weights(), other.weights()
    return float(max(np.linalg.norm(W - V, axis=1).max(), np.abs(a - b).max()))


def sup_error(problem: Problem, net: Network, limit: Callable[[Array], Array]) -> float:
    """Largest |f/|theta|^2 - limit| over the largest |limit|, on the unit sphere.

    Inputs are random ones and the directions of the samples; both sides are homogeneous in x.
    """
    random = np.random.default_rng(0).standard_normal((4000, problem.d))
    inputs = np.vstack([random, problem.X[problem.X.any(axis=1)]])
    inputs /= np.linalg.norm(inputs, axis=1, keepdims=True)
    W, a = net.scaled(-net.log_m_norm).weights()
    f = Network(W, a).evaluate(inputs, problem.leak) / (np.sum(W**2) + np.sum(a**2))
    ends = limit(inputs)
    return float(np.abs(f - ends).max() / np.abs(ends).max())


def least_margin(problem: Problem, net: Network) -> float:
    """q_min = min_i y_i f(x_i)."""
    return float(np.min(problem.y * problem.outputs(net)))


def best_network(found: NetworkMargin) -> Network:
    """The network of largest margin; raises :class:`MissingEvidence` where none separates."""
    if found.network is None:
        raise MissingEvidence("no network separates these data: expected separable ones")
    return found.network


def margin(problem: Problem, net: Network) -> float:
    """q_min / |theta|^2."""
    return least_margin(problem, net) / net.norm2


def flow_until(
    problem: Problem, net: Network, q: float, save: Any = None, **options: Any
) -> Evidence:
    """The flow in the clock of the loss until q_min >= q, which L = e^{-q}/n ensures."""
    stop = loss_below(log=-q - float(np.log(problem.n)))
    saved = [0.0] if save is None else save
    return Evidence.of(problem, flow(problem, net, clock="loss", stop=stop, save=saved, **options))


def states_at(problem: Problem, start: Network, times: Array | list[float]) -> Evidence:
    """The flow from a start, recorded at the given times."""
    run = flow(problem, start, t_end=float(times[-1]), save=list(times), rtol=RTOL)
    return Evidence.of(problem, run)


@cache
def recorded_run(seed: int, m: int, q_min: float, kind: str = "gaussian") -> Evidence:
    """Symmetric data, a start of size 1e-4, recorded all the way to a large margin."""
    problem = datasets.symmetric_separable(rng=seed)
    net = initialize(problem, m, scale=1e-4, kind=kind, normalize="none", rng=seed)
    return flow_until(problem, net, q_min, save=every(0.25))


@once
def margins_along(evidence: Evidence) -> Array:
    """q_min of every record."""
    return np.array([least_margin(evidence.problem, net) for net in evidence.path()])


def decade(evidence: Evidence) -> tuple[int, int]:
    """The last record with q_min from 1 to a tenth of the last one's, and the last one."""
    q = margins_along(evidence)
    return int(np.flatnonzero((q >= 1) & (q <= q[-1] / 10))[-1]), len(q) - 1


@predicate("there are records with q_min from 1 to a tenth of the last one's")
def has_decade(evidence: Evidence) -> tuple[bool, str]:
    """What tends to a limit is compared over the last decade of q_min."""
    q = margins_along(evidence)
    small = q[(q >= 1) & (q <= q[-1] / 10)]
    if small.size:
        return True, f"q_min {small[-1]:.4g}, and {q[-1]:.4g} at the end"
    return False, f"none of {q.size} records has q_min from 1 to {q[-1] / 10:.4g}: save more often"


def one_neuron_limit(problem: Problem, w: Array, sign: int = 1) -> Callable[[Array], Array]:
    """sign phi(sign <w, x>)/2: f/|theta|^2 of one balanced neuron along a unit w."""

    def limit(inputs: Array) -> Array:
        s = sign * (inputs @ w)
        return np.asarray(sign * np.maximum(s, problem.leak * s) / 2)

    return limit


def branchings(evidence: Evidence) -> int:
    """Moments of the run at which it could have gone on otherwise, as the flow counts them."""
    kinds = evidence.trajectory().events.get("kind", np.empty(0))
    return int(np.sum(np.asarray(kinds) == BRANCH))


def none_met(several: int) -> Hypothesis:
    """The hypothesis that the paths looked at are the only ones."""
    return Hypothesis("no branching was met", several == 0, f"{several} such moments")


def early_rate(problem: Problem, printed: bool = False) -> tuple[float, Array]:
    """lambda0 = (1 + leak)/4 |mu| of symmetric data, and mu/|mu|; printed with a 2 for the 4."""
    mu = sides(problem)[0]
    size = float(np.linalg.norm(mu))
    return (1 + problem.leak) / (2 if printed else 4) * size, mu / size


def embed(b: Array, pair: Network) -> Network:
    """pi_b: copies b_j/b+ of neuron 1 where b_j > 0, b_j/b- of neuron 2 where b_j < 0."""
    up, down = np.maximum(b, 0.0), np.minimum(b, 0.0)
    shares = np.zeros((b.size, 2))
    for k, (part, sign) in enumerate(((up, 1.0), (down, -1.0))):
        size = sign * float(np.linalg.norm(part))
        if size != 0.0:
            shares[:, k] = part / size
    W, a = pair.weights()
    return Network(shares @ W, shares @ a, leak=pair.leak, bias=pair.bias)


def two_neurons(b: Array, mubar: Array, leak: float) -> Network:
    """theta-hat of a good b: (b+ mubar, b- mubar, b+, b-)."""
    sizes = np.array([np.linalg.norm(np.maximum(b, 0.0)), -np.linalg.norm(np.minimum(b, 0.0))])
    return Network(np.outer(sizes, mubar), sizes, leak=leak)


def log_sums(problem: Problem, f: Array) -> tuple[float, float]:
    """nL, and log(1 - e^{-nL}), by which the slopes of the losses are divided in grad gt."""
    log_S = float(problem.log_value(f)) + np.log(problem.n)
    S = float(np.exp(log_S))
    return S, float(np.log(-np.expm1(-S))) if S > 1e-8 else log_S - S / 2


def smoothed_margin(problem: Problem, net: Network) -> tuple[float, float, float]:
    r"""gt and |theta| times the radial and the tangential part of a subgradient of gt.

    gt = Q/\|theta\|^2 with Q = -log(e^{nL} - 1), whose gradient is sum_i p_i grad q_i with
    p_i = sigmoid(-q_i)/(1 - e^{-nL}); slope leak at kinks.
    """
    f = problem.outputs(net)
    S, log_one = log_sums(problem, f)
    p = np.exp(log_expit(-problem.y * f) - log_one)
    W, a = net.weights()
    s = problem.X @ W.T
    weights = (p * problem.y)[:, None] * np.where(s > 0, 1.0, problem.leak)
    grad = np.append(((weights * a).T @ problem.X).ravel(), np.sum(weights * s, axis=0))
    theta = np.append(W.ravel(), a)
    size = float(np.linalg.norm(theta))
    value = -(S + log_one) / size**2
    along = float(grad @ theta) / size
    across = float(np.linalg.norm(grad - along * theta / size))
    return value, abs(along / size - 2 * value), across / size
