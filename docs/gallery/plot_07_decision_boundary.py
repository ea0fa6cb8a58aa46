"""
Decision boundary of XOR
========================

Four clusters, four directions, no hidden structure left over.
"""

import reluflow as rf

problem = rf.datasets.symmetric_xor(rng=0)
net = rf.initialize(problem, 60, scale=1e-4, rng=0)
run = rf.flow(problem, net, t_end=80.0)
rf.plot.boundary(run, problem)
