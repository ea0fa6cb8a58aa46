"""Phases of synthetic and simulated runs, as numbers, as a table and as text."""

import numpy as np
import pytest

from reluflow import ReluflowError, datasets, every, flow, initialize, phases
from reluflow.trajectory.phases import Phases


@pytest.fixture(scope="module")
def golden():
    problem = datasets.golden()
    net = initialize(problem, 6, log_scale=-100.0, kind="sphere", signs=1, rng=4)
    return {
        kept: flow(problem, net, save=every(0.5), observe=["outputs"], states=kept, progress=False)
        for kept in (True, False)
    }


def test_alignment_is_found_where_networks_are_kept(golden):
    found, without = phases(golden[True]), phases(golden[False])
    assert without.alignment_end is None
    assert found.alignment_end is not None
    start = int(np.searchsorted(golden[True].times, found.alignment_end))
    leaves = int(np.searchsorted(golden[True].times, found.plateaus[0, 1])) + 1
    directions = [golden[True].networks[i].directions for i in (start - 1, start, leaves)]
    angles = [np.arccos(np.clip(np.sum(d * directions[2], axis=1), -1, 1)) for d in directions]
    assert angles[1].max() <= 0.1 < angles[0].max()
    assert np.array_equal(found.jumps, without.jumps)


def test_the_text_is_a_table(golden):
    found = phases(golden[True])
    lines = repr(found).splitlines()
    assert lines[0] == "Phases(3 plateaus, 2 jumps)"
    assert lines[1].split() == ["phase", "from", "until", "loss"]
    assert [" ".join(line.split()[:2]) for line in lines[2:7]] == [
        "plateau 1",
        "jump 1",
        "plateau 2",
        "jump 2",
        "plateau 3",
    ]
    assert lines[2].split()[-1] == "3.75"
    assert lines[3].split()[2:] == [f"{found.jumps[0]:.6g}"]
    assert lines[7:] == [
        f"Aligned from time {found.alignment_end:.6g} on.",
        f"Converged from time {found.convergence:.6g} on.",
    ]
    assert len({line.index(line.split()[2]) for line in lines[2:7]}) == 1  # columns stand below
    assert "no recorded networks" in repr(phases(golden[False]))


def test_rows_alternate_in_time(golden):
    found = phases(golden[True])
    rows = found.table()
    assert [row["phase"].split()[0] for row in rows] == ["plateau", "jump"] * 2 + ["plateau"]
    assert [row["loss"] for row in rows[::2]] == found.plateaus[:, 2].tolist()
    times = [row[name] for row in rows for name in ("from", "until")]
    assert times == sorted(times)


def test_short_and_long_tables():
    none = Phases(None, np.empty((0, 3)), np.empty(0), None)
    assert none.table() == []
    assert repr(none).splitlines()[0] == "Phases(0 plateaus, 0 jumps)"
    assert repr(none).endswith("The loss still falls at the end.")
    one = Phases(1.0, np.array([[0.0, 2.0, 0.5]]), np.empty(0), 0.0)
    assert repr(one).startswith("Phases(1 plateau, 0 jumps)")
    starts = np.arange(40.0)
    long = Phases(0.0, np.stack([starts, starts + 0.5, -starts], axis=1), starts[:-1] + 0.7, None)
    lines = repr(long).splitlines()
    assert len(long.table()) == 79
    assert len(lines) == 2 + 16 + 1 + 5 + 2
    assert lines[18].split() == ["..."] * 4
    assert lines[-3].startswith("plateau 40")


def test_too_few_records_are_refused():
    problem = datasets.golden()
    run = flow(problem, initialize(problem, 3, scale=0.1, rng=0), t_end=1.0, save=[1.0])
    with pytest.raises(ReluflowError, match="at least 3 records"):
        phases(run)
