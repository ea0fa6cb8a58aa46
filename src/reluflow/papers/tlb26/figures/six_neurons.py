"""[TLB26]_: six neurons on 64 orthonormal points learn one after the other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reluflow.claims.verdict import Comparison, at_least, at_most, equals
from reluflow.papers.figure import Drawn, figure
from reluflow.papers.tlb26.figures.general import general_pictures, quotient_picture, random_draws
from reluflow.papers.tlb26.figures.run import (
    COLOURS,
    EPOCHS,
    GUESSES,
    LR,
    L,
    Six,
    lag,
    runs,
    setting,
)
from reluflow.report.traces import Line, Panel, Picture, Rule, Trace

FIRST = 450_000  # epoch at which the pictures begin


@figure(
    "TLB26",
    "F1",
    title="Six neurons on 64 orthonormal points: the loss falls in steps that were predicted",
    quick={"descent": False, "scales": (10, 20, 40, 80, 160, 320), "draws": 0},
    full={"descent": True, "scales": (10, 20, 40, 80, 160, 320, 640, 1280), "draws": 8},
    claims=("TLB26-T1", "TLB26-T2", "TLB26-E15"),
)
def figure1(*, descent: bool, scales: tuple[float, ...], draws: int, seed: int = 0) -> Drawn:
    """Figure 1: staircase of the loss, fitted points and norms, with the predicted jumps."""
    made = runs(descent)
    process = setting()[2]
    predicted = process.times * L / LR
    panels = [_loss(made, predicted), _fitted(made, predicted), _norms(made, predicted)]
    seen = [comparison for six in made for comparison in _staircase(six)]
    pictures = [Picture(panels, 3, f"64 orthonormal points, six neurons from e^-{L:.0f}")]
    numbers: dict[str, Any] = {
        "predicted_epochs": predicted.tolist(),
        "refined_epochs": (process.half_fit_times(log_scale=-L) / LR).tolist(),
        "predicted_norm2": process.norm2,
        "minimal_norm2": process.min_norm2,
        "sets": [len(s) for s in process.sets],
        **{
            six.name: {"epochs": six.drop_epochs.tolist(), "norm2": float(six.run["norm2"][-1])}
            for six in made
        },
    }
    if descent:
        late = made[1].drop_epochs / made[0].drop_epochs - 1
        seen += [
            at_least(late.min(), 0.0, what="descent against flow: relative delay of jumps, least"),
            at_most(late.max(), 1e-3, what="descent against flow: relative delay of jumps"),
        ]
        refined = process.half_fit_times(log_scale=-L)[0] / LR * lag()
        seen.append(
            equals(
                made[1].drop_epochs[0],
                refined,
                tolerance=50,
                what="first jump of descent against the formula for discrete steps",
            )
        )
        numbers["refined_first_epoch_of_descent"] = refined
        numbers["delay_of_descent"] = late.tolist()
    summary = _summary(made)
    extras = [quotient_picture(scales), general_pictures()]
    if draws:
        extras.append(random_draws(draws))
    for extra in extras:
        summary += extra.summary
        pictures += list(extra.pictures)
        seen += list(extra.seen)
        numbers |= extra.numbers
    return Drawn(pictures, numbers, summary, seen, _caption(descent))


def _jump_rules(predicted: np.ndarray) -> list[Trace]:
    return [Rule(at, dash=":") for at in predicted]


def _shown(six: Six) -> np.ndarray:
    return six.epochs >= FIRST


def _loss(made: list[Six], predicted: np.ndarray) -> Panel:
    losses = setting()[2].losses
    edges = np.concatenate([[FIRST], np.repeat(predicted, 2), [EPOCHS]])
    traces: list[Trace] = _jump_rules(predicted)
    for six, colour, dash in zip(made, ("tab:blue", "tab:orange"), ("-", "--"), strict=False):
        at = _shown(six)
        traces.append(Line(six.epochs[at], six.run.loss[at], six.name, colour, dash, 2.2))
    traces.append(Line(edges, np.repeat(losses, 2), "Algorithm 1", "0.15", "-", 1.0))
    return Panel(traces, "loss", "epoch", "mean squared error", legend="upper right")


def _fitted(made: list[Six], predicted: np.ndarray) -> Panel:
    six = made[-1]
    at = _shown(six)
    traces = [*_jump_rules(predicted), Line(six.epochs[at], six.fitted[at], six.name, "tab:blue")]
    return Panel(traces, "fitted points (f at least y/2)", "epoch", "points", ylim=(0, 66))


def _norms(made: list[Six], predicted: np.ndarray) -> Panel:
    six = made[-1]
    at = six.epochs >= 250_000  # room for the legend
    norms = np.exp(six.run["log_norms"][at])
    lines = [Line(six.epochs[at], norms[:, j], f"neuron {j + 1}", COLOURS[j]) for j in range(6)]
    roots = [Rule(math.sqrt(v), "y", dash=":") for v in setting()[2].sizes]
    panel = [*_jump_rules(predicted), *roots, *lines]
    return Panel(panel, "norms, dotted: predicted", "epoch", "|w|", legend="center left")


def _staircase(six: Six) -> list[Comparison]:
    """What a reader must see in the staircase of one run."""
    process, name = six.process, six.name
    right = len(six.drops) == process.n_jumps
    epochs = np.abs(six.drop_epochs / (process.times * L / LR) - 1) if right else np.array([np.inf])
    sets = right and all(
        np.array_equal(np.sort(a), np.sort(b)) for a, b in zip(six.drops, process.sets, strict=True)
    )
    plateaus = [
        np.abs(six.run.loss[six.middle(i)] / process.losses[i] - 1).max()
        for i in range(process.n_jumps)
    ]
    norm2 = float(six.run["norm2"][-1])
    return [
        equals(len(six.drops), process.n_jumps, tolerance=0, what=f"{name}: drops of the loss"),
        equals(sets, 1, tolerance=0, what=f"{name}: points fitted in each drop as predicted"),
        at_most(epochs.max(), 5e-3, what=f"{name}: half-fit epochs against tau L/lr, relative"),
        at_most(max(plateaus), 1e-3, what=f"{name}: losses of plateaus, relative"),
        equals(norm2, process.norm2, tolerance=1e-3, what=f"{name}: squared norm at the end"),
    ]


def _summary(made: list[Six]) -> list[str]:
    process = setting()[2]

    def listed(epochs: np.ndarray) -> str:
        return ", ".join(f"{e:,.0f}" for e in epochs)

    return [
        f"Algorithm 1 predicts jumps at epochs {listed(process.times * L / LR)} that fit "
        f"{', '.join(str(len(s)) for s in process.sets)} points; with their constants for this "
        f"scale, {listed(process.half_fit_times(log_scale=-L) / LR)}.",
        *(f"By {six.name}: {listed(six.drop_epochs)}." for six in made),
        f"Squared norm at the end {made[-1].run['norm2'][-1]:.4f}, predicted {process.norm2:.4f}; "
        f"the smallest interpolating network has {process.min_norm2:.2f}.",
    ]


def _caption(descent: bool) -> str:
    how = (
        "Flow and descent differ by the delay of finite steps, one part in a thousand."
        if descent
        else "By gradient flow, its time divided by lr; the full size adds the descent itself."
    )
    return (
        f"{GUESSES} {how} The pictures of difference quotients and of data that are not "
        "orthonormal are ours (errors below 1e-12 are drawn there; for the latter the process is "
        "computed, not proved). Their random data are "
        "draw 0; where two jumps are close together the plateau between them is too short to be "
        "seen at these scales (the full size lists such draws)."
    )


@figure(
    "TLB26",
    "F3",
    title="Log-norms are piecewise linear, with predicted slopes",
    quick={"descent": False},
    full={"descent": True},
    claims=("TLB26-H1", "TLB26-L4", "TLB26-L8"),
)
def figure3(*, descent: bool, seed: int = 0) -> Drawn:
    """Figure 3: log-norms of six neurons, piecewise linear and concave."""
    made = runs(descent)
    six, process = made[-1], setting()[2]
    nodes = np.concatenate([[0.0], process.times, [EPOCHS * LR / L]])
    beta = process.exponents_at(nodes)
    panels = []
    for low, title in ((0, "from the start"), (FIRST, f"from epoch {FIRST:,}")):
        at = six.epochs >= low
        traces: list[Trace] = _jump_rules(process.times * L / LR)
        for j in range(6):
            traces += [
                Line(six.epochs[at], six.run["log_norms"][at, j], f"neuron {j + 1}", COLOURS[j]),
                Line(nodes * L / LR, L * beta[:, j], "", "0.15", ":", 1.0),
            ]
        panels.append(
            Panel(
                traces,
                f"log-norms {title}, dotted: predicted",
                "epoch",
                "log |w|",
                xlim=(low, EPOCHS),
                ylim=(-1020, 30) if low == 0 else (-420, 20),
                legend="upper left" if low == 0 else "",
            )
        )
    seen, worst = [], {}
    for run in made:
        slopes, bends, flat = _slopes(run)
        worst[run.name] = slopes
        seen += [
            at_most(slopes, 5e-3, what=f"{run.name}: slopes against lr c S/n, relative"),
            at_most(bends, 1e-3, what=f"{run.name}: largest rise of a slope, over the first"),
            at_most(flat, 1e-6, what=f"{run.name}: slope after the own jump, over the first"),
        ]
    summary = [f"Slopes on the plateaus differ from lr c S/n by at most {worst[six.name]:.1e}."]
    picture = Picture(panels, 2, "Log-norms of six neurons", width=6.0, height=4.0)
    return Drawn([picture], {"slope_errors": worst}, summary, seen, GUESSES)


def _slopes(six: Six) -> tuple[float, float, float]:
    """Worst error of slopes, largest rise of a slope and largest slope after the own jump."""
    process = six.process
    measured = []
    for i in range(process.n_jumps + 1):
        at = six.middle(i)
        span = six.epochs[at[-1]] - six.epochs[at[0]]
        measured.append((six.run["log_norms"][at[-1]] - six.run["log_norms"][at[0]]) / span)
    slopes = np.array(measured)
    exact = LR * process.rates
    grows = exact > 0
    error = np.abs(slopes / np.where(grows, exact, 1.0) - 1)[grows].max()
    top = slopes[0].max()
    flat = np.abs(slopes[process.active]).max() / top
    return float(error), float(np.diff(slopes, axis=0).max() / top), float(flat)
