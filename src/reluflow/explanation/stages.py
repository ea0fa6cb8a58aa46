"""The stages of an explanation: how each is run, what it does, and why it may be left out."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from reluflow.claims.verdict import Status, Verdict
from reluflow.errors import ReluflowError
from reluflow.explanation.settings import (
    KKT_ENTRIES,
    LINEAR,
    ascents,
    can_optimise,
    has_pull,
    search_method,
    too_large,
)
from reluflow.gradientflow.warm import NOTE, FlowKernels
from reluflow.landscape.estimate import ENTRIES, estimated_directions
from reluflow.landscape.result import ExtremalVectors
from reluflow.network import Network
from reluflow.optimum.certificate_file import Certificate
from reluflow.optimum.kkt import KKT
from reluflow.optimum.max_margin import NetworkMargin
from reluflow.optimum.min_norm import MinNorm
from reluflow.optimum.stationarity_result import Stationarity
from reluflow.prediction.process import JumpProcess
from reluflow.problem import Problem
from reluflow.runtime import Progress
from reluflow.trajectory import Trajectory

T = TypeVar("T")
STAGES = (
    "directions",
    "alignment",
    "limit process",
    "infinite width",
    "optimum",
    "simulation",
    "end",
    "larger scale",
    "claims",
)
NO_PULL = "no sample pulls on a silent network, so that nothing is learnt"


class Stages:
    """Runs stages, remembers why one is missing, and shows how far things are."""

    def __init__(self, bar: Progress, kernels: FlowKernels) -> None:
        self.bar, self.kernels = bar, kernels
        self.skipped: dict[str, str] = {}
        self._began = time.monotonic()
        self._done = 0

    def show(self, note: str) -> None:
        """Show what is being done now."""
        compiling = f", {NOTE}" if self.kernels.busy else ""
        self.bar.update(self._done, time.monotonic() - self._began, note + compiling)

    def run(self, name: str, work: Callable[[], T], why_not: str = "") -> T | None:
        """The result of a stage, None when it is left out or cannot be done."""
        self.show(name)
        self._done += 1
        if why_not:
            self.skipped[name] = why_not
            return None
        try:
            return work()
        except ReluflowError as error:
            self.skipped[name] = str(error)
            return None

    def need(self, name: str, work: Callable[[], T]) -> T:
        """The result of a stage without which there is no explanation."""
        found = self.run(name, work)
        if found is None:
            raise ReluflowError(self.skipped[name])
        return found


def find_directions(problem: Problem, net: Network) -> ExtremalVectors:
    """Directions to which small neurons turn: exact, found or estimated."""
    if problem.X.size > ENTRIES and has_pull(problem):
        return estimated_directions(problem, net)
    from reluflow.landscape.extremal import extremal_vectors

    return extremal_vectors(problem, method=search_method(problem), starts=ascents(problem))


def predict_process(problem: Problem, net: Network | None, seconds: float) -> JumpProcess:
    """The limit process; Ctrl-C, which cuts it short like a budget, ends the explanation."""
    from reluflow.prediction.limit import limit

    began = time.monotonic()
    process = limit(problem, net, max_seconds=seconds)
    if process.ending == "budget" and time.monotonic() - began < seconds:
        raise KeyboardInterrupt
    return process


def why_no_optimum(problem: Problem) -> str:
    """Why the best network of any width is not searched; empty where it is."""
    if not has_pull(problem):
        return NO_PULL
    if can_optimise(problem):
        return ""
    return "the best network of any width is searched for small data only"


def find_optimum(problem: Problem) -> MinNorm | NetworkMargin:
    """The interpolator of least norm, or the largest margin of any network."""
    if problem.loss.margin:
        from reluflow.optimum.max_margin import max_margin

        return max_margin(problem)
    from reluflow.optimum.min_norm import min_norm

    return min_norm(problem)


def check_conditions(
    stages: Stages, problem: Problem, run: Trajectory
) -> tuple[Stationarity | None, KKT | None]:
    """(stationarity, None) for square losses, (None, KKT) for margin losses."""
    much = "" if run.final.m * problem.n <= KKT_ENTRIES else too_large(problem)
    if problem.loss.margin:
        from reluflow.optimum.kkt import kkt

        return None, stages.run("end", lambda: kkt(problem, run.final), much)
    from reluflow.optimum.stationarity import stationarity

    return stages.run("end", lambda: stationarity(problem, run.final), much), None


def make_certificates(
    problem: Problem,
    run: Trajectory,
    point: Stationarity | None,
    optimum: MinNorm | NetworkMargin | None,
) -> tuple[Certificate, ...]:
    """Checkable statements about the end and the optimum, those that hold."""
    from reluflow.optimum.certificate import (
        certificates,
        margin_certificate,
        norm_certificate,
        point_certificate,
    )

    found: list[Certificate | None] = []
    if problem.loss.margin:
        kinds = ["kkt-margin"] if run.final.m * problem.n <= KKT_ENTRIES else []
        kinds += ["max-margin-linear"] if problem.X.size <= LINEAR else []
        for kind in kinds:
            try:
                found += certificates(problem, run.final, [kind])
            except ReluflowError:  # does not hold here
                continue
    elif point is not None:
        names = ("stationary", "spurious-minimum", "not-global", "global-minimum")
        found += [point_certificate(problem, point, kind) for kind in names]
    if isinstance(optimum, NetworkMargin):
        found.append(margin_certificate(problem, optimum))
    elif optimum is not None:
        found.append(norm_certificate(problem, optimum))
    return tuple(certificate for certificate in found if certificate is not None)


def check_claims(problem: Problem, run: Trajectory, net: Network) -> tuple[Verdict, ...]:
    """Verdicts of the theorems whose assumptions hold here."""
    from reluflow.claims.certify import certify

    found = certify(problem, run, start=net)
    return tuple(v for v in found if v.status is not Status.OUT_OF_SCOPE)
