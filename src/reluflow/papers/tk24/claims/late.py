"""[TK24]_ Sections 5.3 and 5.4: where four neurons, and wide networks, end on XOR data.

chi(theta^mm) has groups of neurons along +-e1 and +-e2. Moving norm from one neuron of a group to
another changes neither the network nor its norm, so nothing pulls the shares to those of chi.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from reluflow.arrays import Array, Indices
from reluflow.claims.claim import Found, experiment
from reluflow.claims.evidence import Evidence
from reluflow.claims.verdict import Comparison, Hypothesis, at_least, at_most, equals
from reluflow.gradientflow.flow import flow
from reluflow.gradientflow.stops import loss_below
from reluflow.network import Network, axis_start
from reluflow.optimum.kkt import kkt
from reluflow.optimum.max_margin import max_margin
from reluflow.papers.tk24.claims.course import Course, orbit_course, slope, tight_course
from reluflow.papers.tk24.claims.four_neurons import (
    narrow_spread,
    smoothed_orbit,
    spread,
    xor_setting,
    xor_symmetric,
)
from reluflow.papers.tk24.claims.sphere import Sphere
from reluflow.problem import Problem, datasets
from reluflow.trajectory.observables import OBSERVABLES

SMALL_LOSS = math.log(1e-13)
# uneven starts; from four equal norms there is nothing to even out
SPLIT_STARTS = ((1e-4, 1e-5, 1e-7, 1e-6), (0.3, 0.01, 1e-3, 0.1), (0.4, 4e-4, 4e-4, 0.02))
RTOL = 1e-10
EARLY, LATE = -30.0, -300.0  # log L at which shares are read
UNEVEN = 1.3  # size of the neurons of one group over those of the others
# one neuron of each orbit: direction and size
FIRST = (((0.8, 0.5, 0.3), 1.0), ((0.5, -0.3, 0.9), 0.7))


def margin_ratio(problem: Problem, net: Network) -> float:
    """gamma(theta) / gamma(theta^mm)."""
    gamma = OBSERVABLES["normalized_margin"](problem, net)
    return float(gamma) / float(problem.known["max_margin"])


def train_to_loss(problem: Problem, start: Network, log_loss: float) -> Network:
    """The flow from a start to a loss of exp(log_loss)."""
    return flow(problem, start, clock="loss", stop=loss_below(log=log_loss)).final


@dataclass(frozen=True)
class Ending:
    """How far a network with groups of neurons is from chi(theta^mm), its largest neuron at 1."""

    norms: float  # largest over least group norm U_k, less 1
    turn: float  # largest angle to the axis of the group
    shares: float  # largest error of |a_j|/U_k against the shares of chi
    margin: float  # gamma / gamma_mm


def ending(problem: Problem, net: Network, groups: list[Indices], sizes: Array, V: Array) -> Ending:
    """Distances of ``net`` from the embedded four-neuron net with shares by ``sizes``."""
    a = np.exp(net.log_outer - net.log_outer.max())
    U = np.array([np.sqrt(np.sum(a[g] ** 2)) for g in groups])
    wrong = [
        float(np.abs(a[g] / u - sizes[g] / np.sqrt(np.sum(sizes[g] ** 2))).max())
        for g, u in zip(groups, U, strict=True)
    ]
    heavy = a > 1e-3
    turn = float(np.linalg.norm(net.directions - V, axis=1)[heavy].max())
    return Ending(float(U.max() / U.min()) - 1, turn, max(wrong), margin_ratio(problem, net))


@cache
def wide_end(seed: int, m: int, sigma: float, log_loss: float) -> tuple[Network, Ending]:
    """A wide network on the orbit within 1/6 of the axes, trained from sigma to a small loss."""
    course = tight_course(seed, m)
    net = train_to_loss(course.problem, course.net.scaled(math.log(sigma)), log_loss)
    ends = (course.groups, course.sizes, course.alignment.direction)
    return net, ending(course.problem, net, *ends)


def theta_mm(problem: Problem) -> Network:
    """Four neurons of norm 1 along +-e1 (a > 0) and +-e2 (a < 0)."""
    return axis_start(problem, (1.0, 1.0, 1.0, 1.0))


@experiment(
    "TK24-A5.4",
    unchecked=("what is seen goes on for ever",),
    quick={"starts": 1, "log_loss": -300.0},
    full={"starts": 3, "log_loss": -3000.0},
)
def four_neurons_end_equal(seed: int, starts: int, log_loss: float) -> list[Comparison]:
    """Norms grow equal, angles vanish and the margin tends to that of theta^mm.

    Both fall like a power of log(1/L), by a third for each factor 10 or faster.
    """
    made = []
    least = 0.7 ** math.log10(log_loss / -30.0)
    quarters, ones = [np.array([k]) for k in range(4)], np.ones(4)
    narrow, wide = datasets.symmetric_xor(seed, duplicates=False), datasets.xor_orbit()
    for problem, margin in ((narrow, 0.999999), (wide, 0.9998)):  # delta 0.01 and 0.17
        V = problem.known["directions"]
        for scales in SPLIT_STARTS[:starts]:
            start = axis_start(problem, scales)
            ends = [
                ending(problem, train_to_loss(problem, start, until), quarters, ones, V)
                for until in (-30.0, log_loss)
            ]
            name = f"{problem.name}, from {scales[0]:g}, {scales[1]:g}, ..."
            made += [
                at_least(
                    ends[1].margin, margin, what=f"margin ratio at log L = {log_loss:g}, {name}"
                ),
                at_most(ends[1].norms, least * ends[0].norms, what=f"spread of norms, {name}"),
                at_most(ends[1].turn, least * ends[0].turn, what=f"largest angle, {name}"),
            ]
    return made


@experiment("TK24-L5.5", form="repaired", quick={"m": 24}, full={"m": 60})
def groups_converge(seed: int, m: int) -> Found:
    """Group norms and margin tend to those of theta^mm; shares match chi as sigma -> 0."""
    sigmas = [1e-1, 1e-2, 1e-3]
    ends = [wide_end(seed, m, sigma, SMALL_LOSS)[1] for sigma in sigmas]
    late = wide_end(seed, m, 1e-2, -300.0)[1]
    rate = slope(sigmas, [end.shares for end in ends])
    course = tight_course(seed, m)
    held = [
        xor_symmetric(Evidence.of(course.problem)),
        narrow_spread(spread(course.problem), 0.0),
        Hypothesis("all four extrema are captured", len(course.groups) == 4),
    ]
    made = [
        at_least(ends[1].margin, 0.999, what="margin ratio at loss 1e-13, sigma = 0.01"),
        at_least(ends[2].margin, 0.999, what="margin ratio at loss 1e-13, sigma = 0.001"),
        at_most(late.norms, 0.7 * ends[1].norms, what="spread of group norms, log L -30 to -300"),
        at_most(late.turn, 0.7 * ends[1].turn, what="angles, log L -30 to -300"),
        at_least(rate, 0.9, what="exponent of sigma in the error of shares"),
    ]
    return Found(made, held)


@experiment("TK24-L5.5", form="control")
def uncaptured_extremum(seed: int) -> Comparison:
    """With one extremum not captured a quarter of the samples stay at f = 0: loss ln 2 / 4."""
    problem = datasets.xor_orbit()
    start = axis_start(problem, (1e-2, 1e-2, 1e-2, 1e-2)).subset(np.arange(3))
    run = flow(problem, start, t_end=1e6)
    return equals(run.loss[-1], math.log(2) / 4, tolerance=1e-5, what="loss at t = 1e6")


@experiment("TK24-T5.6", quick={"m": 24, "draws": 2}, full={"m": 60, "draws": 10})
def stays_near(seed: int, m: int, draws: int) -> list[Comparison]:
    """chi(theta^mm) perturbed by 1e-2, of large norm: the run stays near, the margin returns."""
    course, rng = orbit_course(seed, m), np.random.default_rng(seed)
    target = unit_norm(course.embedded(theta_mm_of(course)))
    far = gap = 0.0
    closing = math.inf
    for _ in range(draws):
        start = np.column_stack([target.W, target.a])
        noise = rng.standard_normal(start.shape)
        start += 1e-2 * noise / np.linalg.norm(noise)
        net = Network(start[:, :-1], start[:, -1])
        size = math.sqrt(30 / float(np.min(course.problem.y * course.problem.outputs(net))))
        first = margin_ratio(course.problem, net)
        run = flow(
            course.problem,
            net.scaled(math.log(size)),
            clock="loss",
            stop=loss_below(log=-1000.0),
            save=np.linspace(0.0, 1.0, 20),
        )
        for state in [*(run.networks or ()), run.final]:
            far = max(far, distance(unit_norm(state), target))
        end = margin_ratio(course.problem, run.final)
        gap, closing = max(gap, 1 - end), min(closing, (1 - first) / (1 - end))
    return [
        at_most(far, 0.05, what="largest distance of the direction from chi(theta^mm)"),
        at_most(gap, 1e-4, what="1 - margin ratio at log L = -1000"),
        at_least(closing, 10.0, what="deficit of the margin at the start over that at the end"),
    ]


def theta_mm_of(course: Course) -> Network:
    """theta^mm with its neurons in the order of the groups of a course."""
    V = np.array([course.alignment.direction[g[0]] for g in course.groups])
    return Network(V, np.array([float(course.alignment.sign[g[0]]) for g in course.groups]))


def unit_norm(net: Network) -> Network:
    """The network divided by its Euclidean norm, as plain weights."""
    net = Network(*net.scaled(-float(net.log_outer.max())).weights())
    size = math.sqrt(float(np.sum(net.W**2) + np.sum(net.a**2)))
    return Network(net.W / size, net.a / size)


def distance(net: Network, other: Network) -> float:
    """Euclidean distance of two plain networks."""
    return math.sqrt(float(np.sum((net.W - other.W) ** 2) + np.sum((net.a - other.a) ** 2)))


def perturb(net: Network, rng: np.random.Generator, size: float) -> Network:
    """A unit network with a random change of the given size."""
    dW, da = rng.standard_normal(net.W.shape), rng.standard_normal(net.m)
    factor = size / math.sqrt(float(np.sum(dW**2) + np.sum(da**2)))
    return Network(net.W + factor * dW, net.a + factor * da)


@experiment("TK24-P5.8", form="repaired", quick={"draws": 300}, full={"draws": 20_000})
def largest_margin(seed: int, draws: int) -> Found:
    """Strict for four neurons; no network of any width has a larger margin."""
    rng = np.random.default_rng(seed)
    course = tight_course(seed, 24)
    problem = course.problem
    best = max_margin(problem)
    four = unit_norm(theta_mm(problem))
    wide = unit_norm(course.embedded(theta_mm_of(course)))
    strict, top = math.inf, -math.inf
    for _ in range(draws):
        size = 10 ** rng.uniform(-3, -1)
        strict = min(strict, (1 - margin_ratio(problem, perturb(four, rng, size))) / size**2)
        top = max(top, margin_ratio(problem, perturb(wide, rng, size)))
        m = int(rng.integers(1, 65))
        anything = Network(rng.standard_normal((m, 3)), rng.standard_normal(m))
        top = max(top, margin_ratio(problem, anything))
    known = float(problem.known["max_margin"])
    made = [
        equals(margin_ratio(problem, four), 1.0, tolerance=1e-14, what="margin of theta^mm"),
        at_least(strict, 1e-2, what="least loss of margin over distance^2, four neurons"),
        at_most(top, 1.0, error=1e-14, what="largest margin ratio of random networks"),
        at_most(best.upper_bound / known, 1 + 1e-9, what="certified bound on all networks, ratio"),
    ]
    four_extrema = Hypothesis("all four extrema are captured", len(course.groups) == 4)
    held = [narrow_spread(spread(problem), 0.0), xor_symmetric(Evidence.of(problem)), four_extrema]
    return Found(made, held, "The certificate covers all widths, without smoothing.")


@experiment("TK24-KKT", quick={"m": 24}, full={"m": 60})
def direction_tends_to_kkt(seed: int, m: int) -> list[Comparison]:
    """Residual of stationarity and complementarity fall as the loss does."""
    problem = tight_course(seed, m).problem
    found = [kkt(problem, wide_end(seed, m, 1e-2, log_loss)[0]) for log_loss in (-30.0, -300.0)]
    slack = [state.complementarity for state in found]
    return [
        at_most(found[1].residual, 0.7 * found[0].residual, what="residual, log L -30 to -300"),
        at_most(found[1].residual, 0.02, what="residual of stationarity at log L = -300"),
        at_most(slack[1], 0.3 * slack[0], what="complementarity, log L -30 to -300"),
        at_least(
            margin_ratio(problem, wide_end(seed, m, 1e-2, -300.0)[0]),
            0.999,
            what="margin over the largest possible",
        ),
    ]


@dataclass(frozen=True, eq=False)
class WideStart:
    """A balanced start with eight neurons for each extremum, and what phase 1 makes of it."""

    problem: Problem
    net: Network
    sizes: Array  # |u_j*|
    ends: Array  # v_j*, rows
    groups: list[Indices]

    @property
    def group_sizes(self) -> Array:
        """U_k = sqrt(sum over P_k of u_j*^2)."""
        return np.array([math.sqrt(np.sum(self.sizes[g] ** 2)) for g in self.groups])

    def embedded(self, shares: Array) -> Network:
        """Neurons along their extremum, equal group norms, shares inside a group as given."""
        a = np.zeros(self.net.m)
        for g in self.groups:
            a[g] = shares[g] / math.sqrt(np.sum(shares[g] ** 2))
        return unit_norm(Network(a[:, None] * self.ends, np.sign(self.net.a) * a))


@cache
def wide_start() -> WideStart:
    """Orbits of two neurons under the symmetries of the data, one group ``UNEVEN`` times as large.

    With all groups alike the pull on a group is along its axis for ever and the shares do tend to
    those of chi; for that, exactly equal groups are needed.
    """
    problem = smoothed_orbit()
    W, a = [], []
    for direction, size in FIRST:
        w = size * np.array(direction) / np.linalg.norm(direction)
        for flips in product((1.0, -1.0), repeat=3):
            image = w * np.array(flips)
            W += [image, image[[1, 0, 2]]]
            a += [size, -size]
    rows, outer = np.array(W), np.array(a)
    larger = np.where((outer < 0) & (rows[:, 1] > 0), UNEVEN, 1.0)
    net = Network(larger[:, None] * rows, larger * outer, smoothing=problem.smoothing)
    sphere, signs = Sphere(problem), np.sign(outer)
    end = np.array([0.0, 25.0 / sphere.lam])  # e^-25 of the turn is left
    course = sphere.turn(net.directions, signs, end)[-1]
    sizes = np.abs(net.a) * np.exp(course[:, -1] - sphere.lam * end[-1])
    axes = np.asarray(problem.known["directions"])
    home = np.argmax(course[:, :-1] @ axes.T, axis=1)
    groups = [np.flatnonzero(home == k) for k in range(4)]
    return WideStart(problem, net, sizes, axes[home], groups)


def states_at_losses(problem: Problem, net: Network) -> tuple[Network, Network]:
    """The flow from a start at log L = ``EARLY`` and ``LATE``."""
    states = []
    for log_loss in (EARLY, LATE):
        net = flow(problem, net, clock="loss", stop=loss_below(log=log_loss), rtol=RTOL).final
        states.append(net)
    return states[0], states[1]


@cache
def wide_ends(sigma: float) -> tuple[Ending, Ending]:
    """Distances of the wide network from chi(theta^mm), early and late."""
    wide = wide_start()
    states = states_at_losses(wide.problem, wide.net.scaled(math.log(sigma)))
    early, late = (ending(wide.problem, net, wide.groups, wide.sizes, wide.ends) for net in states)
    return early, late


def small_net_tends_to_theta_mm(problem: Problem, sizes: Array) -> Hypothesis:
    """Assumption 5.4 for these data and this start, as far as a run shows it."""
    states = states_at_losses(problem, axis_start(problem, tuple(1e-3 * sizes)))
    quarters, ones = [np.array([k]) for k in range(4)], np.ones(4)
    early, late = (
        ending(problem, net, quarters, ones, np.asarray(problem.known["directions"]))
        for net in states
    )
    falls = late.norms < 0.7 * early.norms and late.turn < 0.7 * early.turn
    return Hypothesis(
        "Assumption 5.4: the four-neuron net tends to theta^mm",
        bool(falls and late.margin > 0.9999),
        f"log L {EARLY:g} to {LATE:g}: spread of norms {early.norms:.1e} to {late.norms:.1e}, "
        f"angles {early.turn:.1e} to {late.turn:.1e}; margin {late.margin:.6f} of theta^mm's",
    )


@experiment(
    "TK24-L5.5",
    form="printed",
    quick={"sigmas": (1e-2, 1e-3)},
    full={"sigmas": (1e-1, 1e-2, 1e-3, 1e-4)},
)
def limit_is_chi(seed: int, sigmas: tuple[float, ...]) -> Found:
    """Convergence to chi(theta^mm) itself, below some sigma*: shares inside a group stay off it."""
    wide = wide_start()
    found = []
    for sigma in sigmas:
        early, late = wide_ends(sigma)
        what = f"error of the shares, log L {EARLY:g} to {LATE:g}, sigma = {sigma:g}"
        found.append(at_most(late.shares, 0.5 * early.shares, error=1e-8, what=what))
    captured = Hypothesis(
        "all four extrema are captured",
        all(len(g) for g in wide.groups),
        ", ".join(f"{len(g)} neurons" for g in wide.groups),
    )
    balanced = Hypothesis("|u_j^0| = |v_j^0|", True, f"{wide.net.m} neurons")
    small = small_net_tends_to_theta_mm(wide.problem, wide.group_sizes)
    return Found(found, [*xor_setting(wide.problem), balanced, captured, small])


@experiment("TK24-P5.8", form="printed")
def strict_when_wide(seed: int) -> Found:
    """chi(theta^mm) is strict in the wide weight space: not where a group has two neurons."""
    wide = wide_start()
    centre, group = wide.embedded(wide.sizes), wide.groups[0]
    found: list[Comparison] = []
    for change in (1e-1, 1e-2, 1e-3):
        shares = wide.sizes.copy()
        shares[group[0]] *= 1 + change  # another distribution, at the same group norm
        other = wide.embedded(shares)
        lost = margin_ratio(wide.problem, centre) - margin_ratio(wide.problem, other)
        apart = distance(centre, other)
        found.append(
            at_least(
                lost, 1e-6 * apart**2, error=1e-14, what=f"loss of margin at distance {apart:.1e}"
            )
        )
    several = Hypothesis("a group of two neurons or more", len(group) > 1, f"{len(group)} of them")
    top = margin_ratio(wide.problem, centre)
    mm = Hypothesis("theta is chi(theta^mm)", abs(top - 1) < 1e-12, f"margin {top:.12f}")
    return Found(found, [*xor_setting(wide.problem), several, mm])
