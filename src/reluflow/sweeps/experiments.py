"""Tasks of the ready sweeps that are more than one run."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.errors import ReluflowError
from reluflow.network import initialize
from reluflow.problem import Problem, datasets


def xor_capture(m: int, rng: np.random.Generator, points: Any = None) -> dict[str, Any]:
    r"""Whether m balanced neurons, between them, capture all four directions of XOR data.

    A direction +-e1 or +-e2 is captured when early alignment takes a neuron of the right sign to
    it (:func:`reluflow.align`, exact). ``bound`` is the lower bound :math:`1 - 4 h^m` on the
    probability ([TK24]_ Lemma 5.3, whose printed product :math:`(1 - h^m)^4`, column ``printed``,
    is no lower bound), with :math:`h = 1 - \mathrm{Vol}(A) / (2 \mathrm{Vol}(S))` and A the cap
    :math:`x_1 \ge \delta` from which every neuron is captured.

    Parameters
    ----------
    m : int
        Number of neurons.
    rng : Generator
        Draws the start.
    points : array, optional
        Points whose orbit the data are; within 1/6 of e1, as the lemma needs, by default.
    """
    from scipy.special import betainc

    from reluflow.landscape.align import align

    problem = datasets.xor_orbit(TIGHT if points is None else points)
    net = initialize(problem, m, kind="sphere", rng=rng)
    found = align(problem, net, paths=False)
    going = found.direction[found.growing]
    axes = np.vstack([np.eye(problem.d)[:2], -np.eye(problem.d)[:2]])
    caught = int((going @ axes.T > 1 - 1e-9).any(axis=0).sum())
    plus = problem.X[problem.y > 0]
    delta = float(np.linalg.norm(np.abs(plus) - np.eye(problem.d)[0], axis=1).max())
    h = 1 - float(betainc((problem.d - 1) / 2, 0.5, 1 - delta**2)) / 4
    return {
        "captured": caught,
        "all_four": caught == 4,
        "bound": max(0.0, 1 - 4 * h**m),
        "printed": (1 - h**m) ** 4,
        "delta": delta,
    }


TIGHT = ((0.93, 0.05, 0.04), (0.96, 0.04, -0.03), (0.98, 0.03, 0.06))


def jump_error(
    log10_scale: float, rng: np.random.Generator, n: int = 6, d: int = 3, m: int = 8
) -> dict[str, Any]:
    r"""Jump times of a gradient flow on random data against those of the limit process.

    With L = log(1/scale), ``error`` is the largest :math:`|t_i / L - \tau_i| / \tau_i` over the
    jumps i, :math:`t_i` the time at which the loss of :func:`reluflow.flow` has fallen half of the
    way from one plateau to the next and :math:`\tau_i` from :func:`reluflow.limit`; it falls like
    C/L.
    ``corrected`` is the same for :math:`\tau_i + C_i / L` with the known constants :math:`C_i`.

    Parameters
    ----------
    log10_scale : float
        Scale of the start, its decimal logarithm.
    rng : Generator
        Draws Gaussian data, labels and the start.
    n, d, m : int
        Samples, features and neurons.
    """
    from scipy.special import logsumexp

    from reluflow.gradientflow.flow import flow
    from reluflow.prediction.limit import limit

    problem = Problem(rng.standard_normal((n, d)), rng.standard_normal(n))
    net = initialize(problem, m, log_scale=0.0, kind="sphere", normalize="none", rng=rng)
    process = limit(problem, net)
    if process.n_jumps == 0 or process.offsets is None or not np.isfinite(process.offsets).all():
        raise ReluflowError("the limit process of this draw has no jumps with known constants")
    L = -log10_scale * math.log(10.0)
    predicted = process.jump_times(log_scale=-L)
    end = 1.5 * float(predicted[-1]) + 200.0
    around = np.concatenate([np.linspace(-60.0, 60.0, 601), np.linspace(-2.0, 2.0, 401)])
    near = (predicted[:, None] + around).ravel()
    times = np.unique(np.clip([*near, *np.linspace(0.0, end, 2001)], 0.0, end))
    run = flow(problem, net.scaled(-L), t_end=end, save=times, observe=["log_norms"])
    halves = 0.5 * (process.losses[:-1] + process.losses[1:])
    t = np.array([_first_passage(run.times, -np.asarray(run.loss), -half) for half in halves])
    grown = all(
        logsumexp(2.0 * run["log_norms"][:, group], axis=1).max()
        >= logsumexp(2.0 * process.networks[i + 1].log_norms[group]) - math.log(2.0)
        for i, group in enumerate(process.neurons)
    )
    if not (np.isfinite(t).all() and grown):
        raise ReluflowError(
            "a group that jumps in the limit does not grow at this scale: its jumps come in "
            "another order"
        )
    raw = np.abs(t / L - process.times) / process.times
    return {
        "inverse_log": 1.0 / L,
        "jumps": process.n_jumps,
        "error": float(raw.max()),
        "corrected": float((np.abs(t - predicted) / (L * process.times)).max()),
        "least_gap": float(np.min(process.gaps_at(log_scale=-L))),
        "ending": process.ending,
    }


def _first_passage(t: Array, value: Array, level: float) -> float:
    """First time at which a value is above a level, interpolated between records."""
    i = int(np.argmax(value >= level))
    if i == 0:
        return math.nan
    share = (level - value[i - 1]) / (value[i] - value[i - 1])
    return float(t[i - 1] + share * (t[i] - t[i - 1]))


def nothing(rng: np.random.Generator) -> dict[str, Any]:
    """One random number: a point that costs nothing, to measure what sweeping costs."""
    return {"value": float(rng.random())}
