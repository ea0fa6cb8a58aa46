"""Collects records while a run goes on, and can be put into a checkpoint and taken out."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow._version import __version__
from reluflow.arrays import Array
from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.trajectory.observables import Observable
from reluflow.trajectory.save import Save
from reluflow.trajectory.states import States
from reluflow.trajectory.status import Status
from reluflow.trajectory.trajectory import Trajectory


def provenance() -> dict[str, str]:
    """Versions a stored run carries."""
    import numba
    import scipy

    return {
        "reluflow": __version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "python": platform.python_version(),
    }


class _Lazy:
    """A network spelled out when first asked for."""

    def __init__(self, net: Network | Callable[[], Network]) -> None:
        self._net = net

    def __call__(self) -> Network:
        if not isinstance(self._net, Network):
            self._net = self._net()
        return self._net


class Recorder:
    """Records of one run.

    Parameters
    ----------
    problem : Problem
    policy : Save
        When to record.
    observables : tuple of Observable
    states : bool
        Whether whole networks are kept.
    end : float
        Last position; ``whole`` says whether positions are steps.
    """

    def __init__(
        self,
        problem: Problem,
        policy: Save,
        observables: tuple[Observable, ...],
        states: bool,
        end: float,
        whole: bool,
    ) -> None:
        self.problem, self.policy, self.observables = problem, policy, observables
        self.states, self.end, self.whole = states, end, whole
        self._columns: dict[str, list[Any]] = {
            name: [] for name in ("steps", "times", "loss", "log_loss", "W", "a", "log_scale")
        }
        self._columns.update({o.name: [] for o in observables})
        self.position = -1.0  # looked at last

    def describe(self) -> list[Any]:
        """What is recorded and when, in plain values."""
        return [self.policy.describe(), [o.name for o in self.observables], self.states]

    def next(self) -> float:
        """Next position to record (at most ``end``); inf when nothing is left."""
        return self.policy.start() if self.position < 0 else self.after(self.position)

    def after(self, position: float) -> float:
        """The position to record after another one."""
        following = self.policy.after(position, self.whole)
        if following > self.end:
            following = self.end if self.policy.ends and position < self.end else math.inf
        return following

    def record(
        self,
        position: float,
        step: int,
        time: float,
        net: Network | Callable[[], Network],
        f: Array | None = None,
    ) -> bool:
        """Keep the state at ``position`` if the policy wants it; whether it did.

        ``net`` may be a function that spells the network out; with the outputs ``f`` given, it
        is called only if something recorded needs more than them.
        """
        self.position = position
        state = _Lazy(net)
        wanted = self.policy.wants(self.problem, state, position)
        if wanted:
            self._keep(step, time, state, f)
        return wanted

    def _keep(self, step: int, time: float, state: _Lazy, f: Array | None) -> None:
        f = self.problem.outputs(state()) if f is None else f
        columns = self._columns
        columns["steps"].append(step)
        columns["times"].append(time)
        columns["loss"].append(float(self.problem.value(f)))
        columns["log_loss"].append(float(self.problem.log_value(f)))
        if self.states:
            columns["W"].append(state().W)
            columns["a"].append(state().a)
            columns["log_scale"].append(state().log_scale)
        for o in self.observables:
            value = o.measure(self.problem, f) if o.of_outputs else o(self.problem, state())
            columns[o.name].append(np.asarray(value, dtype=float))

    @property
    def last_loss(self) -> float:
        """Loss of the newest record, nan before the first."""
        return self._columns["loss"][-1] if self._columns["loss"] else math.nan

    def pack(self) -> dict[str, NDArray[Any]]:
        """Records as arrays for a checkpoint."""
        packed = {"record_position": np.array(self.position)}
        for name, values in self._columns.items():
            if values and values[0] is not None:
                scales = name == "log_scale"
                kept = _fill_absent(values, self._columns["a"]) if scales else values
                packed[f"record.{name}"] = np.array(kept)
        return packed

    def unpack(self, packed: Mapping[str, NDArray[Any]]) -> None:
        """Restore what :meth:`pack` gave."""
        self.position = float(packed["record_position"])
        for name in self._columns:
            key = f"record.{name}"
            self._columns[name] = list(packed[key]) if key in packed else []
        if self.states and not self._columns["log_scale"]:
            self._columns["log_scale"] = [None] * len(self._columns["a"])

    def trajectory(
        self,
        final: Network,
        status: Status,
        cost: Mapping[str, Any],
        settings: Mapping[str, Any],
    ) -> Trajectory:
        """The finished record."""
        columns, problem = self._columns, self.problem
        states = None
        if self.states:
            shape = (len(columns["a"]), final.m)
            scales = columns["log_scale"]
            some = any(s is not None for s in scales)
            states = States(
                W=np.array(columns["W"]).reshape(*shape, final.d),
                a=np.array(columns["a"]).reshape(*shape, *final.a.shape[1:]),
                log_scale=np.array(_fill_absent(scales, columns["a"])) if some else None,
                leak=problem.leak,
                bias=problem.bias,
                smoothing=problem.smoothing,
            )
        for o in self.observables:
            shapes, dims = {np.shape(v) for v in columns[o.name]}, o.dims_for(problem)
            if len(shapes) > 1 or (shapes and dims and len(next(iter(shapes))) != len(dims)):
                raise ReluflowError(f"observable {o.name!r} changed its shape during the run")
        return Trajectory(
            problem=problem,
            steps=np.array(columns["steps"], dtype=np.int64),
            times=np.array(columns["times"], dtype=float),
            loss=np.array(columns["loss"], dtype=float),
            log_loss=np.array(columns["log_loss"], dtype=float),
            networks=states,
            observables={o.name: np.array(columns[o.name]) for o in self.observables},
            observable_dims={o.name: self._dims(o) for o in self.observables},
            final=final,
            status=status,
            cost=dict(cost),
            settings={**settings, "save": self.policy.describe(), "versions": provenance()},
        )

    def _dims(self, o: Observable) -> tuple[str, ...]:
        values = self._columns[o.name]
        dims = o.dims_for(self.problem)
        rank = np.ndim(values[0]) if values else len(dims)
        return dims if dims else tuple(f"{o.name}_{i}" for i in range(rank))


def _fill_absent(scales: list[Any], outer: list[Any]) -> list[Any]:
    """Absent log_scales among present ones are zeros."""
    return [np.zeros(len(a)) if v is None else v for v, a in zip(scales, outer, strict=True)]
