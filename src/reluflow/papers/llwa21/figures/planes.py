"""[LLWA21]_ Figure 4: trained networks and the SVM on a plane through the origin."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.claims.verdict import at_least, at_most
from reluflow.network import Network
from reluflow.papers.figure import Drawn, figure
from reluflow.papers.llwa21.figures.teacher import LEAK, MEASURED, NAMES, SIZES, measure, train
from reluflow.problem import Problem, datasets
from reluflow.report.panels import boundary_panel
from reluflow.report.traces import Line, Panel, Picture, Rule

EXTENT = (-3.6, 3.6, -3.6, 3.6)


def plane_of(problem: Problem) -> Array:
    """Orthonormal columns that span the teacher's normal and the SVM's; features only."""
    d = problem.d - (problem.bias is not None)
    teacher, svm = problem.known["teacher"][:d], problem.known["w_star"][:d]
    across = svm - (svm @ teacher) * teacher
    return np.column_stack([teacher, across / np.linalg.norm(across)])


def on_plane(problem: Problem, net: Network) -> tuple[Problem, Network]:
    """Samples projected on the plane, and the network restricted to it."""
    plane = plane_of(problem)
    d = len(plane)
    flat = Problem(
        problem.X[:, :d] @ plane, problem.y, problem.loss, problem.leak, bias=problem.bias
    )
    W = np.hstack([net.W[:, :d] @ plane, net.W[:, d:]])
    return flat, Network(W, net.a, net.log_scale, net.leak, problem.bias)


def svm_line(problem: Problem) -> Line:
    """Where <w*, x> = 0 on the plane."""
    plane = plane_of(problem)
    w = problem.known["w_star"]
    normal = w[: len(plane)] @ plane
    offset = 0.0 if problem.bias is None else float(w[-1] * problem.bias)
    foot = -offset * normal / (normal @ normal)
    along = np.array([-normal[1], normal[0]]) / np.linalg.norm(normal)
    ends = foot + np.outer([-6.0, 6.0], along)
    return Line(ends[:, 0], ends[:, 1], "SVM", "red", "--", 2.0)


def plane_panel(problem: Problem, net: Network, title: str) -> Panel:
    """Contours of the network, its boundary, the SVM and the teacher."""
    flat, restricted = on_plane(problem, net)
    panel = boundary_panel(restricted, flat, extent=EXTENT, title=title)
    traces = [*panel.traces, svm_line(problem), Rule(0.0, dash=":", color="0.4")]
    return replace(panel, traces=traces, xlabel="along the teacher", ylabel="across it")


@figure(
    "LLWA21",
    "F4",
    title="Network and SVM on the plane of teacher and SVM",
    quick={"sizes": (10, 40, 70, 100), "q": 50.0, "q_symmetric": 200.0, "tests": 10_000},
    full={"sizes": SIZES, "q": 100.0, "q_symmetric": 500.0, "tests": 10_000},
    claims=("LLWA21-T4.2", "LLWA21-C4.4"),
)
def figure4(*, sizes: Any, q: float, q_symmetric: float, tests: int, seed: int = 0) -> Drawn:
    """Figure 4: one draw at each n, on the data as described and on symmetrised ones."""
    pictures, summary = [], []
    found: dict[bool, dict[str, Array]] = {}
    for symmetric, target in ((False, q), (True, q_symmetric)):
        panels, rows = [], []
        for n in sizes:
            rng = np.random.default_rng((seed, n))
            problem = datasets.gaussian_teacher(n, rng=rng, symmetric=symmetric, leak=LEAK)
            net = train(problem, target, rng)
            row = measure(problem, net, tests, rng)
            rows.append(row)
            title = f"n = {n}: agreement {row['agreement']:.1f} %"
            panels.append(plane_panel(problem, net, title))
        found[symmetric] = {key: np.array([row[key] for row in rows])[:, None] for key in MEASURED}
        agree, ratio = found[symmetric]["agreement"], found[symmetric]["margin_ratio"]
        title = f"Data {NAMES[symmetric]}: network (black) and SVM (red)"
        name = "" if not symmetric else "symmetrised"
        pictures.append(Picture(panels, min(5, len(sizes)), title, name, width=3.7, height=3.8))
        summary.append(
            f"{NAMES[symmetric].capitalize()}: network and SVM agree on {agree.min():.1f} to "
            f"{agree.max():.1f} % of test points; margin {ratio.min():.3f} to {ratio.max():.3f} "
            "of the largest linear one."
        )
    closer = found[True]["agreement"] - found[False]["agreement"]
    seen = [
        at_least(found[False]["agreement"].mean(), 90.0, what="as described: mean agreement"),
        at_least(found[True]["agreement"].min(), 98.5, what="symmetrised: least agreement"),
        at_least(
            found[True]["margin_ratio"].min(),
            1 - 2 / q_symmetric,
            what="symmetrised: least margin ratio",
        ),
        at_most(found[True]["margin_ratio"].max(), 1.0, what="symmetrised: largest margin ratio"),
        at_least(closer.min(), 0.0, what="agreement gained by symmetry at every n, points"),
    ]
    numbers = {
        "sizes": list(sizes),
        **{NAMES[s]: {key: each[key][:, 0] for key in MEASURED} for s, each in found.items()},
    }
    few = "" if tuple(sizes) == SIZES else f"Shown are {len(sizes)} of the {len(SIZES)} n. "
    caption = (
        f"{few}The plane is spanned by the normals of teacher (vertical dotted line) and SVM, with "
        "the bias coordinate at its value; the paper does not say which plane it shows. Samples "
        "are projected on it; agreement is over all test points, off the plane too. The paper's "
        "caption says that the network converges to the SVM: on data made as it describes, the "
        "first picture, it comes near, with a larger margin than any linear classifier; on "
        "symmetrised data, which its theorem is about, the second, it converges."
    )
    return Drawn(pictures, numbers, summary, seen, caption)
