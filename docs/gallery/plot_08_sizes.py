"""
Sizes of neurons
================

All neurons grow at the rate of their direction until the first group is large.
"""

import reluflow as rf

problem = rf.datasets.three_points()
net = rf.initialize(problem, 100, scale=1e-6, rng=0)
run = rf.flow(problem, net, t_end=60.0, save=rf.every(0.5))
rf.plot.sizes(run, rf.limit(problem, net))
