r"""A list of signs that bounds G_c over the whole sphere.

With h in [leak, 1] at the kinks that are concave in :math:`\sigma G` and signs decided for some of
the convex ones,

.. math:: \sigma G_c(w) \le \|w\| \Big( \Big\| \sum_k h_k \sigma c_k x_k \Big\| + \sum_{k\
          \text{undecided}} \tfrac{1 - \mathrm{leak}}2 |c_k| \|x_k\| \Big),

an undecided kink having the slope (1 + leak)/2. Signs are decided until the right side is at most
the bound; with all of them decided and the best h this is the maximum itself.
"""

from __future__ import annotations

import numpy as np

from reluflow.arrays import Array
from reluflow.problem import Problem

MOST_NODES = 20_000
ALLOWANCE = 1e-14  # relative, for the rounding of the norms computed here


def sign_tree(problem: Problem, c: Array, bound: float) -> tuple[Array, Array] | None:
    """Tokens and slopes that show |G_c(w)| <= bound |w|; None when none are found.

    A token k >= 0 decides the sign of sample k, positive side first; -1 - i is a leaf whose concave
    kinks have the slopes of row i. In the plane the checker needs none.
    """
    if problem.d <= 2:
        return np.zeros(0), np.zeros((0, problem.n))
    builder = _Builder(problem, c, bound)
    for sign in (1.0, -1.0):
        if not builder.add(sign):
            return None
    rows = np.array(builder.rows).reshape(-1, problem.n)
    return np.array(builder.tokens, dtype=float), rows


class _Builder:
    """Tokens and rows of slopes found so far."""

    def __init__(self, problem: Problem, c: Array, bound: float) -> None:
        self.X, self.leak, self.c = problem.X, problem.leak, c
        self.bound = bound * (1.0 - ALLOWANCE)
        lengths = problem.norms
        self.reach = 0.5 * (1.0 - self.leak) * np.abs(c) * lengths * (1.0 + ALLOWANCE)
        self.tokens: list[int] = []
        self.rows: list[Array] = []

    def add(self, sign: float) -> bool:
        """The tree of sign * G, depth first."""
        from reluflow.kernels.boxls import box_least_norm

        X, leak, pull = self.X, self.leak, sign * self.c
        up, down = np.flatnonzero(pull > 0.0), np.flatnonzero(pull < 0.0)
        order = up[np.argsort(-self.reach[up], kind="stable")]
        rest = np.append(np.cumsum(self.reach[order][::-1])[::-1], 0.0)
        steps = 0.5 * (1.0 - leak) * pull[order, None] * X[order]
        Z = np.ascontiguousarray(pull[down, None] * X[down])
        known: list[tuple[int, Array]] = []  # rows of slopes and what they add
        stack = [(0.5 * (1.0 + leak) * pull[order] @ X[order], 0)]
        while stack:
            D, i = stack.pop()
            room = self.bound - rest[i]
            leaf = -1
            if room > 0.0:
                for row, extra in reversed(known[-8:]):
                    if np.linalg.norm(D + extra) <= room:
                        leaf = row
                        break
                else:
                    slopes, E = np.empty(len(down)), np.empty(len(D))
                    box_least_norm(D, Z, leak, slopes, E)
                    slopes = np.clip(slopes, leak, 1.0)
                    if np.linalg.norm(D + slopes @ Z) <= room:
                        leaf = len(self.rows)
                        full = np.ones(len(X))
                        full[down] = slopes
                        self.rows.append(full)
                        known.append((leaf, slopes @ Z))
            if leaf >= 0:
                self.tokens.append(-1 - leaf)
            elif i == len(order) or len(self.tokens) >= MOST_NODES:
                return False
            else:
                self.tokens.append(int(order[i]))
                stack += [(D - steps[i], i + 1), (D + steps[i], i + 1)]
        return True
