"""What `explain` found for several outputs."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.compare import Comparison
from reluflow.claims.verdict import Status, Verdict
from reluflow.explanation.explanation import paragraph
from reluflow.explanation.files import common_fields, write
from reluflow.explanation.multioutput.end import VectorGroup, vector_groups
from reluflow.explanation.multioutput.quantities import SEPARATE, confusion
from reluflow.explanation.multioutput.words import sentences
from reluflow.explanation.settings import Settings
from reluflow.landscape.align_multioutput import VectorAlignment
from reluflow.landscape.multioutput import VectorExtremals
from reluflow.network import Network
from reluflow.optimum.kkt import KKT
from reluflow.optimum.max_margin import NetworkMargin
from reluflow.optimum.min_norm import MinNorm
from reluflow.optimum.multioutput import VectorStationarity
from reluflow.prediction.multioutput.process import VectorProcess
from reluflow.problem import Problem
from reluflow.report.page import Page
from reluflow.runtime.plain import to_plain
from reluflow.trajectory import Trajectory

_MOMENTS = 12  # of the confusion over time that report.json keeps


@dataclass(frozen=True, eq=False, repr=False)
class VectorExplanation:
    """What small weights lead to with several outputs; ``print`` shows the verdict.

    Attributes
    ----------
    comparison : of the predicted jumps with those of ``run``, None without a prediction
    kkt : conditions of the largest margin at ``late``, None for square losses
    point : stationarity of the end, None for margin losses
    optimum : the best network of any width between bounds, None where it was not searched
    late : the end of ``run``, trained on until margins are large
    """

    problem: Problem
    net: Network
    settings: Settings
    landscape: VectorExtremals
    alignment: VectorAlignment | None
    process: VectorProcess | None
    run: Trajectory
    kkt: KKT | None
    comparison: Comparison | None = None
    point: VectorStationarity | None = None
    optimum: NetworkMargin | MinNorm | None = None
    late: Network | None = None
    skipped: Mapping[str, str] = field(default_factory=dict)
    certificates: tuple[Any, ...] = ()
    claims: tuple[Verdict, ...] = ()

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What the outputs are called."""
        return self.problem.classes or tuple(f"output {c}" for c in range(self.problem.K))

    @cached_property
    def outputs(self) -> Array:
        """f (n, K) at the end."""
        return self.problem.outputs(self.run.final)

    @cached_property
    def accuracy(self) -> float:
        """Share of samples whose largest output is that of their class."""
        return float(np.mean(np.argmax(self.outputs, axis=1) == self.problem.labels))

    @cached_property
    def separated(self) -> list[tuple[float, int, int]]:
        """(time, class, class) for each pair of classes, by the time from which on it separates."""
        shares, times = self.run["separations"], self.run.flow_times
        out = []
        for c in range(self.problem.K):
            for e in range(c + 1, self.problem.K):
                below = np.flatnonzero(shares[:, c, e] < SEPARATE)
                first = 0 if not below.size else int(below[-1]) + 1
                when = float(times[first]) if first < len(times) else np.inf
                out.append((when, c, e))
        return sorted(out)

    @property
    def failed(self) -> list[Verdict]:
        """Claims that fail, of those that carry over to several outputs."""
        return [v for v in self.claims if v.status is Status.FAILS]

    @property
    def missing(self) -> list[str]:
        """Stages that were left out, and why."""
        return [f"{name}: {why}" for name, why in self.skipped.items()]

    @property
    def left_out(self) -> list[str]:
        """The same for a terminal."""
        return [
            textwrap.fill(f"Not computed, {line}", 88, subsequent_indent="    ")
            for line in self.missing
        ]

    @cached_property
    def groups(self) -> tuple[VectorGroup, ...]:
        """The directions that carry the network at the end."""
        return vector_groups(self.problem, self.run.final)

    @cached_property
    def moments(self) -> list[int]:
        """Records that show how confusions go: spread over the fall of the loss."""
        fallen = np.maximum.accumulate(-self.run.loss)
        marks = np.linspace(fallen[0], fallen[-1], _MOMENTS)
        return sorted(set(np.searchsorted(fallen, marks).tolist()))

    @cached_property
    def verdict(self) -> list[tuple[str, str]]:
        """The verdict: (topic, sentences)."""
        return sentences(self)

    @property
    def text(self) -> str:
        """The verdict for a terminal."""
        lines = [paragraph(topic, text) for topic, text in self.verdict]
        return "\n".join([repr(self.problem), *lines, *self.left_out])

    def __repr__(self) -> str:
        return self.text

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        classes = self.problem.classes is not None
        document = {
            **common_fields(self),
            "optimum": self._optimum(),
            "end": {
                "loss": float(self.run.loss[-1]),
                "accuracy": self.accuracy if classes else None,
                "confusion": confusion(self.problem, self.outputs) if classes else None,
                "kkt_residual": None if self.kkt is None else self.kkt.residual,
                "normalized_margin": None if self.kkt is None else self.kkt.margin,
                "stationarity": None
                if self.point is None
                else {
                    "kind": self.point.kind,
                    "residual": self.point.residual,
                    "gain": self.point.gain,
                    "escape": self.point.escape,
                    "escape_bound": self.point.escape_bound,
                },
                "groups": [g.to_dict() for g in self.groups],
            },
            "course": [
                {
                    "time": float(self.run.flow_times[i]),
                    "accuracy": float(self.run["accuracy"][i]),
                    "confusion": self.run["confusion"][i],
                }
                for i in self.moments
            ]
            if classes
            else None,
            "separations": [
                {"classes": [self.names[c], self.names[e]], "time": when}
                for when, c, e in self.separated
            ]
            if classes
            else None,
        }
        return dict(to_plain(document))

    def _optimum(self) -> dict[str, Any] | None:
        o = self.optimum
        if o is None:
            return None
        size = None if o.network is None else o.network.m
        found: dict[str, Any] = {"status": o.status, "neurons": size}
        if isinstance(o, MinNorm):
            return found | {"norm2": o.norm2, "lower_bound": o.lower_bound}
        return found | {"margin": o.margin, "upper_bound": o.upper_bound}

    def page(self) -> Page:
        """The whole report."""
        from reluflow.explanation.multioutput.page import page_of

        return page_of(self)

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write report.html, report.json and run.nc into ``folder``."""
        return write(self, Path(folder))
