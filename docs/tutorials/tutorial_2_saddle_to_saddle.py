"""
Saddle to saddle: features one after another
============================================

Four orthonormal points with labels 4, 3, 2, 1, and six neurons. The larger a label, the faster neurons
grow towards it, and the loss falls in steps.
"""

import reluflow as rf

problem = rf.datasets.golden()
net = rf.initialize(problem, 6, scale=1e-20, kind="sphere", signs=1, rng=4)

# %%
# The limit process predicts who jumps when, and to which loss.

process = rf.limit(problem, net)
print(process)  # jumps at 0.7844645 and 1.3168658, losses 3.75, 0.5, 0

# %%
# The real times follow from the scale: time over log(1/scale), plus a constant that is computed too.

run = rf.flow(problem, net, save=rf.every(0.1))
print(rf.phases(run))  # jumps at 37.4 and 62.2
rf.plot.loss(run, process)

# %%
# The scale may be one that no float can hold.

tiny = rf.initialize(problem, 6, log_scale=-1000.0, kind="sphere", signs=1, rng=4)
far = rf.flow(problem, tiny, save=rf.every(2.0))
print(far.status)  # as small as rtol 1e-08 can tell
rf.plot.jumps(process, far)
