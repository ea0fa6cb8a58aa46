"""The record of a run: networks, losses and observables at chosen steps or times."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reluflow._views import Shown
from reluflow.arrays import Array, real_number
from reluflow.errors import MissingEvidence, ReluflowError
from reluflow.kernels.codes import EVENT_NAMES
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.trajectory.states import States
from reluflow.trajectory.status import Status

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True, eq=False)
class Trajectory(Shown):
    """What a run recorded, how it ended and what it cost.

    Attributes
    ----------
    problem : Problem
        What was trained on.
    steps, times : arrays, shape (R,)
        Position of each record: steps taken and flow time (the sum of step sizes for descent).
    loss, log_loss : arrays, shape (R,)
        L of record i; the logarithm keeps its digits where L underflows.
    networks : sequence of R networks, or None when only observables were recorded
        ``networks[i]`` belongs to ``steps[i]``.
    observables, observable_dims : mappings
        Name to array of shape (R, ...), and to the names of its dimensions.
    final : Network
        State when the run ended; callable.
    status : Status
        A sentence; ``status.code`` for programs.
    cost, settings : mappings
        What the run used; what it was asked for, and versions.
    events : mapping
        Kinks met by a flow: arrays neuron, sample, time and kind (``kernels.codes.EventKind``) of
        equal length; `event_names` has the kinds as words.
    """

    _hints = MappingProxyType(
        {
            "losses": "use .loss",
            "time": "use .times",
            "t": "use .times",
            "network": "use .final for the last network, .networks[i] or .at(t) for others",
            "weights": "use .final.weights(), or .at(t).weights()",
            "predict": "use .final(X)",
            "animate": "use reluflow.plot.animate(run, path)",
            "history": "use .dataset, or .loss and .observables",
        }
    )

    problem: Problem
    steps: NDArray[np.int64]
    times: Array
    loss: Array
    log_loss: Array
    networks: States | None
    observables: Mapping[str, Array]
    observable_dims: Mapping[str, tuple[str, ...]]
    final: Network
    status: Status
    cost: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    events: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, name: str) -> Array:
        """An observable by name, "loss" and "log_loss" included."""
        if not isinstance(name, str):
            raise ReluflowError(f"records go by name, got {name!r}: run.networks[i] is a network")
        if name in ("loss", "log_loss", "steps", "times"):
            return np.asarray(getattr(self, name))
        if name not in self.observables:
            known = ", ".join(["loss", "log_loss", *self.observables])
            raise ReluflowError(f"nothing called {name!r} was recorded: this run has {known}")
        return self.observables[name]

    @property
    def flow_times(self) -> Array:
        """Gradient-flow time of each record, also where the clock was the loss; at most e^700."""
        if "log_time" in self.observables:
            return np.asarray(np.exp(np.minimum(self.observables["log_time"], 700.0)))
        return np.asarray(self.times, dtype=float)

    def path(self) -> States:
        """The recorded networks, in order; raises :class:`MissingEvidence` when there are none."""
        if self.networks is None:
            raise MissingEvidence("the run kept no networks: give states=True when it is made")
        return self.networks

    def at(self, t: float) -> Network:
        """The network recorded last at or before time ``t``.

        Between records no network is known; ``times`` says when they stand, and ``save=`` of the
        run sets how close.
        """
        t = real_number(t, "t")
        path, times = self.path(), self.times
        if not (len(times) and times[0] <= t <= times[-1]):
            ends = f"from {times[0]:.6g} to {times[-1]:.6g}" if len(times) else "none"
            raise ReluflowError(f"the run has no record at time {t:g}: its records are {ends}")
        net: Network = path[int(np.searchsorted(times, t, side="right")) - 1]
        return net

    @property
    def event_names(self) -> list[str]:
        """Kind of each event as a word: "cross", "slide", "exit" or "branch"."""
        return [EVENT_NAMES[kind] for kind in self.events.get("kind", ())]

    @property
    def dataset(self) -> xarray.Dataset:
        """All records as an xarray dataset along dimension ``record``."""
        from reluflow.trajectory.store import to_dataset

        return to_dataset(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the run to one NetCDF file; an existing file is replaced whole."""
        from reluflow.trajectory.store import save

        save(self, path)

    @staticmethod
    def load(path: str | os.PathLike[str], max_bytes: int = 8 << 30) -> Trajectory:
        """Read a run; refuses files whose arrays would exceed ``max_bytes``."""
        from reluflow.trajectory.store import load

        return Trajectory(**load(path, max_bytes))

    def __repr__(self) -> str:
        last = f", loss {self.loss[-1]:.6g}" if len(self) else ""
        return f"Trajectory({len(self)} records{last}; {self.status})"
