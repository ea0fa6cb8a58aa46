"""What a network with several outputs learns: stages, verdict, page and files.

The stages are those of one output where they exist for several: directions and alignment, the first
jumps of the limit process, a simulation, the end. What is told is which classes each direction
tells apart, in which order pairs of classes separate, and what is confused at the end.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from reluflow._version import __version__
from reluflow.arrays import Array
from reluflow.claims.verdict import Verdict
from reluflow.explanation.explanation import paragraph
from reluflow.explanation.files import kept_in, write
from reluflow.explanation.settings import Settings
from reluflow.explanation.simulate import finished_run
from reluflow.explanation.stages import Stages
from reluflow.landscape.multioutput import (
    VectorAlignment,
    VectorExtremals,
    align,
    extremal_vectors,
)
from reluflow.network import Network, initialize
from reluflow.optimum.kkt import KKT
from reluflow.plot.curves import loss_panel
from reluflow.plot.images import directions_picture
from reluflow.plot.traces import Line, Panel, Picture
from reluflow.prediction.multioutput.limit import limit
from reluflow.prediction.multioutput.process import VectorProcess
from reluflow.problem import Problem
from reluflow.problem.tables import unseen_scores
from reluflow.report.page import Page
from reluflow.runtime.checkpoint import KeptFile
from reluflow.runtime.plain import to_plain
from reluflow.runtime.words import count, join, number, plural
from reluflow.trajectory import Observable, Trajectory, every

LOCATED = 20_000  # neurons times samples up to which the simulation is gradient flow
FOLLOWED = 2e7  # m n d up to which every neuron is followed to its direction
PREDICTED = 2e6  # m n d up to which the limit process is computed
JUMPS = 3  # of the limit process that are predicted
ASCENTS = 2e9  # starts times n d K of the search for directions
WORK = 6e11  # multiplications of the descent
SEPARATE, GAP = 0.9, 0.1  # share of two classes that prefer their own by so much when told apart
CONDITIONS = 2e5  # m n K up to which the KKT conditions of the end are looked at


def separations(problem: Problem, f: Array) -> Array:
    """Share of the samples of classes c and e that prefer their own of the two by GAP, (K, K)."""
    labels, K = problem.labels, problem.K
    out = np.ones((K, K))
    right = np.zeros((K, K))
    for c in range(K):
        mine = f[labels == c]
        right[c] = (mine[:, c : c + 1] > mine + GAP).sum(axis=0)
    sizes = np.bincount(labels, minlength=K)
    for c in range(K):
        for e in range(c + 1, K):
            total = max(sizes[c] + sizes[e], 1)
            out[c, e] = out[e, c] = (right[c, e] + right[e, c]) / total
    return out


def confusion(problem: Problem, f: Array) -> Array:
    """Samples of class c (row) whose largest output is e (column)."""
    out = np.zeros((problem.K, problem.K))
    np.add.at(out, (problem.labels, np.argmax(f, axis=1)), 1.0)
    return out


def errors(problem: Problem, f: Array) -> Array:
    """Share of the variation of each output that is left, (K,)."""
    total = np.sum(problem.y**2, axis=0)
    return np.asarray(np.sum((f - problem.y) ** 2, axis=0) / np.where(total > 0, total, 1.0))


@dataclass(frozen=True, eq=False, repr=False)
class VectorExplanation:
    """What small weights lead to with several outputs; ``print`` shows the verdict."""

    problem: Problem
    net: Network
    settings: Settings
    landscape: VectorExtremals
    alignment: VectorAlignment | None
    process: VectorProcess | None
    run: Trajectory
    kkt: KKT | None
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
        """Claims that fail: none are checked for several outputs."""
        return []

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
    def verdict(self) -> list[tuple[str, str]]:
        """The verdict: (topic, sentences)."""
        found = [
            ("In short", _in_short(self)),
            ("Directions", directions_in_words(self)),
            ("Jumps", jumps_in_words(self)),
            ("Order", _order(self)),
            ("End", _end(self)),
            ("Simulation", str(self.run.status)),
        ]
        return [(topic, text) for topic, text in found if text]

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
            "software": f"reluflow {__version__}",
            "problem": self.problem.to_dict(),
            "settings": self.settings.to_dict(),
            "key": self.settings.key(self.problem),
            "verdict": [{"topic": topic, "text": text} for topic, text in self.verdict],
            "directions": self.landscape.to_dict(),
            "alignment": None if self.alignment is None else self.alignment.to_dict(),
            "process": None if self.process is None else self.process.to_dict(),
            "run": {"status": str(self.run.status), "code": self.run.status.code},
            "end": {
                "loss": float(self.run.loss[-1]),
                "accuracy": self.accuracy if classes else None,
                "confusion": confusion(self.problem, self.outputs) if classes else None,
                "kkt_residual": None if self.kkt is None else self.kkt.residual,
                "normalized_margin": None if self.kkt is None else self.kkt.margin,
            },
            "separations": [
                {"classes": [self.names[c], self.names[e]], "time": when}
                for when, c, e in self.separated
            ]
            if classes
            else None,
            "skipped": dict(self.skipped),
        }
        return dict(to_plain(document))

    def write(self, folder: str | Path) -> list[Path]:
        """Write report.html, report.json and run.nc into ``folder``."""
        return write(self, Path(folder), page_of(self))


# ---------------------------------------------------------------------- stages
def explain_vectors(
    problem: Problem,
    settings: Settings,
    stages: Stages,
    announce: Callable[[str, str], None],
    place: Path | None = None,
) -> VectorExplanation:
    """Predict, simulate and describe, each stage within its means.

    What a killed explanation left in ``place`` is used again.
    """
    net = initialize(problem, settings.m, settings.scale, rng=settings.seed)
    size = float(net.m) * problem.X.size
    starts = int(np.clip(ASCENTS / (40.0 * problem.X.size * problem.K), 16, 400))
    landscape = stages.need("directions", lambda: extremal_vectors(problem, starts=starts))
    much = f"the data are too large for it ({problem.n:,} samples, {problem.d} features)"
    alignment = stages.run(
        "alignment",
        lambda: align(problem, net, extremal=landscape),
        "" if size <= FOLLOWED else much,
    )
    key = settings.key(problem)
    process = stages.run(
        "limit process",
        lambda: predict(problem, net, settings, kept_in(place, f"limit-{key}")),
        "" if size <= PREDICTED and has_pull_of(problem) else much,
    )
    if process is not None and not process.n_jumps:
        stages.skipped["limit process"], process = process.status, None
    run = stages.need(
        "simulation",
        lambda: finished_run(
            place, key, lambda kept: simulate(problem, net, settings, landscape, process, kept)
        ),
    )
    conditions = None
    if problem.loss.margin and net.m * problem.n * problem.K <= CONDITIONS:
        from reluflow.optimum.multioutput import kkt

        conditions = stages.run("end", lambda: kkt(problem, run.final))
    found = VectorExplanation(
        problem, net, settings, landscape, alignment, process, run, conditions, stages.skipped
    )
    for topic, text in found.verdict:
        announce(topic, text)
    return found


def predict(
    problem: Problem, net: Network, settings: Settings, checkpoint: KeptFile | None
) -> VectorProcess:
    """The first jumps of the limit process, in a part of the time; Ctrl-C ends the explanation."""
    budget = 0.2 * settings.seconds
    process = limit(problem, net, max_jumps=JUMPS, max_seconds=budget, checkpoint=checkpoint)
    if process.interrupted:
        raise KeyboardInterrupt
    return process


def has_pull_of(problem: Problem) -> bool:
    """Whether some sample pulls on a silent network."""
    return bool((problem.pull_sizes * problem.norms).any())


def simulate(
    problem: Problem,
    net: Network,
    settings: Settings,
    landscape: VectorExtremals,
    process: VectorProcess | None,
    checkpoint: KeptFile | None = None,
) -> Trajectory:
    """Gradient flow for small data, gradient descent with a small step otherwise."""
    classes = problem.classes is not None
    observe = [
        Observable("separations", separations, ("class", "other_class"), of_outputs=True),
        Observable("confusion", confusion, ("class", "predicted_class"), of_outputs=True),
        "accuracy",
    ]
    if not classes:
        observe = [Observable("errors", errors, ("output",), of_outputs=True)]
    rate = float(landscape.values.max(initial=0.0)) or problem.total_pull or 1.0
    horizon = 4.0 * max(-float(net.log_norms.max()), 1.0) / rate
    if process is not None:
        jumps = process.jump_times(log_scale=float(net.log_norms.max()))
        horizon = max(horizon, 2.0 * float(jumps[-1]))
    if settings.lr is None and net.m * problem.n <= LOCATED:
        from reluflow.gradientflow.flow import flow

        return flow(
            problem,
            net,
            t_end=horizon,
            save=every(horizon / 240),
            observe=observe,
            max_seconds=settings.seconds,
            checkpoint=checkpoint,
        )
    from reluflow.descent.descend import descend

    lr = settings.lr if settings.lr is not None else usual_step(problem)
    most = int(np.clip(WORK / (6.0 * net.m * problem.X.size), 200, 20_000))
    steps = settings.steps or int(np.clip(horizon / lr, 200, most))
    recorded: dict[str, Any] = {"save": every(max(1, steps // 300)), "observe": observe}
    return descend(problem, net, lr=lr, steps=steps, checkpoint=checkpoint, **recorded)


def usual_step(problem: Problem) -> float:
    """A step at which descent of a network of moderate size is stable and follows the flow."""
    top = (
        float(np.linalg.norm(problem.X, 2)) ** 2
        if problem.X.size < 1 << 22
        else float(np.sum(problem.norms**2))
    )
    bend = problem.loss.curvature if np.isfinite(problem.loss.curvature) else 1.0
    return 0.3 / max(problem.weight * bend * top, 1e-300)


# ---------------------------------------------------------------------- words
def told_apart(names: tuple[str, ...], b: Array, several: bool = False) -> str:
    """Which classes an outer direction raises and lowers: "tells setosa from virginica".

    ``several`` is for what several neurons do.
    """
    s = "" if several else "s"
    up = [names[c] for c in np.argsort(-b) if b[c] > 0.4 * np.abs(b).max()]
    down = [names[c] for c in np.argsort(b) if b[c] < -0.4 * np.abs(b).max()]
    if not up:
        return f"lower{s} {join(down, 3)}"
    if not down:
        return f"raise{s} {join(up, 3)}"
    return f"tell{s} {join(up, 3)} from {join(down, 3)}"


def _in_short(e: VectorExplanation) -> str:
    head = f"The network of {count(e.net.m, 'neuron')}"
    loss = number(float(e.run.loss[-1]))
    if e.problem.classes is None:
        left = e.run["errors"][-1]
        best, worst = int(np.argmin(left)), int(np.argmax(left))
        return (
            f"{head} ends at loss {loss}: of the variation of {e.names[best]} "
            f"{100 * left[best]:.3g} % is left, of {e.names[worst]} {100 * left[worst]:.3g} %."
        )
    apart = [row for row in e.separated if np.isfinite(row[0])]
    right = f"{100 * e.accuracy:.4g} % of the samples are in their class, loss {loss}"
    if not apart:
        return f"{head} has told no two classes apart when the simulation ends: {right}."
    _, c, d = apart[0]
    said = f"{head} first tells {e.names[c]} from {e.names[d]}"
    if len(apart) > 1:
        _, c, d = apart[-1]
        said += f", last {e.names[c]} from {e.names[d]}"
    return f"{said}; at the end {right}."


def directions_in_words(e: VectorExplanation) -> str:
    """Where small neurons turn, and which classes that tells apart."""
    tops = e.landscape.of_kind("max")
    if not tops.size:
        return "No direction in which small neurons grow was found."
    which = "" if e.landscape.exact else " (found)"
    said = f"Small neurons turn to {count(len(tops), 'direction')}{which}. "
    parts: list[str] = []
    for i in tops:
        what, rate = told_apart(e.names, e.landscape.outer[i]), e.landscape.values[i]
        part = f"{what} (rate {rate:.3g}{_features(e, i)})"
        if part not in parts and len(parts) < 3:
            parts.append(part)
    said += (
        f"The strongest {parts[0]}"
        if len(parts) == 1
        else f"The strongest {parts[0]}; next: {'; '.join(parts[1:])}"
    )
    if e.alignment is not None:
        grow = int(e.alignment.growing.sum())
        said += f". Of {count(e.net.m, 'neuron')} {grow:,} {plural(grow, 'grows', 'grow')}"
        dead = int(e.alignment.dead.sum())
        said += f", {dead:,} {plural(dead, 'is', 'are')} silent for ever" if dead else ""
    return f"{said}."


def _features(e: VectorExplanation, i: int) -> str:
    """The two features a direction looks at most, where features have names."""
    names = e.problem.known.get("features")
    if names is None or e.settings.image_shape is not None:
        return ""
    v = e.landscape.vectors[i][: len(names)]
    top = np.argsort(-np.abs(v))[:2]
    return ", " + join([f"{'more' if v[k] > 0 else 'less'} {names[k]}" for k in top])


def jumps_in_words(e: VectorExplanation) -> str:
    """The first jumps of the limit process, without training."""
    if e.process is None:
        return ""
    process, scale = e.process, float(e.net.log_norms.max())
    times = process.jump_times(log_scale=scale)
    parts = []
    for i, t in enumerate(times):
        group = process.neurons[i]
        what = told_apart(e.names, process.outer[i][int(group[0])], len(group) > 1)
        after = f"loss {process.losses[i + 1]:.4g} after it"
        parts.append(f"at time {t:.3g} {count(len(group), 'neuron')} that {what} ({after})")
    more = " More follow" if process.ending == "budget" else ""
    ends = f"{more}." if more else f" {process.status}"
    return f"Predicted without training: {'; '.join(parts)}.{ends}"


def _order(e: VectorExplanation) -> str:
    """In which order pairs of classes are told apart."""
    if e.problem.classes is None:
        return ""
    apart = [row for row in e.separated if np.isfinite(row[0])]
    never = len(e.separated) - len(apart)

    def pair(row: tuple[float, int, int]) -> str:
        return f"{e.names[row[1]]} and {e.names[row[2]]} (time {row[0]:.3g})"

    if not apart:
        return ""
    few = apart if len(apart) <= 4 else apart[:3]
    said = f"Told apart in this order, {100 * SEPARATE:.0f} % of both by a gap of {GAP:g}: "
    said += join([pair(r) for r in few])
    if len(apart) > 4:
        said += f"; the last of {len(e.separated)} pairs: {join([pair(r) for r in apart[-2:]])}"
    if never:
        said += f". {count(never, 'pair').capitalize()} {plural(never, 'is', 'are')} not told apart"
    return f"{said}."


def _end(e: VectorExplanation) -> str:
    """Accuracy, what is confused, margin, unseen rows."""
    parts = []
    if e.problem.classes is not None:
        table = confusion(e.problem, e.outputs)
        wrong = table - np.diag(np.diag(table))
        if not wrong.any():
            parts.append("Every sample is in its class.")
        else:
            c, d = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
            of = int(table[c].sum())
            parts.append(
                f"Most often confused: {int(wrong[c, d])} of {of} {e.names[c]} are taken for "
                f"{e.names[d]}."
            )
    if e.kkt is not None and np.isfinite(e.kkt.residual):
        parts.append(
            f"Normalised margin {e.kkt.margin:.4g}, distance to the KKT conditions "
            f"{e.kkt.residual:.2g}."
        )
    scores = unseen_scores(e.problem, e.run.final)
    if scores is not None:
        parts.append(scores.sentence)
    return " ".join(parts)


# ---------------------------------------------------------------------- the page
def page_of(e: VectorExplanation) -> Page:
    """The whole report."""
    p, s = e.problem, e.settings
    how = "gradient flow" if "rtol" in e.run.settings else "gradient descent"
    page = Page(
        f"What a network learns from {p.name}",
        f"{p.n:,} samples, {count(p.d, 'feature')}, {count(p.K, 'output')}, "
        f"{p.loss.name.replace('_', '-')} loss ({p.reduction}), leak {p.leak:g}; {s.m:,} neurons "
        f"from weights of size {s.scale:g} (seed {s.seed}), {how}.",
        terms=True,
    )
    (_, lead), *rest = e.verdict
    page.text(lead, kind="lead")
    page.points([f"{topic}: {text}" for topic, text in rest])
    if e.skipped:
        page.heading("Not computed", 3)
        page.points(e.missing)
    page.heading("What happens")
    panels = [loss_panel(e.run, e.process, log_scale=float(e.net.log_norms.max()))]
    if p.classes is not None:
        panels.append(_pairs_panel(e))
    page.figure(Picture(panels, columns=2, height=3.2), "Loss, and pairs of classes against time.")
    if s.image_shape is not None and len(e.landscape):
        titles = [told_apart(e.names, b) for b in e.landscape.outer[:8]]
        picture = directions_picture(
            e.landscape.vectors[:8], s.image_shape, titles=titles, bias=p.bias, most=8
        )
        page.figure(picture, "Directions to which small neurons turn, as images.")
    if p.classes is not None:
        page.heading("Confusion at the end")
        table = confusion(p, e.outputs)
        rows = [
            {"class": e.names[c], **{e.names[d]: int(table[c, d]) for d in range(p.K)}}
            for c in range(p.K)
        ]
        page.table(rows)
    return page.definitions()


def _pairs_panel(e: VectorExplanation) -> Panel:
    """Share of each pair that is told apart, the first and the last few pairs named."""
    shares, times = e.run["separations"], np.maximum(e.run.flow_times, 1e-300)
    shown = e.separated if len(e.separated) <= 6 else [*e.separated[:3], *e.separated[-3:]]
    traces = [Line(times, shares[:, c, d], f"{e.names[c]}, {e.names[d]}") for _, c, d in shown]
    return Panel(
        traces,
        "pairs of classes told apart",
        xlabel="time",
        ylabel="share on its own side",
        ylim=(0.0, 1.05),
        legend="below",
    )
