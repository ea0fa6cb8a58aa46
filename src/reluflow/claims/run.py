"""Running checks: on evidence, or on the experiment a check was registered with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from reluflow.claims.claim import SIZES, Check, Found, Outcome
from reluflow.claims.evidence import NEEDS, Evidence
from reluflow.claims.ledger import entry
from reluflow.claims.verdict import Comparison, Hypothesis, Status, Verdict, decide
from reluflow.errors import ReluflowError

_MISSED = "The bound is missed, but not every hypothesis of the statement could be checked."


def evaluate(check: Check, evidence: Evidence, about: Mapping[str, Any] | None = None) -> Verdict:
    """Verdict of a check on given evidence."""
    if check.check is None:
        raise ReluflowError(
            f"{check.id} makes its own experiment and takes no evidence: run it with "
            f"`reluflow claims {check.id} --run`"
        )
    hypotheses = [Hypothesis(NEEDS[need], False) for need in evidence.missing(check.needs)]
    for test in check.given:  # in order: a later one may rest on an earlier one
        if any(h.ok is False for h in hypotheses):
            break
        hypotheses.append(test(evidence))
    hypotheses += [Hypothesis(name, None) for name in check.unchecked]
    found = Found(())
    if all(h.ok is not False for h in hypotheses):
        found = as_found(check.check(evidence))
    hypotheses += found.hypotheses
    return verdict_of(check, found, hypotheses, about or evidence.describe())


def try_evaluate(check: Check, evidence: Evidence) -> Verdict:
    """As :func:`evaluate`, but UNDECIDED, with its sentence, where an error stops the check.

    One check that does not cope with somebody's data must not cost them all the others.
    """
    try:
        return evaluate(check, evidence)
    except ReluflowError as error:
        note = str(error)
    except Exception as error:
        note = f"The check stopped: {type(error).__name__}: {error}"
    return verdict_of(check, Found((), note=note), (), evidence.describe())


def run_check(check: Check, size: str = "quick", seed: int = 0) -> Verdict:
    """Verdict of a check on the experiment it was registered with."""
    if size not in SIZES:
        raise ReluflowError(f"size must be one of {', '.join(SIZES)}, got {size!r}")
    settings = dict(check.sizes[size])
    about = {"size": size, "seed": seed, **settings}
    if check.experiment is not None:
        found = as_found(check.experiment(seed=seed, **settings))
        unchecked = [Hypothesis(name, None) for name in check.unchecked]
        return verdict_of(check, found, [*found.hypotheses, *unchecked], about, known=True)
    if check.example is None:
        raise ReluflowError(f"{check.name} has no experiment of its own: use certify on a run")
    evidence = check.example(seed=seed, **settings)
    verdict = evaluate(check, evidence, {**evidence.describe(), **about})
    return _with_expected(verdict, check)


def try_check(check: Check, size: str = "quick", seed: int = 0) -> Verdict:
    """As :func:`run_check`, but UNDECIDED, with its sentence, where an error stops it."""
    try:
        return run_check(check, size, seed)
    except ReluflowError as error:
        return verdict_of(check, Found((), note=str(error)), (), {}, known=True)


def verdict_of(
    check: Check,
    found: Found,
    hypotheses: Iterable[Hypothesis],
    about: Mapping[str, Any],
    known: bool = False,
) -> Verdict:
    """A verdict that carries the ledger's statement."""
    row = entry(check.id)
    repaired = check.form == "repaired" and row.repaired
    hypotheses = tuple(hypotheses)
    comparisons = tuple(found.comparisons)
    status = decide(comparisons, hypotheses)
    note = found.note
    if status is Status.UNDECIDED and any(c.status is Status.FAILS for c in comparisons):
        note = f"{_MISSED} {note}".strip()
    if status is Status.HOLDS and row.expected == "no-check":
        status = Status.ILLUSTRATED
    verdict = Verdict(
        id=check.id,
        paper=row.paper,
        statement=row.repaired if repaired else row.statement,
        form=check.form,
        status=status,
        comparisons=comparisons,
        hypotheses=hypotheses,
        note=note,
        settings=dict(about),
        part=check.part,
        printed=check.printed,
        meant=check.meant,
        quoted=row.hypotheses if check.form == "printed" else "",
    )
    return _with_expected(verdict, check) if known and found.possible else verdict


def _with_expected(verdict: Verdict, check: Check) -> Verdict:
    row = entry(check.id)
    return replace(verdict, expected=row.status_of(check), reason=row.reason_of(check))


def as_found(outcome: Outcome) -> Found:
    """Comparisons in whatever shape a check returned them."""
    if isinstance(outcome, Found):
        return outcome
    return Found((outcome,) if isinstance(outcome, Comparison) else tuple(outcome))
