"""The tree of cones, and the lists of their members."""

import numpy as np

from reluflow.descent.tree import chains, cones_of, flips_of, plant
from reluflow.kernels.wheel import NONE


def test_tree_reaches_every_pattern_by_its_flips():
    rng = np.random.default_rng(1)
    X, W = rng.normal(size=(20, 3)), rng.normal(size=(300, 3))
    patterns, cone = cones_of(X, W)
    assert not patterns[0].any()
    assert np.array_equal(patterns[cone], W @ X.T > 0)
    order, parents = plant(patterns)
    start, count, sample, sign = flips_of(patterns[order], parents)
    assert order[0] == 0
    assert (parents[1:] < np.arange(1, len(order))).all()
    rebuilt = np.zeros((len(order), 20))
    for u in range(len(order)):
        rebuilt[u] = rebuilt[parents[u]] if u else 0
        for q in range(start[u], start[u] + count[u]):
            rebuilt[u, sample[q]] += sign[q]
    assert np.array_equal(rebuilt, patterns[order])


def test_chains_list_the_members_of_each_cone():
    cone = np.array([2, 0, 2, 2, 4, 0])
    head, link, count = chains(cone, 6)
    for u in range(6):
        members, j = [], head[u]
        while j != NONE:
            members.append(int(j))
            j = link[j]
        assert sorted(members) == np.flatnonzero(cone == u).tolist()
        assert count[u] == len(members)
