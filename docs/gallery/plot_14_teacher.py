"""
A teacher with eight neurons
============================

Training from small weights finds fewer directions than the teacher has.
"""

import reluflow as rf

problem = rf.datasets.stewart(rng=0)
net = rf.initialize(problem, 100, scale=1e-3, rng=0)
run = rf.flow(problem, net, t_end=20_000.0)
rf.plot.function(run, problem)
