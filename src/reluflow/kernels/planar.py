r"""Outputs and velocities of many neurons on two features, without a table of products.

.. math:: f_k = \sum_j a_j \phi(\langle w_j, x_k \rangle), \qquad
          w_j' = a_j D_j, \quad a_j' = \langle w_j, D_j \rangle, \quad
          D_j = \sum_k \phi'_{jk} c_k x_k

A product <w_j, x_k> is two multiplications, less than it takes to store and read an entry of an
(n, m) table: it is computed for f and again for D. Wide d goes through kernels.blas instead.
"""

from reluflow._compiled import njit
from reluflow.kernels.dense import add_outputs_planar, add_up_planar


@njit(cache=True)
def planar_outputs(Z, outer, XT, leak, f):
    """f_k = sum_j outer_j phi(<w_j, x_k>) of neurons Z = (w, a) (m, 3), samples XT (2, n)."""
    for k in range(f.size):
        f[k] = 0.0
    for j in range(Z.shape[0]):
        add_outputs_planar(Z[j, 0], Z[j, 1], outer[j], XT[0], XT[1], leak, f)


@njit(cache=True)
def planar_velocity(Z, c, XT, leak, V):
    """V_j = (a_j D_j, <w_j, D_j>), D_j = sum_k phi'_jk c_k x_k."""
    for j in range(Z.shape[0]):
        first, second = add_up_planar(Z[j, 0], Z[j, 1], XT[0], XT[1], c, leak)
        V[j, 0], V[j, 1] = Z[j, 2] * first, Z[j, 2] * second
        V[j, 2] = Z[j, 0] * first + Z[j, 1] * second
