"""A learning problem: samples, labels, loss and activation, validated once and frozen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from reluflow.arrays import Array, frozen_array, real_number, row_norms
from reluflow.errors import ReluflowError
from reluflow.problem.activation import SmoothedRelu, check_smoothing
from reluflow.problem.losses import Loss, as_loss

if TYPE_CHECKING:
    from reluflow.network import Network


def check_leak(value: Any) -> float:
    """Slope of the activation on negative inputs."""
    leak = real_number(value, "leak")
    if not 0.0 <= leak < 1.0:
        raise ReluflowError(
            f"leak must satisfy 0 <= leak < 1, got {leak:g}: 0 is ReLU, 0.01 a common leak"
        )
    return leak


def check_bias(value: Any) -> float:
    """Value of the constant feature."""
    bias = real_number(value, "bias")
    if not np.isfinite(bias) or bias == 0.0:
        raise ReluflowError(
            f"bias must be a finite non-zero number, got {bias:g}: "
            "use bias=1.0, or None for no bias"
        )
    return bias


#: What is largest lies between these or is 0: third powers and their quotients are then floats.
#: The limit process was seen to overflow from 1e70 on.
SMALLEST, LARGEST = 1e-50, 1e50
#: The square of a smaller sample is near the end of floats, so that it has no direction.
FAINTEST = 1e-100


def check_sizes(problem: Problem) -> None:
    """Raise where products of the data, or of their pull on a silent network, leave the floats."""
    X = problem.X
    entries = np.maximum(X.max(axis=1), -X.min(axis=1))
    _check_largest(entries, "X[{}] has an entry", "rescale X")
    faint = np.flatnonzero((entries > 0.0) & (entries < FAINTEST))
    if faint.size:
        raise ReluflowError(
            f"X[{faint[0]}] has no entry larger than {entries[faint[0]]:.3g}: expected samples "
            f"that are 0 or at least {FAINTEST:g}, set such rows to 0"
        )
    _check_largest(np.abs(problem.y), "y[{}] is", "rescale y")
    rates = np.abs(problem.pull) * np.sqrt(np.einsum("ki,ki->k", X, X))
    _check_largest(rates, "sample {} has a slope of the loss times |x|", "rescale X or y")


def _check_largest(sizes: NDArray[np.float64], words: str, remedy: str) -> None:
    k = int(np.argmax(sizes))
    if sizes[k] != 0.0 and not SMALLEST <= sizes[k] <= LARGEST:
        raise ReluflowError(
            f"{words.format(k)} of size {sizes[k]:.3g}, the largest: expected one between "
            f"{SMALLEST:g} and {LARGEST:g}, beyond which products overflow or vanish; {remedy}"
        )


@dataclass(frozen=True, eq=False)
class Problem:
    r"""Data and loss of a two-layer network :math:`f(x) = \sum_j a_j \phi(\langle w_j, x\rangle)`.

    .. math:: L = \frac1n \sum_k \ell(f(x_k), y_k), \qquad \phi(z) = \max(z, \mathrm{leak}\, z)

    Parameters
    ----------
    X : array, shape (n, d)
        Samples as rows.
    y : array, shape (n,)
        Labels; -1 or +1 for the margin losses (logistic, exponential).
    loss : str or Loss
        "half_square", "square", "logistic", "exponential", or an object of
        :mod:`reluflow.losses` (``losses.Logistic(factor=2)``).
    leak : float
        Slope of the activation on negative inputs, 0 <= leak < 1; also phi'(0).
    reduction : {"mean", "sum"}
        Whether L averages or adds the losses of the samples; "sum" runs n times faster in time.
    bias : float, optional
        Appends a constant feature of this value, so that ``d`` grows by one.
    smoothing : float
        Radius of the ball of inputs over which the activation is averaged, the xi of [TK24]_; 0,
        the default, is the plain activation. ``descend`` and ``flow`` take both; what rests
        on kinks (extremal vectors, limit, margins) takes the plain one alone.
    name : str, optional
        What to call it in reports.
    known : mapping, optional
        What travels with the data: known answers (closed forms) of a built-in dataset, and what
        was assumed when a table was read.

    Examples
    --------
    >>> import numpy as np
    >>> problem = Problem(X=np.eye(2), y=np.array([1.0, -1.0]))
    >>> problem.pull
    array([ 0.5, -0.5])
    """

    X: Array
    y: Array
    loss: Loss = "half_square"  # type: ignore[assignment]
    leak: float = 0.0
    reduction: str = "mean"
    bias: float | None = None
    smoothing: float = field(default=0.0, kw_only=True)
    name: str = field(default="data", kw_only=True)
    known: Mapping[str, Any] = field(default_factory=dict, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        X = frozen_array(self.X, "X", 2)
        y = frozen_array(self.y, "y", 1)
        if X.shape[0] == 0 or X.shape[1] == 0:
            raise ReluflowError(
                f"X is empty: expected at least one sample and one feature, got shape {X.shape}"
            )
        if y.shape[0] != X.shape[0]:
            raise ReluflowError(
                f"y has {y.shape[0]} labels but X has {X.shape[0]} samples: "
                f"expected y of shape ({X.shape[0]},)"
            )
        loss = as_loss(self.loss)
        if loss.margin and not np.isin(y, (-1.0, 1.0)).all():
            wrong = float(y[~np.isin(y, (-1.0, 1.0))][0])
            raise ReluflowError(
                f"the {loss.name} loss needs labels -1 and +1, got {wrong:g}: "
                "relabel the classes or use loss='half_square'"
            )
        leak = check_leak(self.leak)
        if self.reduction not in ("mean", "sum"):
            raise ReluflowError(f"reduction must be 'mean' or 'sum', got {self.reduction!r}")
        if self.bias is not None:
            bias = check_bias(self.bias)
            X = np.hstack([X, np.full((X.shape[0], 1), bias)])
            X.setflags(write=False)
            object.__setattr__(self, "bias", bias)
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", y)
        object.__setattr__(self, "loss", loss)
        object.__setattr__(self, "leak", leak)
        object.__setattr__(self, "smoothing", check_smoothing(self.smoothing))
        object.__setattr__(self, "known", MappingProxyType(dict(self.known)))
        check_sizes(self)

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        loss: str | Loss | None = None,
        leak: float = 0.0,
        reduction: str = "mean",
        bias: float | None = None,
        smoothing: float = 0.0,
        label: str | int | None = None,
        classes: str | Sequence[Any] | None = None,
        one_vs_rest: Any = None,
        standardize: bool = False,
        drop_missing: bool = False,
        test: Any = None,
        holdout: float | None = None,
        split_seed: int = 0,
        max_bytes: int = 1 << 30,
    ) -> Problem:
        """The problem in a table: a file, or a data frame of pandas or polars.

        Parameters
        ----------
        table : path or data frame
            A ``.csv`` or ``.tsv`` (commas, semicolons or tabs; with a header or without), a
            ``.parquet`` or ``.xlsx`` file (extra ``tables``), an ``.npz`` with ``X`` and ``y``, or
            a frame. A first column without a name that tells the rows apart is left out.
        loss : str or Loss, optional
            By default what the labels ask for: logistic for two classes (text, true/false, 0 and
            1, -1 and +1), half_square for other numbers. A square loss, when given, takes 0 and 1
            as the numbers they are.
        leak, reduction, bias, smoothing
            As for :class:`Problem`.
        label : str or int, optional
            Name of the label's column, or its position; the last one by default.
        classes : two names, or "A,B"
            Keep the rows of these classes: the first is +1, the second -1.
        one_vs_rest : name
            This class is +1, all others are -1.
        standardize : bool
            Centre and scale columns by mean and standard deviation of the rows trained on, labels
            that are numbers too; :func:`reluflow.problem.tables.to_file_units` translates back.
        drop_missing : bool
            Leave out rows with blank cells, which are refused otherwise.
        test : path or data frame, optional
            Rows that are not trained on, with the same columns.
        holdout : float, optional
            Share of the rows that is not trained on, drawn at random (of each class alike).
        split_seed : int
            Of that draw.
        max_bytes : int
            Refuse larger files, and larger arrays by their headers.

        Returns
        -------
        Problem
            Named after the file. ``known["notes"]`` says in sentences what was assumed;
            ``features``, ``scaling`` and ``unseen`` are there where they apply.

        Examples
        --------
        >>> class Frame(dict):
        ...     columns = property(list)
        >>> frame = Frame(size=[1.0, 2.0, 4.0], kind=["pear", "fig", "fig"])
        >>> problem = Problem.from_table(frame)
        >>> problem.y, problem.loss.name
        (array([ 1., -1., -1.]), 'logistic')
        >>> problem.known["notes"].sentences[0]
        "Label 'kind', the last column: pear is +1, fig is -1; two classes, so the loss is \
logistic; columns as they are."
        """
        from reluflow.problem.tables import Choices, read_problem

        asked = Choices(
            loss=loss,
            label=label,
            classes=classes,
            one_vs_rest=one_vs_rest,
            standardize=standardize,
            drop_missing=drop_missing,
            test=test,
            holdout=holdout,
            split_seed=split_seed,
            max_bytes=max_bytes,
        )
        options = {"leak": leak, "reduction": reduction, "bias": bias, "smoothing": smoothing}
        return read_problem(cls, table, asked, **options)

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.X.shape[0])

    @property
    def d(self) -> int:
        """Number of features, the bias feature included."""
        return int(self.X.shape[1])

    @property
    def spec(self) -> tuple[Any, ...]:
        """What the problem is beside X and y: loss, leak, reduction, bias, smoothing."""
        return repr(self.loss), self.leak, self.reduction, self.bias, self.smoothing

    @property
    def weight(self) -> float:
        """Weight of one sample in the loss: 1/n for the mean, 1 for the sum."""
        return 1.0 / self.n if self.reduction == "mean" else 1.0

    @property
    def smoothed(self) -> SmoothedRelu | None:
        """The smoothed activation, None for the plain one."""
        return SmoothedRelu(self.smoothing, self.leak) if self.smoothing else None

    def check_kinks(self, what: str) -> None:
        """Raise unless the activation has its kinks, on which ``what`` rests."""
        if self.smoothing:
            raise ReluflowError(
                f"{what} is for piecewise linear activations, got smoothing={self.smoothing:g}: "
                "set smoothing=0 (on the command line --with smoothing=0)"
            )

    @property
    def pull(self) -> Array:
        """c_k = -dl/df(0, y_k) * weight: how hard sample k pulls on a silent network."""
        return self.pull_at(np.zeros(self.n))

    @property
    def total_pull(self) -> float:
        """sum_k |c_k| |x_k|: no neuron of a silent network grows faster than at this rate."""
        return float(np.abs(self.pull) @ self.norms)

    @cached_property
    def norms(self) -> Array:
        """|x_k|, one per sample."""
        norms: Array = np.linalg.norm(self.X, axis=1)
        small = norms < 1e-140  # where the squares leave the floats
        norms[small] = row_norms(self.X[small])
        norms.setflags(write=False)
        return norms

    @property
    def silent_loss(self) -> float:
        """The loss of a network whose output is 0: where training from small weights begins."""
        return float(self.value(np.zeros(self.n)))

    def loss_of(self, net: Network) -> float:
        """The loss L of a network."""
        return float(self.value(self.outputs(net)))

    def to_dict(self) -> dict[str, Any]:
        """What the data and the loss are, in plain values for JSON; not the samples themselves."""
        names = self.known.get("features")
        return {
            "name": self.name,
            "n": self.n,
            "d": self.d,
            "loss": self.loss.name,
            "factor": self.loss.factor,
            "leak": self.leak,
            "reduction": self.reduction,
            "bias": self.bias,
            "smoothing": self.smoothing,
            "features": None if names is None else [str(name) for name in names],
        }

    def pull_at(self, f: Array) -> Array:
        """c_k = -dl/df(f_k, y_k) * weight for outputs ``f`` of shape (..., n)."""
        pull: Array = -self.weight * self.loss.slope(f, self.y)
        return pull

    def value(self, f: Array) -> Array:
        """The loss L for outputs ``f`` of shape (..., n)."""
        total: Array = self.weight * np.sum(self.loss.value(f, self.y), axis=-1)
        return total

    def log_value(self, f: Array) -> Array:
        """log L for outputs ``f`` of shape (..., n), without underflow."""
        with np.errstate(divide="ignore"):
            total = logsumexp(self.loss.log_value(f, self.y), axis=-1)
        return np.asarray(total + np.log(self.weight))

    def outputs(self, net: Network) -> Array:
        """f(x_k) of a network with this problem's activation."""
        return net.evaluate(self.X, leak=self.leak, smoothing=self.smoothing)

    def replace(self, **changes: Any) -> Problem:
        """A copy with some fields changed; the bias feature already in X is not added twice."""
        if self.bias is not None and "X" not in changes:
            changes["X"] = self.X[:, :-1]
        return replace(self, **changes)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as the arguments it was made from, validated again when read."""
        X = self.X if self.bias is None else self.X[:, :-1]
        given = (X, self.y, self.loss, self.leak, self.reduction, self.bias)
        return _rebuild, (given, self.smoothing, self.name, dict(self.known))

    def __repr__(self) -> str:
        bias = "" if self.bias is None else f", bias={self.bias:g}"
        smooth = f", smoothing={self.smoothing:g}" if self.smoothing else ""
        return (
            f"Problem({self.name}: n={self.n}, d={self.d}, {self.loss.name} "
            f"({self.reduction}), leak={self.leak:g}{smooth}{bias})"
        )


def _rebuild(given: tuple[Any, ...], smoothing: float, name: str, known: dict[str, Any]) -> Problem:
    return Problem(*given, smoothing=smoothing, name=name, known=known)
