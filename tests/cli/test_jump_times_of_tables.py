"""Ordinary tables from weights of 1e-30: predicted and simulated jumps agree, or it is said why."""

import pytest

from reluflow import Problem, explain
from reluflow.cli.commands import bench

tabular = bench._load("tabular", bench.available()["tabular"])
TABLES = tabular.frames()


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_jumps_come_when_predicted_or_the_verdict_says_why_not(name):
    problem = Problem.from_table(TABLES[name](), standardize=True, bias=1.0)
    found = explain(problem, tabular.WIDTH, 1e-30, progress=False)
    comparison = found.comparison
    assert comparison is not None
    said = " ".join(str(found).split())
    for row in comparison.rows:
        assert row.simulated is not None, f"jump {row.jump} is not seen: {said}"
        if row.close:
            continue
        # only where the constant of the time is not known, and with the reason in the verdict
        assert row.leading, f"jump {row.jump}: {row.predicted} and {row.simulated}"
        assert row.doubt
        assert f"jump {row.jump} ({row.doubt})" in said
    assert comparison.rows[0].close
