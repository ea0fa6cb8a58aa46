"""[BF24]_ Assumption 2, Definition 1, Lemmas 2 and 12: gradients on the faces of the data."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from reluflow.claims.bf24_cones import faces_of
from reluflow.claims.verdict import Comparison, at_least, at_most, equals
from reluflow.landscape import D, constants, extremal_vectors, pattern
from reluflow.problem import Problem

Array = NDArray[np.float64]


def random_problems(seed: int, sets: int, n: int = 5, d: int = 3) -> list[Problem]:
    """Gaussian X and y, half-square loss."""
    rng = np.random.default_rng(seed)
    return [
        Problem(rng.standard_normal((n, d)), rng.standard_normal(n), name="gaussian")
        for _ in range(sets)
    ]


def least_independence(problem: Problem) -> float:
    """Least singular value of d unit vectors among c_k x_k / |c_k x_k|."""
    Z = problem.pull[:, None] * problem.X
    Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    return min(
        float(np.linalg.svd(Z[list(rows)], compute_uv=False)[-1])
        for rows in combinations(range(problem.n), problem.d)
    )


def on_the_border(problem: Problem) -> tuple[int, float]:
    """Faces whose D_u != 0 lies on the border of plus or minus their closed cone, and by how much
    the others miss it: the least |<D, x_k>|/(|D||x_k|) off the face."""
    faces, lines, sides = faces_of(problem)
    size = np.linalg.norm(problem.X, axis=1)
    bad, clear = 0, np.inf
    for u in faces[(faces != 0).any(axis=1)]:
        inside = lines[((sides == u) | (sides == 0)).all(axis=1)].sum(axis=0)
        grad = D(problem, inside)
        length = float(np.linalg.norm(grad))
        if length <= 1e-12:
            continue
        side = pattern(problem, grad)
        for s in (1, -1):
            if ((side == 0) | (side == s * u)).all():
                bad += bool((side != s * u).any())
                products = np.abs(problem.X @ grad) / size / length
                clear = min(clear, float(products[u != 0].min(initial=np.inf)))
    return bad, clear


def gradients_avoid_borders(seed: int, sets: int) -> list[Comparison]:
    """Lemma 2: no D_u on the border of its cone; any d of the c_k x_k are independent."""
    problems = random_problems(seed, sets)
    found = [on_the_border(p) for p in problems]
    return [
        equals(sum(bad for bad, _ in found), 0, tolerance=0, what="faces with D_u on a border"),
        at_least(min(c for _, c in found), 1e-8, what="least distance of D_u to a border"),
        at_least(min(map(least_independence, problems)), 1e-8, what="least singular value"),
    ]


def general_position(seed: int, sets: int) -> list[Comparison]:
    """Assumption 2 as it is used: Lemmas 2, 9, 10 and 11 hold with margin on random data."""
    made = gradients_avoid_borders(seed, sets)
    known = [constants(p) for p in random_problems(seed, sets)]
    for name in ("D_min", "alpha_min", "delta_0"):
        least = min(getattr(c, name) for c in known)
        made.append(at_least(least, 1e-8, what=f"least {name}"))
    return made


def extremal_by_definition(seed: int, sets: int) -> list[Comparison]:
    """Definition 1: D(w) = G(w) w at every listed vector, and A(D) = +-A(w)."""
    gap, wrong, count = 0.0, 0, 0
    for problem in random_problems(seed, sets):
        found = extremal_vectors(problem)
        moving = np.abs(found.values) > 0
        W, G = found.vectors[moving], found.values[moving]
        grad = D(problem, W)
        gap = max(gap, float(np.abs(grad - G[:, None] * W).max(initial=0.0)))
        side = np.sign(G)[:, None] * pattern(problem, W)
        wrong += int(np.count_nonzero((pattern(problem, grad) != side).any(axis=1)))
        count += len(G)
    return [
        at_least(count, sets, what="extremal vectors looked at"),
        at_most(gap, 1e-12, what="|D(w) - G(w) w|"),
        equals(wrong, 0, tolerance=0, what="vectors whose D has another pattern"),
    ]


def one_sign_around(seed: int, sets: int, tries: int) -> list[Comparison]:
    """Lemma 12: around a critical face e <v, D^theta> <= 0 with one sign e, + at maxima."""
    rng = np.random.default_rng(seed + 1)
    worst, faces = -np.inf, 0
    draws = random_problems(seed, 4 * sets, 4, 2) + random_problems(seed, 4 * sets, 4, 3)
    for problem in draws:
        found = extremal_vectors(problem)
        if any("saddle" in kind for kind in found.kinds):
            continue
        limit = constants(problem).delta_0
        norms = np.linalg.norm(problem.X, axis=1)
        for w, kind, face in zip(found.vectors, found.kinds, found.faces, strict=True):
            if not face or kind == "flat":
                continue
            faces += 1
            e = 1.0 if "max" in kind else -1.0
            for _ in range(tries):
                f = rng.standard_normal(problem.n)
                f *= 0.9 * min(limit / np.mean(np.abs(f) * norms), np.min(np.abs(problem.y / f)))
                v = rng.standard_normal(len(face)) @ problem.X[list(face)]
                v /= np.linalg.norm(v)
                push = D(problem, w + 1e-6 * v, problem.pull_at(f))
                worst = max(worst, e * float(v @ push))
    return [
        at_least(faces, 10, what="critical faces with a hyperplane"),
        at_most(worst, 1e-12, what="largest e <v, D>"),
    ]
