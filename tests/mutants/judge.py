"""Run checks of the ledger and print, as JSON, which of them did not come out as expected.

``python judge.py FILE [SIZE SEED NAME]...`` with the code under test on PYTHONPATH writes
``{"SIZE SEED NAME": [noticed, line]}`` to FILE.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path


def judge(name: str, size: str, seed: int) -> tuple[bool, str]:
    """Whether a check noticed something, and its line: an unexpected status, or a crash."""
    from reluflow.claims.claim import load_all
    from reluflow.claims.run import run_check

    try:
        verdict = run_check(load_all()[name], size, seed)
    except Exception as error:
        return True, f"{type(error).__name__}: {error}"
    return verdict.surprising, verdict.line()


def main(words: Sequence[str]) -> None:
    """Judge the checks named on the command line."""
    target, *rest = words
    found = {}
    for size, seed, name in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        found[f"{size} {seed} {name}"] = judge(name, size, int(seed))
        Path(target).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
