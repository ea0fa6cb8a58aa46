"""
A loss with its predicted jumps
===============================

Dashed lines are computed before training: when each jump comes, and to which loss.
"""

import reluflow as rf

problem = rf.datasets.golden()
net = rf.initialize(problem, 6, scale=1e-12, kind="sphere", signs=1, rng=4)
run = rf.flow(problem, net, save=rf.every(0.1))
rf.plot.loss(run, rf.limit(problem, net))
