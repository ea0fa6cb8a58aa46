r"""Small networks inside wide ones: groups of aligned neurons, chi, pi_b and the M-norm.

A neuron of a wide network that is a positive multiple r_j of neuron k of a small one,
(w_j, a_j) = r_j (w_k, a_k) with :math:`\sum_{j \in P_k} r_j^2 = 1`, makes the wide network compute
the same function, with the same Euclidean norm, and move under gradient flow as the image of the
small one: [LLWA21]_ Lemma 5.3 for two neurons (pi_b), [TK24]_ eq. (4) for any number (chi).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reluflow.arrays import Array
from reluflow.errors import ReluflowError
from reluflow.landscape.alignment import D
from reluflow.network import Network
from reluflow.problem import Problem


@dataclass(frozen=True, eq=False)
class Embedding:
    """chi: neuron j of the wide network is shares[j] times neuron groups[j] of the small one.

    groups : int array, shape (m,)
        Neuron of the small network, -1 for a neuron that is set to zero.
    shares : array, shape (m,)
        r_j >= 0, their squares adding up to 1 in every group.
    p : int
        Width of the small network.
    """

    groups: NDArray[np.intp]
    shares: Array
    p: int

    def __post_init__(self) -> None:
        groups = np.array(self.groups, dtype=np.intp)
        shares = np.array(self.shares, dtype=np.float64)
        if groups.ndim != 1 or groups.shape != shares.shape:
            raise ReluflowError(
                f"groups and shares have shapes {groups.shape} and {shares.shape}: "
                "expected one of each for every neuron of the wide network"
            )
        if groups.size and not (groups.min() >= -1 and groups.max() < self.p):
            raise ReluflowError(
                f"groups must lie in -1 ... {self.p - 1}, the neurons of the small network"
            )
        used = groups >= 0
        squares = np.bincount(groups[used], weights=shares[used] ** 2, minlength=self.p)
        missing = np.bincount(groups[used], minlength=self.p) == 0
        bad = (shares < 0.0).any() or (np.abs(squares - 1.0) > 1e-9)[~missing].any()
        if bad or not np.isfinite(shares).all():
            raise ReluflowError(
                "shares must be at least 0 with squares adding up to 1 in every group: "
                "use collapse or pi_b, which normalise them"
            )
        shares[~used] = 0.0
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "shares", shares)

    def __call__(self, small: Network) -> Network:
        """The wide network."""
        if small.m != self.p:
            raise ReluflowError(
                f"the small network has {small.m} neurons, expected {self.p}: one for each group"
            )
        used = self.groups >= 0
        source = np.where(used, self.groups, 0)
        for k in np.setdiff1d(np.arange(self.p), self.groups):
            if small.W[k].any() or small.a[k] != 0.0:
                raise ReluflowError(
                    f"neuron {k} of the small network has no neuron in the wide one: expected it "
                    "to be zero, or a group for it"
                )
        scale = None if small.log_scale is None else small.log_scale[source]
        return Network(
            self.shares[:, None] * small.W[source],
            self.shares * small.a[source],
            scale,
            small.leak,
            small.bias,
        )


def pi_b(b: ArrayLike) -> Embedding:
    r"""The embedding pi_b of two neurons: [LLWA21]_ Sec. 5.2 and App. G.

    .. math:: (w_j, a_j) = \frac{b_j}{b_+} (w_1, a_1)\ (b_j > 0), \qquad
              \frac{b_j}{b_-} (w_2, a_2)\ (b_j < 0), \qquad 0\ (b_j = 0)

    with :math:`b_\pm = \pm \big(\sum_{\pm b_j > 0} b_j^2\big)^{1/2}`. Neuron 0 of the small network
    is theirs with a > 0, neuron 1 theirs with a < 0.

    Parameters
    ----------
    b : array, shape (m,)
        Good when no entry is zero and both signs occur; where a sign is missing the small network
        must have a zero neuron there.
    """
    b = np.asarray(b, dtype=np.float64)
    if b.ndim != 1 or not np.isfinite(b).all():
        raise ReluflowError(f"b must be a vector of finite numbers, got shape {b.shape}")
    groups = np.where(b > 0.0, 0, np.where(b < 0.0, 1, -1))
    return Embedding(groups, _shares(np.abs(b), groups, 2), 2)


def neuron_groups(
    net: Network, *, angle: float = 1e-3, least: float = 0.0
) -> tuple[NDArray[np.intp], int]:
    """Neurons that share a direction and an output sign: (label of each neuron, number of groups).

    A neuron joins the group of the largest neuron within ``angle`` of it; so groups come by falling
    size of their leaders.

    Parameters
    ----------
    net : Network
    angle : float
        Largest angle (radians) between a neuron and the leader of its group.
    least : float
        Neurons with sqrt(|a||w|) at most this times that of the largest are left out (label -1),
        as are zero neurons: the non-prominent ones of [TK24]_.
    """
    if not 0.0 <= angle < np.pi:
        raise ReluflowError(f"angle must be in [0, pi), got {angle!r} (radians)")
    size = 0.5 * (net.log_norms + net.log_outer)
    labels = np.full(net.m, -1, dtype=np.intp)
    with np.errstate(divide="ignore"):
        floor = size.max() + np.log(least)
    left = (size > floor) & (size > -np.inf)
    V, signs = net.directions, np.sign(net.a)
    count = 0
    while left.any():
        leader = int(np.argmax(np.where(left, size, -np.inf)))
        # half the chord is the sine of half the angle, accurate for small angles
        half = 0.5 * np.linalg.norm(V - V[leader], axis=1)
        near = left & (half <= np.sin(0.5 * angle) + 1e-15) & (signs == signs[leader])
        labels[near] = count
        left &= ~near
        count += 1
    return labels, count


def collapse(
    net: Network, groups: ArrayLike | None = None, *, angle: float = 1e-3, least: float = 0.0
) -> tuple[Network, Embedding]:
    r"""The small network a wide one is close to, and the embedding chi back: [TK24]_ eqs. (3), (4).

    Group k becomes one neuron with
    :math:`a_k = s_k (\sum_{P_k} a_j^2)^{1/2}` and :math:`w_k = \sum_{P_k} r_j w_j`,
    :math:`r_j = |a_j| / |a_k|`. chi(small) is the wide network again when its groups are exactly
    aligned and equally balanced; otherwise it is the nearest such image (least squares, given r).

    Parameters
    ----------
    net : Network
    groups : int array, shape (m,), optional
        Group of each neuron, -1 for none; default :func:`neuron_groups`.
    angle, least
        Passed to :func:`neuron_groups`.

    Returns
    -------
    Network, Embedding
    """
    labels = neuron_groups(net, angle=angle, least=least)[0] if groups is None else groups
    labels = np.asarray(labels, dtype=np.intp)
    p = int(labels.max(initial=-1)) + 1
    if labels.shape != (net.m,) or p == 0:
        raise ReluflowError(
            f"groups must hold one label for each of the {net.m} neurons, at least one of them "
            "not -1"
        )
    used = labels >= 0
    top = float(np.max(net.log_factors[used]))
    factor = np.where(used, np.exp(net.log_factors - top), 0.0)
    W, a = factor[:, None] * net.W, factor * net.a
    if any(len(set(np.sign(a[labels == k]))) != 1 for k in range(p)):
        raise ReluflowError("a group mixes output signs: expected one sign of a in each group")
    shares = _shares(np.abs(a), labels, p)
    small_W, small_a = np.zeros((p, net.d)), np.zeros(p)
    np.add.at(small_W, labels[used], shares[used, None] * W[used])
    np.add.at(small_a, labels[used], shares[used] * a[used])
    scale = None if net.log_scale is None else np.full(p, top)
    return Network(small_W, small_a, scale, net.leak, net.bias), Embedding(labels, shares, p)


def _shares(sizes: Array, groups: NDArray[np.intp], p: int) -> Array:
    """sizes over the root of the sum of squares of their group; 0 outside groups."""
    used = groups >= 0
    tops = np.zeros(p)
    np.maximum.at(tops, groups[used], sizes[used])
    safe = np.where(tops > 0.0, tops, 1.0)
    scaled = np.where(used, sizes / safe[groups], 0.0)
    squares = np.bincount(groups[used], weights=scaled[used] ** 2, minlength=p)
    roots = np.sqrt(np.where(squares > 0.0, squares, 1.0))
    return np.where(used, scaled / roots[groups], 0.0)


def log_m_norm(net: Network, index: ArrayLike | None = None) -> float:
    """log of the M-norm max_j max(|w_j|, |a_j|) ([LLWA21]_ Def. 5.1), over the neurons ``index``.

    [TK24]_ writes it with the index set as a subscript; -inf for zero weights or no neurons.
    """
    sizes = np.maximum(net.log_norms, net.log_outer)
    if index is not None:
        chosen = np.asarray(index)
        sizes = sizes[chosen if chosen.dtype == bool else chosen.astype(np.intp)]
    return float(np.max(sizes, initial=-np.inf))


def m_norm(net: Network, index: ArrayLike | None = None) -> float:
    """M-norm max_j max(|w_j|, |a_j|) ([LLWA21]_ Def. 5.1), over the neurons ``index`` if given."""
    return float(np.exp(log_m_norm(net, index)))


def velocity(problem: Problem, net: Network) -> tuple[Array, Array]:
    """Gradient flow's (dW/dt, da/dt) per unit of exp(log_scale), D of minimal norm at kinks."""
    gradients = D(problem, net.W, problem.pull_at(problem.outputs(net)))
    return net.a[:, None] * gradients, np.sum(net.W * gradients, axis=1)


def commuting_error(problem: Problem, small: Network, chi: Embedding) -> float:
    """How far the flow is from commuting with chi at ``small``: 0 up to rounding.

    Largest difference between the velocity of chi(small) and the image under chi of the velocity
    of small, over the largest entry of that image.
    """
    wide = chi(small)
    dW, da = velocity(problem, small)
    image = chi(Network(dW, da, small.log_scale))
    got_W, got_a = velocity(problem, wide)
    size = max(float(np.abs(image.W).max()), float(np.abs(image.a).max()))
    error = max(float(np.abs(got_W - image.W).max()), float(np.abs(got_a - image.a).max()))
    return error / size if size > 0.0 else error
