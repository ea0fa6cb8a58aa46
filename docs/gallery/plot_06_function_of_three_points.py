"""
Three points that are never fitted
==================================

Training ends at the least-squares line although two neurons could fit the points.
"""

import reluflow as rf

problem = rf.datasets.three_points()
net = rf.initialize(problem, 200, scale=1e-6, rng=0)
run = rf.flow(problem, net, stop=rf.stationary(1e-9))
rf.plot.function(run, problem)
