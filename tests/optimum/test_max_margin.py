"""Largest margins of networks of any width: closed forms, bounds that hold, brute force."""

import numpy as np
import pytest
from enumeration import best_norm
from hypothesis import given, settings
from hypothesis import strategies as st

from reluflow import Network, Problem, ReluflowError, datasets
from reluflow.optimum import kkt, margin_bound, max_margin


def margin_of(problem, net):
    W, a = net.weights()
    return (problem.y * problem.outputs(net)).min() / ((W**2).sum() + (a**2).sum())


def check(problem, found):
    """The network has the margin stated, and the dual the bound stated."""
    assert margin_of(problem, found.network) == pytest.approx(found.margin, rel=1e-12)
    assert (problem.y * problem.outputs(found.network)).min() == pytest.approx(1, rel=1e-9)
    assert found.dual.sum() == pytest.approx(1)
    assert (found.dual >= 0).all()
    assert found.gap >= 0


@pytest.mark.parametrize("leak", [0.0, 0.3, 0.5])
@pytest.mark.parametrize("d", [2, 3, 4, 5, 6])
def test_symmetric_data(d, leak):
    """LLWA21 Theorem 4.2: (1 + leak)/4 times the margin of the linear separator."""
    problem = datasets.symmetric_separable(pairs=10, d=d, leak=leak, rng=100 + d)
    linear = max_margin(problem, "linear")
    known = (1 + leak) / 4 * linear.margin
    found = max_margin(problem)
    check(problem, found)
    assert found.exact
    assert found.margin == pytest.approx(known, rel=1e-9)
    assert found.upper_bound == pytest.approx(known, rel=1e-9)


@pytest.mark.parametrize(
    ("leak", "curved", "best"), [(0.0, 0.207107, 0.25), (0.5, 0.356107, 0.375)]
)
def test_curved_kkt_point_is_not_global(leak, curved, best):
    problem = datasets.figure1_left(leak=leak)
    point = kkt(problem, Network(problem.known["kkt_W"], problem.known["kkt_a"], leak=leak))
    found = max_margin(problem)
    check(problem, found)
    assert found.exact
    assert point.residual < 1e-9
    assert point.margin == pytest.approx(curved, abs=5e-7)
    assert found.margin == pytest.approx(best, rel=1e-9)
    assert found.margin - point.margin > 0.01


@pytest.mark.parametrize(
    ("problem", "ratio"),
    [(datasets.figure1_middle(), 2.283), (datasets.figure1_right(), 2.478)],
    ids=["F1M", "F1R"],
)
def test_figure_1(problem, ratio):
    found = max_margin(problem)
    check(problem, found)
    assert found.exact
    assert found.margin / problem.known["limit_margin"] == pytest.approx(ratio, abs=1e-3)


@pytest.mark.parametrize("leak", [0.2, 0.5])
@pytest.mark.parametrize("factor", [0.5, 0.98, 1.02, 2.0])
def test_hints_hurt_beyond_their_threshold(leak, factor):
    """LLWA21 Theorem 6.2: one neuron is suboptimal exactly when K > eps sqrt((3+leak)/(1-leak))."""
    eps = 0.02
    problem = datasets.hinted(eps=eps, K=factor * eps * np.sqrt((3 + leak) / (1 - leak)), leak=leak)
    found, alone = max_margin(problem), problem.known["limit_margin"]
    assert found.exact
    assert problem.known["suboptimal"] == (factor > 1)
    if factor > 1:
        assert found.margin > alone * (1 + 1e-5)
    else:
        assert found.upper_bound == pytest.approx(alone, rel=1e-9)


@pytest.mark.parametrize("problem", [datasets.symmetric_xor(), datasets.xor_orbit()], ids=str)
def test_xor(problem):
    """TK24 5.8: the four-neuron direction is global, with margin min(|main| - |off|)/8."""
    signs, W = problem.known["signs"], problem.known["directions"]
    known = margin_of(problem, Network(W, signs))
    assert known == pytest.approx(problem.known["max_margin"], rel=1e-12)
    found = max_margin(problem)
    check(problem, found)
    assert found.exact
    assert found.upper_bound == pytest.approx(known, rel=1e-9)
    assert kkt(problem, Network(W, signs)).residual < 1e-9


@pytest.mark.parametrize(("n", "d", "rho"), [(8, 2, 0.9), (12, 3, 0.8), (14, 5, 0.5)])
def test_orthogonally_separable_data(n, d, rho):
    """LLWA21 H.2, H.3 (and MMV24): |theta|^2 = 2 (|v+| + |v-|) at q_min = 1."""
    problem = datasets.separable(rho, n, d, rng=n)
    norms = []
    for label in (1.0, -1.0):
        rows = problem.y == label
        one = Problem(problem.X[rows], np.ones(rows.sum()))
        norms.append(1 / max_margin(one, "linear").margin)
    found = max_margin(problem)
    check(problem, found)
    assert found.exact
    assert found.margin == pytest.approx(1 / (2 * sum(norms)), rel=1e-9)
    assert kkt(problem, found.network).residual < 1e-8


def test_one_sided_margins():
    """LLWA21 A.5 on the counterexample to Theorem A.7 as stated."""
    X = np.array([(-2.0, 0.2), (1.0, 0.9), (10.0, 0.0)]) / 10
    problem = Problem(X, [-1.0, 1.0, 1.0], leak=0.5)
    plus = max_margin(problem, "linear", sign=1)
    assert plus.margin == pytest.approx(0.1, rel=1e-9)
    np.testing.assert_allclose(plus.dual, [0.9, 0.1, 0.0], atol=1e-3)
    on = np.isclose(problem.y * (X @ plus.w) * np.where(problem.y > 0, 1, 0.5), plus.margin)
    against = max_margin(Problem(X[on], problem.y[on], leak=0.5), sign=-1)
    assert against.exact
    assert against.margin == pytest.approx(0.0336, abs=5e-5)  # A.5 holds: below 0.05
    assert margin_bound(problem, plus.dual, sign=-1) == pytest.approx(0.185 / 2, abs=5e-4)  # A.5*
    both = max_margin(problem)
    assert both.margin == pytest.approx(0.0559, abs=5e-5)
    assert (against.network.a <= 0).all()
    assert max_margin(problem, sign=1).margin <= both.margin + 1e-12


def test_one_sided_bound_of_the_paper():
    """All labels +1 on the support: networks with a <= 0 have at most leak gamma+/2."""
    problem = datasets.figure1_middle()
    plus = max_margin(problem, "linear", sign=1)
    on = plus.support
    found = max_margin(Problem(problem.X[on], problem.y[on], leak=0.5), sign=-1)
    assert found.upper_bound <= 0.5 * plus.margin / 2 + 1e-12
    flipped = problem.replace(y=-problem.y)
    assert max_margin(problem, sign=1).margin == pytest.approx(
        max_margin(flipped, sign=-1).margin, rel=1e-9
    )


def integers(low, high, *shape):
    return st.lists(
        st.integers(low, high), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))
    ).map(lambda v: np.array(v, dtype=float).reshape(shape))


@st.composite
def problems(draw):
    n, d = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    X = draw(integers(-4, 4, n, d)) / 2
    y = draw(integers(0, 1, n)) * 2 - 1
    return Problem(X, y, leak=draw(st.sampled_from([0.0, 0.25, 0.7])))


@given(problems(), st.integers(0, 1000), st.sampled_from([None, 1, -1]))
@settings(max_examples=60)
def test_no_network_beats_the_bounds(problem, seed, sign):
    rng = np.random.default_rng(seed)
    found = max_margin(problem, sign=sign)
    assert found.exact
    any_bound = margin_bound(problem, rng.exponential(size=problem.n), sign=sign)
    assert found.margin <= found.upper_bound
    assert found.upper_bound <= any_bound * (1 + 1e-9) + 1e-10
    for width in (1, 2, 5):
        for _ in range(20):
            W, a = rng.normal(size=(width, problem.d)), rng.normal(size=width)
            if rng.random() < 0.5:
                W = np.round(W)
            W[~W.any(axis=1)] = 1.0
            a = np.sign(a) * np.linalg.norm(W, axis=1) if rng.random() < 0.5 else a
            a = a if sign is None else sign * np.abs(a)
            reached = margin_of(problem, Network(W, a))
            assert reached <= found.upper_bound
            assert reached <= any_bound
    if found.network is not None:
        assert sign is None or (sign * found.network.a >= 0).all()


@pytest.mark.parametrize("seed", range(6))
def test_against_all_cones_at_once(seed):
    rng = np.random.default_rng(seed)
    d, leak = 2 + seed % 2, [0.0, 0.3][seed // 2 % 2]
    problem = Problem(rng.normal(size=(5, d)), np.sign(rng.normal(size=5)), leak=leak)
    found = max_margin(problem)
    assert found.exact
    assert found.margin == pytest.approx(1 / (2 * best_norm(problem, margin=True)), rel=1e-6)


def test_units_and_coordinates():
    rng = np.random.default_rng(3)
    problem = Problem(rng.normal(size=(7, 3)), np.sign(rng.normal(size=7)), leak=0.1)
    best = max_margin(problem).margin
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0][:, :3]
    for other, factor in (
        (problem.replace(X=1e6 * problem.X), 1e6),
        (problem.replace(X=1e-9 * problem.X), 1e-9),
        (problem.replace(X=problem.X @ turn.T), 1.0),
        (problem.replace(X=np.vstack([problem.X] * 2), y=np.tile(problem.y, 2)), 1.0),
        (problem.replace(y=-problem.y), 1.0),
    ):
        found = max_margin(other)
        check(other, found)
        assert found.exact
        assert found.margin == pytest.approx(factor * best, rel=1e-9)


def test_no_network_separates():
    """Parallel samples of opposite labels; odd parts of outputs are linear; a zero sample."""
    hexagon = np.array([(1.0, 0.0), (0.5, 0.75**0.5), (-0.5, 0.75**0.5)])
    for X, y in (
        ([[1.0, 1.0], [2.0, 2.0]], [1.0, -1.0]),
        (np.vstack([hexagon, -hexagon]), [1.0, -1.0, 1.0, -1.0, 1.0, -1.0]),
        ([[1.0, 0.0], [0.0, 0.0]], [1.0, 1.0]),
        ([[0.0, 0.0]], [1.0]),
    ):
        found = max_margin(Problem(X, y))
        assert (found.status, found.margin, found.network) == ("infeasible", 0.0, None)
        assert 0 <= found.upper_bound <= 1e-11
        assert found.dual.sum() == pytest.approx(1)


def test_a_search_cut_short_says_so():
    rng = np.random.default_rng(1)
    problem = Problem(rng.normal(size=(30, 6)), np.sign(rng.normal(size=30)))
    found = max_margin(problem, budget=50)
    check(problem, found)
    assert (found.status, found.exact) == ("gap left", False)
    assert found.gap > 0.01 * found.margin
    short = max_margin(datasets.figure1_right(), rounds=1)
    full = max_margin(datasets.figure1_right())
    assert short.margin < full.margin < short.upper_bound


def test_bad_input():
    problem = datasets.figure1_left()
    with pytest.raises(ReluflowError, match="rounds must be"):
        max_margin(problem, rounds=0)
    with pytest.raises(ReluflowError, match="labels -1 and"):
        max_margin(datasets.three_points())


def test_without_time_the_first_program_is_the_last_and_the_bound_holds():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((40, 6))
    problem = Problem(X, np.where(X[:, 0] > 0.0, 1.0, -1.0))
    found, better = max_margin(problem, seconds=0.0), max_margin(problem, rounds=6, budget=64)
    assert found.rounds == 1
    assert found.status == "gap left"
    assert 0.0 <= found.margin < better.margin <= found.upper_bound
    timed = max_margin(problem, rounds=6, budget=64, seconds=1e6)
    assert (timed.margin, timed.rounds) == (better.margin, better.rounds)
