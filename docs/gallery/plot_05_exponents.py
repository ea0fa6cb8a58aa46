"""
Exponents of neurons
====================

log|w| over log(1/scale) rises in straight lines; who reaches 0 first, jumps first.
"""

import reluflow as rf

problem = rf.datasets.golden()
net = rf.initialize(problem, 6, scale=1e-30, kind="sphere", signs=1, rng=4)
run = rf.flow(problem, net, save=rf.every(2.0))
rf.plot.exponents(rf.limit(problem, net), run)
