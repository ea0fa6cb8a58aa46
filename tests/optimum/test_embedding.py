"""Embeddings of small networks keep function, norm and flow."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reluflow import Network, Problem, ReluflowError, datasets, flow
from reluflow.optimum import (
    Embedding,
    collapse,
    commuting_error,
    log_m_norm,
    m_norm,
    neuron_groups,
    pi_b,
)


def random_embedding(rng, p, m):
    groups = np.concatenate([np.arange(p), rng.integers(-1, p, size=m - p)])
    shares = rng.uniform(0.1, 1.0, size=m)
    for k in range(p):
        shares[groups == k] /= np.linalg.norm(shares[groups == k])
    return Embedding(groups, shares, p)


def norm2(net):
    W, a = net.weights()
    return np.sum(W**2) + np.sum(a**2)


@given(st.integers(0, 10**6))
def test_image_keeps_function_norm_and_velocity(seed):
    rng = np.random.default_rng(seed)
    n, d, p = int(rng.integers(1, 7)), int(rng.integers(1, 5)), int(rng.integers(1, 4))
    problem = Problem(
        rng.normal(size=(n, d)),
        rng.choice([-1.0, 1.0], size=n),
        loss=("half_square", "logistic")[seed % 2],
        leak=(0.0, 0.3)[seed // 2 % 2],
    )
    small = Network(rng.normal(size=(p, d)), rng.normal(size=p), leak=problem.leak)
    if seed % 3 == 0:  # on a kink
        x = problem.X[0]
        small = Network(small.W - np.outer(small.W @ x, x) / (x @ x), small.a, leak=problem.leak)
    chi = random_embedding(rng, p, p + int(rng.integers(0, 9)))
    wide = chi(small)
    assert problem.outputs(wide) == pytest.approx(problem.outputs(small), rel=1e-12, abs=1e-13)
    assert norm2(wide) == pytest.approx(norm2(small), rel=1e-13)
    assert commuting_error(problem, small, chi) < 1e-12


def test_commuting_error_sees_shares_that_do_not_add_up():
    problem = datasets.symmetric_xor()
    small = Network(np.eye(2), [1.0, -1.0])
    chi = pi_b([0.6, 0.8, -1.0])
    assert commuting_error(problem, small, chi) < 1e-12
    broken = Embedding(chi.groups, chi.shares, 2)
    object.__setattr__(broken, "shares", chi.shares * np.array([1.0, 0.5, 1.0]))
    assert commuting_error(problem, small, broken) > 1e-3


def test_flow_commutes_with_pi_b_on_symmetric_data():
    """[LLWA21] Lemma 5.3: flow(pi_b(theta), t) = pi_b(flow(theta, t))."""
    problem = datasets.symmetric_separable(4, 3, rng=1)
    small = Network(0.05 * np.array([[1.0, 0.2, -0.1], [-0.3, -1.0, 0.2]]), [0.05, -0.05])
    small = Network(small.W, small.a, leak=problem.leak)
    chi = pi_b([0.3, -0.2, 0.7, -1.0, 0.1])
    t = 40.0
    end = flow(problem, small, t_end=t, rtol=1e-10).final
    wide = flow(problem, chi(small), t_end=t, rtol=1e-10).final
    W, a = wide.weights()
    expected_W, expected_a = chi(end).weights()
    assert np.abs(expected_W).max() > 10 * np.abs(small.W).max()  # it moved
    assert pytest.approx(expected_W, abs=1e-7) == W
    assert pytest.approx(expected_a, abs=1e-7) == a


def test_flow_commutes_with_chi_on_xor():
    """[TK24] eq. (4), four groups, on non-separable data."""
    problem = datasets.xor_orbit()
    axes = np.zeros((4, problem.d))
    axes[:, :2] = [[1, 0], [0, 1], [-1, 0], [0, -1]]
    sizes = np.array([1e-2, 7e-3, 4e-3, 9e-3])
    small = Network(sizes[:, None] * axes, sizes * [1, -1, 1, -1])
    rng = np.random.default_rng(3)
    chi = random_embedding(rng, 4, 12)
    end = flow(problem, small, t_end=60.0, rtol=1e-10).final
    wide = flow(problem, chi(small), t_end=60.0, rtol=1e-10).final
    assert m_norm(end) > 5 * m_norm(small)
    difference = wide.weights()[0] - chi(end).weights()[0]
    assert np.abs(difference).max() < 1e-7 * m_norm(end)


def test_collapse_undoes_an_embedding():
    rng = np.random.default_rng(5)
    small = Network(rng.normal(size=(3, 4)), [2.0, -1.0, 0.5])
    chi = random_embedding(rng, 3, 10)
    wide = chi(small)
    labels, count = neuron_groups(wide, angle=1e-6)
    assert count == 3
    back, again = collapse(wide, angle=1e-6)
    assert (labels == again.groups).all()
    image = again(back)
    assert pytest.approx(wide.W, abs=1e-13) == image.W
    assert pytest.approx(wide.a, abs=1e-13) == image.a
    order = np.argsort(-np.abs(back.a))
    assert np.sort(np.abs(back.a)) == pytest.approx([0.5, 1.0, 2.0])
    assert back.directions[order[0]] == pytest.approx(small.directions[0])


def test_collapse_at_any_scale():
    wide = Network([[3.0, 0.0], [4.0, 0.0]], [3.0, 4.0], log_scale=[-900.0, -900.0])
    small, chi = collapse(wide)
    assert small.m == 1
    assert small.log_norms[0] == pytest.approx(np.log(5.0) - 900.0)
    assert chi.shares == pytest.approx([0.6, 0.8])
    assert log_m_norm(wide) == pytest.approx(np.log(4.0) - 900.0)


def test_groups_split_signs_and_leave_small_neurons_out():
    net = Network([[1.0, 0], [2.0, 0], [1.0, 1e-9], [0, 1e-4], [0, 0]], [1.0, -2.0, 1.0, 1e-4, 0.0])
    labels, count = neuron_groups(net, least=1e-2)
    assert count == 2
    assert labels.tolist() == [1, 0, 1, -1, -1]
    assert m_norm(net, [0, 3]) == 1.0
    assert m_norm(net, []) == 0.0


def test_pi_b_is_the_papers():
    small = Network([[1.0, 2.0], [-1.0, 0.5]], [0.5, -2.0])
    wide = pi_b([3.0, -1.0, 4.0, 0.0])(small)
    assert pytest.approx(np.array([0.6 * 0.5, -2.0, 0.8 * 0.5, 0.0])) == wide.a
    assert pytest.approx(np.array([[0.6, 1.2], [-1.0, 0.5], [0.8, 1.6], [0, 0]])) == wide.W


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Embedding([0, 0], [1.0, 1.0], 1), "squares adding up to 1"),
        (lambda: Embedding([0, 2], [1.0, 1.0], 2), "groups must lie in"),
        (lambda: Embedding([0], [1.0, 1.0], 2), "groups and shares have shapes"),
        (lambda: pi_b([1.0])(Network(np.eye(2), [1.0, -1.0])), "has no neuron in the wide one"),
        (lambda: pi_b([1.0, -1.0])(Network(np.eye(2)[:1], [1.0])), "has 1 neurons, expected 2"),
        (lambda: pi_b([np.nan]), "finite numbers"),
        (lambda: collapse(Network(np.eye(2), [1.0, -1.0]), [0, 0]), "mixes output signs"),
        (lambda: collapse(Network(np.eye(2), [1.0, -1.0]), [-1, -1]), "at least one of them"),
        (lambda: neuron_groups(Network(np.eye(2), [1.0, 1.0]), angle=4.0), "angle must be"),
    ],
)
def test_messages(make, message):
    with pytest.raises(ReluflowError, match=message):
        make()
