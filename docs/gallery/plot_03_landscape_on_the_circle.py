"""
The landscape of early training
===============================

Small neurons climb G (positive ones) or descend it (negative ones); its critical points are all listed.
"""

import reluflow as rf

problem = rf.datasets.toy6()
print(rf.extremal_vectors(problem))
rf.plot.landscape(problem)
