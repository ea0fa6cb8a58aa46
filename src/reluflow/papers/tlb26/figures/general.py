"""Pictures beside [TLB26]_ Figure 1: convergence of jump times, and data that are not orthonormal.

For general data the process is :func:`reluflow.prediction.limit`: a computation, not a theorem.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reluflow.claims.verdict import at_least, at_most, equals
from reluflow.gradientflow.flow import flow
from reluflow.network import initialize
from reluflow.papers.figure import Drawn
from reluflow.papers.tlb26.runs import golden_course
from reluflow.plot.traces import Line, Panel, Picture, Points, Rule, Trace
from reluflow.prediction.limit import limit
from reluflow.prediction.process import JumpProcess
from reluflow.problem import Problem, datasets
from reluflow.trajectory import Trajectory

SCALES = ((100.0, "tab:orange"), (400.0, "tab:blue"))  # log(1/scale) of the simulations


def quotient_picture(scales: tuple[float, ...]) -> Drawn:
    """Golden case: t_i/L tends to tau_i like 1/L, difference quotients much faster."""
    L = np.array(scales, dtype=float)
    times = np.array([golden_course(-x).half_fits for x in L])
    tau = datasets.golden().known["jump_times"]
    plain = np.abs(times / L[:, None] - tau)
    quotients = np.abs(np.diff(times, axis=0) / np.diff(L)[:, None] - tau)
    traces: list[Trace] = []
    for i in range(3):
        traces += [
            Line(L, plain[:, i], f"t/L, jump {i + 1}", f"C{i}", "--"),
            Points(L, plain[:, i], color=f"C{i}", size=14),
            Line(L[1:], np.maximum(quotients[:, i], 1e-12), f"quotient, jump {i + 1}", f"C{i}"),
            Points(L[1:], np.maximum(quotients[:, i], 1e-12), color=f"C{i}", marker="s", size=14),
        ]
    panel = Panel(
        traces,
        "golden case: distance to the predicted jump time",
        "L = log(1/scale)",
        "error",
        xscale="log",
        yscale="log",
        legend="lower left",
    )
    constants = (plain * L[:, None]).max(axis=0)
    seen = [
        at_most((plain[1:] / plain[:-1]).max(), 0.55, what="error of t/L when L doubles"),
        at_most(quotients[-1].max(), 1e-8, what="error of the last difference quotient"),
    ]
    numbers = {"quotient_errors": quotients.tolist(), "constants": constants.tolist()}
    return Drawn([Picture([panel], name="quotient", width=7.0, height=4.2)], numbers, (), seen)


def random_problem(seed: int = 0) -> Problem:
    """Eight Gaussian samples in four dimensions with Gaussian labels."""
    rng = np.random.default_rng(seed)
    return Problem(rng.standard_normal((8, 4)), rng.standard_normal(8), name="random")


def general_pictures() -> Drawn:
    """Random data, three points and Stewart's data: predicted against simulated."""
    cases = (
        ("eight random points", random_problem(), 8),
        ("three points", datasets.three_points(), 20),
        ("Stewart's data", datasets.stewart(), 200),
    )
    losses, sizes, seen, numbers = [], [], [], {}
    for name, problem, m in cases:
        start = initialize(problem, m, 1.0, "sphere", 0, normalize="none")
        process = limit(problem, start)
        simulated = [_simulate(problem, start, process, L) for L, _ in SCALES]
        losses.append(_loss_panel(name, process, simulated))
        sizes.append(_exponent_panel(name, process, simulated[-1]))
        errors = [
            _plateau_errors(process, run, L) for run, (L, _) in zip(simulated, SCALES, strict=True)
        ]
        seen += [
            at_most(errors[-1], 1e-3, what=f"{name}: loss in the middle of plateaus, relative"),
            equals(
                process.losses[-1],
                simulated[-1].loss[-1],
                tolerance=1e-6 * process.losses[0],
                what=f"{name}: loss at the end, predicted and simulated",
            ),
        ]
        numbers[name] = {
            "jump_times": process.times.tolist(),
            "losses": process.losses.tolist(),
            "ending": process.ending,
            "plateau_errors": errors,
        }
    picture = Picture(
        [*losses, *sizes], 3, "Data that are not orthonormal: predicted and simulated", "general"
    )
    return Drawn([picture], {"general": numbers}, (), seen)


NEAR = 0.05  # jumps closer than this share of their time look like one at these scales


def random_draws(draws: int) -> Drawn:
    """Draws of the random data: where prediction and simulation agree, at which scale, and not."""
    rows = []
    for seed in range(draws):
        problem = random_problem(seed)
        start = initialize(problem, 8, 1.0, "sphere", seed, normalize="none")
        process = limit(problem, start)
        runs = [_simulate(problem, start, process, L) for L, _ in SCALES]
        errors = [
            _plateau_errors(process, run, L) for run, (L, _) in zip(runs, SCALES, strict=True)
        ]
        gap = float((np.diff(process.times) / process.times[1:]).min(initial=np.inf))
        end = abs(float(runs[-1].loss[-1]) - process.losses[-1]) / process.losses[0]
        rows.append((gap, *errors, end))
    table = np.array(rows)
    apart = table[:, 0] >= NEAR
    said = []
    for k, (L, _) in enumerate(SCALES):
        missed = np.flatnonzero(table[:, 1 + k] > 1e-3)
        said.append(f"at e^-{L:.0f} draws {', '.join(map(str, missed)) or 'none'}")
    near = ", ".join(map(str, np.flatnonzero(~apart))) or "none"
    summary = [
        f"Of {draws} random draws these miss a plateau's loss by more than a thousandth: "
        f"{'; '.join(said)}. Draws {near} have two jumps less than {100 * NEAR:.0f} % apart, so "
        "that the plateau between them is too short to be seen at these scales; their ends agree."
    ]
    seen = [
        at_least(apart.sum(), draws / 4, what="random draws with jumps 5 % apart"),
        at_most(table[apart, 2].max(initial=0.0), 1e-3, what="their plateaus at the smaller scale"),
        at_most(table[:, 3].max(), 1e-3, what="all draws: loss at the end, over the first"),
    ]
    return Drawn((), {"random_draws": table.tolist()}, summary, seen)


def _simulate(problem: Problem, start: Any, process: JumpProcess, L: float) -> Trajectory:
    end = 1.3 * float(process.times[-1]) * L
    jumps = process.jump_times(log_scale=-L)
    around = np.linspace(-0.05, 0.05, 61) * float(process.times[0]) * L
    nodes = np.concatenate([[0.0], jumps, [end]])
    middles = (nodes[1:] + nodes[:-1]) / 2
    times = np.concatenate([np.linspace(0.0, end, 300), middles, *(t + around for t in jumps)])
    times = np.unique(times[(times >= 0.0) & (times <= end)])
    return flow(problem, start.scaled(-L), t_end=end, save=times, observe="log_norms")


def _plateau_errors(process: JumpProcess, run: Trajectory, L: float) -> float:
    """Largest error of the loss in the middle of plateaus, relative to the first loss."""
    nodes = np.concatenate([[0.0], process.jump_times(log_scale=-L), [run.times[-1]]])
    found = np.interp((nodes[1:] + nodes[:-1]) / 2, run.times, run.loss)
    return float(np.abs(found - process.losses).max() / process.losses[0])


def _loss_panel(name: str, process: JumpProcess, runs: list[Trajectory]) -> Panel:
    end = 1.3 * float(process.times[-1])
    traces: list[Trace] = []
    for run, (L, colour) in zip(runs, SCALES, strict=True):
        traces.append(Line(run.times / L, run.loss, f"simulated, e^-{L:.0f}", colour, width=2.0))
    edges = np.concatenate([[0.0], np.repeat(process.times, 2), [end]])
    traces.append(Line(edges, np.repeat(process.losses, 2), "predicted, scale to 0", "0.15", ":"))
    return Panel(
        traces,
        name,
        "time / log(1/scale)",
        "loss",
        legend="lower left" if len(process.times) == 1 else "upper right",
    )


def _exponent_panel(name: str, process: JumpProcess, run: Trajectory, most: int = 40) -> Panel:
    end, L = 1.3 * float(process.times[-1]), SCALES[-1][0]
    nodes = np.concatenate([[0.0], process.times, [end]])
    beta = process.exponents_at(nodes)
    traces: list[Trace] = [Rule(0.0, "y")]
    for j in range(min(process.m, most)):
        colour = f"C{j % 10}"
        traces.append(Line(run.times / L, run["log_norms"][:, j] / L, "", colour, width=1.4))
        traces.append(Line(nodes, beta[:, j], "", "0.15", ":", 1.0))
    shown = f"{min(process.m, most)} of {process.m} neurons" if process.m > most else "all neurons"
    return Panel(
        traces,
        f"{name}: exponents, {shown}",
        "time / log(1/scale)",
        "log|w| / log(1/scale)",
        ylim=(-1.5, 0.1),
    )
