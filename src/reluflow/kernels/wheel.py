"""Timer wheels: which neurons of a cone must be looked at once its path length passes a mark.

A neuron filed at path length p with slack s has its deadline at p + s. It goes under

    mark = step * floor((p + s) / step),   step = 2^(floor(log2 s) - 2),

at most a quarter of s before its deadline and never after it: level = power of two of s, 8 slots
per level (slot = count mod 8; s is below 8 steps, so marks that are in use at once do not share a
slot), a bit per level in use. Filing and emptying cost O(1), the due mark of a cone is one number
to compare per step. Slacks below the finest level are due at the next step, infinite ones never.

Example: p = 10, s = 3. step = 2^(1 - 2) = 1/2, deadline 13 less a rounding, count = 25: filed in
slot 1 of its level under the mark 12.5.
"""

import math

import numpy as np

from reluflow._compiled import njit

NONE = -1
FINEST, LEVELS, PER_LEVEL = -48, 58, 8
AT_ONCE, NEVER = LEVELS, LEVELS + 1  # two more levels, of which only the first slot is used
SLOTS = (LEVELS + 2) * PER_LEVEL


@njit(cache=True)
def file_neuron(u, j, slack, path, head, mark, used, link, due):
    """File neuron j of cone u to be looked at before its path has grown by ``slack``."""
    now = path[u]
    if slack == np.inf:
        level, place, when = NEVER, 0, np.inf
    elif slack < math.ldexp(1.0, FINEST):
        level, place, when = AT_ONCE, 0, now
    else:
        power = min(math.frexp(slack)[1] - 1, FINEST + LEVELS - 1)
        step = math.ldexp(1.0, power - 2)
        # at most 7 steps ahead, so that a slot is never entered a second time round the wheel
        deadline = now + min(slack, 7.0 * step) * (1.0 - 1e-9)
        count = math.floor(deadline / step)
        level, place, when = power - FINEST, np.int64(count) % PER_LEVEL, count * step
    slot = level * PER_LEVEL + place
    link[j] = head[u, slot]
    head[u, slot] = j
    mark[u, slot] = when
    used[u] |= 1 << level
    due[u] = min(due[u], when)


@njit(cache=True)
def take(u, reach, head, mark, used, link, due, out):
    """Unfile all neurons of cone u whose mark is below ``reach``; returns their number."""
    count = 0
    soonest = np.inf
    for level in range(LEVELS + 2):
        if used[u] >> level & 1 == 0:
            continue
        left = False
        for slot in range(level * PER_LEVEL, (level + 1) * PER_LEVEL):
            j = head[u, slot]
            if j == NONE:
                continue
            if mark[u, slot] < reach:
                head[u, slot] = NONE
                while j != NONE:
                    out[count] = j
                    count += 1
                    j = link[j]
            else:
                left = True
                soonest = min(soonest, mark[u, slot])
        if not left:
            used[u] &= ~(1 << level)
    due[u] = soonest
    return count


@njit(cache=True)
def take_all(u, head, mark, used, link, due, out):
    """Unfile all neurons of cone u; returns their number."""
    for level in range(LEVELS + 2):
        if used[u] >> level & 1:
            for slot in range(level * PER_LEVEL, (level + 1) * PER_LEVEL):
                mark[u, slot] = -np.inf
    return take(u, 0.0, head, mark, used, link, due, out)
