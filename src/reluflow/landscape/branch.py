"""All critical points for few samples in any dimension, by search over consistent patterns."""

from __future__ import annotations

import numpy as np

from reluflow.arrays import Array, Sides
from reluflow.landscape.arrangement import collect
from reluflow.landscape.canonical import ZERO_TOL, Canonical


def direction_inside(form: Canonical, v: Sides) -> Array:
    """A unit direction deep inside the open cone of pattern v, or zeros when it is empty."""
    from scipy.optimize import linprog

    H, r = form.N.shape
    fit = linprog(
        np.append(np.zeros(r), -1.0),
        A_ub=np.hstack([-form.N * v[:, None], np.ones((H, 1))]),
        b_ub=np.zeros(H),
        bounds=[(-1.0, 1.0)] * r + [(None, 1.0)],
    )
    if fit.status != 0 or fit.x[-1] <= form.tol:
        return np.zeros(r)
    return np.asarray(fit.x[:r] / np.linalg.norm(fit.x[:r]))


def consistent(form: Canonical, budget: int) -> tuple[Sides, bool, int]:
    """Patterns v = signs of N D_v (critical points of positive value), complete, nodes."""
    from reluflow.kernels.landscape_branch import consistent_patterns

    args = (form.N, form.m, form.kappa, 1e-9 * form.scale, ZERO_TOL * form.scale, form.tol, budget)
    found, nodes, complete = collect(lambda found: consistent_patterns(*args, found), form.H, 4096)
    return found, bool(complete), int(nodes)


def flat_cones(form: Canonical, budget: int) -> tuple[Sides, Array, bool]:
    """Open cones on which D = 0, a direction inside each, and whether these are all."""
    from reluflow.kernels.landscape_branch import vanishing_patterns

    order = np.argsort(-np.abs(form.kappa), kind="stable")
    args = (form.N[order], form.m, form.kappa[order], ZERO_TOL * form.scale, budget)
    found, complete = collect(lambda found: vanishing_patterns(*args, found), form.H, 256)
    v = np.empty_like(found)
    v[:, order] = found
    inside = np.array([direction_inside(form, u) for u in v]).reshape(len(v), form.r)
    real = inside.any(axis=1)
    return v[real], inside[real], bool(complete)


def candidates(form: Canonical, budget: int) -> tuple[Sides, Array, bool, bool]:
    """Patterns of critical points, a direction inside the flat ones, complete, flat ones complete.

    Negative values are the positive ones of -G. Of the critical sets with D = 0 only open cones are
    looked for.
    """
    if form.H == 0:
        return np.zeros((1, 0), dtype=np.int8), np.zeros((1, form.r)), True, True
    up, all_up, _ = consistent(form, budget)
    down, all_down, _ = consistent(form.negated(), budget)
    flat, inside, all_flat = flat_cones(form, budget)
    v = np.unique(np.concatenate([up, down]), axis=0)
    # both ways on the face of all hyperplanes come from one pattern
    inside = np.concatenate([np.zeros((len(v), form.r)), inside])
    return np.concatenate([v, flat]), inside, all_up and all_down, all_flat
