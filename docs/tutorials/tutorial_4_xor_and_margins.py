"""
XOR and margins
===============

Four clusters that no line separates. Training with the logistic loss goes to infinity; what converges is
the direction. Is its margin the largest?
"""

import reluflow as rf

problem = rf.datasets.ideal_xor()
net = rf.initialize(problem, 40, scale=1e-4, rng=0)
run = rf.flow(problem, net, clock="loss", stop=rf.loss_below(1e-40), save=rf.every(1.0))
print(run.status)  # the target, 1e-40
rf.plot.neurons(run, problem)

# %%
# A limit direction meets the KKT conditions of the largest margin; the residual says how nearly.

print(rf.kkt(problem, run.final))  # margin 0.125

# %%
# The largest margin of any network, and a bound that proves it.

best = rf.max_margin(problem)
print(best)  # 0.125 from below and from above
rf.plot.margins(run, best)
