"""
Neurons in the plane
====================

Angle and size of every neuron at the end of training, with samples (+) and their kinks (dashed).
"""

import reluflow as rf

problem = rf.datasets.symmetric_xor(rng=0)
net = rf.initialize(problem, 60, scale=1e-4, rng=0)
run = rf.flow(problem, net, t_end=60.0, save=rf.every(1.0))
rf.plot.neurons(run, problem)
