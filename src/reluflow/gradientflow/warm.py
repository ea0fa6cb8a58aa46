"""The first use of a machine: compile kernels of the flow beside the prediction."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np

from reluflow._compiled import is_compiled

NOTE = "compiling kernels (first use only)"


def largest_kernels() -> list[tuple[Any, tuple[Any, ...]]]:
    """Kernels of the flow that take longest to compile, with arguments of the types they get."""
    from reluflow.gradientflow.terms import method
    from reluflow.kernels.flow_leap import OnTheWay, leap_all
    from reluflow.kernels.flow_scan import empty_wheel, scan
    from reluflow.kernels.flow_trace import trace_some
    from reluflow.kernels.flow_types import (
        Cones,
        Data,
        Dense,
        Frame,
        Meetings,
        Members,
        Rules,
        Traced,
    )

    one, two, three = np.empty(1), np.empty((1, 1)), np.empty((1, 1, 1))
    index, flags, signs = np.empty(1, np.int64), np.zeros(1, bool), np.empty((1, 1), np.int8)
    X, norms, y = np.empty((1, 1)), np.empty(1), np.empty(1)
    for frozen in (X, norms, y):  # as those of a problem
        frozen.flags.writeable = False
    data = Data(X, X.T.copy(), norms, y, 0, 1.0, 1.0, 0.0, False)
    cones = Cones(index, flags, one, index, one, two, two, index, signs, flags)
    members, frame = Members(index, index, two, one), Frame(two, one, 1.0, 0.0)
    rules, wheel = Rules(1.0, 1.0, 1.0, 0), empty_wheel(flags, 1)
    step = data, cones, frame, Dense(three, two), members
    kept = OnTheWay(one, three, two)
    met, out = Meetings(one, index), Traced(two, one, signs, two, one)
    return [
        (leap_all, (data, two, signs, members, flags, one, 1.0, 0.0, 0, signs, two, kept)),
        (trace_some, (data, method(), *step[1:], met, index, 1.0, rules, out, two)),
        (scan, (*step, index, wheel, rules, one, index, met)),
    ]


class FlowKernels:
    """Compiles the kernels of `flow` in two processes, unless the cache has them.

    The largest ones are compiled by a worker while this process works on the prediction, the
    others by :meth:`wait`: about as much work for each, so two cores are enough.
    """

    def __init__(self, needed: bool = True) -> None:
        self._worker: subprocess.Popen[bytes] | None = None
        if needed and not all(is_compiled(kernel) for kernel, _ in largest_kernels()):
            self._worker = subprocess.Popen(
                [sys.executable, "-m", "reluflow.gradientflow.warm"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

    @property
    def busy(self) -> bool:
        """Whether the worker is at work."""
        return self._worker is not None and self._worker.poll() is None

    def wait(self) -> None:
        """Until the cache is filled; whatever went wrong there is compiled here when needed."""
        if self._worker is not None:
            one_step()
            self._worker.wait()

    def __enter__(self) -> FlowKernels:
        return self

    def __exit__(self, *_: object) -> None:
        if self._worker is not None and self._worker.poll() is None:
            self._worker.kill()
            self._worker.wait()


def one_step() -> None:
    """Take a step of a small flow without a look at kinks: compiles all but the largest kernels."""
    from reluflow.gradientflow.cones import begin
    from reluflow.gradientflow.present import Present
    from reluflow.gradientflow.terms import data_of
    from reluflow.gradientflow.trial import Trial
    from reluflow.kernels.codes import STAY
    from reluflow.network import initialize
    from reluflow.problem import datasets

    problem = datasets.load("three-points")
    state, _ = begin(problem, initialize(problem, 20, rng=0), data_of(problem, "time"), STAY)
    now = Present(state, 1e-8, STAY)
    now.stiffness()
    now.log_sizes()
    trial = Trial(now)
    trial.attempt(1e-3)
    trial.dense()
    trial.sample()
    trial.outputs_at(0.5)
    trial.contributions(np.zeros(1, np.int64))
    state.sync()


def main() -> None:
    """Compile the largest kernels into the cache."""
    from numba import typeof

    for kernel, given in largest_kernels():
        kernel.compile(tuple(map(typeof, given)))


if __name__ == "__main__":
    main()
