"""Rows that were not trained on: how the network does on them, along time and on each plateau."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from reluflow.arrays import Array
from reluflow.network import Network
from reluflow.prediction.process import JumpProcess
from reluflow.problem import Problem
from reluflow.problem.tables import UnseenScores, unseen_scores
from reluflow.runtime.plain import to_plain
from reluflow.trajectory import Trajectory


@dataclass(frozen=True, eq=False)
class Unseen:
    """Scores on rows kept for testing.

    Attributes
    ----------
    times : array (R,)
        Gradient-flow times of the records of the run.
    loss : array (R,)
        Loss on the unseen rows.
    score : array (R,)
        Share of the unseen rows on the right side of 0 where labels are classes, else the root
        mean square error in the units of the file.
    classes : bool
        Which of the two ``score`` is.
    plateaus : tuple of UnseenScores
        Of the networks predicted after each jump, those at finite weights.
    end : UnseenScores
        Of the network at the end of the run.
    """

    times: Array
    loss: Array
    score: Array
    classes: bool
    plateaus: tuple[UnseenScores, ...]
    end: UnseenScores

    @property
    def best(self) -> int:
        """Record with the smallest loss on the unseen rows."""
        return int(np.argmin(self.loss))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return dict(to_plain(self))


def unseen_loss(problem: Problem, net: Network) -> float:
    """Loss on the rows kept for testing."""
    return _scores(problem, net).loss


def unseen_score(problem: Problem, net: Network) -> float:
    """Accuracy on the rows kept for testing where labels are classes, else the error."""
    return _score_of(_scores(problem, net))


#: What a run has to observe if its networks are not kept.
OBSERVED: tuple[Callable[[Problem, Network], float], ...] = (unseen_loss, unseen_score)


def has_unseen(problem: Problem) -> bool:
    """Whether rows were kept for testing."""
    return problem.known.get("unseen") is not None


def score_unseen(problem: Problem, run: Trajectory, process: JumpProcess | None) -> Unseen | None:
    """Scores along a run and on the plateaus predicted, None where no rows were kept.

    Parameters
    ----------
    problem : Problem
        As :meth:`reluflow.Problem.from_table` makes it with ``test=`` or ``holdout=``.
    run : Trajectory
        With networks, or with the observables `OBSERVED`.
    process : JumpProcess, optional
        Its plateaus are scored but for the last one of a process that ends at infinity: there
        only the direction of the weights is known.
    """
    if not has_unseen(problem):
        return None
    end = _scores(problem, run.final)
    if run.networks is not None:
        scores = [_scores(problem, net) for net in run.networks]
        loss = np.array([each.loss for each in scores])
        score = np.array([_score_of(each) for each in scores])
    elif "unseen_loss" in run.observables:
        loss, score = np.asarray(run["unseen_loss"]), np.asarray(run["unseen_score"])
    else:
        loss = score = np.zeros(0)
    times = run.flow_times[: len(loss)]
    plateaus: tuple[UnseenScores, ...] = ()
    if process is not None:
        last = process.n_jumps + (not process.ending.startswith("infinity"))
        plateaus = tuple(_scores(problem, process.networks[i]) for i in range(1, last))
    return Unseen(times, loss, score, end.accuracy is not None, plateaus, end)


def _scores(problem: Problem, net: Network) -> UnseenScores:
    found = unseen_scores(problem, net)
    if found is None:
        raise LookupError("the problem keeps no rows for testing")
    return found


def _score_of(scores: UnseenScores) -> float:
    return float(scores.error if scores.accuracy is None else scores.accuracy)  # type: ignore[arg-type]
