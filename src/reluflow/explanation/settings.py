"""What explain was asked for, and up to which sizes its stages run."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from reluflow._version import __version__
from reluflow.arrays import decay_rate
from reluflow.errors import ReluflowError
from reluflow.landscape.products import products_pay
from reluflow.problem import Problem
from reluflow.runtime.checkpoint import fingerprint

MAX_WEIGHTS = 50_000_000  # of the start
PATH_WORK = 5e9  # neurons times kinks times `kink_work`, spent on paths at most
ONE_PATH = 1e10  # n times `kink_work` beyond which no path is followed
PROVED_WORK = 2e4  # m n d up to which all that the limit process says is proved
PROOF_SECONDS = 2.0  # for the process and its proofs beyond that, unless it takes longer itself
TABLE_WORK = 1e7  # m n d up to which data are an ordinary table, whose answer takes seconds
CLASSES_WORK = 2e8  # the same with several outputs, where it takes a minute
GUARD = 10.0  # budgets, by the clock, after which a run ends whatever work was counted
PROCESS_SHARE = 0.2  # of a stage's budget, for the process of a table: what is found is said
STATE_BYTES = 5e7  # recorded networks kept in memory and in run.nc
LANDSCAPE_WORK = 3e7  # starts times entries of X in a search for directions
OPTIMUM, OPTIMUM_PLANE = 200, 600  # entries of X up to which optima over all networks are searched
SWEPT = 220  # samples up to which all directions in three dimensions are found
WIDE_ENTRIES = 500  # entries of X up to which infinite width is followed
SEARCHED_LESS = range(501, 5_001)  # entries of X at which the search for a better neuron is short
SEARCH_WORK = 1e6  # its nodes times entries of X
CLAIMED = 100_000  # entries of X up to which theorems are checked
LINEAR = 200_000  # entries of X up to which the largest linear margin is computed
KKT_ENTRIES = 2_000_000  # neurons times samples up to which conditions at the end are checked
SMALL_RUN = 200_000  # m n d up to which the larger scale and the added neurons are simulated


@dataclass(frozen=True)
class Settings:
    """Everything that determines an explanation besides the problem.

    Attributes
    ----------
    m, scale, seed : width, size and seed of the start (balanced Gaussian, over sqrt(m)).
    lr, steps : None for gradient flow; step size and number of steps of descent.
    seconds : budget of each long stage, as work of an ordinary core.
    image_shape : rows and columns, when directions are images.
    weight_decay : lambda of the penalty (lambda/2) (|W|^2 + |a|^2).
    """

    m: int = 200
    scale: float = 1e-6
    seed: int = 0
    lr: float | None = None
    steps: int | None = None
    seconds: float = 120.0
    image_shape: tuple[int, int] | None = None
    weight_decay: float = 0.0

    def check(self, problem: Problem) -> None:
        """One sentence for what cannot be."""
        if self.m < 1:
            raise ReluflowError(f"m must be at least 1 neuron, got {self.m}: 200 is usual")
        if self.m * (problem.d + 1) > MAX_WEIGHTS:
            raise ReluflowError(
                f"{self.m:,} neurons of {problem.d} features are {self.m * (problem.d + 1):,} "
                f"weights, more than the {MAX_WEIGHTS:,} that explain holds: give a smaller m"
            )
        if not (math.isfinite(self.scale) and 0.0 < self.scale < 1.0):
            raise ReluflowError(
                f"scale must lie between 0 and 1, got {self.scale:g}: explain is about small "
                "starts, 1e-6 is usual"
            )
        if self.lr is not None and not (math.isfinite(self.lr) and self.lr > 0.0):
            raise ReluflowError(f"lr must be a positive step size, got {self.lr:g}: try 1e-3")
        if self.steps is not None and self.lr is None:
            raise ReluflowError("steps were given without lr: gradient flow has none, give lr too")
        if self.steps is not None and self.steps < 1:
            raise ReluflowError(f"steps must be at least 1, got {self.steps}")
        if decay_rate(self.weight_decay):
            problem.check_one_output("explain with weight_decay")
        if not self.seconds > 0.0:
            raise ReluflowError(f"seconds must be positive, got {self.seconds:g}: 120 is usual")
        if self.image_shape is not None:
            try:
                rows, columns = (int(side) for side in self.image_shape)
            except (TypeError, ValueError):
                raise ReluflowError(
                    f"image_shape must be two whole numbers, got {self.image_shape!r}"
                ) from None
            pixels = problem.d - (problem.bias is not None)
            if rows * columns != pixels:
                raise ReluflowError(
                    f"image_shape {rows}x{columns} has {rows * columns} pixels but the data have "
                    f"{pixels} features: give rows x columns with that product"
                )

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def key(self, problem: Problem) -> str:
        """Fingerprint of problem and settings: what was made with it can be used again."""
        arrays = {"X": problem.X, "y": problem.y}
        unseen = problem.known.get("unseen")
        if unseen is not None:  # the run may record how it does on them
            arrays |= {"unseen X": unseen.X, "unseen y": unseen.y}
        given = {**self.to_dict(), "problem": repr(problem), "version": __version__}
        return fingerprint(arrays, given)


def has_pull(problem: Problem) -> bool:
    """Whether some sample pulls on a silent network: its label and its features are not 0."""
    return bool(((problem.pull_sizes > 0.0) & problem.X.any(axis=1)).any())


def can_follow(problem: Problem, m: int) -> bool:
    """Whether every neuron's path through the hyperplanes is affordable."""
    return float(m) * problem.n * kink_work(problem) <= PATH_WORK


def can_follow_one(problem: Problem) -> bool:
    """Whether the path of a single neuron is affordable: it meets some of n hyperplanes."""
    return problem.n * kink_work(problem) <= ONE_PATH


def kink_work(problem: Problem) -> float:
    """Operations that a kink on the path of a neuron costs."""
    return float(problem.n + problem.d if products_pay(problem) else problem.X.size)


def can_optimise(problem: Problem) -> bool:
    """Whether optima over networks of every width are searched."""
    return problem.X.size <= (OPTIMUM_PLANE if problem.d <= 2 else OPTIMUM)


def search_method(problem: Problem) -> str:
    """How directions are looked for: by ascent where no enumeration could end."""
    many = problem.n > 40 and problem.d > 40
    large = (many or (problem.d == 3 and problem.n > SWEPT)) and has_pull(problem)
    return "multistart" if large else "auto"


def ascents(problem: Problem) -> int:
    """Number of starts of a search for directions."""
    return int(np.clip(LANDSCAPE_WORK / (20 * problem.X.size), 24, 1200))


def too_large(problem: Problem) -> str:
    """Why a stage is left out."""
    return f"the data are too large for it ({problem.n:,} samples, {problem.d} features)"
