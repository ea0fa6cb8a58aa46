"""The pictures of a run together: every curve its records allow, and its end."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from reluflow.errors import ReluflowError
from reluflow.report.boundary import boundary_panel, has_boundary
from reluflow.report.curves import (
    cosines_panel,
    log_norms_panel,
    loss_panel,
    margins_panel,
    stable_rank_panel,
)
from reluflow.report.panels import function_panel, neurons_panel
from reluflow.report.render import make_folder, write_picture
from reluflow.report.traces import Panel, Picture
from reluflow.trajectory import Trajectory

if TYPE_CHECKING:
    from reluflow.prediction.process import JumpProcess


def end_panels(run: Trajectory) -> list[Panel]:
    """The function or decision boundary and the neurons at the end, where they can be drawn."""
    problem, net = run.problem, run.final
    panels: list[Panel] = []
    if problem.d == 2 and problem.bias is not None:
        panels.append(function_panel(net, problem, title="function at the end", legend="best"))
    elif has_boundary(problem):
        panels.append(boundary_panel(net, problem, title="decision boundary at the end"))
    if net.d == 2:
        panels.append(neurons_panel(net, problem, title="neurons at the end"))
    return panels


def curve_panels(
    run: Trajectory,
    process: JumpProcess | None = None,
    directions: ArrayLike | None = None,
    *,
    log_scale: float | None = None,
) -> list[Panel]:
    """Every curve that the records of a run allow.

    Parameters
    ----------
    run, process, log_scale
        As in :func:`loss_panel`.
    directions : array (k, d), optional
        Adds the cosines with these.
    """
    made: list[Callable[[], Panel]] = [
        lambda: loss_panel(run, process, log_scale=log_scale),
        lambda: log_norms_panel(run, process, log_scale=log_scale),
        lambda: stable_rank_panel(run),
    ]
    if directions is not None and len(np.atleast_2d(directions)):
        made.insert(2, lambda: cosines_panel(run, directions))
    if np.isin(run.problem.y, (-1.0, 1.0)).all():
        made.append(lambda: margins_panel(run))
    panels = []
    for make in made:
        try:
            panels.append(make())
        except ReluflowError:  # not recorded
            if not panels:
                raise
    return panels


def write_curves(
    run: Trajectory,
    folder: str | os.PathLike[str],
    process: JumpProcess | None = None,
    directions: ArrayLike | None = None,
) -> list[Path]:
    """Write curves.png and, in two dimensions, end.png.

    Parameters
    ----------
    run, process, directions
        As in :func:`curve_panels`.
    folder : path
        Made if needed.
    """
    target = Path(folder)
    curves = curve_panels(run, process, directions)
    pictures = [Picture(curves, 2, name="curves")]
    ends = end_panels(run)
    if ends:
        pictures.append(Picture(ends, len(ends), name="end", height=3.8))
    return write_pictures(pictures, target)


def write_pictures(pictures: Sequence[Picture], folder: Path) -> list[Path]:
    """PNG files named after the pictures, in a folder made if needed."""
    make_folder(folder)
    return [write_picture(picture, folder / f"{picture.name}.png") for picture in pictures]
