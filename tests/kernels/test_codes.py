"""codes: one numbering, the one that files of runs were written with."""

import numpy as np

from reluflow import Network, Problem, Trajectory
from reluflow.gradientflow import flow
from reluflow.kernels import codes


def test_events_keep_the_numbers_of_stored_runs():
    stored = {1: "cross", 2: "slide", 3: "exit", 4: "branch"}
    assert {i: codes.EVENT_NAMES[i] for i in stored} == stored
    assert list(stored) == [codes.CROSS, codes.SLIDE, codes.EXIT, codes.BRANCH]


def test_integers_are_the_members_and_no_members():
    """Numba would compile another version of a kernel for a member of an enumeration."""
    for kind in (codes.EventKind, codes.PathEnd, codes.OnBranch, codes.LossKind, codes.Outcome):
        for member in kind:
            plain = getattr(codes, member.name)
            assert plain == member
            assert type(plain) is int


def test_every_code_of_a_kind_has_its_own_number():
    for kind in vars(codes).values():
        if isinstance(kind, type) and issubclass(kind, codes.IntEnum) and kind is not codes.IntEnum:
            assert len({int(member) for member in kind}) == len(kind.__members__)


def test_a_stored_run_has_the_same_events(tmp_path):
    problem = Problem(np.array([[1.0, 0.0], [0.4, 1.0]]), np.array([-0.5, 2.0]))
    net = Network(np.array([[0.3, 0.4], [-0.2, 0.5]]), np.array([0.5, 0.5]))
    run = flow(problem, net, t_end=5.0)
    run.save(tmp_path / "run.nc")
    again = Trajectory.load(tmp_path / "run.nc")
    assert run.events["kind"].size
    np.testing.assert_array_equal(run.events["kind"], again.events["kind"])
    assert again.event_names == [codes.EventKind(k).name.lower() for k in run.events["kind"]]
