r"""The limit process of small starts with several outputs: settle, grow, jump, repeat.

As for one output (`reluflow.prediction.staircase`): on a plateau a dormant neuron has
:math:`\log|z_j|(t) = A_j L + K_j + g_j t`, L = log(1/scale), with g the singular value it has
settled on; the first class to reach exponent 0 jumps, at :math:`\tau = -A/g`, and the fast phase
that follows is taken in real time: a step freezes the pull at its midpoint, every neuron moves
exactly under it with its kinks (`reluflow.landscape.multioutput.ride`), and step doubling controls
the error. A phase ends at a critical point, found by Newton's method on the face the neurons are
on, or, for losses without a minimum, far out, where what still pulls no longer changes.
"""
