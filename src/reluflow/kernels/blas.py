"""Element-wise passes between the two matrix products of a wide-d gradient step."""

from numba import njit


@njit(cache=True)
def forward(H, outer, leak, f):
    """f_k = sum_j outer_j phi(H_kj) for H = X W^T (n, m)."""
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
