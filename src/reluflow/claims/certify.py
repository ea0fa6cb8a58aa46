"""certify: what the theorems say about a user's own run, in numbers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reluflow.checks import check_arguments
from reluflow.claims.claim import Check, load_all, load_checks
from reluflow.claims.evidence import Evidence
from reluflow.claims.ledger import entry, rows
from reluflow.claims.run import try_evaluate
from reluflow.claims.verdict import Verdict, Verdicts
from reluflow.errors import ReluflowError
from reluflow.network import Network
from reluflow.problem import Problem
from reluflow.runtime.words import join


@check_arguments
def certify(
    problem: Problem,
    run_or_net: Any = None,
    claims: str | Sequence[str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    start: Network | None = None,
) -> list[Verdict]:
    """Check every claim that speaks of this problem, run or network.

    Parameters
    ----------
    problem : Problem
        The data.
    run_or_net : Trajectory or Network, optional
        What to look at: the run of :func:`reluflow.flow` or :func:`reluflow.descend` (with
        recorded networks for claims about the path), or a trained network. Without it the
        claims about data alone are checked. With several outputs what the papers prove for one is
        left out, but for conservation laws, which carry over.
    claims : id, paper or list of them, optional
        Which claims; by default all that apply. Wordings known to be wrong as printed are
        checked only when asked for.
    folder : path, optional
        Where to write certificates of the end, checkable without this library.
    start : Network, optional
        Initial weights, where the run did not record them.

    Returns
    -------
    list of Verdict
        In the order of the ledger. A failed hypothesis gives OUT_OF_SCOPE, data too large for a
        check UNDECIDED with the reason in ``note``.
    """
    evidence = Evidence.of(problem, run_or_net, start)
    chosen = checks_named(claims) if claims is not None else applicable_checks(evidence)
    if claims is not None and not all(check.several for check in chosen):
        problem.check_one_output(f"what {join([c.id for c in chosen if not c.several], 3)} claims")
    verdicts = Verdicts(try_evaluate(check, evidence) for check in chosen)
    if folder is not None:
        write_certificates(evidence, folder)
    return verdicts


def applicable_checks(evidence: Evidence) -> list[Check]:
    """Checks whose needs the evidence meets; slips, misprinted clauses and controls left out."""
    found = [
        check
        for check in load_checks().values()
        if check.check is not None
        and check.form in ("stated", "repaired")
        and not evidence.missing(check.needs)
        and (check.several or not evidence.problem.several)
    ]
    return _in_order(found)


def checks_named(claims: str | Sequence[str]) -> list[Check]:
    """Checks of the given ids and papers; an id that only makes its own experiment is an error."""
    wanted = [claims] if isinstance(claims, str) else list(claims)
    found: dict[str, Check] = {}
    for name in wanted:
        if not isinstance(name, str):
            raise ReluflowError(f"claims are names such as 'BF24-L1' or 'BF24', got {name!r}")
        checks = [
            check
            for check in load_all().values()
            if name.lower() in (check.id.lower(), check.id.split("-")[0].lower())
        ]
        if not checks:
            raise ReluflowError(
                f"{entry(name).id} has no check yet: `reluflow claims` shows what has"
            )
        usable = [check for check in checks if check.check is not None]
        if not usable:
            raise ReluflowError(
                f"{name} makes its own experiment and takes no evidence: run it with "
                f"`reluflow claims {name} --run`"
            )
        found.update({check.name: check for check in usable})
    return _in_order(list(found.values()))


def write_certificates(evidence: Evidence, folder: str | os.PathLike[str]) -> list[Path]:
    """Write the certificates of the end into ``folder``, made if needed."""
    from reluflow.optimum.certificate_file import write_certificate

    if evidence.final is None:
        raise ReluflowError("certificates are about a network: pass a run or a network to certify")
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReluflowError(f"cannot write into {target}: {error.strerror}") from None
    paths = []
    for i, certificate in enumerate(evidence.certificates):
        path = target / f"certificate-{i}-{getattr(certificate, 'kind', 'end')}.json"
        write_certificate(certificate, path)
        paths.append(path)
    return paths


def _in_order(checks: list[Check]) -> list[Check]:
    order = {id: i for i, id in enumerate(rows())}
    return sorted(checks, key=lambda check: (order[check.id], check.form, check.part))
