"""[TLB26]_ Figure 4: where six neurons point around the first jump."""

from __future__ import annotations

import numpy as np

from reluflow.claims.verdict import at_least, at_most, equals
from reluflow.network import Network
from reluflow.papers.figure import Drawn, figure
from reluflow.papers.tlb26.figures.run import COLOURS, GUESSES, INSTANTS, L, lag, runs, setting
from reluflow.report.traces import Line, Panel, Picture, Points, Trace


@figure(
    "TLB26",
    "F4",
    title="Norm and direction of six neurons around the first jump",
    quick={"descent": False},
    full={"descent": True},
    claims=("TLB26-L5", "TLB26-L6", "TLB26-L7"),
)
def figure4(*, descent: bool, seed: int = 0) -> Drawn:
    """Figure 4: one neuron jumps, the others turn to what it left."""
    six = runs(descent)[-1]
    process = setting()[2]
    stretch = 1.0 if descent else lag()
    states = [six.state(epoch / stretch) for epoch in INSTANTS]
    plane = np.linalg.qr(np.random.default_rng(seed).standard_normal((64, 2)))[0]
    dormant = np.flatnonzero(~process.active[1] & (process.rates[1] > 0))
    cosines = [
        np.array([np.sum(net.directions * process.directions[i], axis=1)[dormant] for i in (0, 1)])
        for net in states
    ]
    panels = []
    for k, (epoch, net) in enumerate(zip(INSTANTS, states, strict=True)):
        old, new = cosines[k].min(axis=1)
        title = f"({'abcdef'[k]}) epoch {epoch:,}\nleast cosine: old {old:.4f}, new {new:.4f}"
        panels.append(_compass(net, plane, int(k >= 3), title))
    norms = np.array([np.exp(net.log_norms) for net in states])
    seen = [
        equals((norms[2] > 1e-2).sum(), 1, tolerance=0, what="neurons above 0.01 at 506,000"),
        at_least(cosines[2][0].min(), 0.999, what="old cosines at 506,000"),
        at_least(cosines[3][1].min(), 0.915, what="new cosines at 508,000, least (known: 0.92)"),
        at_most(cosines[3][1].max(), 0.985, what="new cosines at 508,000, largest (known: 0.98)"),
        at_least(cosines[4][1].min(), 0.99, what="new cosines at 510,000"),
        at_least(cosines[5][1].min(), 0.9999, what="new cosines at 538,000"),
    ]
    numbers = {
        "norm_of_jumping_neuron": norms.max(axis=1).tolist(),
        "least_cosines": [c.min(axis=1).tolist() for c in cosines],
        "epochs_over_flow_epochs": stretch,
    }
    summary = [
        f"At epoch {epoch:,} the largest norm is {_size(net)}; least cosine of dormant "
        f"neurons with their old direction {c[0].min():.4f}, with the new one {c[1].min():.4f}."
        for epoch, net, c in zip(INSTANTS, states, cosines, strict=True)
    ]
    how = (
        ""
        if descent
        else f" By gradient flow, whose clock is stretched by {lag():.6f}, the delay of finite "
        "steps at the first jump."
    )
    caption = (
        "Angle: direction projected on a random plane; radius: 1 + log|w|/1000; "
        "crosses, outside: the direction predicted for the plateau. Instants (a) and (b) are "
        f"ours, not the paper's. {GUESSES}{how}"
    )
    picture = Picture(panels, 3, "Six neurons at six instants", width=4.0, height=4.2)
    return Drawn([picture], numbers, summary, seen, caption)


def _size(net: Network) -> str:
    """The largest norm, which may be no float."""
    log = float(net.log_norms.max())
    return f"{np.exp(log):.3g}" if log > -7 else f"e^{log:.0f}"


def _compass(net: Network, plane: np.ndarray, plateau: int, title: str) -> Panel:
    def angle(V: np.ndarray) -> np.ndarray:
        x, y = (V @ plane).T
        return np.asarray(np.arctan2(y, x))

    turn, radius = angle(net.directions), np.clip(1 + net.log_norms / L, 0.0, 1.05)
    wanted = angle(setting()[2].directions[plateau])
    lines: list[Trace] = [
        Line([turn[j], turn[j]], [0.0, radius[j]], "", COLOURS[j], width=1.2) for j in range(6)
    ]
    return Panel(
        [
            *lines,
            Points(wanted, np.full(6, 1.1), color=COLOURS, marker="x", size=30, clip=False),
            Points(turn, radius, color=COLOURS, size=30, clip=False),
        ],
        title,
        polar=True,
        ylim=(0.0, 1.15),
    )
