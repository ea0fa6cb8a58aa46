"""
Margins against the best
========================

The normalised margin of training approaches that of a KKT direction, here not the largest one.
"""

import reluflow as rf

problem = rf.datasets.figure1_middle()
net = rf.initialize(problem, 20, scale=1e-3, rng=0)
run = rf.flow(problem, net, clock="loss", stop=rf.loss_below(1e-60), save=rf.every(1.0))
rf.plot.margins(
    run,
    {
        "best network": rf.max_margin(problem),
        "best hyperplane": rf.max_margin(problem, "linear"),
    },
)
