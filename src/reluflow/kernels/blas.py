r"""Element-wise passes between the two matrix products of a wide-d gradient step.

With H = X W^T from the first product,

.. math:: f_k = \sum_j a_j \phi(H_{kj}), \qquad a_j' = \sum_k c_k \phi(H_{kj}), \qquad
          w_j' = a_j D_j, \quad D = B^T X, \quad B_{kj} = c_k \phi'(H_{kj})

and the second product is B^T X. Each pass goes through H once and `backward` leaves B in its place:
H is the largest array of the step, and memory, not arithmetic, is what these passes cost.
"""

from reluflow._compiled import njit


@njit(cache=True)
def forward(H, outer, leak, f):
    """f_k = sum_j outer_j phi(H_kj) for H = X W^T (n, m); outer_j is a_j times its unit squared."""
    n, m = H.shape
    for k in range(n):
        total = 0.0
        for j in range(m):
            h = H[k, j]
            total += outer[j] * (h if h > 0 else leak * h)
        f[k] = total


@njit(cache=True)
def backward(H, c, leak, inner):
    """inner_j = sum_k c_k phi(H_kj), then H_kj <- c_k phi'(H_kj)."""
    n, m = H.shape
    for j in range(m):
        inner[j] = 0
    for k in range(n):
        full, less = c[k], leak * c[k]
        for j in range(m):
            h = H[k, j]
            g = full if h > 0 else less
            inner[j] += g * h
            H[k, j] = g
