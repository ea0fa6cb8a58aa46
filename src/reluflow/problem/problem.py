"""A learning problem: samples, labels, loss and activation, validated once and frozen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reluflow._views import Shown
from reluflow.arrays import Array, frozen_array, real_number, row_norms
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.problem.activation import SmoothedRelu, check_leak, check_smoothing
from reluflow.problem.classes import one_hot
from reluflow.problem.losses import Loss, as_loss
from reluflow.problem.names import (
    check_names,
    columns_of,
    dimensions_of,
    only_column,
    title_of,
)
from reluflow.problem.sizes import check_sizes

if TYPE_CHECKING:
    from reluflow.network import Network


def check_bias(value: Any) -> float:
    """Value of the constant feature."""
    bias = real_number(value, "bias")
    if not np.isfinite(bias) or bias == 0.0:
        raise ReluflowError(
            f"bias must be a finite non-zero number, got {bias:g}: "
            "use bias=1.0, or None for no bias"
        )
    return bias


@dataclass(frozen=True, eq=False)
class Problem(Shown):
    r"""Data and loss of a two-layer network :math:`f(x) = \sum_j a_j \phi(\langle w_j, x\rangle)`.

    .. math:: L = \frac1n \sum_k \ell(f(x_k), y_k), \qquad \phi(z) = \max(z, \mathrm{leak}\, z)

    Parameters
    ----------
    X : array, shape (n, d)
        Samples as rows.
    y : array, shape (n,)
        Labels; -1 or +1 for the margin losses (logistic, exponential). A matrix (n, K) makes a
        problem with K outputs ((n, 1) is one output), and so does a list of K classes, of any
        kind, for the losses "softmax" and "multiclass_exponential" (see
        :mod:`reluflow.problem.classes`).
    loss : str or Loss
        "half_square", "square", "logistic", "exponential", "softmax",
        "multiclass_exponential", or an object of :mod:`reluflow.losses`
        (``losses.Logistic(factor=2)``).
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
    feature_names : names, optional
        One a column of ``X``, the constant feature not counted; the columns of a data frame by
        default. They stand in verdicts, on axes, in reports and in stored runs.
    label_names : names, optional
        What the labels are called: the classes of -1 and of +1, in this order, or one name for
        numbers (that of a pandas Series by default).
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

    _hints = MappingProxyType(
        {
            "from_frame": "use Problem.from_table(frame)",
            "fit": "use flow(problem, net), descend(problem, net, ...) or reluflow.estimators",
            "predict": "use net(X) of a Network, or reluflow.estimators",
            "landscape": "use extremal_vectors(problem)",
            "columns": "use .axis_names",
            "features": "use .axis_names",
        }
    )

    X: Array
    y: Array
    loss: Loss = "half_square"  # type: ignore[assignment]
    leak: float = 0.0
    reduction: str = "mean"
    bias: float | None = None
    smoothing: float = field(default=0.0, kw_only=True)
    name: str = field(default="data", kw_only=True)
    feature_names: tuple[str, ...] | None = field(default=None, kw_only=True)
    label_names: tuple[str, ...] | None = field(default=None, kw_only=True)
    known: Mapping[str, Any] = field(default_factory=dict, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        loss = as_loss(self.loss)
        if not isinstance(self.known, Mapping):
            raise ReluflowError(f"known must be a mapping, got {type(self.known).__name__}")
        features = self.feature_names
        if features is None:
            features = columns_of(self.X)
        labels = title_of(self.y) if self.label_names is None else self.label_names
        X, known = frozen_array(self.X, "X", 2), dict(self.known)
        if loss.classes:
            y, names = one_hot(self.y)
            if names is not None:
                known["classes"] = names
        else:
            given = only_column(self.y)
            y = frozen_array(given, "y", 2 if dimensions_of(given) == 2 else 1)
        noted = known.get("features")
        if features is None and noted is not None and len(noted) == X.shape[1]:
            features = noted
        features = check_names(features, "feature_names", (X.shape[1],))
        outputs = y.shape[1] if y.ndim == 2 else 2
        labels = check_names(labels, "label_names", (1, outputs))
        if X.shape[0] == 0 or X.shape[1] == 0:
            raise ReluflowError(
                f"X is empty: expected at least one sample and one feature, got shape {X.shape}"
            )
        if y.shape[0] != X.shape[0]:
            raise ReluflowError(
                f"y has {y.shape[0]} labels but X has {X.shape[0]} samples: "
                f"expected y of shape ({X.shape[0]},)"
            )
        if y.ndim == 2 and y.shape[1] == 0:
            raise ReluflowError("y has no columns: expected one column for each output")
        if loss.margin and not loss.classes and not np.isin(y, (-1.0, 1.0)).all():
            wrong = float(y[~np.isin(y, (-1.0, 1.0))][0])
            raise ReluflowError(
                f"the {loss.name} loss needs labels -1 and +1, got {wrong:g}: "
                "relabel the classes or use loss='half_square'"
            )
        leak = check_leak(self.leak)
        if not isinstance(self.reduction, str) or self.reduction not in ("mean", "sum"):
            raise ReluflowError(f"reduction must be 'mean' or 'sum', got {self.reduction!r}")
        if self.bias is not None:
            bias = check_bias(self.bias)
            X = np.hstack([X, np.full((X.shape[0], 1), bias)])
            X.setflags(write=False)
            object.__setattr__(self, "bias", bias)
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "y", y)
        object.__setattr__(self, "loss", loss)
        object.__setattr__(self, "feature_names", features)
        object.__setattr__(self, "label_names", labels)
        object.__setattr__(self, "leak", leak)
        object.__setattr__(self, "smoothing", check_smoothing(self.smoothing))
        object.__setattr__(self, "known", MappingProxyType(known))
        if y.ndim == 2:
            self._check_several()
        check_sizes(self)

    def _check_several(self) -> None:
        """Raise where several outputs do not go together with something else."""
        if self.smoothing:
            raise ReluflowError(
                f"smoothing is for one output, got labels of shape {self.y.shape}: set smoothing=0"
            )
        names = self.known.get("classes")
        if names is not None and len(names) != self.K:
            raise ReluflowError(
                f"known has {len(names)} classes for {self.K} outputs: expected one each"
            )

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

    @classmethod
    def from_csv(cls, path: Any, **options: Any) -> Problem:
        """The problem in a file of comma-separated values: :meth:`from_table`, same options."""
        return cls.from_table(path, **options)

    @property
    def n(self) -> int:
        """Number of samples."""
        return int(self.X.shape[0])

    @property
    def d(self) -> int:
        """Number of features, the bias feature included."""
        return int(self.X.shape[1])

    @property
    def axis_names(self) -> list[str]:
        """A name for each of the d features: those given, else x0, x1, ... (x where there is one);
        the bias feature is "the constant"."""
        plain = self.d - (self.bias is not None)
        names = list(self.feature_names or ())
        if not names:
            names = ["x"] if plain == 1 else [f"x{i}" for i in range(plain)]
        return names + (["the constant"] if self.bias is not None else [])

    @property
    def label_name(self) -> str:
        """What the label is called on an axis."""
        return self.label_names[0] if self.label_names and len(self.label_names) == 1 else "y"

    @check_arguments
    def class_name(self, label: float) -> str:
        """What a label -1 or +1 is called: its class if that has a name, else the number."""
        if self.label_names is None or len(self.label_names) != 2:
            return f"{label:+g}"
        return self.label_names[int(label > 0)]

    @property
    def several(self) -> bool:
        """Whether the labels are a matrix (n, K): outputs are vectors, K > 1."""
        return self.y.ndim == 2

    @property
    def K(self) -> int:
        """Number of outputs."""
        return int(self.y.shape[1]) if self.several else 1

    @property
    def classes(self) -> tuple[str, ...] | None:
        """Names of the outputs where these are classes, None otherwise."""
        if not self.loss.classes and "classes" not in self.known:
            return None
        return tuple(self.known.get("classes", map(str, range(self.K))))

    @property
    def labels(self) -> NDArray[np.intp]:
        """Class of each sample as a number 0..K-1 (the largest entry of its row of y)."""
        return np.asarray(np.argmax(self.y, axis=1))

    @property
    def pull_sizes(self) -> Array:
        """|c_k|, one per sample, of the pull on a silent network."""
        pull = self.pull
        return np.linalg.norm(pull, axis=1) if self.several else np.abs(pull)

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
        """Raise unless the activation has its kinks, on which ``what`` rests, and f is a number."""
        self.check_one_output(what)
        if self.smoothing:
            raise ReluflowError(
                f"{what} is for piecewise linear activations, got smoothing={self.smoothing:g}: "
                "set smoothing=0 (on the command line --with smoothing=0)"
            )

    def check_one_output(self, what: str) -> None:
        """Raise where outputs are vectors and ``what`` is for numbers."""
        if self.several:
            raise ReluflowError(
                f"{what} is for one output, this problem has {self.K}: take two classes or one "
                "against the rest (classes=, one_vs_rest=), or a single column of labels"
            )

    @property
    def pull(self) -> Array:
        """c_k = -dl/df(0, y_k) * weight: how hard sample k pulls on a silent network."""
        return self.pull_at(np.zeros(self.y.shape))

    @property
    def total_pull(self) -> float:
        """sum_k |c_k| |x_k|: no neuron of a silent network grows faster than at this rate."""
        return float(self.pull_sizes @ self.norms)

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
        return float(self.value(np.zeros(self.y.shape)))

    @check_arguments
    def loss_of(self, net: Network) -> float:
        """The loss L of a network."""
        return float(self.value(self.outputs(net)))

    def to_dict(self) -> dict[str, Any]:
        """What the data and the loss are, in plain values for JSON; not the samples themselves."""
        outputs = {"outputs": self.K, "classes": self.classes} if self.several else {}
        return {
            "name": self.name,
            "n": self.n,
            "d": self.d,
            **outputs,
            "loss": self.loss.name,
            "factor": self.loss.factor,
            "leak": self.leak,
            "reduction": self.reduction,
            "bias": self.bias,
            "smoothing": self.smoothing,
            "features": None if self.feature_names is None else list(self.feature_names),
            "labels": None if self.label_names is None else list(self.label_names),
        }

    def pull_at(self, f: Array) -> Array:
        """c_k = -dl/df(f_k, y_k) * weight for outputs ``f`` of shape (..., n) or (..., n, K)."""
        pull: Array = -self.weight * self.loss.slope(f, self.y)
        return pull

    def value(self, f: Array) -> Array:
        """The loss L for outputs ``f`` of shape (..., n) or (..., n, K)."""
        total: Array = self.weight * np.sum(self.loss.value(f, self.y), axis=self._terms)
        return total

    def log_value(self, f: Array) -> Array:
        """log L for outputs ``f`` of shape (..., n) or (..., n, K), without underflow."""
        with np.errstate(divide="ignore"):
            logs = self.loss.log_value(f, self.y)
            # as scipy's logsumexp, whose look at array libraries costs ten times the sum
            top = np.max(logs, axis=self._terms, keepdims=True)
            top = np.where(np.isfinite(top), top, 0.0)
            total = np.log(np.sum(np.exp(logs - top), axis=self._terms))
            return np.asarray(total + np.squeeze(top, axis=self._terms) + np.log(self.weight))

    @property
    def _terms(self) -> int | tuple[int, int]:
        """Axes of the terms that L adds up: samples, and outputs where each has its own term."""
        return (-2, -1) if self.several and not self.loss.classes else -1

    @check_arguments
    def outputs(self, net: Network) -> Array:
        """f(x_k) of a network with this problem's activation."""
        net.check_fits(self.d)
        return net.evaluate(self.X, leak=self.leak, smoothing=self.smoothing)

    def replace(self, **changes: Any) -> Problem:
        """A copy with some fields changed; the bias feature already in X is not added twice."""
        if "X" not in changes:
            changes["X"] = self.X if self.bias is None else self.X[:, :-1]
        elif self.feature_names is not None and "feature_names" not in changes:
            same = np.ndim(changes["X"]) == 2 and np.shape(changes["X"])[1] == len(
                self.feature_names
            )
            changes["feature_names"] = self.feature_names if same else None
        return replace(self, **changes)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as the arguments it was made from, validated again when read."""
        X = self.X if self.bias is None else self.X[:, :-1]
        given = (X, self.y, self.loss, self.leak, self.reduction, self.bias)
        names = {"feature_names": self.feature_names, "label_names": self.label_names}
        return _rebuild, (given, self.smoothing, self.name, dict(self.known), names)

    def __repr__(self) -> str:
        bias = "" if self.bias is None else f", bias={self.bias:g}"
        smooth = f", smoothing={self.smoothing:g}" if self.smoothing else ""
        outputs = f"K={self.K}, " if self.several else ""
        return (
            f"Problem({self.name}: n={self.n}, d={self.d}, {outputs}{self.loss.name} "
            f"({self.reduction}), leak={self.leak:g}{smooth}{bias})"
        )


def _rebuild(
    given: tuple[Any, ...],
    smoothing: float,
    name: str,
    known: dict[str, Any],
    names: dict[str, Any],
) -> Problem:
    return Problem(*given, smoothing=smoothing, name=name, known=known, **names)
