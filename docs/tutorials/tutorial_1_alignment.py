"""
Alignment: where neurons turn
=============================

Three points in the plane (one feature and a constant), and a network that starts small. Which way do
its neurons turn before anything else happens? The answer needs no training.
"""

import numpy as np

import reluflow as rf

problem = rf.datasets.three_points()
print(problem)  # n=3, d=2: the feature and the constant

# %%
# While the network is silent, every sample pulls with a constant strength, and a neuron turns uphill (or
# downhill, for a negative outer weight) on the alignment function G. Its critical points can be listed.

found = rf.extremal_vectors(problem)
print(found)  # one maximum, G = 0.714969
rf.plot.landscape(problem)

# %%
# One maximum: all growing neurons end there. Directions on the flat part see no sample at all; such neurons
# are dead for ever. Here is where each of 200,000 neurons goes, in closed form.

net = rf.initialize(problem, 200_000, scale=1e-3, rng=0)
where = rf.align(problem, net)
print(where)  # 62409 growing, 137591 dead

# %%
# A simulation from the same weights agrees: after a short time the growing neurons point at the maximum.

small = rf.initialize(problem, 50, scale=1e-6, rng=0)
run = rf.flow(problem, small, t_end=15.0, save=rf.every(0.1))
rf.plot.alignment(run, found.vectors[:1])

# %%
# **Try it.** Move a point, and the maximum moves with it.

moved = rf.Problem(problem.X * np.array([1.5, 1.0]), problem.y, loss="half_square")
print(rf.extremal_vectors(moved))  # G = 0.771104 now
