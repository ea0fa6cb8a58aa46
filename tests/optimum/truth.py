"""Whether the statement of a certificate is true, by exact arithmetic that is not the checker's.

For small problems in the plane, one neuron on one cone, one sample: answers in closed form or by
looking at every candidate, in `fractions`, with integer square roots where a root is needed. The
proof that a certificate carries plays no part.
"""

import math
from fractions import Fraction
from itertools import product


def rationals(document, name):
    """An array of a document as rational numbers, rows of them if it has two dimensions."""
    entry = document["arrays"][name]
    flat = [Fraction(v) for v in entry["data"]]
    if len(entry["shape"]) == 1:
        return flat
    rows, width = entry["shape"]
    return [flat[i * width : (i + 1) * width] for i in range(rows)]


class Data:
    """The numbers of a document that its statement is about."""

    def __init__(self, document):
        about, self.claim = document["problem"], {}
        for name, value in document["claim"].items():
            self.claim[name] = Fraction(value)
        self.X, self.y = rationals(document, "X"), rationals(document, "y")
        self.leak = Fraction(about["leak"])
        self.kappa = Fraction(about["factor"]) * (2 if about["loss"] == "square" else 1)
        if about["reduction"] == "mean":
            self.kappa /= len(self.y)
        for name in ("W", "a", "w", "vector", "order"):
            if name in document["arrays"]:
                setattr(self, name, rationals(document, name))

    def phi(self, z):
        return max(z, self.leak * z)

    def f(self, W=None, a=None):
        W, a = (self.W, self.a) if W is None else (W, a)
        return [sum(o * self.phi(dot(w, x)) for w, o in zip(W, a, strict=True)) for x in self.X]

    def loss(self, f):
        return self.kappa / 2 * sum((v - t) ** 2 for v, t in zip(f, self.y, strict=True))

    def norm2(self):
        return sum(dot(w, w) for w in self.W) + dot(self.a, self.a)

    def largest_G_squared(self, c):
        """max |G_c|^2 on the circle: at a kink, or where w is the gradient of its own cone."""
        rays = [(-x[1], x[0]) for x in self.X if any(x)]
        for slopes in product((self.leak, Fraction(1)), repeat=len(c)):
            pull = [s * v for s, v in zip(slopes, c, strict=True)]
            rays.append(tuple(dot(pull, side) for side in zip(*self.X, strict=True)))
        best = Fraction(0)
        for u in rays:
            for w in (u, [-v for v in u]) if any(u) else ():
                G = sum(v * self.phi(dot(w, x)) for v, x in zip(c, self.X, strict=True))
                best = max(best, G**2 / dot(w, w))
        return best


def dot(u, v):
    return sum(p * q for p, q in zip(u, v, strict=True))


def roots(x, bits=300):
    """Bounds of a square root."""
    low = math.isqrt((x.numerator * x.denominator) << (2 * bits))
    unit = x.denominator << bits
    return Fraction(low, unit), Fraction(low + 1, unit)


def is_true(document, dual):
    """Whether the statement holds; ``dual`` are multipliers of the test's own for its bounds."""
    data = Data(document)
    return _TRUTHS[document["kind"]](data, [Fraction(v) for v in dual])


def _margin(data, dual, low, high):
    q = min(t * v for t, v in zip(data.y, data.f(), strict=True))
    pull = [v * t for v, t in zip(dual, data.y, strict=True)]
    bound = data.largest_G_squared(pull)
    return q > 0 and low * data.norm2() <= q and bound <= (2 * high * sum(dual)) ** 2


def _linear(data, dual):
    q = min(t * dot(data.w, x) for t, x in zip(data.y, data.X, strict=True))
    pull = [v * t for v, t in zip(dual, data.y, strict=True)]
    D = [dot(pull, side) for side in zip(*data.X, strict=True)]
    low, high = data.claim["margin"], data.claim["upper_bound"]
    return q > 0 and q**2 >= low**2 * dot(data.w, data.w) and dot(D, D) <= (high * sum(dual)) ** 2


def _norm(data, dual):
    error, low = data.claim["error"], data.claim["lower_bound"]
    worst = max(abs(v - t) for v, t in zip(data.f(), data.y, strict=True))
    value = 2 * (dot(dual, data.y) - error * sum(map(abs, dual)))
    bound = data.largest_G_squared(dual)
    fits = worst <= error and data.norm2() <= data.claim["norm2"]
    return fits and (low <= 0 or (value > 0 and value**2 >= low**2 * bound))


def _penalised(data):
    """Whether the value claimed of the network is at least its own."""
    decay = data.claim["weight_decay"]
    return decay > 0 and data.loss(data.f()) + decay / 2 * data.norm2() <= data.claim["value"]


def _ridge(data, dual):
    """Square losses: inf_F L(F) + <c, F> = <c, y> - |c|^2 / (2 kappa) at F = y - c / kappa."""
    F = [t - v / data.kappa for t, v in zip(data.y, dual, strict=True)]
    low = data.claim["lower_bound"]
    bounded = data.largest_G_squared(dual) <= data.claim["weight_decay"] ** 2
    below = low <= 0 or (bounded and low <= data.loss(F) + dot(dual, F))
    return _penalised(data) and below


def _not_best(data, dual):
    """A neuron with |a| |w| = size |v| costs decay size |v| at least, where |w| = |a|."""
    claim, f = data.claim, data.f()
    g = [
        v + claim["sign"] * claim["size"] * data.phi(dot(data.vector, x))
        for v, x in zip(f, data.X, strict=True)
    ]
    rest = data.loss(f) - data.loss(g) - claim["gain"]
    cost2 = (claim["weight_decay"] * claim["size"]) ** 2 * dot(data.vector, data.vector)
    able = abs(claim["sign"]) == 1 and claim["gain"] > 0 and claim["size"] > 0
    return _penalised(data) and able and rest >= 0 and rest**2 >= cost2


def _line(data):
    """The exact stationary place of one neuron that is active on every sample."""
    (w,), (a,) = data.W, data.a
    columns = list(zip(*data.X, strict=True))
    (p, q), (r, s) = ([dot(u, v) for v in columns] for u in columns)
    right = [dot(column, data.y) for column in columns]
    det = p * s - q * r
    beta = [(right[0] * s - q * right[1]) / det, (p * right[1] - right[0] * r) / det]
    place = [v / a for v in beta]
    assert all(dot(place, x) > 0 < dot(w, x) for x in data.X)
    return place


def _stationary(data, dual):
    place, claim = _line(data), data.claim
    moved = [u - v for u, v in zip(place, data.W[0], strict=True)]
    losses = [data.loss(data.f()), data.loss(data.f([place], data.a))]
    near = claim["distance"] >= 0 and dot(moved, moved) <= claim["distance"] ** 2
    return near and all(claim["loss_lower"] <= v <= claim["loss_upper"] for v in losses)


def _gain(data, f):
    claim = data.claim
    outer = claim["sign"] * claim["size"]
    g = [v + outer * data.phi(dot(data.vector, x)) for v, x in zip(f, data.X, strict=True)]
    return abs(claim["sign"]) == 1 and 0 < claim["gain"] <= data.loss(f) - data.loss(g)


def _spurious(data, dual):
    return _stationary(data, dual) and _gain(data, data.f([_line(data)], data.a))


def _gradient(data, dual):
    f = data.f()
    pull = [data.kappa * (t - v) for v, t in zip(f, data.y, strict=True)]
    total = Fraction(0)
    for w, a in zip(data.W, data.a, strict=True):
        inner = [dot(w, x) for x in data.X]
        assert all(inner)
        slopes = [1 if p > 0 else data.leak for p in inner]
        total += dot(pull, map(data.phi, inner)) ** 2
        for side in zip(*data.X, strict=True):
            total += (a * sum(c * s * v for c, s, v in zip(pull, slopes, side, strict=True))) ** 2
    small = data.claim["norm"] >= 0 and total <= data.claim["norm"] ** 2
    return small and data.claim["loss_lower"] <= data.loss(f) <= data.claim["loss_upper"]


def _not_global(data, dual):
    loss = data.loss(data.f())
    within = data.claim["loss_lower"] <= loss <= data.claim["loss_upper"]
    return within and _gain(data, data.f())


def _global(data, dual):
    """No two samples on a line: the infimum is 0."""
    return data.claim["lower_bound"] <= 0 and data.loss(data.f()) <= data.claim["loss"]


def _kkt(data, dual):
    """One sample, one neuron: the KKT point is w = x / |x|^(3/2), a = y / |x|^(1/2)."""
    ((x,), (t,), (w,), (a,)) = data.X, data.y, data.W, data.a
    quarter = [roots(v)[0] for v in roots(dot(x, x))]  # of |x|, from below and above
    size = 1 / ((quarter[0] + quarter[1]) / 2)
    end = [size**3 * v for v in x] + [size * t]
    far = sum((u - v) ** 2 for u, v in zip([*w, a], end, strict=True))
    q = t * a * data.phi(dot(w, x))
    close = far <= data.claim["distance"] ** 2 * (1 + Fraction(1, 10**20))
    return q > 0 and data.claim["margin"] * data.norm2() <= q and close


def _optimum(data, dual):
    q = min(t * v for t, v in zip(data.y, data.f(), strict=True))
    margin = q / data.norm2()
    within = data.claim["margin_lower"] <= margin <= data.claim["margin_upper"]
    return within and _margin(data, dual, margin, margin)


_TRUTHS = {
    "max-margin-linear": _linear,
    "max-margin-network": lambda data, dual: _margin(
        data, dual, data.claim["margin"], data.claim["upper_bound"]
    ),
    "margin-optimum": _optimum,
    "min-norm": _norm,
    "ridge": _ridge,
    "ridge-not-best": _not_best,
    "kkt-margin": _kkt,
    "gradient": _gradient,
    "stationary": _stationary,
    "spurious-minimum": _spurious,
    "not-global": _not_global,
    "global-minimum": _global,
}
