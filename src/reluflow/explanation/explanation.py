"""An explanation: what was predicted, simulated and proved, and the verdict it gives."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reluflow._views import Shown
from reluflow.arrays import Array
from reluflow.claims.compare import Comparison
from reluflow.claims.verdict import Status, Verdict
from reluflow.errors import ReluflowError
from reluflow.explanation.end import (
    SILENT,
    Group,
    LargeStart,
    fitted_samples,
    linear_fit,
    normalized_margin,
    silent_samples,
)
from reluflow.explanation.horizon import Horizon
from reluflow.explanation.settings import Settings
from reluflow.explanation.unseen import Unseen
from reluflow.explanation.verdict.words import data_notes
from reluflow.explanation.weight_decay import PenalisedEnd
from reluflow.landscape.align import Alignment
from reluflow.landscape.extremal import ExtremalVectors
from reluflow.network import Network
from reluflow.optimum.certificate_file import Certificate
from reluflow.optimum.kkt import KKT, settling_rate
from reluflow.optimum.max_margin import NetworkMargin
from reluflow.optimum.min_norm import MinNorm
from reluflow.optimum.stationarity import Stationarity
from reluflow.prediction.process import JumpProcess
from reluflow.problem import Problem
from reluflow.report.page import Page
from reluflow.trajectory import Trajectory
from reluflow.trajectory.phases import Phases

_WIDTH, _INDENT = 96, 15  # of the verdict on a terminal


def paragraph(topic: str, text: str) -> str:
    """Sentences for a terminal, the topic before them."""
    head = f"{topic + ':':<{_INDENT}}"
    return textwrap.fill(text, _WIDTH, initial_indent=head, subsequent_indent=" " * _INDENT)


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Shown):
    """What a network learns from a problem: predicted, simulated, compared, certified.

    Attributes
    ----------
    problem, net, settings : the data, the start and what was asked for
    landscape : directions to which small neurons turn
    alignment : where each neuron turns first, or None where that is too much work
    process, wide : the limit of small scales, of this start and of infinite width, or None
    run : the simulation
    groups : directions that carry the network at the end
    comparison : predicted and simulated jumps
    seen : phases of the run where there is no prediction
    point, kkt : stationarity of the end (square losses), and its counterpart for margin losses
    optimum : the interpolator of least norm, or the largest margin of any network
    small : a small network that interpolates, where the run does not
    large : where the same start ends from weights of size 1
    certificates, claims : checkable statements; theorems that apply
    unseen : how the network does on rows it was not trained on, where such rows were kept
    skipped : stage to the sentence that says why it is missing
    penalised : with weight decay, the end and the best network of the penalised loss
    """

    problem: Problem
    net: Network
    settings: Settings
    landscape: ExtremalVectors
    alignment: Alignment | None
    process: JumpProcess | None
    wide: JumpProcess | None
    run: Trajectory
    groups: tuple[Group, ...]
    comparison: Comparison | None
    seen: Phases | None
    point: Stationarity | None
    kkt: KKT | None
    optimum: MinNorm | NetworkMargin | None
    small: Network | None
    large: LargeStart | None
    certificates: tuple[Certificate, ...]
    claims: tuple[Verdict, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)
    penalised: PenalisedEnd | None = None
    unseen: Unseen | None = None

    @cached_property
    def horizon(self) -> Horizon | None:
        """Until when the run can be relied on, where it did not locate its kinks."""
        return Horizon.of_run(self.run)

    @cached_property
    def outputs(self) -> Array:
        """f at the samples at the end."""
        return self.problem.outputs(self.run.final)

    @property
    def margins(self) -> Array:
        """y_k f(x_k)."""
        return self.problem.y * self.outputs

    @cached_property
    def margin(self) -> float:
        """Normalised margin at the end."""
        return normalized_margin(self.problem, self.run.final)

    @cached_property
    def loss(self) -> float:
        """Loss at the end."""
        return float(np.exp(self.problem.log_value(self.outputs)))

    @cached_property
    def first_loss(self) -> float:
        """Loss of the silent network."""
        return self.problem.silent_loss

    @property
    def mse(self) -> float:
        """Mean squared error at the end."""
        return float(np.mean((self.outputs - self.problem.y) ** 2))

    @cached_property
    def linear(self) -> bool:
        """Whether the end is the least-squares linear function of the features."""
        return not self.problem.loss.margin and linear_fit(self.problem, self.outputs)

    @property
    def silent(self) -> bool:
        """Whether the network has no output to speak of, on any sample beside its label."""
        if not self.problem.y.any():
            return bool(np.abs(self.outputs).max() <= SILENT)
        return bool(silent_samples(self.problem, self.outputs).all())

    @cached_property
    def fits(self) -> bool:
        """Whether every label is fitted, each up to a small share of its own size."""
        return not self.problem.loss.margin and bool(
            fitted_samples(self.problem, self.outputs).all()
        )

    @cached_property
    def unlearnt(self) -> NDArray[np.bool_]:
        """Samples (n,) on which the network at the end has no output to speak of."""
        return silent_samples(self.problem, self.outputs)

    @cached_property
    def settling(self) -> float | None:
        """Slowest rate r at which the direction at the end settles, as |theta|^-r; margin losses
        on data whose KKT conditions were looked at."""
        if self.kkt is None or not np.isfinite(self.kkt.residual) or not self.groups:
            return None
        try:
            return settling_rate(self.problem, self.run.final)
        except (ReluflowError, np.linalg.LinAlgError):
            return None

    @property
    def unmoved(self) -> bool:
        """Whether the pull of the samples vanishes in every direction, so that no neuron grows."""
        return self.landscape.exact and not bool((self.landscape.rates > 0.0).any())

    @property
    def failed(self) -> list[Verdict]:
        """Claims that fail."""
        return [v for v in self.claims if v.status is Status.FAILS]

    @property
    def missing(self) -> list[str]:
        """Stages that were left out, those with the same reason together."""
        reasons = dict.fromkeys(self.skipped.values())
        stages = {why: [s for s, given in self.skipped.items() if given == why] for why in reasons}
        return [f"{', '.join(names)}: {why}" for why, names in stages.items()]

    @cached_property
    def verdict(self) -> list[tuple[str, str]]:
        """The verdict: (topic, sentences)."""
        from reluflow.explanation.verdict.sentences import sentences

        return sentences(self)

    @property
    def text(self) -> str:
        """The verdict for a terminal."""
        lines = [paragraph(topic, text) for topic, text in self.verdict]
        return "\n".join([*self.notes, repr(self.problem), *lines, *self.left_out])

    @property
    def notes(self) -> tuple[str, ...]:
        """What was assumed about the data, the line on label and loss first."""
        return data_notes(self.problem)

    @property
    def left_out(self) -> list[str]:
        """What was not computed, and why, for a terminal."""
        return [
            textwrap.fill(f"Not computed, {line}", _WIDTH, subsequent_indent=" " * 4)
            for line in self.missing
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; the same for the same problem and settings."""
        from reluflow.explanation.files import as_dict

        return as_dict(self)

    def page(self) -> Page:
        """The whole report."""
        from reluflow.explanation.page import page_of

        return page_of(self)

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write report.html, report.json, run.nc and certificates/ into ``folder``."""
        from reluflow.explanation.files import write

        return write(self, Path(folder))

    def __repr__(self) -> str:
        return self.text
