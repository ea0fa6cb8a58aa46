"""
Alignment over time
===================

Cosines of every neuron with the extremal vector that it ends at.
"""

import reluflow as rf

problem = rf.datasets.three_points()
net = rf.initialize(problem, 60, scale=1e-6, rng=0)
found = rf.extremal_vectors(problem)
run = rf.flow(problem, net, t_end=12.0, save=rf.every(0.1))
rf.plot.alignment(run, found.vectors[:1])
