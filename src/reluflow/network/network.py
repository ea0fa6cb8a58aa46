"""The weights of a two-layer network, with a log-scale per neuron for sizes beyond floats."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from reluflow._views import Shown
from reluflow.arrays import Array, Indices, Mask, frozen_array, row_norms
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.problem.activation import SmoothedRelu, check_leak, check_smoothing
from reluflow.problem.names import dimensions_of, only_column
from reluflow.problem.problem import Problem, check_bias

if TYPE_CHECKING:
    from reluflow.problem.problem import Problem

_BLOCK = 1 << 22  # products <w_j, x> held at once by evaluate


@dataclass(frozen=True, eq=False)
class Network(Shown):
    r"""Two-layer network :math:`f(x) = \sum_j e^{2 s_j} a_j \phi(\langle w_j, x\rangle)`.

    Neuron j is ``exp(log_scale[j]) * (W[j], a[j])``: with ``log_scale = -1000`` weights of size
    e^-1000 are ordinary numbers.

    Parameters
    ----------
    W : array, shape (m, d)
        Inner weights, one neuron a row.
    a : array, shape (m,)
        Outer weights; shape (m, K) for K outputs, one row a neuron ((m, 1) is one output).
    log_scale : array, shape (m,), or float, optional
        Natural logarithm of a factor common to ``W[j]`` and ``a[j]``; None means 0 for all.
    leak : float
        Activation slope on negative inputs, used when the network is called.
    bias : float, optional
        Value of the constant feature that calls append to inputs of d - 1 features.
    smoothing : float
        Radius of the smoothed activation ([TK24]_), used when the network is called; 0 for none.
    """

    _hints = MappingProxyType(
        {
            "coef_": "use .weights(), the pair (W, a)",
            "forward": "call the network: net(X)",
            "predict_proba": "use reluflow.estimators.SmallInitClassifier",
            "fit": "use flow(problem, net) or descend(problem, net, ...)",
            "neurons": "use .weights(), or .directions and .log_norms",
            "norms": "use np.exp(net.log_norms)",
        }
    )

    W: Array
    a: Array
    log_scale: Array | None = None
    leak: float = 0.0
    bias: float | None = None
    smoothing: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        given = only_column(self.a)
        W = frozen_array(self.W, "W", 2)
        a = frozen_array(given, "a", 2 if dimensions_of(given) == 2 else 1)
        if W.shape[0] != a.shape[0]:
            raise ReluflowError(
                f"W has {W.shape[0]} rows but a has {a.shape[0]} entries: "
                "expected one row of W and one entry of a per neuron"
            )
        if a.ndim == 2 and a.shape[1] == 0:
            raise ReluflowError("a has no columns: expected one column for each output")
        if W.shape[0] == 0 or W.shape[1] == 0:
            raise ReluflowError(
                f"the network is empty: expected m >= 1 rows and d >= 1 columns in W, "
                f"got shape {W.shape}"
            )
        object.__setattr__(self, "W", W)
        object.__setattr__(self, "a", a)
        object.__setattr__(self, "leak", check_leak(self.leak))
        object.__setattr__(self, "smoothing", check_smoothing(self.smoothing))
        if self.bias is not None:
            object.__setattr__(self, "bias", check_bias(self.bias))
        if self.log_scale is not None:
            scale = self.log_scale
            if np.ndim(scale) == 0:
                scale = np.full(a.shape[0], scale)
            scale = frozen_array(scale, "log_scale", 1)
            if scale.shape != a.shape[:1]:
                raise ReluflowError(
                    f"log_scale has {scale.shape[0]} entries for {a.shape[0]} neurons: "
                    "expected one number for all or one for each"
                )
            object.__setattr__(self, "log_scale", scale)

    @property
    def m(self) -> int:
        """Number of neurons."""
        return int(self.W.shape[0])

    @property
    def d(self) -> int:
        """Number of features of ``W``, the bias feature included."""
        return int(self.W.shape[1])

    @property
    def several(self) -> bool:
        """Whether ``a`` is a matrix (m, K): outputs are vectors, K > 1."""
        return self.a.ndim == 2

    @property
    def K(self) -> int:
        """Number of outputs."""
        return int(self.a.shape[1]) if self.several else 1

    @property
    def log_factors(self) -> Array:
        """log_scale as an array, zeros when there is none."""
        return np.zeros(self.m) if self.log_scale is None else self.log_scale

    @property
    def log_norms(self) -> Array:
        """log of the norm of each true inner weight; -inf for a zero neuron."""
        return self.log_factors + _log(row_norms(self.W))

    @property
    def log_outer(self) -> Array:
        """log of the size of each true outer weight (norm of a row); -inf for zero."""
        return self.log_factors + _log(row_norms(self.a) if self.several else np.abs(self.a))

    @property
    def log_m_norm(self) -> float:
        """log of ``m_norm``, for sizes beyond floats; -inf for zero weights."""
        return float(np.max(np.maximum(self.log_norms, self.log_outer), initial=-np.inf))

    @property
    def m_norm(self) -> float:
        """M-norm max_j max(|w_j|, |a_j|) ([LLWA21]_ Def. 5.1)."""
        return float(np.exp(self.log_m_norm))

    @property
    def norm2(self) -> float:
        """|theta|^2 = sum_j |w_j|^2 + a_j^2 of the true weights."""
        return float(np.sum(np.exp(2 * self.log_norms)) + np.sum(np.exp(2 * self.log_outer)))

    @property
    def directions(self) -> Array:
        """Unit inner weights; a zero neuron has a zero row."""
        norms = row_norms(self.W)[:, None]
        return np.divide(self.W, norms, out=np.zeros_like(self.W), where=norms > 0)

    def weights(self) -> tuple[Array, Array]:
        """True (W, a) as plain floats; they underflow to 0 where floats cannot hold them."""
        if self.log_scale is None:
            return self.W, self.a
        factor = np.exp(self.log_scale)
        return factor[:, None] * self.W, (factor[:, None] if self.several else factor) * self.a

    def evaluate(self, X: Array, leak: float, smoothing: float = 0.0) -> Array:
        """f at the rows of ``X`` (k, d) with a given activation, in blocks of bounded memory."""
        smoothed = SmoothedRelu(smoothing, leak) if smoothing else None
        X = np.asarray(X, dtype=float)
        outer = self.a
        if self.log_scale is not None:
            size = np.exp(2.0 * self.log_scale)
            outer = self.a * (size[:, None] if self.several else size)
        out = np.zeros(X.shape[:1] + self.a.shape[1:])
        block = max(1, _BLOCK // max(1, X.shape[0]))
        for start in range(0, self.m, block):
            part = slice(start, start + block)
            if smoothed is not None:
                S = smoothed.value(self.W[part], X)
            else:
                S = X @ self.W[part].T
                np.maximum(S, leak * S, out=S)
            out += S @ outer[part]
        return out

    def __call__(self, X: Array) -> Array:
        """f at the rows of ``X``; appends the bias feature when the network has one."""
        single = np.ndim(X) == 1
        X = frozen_array(np.atleast_2d(X), "X", 2)
        if self.bias is not None and X.shape[1] == self.d - 1:
            X = np.hstack([X, np.full((X.shape[0], 1), self.bias)])
        if X.shape[1] != self.d:
            raise ReluflowError(
                f"X has {X.shape[1]} columns but W has {self.d}: expected X of shape (k, {self.d})"
                + ("" if self.bias is None else f" or (k, {self.d - 1}) without the bias feature")
            )
        out = self.evaluate(X, self.leak, self.smoothing)
        return out[0] if single else out

    def predict(self, X: Any) -> Array:
        """f at the rows of ``X``, as calling the network does; the sign is the class for labels
        -1 and +1."""
        return self(X)

    @check_arguments
    def score(self, problem: Problem) -> float:
        r"""Share of samples on the right side of 0 for labels -1 and +1, else R^2.

        .. math:: R^2 = 1 - \sum_k (f(x_k) - y_k)^2 / \sum_k (y_k - \bar y)^2
        """
        f, y = problem.outputs(self), problem.y
        if np.isin(y, (-1.0, 1.0)).all():
            return float(np.mean(f * y > 0.0))
        spread = float(np.sum((y - y.mean()) ** 2))
        return 1.0 - float(np.sum((f - y) ** 2)) / spread if spread > 0.0 else float("nan")

    def subset(self, index: Indices | Mask) -> Network:
        """The network of the chosen neurons (indices or a mask)."""
        try:
            self.a[index]
        except (IndexError, TypeError, OverflowError):
            raise ReluflowError(
                f"neurons are chosen by indices from 0 to {self.m - 1} or a mask, got {index!r:.80}"
            ) from None
        scale = None if self.log_scale is None else self.log_scale[index]
        return replace(self, W=self.W[index], a=self.a[index], log_scale=scale)

    @check_arguments
    def scaled(self, log_factor: float) -> Network:
        """All weights multiplied by exp(log_factor), kept in ``log_scale``."""
        return replace(self, log_scale=self.log_factors + log_factor)

    def check_fits(self, d: int) -> None:
        """Raise unless the network takes inputs of ``d`` features."""
        if self.d != d:
            raise ReluflowError(
                f"W has {self.d} columns but X has {d} features: expected W of shape (m, {d}). "
                "Drop the bias column or give the problem bias=1.0"
            )

    def check_fits_problem(self, problem: Problem) -> None:
        """Raise unless the network takes the samples of a problem and has its outputs."""
        self.check_fits(problem.d)
        if self.a.shape[1:] != problem.y.shape[1:]:
            form = "(m,)" if not problem.several else f"(m, {problem.K})"
            raise ReluflowError(
                f"the network has outer weights of shape {self.a.shape} but the labels have shape "
                f"{problem.y.shape}: expected outer weights of shape {form}"
            )

    def __repr__(self) -> str:
        outputs = f", K={self.K}" if self.several else ""
        return f"Network(m={self.m}, d={self.d}{outputs}, leak={self.leak:g})"


def _log(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(x)
