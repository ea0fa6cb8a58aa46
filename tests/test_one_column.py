"""Labels (n, 1) and outer weights (m, 1) are one output: the same numbers as for vectors."""

import numpy as np
import pytest

from reluflow import Network, Problem, descend, flow, initialize, kkt, limit

RNG = np.random.default_rng(0)
X = RNG.normal(size=(8, 3))
Y = {"half_square": RNG.normal(size=8), "logistic": np.where(np.arange(8) % 3 > 0, 1.0, -1.0)}


@pytest.mark.parametrize("loss", ["half_square", "logistic"])
def test_one_column_is_one_output(loss):
    one, column = Problem(X, Y[loss], loss=loss), Problem(X, Y[loss][:, None], loss=loss)
    assert not column.several
    net = initialize(one, 6, scale=0.3, rng=3)
    assert np.array_equal(initialize(column, 6, scale=0.3, rng=3).a, net.a)
    same = Network(net.W, net.a[:, None])
    assert same.K == 1
    assert same(X).shape == (8,)
    for run in (
        lambda p, n: descend(p, n, lr=0.05, steps=200).final,
        lambda p, n: flow(p, n, t_end=5.0).final,
        lambda p, n: limit(p, n, max_jumps=1).final,
    ):
        a, b = run(one, net), run(column, same)
        assert np.array_equal(a.W, b.W)
        assert np.array_equal(a.a, b.a)
    if loss == "logistic":
        end = descend(one, net, lr=0.5, steps=20_000).final
        a, b = kkt(one, end), kkt(column, Network(end.W, end.a[:, None]))
        assert np.isfinite(a.residual)
        assert a.residual == b.residual
        assert np.array_equal(a.multipliers, b.multipliers)
