"""
The staircase in the limit of small weights
===========================================

Time over log(1/scale): the prediction needs no scale, and a run from 1e-30 lies on it.
"""

import reluflow as rf

problem = rf.datasets.golden()
net = rf.initialize(problem, 6, scale=1e-30, kind="sphere", signs=1, rng=4)
run = rf.flow(problem, net, save=rf.every(0.2))
rf.plot.jumps(rf.limit(problem, net), run)
