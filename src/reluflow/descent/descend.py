"""descend: full-batch or stochastic gradient descent from given weights."""

from __future__ import annotations

import json
import math
import os
import time as clock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Rng, decay_rate, generator_of
from reluflow.checks import check_arguments
from reluflow.descent.dense import Blas, Fused, Smooth, Stepper
from reluflow.descent.model import blas_work, dense_work, fused_work, lumped_weights
from reluflow.descent.samples import samples_of
from reluflow.descent.schedules import Batches, Rate, Schedule
from reluflow.errors import ReluflowError
from reluflow.kernels.codes import DIVERGED, UNPROFITABLE
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.runtime import Checkpoint, Interrupt, Progress
from reluflow.runtime.checkpoint import fingerprint
from reluflow.trajectory.observables import as_observables
from reluflow.trajectory.recorder import Recorder
from reluflow.trajectory.save import as_save
from reluflow.trajectory.status import Status
from reluflow.trajectory.trajectory import Trajectory

BACKENDS = ("auto", "lumped", "dense")
_CHUNK_SECONDS = 0.1  # aimed duration of one kernel call: how soon Ctrl-C is heard
_CHUNK_ENTRIES = 1 << 20  # mini-batch indices held at once
_FEW = 8  # neurons that are not worth lumping
_RETRY_AFTER = 2048  # least steps after a handover before cones are counted again
_BEYOND = 1e10  # outputs this many times larger than labels and start count as diverged


@check_arguments
def descend(
    problem: Problem,
    net: Network,
    *,
    lr: Rate,
    steps: int,
    save: Any = None,
    observe: Any = None,
    states: bool | None = None,
    batch_size: int | None = None,
    replacement: bool = False,
    train: str = "both",
    weight_decay: float = 0.0,
    rng: Rng = None,
    backend: str = "auto",
    dtype: str = "float64",
    progress: bool | str = "auto",
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 30.0,
) -> Trajectory:
    r"""Gradient descent on the loss of ``problem``, started at ``net``.

    .. math:: w_j \leftarrow w_j + \eta\, (a_j D_j - \lambda w_j), \quad
        a_j \leftarrow a_j + \eta\, (\langle w_j, D_j\rangle - \lambda a_j), \quad
        D_j = \sum_k \phi'(\langle w_j, x_k\rangle)\, c_k x_k

    with the weight decay lambda (0 by default), the pulls :math:`c_k = -\ell'(f(x_k), y_k)/n` and
    phi'(0) = leak, as PyTorch has it.

    Parameters
    ----------
    problem, net
        What to fit and the weights to start from.
    lr : float, array of ``steps`` values, or function of the step
        Step size; one step of size lr is flow time lr.
    steps : int
        Number of steps.
    save : list of steps, policy, or None
        When to record: ``geometric(1.1)``, ``every(100)``, ``when(predicate)``, a list (exactly
        those steps); None records the first and the last state.
    observe : names, observables or functions, optional
        What to record besides the loss: see :mod:`reluflow.trajectory.observables`.
    states : bool, optional
        Whether whole networks are recorded; by default only when nothing is observed.
    batch_size, replacement, rng
        Stochastic descent: size of a mini-batch, drawn by ``rng`` with replacement or, the
        default, as pieces of a fresh permutation each epoch. None is full batch.
    train : {"both", "first"}
        Whether the outer weights are trained as well.
    weight_decay : float
        lambda of the penalty (lambda/2) (|W|^2 + |a|^2) on the trained weights, added to the loss
        as ``torch.optim.SGD(weight_decay=)`` has it. A loop that shrinks weights by lr lambda
        beside the gradient step (as AdamW does) is the same here, without momentum; one that
        multiplies them by 1 - omega in every step has lambda = omega / lr. The recorded loss is
        that of the data alone.
    backend : {"auto", "lumped", "dense"}
        "lumped" moves whole activation cones (exact, independent of the width), "dense" moves
        every neuron, "auto" takes the cheaper by :mod:`reluflow.descent.model`, goes over to
        dense when neurons change cones too often for lumping to pay, and back once cones are
        few (``cost["handover"]`` lists the steps). With several outputs "auto" is dense, which was
        faster up to 100,000 neurons on six samples; "lumped" takes weights without log_scale.
    dtype : {"float64", "float32"}
        Precision of the dense matrix products; float32 needs ``backend="dense"``.
    progress : bool or "auto"
        Progress bar; "auto" shows it on a terminal.
    checkpoint : path, optional
        File holding the whole state: the same call resumes from it after a kill and gives bit for
        bit the same result. It is removed at the end.
    checkpoint_seconds : float
        How often it is written.

    Returns
    -------
    Trajectory
        Ctrl-C and divergence end in a status sentence and keep what was recorded.

    Examples
    --------
    >>> import numpy as np
    >>> problem = Problem(np.eye(2), np.array([1.0, 2.0]))
    >>> net = Network(np.full((1, 2), 0.1), np.array([0.1]))
    >>> run = descend(problem, net, lr=0.1, steps=2000)
    >>> np.round(run.final(problem.X), 6)
    array([1., 2.])
    """
    net.check_fits_problem(problem)
    _check_options(problem, steps, train, backend, dtype)
    weight_decay = decay_rate(weight_decay)
    schedule = Schedule(lr, steps)
    batches = Batches(problem.n, batch_size, replacement, generator_of(rng))
    observables = as_observables(observe)
    keep = states if states is not None else not observables
    recorder = Recorder(problem, as_save(save, steps, True), observables, keep, steps, True)
    settings = {
        "method": "descend",
        "steps": steps,
        "lr": schedule.name,
        "batch_size": batch_size,
        "replacement": replacement,
        "train": train,
        "weight_decay": weight_decay,
        "backend": backend,
        "dtype": dtype,
        "rng": rng if isinstance(rng, int) else (None if rng is None else "generator"),
        "m": net.m,
    }
    loop = _Loop(problem, net, schedule, batches, recorder, settings, backend, dtype)
    loop.checkpoint = Checkpoint(
        checkpoint, loop.key() if checkpoint is not None else "", checkpoint_seconds
    )
    return loop.run(steps, progress)


class _Loop:
    """One descent: the stepper, the clock and the records, chunk by chunk."""

    checkpoint: Checkpoint

    def __init__(
        self,
        problem: Problem,
        net: Network,
        schedule: Schedule,
        batches: Batches,
        recorder: Recorder,
        settings: dict[str, Any],
        backend: str,
        dtype: str,
    ) -> None:
        self.problem, self.net, self.schedule = problem, net, schedule
        self.batches, self.recorder, self.settings = batches, recorder, settings
        self.both, self.decay = settings["train"] == "both", float(settings["weight_decay"])
        self.samples = samples_of(problem, batches.size is not None, self.decay)
        self.dtype = np.dtype(dtype)
        start = problem.outputs(net)
        self.limit = _BEYOND * (1.0 + np.max(np.abs(problem.y)) + np.max(np.abs(start)))
        self.auto = backend == "auto" and self.dtype == np.float64 and problem.loss.kernel >= 0
        self.auto = self.auto and not problem.smoothing and not problem.several
        self.backend = self._cheaper(net) if self.auto else backend
        self.stepper = self._stepper(net)
        self.step, self.time = 0, 0.0
        self.retry: float = math.inf  # step at which a dense run counts its cones again
        self.cost: dict[str, Any] = {}

    def key(self) -> str:
        """Fingerprint of everything that determines the run."""
        arrays: dict[str, NDArray[Any]] = {
            "X": self.problem.X,
            "y": self.problem.y,
            "W": self.net.W,
            "a": self.net.a,
            "log_scale": self.net.log_factors,
            "lr": np.array(self.schedule.key),
        }
        draws = self.batches.pack()["batch.rng"] if self.batches.size is not None else ""
        saved = self.recorder.describe()
        extra = {"problem": self.problem.spec, "draws": str(draws), "saved": saved}
        return fingerprint(arrays, {**self.settings, "rng": None, **extra})

    def _cheaper(self, net: Network) -> str:
        """The backend that the cost model prefers for a network."""
        from reluflow.descent.tree import cones_of, flips_of, plant

        n, d, m = self.samples.n, self.samples.d, net.m
        work, dense = lumped_weights(n, d), dense_work(n, d, m)
        if m <= _FEW or work[0] + work[1] > dense:
            return "dense"
        patterns, _ = cones_of(self.samples.X, net.W)
        if work[0] + work[1] * len(patterns) > dense:
            return "dense"
        order, parents = plant(patterns)
        flips = flips_of(patterns[order], parents)[2].size
        lumped = work[0] + work[1] * len(patterns) + work[2] * flips
        return "lumped" if lumped < dense else "dense"

    def _stepper(self, net: Network) -> Stepper:
        n, d, m = self.samples.n, self.samples.d, net.m
        if self.problem.several:
            return self._vector_stepper(net)
        if self.backend == "lumped":
            from reluflow.descent.lumped import Lumped

            limit_work = dense_work(n, d, m) if self.auto else math.inf
            return Lumped(self.samples, net, self.both, self.limit, limit_work)
        if self.problem.smoothed is not None:
            smoothed = self.problem.smoothed
            return Smooth(self.problem, net, self.both, self.limit, smoothed, self.decay)
        fused = self.dtype == np.float64 and self.problem.loss.kernel >= 0
        if fused and fused_work(n, d, m) <= blas_work(n, d, m):
            return Fused(self.samples, net, self.both, self.limit)
        return Blas(self.problem, net, self.both, self.limit, self.dtype, self.decay)

    def _vector_stepper(self, net: Network) -> Stepper:
        if self.backend == "lumped":
            if self.decay:
                raise ReluflowError(
                    f"weight_decay by cones is for one output, got {self.problem.K}: use "
                    "backend='dense'"
                )
            from reluflow.descent.lumped_multioutput import LumpedVectors

            return LumpedVectors(self.problem, net, self.both, self.limit)
        from reluflow.descent.multioutput import Vectors

        return Vectors(self.problem, net, self.both, self.limit, self.dtype, self.decay)

    def network(self) -> Network:
        """Current weights."""
        W, a, log_scale = self.stepper.weights()
        p = self.problem
        return Network(W, a, log_scale, p.leak, p.bias, smoothing=p.smoothing)

    def run(self, steps: int, progress: bool | str) -> Trajectory:
        """Step until the end, divergence or Ctrl-C."""
        self._resume()
        began, chunk = clock.monotonic(), 16
        code = 0
        with Interrupt() as interrupt, Progress(steps, "descend", progress) as bar:
            while True:
                wanted = self.recorder.next()
                if wanted == self.step:
                    self._record()
                    continue
                if self.step >= steps or code == DIVERGED or interrupt.requested:
                    break
                if self.step == self.retry:
                    self._retry()
                count = int(min(chunk, min(wanted, steps, self.retry) - self.step))
                started = clock.monotonic()
                code = self._advance(count)
                spent = clock.monotonic() - started
                if spent < _CHUNK_SECONDS / 2 and count == chunk:
                    chunk = min(2 * chunk, 1 << 20)
                elif spent > 2 * _CHUNK_SECONDS:
                    chunk = max(1, chunk // 2)
                note = f"loss {self.recorder.last_loss:.6g}"
                bar.update(self.step, clock.monotonic() - began, note)
                if self.checkpoint.due():
                    self._write()
            if interrupt.requested and self.step < steps:
                self._write()
        self.cost = {**self.cost, **self.stepper.cost(), "seconds": clock.monotonic() - began}
        return self._result(code, steps)

    def _record(self) -> None:
        net = self.network if self.step else self.net
        self.recorder.record(self.step, self.step, self.time, net, self.stepper.outputs())

    def _advance(self, count: int) -> int:
        if self.batches.size is not None:
            count = max(1, min(count, _CHUNK_ENTRIES // self.batches.size))
        rates = self.schedule.rates(self.step, self.step + count)
        if self.decay and float(np.max(rates, initial=0.0)) * self.decay >= 1.0:
            raise ReluflowError(
                f"lr times weight_decay is {float(np.max(rates)) * self.decay:g}, expected less "
                "than 1: such a step would turn every weight around, use a smaller lr"
            )
        code, taken = self.stepper.advance(rates, self.batches.take(count))
        self.batches.drop(taken)
        self.step += taken
        self.time = self.schedule.time_after(self.time, self.step, rates[:taken])
        if code == UNPROFITABLE:
            self._change("dense")
            self.retry = max(2 * self.step, self.step + _RETRY_AFTER)
        return code

    def _change(self, backend: str) -> None:
        """Go on with another backend, from the current weights."""
        net = self.network()
        before = self.cost.get("handover", [])
        self.cost |= {**self.stepper.cost(), "handover": [*before, (self.step, backend)]}
        self.backend = backend
        self.stepper = self._stepper(net)

    def _retry(self) -> None:
        """A dense run goes back to cones once these have become few."""
        if self._cheaper(self.network()) == "lumped":
            self._change("lumped")
            self.retry = math.inf
        else:
            self.retry = 2 * self.step

    def _result(self, code: int, steps: int) -> Trajectory:
        if code == DIVERGED:
            last = max(self.step - 1, 0)
            rate = self.schedule.rates(last, last + 1)[0]
            status = Status(
                "diverged",
                f"Diverged at step {self.step}: the outputs left the range of numbers. "
                f"Use a smaller lr, it was {rate:g} there.",
                ok=False,
            )
            final = self._finite_network()
        elif self.step < steps:
            status = Status(
                "interrupted",
                f"Stopped by Ctrl-C after {self.step} of {steps} steps; the records so far are "
                "kept, and a checkpoint, if one was asked for, lets the same call go on.",
                ok=False,
            )
            final = self.network()
        else:
            status = Status("finished", f"All {steps} steps were taken.")
            final = self.network() if self.step else self.net
            self.checkpoint.end(self._pack)
        return self.recorder.trajectory(final, status, self.cost, self.settings)

    def _finite_network(self) -> Network:
        """The current weights, or the start when they have become infinite."""
        try:
            return self.network()
        except ReluflowError:
            return self.net

    def _write(self) -> None:
        self.checkpoint.write(self._pack())

    def _pack(self) -> dict[str, NDArray[Any]]:
        """Everything the continuation depends on."""
        return {
            **self.stepper.pack(),
            **self.recorder.pack(),
            **self.batches.pack(),
            "loop.step": np.array(self.step),
            "loop.time": np.array(self.time),
            "loop.backend": np.array(self.backend),
            "loop.retry": np.array(self.retry),
            "loop.handover": np.array(json.dumps(self.cost.get("handover", []))),
        }

    def _resume(self) -> None:
        state = self.checkpoint.read()
        if state is None:
            return
        if str(state["loop.backend"]) != self.backend:
            self.backend = str(state["loop.backend"])
            self.stepper = self._stepper(self.net)
        self.stepper.unpack(state)
        self.recorder.unpack(state)
        self.batches.unpack(state)
        self.step, self.time = int(state["loop.step"]), float(state["loop.time"])
        self.retry = float(state["loop.retry"])
        before = json.loads(str(state["loop.handover"]))
        if before:
            self.cost = {"handover": [tuple(change) for change in before]}
        self.cost["resumed"] = self.step


def _check_options(problem: Problem, steps: int, train: str, backend: str, dtype: str) -> None:
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 0:
        raise ReluflowError(f"steps must be a whole number >= 0, got {steps!r}")
    if train not in ("both", "first"):
        raise ReluflowError(f"train must be 'both' or 'first', got {train!r}")
    if backend not in BACKENDS:
        raise ReluflowError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}")
    if dtype not in ("float64", "float32"):
        raise ReluflowError(f"dtype must be 'float64' or 'float32', got {dtype!r}")
    if dtype == "float32" and backend != "dense":
        raise ReluflowError("float32 is for matrix products only: give backend='dense' with it")
    if problem.several:
        return
    if backend == "lumped" or (dtype == "float32" and problem.smoothing):
        problem.check_kinks(f"backend={backend!r}, dtype={dtype!r}")
    if backend == "lumped" and problem.loss.kernel < 0:
        raise ReluflowError(
            f"the loss {problem.loss.name!r} has no compiled form: use backend='dense'"
        )
