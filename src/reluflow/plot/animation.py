"""Animation of a run: function or decision boundary beside the neurons, on axes that stay."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow.arrays import Array
from reluflow.checks import check_arguments
from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.plot.curves import clock_of, loss_panel
from reluflow.plot.palette import SIMULATED
from reluflow.plot.panels import (
    boundary_panel,
    extent_of,
    field_of,
    function_panel,
    has_boundary,
    leading_plane,
    neurons_panel,
)
from reluflow.plot.render import draw, make_folder
from reluflow.plot.traces import Panel, Points
from reluflow.problem import Problem
from reluflow.runtime import Progress, beside
from reluflow.trajectory import Trajectory

SUFFIXES = (".gif", ".mp4")
_DPI = 100
_LONGEST = 3600.0  # seconds for which a frame may stay
_STILL = 0.1  # share of the frames that follow time alone
_FEW = 12  # samples whose hyperplanes are drawn: more would hide the neurons
_COLOURS = 128  # of one frame of a .gif
_SIZE = (9.6, 4.8)  # inches
_PLACES = ((0.09, 0.12, 0.39, 0.72), (0.55, 0.24, 0.40, 0.60))  # of the two axes


def check_target(path: str | os.PathLike[str]) -> Path:
    """The path if an animation can be written there, or a sentence saying why not."""
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in SUFFIXES:
        raise ReluflowError(f"an animation is a .gif or .mp4 file, got {target}: rename it")
    if target.is_dir():
        raise ReluflowError(f"{target} is a folder: expected the name of a file to write")
    if suffix == ".mp4":
        from matplotlib.animation import FFMpegWriter

        if not FFMpegWriter.isAvailable():
            raise ReluflowError(f"{target} needs ffmpeg, which is not installed: write a .gif")
    return target


@check_arguments
def animate(
    run: Trajectory,
    path: str | os.PathLike[str],
    *,
    fps: float = 12.0,
    frames: int = 120,
    hold: float = 1.5,
    progress: bool | str = "auto",
) -> Path:
    """Write the neurons and the function of a run as an animation, as [BF24]_ show theirs.

    Left the function (one feature and a bias), the decision boundary (two features, labels -1 and
    +1) or else the loss; right the neurons by angle and norm, in more than two dimensions
    projected on the two leading directions of the final weights. All frames share their axes:
    the largest norm and the range of f are those of the whole run.

    Parameters
    ----------
    run : Trajectory
        With recorded networks.
    path : path
        Ends in .gif or, if ffmpeg is installed, in .mp4.
    fps : float
        Frames per second.
    frames : int
        Frames at most: records at even distances of what can be seen (neurons turning and
        growing, the loss falling), the first and the last included.
    hold : float
        Seconds for which the last frame stays.
    progress : bool or "auto"

    Returns
    -------
    Path
    """
    target = check_target(path)
    if not (np.isfinite(fps) and fps > 0 and 0 <= hold < _LONGEST):
        raise ReluflowError(f"fps must be positive and hold not negative, got {fps} and {hold}")
    scenes = scenes_of(run, frames)
    make_folder(target.parent)
    record = _write_gif if target.suffix.lower() == ".gif" else _write_mp4
    try:
        with beside(target) as part, Progress(len(scenes.records), "animate", progress) as bar:
            record(_Stage(scenes, bar), part, fps, hold)
    except OSError as error:
        raise ReluflowError(f"cannot write {target}: {error.strerror or error}") from None
    return target


@dataclass(frozen=True, eq=False)
class Scenes:
    """Which records are shown, and the panels of each on common axes."""

    run: Trajectory
    records: NDArray[np.intp]
    left: Callable[[int], Panel]
    right: Callable[[int], Panel]

    def title(self, i: int) -> str:
        """Where record i stands, and its loss."""
        x, label = clock_of(self.run)
        name = "s" if label.startswith("s,") else label
        where = f"{int(x[i]):,}" if label == "step" else f"{x[i]:.4g}"
        return f"{self.run.problem.name}: {name} {where}, loss {self.run.loss[i]:.6f}"


def scenes_of(run: Trajectory, frames: int = 120) -> Scenes:
    """The frames of an animation as panels; see :func:`animate`."""
    run.problem.check_one_output("an animation")
    if run.networks is None or len(run) < 2:
        raise ReluflowError(
            "an animation needs at least 2 recorded networks: run with states=True and save= more"
        )
    if frames < 2:
        raise ReluflowError(f"frames must be at least 2, got {frames}")
    records = _records_to_show(run, frames)
    return Scenes(run, records, _left(run, records), _right(run, records))


def _records_to_show(run: Trajectory, frames: int) -> NDArray[np.intp]:
    """Records at even distances of what is seen, also where there are fewer than ``frames``.

    What is seen is how far neurons turn, the loss falls (its logarithm for margin losses) and
    sizes grow; a small share goes to time itself, so that rests are seen as such, but short.
    """
    path = np.cumsum(_seen(run))
    wanted = np.linspace(path[0], path[-1], min(frames, len(run)))
    return np.unique(np.searchsorted(path, wanted * (1.0 - 1e-12)))


def _seen(run: Trajectory) -> Array:
    """How much each record differs to the eye from the one before; the whole is about 1."""
    level = run.log_loss if run.problem.loss.margin else run.loss
    changes = [np.abs(np.diff(level, prepend=level[0]))]
    turned, grown = np.zeros(len(run)), np.zeros(len(run))
    states = run.path()
    before = states[0]
    for i in range(1, len(run)):
        net = states[i]
        turned[i] = np.linalg.norm(net.directions - before.directions, axis=1).mean()
        top = max(net.log_m_norm, before.log_m_norm)
        if np.isfinite(top):
            grown[i] = abs(np.exp(net.log_m_norm - top) - np.exp(before.log_m_norm - top))
        before = net
    changes += [turned, grown]
    parts = [change / total for change in changes if (total := float(change.sum())) > 0.0]
    rest = np.full(len(run), _STILL / len(run))
    rest[0] = 0.0
    return np.asarray((sum(parts, np.zeros(len(run))) / max(1, len(parts)) + rest) / (1 + _STILL))


def _left(run: Trajectory, records: NDArray[np.intp]) -> Callable[[int], Panel]:
    """The function, the boundary, or the loss with a dot that moves along."""
    problem, nets = run.problem, run.path()
    if problem.d == 2 and problem.bias is not None:
        return _function(problem, [nets[i] for i in records], nets.__getitem__)
    if has_boundary(problem):
        extent = extent_of(problem)
        top = max(float(np.abs(field_of(nets[i], extent, 25)[2]).max()) for i in records[-3:])
        return lambda i: boundary_panel(
            nets[i], problem, extent=extent, top=top, resolution=101, title="decision boundary"
        )
    curve, x = loss_panel(run), clock_of(run)[0]
    x = np.clip(x, *(curve.xlim or (x[0], x[-1])))

    def loss(i: int) -> Panel:
        dot = Points(x[i : i + 1], run.loss[i : i + 1], color=SIMULATED, size=50, clip=False)
        return replace(curve, traces=[*curve.traces, dot], legend="")

    return loss


def _function(
    problem: Problem, shown: list[Network], net_of: Callable[[int], Network]
) -> Callable[[int], Panel]:
    x = problem.X[:, 0]
    reach = 0.2 * float(np.ptp(x)) or 1.0
    span = float(x.min()) - reach, float(x.max()) + reach
    grid = np.linspace(*span, 101)[:, None]
    values = np.concatenate([problem.y, *(net(grid) for net in shown)])
    edge = 0.08 * float(np.ptp(values)) or 1.0
    ylim = float(values.min()) - edge, float(values.max()) + edge
    return lambda i: function_panel(
        net_of(i), problem, span=span, ylim=ylim, title="function", legend="upper right"
    )


def _right(run: Trajectory, records: NDArray[np.intp]) -> Callable[[int], Panel]:
    """The neurons; norms in units of the largest of all frames."""
    problem, nets = run.problem, run.path()
    few = problem.d == 2 and problem.n <= _FEW
    title, seen, plane = "neurons", problem if few else None, np.eye(problem.d, 2)
    if problem.d > 2:
        title = "neurons, on their two leading directions"
        plane = leading_plane(run.final)
    largest = max(float(nets[i].log_norms.max()) for i in records)

    def neurons(i: int) -> Panel:
        net = nets[i]
        flat = Network(net.W @ plane, net.a, net.log_factors - largest)
        return neurons_panel(flat, seen, size=1.0, title=title, legend="below")

    return neurons


class _Stage:
    """A figure with two axes at fixed places, drawn anew for each frame."""

    def __init__(self, scenes: Scenes, bar: Progress) -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        self.scenes, self.bar, self._began = scenes, bar, time.monotonic()
        self.figure = Figure(figsize=_SIZE, dpi=_DPI)
        self.canvas: Any = FigureCanvasAgg(self.figure)
        first = scenes.records[0]
        panels = scenes.left(first), scenes.right(first)
        self.axes = [
            self.figure.add_axes(place, projection="polar" if panel.polar else None)
            for place, panel in zip(_PLACES, panels, strict=True)
        ]

    def frames(self) -> Iterator[int]:
        """Draw one record after the other."""
        for count, i in enumerate(self.scenes.records, start=1):
            panels = self.scenes.left(i), self.scenes.right(i)
            for ax, panel in zip(self.axes, panels, strict=True):
                ax.clear()
                draw(panel, ax)
            self.figure.suptitle(self.scenes.title(i), x=0.5, y=0.97)
            yield i
            self.bar.update(count, time.monotonic() - self._began)


def _write_gif(stage: _Stage, path: Path, fps: float, hold: float) -> None:
    from PIL import Image

    images = []
    for _ in stage.frames():
        stage.canvas.draw()
        picture = Image.fromarray(np.asarray(stage.canvas.buffer_rgba())[..., :3])
        images.append(picture.quantize(_COLOURS, dither=Image.Dither.NONE))
    each = round(1000 / fps)
    durations = [each] * (len(images) - 1) + [each + round(1000 * hold)]
    images[0].save(
        path, format="GIF", save_all=True, append_images=images[1:], duration=durations, loop=0
    )


def _write_mp4(stage: _Stage, path: Path, fps: float, hold: float) -> None:
    from matplotlib.animation import FFMpegWriter

    writer = FFMpegWriter(fps=fps, extra_args=["-f", "mp4", "-pix_fmt", "yuv420p"])  # type: ignore[arg-type]
    with writer.saving(stage.figure, str(path), _DPI):
        for _ in stage.frames():
            writer.grab_frame()
        for _ in range(round(hold * fps)):
            writer.grab_frame()
