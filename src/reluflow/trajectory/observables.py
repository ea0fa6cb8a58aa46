"""Numbers read off a network: what to record instead of whole states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from reluflow.arrays import Array
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.problem.losses import gaps


@dataclass(frozen=True)
class Observable:
    """A named function of (problem, network) with the dimensions of its value.

    Parameters
    ----------
    name : str
    measure : callable
        Takes (problem, network).
    dims : tuple of str
        Names of the dimensions of its value; none for a number.
    of_outputs : bool
        ``measure`` takes (problem, f) instead, f the outputs at the samples: then a run need not
        spell out its neurons to record it.
    per_output : bool
        With several outputs its value has one dimension more, the last.
    """

    name: str
    measure: Callable[[Problem, Any], Any]
    dims: tuple[str, ...] = ()
    of_outputs: bool = False
    per_output: bool = False

    def dims_for(self, problem: Problem) -> tuple[str, ...]:
        """Dimensions of its value for a problem."""
        return (*self.dims, "output") if self.per_output and problem.several else self.dims

    def __call__(self, problem: Problem, net: Network) -> Array:
        given = problem.outputs(net) if self.of_outputs else net
        return np.asarray(self.measure(problem, given), dtype=float)


def slopes(problem: Problem, net: Network) -> Array:
    """phi'(<w_j, x_k>), shape (n, m), with phi'(0) = leak."""
    if problem.smoothing:
        problem.check_kinks("a slope for each sample")
    return np.where(problem.X @ net.W.T > 0, 1.0, problem.leak)


def velocity(problem: Problem, net: Network) -> tuple[Array, Array]:
    r"""Minus the gradient of L as (W', a'), in units of each neuron's exp(log_scale).

    :math:`w_j' = a_j D_j,\ a_j' = \langle w_j, D_j\rangle,\ D_j = \sum_k \phi' c_k x_k`; with K
    outputs :math:`w_j' = M_j a_j,\ a_j' = M_j^\top w_j,\ M_j = \sum_k \phi' x_k c_k^\top`.
    """
    c = problem.pull_at(problem.outputs(net))
    if problem.several:
        s = slopes(problem, net)
        dW = (s * (c @ net.a.T)).T @ problem.X
        return dW, (s * (problem.X @ net.W.T)).T @ c
    if problem.smoothed is not None:
        D = problem.smoothed.pulled(net.W, problem.X, c)
    else:
        D = (slopes(problem, net) * c[:, None]).T @ problem.X
    return net.a[:, None] * D, np.sum(net.W * D, axis=1)


def _norms2(net: Network) -> Array:
    return np.exp(2 * net.log_norms)


def _relative_weights(net: Network) -> Array:
    """W with the largest neuron at scale 1, for scale-free matrix measures."""
    W = net.directions
    log_norms = net.log_norms
    return W * np.exp(log_norms - np.max(log_norms))[:, None]


def _stable_rank(problem: Problem, net: Network) -> float:
    s = np.linalg.svd(_relative_weights(net), compute_uv=False)
    return float(np.sum(s**2) / s[0] ** 2) if s[0] > 0 else np.nan


def _spectral_norm(problem: Problem, net: Network) -> float:
    top = float(np.linalg.norm(_relative_weights(net), 2))
    return top * float(np.exp(np.max(net.log_norms)))


def _normalized_margin(problem: Problem, net: Network) -> float:
    """min_k y_k f(x_k) / |theta|^2, computed at unit size."""
    largest = float(np.max(np.maximum(net.log_norms, net.log_outer)))
    unit = net.scaled(-largest)
    norm2 = float(np.sum(_norms2(unit)) + np.sum(np.exp(2 * unit.log_outer)))
    return margin_of(problem, problem.outputs(unit)) / norm2


def margin_of(problem: Problem, f: Array) -> float:
    """min_k y_k f(x_k); with classes min_k of f_y less the largest other output."""
    if not problem.loss.classes:
        return float(np.min(problem.y * f))
    gap = np.where(problem.y > 0.0, -np.inf, gaps(f, problem.y))
    return float(-np.max(gap))


def accuracy_of(problem: Problem, f: Array) -> float:
    """Share of samples with y_k f(x_k) > 0; with classes of those whose output is the largest."""
    if problem.several and problem.classes is not None:
        return float(np.mean(np.argmax(f, axis=1) == problem.labels))
    return float(np.mean(problem.y * f > 0))


def outer_squares(net: Network) -> Array:
    """a_j^2, or |a_j|^2 of a row of several outputs, in units of exp(2 log_scale)."""
    squares = np.square(net.a)
    return np.asarray(np.sum(squares, axis=1) if net.several else squares)


def _balance(problem: Problem, net: Network) -> Array:
    """(a_j^2 - |w_j|^2) / (a_j^2 + |w_j|^2): 0 balanced, 1 all in a, -1 all in w."""
    a2, w2 = outer_squares(net), np.sum(np.square(net.W), axis=1)
    total = a2 + w2
    return np.asarray(np.divide(a2 - w2, total, out=np.zeros_like(total), where=total > 0))


def _invariant(problem: Problem, net: Network) -> Array:
    """a_j^2 - |w_j|^2, which gradient flow conserves."""
    gap = outer_squares(net) - np.sum(np.square(net.W), axis=1)
    return np.asarray(gap * np.exp(2 * net.log_factors))


def _cones(problem: Problem, net: Network) -> int:
    packed = np.packbits(problem.X @ net.W.T > 0, axis=0)
    return len(np.unique(packed.T, axis=0))


def _angles(problem: Problem, net: Network) -> Array:
    if net.d != 2:
        raise ReluflowError(f"angles need two features, got d={net.d}: use cosines(directions)")
    return np.arctan2(net.W[:, 1], net.W[:, 0])


def _change_norms(problem: Problem, net: Network) -> float:
    """[MMV24]_ Sec. 5: sum_j 2 <-grad_{w_j} L, w_j>."""
    dW, _ = velocity(problem, net)
    return float(np.sum(2 * np.sum(dW * net.W, axis=1) * np.exp(2 * net.log_factors)))


def _change_directions(problem: Problem, net: Network) -> float:
    """[MMV24]_ Sec. 5: sum_j |P_{w_j}(-grad_{w_j} L)| / |w_j|."""
    dW, _ = velocity(problem, net)
    unit = net.directions
    across = dW - np.sum(dW * unit, axis=1, keepdims=True) * unit
    size = np.linalg.norm(net.W, axis=1)
    moved = np.linalg.norm(across, axis=1)
    return float(np.sum(np.divide(moved, size, out=np.zeros_like(size), where=size > 0)))


OBSERVABLES: dict[str, Observable] = {
    o.name: o
    for o in (
        Observable("outputs", lambda p, f: f, ("sample",), of_outputs=True, per_output=True),
        Observable("norms", lambda p, net: np.exp(net.log_norms), ("neuron",)),
        Observable("log_norms", lambda p, net: net.log_norms, ("neuron",)),
        Observable("outer", lambda p, net: net.weights()[1], ("neuron",), per_output=True),
        Observable("frobenius", lambda p, net: np.sqrt(np.sum(_norms2(net)))),
        Observable(
            "norm2", lambda p, net: np.sum(_norms2(net)) + np.sum(np.exp(2 * net.log_outer))
        ),
        Observable("angles", _angles, ("neuron",)),
        Observable("cones", _cones),
        Observable("balance", _balance, ("neuron",)),
        Observable("invariant", _invariant, ("neuron",)),
        Observable("margin", margin_of, of_outputs=True),
        Observable("normalized_margin", _normalized_margin),
        Observable("accuracy", accuracy_of, of_outputs=True),
        Observable("stable_rank", _stable_rank),
        Observable("spectral_norm", _spectral_norm),
        Observable("change_norms", _change_norms),
        Observable("change_directions", _change_directions),
    )
}


@check_arguments
def cosines(directions: ArrayLike, name: str = "cosines") -> Observable:
    """Cosine of every neuron with each given direction, shape (neuron, direction).

    Parameters
    ----------
    directions : array, shape (k, d) or (d,)
        Not 0; of any length.
    name : str
        By which a run records it.

    Returns
    -------
    Observable
    """
    targets = np.atleast_2d(np.asarray(directions, dtype=float))
    norms = np.linalg.norm(targets, axis=1, keepdims=True)
    if not (np.isfinite(norms).all() and (norms > 0).all()):
        raise ReluflowError("cosines needs finite non-zero directions")
    unit = targets / norms

    def measure(problem: Problem, net: Network) -> Array:
        if unit.shape[1] != net.d:
            raise ReluflowError(
                f"directions have {unit.shape[1]} features, the network has {net.d}"
            )
        return np.asarray(net.directions @ unit.T)

    return Observable(name, measure, ("neuron", f"{name}_direction"))


def as_observables(observe: Any) -> tuple[Observable, ...]:
    """Observables meant by an ``observe=`` argument: names, objects or plain functions."""
    if observe is None:
        return ()
    if isinstance(observe, str | Observable) or callable(observe):
        observe = [observe]
    found: dict[str, Observable] = {}
    for item in observe:
        if isinstance(item, str):
            if item not in OBSERVABLES:
                raise ReluflowError(
                    f"unknown observable {item!r}: expected one of {', '.join(OBSERVABLES)}, "
                    "cosines(directions) or a function of (problem, network)"
                )
            item = OBSERVABLES[item]
        elif not isinstance(item, Observable):
            if not callable(item):
                raise ReluflowError(f"an observable is a name or a function, got {item!r}")
            item = Observable(getattr(item, "__name__", "observable"), item)
        if item.name in found or item.name in ("loss", "log_loss", "W", "a", "log_scale"):
            raise ReluflowError(f"two recorded quantities are called {item.name!r}: rename one")
        found[item.name] = item
    return tuple(found.values())
