"""The registry: which function checks which claim, on what, and with which hypotheses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, TypeVar, Unpack

from reluflow.claims import EXPERIMENTS, SOURCES
from reluflow.claims.evidence import NEEDS, Evidence
from reluflow.claims.verdict import Comparison, Hypothesis, Status
from reluflow.errors import ReluflowError

# which wording of a claim a check looks at
FORMS = {
    "stated": "the statement as it stands",
    "slip": "a formula beside a true statement that is printed otherwise than meant",
    "printed": "a clause that fails as it is printed, under all of its printed hypotheses",
    "repaired": "the same clause in a form that holds",
    "control": "what happens where a hypothesis is broken on purpose",
}
SIZES = ("quick", "scaled", "full")


@dataclass(frozen=True)
class Predicate:
    """A computable hypothesis: ``test`` takes the evidence and gives (ok, detail)."""

    name: str
    test: Callable[[Evidence], tuple[bool | None, str]]

    def __call__(self, evidence: Evidence) -> Hypothesis:
        ok, detail = self.test(evidence)
        return Hypothesis(self.name, None if ok is None else bool(ok), detail)


def predicate(name: str) -> Callable[[Callable[[Evidence], Any]], Predicate]:
    """Turn a function of the evidence into a named hypothesis."""

    def wrap(test: Callable[[Evidence], Any]) -> Predicate:
        return Predicate(name, test)

    return wrap


@dataclass(frozen=True)
class Found:
    """What an experiment returns when comparisons alone do not say it all.

    Where it is not ``possible`` here (its data are not there), nothing is expected of it.
    """

    comparisons: Sequence[Comparison]
    hypotheses: Sequence[Hypothesis] = ()
    note: str = ""
    possible: bool = True


Outcome = Comparison | Sequence[Comparison] | Found
F = TypeVar("F", bound=Callable[..., Outcome])  # a check that a decorator leaves as it is


@dataclass(frozen=True)
class Check:
    """One registered check of one claim.

    ``check`` looks at evidence; ``experiment`` makes its own. ``example`` builds the evidence on
    which a check is run when nobody brings any.
    """

    id: str
    form: str
    part: str
    module: str
    check: Callable[[Evidence], Outcome] | None = None
    experiment: Callable[..., Outcome] | None = None
    example: Callable[..., Evidence] | None = None
    needs: tuple[str, ...] = ()
    given: tuple[Predicate, ...] = ()
    unchecked: tuple[str, ...] = ()
    sizes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    expected: Status | None = None
    reason: str = ""
    printed: str = ""
    meant: str = ""
    several: bool = False

    @property
    def name(self) -> str:
        """Id, form and part: the key of the registry."""
        return "/".join([self.id] + [p for p in (self.form, self.part) if p not in ("", "stated")])

    @property
    def compares(self) -> bool:
        """Whether anything is measured; an assumption is met or not."""
        return self.check is not _nothing

    @property
    def runnable(self) -> bool:
        """Whether it can be run without evidence brought by a user."""
        return self.experiment is not None or self.example is not None


def _nothing(evidence: Evidence) -> Outcome:
    """An assumption compares nothing: its predicates say it all."""
    return ()


REGISTRY: dict[str, Check] = {}


def register(check: Check) -> Check:
    """Add a check; two of one name are a mistake."""
    if check.form not in FORMS:
        raise ReluflowError(f"form must be one of {', '.join(FORMS)}, got {check.form!r}")
    if (check.form == "slip") != bool(check.printed and check.meant):
        raise ReluflowError(f"{check.name}: a slip, and nothing else, has `printed` and `meant`")
    if check.expected is Status.FAILS and check.form != "printed":
        raise ReluflowError(
            f"{check.name}: only a clause that fails as printed is expected to fail; a control "
            "compares what it breaks with what should be seen then"
        )
    if not set(check.needs) <= set(NEEDS):
        raise ReluflowError(f"needs must be among {', '.join(NEEDS)}, got {check.needs}")
    other = REGISTRY.get(check.name)
    if other is not None and other.module != check.module:
        raise ReluflowError(f"{check.name} is registered by {other.module} and {check.module}")
    REGISTRY[check.name] = check
    return check


class Wording(TypedDict, total=False):
    """What the decorators of checks share; :func:`claim` says what each means."""

    unchecked: Sequence[str]
    quick: Mapping[str, Any]
    full: Mapping[str, Any]
    form: str
    part: str
    expected: Status | None
    reason: str
    printed: str
    meant: str
    several: bool


def claim(
    id: str,
    *,
    needs: Sequence[str] = (),
    given: Sequence[Predicate] = (),
    example: Callable[..., Evidence] | None = None,
    **wording: Unpack[Wording],
) -> Callable[[F], F]:
    """Register a function of the evidence as the check of a claim.

    Parameters
    ----------
    id : str
        As in the ledger, ``BF24-L1``.
    needs : names
        What the evidence must contain (keys of ``NEEDS``); without it the claim does not apply.
    given : predicates
        Computable hypotheses; one that fails gives OUT_OF_SCOPE.
    example : function, optional
        Builds evidence for ``reluflow claims --run``; called with ``seed`` and the settings of
        ``quick`` or ``full``.
    unchecked : sentences
        Hypotheses nobody can compute, named in the verdict.
    quick, full : mappings, optional
        Settings of the two sizes; ``full`` names only what differs.
    form : key of ``FORMS``
        Which wording is checked, "stated" by default.
    part : str
        Tells apart several checks of one form.
    expected : Status, optional
        What must come out, where the ledger's row is not enough; with ``reason``.
    reason : str
        What a reader should know about the expected status or the settings; shown with the
        verdict. Needed where the status is not the ledger's or not HOLDS.
    printed, meant : str
        Of the form "slip": the formula in print, with its place, and the one that is meant. Such
        a check HOLDS when the meant formula agrees with what is measured and the printed one does
        not.
    several : bool
        Whether the claim, printed for one output, is checked for several outputs too: its proof
        must carry over.
    """

    def wrap(check: F) -> F:
        rests_on = {"needs": tuple(needs), "given": tuple(given)}
        _register(id, check.__module__, wording, check=check, example=example, **rests_on)
        return check

    return wrap


def experiment(id: str, **wording: Unpack[Wording]) -> Callable[[F], F]:
    """Register a function that makes its own data: called with ``seed`` and sized settings.

    The parameters are those of :func:`claim`.
    """

    def wrap(make: F) -> F:
        _register(id, make.__module__, wording, experiment=make)
        return make

    return wrap


def assumption(
    id: str,
    *given: Predicate,
    needs: Sequence[str] = (),
    example: Callable[..., Evidence] | None = None,
    **wording: Unpack[Wording],
) -> None:
    """Register an assumption: it is MET where its predicates hold, and OUT_OF_SCOPE elsewhere."""
    module = example.__module__ if example is not None else given[0].test.__module__
    rests_on = {"needs": tuple(needs), "given": given}
    _register(id, module, wording, check=_nothing, example=example, **rests_on)


def _register(id: str, module: str, wording: Wording, **function: Any) -> None:
    """Register what a decorator was given: a function, what it rests on, and the wording."""
    quick = dict(wording.get("quick", {}))
    full = {**quick, **wording.get("full", {})}
    register(
        Check(
            id,
            wording.get("form", "stated"),
            wording.get("part", ""),
            module,
            unchecked=tuple(wording.get("unchecked", ())),
            sizes={"quick": quick, "scaled": full, "full": full},
            expected=wording.get("expected"),
            reason=wording.get("reason", ""),
            printed=wording.get("printed", ""),
            meant=wording.get("meant", ""),
            several=wording.get("several", False),
            **function,
        )
    )


def load_all() -> dict[str, Check]:
    """The registry with every source imported."""
    for source in SOURCES + EXPERIMENTS:
        source()
    return REGISTRY


def load_checks() -> dict[str, Check]:
    """The registry with all checks that take evidence; those of figures make their own."""
    for source in SOURCES:
        source()
    return REGISTRY
