"""A neuron whose w has shrunk to zero while its outer weight has not: the side it comes out on.

Near w = 0 the outer weight a is as good as constant and w' = a D_u, so w climbs s G (s = sign a)
along straight lines, kink by kink:

    q + tau s D_u,   u the pattern of q,   until the next <q, x_k> = 0.

The path from a point just behind zero, in the direction e of its motion, is the same at every
distance from zero, so its last straight line gives direction and pattern with which w leaves zero.
Example: one sample x > 0 with c > 0 and s = 1 on the line, w coming from below with leak > 0:
behind zero the sample is active, D = c x pulls on, and w leaves with u = 1.
"""

import numpy as np

from reluflow.kernels.early_face import PARALLEL, products, settle
from reluflow.kernels.inner import inner
from reluflow.kernels.vectors import along

_ON = 1e-12  # |<q, x_k>| below this times |q||x_k|: the path has reached the hyperplane


@inner
def leave_zero(frozen, sa, hold, u, e, slope, branch, D):
    """Bring the pattern u from before w = 0, reached along e, to the pattern behind it.

    Samples on the face of the neuron stay on it until the pull takes it off; the others change
    sides. Returns False, with u as it was, where w is driven back into zero or no path is found;
    True also where nothing pulls behind zero, so that w stays there.
    """
    xn, total = frozen.xn, frozen.total
    n, d = frozen.X.shape
    q, way = np.empty(d), np.empty(d)
    s, speed = np.empty(n), np.empty(n)
    before, face = np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(d):
        q[i] = e[i]
    for k in range(n):
        before[k], branch[k] = u[k], False
        if xn[k] > 0.0:
            u[k] = -u[k]  # straight through zero every product changes its sign
    for _ in range(8 * n + 16):
        nf = np.int64(0)
        for k in range(n):
            if u[k] == 0:
                face[nf] = k
                nf += 1
        if not settle(frozen, sa, hold, u, face, nf, slope, branch, D):
            break
        r = np.sqrt(along(D, D))
        if r <= PARALLEL * total:  # nothing pulls here
            return True
        for i in range(d):
            way[i] = sa * D[i] / r
        p, aside = along(q, way), 0.0
        for i in range(d):
            aside += (q[i] - p * way[i]) ** 2
        if p < 0.0 and aside <= _ON * _ON:  # straight back into zero
            break
        products(frozen, q, s)
        products(frozen, way, speed)
        reach, who = np.inf, -1
        for k in range(n):
            if u[k] * speed[k] < -PARALLEL * total * xn[k] / r:
                x = max(0.0, u[k] * s[k]) / abs(speed[k])
                if x < reach:
                    reach, who = x, k
        if who < 0:  # no hyperplane ahead: this line leads away from zero for good
            return True
        for i in range(d):
            q[i] += reach * way[i]
        products(frozen, q, s)
        size = np.sqrt(along(q, q))
        for k in range(n):
            near = abs(s[k]) <= _ON * size * xn[k]
            if k == who or (near and u[k] * speed[k] < -PARALLEL * total * xn[k] / r):
                u[k] = 0
        if size == 0.0:
            break
        for i in range(d):
            q[i] /= size
    for k in range(n):
        u[k] = before[k]
    return False
