"""Every check that can be run comes out as expected, at quick size."""

import pytest

from reluflow.claims.claim import load_all
from reluflow.claims.run import run_check

SLOW = {
    "BF24-L14",
    "TLB26-T2",
    "TK24-P5.7",
    "TK24-L5.5/printed",
    "BF24-L8/repaired",
    "BF24-D3",
    "BF24-D3/threshold",
}
RUNNABLE = [
    pytest.param(name, marks=pytest.mark.slow if name in SLOW else ())
    for name, check in load_all().items()
    if check.runnable and ".figures" not in check.module  # figures: tests/papers
]


def test_the_checks_of_all_papers_are_among_them():
    """A filter by the names of modules once left out all of them when modules were moved."""
    names = {case.values[0] for case in RUNNABLE}
    assert names >= SLOW
    checks = load_all()
    for paper in ("bf24", "tlb26", "mmv24", "llwa21", "tk24"):
        home = f"reluflow.papers.{paper}.claims"
        its = {name for name, check in checks.items() if check.module.startswith(home)}
        assert len(its) > 30
        assert its <= names


@pytest.mark.parametrize("name", RUNNABLE)
def test_as_expected(name):
    verdict = run_check(load_all()[name])
    assert verdict.expected is not None
    assert not verdict.surprising, verdict.line()
    assert verdict.comparisons or verdict.hypotheses


@pytest.mark.parametrize("name", ["BF24-L3", "MMV24-L4", "LLWA21-LB.10", "TLB26-E15", "TK24-CHI"])
def test_seeds_change_the_draw_and_nothing_else(name):
    check = load_all()[name]
    first, again, other = (run_check(check, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert other.status is first.status
