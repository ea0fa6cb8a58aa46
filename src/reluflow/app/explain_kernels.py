"""The first use of a machine: compile the kernels of the flow beside the prediction."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

NOTE = "compiling kernels (first use only)"


def compiled(dispatcher: Any) -> bool:
    """Whether the cache has some compiled version of a kernel."""
    try:
        folder = Path(dispatcher._cache.cache_path)
    except AttributeError:  # no cache
        return True
    function = dispatcher.py_func
    name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}-*.nbi"
    return any(folder.glob(name))


class FlowKernels:
    """Compiles the kernels of `flow` in a process of its own, unless the cache has them.

    The work takes as long as that of the prediction's kernels, so on two cores it costs nothing.
    """

    def __init__(self, needed: bool = True) -> None:
        from reluflow.kernels.flow_step import stages

        self._worker: subprocess.Popen[bytes] | None = None
        if needed and not compiled(stages):
            self._worker = subprocess.Popen(
                [sys.executable, "-m", "reluflow.app.explain_kernels"],
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
            self._worker.wait()

    def __enter__(self) -> FlowKernels:
        return self

    def __exit__(self, *_: object) -> None:
        if self._worker is not None and self._worker.poll() is None:
            self._worker.kill()
            self._worker.wait()


def main() -> None:
    """Run a small flow: afterwards the cache has its kernels."""
    from reluflow.flow.flow import flow
    from reluflow.network import initialize
    from reluflow.problem import datasets
    from reluflow.trajectory import every

    problem = datasets.load("three-points")
    net = initialize(problem, 20, 1e-6, rng=0)
    flow(problem, net, save=every(1.0), progress=False)


if __name__ == "__main__":
    main()
