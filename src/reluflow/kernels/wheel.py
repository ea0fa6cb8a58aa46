"""Timer wheels: which neurons of a cone must be looked at once its path length passes a mark.

A neuron with slack s is filed under a mark at most s/8 before its deadline: level = power of two
of s, 16 slots per level. Filing and emptying cost O(1), the due mark of a cone is one number to
compare per step. Slacks below the finest level are due at the next step, infinite ones never.
"""

import math

import numpy as np
from numba import njit

NONE = -1
FINEST, LEVELS, PER_LEVEL = -18, 28, 16
AT_ONCE = LEVELS * PER_LEVEL
NEVER = AT_ONCE + 1
SLOTS = NEVER + 1


@njit(cache=True)
def file_neuron(u, j, slack, path, head, mark, link, due):
    """File neuron j of cone u to be looked at before its path has grown by ``slack``."""
    now = path[u]
    if slack == np.inf:
        slot, when = NEVER, np.inf
    elif slack < math.ldexp(1.0, FINEST):
        slot, when = AT_ONCE, now
    else:
        power = min(math.frexp(slack)[1] - 1, FINEST + LEVELS - 1)
        step = math.ldexp(1.0, power - 3)
        deadline = now + min(slack, 15.0 * step) * (1.0 - 1e-9)
        place = math.floor(deadline / step)
        slot = (power - FINEST) * PER_LEVEL + np.int64(place) % PER_LEVEL
        when = place * step
    link[j] = head[u, slot]
    head[u, slot] = j
    mark[u, slot] = when
    due[u] = min(due[u], when)


@njit(cache=True)
def take_due(u, path, head, mark, link, due, out):
    """Unfile all neurons of cone u whose mark the path has passed; returns their number."""
    count = 0
    soonest = np.inf
    for slot in range(SLOTS):
        j = head[u, slot]
        if j == NONE:
            continue
        if mark[u, slot] < path[u]:
            head[u, slot] = NONE
            while j != NONE:
                out[count] = j
                count += 1
                j = link[j]
        else:
            soonest = min(soonest, mark[u, slot])
    due[u] = soonest
    return count


@njit(cache=True)
def take_all(u, head, link, due, out):
    """Unfile all neurons of cone u; returns their number."""
    count = 0
    for slot in range(SLOTS):
        j = head[u, slot]
        head[u, slot] = NONE
        while j != NONE:
            out[count] = j
            count += 1
            j = link[j]
    due[u] = np.inf
    return count
