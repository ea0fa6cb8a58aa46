"""Put deliberate defects into copies of the source and see who notices: ``make mutants``.

Every mutant of mutants.toml names unit tests and checks of the ledger. They are run on the source
as it is first, where all must pass, then on a copy with the defect, where each must notice: a test
by failing, a check by a verdict other than the expected one. A crash and a run that does not end
count as noticed. Results are kept in results.json and used again while nothing has changed.

    python tests/mutants/run.py [--only NAME]... [--jobs 2] [--fresh] [--list]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path

from table import HERE, ROOT, SOURCE, Mutant, apply, copy_source, load, rotten

PATIENCE = 900.0  # seconds after which tests, or checks, of one mutant count as not ending
RESULTS = HERE / "results.json"


@dataclass
class Outcome:
    """Who noticed: the tests and checks asked, and what the noticing ones said."""

    tests: dict[str, str | None] = field(default_factory=dict)
    claims: dict[str, str | None] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def silent(self) -> list[str]:
        """Tests and checks that did not notice."""
        asked = {**self.tests, **self.claims}
        return [name for name, said in asked.items() if said is None]

    @property
    def loud(self) -> list[str]:
        """Tests and checks that noticed, with what they said."""
        asked = {**self.tests, **self.claims}
        return [f"{name}: {said}" for name, said in asked.items() if said is not None]


def environment(source: Path) -> dict[str, str]:
    """Variables for a process that imports reluflow from ``source``."""
    return {
        **os.environ,
        "PYTHONPATH": str(source),
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def run_tests(ids: Sequence[str], source: Path, folder: Path) -> dict[str, str | None]:
    """For each node id what its failure says, None where it passes."""
    if not ids:
        return {}
    report = folder / "tests.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    try:
        done = subprocess.run(
            [*command, "-m", "slow or not slow", f"--junitxml={report}", *dict.fromkeys(ids)],
            cwd=ROOT,
            env=environment(source),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return dict.fromkeys(ids, "does not end")
    if not report.is_file():
        return dict.fromkeys(ids, f"pytest stopped: {done.stdout[-300:]}{done.stderr[-300:]}")
    cases = list(ET.parse(report).getroot().iter("testcase"))
    return {id: _said(id, cases) for id in ids}


def _said(id: str, cases: Sequence[ET.Element]) -> str | None:
    """The first failure among the cases of a node id; one without any case has not run at all."""
    path, name = id.split("::", 1)
    module = path.removesuffix(".py").replace("/", ".")
    wanted = f"{module}.{name.replace('::', '.')}"
    own = []
    for case in cases:
        full = f"{case.get('classname')}.{case.get('name')}".strip(".")
        broken = full == module  # the file cannot be imported
        if broken or full == wanted or full.startswith(f"{wanted}["):
            own.append(case)
    for case in own:
        for kind in ("failure", "error"):
            found = case.find(kind)
            if found is not None:
                return (found.get("message") or kind).strip().splitlines()[0][:200]
    return None if own else "has not run"


def run_claims(
    names: Sequence[tuple[str, str, int]], source: Path, folder: Path
) -> dict[str, str | None]:
    """For each (name, size, seed) the line of an unexpected verdict, None where it is expected."""
    if not names:
        return {}
    target = folder / "claims.json"
    words = [str(word) for name, size, seed in names for word in (size, seed, name)]
    said = "the process stopped"
    try:
        done = subprocess.run(
            [sys.executable, str(HERE / "judge.py"), str(target), *words],
            cwd=ROOT,
            env=environment(source),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        said = (done.stderr.strip().splitlines() or [said])[-1][:200]
    except subprocess.TimeoutExpired:
        said = "does not end"
    found = json.loads(target.read_text(encoding="utf-8")) if target.is_file() else {}
    out: dict[str, str | None] = {}
    for name, size, seed in names:
        noticed, line = found.get(f"{size} {seed} {name}", (True, said))
        out[name] = line[:200] if noticed else None
    return out


def try_mutant(mutant: Mutant) -> Outcome:
    """Outcome of one mutant on a copy of its own."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        folder = Path(name)
        source = copy_source(folder)
        apply(mutant, source)
        claims = [(claim, mutant.size, mutant.seed) for claim in mutant.claims]
        return Outcome(
            run_tests(mutant.tests, source, folder),
            run_claims(claims, source, folder),
            time.monotonic() - began,
        )


def unmutated(mutants: Sequence[Mutant]) -> list[str]:
    """Tests and checks that notice something on the source as it is."""
    tests = list(dict.fromkeys(id for mutant in mutants for id in mutant.tests))
    claims = dict.fromkeys((c, m.size, m.seed) for m in mutants for c in m.claims)
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        found = Outcome(
            run_tests(tests, SOURCE, Path(name)), run_claims(list(claims), SOURCE, Path(name))
        )
    return found.loud


def fingerprint(mutant: Mutant) -> str:
    """Hash of the mutant, the source and the tests: a result is used again while it is the same."""
    digest = hashlib.sha256(repr(mutant).encode())
    for folder in (SOURCE, ROOT / "tests"):
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".csv") and path.parent != HERE:
                digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def table(outcomes: dict[str, Outcome]) -> str:
    """One line for each mutant: who noticed."""
    width = max(map(len, outcomes), default=0)
    lines = [f"{'mutant':<{width}}  tests  ledger  seconds"]
    for name, found in outcomes.items():
        marks = []
        for asked in (found.tests, found.claims):
            count = sum(said is not None for said in asked.values())
            marks.append(f"{count}/{len(asked)}" if asked else "-")
        lines.append(f"{name:<{width}}  {marks[0]:>5}  {marks[1]:>6}  {found.seconds:>7.0f}")
    noticed = [
        sum(
            any(said is not None for said in getattr(found, part).values())
            for found in outcomes.values()
        )
        for part in ("tests", "claims")
    ]
    lines.append(
        f"{len(outcomes)} mutants: the tests notice {noticed[0]}, the ledger {noticed[1]}."
    )
    return "\n".join(lines)


def run(mutants: Sequence[Mutant], jobs: int = 2, fresh: bool = False) -> int:
    """Try the mutants; 0 if the source passes and everything that must notice does, else 1."""
    gone = [reason for mutant in mutants if (reason := rotten(mutant))]
    if gone:
        print("\n".join(gone))
        return 1
    stored: dict = {}
    if RESULTS.is_file() and not fresh:
        stored = json.loads(RESULTS.read_text(encoding="utf-8"))
    keys = {mutant.name: fingerprint(mutant) for mutant in mutants}
    known = {
        m.name: Outcome(**stored[m.name]["outcome"])
        for m in mutants
        if stored.get(m.name, {}).get("key") == keys[m.name]
    }
    todo = [mutant for mutant in mutants if mutant.name not in known]
    if todo:
        print(f"The source as it is, on what {len(todo)} mutants name ...", flush=True)
        loud = unmutated(todo)
        if loud:
            print("Without any defect, these do not pass:", *loud, sep="\n  ")
            return 1
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        waiting = {pool.submit(try_mutant, mutant): mutant for mutant in todo}
        for count, future in enumerate(as_completed(waiting), 1):
            mutant, found = waiting[future], future.result()
            known[mutant.name] = found
            stored[mutant.name] = {"key": keys[mutant.name], "outcome": asdict(found)}
            RESULTS.write_text(json.dumps(stored, indent=1), encoding="utf-8")
            word = "noticed" if not found.silent else "SURVIVES " + ", ".join(found.silent)
            print(f"[{count}/{len(todo)}] {mutant.name}: {word}", flush=True)
    outcomes = {mutant.name: known[mutant.name] for mutant in mutants}
    print(table(outcomes))
    survivors = {m.name: outcomes[m.name].silent for m in mutants if outcomes[m.name].silent}
    for mutant in mutants:
        if mutant.name in survivors:
            print(
                f"{mutant.name} ({mutant.breaks}) is not noticed by:",
                *survivors[mutant.name],
                sep="\n  ",
            )
    return 1 if survivors else 0


def main(words: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", metavar="NAME", help="this mutant alone")
    parser.add_argument("--jobs", type=int, default=2, help="mutants tried at once")
    parser.add_argument("--fresh", action="store_true", help="use no results of earlier runs")
    parser.add_argument("--list", action="store_true", help="names and what they break")
    given = parser.parse_args(words)
    mutants = load()
    unknown = set(given.only or ()) - {mutant.name for mutant in mutants}
    if unknown:
        parser.error(f"unknown mutant {', '.join(sorted(unknown))}: --list shows the names")
    if given.only:
        mutants = [mutant for mutant in mutants if mutant.name in given.only]
    if given.list:
        print("\n".join(f"{mutant.name}: {mutant.breaks}" for mutant in mutants))
        return 0
    return run(mutants, given.jobs, given.fresh)


if __name__ == "__main__":
    sys.exit(main())
