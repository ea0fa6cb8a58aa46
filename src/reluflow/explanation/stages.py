"""The stages of an explanation: how each is run, what it does, and why it may be left out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from reluflow.claims.verdict import Status, Verdict
from reluflow.errors import ReluflowError
from reluflow.explanation.settings import (
    CLAIMED,
    KKT_ENTRIES,
    LINEAR,
    PATH_WORK,
    PROCESS_SHARE,
    PROOF_SECONDS,
    PROVED_WORK,
    SEARCH_WORK,
    SEARCHED_LESS,
    TABLE_WORK,
    WIDE_ENTRIES,
    ascents,
    can_follow,
    can_follow_one,
    can_optimise,
    has_pull,
    kink_work,
    search_method,
    too_large,
)
from reluflow.explanation.weight_decay import PenalisedEnd, decay_certificates
from reluflow.gradientflow.warm import NOTE, FlowKernels
from reluflow.landscape.align import Alignment
from reluflow.landscape.estimate import ENTRIES, estimated_directions
from reluflow.landscape.extremal import ExtremalVectors
from reluflow.network import Network
from reluflow.optimum.certificate_file import Certificate
from reluflow.optimum.kkt import KKT
from reluflow.optimum.max_margin import NetworkMargin
from reluflow.optimum.min_norm import MinNorm
from reluflow.optimum.stationarity import Stationarity
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
DECAYS = "it is about training without weight decay"
_AT_ONCE = 10  # neurons followed before the work is looked at
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


def why_no_paths(problem: Problem) -> str:
    """Why no neuron is followed through the hyperplanes; empty where some are."""
    if can_follow_one(problem):
        return ""
    return (
        f"the path of one neuron meets too many of {problem.n:,} hyperplanes in {problem.d} "
        "dimensions; where neurons turn is estimated instead"
    )


def follow_neurons(problem: Problem, net: Network, landscape: ExtremalVectors) -> Alignment:
    """Where neurons turn first: all of them, or on large data the first ones of the start.

    Neurons are followed a few at a time until `PATH_WORK` is spent, so that the same command
    follows the same neurons everywhere.
    """
    from reluflow.landscape.align import align

    if can_follow(problem, net.m):
        return align(problem, net, paths=False, extremal=landscape)
    parts: list[Alignment] = []
    first, spent = 0, 0.0
    while first < net.m and spent < PATH_WORK:
        last = min(first + _AT_ONCE, net.m)
        parts.append(
            align(problem, net.subset(np.arange(first, last)), paths=False, extremal=landscape)
        )
        spent += float(parts[-1].counts.sum() + _AT_ONCE) * kink_work(problem)
        first = last
    return join_alignments(parts)


def join_alignments(parts: Sequence[Alignment]) -> Alignment:
    """Alignments of several neurons each, under the same pull, as one."""

    def together(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in parts])

    names = ("direction", "growth", "sign", "time", "last_event", "log_offset", "log_gain")
    return replace(parts[0], **{name: together(name) for name in (*names, "ends", "counts")})


def predict_process(
    problem: Problem,
    net: Network | None,
    seconds: float,
    weight_decay: float = 0.0,
    *,
    alignment: Alignment | None = None,
) -> JumpProcess:
    """The limit process; Ctrl-C, which cuts it short like a budget, ends the explanation.

    Small data are followed to the end with all proofs. On larger ones the process comes first,
    and the time that is left goes into proofs: what it names in ``found`` is not proved. Budgets
    are counted in work, so that a killed explanation comes to the same process again.
    """
    from reluflow.prediction.limit import limit

    work = problem.X.size * (1 if net is None else net.m)
    small = work <= PROVED_WORK
    proofs = None if small else min(seconds, PROOF_SECONDS)
    most = PROCESS_SHARE * seconds if PROVED_WORK < work <= TABLE_WORK else seconds
    budget: dict[str, Any] = {"max_seconds": most, "seconds": proofs, "counted": True}
    process = limit(problem, net, weight_decay=weight_decay, alignment=alignment, **budget)
    if process.interrupted:
        raise KeyboardInterrupt
    return process


def why_no_infinite_width(problem: Problem, landscape: ExtremalVectors) -> str:
    """Why the process of infinite width is not followed; empty where it is."""
    if not landscape.exact:
        return "not all directions are known"
    if problem.X.size > WIDE_ENTRIES:
        return "the process of infinite width is followed for small data only"
    return ""


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
    if run.settings.get("weight_decay"):
        return None, None  # conditions of the loss alone
    much = "" if run.final.m * problem.n <= KKT_ENTRIES else too_large(problem)
    if problem.loss.margin:
        from reluflow.optimum.kkt import KINK_TOL, kkt

        # within the errors of steps a neuron near a kink is on it
        near = max(KINK_TOL, 10.0 * float(run.settings.get("rtol", 0.0)))
        return None, stages.run("end", lambda: kkt(problem, run.final, kink_tol=near), much)
    from reluflow.optimum.stationarity import stationarity

    some = problem.X.size in SEARCHED_LESS
    nodes = int(SEARCH_WORK / problem.X.size) if some else None  # beyond it an ascent is all
    return stages.run("end", lambda: stationarity(problem, run.final, budget=nodes), much), None


def make_certificates(
    problem: Problem,
    run: Trajectory,
    point: Stationarity | None,
    optimum: MinNorm | NetworkMargin | None,
    penalised: PenalisedEnd | None,
) -> tuple[Certificate, ...]:
    """Checkable statements about the end and the optimum, those that hold."""
    from reluflow.optimum.certificate import (
        certificates,
        margin_certificate,
        norm_certificate,
        point_certificate,
    )

    if run.settings.get("weight_decay"):
        return () if penalised is None else decay_certificates(problem, run.final, penalised)
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


def why_no_claims(problem: Problem) -> str:
    """Why the theorems are not checked; empty where they are."""
    return "" if problem.X.size <= CLAIMED else "theorems are checked on smaller data only"


def check_claims(problem: Problem, run: Trajectory, net: Network) -> tuple[Verdict, ...]:
    """Verdicts of the theorems whose assumptions hold here."""
    from reluflow.claims.certify import certify

    found = certify(problem, run, start=net)
    return tuple(v for v in found if v.status is not Status.OUT_OF_SCOPE)
