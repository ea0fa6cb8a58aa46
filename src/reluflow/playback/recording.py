"""A run as the front end plays it: times, losses, sizes, f on a grid, neurons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.network import Network
from reluflow.playback.fields import Field, field_of
from reluflow.playback.frames import Packer, View, principal_axes
from reluflow.problem import Problem
from reluflow.runtime.plain import to_plain
from reluflow.trajectory import Trajectory

LINES = 200  # neurons whose sizes are drawn one by one
_LISTED = 400  # samples with their coordinates in a document


@dataclass(frozen=True, eq=False)
class Recording:
    """Plain values and arrays of numbers, by name; what a host hands to the front end."""

    about: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


class Recorder:
    """Takes the networks of a run one after the other.

    Parameters
    ----------
    problem : Problem
    frames : int
        About how many networks will come.
    axes : array (2, d), optional
        What to draw of more than three features; by default what the first network suggests.
    lines : int
        Neurons whose sizes are drawn one by one.
    field_every : int
        One of so many frames has f on its grid.
    """

    def __init__(
        self,
        problem: Problem,
        frames: int,
        axes: Array | None = None,
        lines: int = LINES,
        field_every: int = 1,
    ) -> None:
        self.problem, self.field = problem, field_of(problem)
        self._frames, self._axes, self._most = frames, axes, lines
        self._packer: Packer | None = None
        self._lines: NDArray[np.intp] = np.empty(0, np.intp)
        self._sizes: list[Array] = []
        self._values: list[Array] = []
        self._at: list[int] = []
        self._outputs: list[Array] = []
        self._stride = field_every

    def add(self, net: Network) -> None:
        """Record the next network."""
        if self._packer is None:
            axes = None
            if net.d > 3:
                axes = principal_axes(self.problem, net) if self._axes is None else self._axes
            self._packer = Packer(self.problem, View(axes))
            work = self.field.every(self._frames, 1 if net.d == 2 else net.m)
            self._stride = max(self._stride, work)
            count = min(net.m, self._most)
            self._lines = np.unique(np.linspace(0, net.m - 1, count).astype(np.intp))
        number = self._packer.frames
        self._packer.add(net)
        chosen = net.subset(self._lines)
        self._sizes.append(chosen.log_norms)
        self._outputs.append(self.problem.outputs(net))
        if len(self.field.places) and number % self._stride == 0:
            self._at.append(number)
            self._values.append(self.field.values(net))

    def finish(self, times: Array, loss: Array, log_loss: Array, final: Network) -> Recording:
        """The recording, with the losses of its frames."""
        if self._packer is None:
            raise RuntimeError("nothing was recorded")
        about, arrays = self._packer.pack()
        signs = np.sign(final.subset(self._lines).a).astype(int)
        arrays |= {
            "times": np.asarray(times, float),
            "loss": np.asarray(loss, float),
            "log10_loss": np.asarray(log_loss, float) / np.log(10.0),
            "sizes": np.maximum(np.array(self._sizes, np.float32), np.float32(-1e30)).ravel(),
            "outputs": np.array(self._outputs, np.float32).ravel(),
            "field": np.array(self._values, np.float32).ravel(),
            "field_at": np.array(self._at, np.uint32),
        }
        document = {
            "neurons": about,
            "lines": int(self._lines.size),
            "signs": signs.tolist(),
            "field": self.field.to_dict(),
        }
        return Recording(document, arrays)


def data_of(problem: Problem, axes: Array | None = None) -> dict[str, Any]:
    """Samples and labels for the drawing, and what they are."""
    free = problem.d - (problem.bias is not None)
    X = problem.X[:_LISTED, :free]
    kind = {1: "line", 2: "plane"}.get(free, "many")
    document = {
        **problem.to_dict(),
        "free": free,
        "kind": kind,
        "margin": bool(problem.loss.margin),
        "X": X if free <= 3 else None,  # three are drawn as kinks on the sphere
        "y": problem.y[:_LISTED],
        "listed": len(X),
        "silent_loss": problem.silent_loss,
        "extent": list(field_of(problem).extent),
    }
    if free > 2:
        chosen = axes if axes is not None else principal_axes(problem, silent(problem))
        document["drawn"] = problem.X[:_LISTED] @ chosen.T
    return dict(to_plain(document))


def silent(problem: Problem) -> Network:
    """A network without output."""
    return Network(np.zeros((1, problem.d)), np.zeros(1), leak=problem.leak, bias=problem.bias)


def recording_of(
    run: Trajectory, most: int = 240, lines: int = LINES, field_every: int = 1
) -> Recording | None:
    """The recording of a finished run; None where it kept no networks.

    Parameters
    ----------
    run : Trajectory
    most : int
        Frames taken, evenly among the records.
    lines, field_every : int
        As for `Recorder`.
    """
    if run.networks is None or len(run) < 2:
        return None
    rows = np.unique(np.linspace(0, len(run) - 1, min(most, len(run))).astype(int))
    axes = principal_axes(run.problem, run.final) if run.final.d > 3 else None
    recorder = Recorder(run.problem, len(rows), axes, lines, field_every)
    for i in rows:
        recorder.add(run.networks[int(i)])
    return recorder.finish(run.flow_times[rows], run.loss[rows], run.log_loss[rows], run.final)


__all__ = ["Field", "Recorder", "Recording", "data_of", "recording_of", "silent"]
