"""Each dataset: settings of its paper, known answers recomputed another way, symmetries."""

from __future__ import annotations

import doctest
import importlib
import inspect
import math
import pickle

import numpy as np
import pytest
from scipy import optimize, stats

from reluflow import Network, Problem, ReluflowError, align, datasets, initialize, losses
from reluflow.problem.datasets._common import hard_margin
from reluflow.problem.datasets.bf24 import STEWART_KNOTS

BUILT_IN = [name for name in datasets.names() if not name.startswith("mnist")]
RANDOM = [name for name in BUILT_IN if "rng" in datasets.REGISTRY[name].options]


def G(problem: Problem, W) -> np.ndarray:
    """sum_k c_k phi(<w, x_k>) for rows of W, c the pull on a silent network."""
    S = np.asarray(W) @ problem.X.T
    return np.maximum(S, problem.leak * S) @ problem.pull


def sphere(d: int, count: int, seed: int = 0) -> np.ndarray:
    V = np.random.default_rng(seed).standard_normal((count, d))
    return V / np.linalg.norm(V, axis=1)[:, None]


def multiset(X, y, digits: int = 12) -> list[tuple[float, ...]]:
    return sorted(map(tuple, np.round(np.column_stack([X, y]), digits) + 0.0))


# ---- registry -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_dataset_loads_with_its_defaults(name):
    problem = datasets.load(name)
    assert isinstance(problem, Problem)
    assert problem.name == name
    assert problem.known
    again = datasets.load(name)
    np.testing.assert_array_equal(problem.X, again.X)
    np.testing.assert_array_equal(problem.y, again.y)


@pytest.mark.parametrize("name", datasets.names())
def test_descriptions_are_one_line_and_cite_the_paper(name):
    dataset = datasets.REGISTRY[name]
    line = dataset.description
    assert line.endswith(".")
    assert len(line) <= 100
    cited = any(f"[{key}]_" in line for key in ("BF24", "TK24", "TLB26", "MMV24", "LLWA21"))
    assert cited or name == "mnist-digits"  # ten classes are in none of the five papers


@pytest.mark.parametrize("name", datasets.names())
def test_parameters_are_documented(name):
    make = datasets.REGISTRY[name].make
    doc = inspect.getdoc(make) or ""
    if "Parameters\n" in doc:
        for parameter in inspect.signature(make).parameters:
            assert parameter in doc.partition("Parameters\n")[2], parameter


@pytest.mark.parametrize("name", RANDOM)
def test_random_datasets_take_a_seed(name):
    one, two = datasets.load(name, rng=3), datasets.load(name, rng=np.random.default_rng(3))
    np.testing.assert_array_equal(one.X, two.X)
    np.testing.assert_array_equal(one.y, two.y)
    other = datasets.load(name, rng=4)
    same = one.X.shape == other.X.shape and np.array_equal(one.X, other.X)
    assert not (same and np.array_equal(one.y, other.y))


@pytest.mark.parametrize("name", BUILT_IN)
def test_known_answers_can_travel_between_processes(name):
    known = dict(datasets.load(name).known)
    assert pickle.loads(pickle.dumps(known)).keys() == known.keys()


@pytest.mark.parametrize("name", BUILT_IN)
def test_conventions_pass_through(name):
    options = datasets.REGISTRY[name].options
    assert {"loss", "reduction"} <= set(options)
    total = datasets.load(name, reduction="sum")
    mean = datasets.load(name, reduction="mean")
    np.testing.assert_allclose(total.pull, total.n * mean.pull, rtol=1e-14)
    for key in ("growth_rate", "growth_rates", "rate", "growth_rate_plus"):
        if key in mean.known:
            np.testing.assert_allclose(total.known[key], total.n * mean.known[key], rtol=1e-12)
    if "leak" in options:
        assert datasets.load(name, leak=0.25).leak == 0.25


def test_unknown_names_get_a_hint():
    with pytest.raises(ReluflowError, match=r"unknown dataset 'three-point'.*'three-points'"):
        datasets.load("three-point")
    with pytest.raises(ReluflowError, match=r"unknown dataset 'zzz'.*the names are three-points"):
        datasets.load("zzz")


def test_unknown_options_are_named():
    with pytest.raises(ReluflowError, match="two-points has no option 'alpha': expected one of"):
        datasets.load("two-points", alpha=1.0)


@pytest.mark.parametrize(
    "module", ["bf24", "hints", "llwa21", "mmv24", "registry", "tk24", "tlb26"]
)
def test_examples_in_docstrings(module):
    module = importlib.import_module(f"reluflow.problem.datasets.{module}")
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


def test_public_names_exist():
    for name in datasets.__all__:
        assert hasattr(datasets, name)


# ---- the separator used by several ----------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_hard_margin_satisfies_its_optimality_conditions(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((12, 3))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    X[:, 0] += 0.2 * y
    best = hard_margin(X, y)
    margins = y * (X @ best.w)
    assert abs(np.linalg.norm(best.w) - 1) < 1e-14
    np.testing.assert_allclose(margins.min(), best.margin, rtol=1e-14)
    # the dual point proves that no unit vector does better
    assert np.all(best.dual >= 0)
    np.testing.assert_allclose(best.dual.sum(), 1.0, rtol=1e-14)
    upper = np.linalg.norm((best.dual * y) @ X)
    np.testing.assert_allclose(best.margin, upper, rtol=1e-11)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[1.0, 0.0], [1.0, 0.0]], [1.0, -1.0]),
        ([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], [1.0, 1.0, 1.0]),
        (datasets.ideal_xor().X, datasets.ideal_xor().y),
    ],
)
def test_hard_margin_refuses_inseparable_data(X, y):
    with pytest.raises(ReluflowError, match="not linearly separable through the origin"):
        hard_margin(np.array(X), np.array(y))


# ---- BF24 -----------------------------------------------------------------------------------


def assumption4(problem: Problem) -> bool:
    return bool((problem.X @ problem.X.T > 0).all() and (problem.y > 0).all())


def assumption5(problem: Problem, extremes: list[int]) -> list[tuple[float, float]]:
    """Both sides of y_k |x_k|^2 > |y| sqrt(sum over the others of <x_k, x_k'>^2)."""
    gram, y = problem.X @ problem.X.T, problem.y
    return [
        (
            y[k] * gram[k, k],
            np.linalg.norm(y) * math.sqrt(np.sum(gram[k] ** 2) - gram[k, k] ** 2),
        )
        for k in extremes
    ]


def test_three_points_settings():
    problem = datasets.three_points()
    np.testing.assert_array_equal(problem.X, [[-0.75, 1], [-0.5, 1], [0.125, 1]])
    np.testing.assert_array_equal(problem.y, [1.1, 0.1, 0.8])
    assert problem.loss == losses.HalfSquare()
    assert (problem.reduction, problem.leak, problem.bias) == ("mean", 0.0, 1.0)


def test_three_points_by_hand():
    # D* and the least-squares line, written out for one input and a constant
    x, y = np.array([-0.75, -0.5, 0.125]), np.array([1.1, 0.1, 0.8])
    slope = np.sum((x - x.mean()) * y) / np.sum((x - x.mean()) ** 2)
    level = y.mean() - slope * x.mean()
    r = y - level - slope * x
    known = datasets.three_points().known
    np.testing.assert_allclose(known["D_star"], [np.mean(x * y), np.mean(y)], rtol=1e-14)
    np.testing.assert_allclose(known["beta_star"], [slope, level], rtol=1e-13)
    np.testing.assert_allclose(known["residuals"], r, rtol=1e-12)
    np.testing.assert_allclose(known["limit_outputs"], y - r, rtol=1e-13)
    np.testing.assert_allclose(known["limit_mse"], np.mean(r**2), rtol=1e-12)
    np.testing.assert_allclose(known["limit_loss"], np.mean(r**2) / 2, rtol=1e-12)
    # the digits quoted for the figure
    assert round(known["limit_mse"], 10) == 0.175042735
    assert round(known["growth_rate"], 6) == 0.714969
    assert round(math.degrees(known["D_angle"]), 1) == 111.2
    assert round(math.degrees(known["beta_angle"]), 1) == 95.5
    assert round(known["blow_up_time"](1e-3), 2) == 9.66


def test_three_points_limit_is_stationary_but_not_optimal():
    problem = datasets.three_points()
    beta = problem.known["beta_star"]
    size = math.sqrt(np.linalg.norm(beta))
    line = Network([beta / size], [size])
    np.testing.assert_allclose(problem.outputs(line), problem.known["limit_outputs"])
    c = problem.pull_at(problem.outputs(line))
    assert np.linalg.norm(c @ problem.X) < 1e-15  # every sample is active: gradient zero
    # two neurons go through all three points: one falls through the first two and ends before
    # the third, the other starts at the second
    x, y = problem.X[:, 0], problem.y
    slope = (y[0] - y[1]) / (x[1] - x[0])
    end = x[1] + y[1] / slope
    assert end < x[2]
    two = Network([[-1.0, end], [1.0, -x[1]]], [slope, y[2] / (x[2] - x[1])])
    np.testing.assert_allclose(problem.outputs(two), y, rtol=1e-13)


def test_three_points_on_plain_square_runs_twice_as_fast():
    half, plain = datasets.three_points(), datasets.three_points(loss="square")
    np.testing.assert_allclose(plain.known["growth_rate"], 2 * half.known["growth_rate"])
    np.testing.assert_array_equal(plain.known["beta_star"], half.known["beta_star"])
    assert plain.known["limit_mse"] == plain.known["limit_loss"]


def test_three_points_leaky_has_no_stated_limit():
    assert "limit_mse" not in datasets.three_points(leak=0.1).known
    with pytest.raises(ReluflowError, match="needs labels -1 and"):
        datasets.three_points(loss="logistic")


def test_three_points_lie_outside_the_theorem():
    problem = datasets.three_points()
    assert assumption4(problem)
    (left, right), (left3, right3) = assumption5(problem, [0, 2])
    assert (round(left, 3), round(right, 3)) == (1.719, 2.246)
    assert (round(left3, 4), round(right3, 3)) == (0.8125, 1.778)


def test_a3c_by_symmetry():
    problem = datasets.a3c()
    y = np.array([1.05, 0.05, 1.05])
    np.testing.assert_allclose(problem.known["beta_star"], [0.0, y.mean()], atol=1e-15)
    np.testing.assert_allclose(problem.known["limit_mse"], y.var(), rtol=1e-13)
    np.testing.assert_allclose(problem.known["limit_mse"], 2 / 9, rtol=1e-13)
    assert assumption4(problem)


@pytest.mark.parametrize("box_eta", [0.01, 0.1, 1 / 6])
@pytest.mark.parametrize("seed", range(20))
def test_assumption3_box(box_eta, seed):
    problem = datasets.assumption3_box(box_eta, rng=seed)
    X, y, e = problem.X, problem.y, box_eta * (1 + 1e-12)
    assert -1 < X[0, 0] <= -1 + e
    assert -e <= X[1, 0] <= e
    assert 1 - e <= X[2, 0] < 1
    assert 1 <= X[0, 1] <= 1 + e
    assert abs(X[1, 1] - 1) <= e
    assert 1 <= X[2, 1] <= 1 + e
    assert 1 <= y[0] <= 1 + e
    assert 0 < y[1] <= e
    assert 1 <= y[2] <= 1 + e
    assert assumption4(problem)
    beta, *_ = np.linalg.lstsq(X, y, rcond=None)
    np.testing.assert_allclose(problem.known["beta_star"], beta, atol=1e-14)
    assert problem.known["limit_mse"] > 0.05
    if box_eta < 0.09:  # Lemma 8 holds up to about 0.0977 only
        assert all(left > right for left, right in assumption5(problem, [0, 2]))


@pytest.mark.parametrize("box_eta", [0.0, -0.1, 0.2, np.nan, "a"])
def test_assumption3_box_refuses(box_eta):
    with pytest.raises(ReluflowError, match="box_eta must be a number"):
        datasets.assumption3_box(box_eta)


def test_stewart():
    problem = datasets.stewart()
    assert (problem.n, problem.d, problem.bias) == (40, 2, 1.0)
    x = problem.X[:, 0]
    assert np.all((np.abs(x) <= 1) & (np.diff(x, prepend=-2) > 0))
    W, a = problem.known["teacher_W"], problem.known["teacher_a"]
    assert W.shape == (8, 2)
    teacher = Network(W, a, bias=1.0)
    np.testing.assert_allclose(teacher(problem.X), problem.y, atol=1e-14)
    for knot, value in STEWART_KNOTS:
        assert abs(teacher(np.array([knot])) - value) < 1e-14
    sample = datasets.stewart(n=4000, rng=5).X[:, 0]
    assert stats.kstest(sample, stats.uniform(-1, 2).cdf).pvalue > 1e-3


# ---- TK24 -----------------------------------------------------------------------------------


def flip(X, columns):
    Y = X.copy()
    Y[:, columns] *= -1
    return Y


@pytest.mark.parametrize("make", [datasets.symmetric_xor, datasets.xor_orbit, datasets.ideal_xor])
def test_xor_symmetries(make):
    problem = make()
    X, y, labelled = problem.X, problem.y, multiset(problem.X, problem.y)
    assert multiset(flip(X, [0]), y) == labelled
    assert multiset(flip(X, [1]), y) == labelled
    assert multiset(flip(X, list(range(2, problem.d))), y) == labelled
    swapped = X.copy()
    swapped[:, [0, 1]] = X[:, [1, 0]]
    assert multiset(swapped, -y) == labelled
    np.testing.assert_array_equal(y, np.where(np.abs(X[:, 0]) > np.abs(X[:, 1]), 1.0, -1.0))


@pytest.mark.parametrize("make", [datasets.symmetric_xor, datasets.xor_orbit, datasets.ideal_xor])
@pytest.mark.parametrize("leak", [0.0, 0.2])
def test_xor_growth_rate_is_the_largest(make, leak):
    problem = make(leak=leak)
    rate, axes = problem.known["growth_rate"], problem.known["directions"]
    np.testing.assert_allclose(G(problem, axes), rate * problem.known["signs"], rtol=1e-12)
    assert np.abs(G(problem, sphere(problem.d, 200_000))).max() <= rate * (1 + 1e-12)


@pytest.mark.parametrize("make", [datasets.symmetric_xor, datasets.xor_orbit, datasets.ideal_xor])
def test_xor_margin_of_four_equal_neurons(make):
    problem = make()
    net = Network(problem.known["directions"], problem.known["signs"])
    margin = (problem.y * problem.outputs(net)).min() / (np.sum(net.W**2) + np.sum(net.a**2))
    np.testing.assert_allclose(problem.known["max_margin"], margin, rtol=1e-12)
    # certificate from above: equal weights on the worst samples of each cluster bound every width
    best = np.isclose(problem.y * problem.outputs(net), (problem.y * problem.outputs(net)).min())
    lam = best / best.sum()
    V = np.vstack([sphere(problem.d, 200_000), problem.known["directions"]])
    upper = np.abs(np.maximum(V @ problem.X.T, 0) @ (lam * problem.y)).max() / 2
    np.testing.assert_allclose(upper, margin, rtol=1e-12)


def test_symmetric_xor_settings():
    problem = datasets.symmetric_xor()
    assert problem.d == 2
    assert problem.loss == losses.Logistic()
    assert problem.reduction == "mean"
    kept, rest = divmod(problem.n, 16)
    assert rest == 0
    # 16 draws, each kept with probability 1 - e^-2
    assert 8 <= kept <= 16
    assert problem.known["delta"] < 0.01
    single = datasets.symmetric_xor(duplicates=False)
    assert 2 * single.n == problem.n
    assert sorted(2 * multiset(single.X, single.y)) == multiset(problem.X, problem.y)
    np.testing.assert_allclose(single.known["growth_rate"], problem.known["growth_rate"])
    # Lemma 5.2 with no smoothing
    assert problem.known["growth_rate"] >= (1 - 3 * problem.known["delta"]) / 8


def test_xor_kept_share():
    problem = datasets.symmetric_xor(draws=4000, rng=1)
    kept = problem.n // 16
    assert stats.binomtest(kept, 4000, 1 - math.exp(-2)).pvalue > 1e-3


def test_xor_orbit_values():
    problem = datasets.xor_orbit()
    assert (problem.n, problem.d) == (48, 3)
    assert np.linalg.norm(problem.X, axis=1).max() <= 1
    points = np.array([(0.88, 0.05, 0.06), (0.85, 0.08, -0.03), (0.9, 0.045, 0.1)])
    # half the +1 points have positive x^1; of the -1 class half have positive x^1 = off part
    by_hand = np.mean(points[:, 0] - points[:, 1]) / 8
    np.testing.assert_allclose(problem.known["growth_rate"], by_hand, rtol=1e-12)
    assert round(problem.known["growth_rate"], 7) == 0.1022917


def test_xor_orbit_of_other_points():
    plane = datasets.xor_orbit([[0.9, 0.1]])
    assert (plane.n, plane.d) == (8, 2)
    with pytest.raises(ReluflowError, match="at least 2 coordinates"):
        datasets.xor_orbit([[0.9]])


@pytest.mark.parametrize("alpha", [math.pi / 2, math.pi / 3])
def test_skewed_xor(alpha):
    problem = datasets.skewed_xor(alpha)
    X, y = problem.X, problem.y
    kept, rest = divmod(problem.n, 4)
    assert rest == 0
    assert 115 <= kept <= 128
    labelled = multiset(X[y > 0], y[y > 0])
    assert multiset(flip(X[y > 0], [0]), y[y > 0]) == labelled
    axes = {1.0: np.array([1.0, 0.0]), -1.0: np.array([math.cos(alpha), math.sin(alpha)])}
    for label, axis in axes.items():
        part = X[y == label]
        near = np.minimum(np.linalg.norm(part - axis, axis=1), np.linalg.norm(part + axis, axis=1))
        assert near.max() < 0.2
    known = problem.known
    angles = np.mod(np.degrees(known["positive_angles"]), 360)
    np.testing.assert_allclose(
        np.sort(angles), {90: [0, 180], 60: [150, 330]}[round(math.degrees(alpha))], atol=1e-9
    )
    # the sample's extrema are near the nominal ones, and its rate near that of points
    t = np.linspace(-math.pi, math.pi, 100_001)
    values = G(problem, np.column_stack([np.cos(t), np.sin(t)]))
    for best, nominal in ((t[values.argmax()], "positive"), (t[values.argmin()], "negative")):
        gap = np.angle(np.exp(1j * (best - known[nominal + "_angles"])))
        assert np.abs(gap).min() < 0.06
    assert abs(values.max() / known["point_growth_rate"] - 1) < 0.08
    np.testing.assert_allclose(known["point_growth_rate"], math.sin(alpha) / 8, rtol=1e-14)


def test_skewed_xor_point_rate_is_the_limit_of_narrow_clusters():
    problem = datasets.skewed_xor(math.pi / 3, std=1e-7, radius=1.0)
    angle = problem.known["positive_angles"][0]
    value = G(problem, [[math.cos(angle), math.sin(angle)]])[0]
    np.testing.assert_allclose(value, problem.known["point_growth_rate"], rtol=1e-6)


def test_xor_refusals():
    with pytest.raises(ReluflowError, match="none of 4 draws"):
        datasets.symmetric_xor(draws=4, std=1.0, radius=1e-9)
    with pytest.raises(ReluflowError, match="draws must be a whole number"):
        datasets.symmetric_xor(draws=0)
    with pytest.raises(ReluflowError, match="alpha must be a number in"):
        datasets.skewed_xor(4.0)


def test_remaining_fixture():
    problem = datasets.remaining_fixture()
    rates, signs, ends = (problem.known[k] for k in ("growth_rates", "signs", "directions"))
    assert np.all(np.diff(rates) < 0)
    np.testing.assert_allclose(signs * G(problem, ends), rates, rtol=1e-12)
    ratios = [1, 0.811, 0.760, 0.705, 0.679, 0.505, 0.407]
    np.testing.assert_allclose(rates / rates[0], ratios, atol=5e-4)
    # each end is a local maximum of sign * G on the sphere; the third only seen from the side
    # where sample 3, which it is orthogonal to, is active
    near = sphere(3, 4000, seed=1)
    for i, (sign, end, rate) in enumerate(zip(signs, ends, rates, strict=True)):
        V = end + 1e-3 * near
        V /= np.linalg.norm(V, axis=1)[:, None]
        values = sign * G(problem, V)
        seen = V @ problem.X[2] > 0 if i == 2 else np.ones(len(V), dtype=bool)
        assert values[seen].max() <= rate + 1e-15
        assert i != 2 or values[~seen].max() > rate
    assert abs(ends[2] @ problem.X[2]) < 1e-15
    # every growing neuron ends at one of them, and each is the end of some
    start = initialize(problem, 400, kind="sphere", rng=0)
    found = align(problem, start)
    growing = found.growth[found.growing]
    assert np.abs(growing[:, None] - rates).min(axis=1).max() < 1e-12
    assert np.abs(growing[:, None] - rates).min(axis=0).max() < 1e-12
    # and nothing on the sphere is above the first of either sign
    everywhere = G(problem, sphere(3, 400_000, seed=2))
    assert everywhere.max() <= rates[signs > 0].max()
    assert -everywhere.min() <= rates[signs < 0].max()


# ---- TLB26 ----------------------------------------------------------------------------------


def algorithm1(W, s, y, rate):
    """Jump times, neurons, sets and exponents of [TLB26]_ by the printed loop (X = I)."""
    M = (s[None, :] * y[:, None] > 0) & (W.T > 0)
    U, beta, dormant = set(range(len(y))), -np.ones(len(s)), set(range(len(s)))
    tau, out = 0.0, []
    while True:
        sets = {j: sorted(k for k in U if M[k, j]) for j in dormant}
        slope = {j: rate * np.linalg.norm(y[A]) for j, A in sets.items() if A}
        if not slope:
            return out
        first = min(slope, key=lambda j: -beta[j] / slope[j])
        step = -beta[first] / slope[first]
        tau += step
        for j, v in slope.items():
            beta[j] += step * v
        beta[first] = 0.0
        out.append((tau, first, tuple(sets[first]), beta.copy()))
        U -= set(sets[first])
        dormant.remove(first)


@pytest.mark.parametrize("loss", ["half_square", "square"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_golden_is_what_the_algorithm_gives(loss, reduction):
    problem = datasets.golden(loss=loss, reduction=reduction)
    known = problem.known
    c = {"half_square": 1, "square": 2}[loss] * {"mean": 1, "sum": 4}[reduction]
    jumps = algorithm1(known["W0"], known["signs"], problem.y, c / 4)
    np.testing.assert_allclose(known["jump_times"], [j[0] for j in jumps], rtol=1e-13)
    assert known["order"] == tuple(j[1] for j in jumps)
    assert known["sets"] == tuple(j[2] for j in jumps)
    np.testing.assert_allclose(known["exponents"], [j[3] for j in jumps], atol=1e-14)
    norm2 = sum(2 * np.linalg.norm(problem.y[list(A)]) for A in known["sets"])
    np.testing.assert_allclose(known["norm2"], norm2, rtol=1e-15)
    np.testing.assert_allclose(known["min_norm2"], 2 * math.sqrt(30), rtol=1e-15)
    assert known["first_jump_at_least"] <= known["jump_times"][0]
    assert known["last_jump_at_most"] >= known["jump_times"][-1]


def test_golden_digits():
    known = datasets.golden().known
    np.testing.assert_allclose(known["jump_times"], [0.8, 1.3577795, 2.3216923], atol=5e-8)
    np.testing.assert_allclose(known["exponents"][0], [0, -0.2788897, -0.5527864], atol=5e-8)
    assert known["norm2"] == 16
    np.testing.assert_allclose(np.linalg.norm(known["W0"], axis=1), 1.0)


def test_golden_first_half_fit_against_the_flow_of_one_neuron():
    # neuron 1 alone: its two active components, balanced, from scale alpha
    problem, alpha = datasets.golden(), 1e-8
    v0 = np.array([0.5, 0.5, math.sqrt(0.5), 1.0]) * alpha  # active parts, frozen part, outer
    target = problem.y[:2]

    def velocity(t, z):
        r = (target - z[3] * z[:2]) / 4
        return np.concatenate([z[3] * r, [0.0], [r @ z[:2]]])

    from scipy.integrate import solve_ivp

    half = lambda t, z: z[3] * z[0] - target[0] / 2  # noqa: E731
    half.terminal = True
    run = solve_ivp(
        velocity, (0, 50), v0, events=half, rtol=1e-11, atol=1e-11 * alpha, method="DOP853"
    )
    L = -math.log(alpha)
    want = L * problem.known["jump_times"][0] + problem.known["first_half_fit_offset"]
    assert abs(run.t_events[0][0] - want) < 1e-6


def test_orthonormal_defaults():
    problem = datasets.orthonormal()
    assert (problem.n, problem.d, problem.leak) == (64, 64, 0.0)
    np.testing.assert_array_equal(problem.X, np.eye(64))
    assert np.all(problem.y > 0)
    assert problem.known["rate"] == 1 / 64
    np.testing.assert_allclose(problem.known["min_norm2"], 2 * np.linalg.norm(problem.y))
    np.testing.assert_allclose(problem.known["start_loss"], np.mean(problem.y**2) / 2)
    sample = datasets.orthonormal(2000, rng=1, d=2000).y
    assert stats.kstest(sample, stats.halfnorm.cdf).pvalue > 1e-3


@pytest.mark.parametrize("rotate", [False, True])
def test_orthonormal_rows(rotate):
    problem = datasets.orthonormal(5, law="normal", d=9, rotate=rotate, rng=2)
    np.testing.assert_allclose(problem.X @ problem.X.T, np.eye(5), atol=1e-14)
    y = problem.y
    want = 2 * (np.linalg.norm(y[y > 0]) + np.linalg.norm(y[y < 0]))
    np.testing.assert_allclose(problem.known["min_norm2"], want, rtol=1e-14)


def test_orthonormal_minimal_norm_by_optimisation():
    # the best balanced pair of neurons per sign, over all splits of the points, is one per sign
    problem = datasets.orthonormal(y=[3.0, -1.0, 4.0, -2.0])
    y = problem.y
    plus, minus = np.where(y > 0, y, 0), np.where(y < 0, -y, 0)
    net = Network(
        [plus / np.linalg.norm(plus) ** 0.5, minus / np.linalg.norm(minus) ** 0.5],
        [np.linalg.norm(plus) ** 0.5, -(np.linalg.norm(minus) ** 0.5)],
    )
    np.testing.assert_allclose(problem.outputs(net), y, rtol=1e-14)
    norm2 = np.sum(net.W**2) + np.sum(net.a**2)
    np.testing.assert_allclose(problem.known["min_norm2"], norm2, rtol=1e-14)
    # dual certificate: with p_k = y_k / |y_sign|, every unit w has |sum p_k (w_k)_+| <= 1
    p = y / np.where(y > 0, np.linalg.norm(plus), np.linalg.norm(minus))
    assert np.abs(np.maximum(sphere(4, 100_000), 0) @ p).max() <= 1 + 1e-12
    np.testing.assert_allclose(2 * p @ y, norm2, rtol=1e-14)


def test_orthonormal_jump_bounds_hold_for_random_starts():
    rng = np.random.default_rng(0)
    for _ in range(20):
        problem = datasets.orthonormal(8, law="normal", rng=rng)
        s = rng.choice([-1.0, 1.0], 12)
        jumps = algorithm1(rng.standard_normal((12, 8)), s, problem.y, problem.known["rate"])
        assert jumps[0][0] >= problem.known["first_jump_at_least"] * (1 - 1e-12)
        assert jumps[-1][0] <= problem.known["last_jump_at_most"] * (1 + 1e-12)


def test_orthonormal_laws_and_refusals():
    np.testing.assert_array_equal(datasets.orthonormal(3, law="ones").y, np.ones(3))
    signs = datasets.orthonormal(8, law="signs", loss="logistic", rng=0)
    assert set(signs.y) == {-1.0, 1.0}
    assert "last_jump_at_most" not in signs.known
    for options, message in (
        ({"law": "cauchy"}, "unknown law of labels 'cauchy'"),
        ({"n": 3, "y": [1.0]}, "n is 3 but y has 1 labels"),
        ({"n": 3, "d": 2}, "d must be a whole number of at least 3, got 2"),
        ({"n": 0}, "n must be a whole number of at least 1, got 0"),
        ({"y": []}, "the number of labels must be a whole number of at least 1, got 0"),
    ):
        with pytest.raises(ReluflowError, match=message):
            datasets.orthonormal(**options)


# ---- MMV24 ----------------------------------------------------------------------------------


def correlation(problem: Problem) -> float:
    Z = problem.y[:, None] * problem.X
    return min(float(u @ v / np.linalg.norm(u) / np.linalg.norm(v)) for u in Z for v in Z)


def test_toy6():
    problem = datasets.toy6()
    known = problem.known
    assert problem.loss == losses.Exponential()
    np.testing.assert_allclose(known["correlation"], correlation(problem), rtol=1e-14)
    assert round(known["correlation"], 3) == 0.439
    np.testing.assert_allclose(known["x_plus"], [3.8, 2.9])
    np.testing.assert_allclose(known["x_minus"], [-1.0, -2.9])
    assert round(known["growth_rate_plus"], 2) == 0.80
    assert round(known["growth_rate_minus"], 2) == 0.51
    assert known["xi"] == known["correlation"] ** 2
    assert known["zeta_1"] >= known["xi"]
    # some directions leave every sample inactive
    assert (sphere(2, 1000) @ problem.X.T <= 0).all(axis=1).any()


@pytest.mark.parametrize("make", [datasets.toy6, datasets.separable])
def test_zeta_1_is_the_largest_cap(make):
    problem = make()
    known = problem.known
    rng = np.random.default_rng(0)
    signed = problem.y[:, None] * problem.X
    signed /= np.linalg.norm(signed, axis=1)[:, None]
    # the boundary of a cap of half-angle t stays on the right side of every sample up to zeta_1
    for center in (known["x_plus"], -known["x_minus"]):
        c = center / np.linalg.norm(center)
        V = rng.standard_normal((20_000, problem.d))
        V -= np.outer(V @ c, c)
        V = np.vstack([V, signed - np.outer(signed @ c, c), np.outer(signed @ c, c) - signed])
        V = V[np.linalg.norm(V, axis=1) > 1e-9]
        V /= np.linalg.norm(V, axis=1)[:, None]
        zeta = known["zeta_1"] * 0.999
        edge = math.sqrt(1 - zeta) * c + math.sqrt(zeta) * V
        assert (edge @ signed.T).min() > 0
    worst = min(
        float((signed @ c).min() / np.linalg.norm(c)) for c in (known["x_plus"], -known["x_minus"])
    )
    np.testing.assert_allclose(known["zeta_1"], worst**2, rtol=1e-12)


@pytest.mark.parametrize("leak", [0.0, 0.3])
def test_class_growth_rates_are_values_of_G(leak):
    problem = datasets.separable(leak=leak)
    for label, key in ((1.0, "growth_rate_plus"), (-1.0, "growth_rate_minus")):
        slopes = np.where(problem.y == label, 1.0, leak)
        D = (problem.pull * slopes) @ problem.X
        w = label * D / np.linalg.norm(D)  # where a neuron of this outer sign turns to
        np.testing.assert_array_equal(problem.X @ w > 0, problem.y == label)
        np.testing.assert_allclose(label * G(problem, [w])[0], problem.known[key], rtol=1e-12)


@pytest.mark.parametrize("angle", [0.1, 0.001])
def test_two_points(angle):
    problem = datasets.two_points(angle)
    np.testing.assert_allclose(problem.X, [[1, 0], [math.sin(angle), math.cos(angle)]])
    np.testing.assert_array_equal(problem.y, [1, 1])
    known = problem.known
    np.testing.assert_allclose(known["correlation"], math.sin(angle), rtol=1e-12)
    size = math.sqrt(2 + 2 * math.sin(angle))
    np.testing.assert_allclose(np.linalg.norm(known["x_plus"]), size, rtol=1e-14)
    np.testing.assert_allclose(known["growth_rate_plus"], size / 2, rtol=1e-14)
    assert known["growth_rate_minus"] == 0.0


def test_two_orthogonal_points():
    problem = datasets.two_points(0.0)
    np.testing.assert_array_equal(problem.X, np.eye(2))
    assert problem.known["correlation"] == 0.0
    assert "zeta_1" not in problem.known


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("seed", range(5))
def test_separable(rho, seed):
    problem = datasets.separable(rho, n=15, d=4, rng=seed)
    known = problem.known
    np.testing.assert_allclose(known["correlation"], correlation(problem), rtol=1e-12)
    np.testing.assert_allclose(known["correlation_at_least"], (1 - rho**2) / (1 + rho**2))
    assert known["correlation"] >= known["correlation_at_least"] - 1e-14
    assert (problem.y > 0).sum() == 8
    Z = problem.y[:, None] * problem.X
    assert np.all((Z[:, 0] >= 0.5) & (Z[:, 0] <= 2))
    np.testing.assert_allclose(np.linalg.norm(Z[:, 1:], axis=1), rho * Z[:, 0], atol=1e-14)
    assert (problem.loss, problem.reduction) == (losses.Exponential(), "sum")
    best = hard_margin(problem.X, problem.y)
    assert best.margin >= 0.5 / math.sqrt(1 + rho**2)


def test_separable_bound_is_reached_by_opposite_points():
    # in the plane g is one of two opposite vectors, and a pair of them attains the guarantee
    problem = datasets.separable(0.6, n=30, d=2)
    np.testing.assert_allclose(
        problem.known["correlation"], problem.known["correlation_at_least"], rtol=1e-12
    )


def test_mmv24_refusals():
    with pytest.raises(ReluflowError, match=r"rho must be a number in \[0, 1\), got 1.0"):
        datasets.separable(1.0)
    with pytest.raises(ReluflowError, match="d must be a whole number of at least 2, got 1"):
        datasets.separable(d=1)
    with pytest.raises(ReluflowError, match="angle must be a number in"):
        datasets.two_points(2.0)


# ---- LLWA21 ---------------------------------------------------------------------------------


def plane_directions(problem: Problem, count: int = 2000) -> np.ndarray:
    """A fine grid of the circle, with the directions of the samples and those orthogonal."""
    t = np.linspace(-math.pi, math.pi, count, endpoint=False)
    angles = np.arctan2(problem.X[:, 1], problem.X[:, 0])
    t = np.concatenate([t, angles, angles + math.pi / 2, angles - math.pi / 2])
    return np.column_stack([np.cos(t), np.sin(t)])


def margin_lp(problem: Problem, V: np.ndarray | None = None) -> float:
    """Largest normalised margin of networks with neurons along rows of V: a lower bound."""
    S = (plane_directions(problem) if V is None else V) @ problem.X.T
    F = (np.maximum(S, problem.leak * S) * problem.y).T  # (n, directions)
    k = F.shape[1]
    result = optimize.linprog(
        np.append(np.zeros(2 * k), -1.0),
        A_ub=np.vstack(
            [
                np.column_stack([-F, F, np.ones(problem.n)]),
                np.append(np.ones(2 * k), 0.0),
            ]
        ),
        b_ub=np.append(np.zeros(problem.n), 1.0),
        bounds=[(0, None)] * (2 * k) + [(None, None)],
    )
    return float(result.x[-1]) / 2


@pytest.mark.parametrize("leak", [0.0, 0.5])
def test_symmetric_separable(leak):
    problem = datasets.symmetric_separable(d=2, leak=leak, rng=1)
    assert multiset(-problem.X, -problem.y) == multiset(problem.X, problem.y)
    known = problem.known
    best = hard_margin(problem.X, problem.y)
    assert best.margin >= 0.3
    np.testing.assert_allclose(known["max_margin"], (1 + leak) / 4 * best.margin, rtol=1e-12)
    lp = margin_lp(problem)
    assert known["max_margin"] * (1 - 1e-4) <= lp <= known["max_margin"] * (1 + 1e-9)
    # on symmetric data G is linear
    V = sphere(2, 500)
    np.testing.assert_allclose(G(problem, V), V @ known["D"], atol=1e-14)
    mu = problem.y @ problem.X / problem.n
    np.testing.assert_allclose(known["D"], (1 + leak) / 4 * mu, rtol=1e-12)
    np.testing.assert_allclose(known["growth_rate"], np.linalg.norm(known["D"]))


def test_figure1_left_at_leak_zero_is_the_printed_example():
    problem = datasets.figure1_left(leak=0.0)
    known = problem.known
    np.testing.assert_allclose(problem.X[:3], [[1, 1], [1, 0], [1, -1]], atol=1e-14)
    np.testing.assert_allclose(known["kkt_a"], [2**-0.25, 2**-0.25, -1], rtol=1e-14)
    np.testing.assert_allclose(
        known["kkt_W"], [[2**-0.75, 2**-0.75], [2**-0.75, -(2**-0.75)], [-1, 0]], atol=1e-14
    )
    np.testing.assert_allclose(known["kkt_multipliers"], [2**-0.5, 0, 2**-0.5, 0, 1, 0], atol=1e-14)
    np.testing.assert_allclose(known["kkt_margin"], (math.sqrt(2) - 1) / 2, rtol=1e-12)


@pytest.mark.parametrize("leak", [0.0, 0.1, 0.5, 0.9])
def test_figure1_left_satisfies_kkt(leak):
    problem = datasets.figure1_left(leak=leak)
    known = problem.known
    W, a, lam = known["kkt_W"], known["kkt_a"], known["kkt_multipliers"]
    S = problem.X @ W.T
    q = problem.y * problem.outputs(Network(W, a))
    assert q.min() > 1 - 1e-12
    assert np.all(lam >= 0)
    np.testing.assert_allclose(lam * (q - 1), 0, atol=1e-12)
    slope = np.where(S > 1e-12, 1.0, leak)  # slope leak at kinks
    c = lam * problem.y
    np.testing.assert_allclose(W, a[:, None] * ((slope * c[:, None]).T @ problem.X), atol=1e-12)
    np.testing.assert_allclose(a, c @ np.where(S > 0, S, leak * S), atol=1e-12)
    norm2 = np.sum(W**2) + np.sum(a**2)
    np.testing.assert_allclose(known["kkt_margin"], q.min() / norm2, rtol=1e-12)
    assert known["kkt_margin"] < known["max_margin"]
    best = hard_margin(problem.X, problem.y)
    np.testing.assert_allclose(known["w_star"], best.w, atol=1e-12)
    np.testing.assert_allclose(known["gamma_star"], best.margin, rtol=1e-12)


def test_figure1_left_digits():
    known = datasets.figure1_left().known
    assert round(math.degrees(known["beta"]), 4) == 25.3015
    assert round(known["kkt_margin"], 6) == 0.356107
    assert round(datasets.figure1_left().X[0, 1], 6) == 2.115375


def one_neuron_separator(problem: Problem):
    scaled = problem.X * np.where(problem.y > 0, 1.0, problem.leak)[:, None]
    return hard_margin(scaled, problem.y)


def test_figure1_middle():
    problem = datasets.figure1_middle()
    assert (problem.n, problem.d, problem.leak) == (8, 3, 0.5)
    known = problem.known
    best = one_neuron_separator(problem)
    np.testing.assert_allclose(known["w_plus"], best.w, atol=1e-12)
    np.testing.assert_allclose(known["gamma_plus"], best.margin, rtol=1e-12)
    assert round(known["gamma_plus"], 4) == 0.1118
    assert np.linalg.norm(known["mu_plus"]) > np.linalg.norm(known["mu_minus"])
    # a network with more neurons does better than the one training ends in
    ratio = margin_lp(problem, sphere(3, 20_000)) / known["limit_margin"]
    assert 2.2 < ratio < 2.283 + 1e-3
    harder = datasets.figure1_middle(positive=(0.1, 10, 20), negative=(1, 5))
    np.testing.assert_allclose(harder.known["w_plus"], known["w_plus"])


def test_figure1_middle_refuses_other_supports():
    with pytest.raises(ReluflowError, match=r"must exceed e\^2 \+ c\^2"):
        datasets.figure1_middle(positive=(0.9, 6.0))
    with pytest.raises(ReluflowError, match="negative must hold positive numbers"):
        datasets.figure1_middle(negative=(-1.0,))


def test_figure1_right_is_the_hinted_default_base():
    problem = datasets.figure1_right()
    known = problem.known
    np.testing.assert_allclose(known["w_star"], [0.99388, 0.11043], atol=5e-6)
    assert round(known["gamma_star"], 5) == 0.45829
    assert round(known["H0"], 1) == 51.8
    assert round(known["H"], 1) == 54.4
    assert (known["eps"], known["K"], known["limit_margin"]) == (0.05, 0.5, 0.025)
    assert problem.n == 9
    ratio = margin_lp(problem) / known["limit_margin"]
    assert abs(ratio - 2.478) < 0.01


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("leak", [0.3, 0.5])
def test_hinted_around_any_data(seed, leak):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((8, 3))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    X[:, 0] += 0.5 * y
    problem = datasets.hinted(X, y, leak=leak)
    known = problem.known
    w, v = known["w_star"], known["perpendicular"]
    assert abs(np.linalg.norm(v) - 1) < 1e-14
    assert abs(v @ w) < 1e-14
    eps, K, H = known["eps"], known["K"], known["H"]
    np.testing.assert_allclose(problem.X[:3], [H * w, eps * w + K * v, eps * w - K * v], atol=1e-14)
    np.testing.assert_array_equal(problem.y[:3], 1.0)
    np.testing.assert_array_equal(problem.X[3:], X)
    # the one-neuron problem has the separator of the base data
    best = one_neuron_separator(problem)
    np.testing.assert_allclose(best.w, w, atol=1e-9)
    np.testing.assert_allclose(best.margin, eps, rtol=1e-9)
    # what H is for: A.3, and Assumption A.1 for w*
    assert np.linalg.norm(known["mu_plus"]) > np.linalg.norm(known["mu_minus"])
    along, across = problem.y * (problem.X @ w), problem.X - np.outer(problem.X @ w, w)
    size = np.linalg.norm(across, axis=1)
    assert size.max() * size.mean() / (leak * along.min()) < along.mean()
    # A.2: every weighting between leak and 1 of the samples separates them
    Z = problem.y[:, None] * problem.X
    weights = rng.uniform(leak, 1.0, (2000, problem.n))
    weights = np.vstack([weights, np.where(weights > (1 + leak) / 2, 1.0, leak)])
    assert (weights @ Z @ Z.T).min() > 0


def test_hints_are_suboptimal_exactly_above_the_threshold():
    low = datasets.hinted(eps=0.05, K=0.1)
    threshold = low.known["K_threshold"]
    np.testing.assert_allclose(threshold, 0.05 * math.sqrt(7), rtol=1e-14)
    assert not low.known["suboptimal"]
    assert margin_lp(low) <= low.known["limit_margin"] * (1 + 1e-6)
    high = datasets.hinted(eps=0.05, K=1.1 * threshold)
    assert high.known["suboptimal"]
    assert margin_lp(high) > high.known["limit_margin"] * 1.01


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eps": 1.0}, r"eps must be a number in \(0, 0.229\d*\), got 1.0: leak \* gamma\* is"),
        ({"eps": 0.05, "K": 0.5, "H": 10.0}, r"H must be a number in \(51.78\d*, inf\), got 10.0"),
        ({"K": -1.0}, "K must be a number in"),
        ({"leak": 0.0}, "leak must be a number in .* the hints need a leaky ReLU"),
        ({"perpendicular": [1.0, 0.0]}, "perpendicular must be a unit vector of 2 entries"),
        ({"X": [[1.0], [-1.0]], "y": [1.0, -1.0]}, "expected d >= 2, got d=1"),
        ({"X": [[1.0, 0.0], [1.0, 0.0]], "y": [1.0, -1.0]}, "not linearly separable"),
        ({"X": [[1.0, 0.0]], "y": [2.0]}, "needs labels -1 and"),
    ],
)
def test_hinted_refusals(options, message):
    with pytest.raises(ReluflowError, match=message):
        datasets.hinted(**options)


def test_gaussian_teacher():
    problem = datasets.gaussian_teacher(n=60)
    assert (problem.n, problem.d, problem.bias) == (60, 51, 0.1)
    np.testing.assert_array_equal(problem.X[:, -1], 0.1)
    signed = problem.y * (problem.X @ problem.known["teacher"])
    assert signed.min() >= 0.4
    assert problem.known["gamma_star"] >= 0.4
    margins = problem.y * (problem.X @ problem.known["w_star"])
    np.testing.assert_allclose(margins.min(), problem.known["gamma_star"], rtol=1e-12)


def test_gaussian_teacher_test_set():
    problem = datasets.gaussian_teacher(n=20)
    test = datasets.gaussian_teacher_test(problem)
    assert (test.n, test.d, test.bias, test.leak) == (10_000, 51, 0.1, 0.5)
    signed = test.y * (test.X @ test.known["teacher"])
    assert signed.min() >= 0.4
    assert stats.kstest(signed - 0.4, stats.halfnorm.cdf).pvalue > 1e-3
    assert stats.kstest(test.X[:, 7], stats.norm.cdf).pvalue > 1e-3
    assert not np.array_equal(test.X[:20], problem.X)
    with pytest.raises(ReluflowError, match="'toy6' has no teacher"):
        datasets.gaussian_teacher_test(datasets.toy6())


def test_gaussian_teacher_linear_error_falls_with_n():
    errors = []
    for n in (10, 50, 100):
        wrong = 0.0
        for seed in range(5):
            problem = datasets.gaussian_teacher(n=n, rng=seed)
            test = datasets.gaussian_teacher_test(problem, 4000, rng=100 + seed)
            wrong += np.mean(test.y * (test.X @ problem.known["w_star"]) <= 0)
        errors.append(wrong / 5)
    assert errors[0] > 0.2 > errors[1] > errors[2]


def test_gaussian_teacher_symmetric():
    problem = datasets.gaussian_teacher(n=30, symmetric=True)
    assert (problem.n, problem.d, problem.bias) == (60, 50, None)
    assert multiset(-problem.X, -problem.y) == multiset(problem.X, problem.y)
    V = sphere(50, 50)
    np.testing.assert_allclose(G(problem, V), V @ problem.known["D"], atol=1e-13)
    np.testing.assert_allclose(
        problem.known["max_margin"], 1.5 / 4 * problem.known["gamma_star"], rtol=1e-14
    )
    assert datasets.gaussian_teacher_test(problem, 10).d == 50


def test_any_dataset_can_be_smoothed():
    plain, smooth = datasets.load("xor"), datasets.load("xor", smoothing=0.1)
    assert (plain.smoothing, smooth.smoothing) == (0.0, 0.1)
    assert np.array_equal(plain.X, smooth.X)
    assert not smooth.known, "what is known of the end is known of the plain activation"
    with pytest.raises(ReluflowError, match="smoothing must be a finite radius"):
        datasets.load("xor", smoothing=-1)
