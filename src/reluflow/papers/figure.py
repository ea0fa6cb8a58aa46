"""What a reproduced figure is, and which ones there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reluflow.claims.claim import Check, Found, register
from reluflow.claims.verdict import Comparison, Hypothesis, Verdict
from reluflow.errors import ReluflowError
from reluflow.plot.traces import Picture
from reluflow.trajectory import Trajectory


class Skipped(ReluflowError):
    """A figure that cannot be made here; the message says what it needs."""

    @property
    def found(self) -> Found:
        """For its check: out of scope, and nothing else was expected."""
        unmet = Hypothesis("what the figure needs is there", False, str(self))
        return Found((), [unmet], possible=False)


@dataclass(frozen=True)
class Drawn:
    """What a figure function returns.

    Attributes
    ----------
    pictures : sequence of Picture
        Traces, not yet rendered.
    numbers : mapping
        What was measured, for JSON.
    summary : sequence of str
        What the figure shows, in sentences.
    seen : sequence of Comparison
        What a reader must see in it, as numbers: the check of the claim "PAPER-FIGURE".
    caption : str
        What differs from the paper's figure, and why.
    films : mapping
        Runs to animate beside the pictures, by name.
    hypotheses : sequence of Hypothesis
        What the figure's statement rests on; one that fails puts the check out of scope.
    """

    pictures: Sequence[Picture]
    numbers: Mapping[str, Any]
    summary: Sequence[str]
    seen: Sequence[Comparison]
    caption: str = ""
    films: Mapping[str, Trajectory] = field(default_factory=dict)
    hypotheses: Sequence[Hypothesis] = ()

    @property
    def found(self) -> Found:
        """For its check; where a hypothesis fails at this size nothing else was expected."""
        met = all(h.ok is not False for h in self.hypotheses)
        return Found(self.seen, self.hypotheses, possible=met)


@dataclass(frozen=True)
class Spec:
    """A figure that can be made: its function, settings of each size, and claims beside it.

    One that ``waits`` is begun after the others: it uses runs that they make.
    """

    paper: str
    name: str
    title: str
    make: Callable[..., Drawn]
    sizes: Mapping[str, Mapping[str, Any]]
    claims: tuple[str, ...] = ()
    waits: bool = False

    @property
    def id(self) -> str:
        """Id of the figure in the ledger."""
        return f"{self.paper}-{self.name}"


@dataclass(frozen=True)
class Figure:
    """A reproduced figure: files written, numbers measured, what they say."""

    paper: str
    name: str
    title: str
    files: tuple[Path, ...]
    numbers: Mapping[str, Any]
    summary: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    verdicts: tuple[Verdict, ...] = ()
    caption: str = ""
    panels: tuple[Mapping[str, Any], ...] = ()  # one for each picture: columns, files, alts
    films: tuple[str, ...] = ()  # names of animations in the folder
    seconds: float = 0.0
    resumed: bool = False


FIGURES: dict[tuple[str, str], Spec] = {}


def figure(
    paper: str,
    name: str,
    *,
    title: str,
    quick: Mapping[str, Any],
    full: Mapping[str, Any],
    scaled: Mapping[str, Any] | None = None,
    claims: Sequence[str] = (),
    waits: bool = False,
) -> Callable[[Callable[..., Drawn]], Callable[..., Drawn]]:
    """Register a figure and, under the id "PAPER-NAME", the check of what must be seen in it.

    Parameters
    ----------
    paper, name : str
        "BF24", "F2".
    title : str
        In our words.
    quick, full : mappings
        Settings of the two sizes, passed to the function together with ``seed`` and, if it has
        that parameter, ``folder``: where it may keep long runs to go on with them.
    scaled : mapping, optional
        For a machine without a GPU, in hours; the full size if that needs none.
    claims : ids
        Claims to run and show beside it.
    waits : bool
        Begin it after the other figures, whose runs it uses.
    """
    sizes = {"quick": dict(quick), "scaled": dict(scaled or full), "full": dict(full)}

    def wrap(make: Callable[..., Drawn]) -> Callable[..., Drawn]:
        spec = Spec(paper, name, title, make, sizes, tuple(claims), waits)
        FIGURES[paper, name] = spec

        def look(*, seed: int = 0, **settings: Any) -> Found:
            try:
                return make(seed=seed, **settings).found
            except Skipped as reason:
                return reason.found

        register(Check(spec.id, "stated", "", make.__module__, experiment=look, sizes=sizes))
        return make

    return wrap
