"""
Three points, and an end that is not optimal
============================================

Two neurons could fit three points. A wide network, started small, does not: it stops at the least-squares
line. reluflow proves that the end is a local minimum and not a global one.
"""

import tempfile
from pathlib import Path

import reluflow as rf

problem = rf.datasets.three_points()
net = rf.initialize(problem, 100, scale=1e-6, rng=0)
run = rf.flow(problem, net, stop=rf.stationary(1e-9), save=rf.every(0.5))
print(run.status)  # below 1e-09
rf.plot.function(run, problem)

# %%
# What kind of point is this? One more neuron would help, but nothing in the network can become it.

end = rf.stationarity(problem, run.final)
print(end)  # loss 0.0875214; one more neuron lowers it by 0.0280517

# %%
# The best network of any width, with a bound that meets it.

best = rf.min_norm(problem)
print(best)  # norm2 and lower_bound meet at 11.627553

# %%
# Certificates are files with the numbers that prove such statements; a separate program checks them.

folder = Path(tempfile.mkdtemp())
for certificate in rf.certificates(problem, run.final):
    path = folder / f"{certificate.kind}.json"
    rf.write_certificate(certificate, path)
    print(rf.check_certificate(path))  # PROVED, loss 0.08752136752
