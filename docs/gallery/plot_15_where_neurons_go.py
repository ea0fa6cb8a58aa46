"""
Where each neuron goes
======================

Early alignment in closed form: destinations of 2,000 neurons, without a step of training.
"""

import reluflow as rf

problem = rf.datasets.toy6()
net = rf.initialize(problem, 2000, rng=0)
rf.plot.alignment(rf.align(problem, net))
