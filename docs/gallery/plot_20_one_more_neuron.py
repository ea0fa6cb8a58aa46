"""
One more neuron would help
==========================

At the end of training on the three points no neuron moves, and yet G of the residuals is not 0:
a new neuron at one of its extrema would lower the loss. This is what proves that the end is not global.
"""

import reluflow as rf

problem = rf.datasets.three_points()
net = rf.initialize(problem, 200, scale=1e-6, rng=0)
run = rf.flow(problem, net, stop=rf.stationary(1e-9))
print(rf.stationarity(problem, run.final))
rf.plot.landscape(problem, pull=(problem.y - run.final(problem.X)) / problem.n)
