"""The run of an explanation as something that plays in its report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reluflow.landscape.alignment import G
from reluflow.playback.fields import field_of
from reluflow.playback.frames import principal_axes
from reluflow.playback.recording import data_of, recording_of
from reluflow.playback.snippet import snippet

if TYPE_CHECKING:
    from reluflow.explanation.explanation import Explanation

_FRAMES = 160
_LINES = 60  # neurons whose sizes are drawn
_ROWS = 24  # extremal vectors drawn
_PLATEAUS = 8
_MOST_NEURONS = 20_000
_ANGLES = 181


def replay_of(e: Explanation) -> str:
    """HTML that plays the run; empty where it kept no networks, or too many."""
    if e.net.m > _MOST_NEURONS or e.settings.lr is not None:
        return ""
    field_every = 3 if e.problem.d > 2 or e.problem.bias is None else 1  # squares are large
    recording = recording_of(e.run, _FRAMES, _LINES, field_every)
    if recording is None:
        return ""
    about = {
        **recording.about,
        "status": str(e.run.status),
        "end_loss": float(e.run.loss[-1]),
        "t_end": None,
    }
    axes = principal_axes(e.problem, e.run.final)
    problem = data_of(e.problem, axes)
    return snippet(problem, _landscape(e), _process(e), type(recording)(about, recording.arrays))


def _landscape(e: Explanation) -> dict[str, Any]:
    """Extremal vectors, and G on the circle where there are two features."""
    found = e.landscape
    document = {
        "vectors": found.vectors[:_ROWS],
        "values": found.values[:_ROWS],
        "kinds": found.kinds[:_ROWS],
    }
    if e.problem.d == 2:
        angle = np.linspace(-np.pi, np.pi, _ANGLES)
        document["circle"] = G(e.problem, np.column_stack([np.cos(angle), np.sin(angle)]))
    return document


def _process(e: Explanation) -> dict[str, Any] | None:
    """Predicted times and losses at the scale of the start."""
    process = e.process if e.comparison is not None else None
    if process is None:
        return None
    scale = float(e.net.log_norms.max())
    field = field_of(e.problem)
    plateaus = None
    if field.kind == "line":
        plateaus = [field.values(net) for net in process.networks[: _PLATEAUS + 1]]
    return {
        "times": process.jump_times(log_scale=scale),
        "losses": process.losses,
        "log_scale": scale,
        "small": True,
        "plateaus": plateaus,
    }
