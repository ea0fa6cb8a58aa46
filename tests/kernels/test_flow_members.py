"""flow_members: patterns numbered, neurons from columns, moments."""

import numpy as np
import pytest
from flow_twins import random_network, random_problem, state_of

from reluflow.kernels import flow_members
from reluflow.kernels.flow_types import Members


@pytest.mark.parametrize("rows", [0, 1, 2, 10_000])  # of the last, many share a place
def test_group_rows_numbers_equal_patterns_by_first_appearance(rows):
    V = np.random.default_rng(rows).integers(-1, 2, size=(rows, 7)).astype(np.int8)
    group, first = np.empty(rows, np.int64), np.empty(rows, np.int64)
    count = flow_members.group_rows(V, group, first)
    seen = {}
    exact = [seen.setdefault(tuple(v), len(seen)) for v in V.tolist()]
    assert count == len(seen)
    assert group.tolist() == exact
    assert first[:count].tolist() == [exact.index(g) for g in range(count)]


def moved_state(m, seed=1, scale=0.5):
    """A state whose columns have moved, by a map of each cone."""
    problem = random_problem(seed, leak=0.3)
    state = state_of(problem, random_network(problem, m, scale=scale))
    maps = np.random.default_rng(seed).normal(size=(state.U.shape[0], 4, 4))
    for g, A in enumerate(maps):
        rows = slice(state.cones.offset[g], state.cones.offset[g + 1])
        state.C[rows] = state.C[rows] @ A
    return state, np.einsum("ji,jie->je", state.Z, maps[state.gid])


@pytest.mark.parametrize("m", [5, 300])
@pytest.mark.parametrize("scale", [0.5, 1e-200])
def test_sync_and_starts(m, scale):
    state, now = moved_state(m, scale=scale)
    which = np.arange(0, m, 2)
    B, F = np.empty(which.size), np.stack([state.C] * 8)
    flow_members.starts(state.cones, state.members, F, which, B)
    Z, ls = state.Z.copy(), state.ls.copy()
    flow_members.sync(state.cones, state.C, Members(state.gid, state.col, Z, ls))
    size = np.linalg.norm(now, axis=1)
    there = size > 0
    np.testing.assert_allclose(Z[there], now[there] / size[there, None], atol=1e-12)
    np.testing.assert_allclose(
        ls[there], state.ls[there] + np.log(size[there]), rtol=1e-12, atol=1e-12
    )
    assert not Z[~there].any()
    exact = 0.5 * np.exp(2.0 * ls[which]) * (np.linalg.norm(Z[which], axis=1) > 0)
    np.testing.assert_allclose(B[which != 0], exact[which != 0], rtol=1e-12)


@pytest.mark.parametrize("m", [5, 300])
def test_moments(m):
    problem = random_problem(2)
    state = state_of(problem, random_network(problem, m))
    state.ls[:] = np.random.default_rng(3).uniform(-900, -890, size=m)  # beyond floats as squares
    top = np.empty(state.U.shape[0])
    flow_members.group_max(state.gid, state.ls, top)
    Q = np.empty_like(state.cones.Q)
    flow_members.moments(state.cones, state.members, top, Q)
    for g in range(top.size):
        own = np.flatnonzero(state.gid == g)
        assert top[g] == state.ls[own].max()
        weight = np.exp(2.0 * (state.ls[own] - top[g]))
        part = Q[state.cones.q_offset[g] : state.cones.q_offset[g + 1]]
        if state.cones.lumped[g]:
            exact = (state.Z[own] * weight[:, None]).T @ state.Z[own]
            np.testing.assert_allclose(part.reshape(4, 4), exact, atol=1e-12 * weight.sum())
        else:
            order = state.col[own] - state.cones.offset[g]
            np.testing.assert_allclose(part[order], weight, rtol=1e-14)
