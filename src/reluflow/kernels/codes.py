"""Every number that stands for a name, once: kernels write and read plain integers.

An enumeration names the codes wherever Python shows or compares them; the integers below it are the
same members for kernels, since Numba would compile another version of a kernel for an argument that
is a member of an enumeration.
"""

from enum import IntEnum


class EventKind(IntEnum):
    """What happens to a neuron on its path; files of runs hold these numbers, so they stay."""

    CROSS = 1  # <w, x_k> changes sign
    SLIDE = 2  # it reaches the hyperplane of x_k and stays, both sides push back
    EXIT = 3  # it leaves a hyperplane that it was on
    BRANCH = 4  # it is on a hyperplane that both sides push away from: solutions are not unique
    SIGN = 5  # its outer weight passes through zero (paths under a frozen pull)
    ORIGIN = 6  # its w passes through zero (paths under a frozen pull)


CROSS, SLIDE, EXIT, BRANCH, SIGN, ORIGIN = map(int, EventKind)
EVENT_NAMES = ("", *(kind.name.lower() for kind in EventKind))  # by code


class PathEnd(IntEnum):
    """How a path under a frozen pull ends."""

    GROWS = 0  # along an extremal vector, for ever
    STILL = 1  # no active sample is left and there is no leak: dead
    SHRINKS = 2  # towards w = 0, for ever
    RESTS = 3  # at another fixed point, or towards one
    UNRESOLVED = 4  # it could not be followed


GROWS, STILL, SHRINKS, RESTS, UNRESOLVED = map(int, PathEnd)


class Destination(IntEnum):
    """Where early alignment takes a neuron, unless that is a row of the extremal vectors."""

    DEAD = -1
    ANTI_ALIGNED = -2  # shrinks along a direction, for ever
    RESTING = -3
    UNLISTED = -4  # grows along a direction that is not in the list
    UNRESOLVED = -5


class OnBranch(IntEnum):
    """What a neuron does on a hyperplane that both sides push away from."""

    STAY = 0
    LEAVE = 1  # to the active side


STAY, LEAVE = map(int, OnBranch)


class LossKind(IntEnum):
    """Which loss a kernel computes."""

    SQUARE = 0
    LOGISTIC = 1
    EXPONENTIAL = 2


SQUARE, LOGISTIC, EXPONENTIAL = map(int, LossKind)


class Outcome(IntEnum):
    """How a call of a kernel that takes steps of gradient descent ended."""

    DONE = 0
    DIVERGED = 1
    GROW = 2  # arrays of cones are full: call again with larger ones
    UNPROFITABLE = 3  # the dense kernel would have been cheaper


DONE, DIVERGED, GROW, UNPROFITABLE = map(int, Outcome)
