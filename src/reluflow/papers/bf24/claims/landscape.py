"""[BF24]_ Assumption 2, Definition 1, Lemmas 2, 3, 9 to 12, 14: gradients on faces of the data."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from reluflow.claims.claim import experiment, predicate
from reluflow.claims.evidence import Evidence
from reluflow.claims.run import as_found
from reluflow.claims.verdict import Comparison, at_least, at_most, equals
from reluflow.landscape import D, G, constants, extremal_vectors, pattern
from reluflow.landscape.extremal import ExtremalVectors
from reluflow.papers.bf24.data import MOST_CONES, faces_of, number_of_cones
from reluflow.papers.bf24.planar import (
    NONE,
    count_unmatched,
    extremal_by_patterns,
    planar_constants,
    planar_faces,
    planar_sets,
)
from reluflow.problem import Problem, datasets

GENERIC = 1e-8  # margins below count as degenerate data


def random_problems(
    seed: int, sets: int, n: int = 5, d: int = 3, leak: float = 0.0
) -> list[Problem]:
    """Gaussian X and y, half-square loss."""
    rng = np.random.default_rng(seed)
    return [
        Problem(rng.standard_normal((n, d)), rng.standard_normal(n), leak=leak, name="gaussian")
        for _ in range(sets)
    ]


def extremal_without_basins(problem: Problem) -> ExtremalVectors:
    """Extremal vectors without their basins."""
    return extremal_vectors(problem, basin_points=0)


def least_independence(problem: Problem) -> float:
    """Least singular value of d unit vectors among c_k x_k / |c_k x_k|; 0 if one of these is 0."""
    Z = problem.pull[:, None] * problem.X
    if not Z.any(axis=1).all():
        return 0.0
    Z = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    return min(
        float(np.linalg.svd(Z[list(rows)], compute_uv=False)[-1])
        for rows in combinations(range(problem.n), problem.d)
    )


def count_on_borders(problem: Problem) -> tuple[int, float]:
    """Faces whose D_u != 0 lies on the border of plus or minus their closed cone, and by how much
    the others miss it: the least |<D, x_k>|/(|D||x_k|) off the face."""
    faces, lines, sides = faces_of(problem)
    size = problem.norms
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


@predicate("general position: Lemmas 2, 9 and 10 with margin (Assumption 2)")
def generic_data(evidence: Evidence) -> tuple[bool | None, str]:
    """Assumption 2 as it is used; Lemma 11 follows from the margin delta_0 of Lemma 10."""
    p = evidence.problem
    if p.n < p.d or number_of_cones(p) > MOST_CONES:
        return None, f"n={p.n}, d={p.d}: fewer samples than features or too many cones to list"
    if np.any(p.pull == 0) or least_independence(p) <= GENERIC:
        return False, "samples without pull, or dependent ones"
    known = constants(p)
    bad, clear = count_on_borders(p)
    least = min(clear, known.D_min, known.alpha_min, known.delta_0)
    return bad == 0 and least > GENERIC, f"least margin {least:.3g}"


@experiment("BF24-L2", quick={"sets": 10}, full={"sets": 100})
def gradients_avoid_borders(seed: int, sets: int) -> list[Comparison]:
    """Lemma 2: no D_u on the border of its cone; any d of the c_k x_k are independent."""
    problems = random_problems(seed, sets)
    found = [count_on_borders(p) for p in problems]
    return [
        equals(sum(bad for bad, _ in found), 0, tolerance=0, what="faces with D_u on a border"),
        at_least(min(c for _, c in found), GENERIC, what="least distance of D_u to a border"),
        at_least(min(map(least_independence, problems)), GENERIC, what="least singular value"),
    ]


@experiment("BF24-A2", quick={"sets": 6, "tries": 100}, full={"sets": 30})
def general_position(seed: int, sets: int, tries: int) -> list[Comparison]:
    """Assumption 2 as it is used: Lemmas 2, 9, 10 and 11 hold with margin on random data."""
    made = list(as_found(gradients_avoid_borders(seed, sets)).comparisons)
    known = [constants(p) for p in random_problems(seed, sets)]
    for name in ("D_min", "alpha_min", "delta_0"):
        least = min(getattr(c, name) for c in known)
        made.append(at_least(least, GENERIC, what=f"least {name}"))
    return [*made, *as_found(faces_survive(seed, sets, tries)).comparisons]


@experiment("BF24-L11", quick={"sets": 10, "tries": 100}, full={"sets": 30, "tries": 2000})
def faces_survive(seed: int, sets: int, tries: int) -> list[Comparison]:
    """Lemma 11: outputs with mean |f x| = 0.9 delta_0 leave every extremal face extremal, and
    D_u = 0 on every face where it was."""
    rng = np.random.default_rng(seed + 1)
    lost, zeros, largest = 0, 0, 0.0
    for problem in random_problems(seed, sets):
        found = extremal_without_basins(problem)
        moving = np.abs(found.values) > 0
        known = constants(problem)
        norms = problem.norms
        faces, lines, sides = faces_of(problem)
        within = np.array(
            [
                lines[((sides == u) | (sides == 0)).all(axis=1)].sum(axis=0)
                for u in faces[(faces != 0).any(axis=1)]
            ]
        )
        still = within[np.linalg.norm(D(problem, within), axis=1) <= 1e-12 * known.D_max]
        zeros += len(still)
        for _ in range(tries):
            f = rng.standard_normal(problem.n)
            f *= 0.9 * known.delta_0 / np.mean(np.abs(f) * norms)
            pull = problem.pull_at(f)
            grads = D(problem, found.vectors[moving], pull)
            kept = pattern(problem, grads) == found.signs[moving, None] * found.patterns[moving]
            lost += int(np.count_nonzero(~kept.all(axis=1)))
            if len(still):
                largest = max(largest, float(np.abs(D(problem, still, pull)).max()) / known.D_max)
    return [
        equals(lost, 0, tolerance=0, what="extremal faces lost"),
        at_least(zeros, 1, what="faces with D_u = 0"),
        at_most(largest, 1e-12, what="largest |D| / D_max there with such outputs"),
    ]


def kinds_by_sampling(
    problem: Problem, found: ExtremalVectors, rng: np.random.Generator, draws: int = 400
) -> list[str]:
    """Kind of each listed vector by values of G around it alone: max, min, flat or saddle.

    Points are 1e-4 away, or half as far as the nearest hyperplane that does not hold the vector.
    """
    kinds, size = [], problem.norms
    for w, value, face in zip(found.vectors, found.values, found.faces, strict=True):
        steps = rng.standard_normal((draws, problem.d))
        if 0 < len(face) < problem.d - 1:  # half inside the face, where G curves only gently
            on = problem.X[list(face)]
            half = draws // 2
            steps[:half] -= steps[:half] @ np.linalg.pinv(on) @ on
        steps -= np.outer(steps @ w, w)
        clear = np.delete(np.abs(problem.X @ w) / size, face).min(initial=np.inf)
        length = min(1e-4, clear / 2)
        around = w + steps * (length / np.linalg.norm(steps, axis=1, keepdims=True))
        around /= np.linalg.norm(around, axis=1, keepdims=True)
        change = G(problem, around) - value
        up, down = (change > 1e-15).any(), (change < -1e-15).any()
        kinds.append("saddle" if up and down else "min" if up else "max" if down else "flat")
    return kinds


@experiment("BF24-Def1", quick={"sets": 20}, full={"sets": 200})
def extremal_by_definition(seed: int, sets: int) -> list[Comparison]:
    """Definition 1: D(w) = G(w) w at every listed vector, A(D) = +-A(w), and the listed kind is
    that of values of G around it (d = 2 and 3, leak 0 and 0.2). The list is that of a search
    through all patterns u in {-1, 0, 1}^n, both ways and with its values."""
    rng = np.random.default_rng(seed + 1)
    gap, wrong, count, mistaken, missing, excess, off = 0.0, 0, 0, 0, 0, 0, 0.0
    groups = [(leak, d) for leak in (0.0, 0.2) for d in (2, 3)]
    for leak, d in groups:
        for problem in random_problems(seed, sets, d=d, leak=leak):
            found = extremal_without_basins(problem)
            moving = np.abs(found.values) > 0
            W, values = found.vectors[moving], found.values[moving]
            grad = D(problem, W)
            gap = max(gap, float(np.abs(grad - values[:, None] * W).max(initial=0.0)))
            side = np.sign(values)[:, None] * pattern(problem, W)
            wrong += int(np.count_nonzero((pattern(problem, grad) != side).any(axis=1)))
            all_vectors, all_values = extremal_by_patterns(problem)
            missing += count_unmatched(all_vectors, W)
            excess += count_unmatched(W, all_vectors) + abs(len(W) - len(all_vectors))
            if len(values) == len(all_values):
                off = max(off, float(np.abs(np.sort(values) - np.sort(all_values)).max(initial=0)))
            seen = np.array(kinds_by_sampling(problem, found, rng))
            mistaken += int(np.count_nonzero((seen != np.array(found.kinds))[moving]))
            count += len(values)
    return [
        at_least(count, len(groups) * sets, what="extremal vectors looked at"),
        equals(missing, 0, tolerance=0, what="extremal vectors that are not listed"),
        equals(excess, 0, tolerance=0, what="listed vectors that no pattern gives"),
        at_most(off, 1e-12, what="difference of the values G"),
        at_most(gap, 1e-12, what="|D(w) - G(w) w|"),
        equals(wrong, 0, tolerance=0, what="vectors whose D has another pattern"),
        equals(mistaken, 0, tolerance=0, what="vectors of another kind than values of G show"),
    ]


@experiment("BF24-L14", quick={"sets": 30}, full={"sets": 200})
def kinds_of_extrema(seed: int, sets: int) -> list[Comparison]:
    """Lemma 14: at a local maximum D_u lies in its own face, or the face is the single ray -D_u;
    at a local minimum it lies in the negative face, or the face is the single ray D_u."""
    rng = np.random.default_rng(seed + 1)
    count, wrong = {"max": 0, "min": 0}, {"max": 0, "min": 0}
    for problem in random_problems(seed, sets):
        found = extremal_without_basins(problem)
        seen = kinds_by_sampling(problem, found, rng)
        for kind, value, face in zip(seen, found.values, found.faces, strict=True):
            if kind in count and value != 0:
                count[kind] += 1
                own = value > 0 if kind == "max" else value < 0
                wrong[kind] += not own and len(face) != problem.d - 1
    return [
        *(at_least(count[k], 1, what=f"local {k}ima found by sampling") for k in count),
        *(equals(wrong[k], 0, tolerance=0, what=f"{k}ima of neither kind") for k in count),
    ]


@experiment("BF24-L12", quick={"sets": 5, "tries": 20}, full={"sets": 25, "tries": 200})
def one_sign_around(seed: int, sets: int, tries: int) -> list[Comparison]:
    """Lemma 12: around a critical face e <v, D^theta> <= 0 with one sign e, + at maxima."""
    rng = np.random.default_rng(seed + 1)
    worst, faces = -np.inf, 0
    draws = random_problems(seed, 4 * sets, 4, 2) + random_problems(seed, 4 * sets, 4, 3)
    for problem in draws:
        found = extremal_without_basins(problem)
        if any("saddle" in kind for kind in found.kinds):
            continue
        limit = constants(problem).delta_0
        norms = problem.norms
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


@experiment("BF24-L3", quick={"sets": 20}, full={"sets": 100})
def some_extremal_vector(seed: int, sets: int) -> Comparison:
    """At least one extremal vector exists."""
    fewest = min(
        int(np.count_nonzero(np.abs(extremal_without_basins(p).values) > 0))
        for p in random_problems(seed, sets)
    )
    return at_least(fewest, 1, what="fewest extremal vectors of a set")


@experiment(
    "BF24-L9",
    form="slip",
    quick={"sets": 20},
    full={"sets": 200},
    printed="Eq. 25 (third display of Appendix D.1): alpha_min,- has the faces of Eq. 24, those "
    "with D_u not in A^-1(u)",
    meant="the mirrored set, D_u not in -A^-1(u), as the proof of Lemma 9 uses it; the sign may "
    "be lost in our text alone",
)
def faces_of_alpha_minus(seed: int, sets: int) -> list[Comparison]:
    """alpha_min,- in the plane, face by face, with either set; Lemma 9 asks for a positive one.

    Where some D_u points opposite to its own cone the cosine over the printed set is -1.
    """
    made = [planar_constants(p) for p in random_problems(seed, sets, d=2)]
    found = [constants(p).alpha_minus for p in random_problems(seed, sets, d=2)]
    gaps = [abs(f / c.alpha_minus - 1) for f, c in zip(found, made, strict=True)]
    return [
        at_least(min(c.alpha_minus for c in made), 1e-8, what="meant set: least alpha_min,-"),
        at_most(max(gaps), 1e-8, what="meant set: relative difference to the one in use"),
        at_most(min(c.alpha_minus_printed for c in made), 1e-7, what="printed set: alpha_min,-"),
    ]


@experiment("BF24-L9", quick={"sets": 10}, full={"sets": 30})
def alphas_are_positive(seed: int, sets: int) -> list[Comparison]:
    """Both constants are positive on random data; numbers of Figure 2, and the plane's by
    definition."""
    known = constants(datasets.three_points())
    drawn = [constants(p) for p in random_problems(seed, sets)]
    flat = random_problems(seed, sets, d=2)
    pairs = [(constants(p), planar_constants(p)) for p in flat]
    off = max(
        abs(getattr(found, name) / getattr(known, name) - 1)
        for found, known in pairs
        for name in ("D_min", "alpha_plus", "alpha_minus")
    )
    return [
        equals(known.D_min, 0.268742, tolerance=5e-7, what="D_min, Figure 2"),
        equals(known.alpha_min, 0.728690, tolerance=5e-7, what="alpha_min, Figure 2"),
        at_least(min(c.D_min for c in drawn), 1e-8, what="least D_min of random sets"),
        at_least(min(c.alpha_min for c in drawn), 1e-8, what="least alpha_min of random sets"),
        at_most(off, 1e-8, what="d = 2: relative difference to the definitions, face by face"),
    ]


@experiment("BF24-L10", quick={"sets": 10}, full={"sets": 30})
def delta_is_positive(seed: int, sets: int) -> list[Comparison]:
    """delta_0 > 0."""
    known = constants(datasets.three_points()).delta_0
    drawn = min(constants(p).delta_0 for p in random_problems(seed, sets))
    flat = random_problems(seed, sets, d=2)
    off = max(abs(constants(p).delta_0 / planar_constants(p).delta_0 - 1) for p in flat)
    return [
        equals(known, 0.629476, tolerance=5e-7, what="delta_0, Figure 2"),
        at_least(drawn, 1e-10, what="least delta_0 of random sets"),
        at_most(off, 1e-8, what="d = 2: relative difference to Eq. 21, face by face"),
    ]


@experiment("BF24-Def1", part="by-faces", quick={"sets": 20}, full={"sets": 200})
def listed_by_faces(seed: int, sets: int) -> list[Comparison]:
    """In the plane the list is that of the faces with D_u of pattern u or -u, none missing."""
    missing, strange, values = 0.0, 0.0, 0.0
    for problem in planar_sets(seed, sets) + planar_sets(seed + 1, sets, 0.2):
        by_faces = []
        for face in planar_faces(problem):
            s, size = face.sign_of_D(problem), float(np.linalg.norm(face.grad))
            if s:
                by_faces.append((s * face.grad / size, s * size))
        found = extremal_vectors(problem)
        moving = np.abs(found.values) > NONE
        V, G = found.vectors[moving], found.values[moving]
        U, H = np.array([v for v, _ in by_faces]), np.array([g for _, g in by_faces])
        gaps = np.linalg.norm(U[:, None] - V, axis=2) if len(V) else np.full((len(U), 1), 2.0)
        missing = max(missing, gaps.min(axis=1).max())
        strange = max(strange, gaps.min(axis=0).max())
        if len(V):
            values = max(values, np.abs(H - G[gaps.argmin(axis=1)]).max())
    return [
        at_most(missing, 1e-9, what="distance of a vector of the faces to the nearest listed one"),
        at_most(strange, 1e-9, what="distance of a listed vector to the nearest of the faces"),
        at_most(values, 1e-12, what="difference of G"),
    ]
