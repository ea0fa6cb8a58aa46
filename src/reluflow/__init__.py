"""What a two-layer ReLU network learns when training starts from small weights.

Public names, result types included, are imported on first use, so that ``import reluflow`` stays
quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reluflow._lazy import make_lazy
from reluflow._version import __version__
from reluflow.claims import SOURCES
from reluflow.errors import ReluflowError

if TYPE_CHECKING:
    from reluflow import claims, landscape, optimum, papers, prediction, report, torch
    from reluflow.claims import Hypothesis, Verdict, certify, ledger
    from reluflow.claims.ledger import Entry
    from reluflow.descent.descend import descend
    from reluflow.explanation.explain import explain
    from reluflow.explanation.explanation import Explanation
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
        Stationarity,
        certificates,
        check_certificate,
        kkt,
        max_margin,
        min_norm,
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
    "reluflow.explanation.explain": "explain",
    "reluflow.explanation.explanation": "Explanation",
    "reluflow.gradientflow.flow": "flow",
    "reluflow.gradientflow.stops": "Stop loss_below settled stationary",
    "reluflow.landscape": (
        "landscape Alignment ExtremalVectors MaxG align early extremal_vectors max_G"
    ),
    "reluflow.network": "Network axis_start initialize",
    "reluflow.optimum": (
        "optimum KKT Certificate LinearMargin MinNorm NetworkMargin Report Stationarity "
        "certificates check_certificate kkt max_margin min_norm stationarity write_certificate"
    ),
    "reluflow.papers": "papers",
    "reluflow.papers.reproduce": "Reproduction reproduce",
    "reluflow.prediction": "prediction JumpProcess OrthogonalProcess algorithm1 limit",
    "reluflow.problem": "Problem",
    "reluflow.problem.datasets": "datasets",
    "reluflow.problem.losses": "losses Loss",
    "reluflow.problem.tables": (
        "FileDirection Scaling TableNotes UnseenScores notes_of to_file_units unseen_scores"
    ),
    "reluflow.report": "report",
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
    "Save",
    "Scaling",
    "States",
    "Stationarity",
    "Status",
    "Stop",
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
    "early",
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
    "prediction",
    "read_table",
    "report",
    "reproduce",
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

make_lazy(__name__, {name: module for module, names in _HOLDS.items() for name in names.split()})


def _load_checks() -> None:
    """Register what the frame of claims checks: invariants of any run, and the five papers."""
    from reluflow.claims import invariants  # noqa: F401
    from reluflow.papers import catalogue  # noqa: F401


SOURCES.append(_load_checks)
