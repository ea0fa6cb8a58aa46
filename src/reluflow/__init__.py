"""What a two-layer ReLU network learns when training starts from small weights.

Public names, result types included, are imported on first use, so that ``import reluflow`` stays
quick.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from reluflow._lazy import make_lazy
from reluflow._version import __version__
from reluflow._views import MAKERS
from reluflow.claims import EXPERIMENTS, SOURCES
from reluflow.errors import ReluflowError

if TYPE_CHECKING:
    from reluflow import (
        claims,
        estimators,
        landscape,
        optimum,
        papers,
        plot,
        prediction,
        report,
        torch,
    )
    from reluflow.claims import Hypothesis, Verdict, certify, ledger
    from reluflow.claims.ledger import Entry
    from reluflow.descent.descend import descend
    from reluflow.explanation.explain import explain
    from reluflow.explanation.explanation import Explanation
    from reluflow.gradientflow.drift import Drift, drift
    from reluflow.gradientflow.flow import flow
    from reluflow.gradientflow.stops import Stop, loss_below, settled, stationary
    from reluflow.landscape import (
        Alignment,
        ExtremalVectors,
        MaxG,
        align,
        early,
        extremal_vectors,
        max_G,
    )
    from reluflow.network import Network, axis_start, initialize
    from reluflow.optimum import (
        KKT,
        Certificate,
        LinearMargin,
        MinNorm,
        NetworkMargin,
        Report,
        Ridge,
        RidgePath,
        Stationarity,
        certificates,
        check_certificate,
        kkt,
        max_margin,
        min_norm,
        ridge,
        ridge_path,
        stationarity,
        write_certificate,
    )
    from reluflow.papers.reproduce import Reproduction, reproduce
    from reluflow.prediction import JumpProcess, OrthogonalProcess, algorithm1, limit
    from reluflow.problem import Problem, datasets, losses
    from reluflow.problem.losses import Loss
    from reluflow.problem.tables import (
        FileDirection,
        Scaling,
        TableNotes,
        UnseenScores,
        notes_of,
        to_file_units,
        unseen_scores,
    )
    from reluflow.studio.widget import Studio
    from reluflow.sweeps.sweep import sweep
    from reluflow.sweeps.table import Table, read_table
    from reluflow.trajectory import (
        Observable,
        Status,
        Trajectory,
        cosines,
        every,
        geometric,
        when,
    )
    from reluflow.trajectory.phases import Phases, phases
    from reluflow.trajectory.save import Save
    from reluflow.trajectory.states import States

# module -> the public names it holds; its own name stands for the module itself
_HOLDS = {
    "reluflow.claims": "claims Hypothesis Verdict certify ledger",
    "reluflow.claims.ledger": "Entry",
    "reluflow.descent.descend": "descend",
    "reluflow.estimators": "estimators",
    "reluflow.explanation.explain": "explain",
    "reluflow.explanation.explanation": "Explanation",
    "reluflow.gradientflow.drift": "Drift drift",
    "reluflow.gradientflow.flow": "flow",
    "reluflow.gradientflow.stops": "Stop loss_below settled stationary",
    "reluflow.landscape": (
        "landscape Alignment ExtremalVectors MaxG align early extremal_vectors max_G"
    ),
    "reluflow.network": "Network axis_start initialize",
    "reluflow.optimum": (
        "optimum KKT Certificate LinearMargin MinNorm NetworkMargin Report Ridge RidgePath "
        "Stationarity certificates check_certificate kkt max_margin min_norm ridge ridge_path "
        "stationarity write_certificate"
    ),
    "reluflow.papers": "papers",
    "reluflow.papers.reproduce": "Reproduction reproduce",
    "reluflow.plot": "plot",
    "reluflow.prediction": "prediction JumpProcess OrthogonalProcess algorithm1 limit",
    "reluflow.problem": "Problem",
    "reluflow.problem.datasets": "datasets",
    "reluflow.problem.losses": "losses Loss",
    "reluflow.problem.tables": (
        "FileDirection Scaling TableNotes UnseenScores notes_of to_file_units unseen_scores"
    ),
    "reluflow.report": "report",
    "reluflow.studio.widget": "Studio",
    "reluflow.sweeps": "Table read_table sweep",
    "reluflow.torch": "torch",
    "reluflow.trajectory": "Observable Status Trajectory cosines every geometric when",
    "reluflow.trajectory.phases": "Phases phases",
    "reluflow.trajectory.save": "Save",
    "reluflow.trajectory.states": "States",
}

__all__ = [
    "KKT",
    "Alignment",
    "Certificate",
    "Drift",
    "Entry",
    "Explanation",
    "ExtremalVectors",
    "FileDirection",
    "Hypothesis",
    "JumpProcess",
    "LinearMargin",
    "Loss",
    "MaxG",
    "MinNorm",
    "Network",
    "NetworkMargin",
    "Observable",
    "OrthogonalProcess",
    "Phases",
    "Problem",
    "ReluflowError",
    "Report",
    "Reproduction",
    "Ridge",
    "RidgePath",
    "Save",
    "Scaling",
    "States",
    "Stationarity",
    "Status",
    "Stop",
    "Studio",
    "Table",
    "TableNotes",
    "Trajectory",
    "UnseenScores",
    "Verdict",
    "__version__",
    "algorithm1",
    "align",
    "axis_start",
    "certificates",
    "certify",
    "check_certificate",
    "claims",
    "cosines",
    "datasets",
    "descend",
    "drift",
    "early",
    "estimators",
    "every",
    "explain",
    "extremal_vectors",
    "flow",
    "geometric",
    "initialize",
    "kkt",
    "landscape",
    "ledger",
    "limit",
    "loss_below",
    "losses",
    "max_G",
    "max_margin",
    "min_norm",
    "notes_of",
    "optimum",
    "papers",
    "phases",
    "plot",
    "prediction",
    "read_table",
    "report",
    "reproduce",
    "ridge",
    "ridge_path",
    "settled",
    "stationarity",
    "stationary",
    "sweep",
    "to_file_units",
    "torch",
    "unseen_scores",
    "when",
    "write_certificate",
]

_HINTS = {
    "animate": "use reluflow.plot.animate(run, path)",
    "predict": "use limit(problem, net), extremal_vectors(problem) or align(problem, net)",
    "simulate": "use flow(problem, net) or descend(problem, net, ...)",
    "train": "use flow(problem, net) or descend(problem, net, ...)",
    "fit": "use reluflow.estimators",
    "load": "use Trajectory.load(path)",
    "read_csv": "use Problem.from_table(path)",
    "Monitor": "use reluflow.torch.Monitor",
    "to_torch": "use reluflow.torch.to_torch",
}

make_lazy(
    __name__,
    {name: module for module, names in _HOLDS.items() for name in names.split()},
    _HINTS,
)


def _load_checks() -> None:
    """Register what the frame of claims checks: invariants of any run, and the five papers."""
    from reluflow.claims import invariants  # noqa: F401
    from reluflow.papers import checks  # noqa: F401


def _load_figures() -> None:
    """Register what figures of the papers check, each on runs of its own."""
    from reluflow.papers import catalogue  # noqa: F401


def _load_pictures() -> Callable[..., Any]:
    """What draws ``run.plot()`` and its like."""
    from reluflow.plot.figures import usual_picture

    return usual_picture


def _load_tables() -> Callable[..., Any]:
    """What notebooks show of an object."""
    from reluflow.report.notebook import as_html

    return as_html


SOURCES.append(_load_checks)
EXPERIMENTS.append(_load_figures)
MAKERS.update(plot=_load_pictures, html=_load_tables)
