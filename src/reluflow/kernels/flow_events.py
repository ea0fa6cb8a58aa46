"""Lists of events: row 0 holds the count, the others sample, time and kind (neuron first)."""

import numpy as np
from numba import njit


@njit(cache=True)
def empty_log(n):
    """A log with room for the events of one neuron in one move."""
    return np.zeros((8 * n + 16, 3))


@njit(cache=True)
def note(log, k, when, kind):
    """Append an event to a neuron's log: row 0 holds the count."""
    count = int(log[0, 0])
    if count + 1 < log.shape[0]:
        log[count + 1, 0], log[count + 1, 1], log[count + 1, 2] = k, when, kind
        log[0, 0] = count + 1


@njit(cache=True)
def flush(log, j, events):
    """Append a neuron's log to the common list (row 0 holds the count; a full list drops)."""
    for i in range(int(log[0, 0])):
        count = int(events[0, 0]) + 1
        events[0, 0] = count
        if count < events.shape[0]:
            events[count, 0] = j
            for e in range(3):
                events[count, e + 1] = log[i + 1, e]
