"""Initial weights: every law the five papers start from, by one function."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from reluflow.arrays import Array, Rng, generator_of, real_number
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.network.network import Network
from reluflow.problem import Problem

_KEEP_IN_LOG = math.log(1e-100)  # below this scale, weights are kept in log_scale


def _balanced(rng: np.random.Generator, m: int, d: int) -> tuple[Array, Array]:
    W = rng.standard_normal((m, d))
    return W, np.linalg.norm(W, axis=1)


def _sphere(rng: np.random.Generator, m: int, d: int) -> tuple[Array, Array]:
    W, norms = _balanced(rng, m, d)
    return W / norms[:, None], np.ones(m)


def _ball(rng: np.random.Generator, m: int, d: int) -> tuple[Array, Array]:
    W, a = _sphere(rng, m, d)
    return W * rng.random((m, 1)) ** (1.0 / d), a


def _box(rng: np.random.Generator, m: int, d: int) -> tuple[Array, Array]:
    return rng.uniform(-1.0, 1.0, (m, d)), np.full(m, math.sqrt(d))


# laws with |a| given and a free sign; sizes are divided by sqrt(m) under "sqrt_m"
_SIGNED: dict[str, Callable[[np.random.Generator, int, int], tuple[Array, Array]]] = {
    "balanced": _balanced,
    "sphere": _sphere,
    "dominated": _ball,
    "dominated_box": _box,
}
# laws with independent entries: (distribution, bound or std of W, of a) from d and m
_INDEPENDENT: dict[str, tuple[str, Callable[[int, int], tuple[float, float]]]] = {
    "gaussian": ("normal", lambda d, m: (1.0, 1.0)),
    "he": ("normal", lambda d, m: (math.sqrt(2 / d), math.sqrt(2 / m))),
    "he_uniform": ("uniform", lambda d, m: (math.sqrt(6 / d), math.sqrt(6 / m))),
    "pytorch": ("uniform", lambda d, m: (1 / math.sqrt(d), 1 / math.sqrt(m))),
}
KINDS = (*_SIGNED, *_INDEPENDENT)
_FAN_IN = ("he", "he_uniform", "pytorch")


@check_arguments
def initialize(
    problem: Problem,
    m: int,
    scale: float | None = None,
    kind: str = "balanced",
    rng: Rng = None,
    *,
    log_scale: float | None = None,
    normalize: str | None = None,
    signs: str | ArrayLike = "random",
    outer_factor: float = 1.0,
) -> Network:
    r"""Draw the initial weights of ``m`` neurons.

    With s = scale / sqrt(m) (``normalize="sqrt_m"``) or s = scale (``normalize="none"``):

    ===============  ===================================================  =======================
    kind             law of one neuron                                    used by
    ===============  ===================================================  =======================
    balanced         w = s N(0, I), a = +-|w|                             BF24; theory of LLWA21
                                                                          (hinted) and MMV24
    sphere           w uniform on the sphere of radius s, a = +-s         TLB26
    dominated        w uniform in the ball of radius s, a = +-s           BF24's text
    dominated_box    w uniform in the box [-s, s]^d, a = +-s sqrt(d)      BF24's code
    gaussian         w = s N(0, I), a = s N(0, outer_factor^2),           BF24, MMV24, LLWA21
                     unbalanced
    he               w = scale N(0, 2/d), a = scale N(0, 2/m)             LLWA21
    he_uniform       w = scale U(+-sqrt(6/d)), a = scale U(+-sqrt(6/m))
    pytorch          w = scale U(+-1/sqrt d), a = scale U(+-1/sqrt m)     TK24, TLB26's "He"
    ===============  ===================================================  =======================

    TK24's theory asks for |a| = |w| alone, whatever the directions. With K outputs +- is a
    direction drawn uniformly from the sphere of R^K, and the fan-in laws draw all entries of a.

    Parameters
    ----------
    problem : Problem
        Gives the number of features, the activation and the bias.
    m : int
        Number of neurons.
    scale : float, optional
        Size of the initial weights; 1e-3 when neither it nor ``log_scale`` is given.
    kind : str
        Law, a name of the table.
    rng : int, Generator or SeedSequence, optional
        Source of randomness; a seed gives the same weights every time.
    log_scale : float, optional
        Natural logarithm of the scale, for scales no float can hold (-1000 is e^-1000).
    normalize : {"sqrt_m", "none"}, optional
        Whether ``scale`` is divided by sqrt(m), which makes the size of the whole network
        independent of its width (BF24's convention). Default "sqrt_m" for the laws whose table
        row has s, "none" for the fan-in laws, which already depend on m.
    signs : "random", +1, -1 or array of m signs
        Signs of the outer weights, for the kinds with a = +-.
    outer_factor : float
        Extra factor on the outer weights of the kinds with independent entries (LLWA21's c_a).

    Returns
    -------
    Network
        For scales below 1e-100 or given by ``log_scale``, weights near 1 and the scale in
        ``log_scale``; otherwise plain weights.

    Examples
    --------
    >>> import numpy as np
    >>> net = initialize(Problem(np.eye(2), np.ones(2)), 4, scale=1e-3, rng=0)
    >>> bool(np.allclose(abs(net.a), np.linalg.norm(net.W, axis=1)))
    True
    """
    if isinstance(m, bool) or not isinstance(m, int | np.integer) or m < 1:
        raise ReluflowError(f"m must be a whole number of at least 1 neuron, got {m!r}")
    if kind not in KINDS:
        raise ReluflowError(f"unknown kind {kind!r}: expected one of {', '.join(KINDS)}")
    if normalize is None:
        normalize = "none" if kind in _FAN_IN else "sqrt_m"
    if normalize not in ("sqrt_m", "none"):
        raise ReluflowError(f"normalize must be 'sqrt_m' or 'none', got {normalize!r}")
    log_size = _log_size(scale, log_scale)
    if normalize == "sqrt_m":
        log_size -= 0.5 * math.log(m)
    generator = generator_of(rng)
    if kind in _SIGNED:
        if outer_factor != 1.0:
            raise ReluflowError(
                f"kind {kind!r} fixes |a| by the law of w: outer_factor applies to "
                f"{', '.join(_INDEPENDENT)} only"
            )
        W, size = _SIGNED[kind](generator, m, problem.d)
        a = (
            size * _draw_signs(signs, m, generator)
            if not problem.several
            else (size[:, None] * _draw_outer(signs, m, problem.K, generator))
        )
    else:
        if not (isinstance(signs, str) and signs == "random"):
            raise ReluflowError(
                f"kind {kind!r} draws its outer weights: signs apply to {', '.join(_SIGNED)} only"
            )
        law, sizes = _INDEPENDENT[kind]
        inner, outer = sizes(problem.d, m)
        if law == "normal":
            W = inner * generator.standard_normal((m, problem.d))
            a = outer * generator.standard_normal((m, *problem.y.shape[1:]))
        else:
            W = generator.uniform(-inner, inner, (m, problem.d))
            a = generator.uniform(-outer, outer, (m, *problem.y.shape[1:]))
        a = outer_factor * a
    return _at_size(problem, W, a, log_size, log_scale is not None)


@check_arguments
def axis_start(
    problem: Problem,
    scales: Sequence[float] = (1e-4, 1e-5, 1e-7, 1e-6),
    signs: Sequence[float] = (1.0, -1.0, 1.0, -1.0),
) -> Network:
    """Four balanced neurons along e1, e2, -e1, -e2 (TK24's explicit starts, Figures 1, 5-7).

    Parameters
    ----------
    problem : Problem
        With at least two features.
    scales : sequence of four numbers
        The norms.
    signs : sequence of four numbers
        Signs of the outer weights: by default +1 on the first axis and -1 on the second, the
        labels of :func:`reluflow.datasets.symmetric_xor`.

    Returns
    -------
    Network
    """
    size = np.asarray(scales, dtype=float)
    sign = np.asarray(signs, dtype=float)
    signed = sign.shape == (4,) and np.isin(sign, (-1.0, 1.0)).all()
    if size.shape != (4,) or not (size > 0).all() or not signed:
        raise ReluflowError(
            "axis_start needs four positive scales and four signs that are +1 or -1, "
            f"got {scales} and {signs}"
        )
    if problem.d < 2:
        raise ReluflowError("axis_start needs at least two features, got d=1")
    W = np.zeros((4, problem.d))
    W[[0, 1, 2, 3], [0, 1, 0, 1]] = np.array([1.0, 1.0, -1.0, -1.0]) * size
    return Network(W, sign * size, **_look(problem))


def _log_size(scale: float | None, log_scale: float | None) -> float:
    if scale is not None and log_scale is not None:
        raise ReluflowError("give scale or log_scale, not both")
    if log_scale is not None:
        log_scale = real_number(log_scale, "log_scale")
        if not np.isfinite(log_scale):
            raise ReluflowError(f"log_scale must be finite, got {log_scale}")
        return log_scale
    scale = 1e-3 if scale is None else real_number(scale, "scale")
    if scale == 0.0:
        raise ReluflowError(
            "scale is 0, so every weight would be zero and never move: use a small positive "
            "scale, log_scale= for one below 1e-300, or limit() for the limit of scale to 0"
        )
    if not (np.isfinite(scale) and scale > 0):
        raise ReluflowError(f"scale must be a positive number, got {scale}")
    return math.log(scale)


def _draw_signs(signs: str | ArrayLike, m: int, rng: np.random.Generator) -> Array:
    if isinstance(signs, str):
        if signs != "random":
            raise ReluflowError(f"signs must be 'random', +1, -1 or an array, got {signs!r}")
        return rng.choice(np.array([-1.0, 1.0]), m)
    given = np.asarray(signs, dtype=float)
    if given.shape not in ((), (m,)) or not np.isin(given, (-1.0, 1.0)).all():
        raise ReluflowError(
            f"signs must be +1 or -1, one for all or one for each of the {m} neurons"
        )
    return np.broadcast_to(given, (m,))


def _draw_outer(signs: str | ArrayLike, m: int, K: int, rng: np.random.Generator) -> Array:
    """Unit rows (m, K), the signs of several outputs; for K = 1 the signs themselves."""
    if K == 1:
        return np.array(_draw_signs(signs, m, rng))[:, None]
    if not (isinstance(signs, str) and signs == "random"):
        raise ReluflowError(f"signs are for one output, this problem has {K}: leave them random")
    B = rng.standard_normal((m, K))
    return np.asarray(B / np.linalg.norm(B, axis=1, keepdims=True))


def _at_size(problem: Problem, W: Array, a: Array, log_size: float, keep: bool) -> Network:
    if keep or log_size < _KEEP_IN_LOG:
        scale = np.full(len(a), log_size)
        return Network(W, a, log_scale=scale, **_look(problem))
    size = math.exp(log_size)
    return Network(size * W, size * a, **_look(problem))


def _look(problem: Problem) -> dict[str, Any]:
    """Activation and bias, for the network of a problem."""
    return {"leak": problem.leak, "bias": problem.bias, "smoothing": problem.smoothing}
