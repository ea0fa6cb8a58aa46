"""What is predicted without training: extremal vectors, early alignment, the limit process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reluflow.landscape.align import Alignment
from reluflow.landscape.dispatch import extremal_vectors
from reluflow.landscape.extremal import ExtremalVectors
from reluflow.network import Network
from reluflow.prediction.limit import limit
from reluflow.prediction.process import JumpProcess
from reluflow.problem import Problem
from reluflow.runtime import write_text
from reluflow.runtime.plain import json_text
from reluflow.runtime.words import plural

_ROWS = 20  # extremal vectors printed
_ENTRIES = 6  # of a direction printed
_FATES = {
    -1: "die (no active sample)",
    -2: "shrink",
    -3: "rest",
    -4: "grow along directions that are not listed",
    -5: "could not be followed",
}


@dataclass(frozen=True, eq=False)
class Prediction:
    """Everything that is known before training."""

    problem: Problem
    net: Network | None
    extremal: ExtremalVectors
    alignment: Alignment | None
    process: JumpProcess
    start: str = "this start"

    @property
    def log_scale(self) -> float | None:
        """Logarithm of the largest inner weight of the start."""
        return None if self.net is None else float(self.net.log_norms.max())

    @property
    def fates(self) -> dict[int, int]:
        """Number of neurons that go to each extremal vector, or to a fate below zero."""
        if self.alignment is None:
            return {}
        where, count = np.unique(self.alignment.destination, return_counts=True)
        return dict(zip(where.tolist(), count.tolist(), strict=True))

    def jump_times(self) -> list[float] | None:
        """Real times of the jumps at the scale of the start."""
        if self.log_scale is None or not self.log_scale < 0.0:
            return None
        return [float(t) for t in self.process.jump_times(log_scale=self.log_scale)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: each part as its own ``to_dict()`` has it."""
        alignment = None
        if self.alignment is not None:
            others = {_FATES[row]: n for row, n in self.fates.items() if row < 0}
            alignment = {**self.alignment.to_dict(), "others": others}
            alignment["aligned_at"] = alignment["time"]
        return {
            "problem": self.problem.to_dict(),
            "extremal_vectors": self.extremal.to_dict(),
            "alignment": alignment,
            "process": self.process.to_dict(),
            "log_scale": self.log_scale,
            "jump_times": self.jump_times(),
        }

    def text(self) -> str:
        """Tables for a terminal."""
        return "\n".join([repr(self.problem), "", *self._vectors(), "", *self._story()])

    def _vectors(self) -> list[str]:
        found, fates = self.extremal, self.fates
        extent = "all" if found.exact else "found, perhaps not all"
        lines = [f"Extremal vectors, to which small neurons turn: {len(found)} ({extent})"]
        share = found.basin_fractions
        for i in range(min(len(found), _ROWS)):
            w = " ".join(f"{x: .4f}" for x in found.vectors[i, :_ENTRIES])
            w += " ..." if self.problem.d > _ENTRIES else ""
            line = f"  {i:>3}  {found.kinds[i]:<17}  G = {found.values[i]:< 12.6g}  w = [{w}]"
            if self.alignment is not None:
                here = fates.get(i, 0)
                line += f"  {here} {plural(here, 'neuron')}"
            elif share is not None:
                line += f"  basins {share[i, 0]:.3f} (+), {share[i, 1]:.3f} (-)"
            lines.append(line)
        if len(found) > _ROWS:
            lines.append(f"  and {len(found) - _ROWS} more (--json has them)")
        return lines

    def _story(self) -> list[str]:
        lines = []
        alignment = self.alignment
        if alignment is not None:
            fates = self.fates
            m, grow = alignment.sign.size, sum(n for row, n in fates.items() if row >= 0)
            others = [f"{n} {_FATES[row]}" for row, n in fates.items() if row < 0]
            lines += [
                f"Early alignment of {m} neurons: "
                + ", ".join([f"{grow} turn to an extremal vector and grow", *others])
                + f"; cosine {alignment.cosine:g} is reached by time {_last(alignment):.4g}.",
                "",
            ]
        lines.append(str(self.process))
        times = self.jump_times()
        if times and self.log_scale is not None:
            shown = ", ".join(f"{t:.5g}" for t in times[:12]) + (", ..." if len(times) > 12 else "")
            size = f"{np.exp(self.log_scale):.2g}"
            if self.log_scale < -690.0:  # below the smallest floats
                size = f"exp({self.log_scale:.5g})"
            come = "jumps come at times" if len(times) > 1 else "jump comes at time"
            lines.append(f"From {self.start} (largest |w_j| {size}) the {come} {shown}.")
        return lines

    def write(self, folder: Path, shape: tuple[int, int] | None = None) -> list[Path]:
        """Write predict.json and the pictures; ``shape`` draws directions as images."""
        from reluflow.plot.images import directions_picture
        from reluflow.plot.process import exponents, jumps, plot_saddles
        from reluflow.plot.render import make_folder, write_picture
        from reluflow.plot.sphere import (
            plot_alignment_circle,
            plot_alignment_sphere,
            plot_values,
        )

        plot = {2: plot_alignment_circle, 3: plot_alignment_sphere}.get(self.problem.d, plot_values)
        scale = self.log_scale if self.jump_times() is not None else None
        drawn = {
            "landscape": plot(self.problem, extremal=self.extremal).figure,
            "staircase": jumps(self.process, log_scale=scale).figure,
            "exponents": exponents(self.process).figure,
            "saddles": plot_saddles(self.process),
        }
        if shape is not None:
            titles = [
                f"{kind}, G = {value:.4g}"
                for kind, value in zip(self.extremal.kinds, self.extremal.values, strict=True)
            ]
            drawn["directions"] = directions_picture(
                self.extremal.vectors, shape, titles=titles, bias=self.problem.bias
            )
        make_folder(folder)
        files = [write_picture(figure, folder / f"{name}.png") for name, figure in drawn.items()]
        text = json_text(self.to_dict()) + "\n"
        return [*files, write_text(folder / "predict.json", text)]


def predict(
    problem: Problem,
    net: Network | None,
    max_seconds: float | None = None,
    start: str = "this start",
    seconds: float | None = None,
) -> Prediction:
    """The landscape, the early alignment of ``net`` and its limit process.

    Parameters
    ----------
    problem : Problem
    net : Network, or None for infinite width
    max_seconds : float, optional
        Budget of the limit process.
    start : str
        What to call ``net``.
    seconds : float, optional
        Budget of the proofs, which come after the process; see `reluflow.limit`.
    """
    from reluflow.landscape.dispatch import align

    found = extremal_vectors(problem)
    aligned = None if net is None else align(problem, net, paths=False, extremal=found)
    process = limit(problem, net, max_seconds=max_seconds, seconds=seconds)
    return Prediction(problem, net, found, aligned, process, start)


def _last(alignment: Alignment) -> float:
    """Time by which every growing neuron is aligned."""
    return float(alignment.time[alignment.growing].max(initial=0.0))
