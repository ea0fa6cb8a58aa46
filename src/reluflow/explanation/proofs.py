"""What can be proved of an end: conditions, optima, certificates, theorems that apply."""

from __future__ import annotations

from typing import Any

from reluflow.errors import ReluflowError
from reluflow.explanation.settings import KKT_ENTRIES, LINEAR, can_optimise, too_large
from reluflow.explanation.stages import Stages
from reluflow.problem import Problem


def conditions(stages: Stages, problem: Problem, run: Any) -> tuple[Any, Any]:
    """(stationarity, None) for square losses, (None, KKT) for margin losses."""
    much = "" if run.final.m * problem.n <= KKT_ENTRIES else too_large(problem)
    if problem.loss.margin:
        from reluflow.optimum.kkt import kkt

        return None, stages.run("end", lambda: kkt(problem, run.final), much)
    from reluflow.optimum.stationarity import stationarity

    return stages.run("end", lambda: stationarity(problem, run.final), much), None


def why_no_optimum(problem: Problem) -> str:
    if can_optimise(problem):
        return ""
    return "the best network of any width is searched for small data only"


def optimum_of(problem: Problem) -> Any:
    if problem.loss.margin:
        from reluflow.optimum.max_margin import max_margin

        return max_margin(problem)
    from reluflow.optimum.min_norm import min_norm

    return min_norm(problem)


def certificates_of(problem: Problem, run: Any, point: Any, optimum: Any) -> list[Any]:
    from reluflow.optimum.certificate import (
        certificates,
        margin_certificate,
        norm_certificate,
        point_certificate,
    )

    found: list[Any] = []
    if problem.loss.margin:
        small = run.final.m * problem.n <= KKT_ENTRIES
        kinds = (["kkt-margin"] if small else []) + (
            ["max-margin-linear"] if problem.X.size <= LINEAR else []
        )
        for kind in kinds:
            try:
                found += certificates(problem, run.final, [kind])
            except ReluflowError:  # does not hold here
                continue
        if optimum is not None:
            found.append(margin_certificate(problem, optimum))
    else:
        if point is not None:
            names = ("stationary", "spurious-minimum", "not-global", "global-minimum")
            found += [point_certificate(problem, point, kind) for kind in names]
        if optimum is not None:
            found.append(norm_certificate(problem, optimum))
    return [certificate for certificate in found if certificate is not None]


def claims_of(problem: Problem, run: Any, net: Any) -> Any:
    from reluflow.claims.certify import certify
    from reluflow.claims.verdict import Status

    found = certify(problem, run, start=net)
    return [v for v in found if v.status is not Status.OUT_OF_SCOPE]
