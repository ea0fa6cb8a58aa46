"""[MMV24]_ App. C.2: activation counts (k_+, k_-) of a neuron, and how long their paths take."""

from __future__ import annotations

import math
from functools import cache

from reluflow.claims.claim import experiment
from reluflow.claims.verdict import Comparison, at_least, at_most, equals
from reluflow.papers.mmv24.claims.walk import Walk, practical_run


@experiment("MMV24-PATH", quick={"most": 8}, full={"most": 8})
def longest_path(seed: int, most: int) -> list[Comparison]:
    """Longest monotone path of activation counts against its closed form and 4 log n."""
    gap, ratio = 0.0, 0.0
    for plus in range(1, most + 1):
        for minus in range(1, most + 1):
            best = _longest(plus, minus)
            harmonic = sum(1 / k for k in range(1, minus + 1)) + 0.5
            harmonic += sum(1 / k for k in range(1, plus))
            gap = max(gap, abs(best - harmonic))
            ratio = max(ratio, best / (4 * math.log(plus + minus)))
    return [
        at_most(gap, 1e-12, what="longest path less H_(n_-) + 1/2 + H_(n_+ - 1)"),
        at_most(ratio, 1.0, what="longest path over 4 log n"),
    ]


def _longest(plus: int, minus: int) -> float:
    """Largest sum of 1/(k_+ + k_-) over paths with k_+ rising and k_- falling, one at a time."""

    @cache
    def best(up: int, down: int) -> float:
        if (up, down) == (plus, 0) or up + down == 0:
            return 0.0
        ways = [best(up + 1, down)] if up < plus else []
        ways += [best(up, down - 1)] if down > 0 else []
        return 1 / (up + down) + max(ways)

    return max(best(up, down) for up in range(plus + 1) for down in range(minus + 1) if up + down)


@experiment(
    "MMV24-PATH",
    form="slip",
    part="condition 2",
    printed="for l_1 < l_2 either k_+(l_1) > k_+(l_2) or k_-(l_1) < k_-(l_2) (App. C.2, condition "
    "2 of a path)",
    meant="k_+(l_1) < k_+(l_2) or k_-(l_1) > k_-(l_2), the other one no worse, as the sentences "
    "around it and the maximal path say",
    quick={"m": 20},
    full={"m": 500},
)
def counts_by_both_rules(seed: int, m: int) -> list[Comparison]:
    """Steps of neurons on TOY6: all obey the meant rule, and none the printed one."""
    steps = pattern_steps(Walk(practical_run(seed, m)))
    meant = sum((own > 0 or other < 0) and own >= 0 >= other for own, other in steps)
    printed = sum(own < 0 or other > 0 for own, other in steps)
    return [
        at_least(len(steps), 10, what="steps between patterns"),
        equals(meant, len(steps), tolerance=0, what="steps that obey the rule as meant"),
        equals(printed, 0, tolerance=0, what="steps that obey the rule as printed"),
    ]


@experiment(
    "MMV24-PATH",
    form="slip",
    part="middle step",
    printed="H_(n_-) + 1/2 + H_(n_+ - 1) <= 2 H_n + 1/2 <= 4 log n (App. C.2, travel time of the "
    "maximal path)",
    meant="H_(n_-) + 1/2 + H_(n_+ - 1) <= 4 log n for n >= 2; the middle term is above it at n = 2 "
    "(3.5 against 2.77), below from n = 3 on",
)
def middle_step(seed: int) -> list[Comparison]:
    """The bound holds for n >= 2, its middle step for n >= 3."""
    pairs = [(plus, n - plus) for n in range(2, 50) for plus in range(1, n)]
    bound = max(
        (_harmonic(minus) + 0.5 + _harmonic(plus - 1)) / (4 * math.log(plus + minus))
        for plus, minus in pairs
    )
    middle = {n: (2 * _harmonic(n) + 0.5) / (4 * math.log(n)) for n in range(2, 50)}
    return [
        at_most(bound, 1.0, what="(H_(n_-) + 1/2 + H_(n_+ - 1)) / (4 log n), n >= 2"),
        at_least(middle.pop(2), 1.0, what="(2 H_n + 1/2) / (4 log n), n = 2"),
        at_most(max(middle.values()), 1.0, what="(2 H_n + 1/2) / (4 log n), n >= 3"),
    ]


@experiment("MMV24-PATH", part="runs", quick={"m": 20}, full={"m": 500})
def counts_rise(seed: int, m: int) -> list[Comparison]:
    """k_+ never falls and k_- never rises on the way of a positive neuron to (n_+, 0) or (0, 0)."""
    return monotone_paths(Walk(practical_run(seed, m)))


def monotone_paths(walk: Walk) -> list[Comparison]:
    """Steps against the rule, other ends, and records that show other patterns."""
    lost = sum(stay.open and not walk.trapped(stay) for stay in walk.stays())
    return [
        equals(wrong_way(walk), 0, tolerance=0, what="steps of a run against the rule"),
        equals(lost, 0, tolerance=0, what="paths that end elsewhere"),
        walk.agree(),
    ]


def _harmonic(n: int) -> float:
    return sum(1 / k for k in range(1, n + 1))


def pattern_steps(walk: Walk) -> list[tuple[int, int]]:
    """Changes of (k_own, k_other) from one pattern of a neuron to its next."""
    steps, last = [], (-1, 0, 0)
    for stay in walk.stays():
        wanted = walk.wanted[stay.neuron]
        own, other = int(stay.active[wanted].sum()), int(stay.active[~wanted].sum())
        if stay.neuron == last[0] and (own, other) != last[1:]:
            steps.append((own - last[1], other - last[2]))
        last = (stay.neuron, own, other)
    return steps


def wrong_way(walk: Walk) -> int:
    """Steps from one pattern to the next at which k_own falls or k_other rises."""
    return sum(own < 0 or other > 0 for own, other in pattern_steps(walk))
