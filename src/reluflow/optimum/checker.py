r"""Proves or rejects a certificate: exact arithmetic, no tolerance, nothing but Python.

    python checker.py certificate.json

runs it by itself, with exact.py (rational numbers, enclosures) beside it. A float is the rational
number that it is; sums, products and comparisons are exact (python-flint does them where installed,
`fractions` otherwise: the verdict is the same). Roots, exponentials and logarithms are enclosed.
What is not shown is rejected; nothing raises. The docstring of each kind is what it states;
docs/certificates.md says why these steps show it.
"""

from __future__ import annotations

import functools
import importlib
import json
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import mul
from typing import Any

if not __package__:  # run by itself
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    sys.modules["reluflow.optimum.exact"] = importlib.import_module("exact")

from reluflow.optimum.exact import (
    HALF,
    ONE,
    ZERO,
    Ball,
    Q,
    Reject,
    entropy,
    exponential,
    fraction,
    log_one_plus,
    nearest,
    root,
)

FORMAT = "reluflow-certificate-2"
LARGEST = 2.0**300  # numbers above it, or below its inverse, are refused before any arithmetic
MOST_ENTRIES, MOST_PRODUCTS = 1_000_000, 5_000_000
SERIES = 200  # products that the exponentials and logarithms of one sample count as
_NET, _DUAL, _ROOT = "W:md a:m", "dual:n tree:t slopes:hn", "radius:v inverse:vv"
_POINT = (
    f"{_NET} place:md leader:m share:m free_neuron:f free_entry:f row_neuron:e row_index:e "
    f"kink_neuron:k kink_sample:k kink_tau:k tau:t {_ROOT}"
)
#: kind -> its arrays beside X (n, d) and y (n,), each with the letters of its shape
KINDS = {
    "max-margin-linear": "w:d dual:n",
    "max-margin-network": f"{_NET} {_DUAL}",
    "margin-optimum": f"{_NET} {_DUAL}",
    "kkt-margin": f"{_NET} group:m share:m sign:b active:k pattern:bk center:v {_ROOT}",
    "min-norm": f"{_NET} {_DUAL}",
    "ridge": f"{_NET} {_DUAL}",
    "ridge-not-best": f"{_NET} vector:d",
    "gradient": _NET,
    "stationary": _POINT,
    "spurious-minimum": f"{_POINT} vector:d",
    "not-global": f"{_NET} vector:d",
    "global-minimum": _NET,
    "algorithm1": f"{_NET} order:j fitted:jn time_lower:j time_upper:j loss_lower:p loss_upper:p",
}


@dataclass(frozen=True)
class Check:
    """One step; its numbers are rounded for display. status: passed, failed or unverified."""

    name: str
    measured: float
    bound: float
    status: str
    remark: str = ""


@dataclass
class Report:
    """What `check_certificate` found: `ok` only when every step went through.

    Attributes
    ----------
    kind : str
        Of the certificate.
    checks : list of Check
        Each step: what it measured, against what, and whether it went through.
    statement : str
        What is proved, in words.
    cost : int
        Products of rational numbers.
    """

    kind: str
    checks: list[Check] = field(default_factory=list)
    statement: str = ""
    cost: int = 0

    @property
    def status(self) -> str:
        """ "PROVED", "REJECTED", or "CHECKED" (numerical only, the file holds no proof)."""
        found = {check.status for check in self.checks}
        return "REJECTED" if "failed" in found else "PROVED" if found == {"passed"} else "CHECKED"

    ok = property(lambda self: self.status == "PROVED")
    failed = property(lambda self: [c.name for c in self.checks if c.status == "failed"])

    def __str__(self) -> str:
        lines = [f"{self.kind}: {self.status}", self.statement] if self.ok else []
        lines = lines or [f"{self.kind}: {self.status}"]
        for c in self.checks:
            numbers = "" if math.isnan(c.measured) else f": {c.measured:.9g} against {c.bound:.9g}"
            lines.append(f"  {c.status:<10} {c.name}{numbers}{', ' if c.remark else ''}{c.remark}")
        return "\n".join([*lines, f"  cost: {self.cost} products of rational numbers"])


def check_certificate(
    file: str | os.PathLike[str], X: Any = None, y: Any = None, max_bytes: int = 1 << 28
) -> Report:
    """Prove or reject a certificate file.

    Parameters
    ----------
    file : path
    X, y : array, optional
        Data that it must be about; without them, those in the file.
    max_bytes : int
        Larger files are rejected unread.

    Returns
    -------
    Report
    """
    try:
        if (size := os.stat(file).st_size) > max_bytes:
            raise Reject(f"{size} bytes are more than max_bytes={max_bytes}")
        with open(file, "rb") as stream:
            document = json.loads(stream.read().decode("utf-8"))
    except Exception as error:
        return Report("unreadable", [Check("format", math.nan, math.nan, "failed", str(error))])
    return check_document(document, X, y)


def check_document(document: Any, X: Any = None, y: Any = None) -> Report:
    """Prove or reject a certificate as read from its file."""
    case = Case()
    try:
        case.read(document)
        for name, given in (("X", X), ("y", y)):
            if given is not None:
                same = numbers(getattr(given, "tolist", lambda g=given: g)()) == case.array[name]
                case.need("data", same, f"{name} is that of the certificate")
        if document.get("grade") == "CHECKED":
            case.add("proof", "unverified", "numerical only: the file holds no proof")
        else:
            method = getattr(case, case.report.kind.replace("-", "_"))
            method(**case.claim)
            sentence = " ".join((method.__doc__ or "").split())
            case.report.statement = sentence.format(**document["claim"])
    except Reject as error:
        case.add(case.step, "failed", str(error))
    except Exception as error:  # whatever a stranger's file may hold
        case.add(case.step, "failed", f"malformed: {type(error).__name__} {error}")
    return case.report


def claims_of(kind: str) -> tuple[str, ...]:
    """Names of the numbers that a certificate claims."""
    code = getattr(Case, kind.replace("-", "_")).__code__
    return tuple(code.co_varnames[1 : code.co_argcount])


def numbers(entry: Any) -> Any:
    """Numbers of a JSON document, in lists or alone, as rational numbers."""
    if isinstance(entry, list):
        return [numbers(each) for each in entry]
    if type(entry) not in (int, float) or not (entry == 0 or 1 / LARGEST <= abs(entry) <= LARGEST):
        raise Reject(f"{entry!r:.40} is not a number of size 1e-90 to 1e90")
    return Q(*entry.as_integer_ratio())


class Case:
    """Data, loss, arrays and report of one certificate; a method for each kind."""

    def __init__(self) -> None:
        self.report, self.step = Report("unreadable"), "format"

    def add(self, name: str, status: str, remark: str, got: Any = None, bound: Any = None) -> None:
        shown = (math.nan, math.nan) if got is None else (nearest(got), nearest(bound))
        self.report.checks.append(Check(name, *shown, status, remark))

    def need(self, name: str, ok: Any, remark: str, got: Any = None, bound: Any = None) -> None:
        self.step = name
        if not ok:
            more = "" if got is None else f": {nearest(got):.17g} against {nearest(bound):.17g}"
            raise Reject(f"not shown that {remark}{more}")
        self.add(name, "passed", remark, got, bound)

    def spend(self, products: int) -> None:
        self.report.cost += products
        if self.report.cost > MOST_PRODUCTS:
            raise Reject(f"the proof needs more than {MOST_PRODUCTS} products")

    def dot(self, u: Sequence[Any], v: Sequence[Any]) -> Any:
        self.spend(len(u))
        return sum(map(mul, u, v), ZERO)

    def phi(self, z: Any) -> Any:
        return z if z > 0 else self.leak * z

    def read(self, document: Any) -> None:
        if document["format"] != FORMAT or document["kind"] not in KINDS:
            raise Reject(f"expected the format {FORMAT} and one of the kinds {', '.join(KINDS)}")
        self.report.kind, about = document["kind"], document["problem"]
        shapes = dict(each.split(":") for each in f"X:nd y:n {KINDS[self.report.kind]}".split())
        claims = claims_of(self.report.kind)
        size: dict[str, int] = {}
        if document.get("grade") == "CHECKED":
            shapes, claims = {"X": "nd", "y": "n"}, tuple(document["claim"])
        elif shapes.keys() != document["arrays"].keys():
            raise Reject(f"expected the arrays {', '.join(shapes)}")
        if set(claims) != document["claim"].keys():
            raise Reject(f"expected the claims {', '.join(claims)}")
        self.claim = dict(zip(claims, numbers([*map(document["claim"].get, claims)]), strict=True))
        if any(isinstance(value, list) for value in self.claim.values()):
            raise Reject("a claim is not a number")
        self.array: dict[str, Any] = {}
        for name, letters in shapes.items():
            shape, data = (document["arrays"][name][part] for part in ("shape", "data"))
            fits = len(shape) == len(letters) and math.prod(shape) == len(data) <= MOST_ENTRIES
            for letter, length in zip(letters, shape, strict=False):
                fits = fits and type(length) is int and size.setdefault(letter, length) == length
                fits = fits and length >= (letter in "nd")
            if not fits:
                raise Reject(f"array {name} is not of shape ({', '.join(letters)}) like the others")
            if any(isinstance(entry, list) for entry in data):
                raise Reject(f"array {name} holds a list: its entries are numbers, row after row")
            rows = [data[i : i + shape[-1]] for i in range(0, len(data), max(shape[-1], 1))]
            self.array[name] = numbers(data if len(shape) == 1 else rows)
        self.X, self.y, self.leak = self.array["X"], self.array["y"], numbers(about["leak"])
        self.n, self.d, self.size, self.law = len(self.y), len(self.X[0]), size, about["loss"]
        unit = {"half_square": 1, "square": 2, "logistic": 1, "exponential": 1}[self.law]
        weight = {"mean": Q(1, self.n), "sum": ONE}[about["reduction"]]
        self.kappa, self.square = numbers(about["factor"]) * unit * weight, "square" in self.law
        if not (0 <= self.leak < 1 and self.kappa > 0):
            raise Reject("leak or factor of the loss out of range")
        if (not self.square or "margin" in self.report.kind) and any(abs(t) != 1 for t in self.y):
            raise Reject("labels that are not -1 or 1")
        self.W, self.a = self.array.get("W", []), self.array.get("a", [])
        self.norm2 = sum((self.dot(w, w) for w in self.W), self.dot(self.a, self.a))
        self.f = [self.dot(self.a, [self.phi(self.dot(w, x)) for w in self.W]) for x in self.X]

    def whole(self, name: str, low: int, high: int) -> list[int]:
        """An array of whole numbers from low to high."""
        if any(not low <= v <= high or fraction(v).denominator > 1 for v in self.array[name]):
            raise Reject(f"array {name} holds an entry that is not from {low} to {high}")
        return [int(fraction(v)) for v in self.array[name]]

    def pairs(self, neuron: str, least: int, place: str, count: int) -> list[tuple[int, int]]:
        """(neuron from `least`, place below `count`) of each entry of two arrays."""
        first = self.whole(neuron, least, len(self.a) - 1)
        return list(zip(first, self.whole(place, 0, count - 1), strict=True))

    def loss(self, f: Sequence[Ball]) -> Ball:
        """The loss at outputs anywhere in the balls."""
        total = Ball(ZERO)
        for each, t in zip(f, self.y, strict=True):
            if self.square:
                total += (each + -t) * (each + -t) * HALF
            else:
                self.spend(SERIES)
                ends = [exponential((each * -t).lo), exponential((each * -t).hi)]
                term = Ball.between(ends[0].lo, ends[1].hi)
                total += log_one_plus(term) if self.law == "logistic" else term
        value: Ball = total * self.kappa
        return value

    def loss_within(self, f: Sequence[Any], low: Any, high: Any) -> None:
        loss = self.loss([Ball(ZERO) + each for each in f])
        self.need("loss from below", low <= 0 or loss.lo >= low, "loss >= loss_lower", loss.lo, low)
        self.need("loss from above", loss.hi <= high, "loss <= loss_upper", loss.hi, high)

    def gain_is(self, f: Sequence[Any], sign: Any, size: Any, gain: Any, cost: Any = ZERO) -> None:
        """One more neuron, at outputs f, of which `cost` is to be paid."""
        self.need("sign and size", abs(sign) == 1 and size > 0, "sign = +-1, size > 0")
        extra = [sign * size * self.phi(self.dot(self.array["vector"], x)) for x in self.X]
        if self.square:  # the difference is linear in f
            parts = [(g + 2 * (v + -t)) * -g for v, t, g in zip(f, self.y, extra, strict=True)]
            fall = sum(parts, Ball(ZERO)) * (self.kappa * HALF)
        else:
            fall = self.loss([Ball(v + g) for v, g in zip(f, extra, strict=True)]) * -ONE
            fall += self.loss([Ball(v) for v in f])
        least = fall.lo - cost
        self.need("gain", least >= gain > 0, "the loss falls by gain > 0", least, gain)

    def not_global(self, loss_lower: Any, loss_upper: Any, sign: Any, size: Any, gain: Any) -> None:
        """loss in [{loss_lower}, {loss_upper}]; one more neuron lowers it by at least {gain}"""
        self.loss_within(self.f, loss_lower, loss_upper)
        self.gain_is(self.f, sign, size, gain)

    def gradient(self, loss_lower: Any, loss_upper: Any, norm: Any) -> None:
        """the loss, in [{loss_lower}, {loss_upper}], is differentiable at the network, with a
        gradient of norm <= {norm}"""
        self.loss_within(self.f, loss_lower, loss_upper)
        pull, total = [], Ball(ZERO)  # minus the derivative of the loss in each output
        for v, t in zip(self.f, self.y, strict=True):
            slope = Ball(t - v) if self.square else exponential(-t * v) * t
            if self.law == "logistic":
                e = exponential(t * v)
                slope = Ball.between(1 / (1 + e.hi), 1 / (1 + max(e.lo, ZERO))) * t
            pull.append(slope * self.kappa)
        for w, o in zip(self.W, self.a, strict=True):
            inner = [self.dot(w, x) for x in self.X]
            self.need("no kink", all(inner), "no <w_j, x_k> is 0")
            slopes = [ONE if p > 0 else self.leak for p in inner]
            acts = list(map(mul, pull, slopes))
            D = [Ball(ZERO) + self.dot(acts, side) for side in zip(*self.X, strict=True)]
            rate = Ball(ZERO) + self.dot(D, w)
            total += rate * rate + self.dot(D, D) * (o * o)
        most = norm * abs(norm)
        self.need("norm", total.hi <= most, "the squared norm is at most", total.hi, most)

    def max_margin_linear(self, margin: Any, upper_bound: Any) -> None:
        """w has margin >= {margin}, no hyperplane through 0 more than {upper_bound}"""
        w, pairs = self.array["w"], list(map(mul, self.array["dual"], self.y))
        q = min(map(mul, self.y, [self.dot(w, x) for x in self.X]))
        self.need("margin", q > 0 < margin, "all are classified rightly", q, ZERO)
        ok = q * q >= margin * margin * self.dot(w, w)
        self.need("margin", ok, "y_k <w, x_k> >= margin |w| for every k")
        D = [self.dot(pairs, column) for column in zip(*self.X, strict=True)]
        ok = upper_bound >= 0 and self.dot(D, D) <= (upper_bound * self.multipliers()) ** 2
        self.need("upper bound", ok, "|sum_k l_k y_k x_k| <= upper_bound sum_k l_k")

    def multipliers(self) -> Any:
        total, least = sum(self.array["dual"], ZERO), min(self.array["dual"])
        self.need("multipliers >= 0", least >= 0 < total, "l >= 0 and l is not 0", least, ZERO)
        return total

    def max_margin_network(self, margin: Any, upper_bound: Any) -> None:
        """normalised margin >= {margin}; no network of any width has more than {upper_bound}"""
        self.margin_within(margin, None)
        pull = list(map(mul, self.array["dual"], self.y))
        self.bound_G(pull, 2 * upper_bound * self.multipliers())

    def margin_optimum(self, margin_lower: Any, margin_upper: Any) -> None:
        """no network of any width has a larger normalised margin than this one, which is in
        [{margin_lower}, {margin_upper}]"""
        q = self.margin_within(margin_lower, margin_upper)
        B = 2 * q / self.norm2 * self.multipliers()
        self.bound_G(list(map(mul, self.array["dual"], self.y)), B)

    def margin_within(self, low: Any, high: Any) -> Any:
        q = min(map(mul, self.y, self.f))
        self.need("all classified", q > 0, "y_k f(x_k) > 0 for every k", q, ZERO)
        ok = low * self.norm2 <= q and (high is None or q <= high * self.norm2)
        self.need("margin", ok, "the margin is as claimed", q / self.norm2, low)
        return q

    def min_norm(self, norm2: Any, lower_bound: Any, error: Any) -> None:
        """the network fits every label up to {error} with squared norm <= {norm2}; every network of
        any width that fits so well has squared norm >= {lower_bound}"""
        worst, c = max(abs(f - t) for f, t in zip(self.f, self.y, strict=True)), self.array["dual"]
        self.need("fit", worst <= error, "|f(x_k) - y_k| <= error", worst, error)
        self.need("norm", self.norm2 <= norm2, "|theta|^2 <= norm2", self.norm2, norm2)
        value = 2 * (self.dot(c, self.y) - error * sum(map(abs, c), ZERO))
        ok = value > 0 < lower_bound
        self.need("dual value", ok, "<c, y> > error sum_k |c_k| and lower_bound > 0", value, ZERO)
        self.bound_G(c, value / lower_bound)

    def penalised_within(self, decay: Any, value: Any) -> None:
        self.need("weight decay", decay > 0, "weight_decay > 0", decay, ZERO)
        got = self.loss([Ball(v) for v in self.f]) + self.norm2 * decay * HALF
        ok = got.hi <= value
        self.need("value", ok, "loss + (weight_decay/2) |theta|^2 <= value", got.hi, value)

    def ridge(self, weight_decay: Any, value: Any, lower_bound: Any) -> None:
        """the loss plus {weight_decay}/2 times the squared norm is <= {value} at the network, and
        >= {lower_bound} for every network of any width"""
        self.penalised_within(weight_decay, value)
        self.step, c, total = (
            "dual value",
            self.array["dual"],
            Ball(ZERO),
        )  # the infimum of L(F) + <c, F> over all outputs F
        for v, t in zip(c, self.y, strict=True):
            p = v * t / self.kappa
            if self.square:
                total += v * t - v * v / (2 * self.kappa)
                continue
            ok = p >= 0 and (p <= 1 or self.law == "exponential")
            if not ok:
                raise Reject("the loss plus <c, F> is not bounded below")
            self.spend(SERIES)
            total += (
                entropy(p) + (p if self.law == "exponential" else entropy(1 - p))
            ) * self.kappa
        ok = total.lo >= lower_bound
        self.need("dual value", ok, "inf L + <c, .> >= lower_bound", total.lo, lower_bound)
        self.bound_G(c, weight_decay)

    def ridge_not_best(
        self, weight_decay: Any, value: Any, sign: Any, size: Any, gain: Any
    ) -> None:
        """the loss plus {weight_decay}/2 times the squared norm is <= {value} at the network; one
        more neuron lowers it by at least {gain}"""
        self.penalised_within(weight_decay, value)
        length = root(self.dot(self.array["vector"], self.array["vector"])).hi
        self.gain_is(self.f, sign, size, gain, weight_decay * abs(size) * length)

    def bound_G(self, c: list[Any], B: Any) -> None:
        """|G_c(w)| <= B |w| for every w: by the sectors of the plane, else by the tree."""
        self.step = "bound of G"
        if self.d <= 2:
            self.sectors(c, B)
        else:
            self.tree(c, B)
        self.need("bound of G", B >= 0, f"|G_c(w)| <= {nearest(B):.17g} |w| for every w")

    def sectors(self, c: list[Any], B: Any) -> None:
        points = [(x[0], x[1] if self.d == 2 else ZERO) for x in self.X]
        around: dict[Any, list[int]] = {}  # rays where the slope of some sample changes
        for k, x in enumerate([*points, (ONE, ZERO), (ZERO, ONE)]):
            size = abs(x[0]) + abs(x[1])
            for s in (1, -1) if size > 0 else ():
                around.setdefault((-s * x[1] / size, s * x[0] / size), []).append(k)

        def cross(u: Any, v: Any) -> Any:
            return u[0] * v[1] - u[1] * v[0]

        def order(u: Any, v: Any) -> int:
            below = [(p[1], p[0]) < (0, 0) for p in (u, v)]
            return below[0] - below[1] or (1 if cross(u, v) < 0 else -1)

        rays = sorted(around, key=functools.cmp_to_key(order))
        slopes, D = [ZERO] * self.n, [ZERO, ZERO]
        for i, (u, v) in enumerate(zip(rays, rays[1:] + rays[:1], strict=True)):
            inside = (u[0] + v[0], u[1] + v[1])
            for k in range(self.n) if i == 0 else around[u]:
                if k < self.n:
                    new = c[k] * (1 if self.dot(points[k], inside) > 0 else self.leak)
                    D = [p + (new - slopes[k]) * q for p, q in zip(D, points[k], strict=True)]
                    slopes[k] = new
            for E in (D, [-D[0], -D[1]]):
                if cross(u, E) >= 0 <= cross(E, v) and self.dot(E, E) > B * B:
                    raise Reject("G exceeds its bound inside a sector")
                for ray in (u, v):
                    at = self.dot(ray, E)
                    if at > 0 and at * at > B * B * self.dot(ray, ray):
                        raise Reject("G exceeds its bound on a ray")

    def tree(self, c: list[Any], B: Any) -> None:
        """For s = 1, -1: kinks convex in s G get a sign each, until s G <= B |w| is seen."""
        tokens, lean = iter(self.whole("tree", -self.size["h"], self.n - 1)), (1 - self.leak) * HALF
        reach = [lean * abs(v) * root(self.dot(x, x)).hi for v, x in zip(c, self.X, strict=True)]
        if any(not self.leak <= v <= 1 for h in self.array["slopes"] for v in h):
            raise Reject("a slope of the tree is outside [leak, 1]")
        for s in (1, -1):
            convex, sides = [s * v > 0 for v in c], list(zip(*self.X, strict=True))
            middle = [s * v * (1 - lean) if up else ZERO for v, up in zip(c, convex, strict=True)]
            concave = []
            for h in self.array["slopes"]:
                pulls = [ZERO if up else s * v * g for v, up, g in zip(c, convex, h, strict=True)]
                concave.append([self.dot(pulls, side) for side in sides])
            whole = {k for k in range(self.n) if convex[k]}
            stack = [([self.dot(middle, side) for side in sides], whole)]
            while stack:
                D, undecided = stack.pop()
                token = next(tokens)
                self.spend(len(undecided) + self.d)
                if token >= 0 and token not in undecided:
                    raise Reject("the tree decides a sign that is decided or has no part in it")
                if token >= 0:
                    step = [s * c[token] * lean * v for v in self.X[token]]
                    for way in (-1, 1):
                        moved = [p + way * q for p, q in zip(D, step, strict=True)]
                        stack.append((moved, undecided - {token}))
                    continue
                E = [p + q for p, q in zip(D, concave[-1 - token], strict=True)]
                room = B - sum((reach[k] for k in undecided), ZERO)
                if room < 0 or self.dot(E, E) > room * room:
                    raise Reject("G may exceed its bound at a leaf of the tree")

    def zero_near(self, F: list[Any], J: list[list[Any]], radius: list[Any]) -> None:
        """Krawczyk: a zero is within `radius` of the point where the system is F, with slopes J."""
        if len(F) != len(radius) or any(r < 0 for r in radius):
            raise Reject("as many equations as unknowns, and no negative radius")
        for i, Y in enumerate(self.array["inverse"]):
            reach = abs(self.dot(Y, F))
            for k, r in enumerate(radius):
                column = Ball(-ONE if i == k else ZERO) + self.dot(Y, [row[k] for row in J])
                reach += (abs(column.mid) + column.rad) * r
            if not reach < radius[i]:
                raise Reject("Krawczyk's operator leaves the box around the point")
        self.need("exact solution", True, "the equations have a zero in the box, and one only")

    def near(self, moves: list[Ball], distance: Any) -> None:
        far, most = Ball(ZERO) + self.dot(moves, moves), distance * abs(distance)
        self.need("distance", far.hi <= most, "the squared distance is at most", far.hi, most)

    def point(self, low: Any, high: Any, distance: Any) -> tuple[list[Ball], bool]:
        """Shows an exact stationary point; its outputs, and whether it is a local minimum."""
        self.step, n, X, m = "stationary point", self.n, self.X, len(self.a)
        share, radius = self.array["share"], self.array["radius"]
        leader = self.whole("leader", 0, m - 1)
        free = self.pairs("free_neuron", 0, "free_entry", self.d)
        kinks = self.pairs("kink_neuron", 0, "kink_sample", n)
        rows = self.pairs("row_neuron", -1, "row_index", max(n, self.d))
        if any(i >= (n if j < 0 else self.d) for j, i in rows):
            raise Reject("an equation is about a sample or an entry that does not exist")
        zero = {k for j, k in rows if j < 0}  # samples with c_k = 0
        F, T, own = len(free), self.size["t"], self.whole("kink_tau", -1, self.size["t"] - 1)
        distinct = len({*free}) == F and len({*kinks}) == len(own) and len(radius) == F + T
        if not (self.square and distinct):
            raise Reject("expected a square loss and distinct unknowns")
        if any(leader[r] != r for r in [*leader, *(j for j, _ in free + kinks)]) or min(share) <= 0:
            raise Reject("a neuron is led by one that does not lead, or its share is not positive")
        if any((k in zero) != (t < 0) for (_, k), t in zip(kinks, own, strict=True)):
            raise Reject("a kink has a tau exactly when c_k is not 0")
        w = [[Ball(v) for v in row] for row in self.array["place"]]
        for (j, i), rad in zip(free, radius, strict=False):
            w[j][i] = Ball(w[j][i].mid, rad)
        tau, outer = list(map(Ball, self.array["tau"], radius[F:])), [ZERO] * m
        moves: list[Ball] = []
        for j, r in enumerate(leader):
            outer[r] += self.a[j] * share[j]
            moves += [v * share[j] + -u for u, v in zip(self.W[j], w[r], strict=True)]
        f, inner, slopes, patterns, held = [Ball(ZERO)] * n, {}, {}, {}, {*kinks}
        for r in {*leader}:
            self.spend(len(kinks))
            inner[r] = [Ball(ZERO) + self.dot(x, w[r]) for x in X]
            for k, p in enumerate(inner[r]):
                still = p.mid == 0 == p.rad and (k in zero or not any(X[k]))
                if not ((r, k) in held or p.lo > 0 or p.hi < 0 or still):
                    raise Reject(f"the side of neuron {r} at sample {k} is not certain")
            sides = [ONE if p.lo > 0 else self.leak for p in inner[r]]
            slopes[r] = [ZERO if (r, k) in held else s for k, s in enumerate(sides)]
            silent = [k in zero or not any(x) for k, x in enumerate(X)]
            alive = tuple(ZERO if q else s for q, s in zip(silent, slopes[r], strict=True))
            own_kinks = {(k, t) for (q, k), t in zip(kinks, own, strict=True) if q == r and t >= 0}
            if any(alive) and not own_kinks:  # D = 0 whatever the scale
                first = next(filter(None, alive))
                alive = tuple(v / first for v in alive)
            patterns[r] = (alive, frozenset(own_kinks))
            parts = [p * (outer[r] * s) for p, s in zip(inner[r], slopes[r], strict=True)]
            f = [v + p for v, p in zip(f, parts, strict=True)]
        c = [(v + -t) * -self.kappa for v, t in zip(f, self.y, strict=True)]
        done = {(patterns[leader[j]], i) for j, i in rows if j >= 0}
        for cone in {*patterns.values()}:
            if (any(cone[0]) or cone[1]) and any((cone, i) not in done for i in range(self.d)):
                raise Reject("D = 0 is not among the equations for the cone of every neuron")
        # each equation is linear in c and tau, and these are linear in the unknowns
        lines = []
        for j, i in rows:
            self.spend(n + T)
            line = [ONE if k == i else ZERO for k in range(n)] + [ZERO] * T
            if j >= 0:
                alive, bent = patterns[leader[j]]
                line[:n] = [s * x[i] for s, x in zip(alive, X, strict=True)]
                for k, t in bent:
                    line[n + t] += X[k][i]
            lines.append(line)
        values = [self.dot(line, [v.mid for v in [*c, *tau]]) for line in lines]
        values += [inner[r][k].mid for r, k in kinks]
        columns = []
        for r, i in free:
            pulls = [-self.kappa * outer[r] * s * x[i] for s, x in zip(slopes[r], X, strict=True)]
            column = [self.dot(line[:n], pulls) for line in lines]
            columns.append(column + [X[k][i] if q == r else ZERO for q, k in kinks])
        for t in range(T):
            columns.append([line[n + t] for line in lines] + [ZERO] * len(kinks))
        self.zero_near(values, [list(row) for row in zip(*columns, strict=True)], radius)
        minimum = True
        for (r, k), t in zip(kinks, own, strict=True):
            if t < 0:
                continue
            s, height = (1 if c[k].lo > 0 else -1), tau[t]
            ends = (height + c[k] * -self.leak) * s, (c[k] + height * -ONE) * s
            ok = min(end.lo for end in ends) >= 0
            self.need("slopes", ok, "a slope on a kink is in [leak, 1]")
            minimum &= all(o * s < 0 for o, q in zip(self.a, leader, strict=True) if q == r)
        self.loss_within(self.f, low, high)
        self.loss_within(f, low, high)
        self.near(moves, distance)
        return f, minimum

    def stationary(self, loss_lower: Any, loss_upper: Any, distance: Any) -> None:
        """an exact stationary point is within {distance} of the network; the loss of both is in
        [{loss_lower}, {loss_upper}]"""
        self.point(loss_lower, loss_upper, distance)

    def spurious_minimum(
        self, loss_lower: Any, loss_upper: Any, distance: Any, sign: Any, size: Any, gain: Any
    ) -> None:
        """an exact local minimum, strict up to networks with the same outputs, is within {distance}
        of the network, the loss of both in [{loss_lower}, {loss_upper}]; it is not global: one more
        neuron lowers the loss there by at least {gain}"""
        f, minimum = self.point(loss_lower, loss_upper, distance)
        self.need("local minimum", minimum, "no kink lets the loss fall")
        self.gain_is(f, sign, size, gain)

    def kkt_margin(self, margin: Any, distance: Any) -> None:
        """normalised margin >= {margin}; an exact KKT point of the margin is within {distance}"""
        self.margin_within(margin, None)
        self.step, pattern, share = "KKT point", self.array["pattern"], self.array["share"]
        B, active, leak = len(pattern), self.whole("active", 0, self.n - 1), self.leak
        group, sign = self.whole("group", -1, B - 1), self.whole("sign", -1, 1)
        X, y = [self.X[k] for k in active], [self.y[k] for k in active]
        K, radius = len(active), self.array["radius"]
        kinks = [(b, i) for b in range(B) for i in range(K) if pattern[b][i] == 0]
        if len({*active}) != K or len(radius) != K + B + len(kinks) or min(share) < 0 or 0 in sign:
            raise Reject("as many unknowns as equations, shares >= 0, signs +-1")
        self.spend(B * len(radius) * self.d)
        z = list(map(Ball, self.array["center"], radius))
        count = [ZERO] * B
        for s, b in zip(share, group, strict=True):
            count[b] += s * s if b >= 0 else ZERO
        slopes = [[ONE if p > 0 else leak if p < 0 else ZERO for p in row] for row in pattern]
        V = []  # D_b = sum_i z_i V[b][i]
        for b in range(B):
            scale = [s * t for s, t in zip(slopes[b], y, strict=True)] + [ZERO] * B
            scale += [y[i] if h == b else ZERO for h, i in kinks]
            which = [*range(K), *[0] * B, *[i for _, i in kinks]]
            V.append([[g * v for v in X[i]] for g, i in zip(scale, which, strict=True)])
        D = [[self.dot(z, side) for side in zip(*V[b], strict=True)] for b in range(B)]
        P = [[self.dot(D[b], x) for x in X] for b in range(B)]
        weight = [z[K + b] * z[K + b] * count[b] for b in range(B)]
        F = [self.dot(D[b], D[b]) + -ONE for b in range(B)]
        J = [[2 * self.dot(D[b], v) for v in V[b]] for b in range(B)]
        for i in range(K):
            parts = [weight[b] * (slopes[b][i] * y[i]) for b in range(B)]
            F.append(self.dot(parts, [P[b][i] for b in range(B)]) + -ONE)
            row = []
            for h in range(len(z)):
                row.append(self.dot(parts, [self.dot(V[b][h], X[i]) for b in range(B)]))
            for b in range(B):
                row[K + b] = z[K + b] * (2 * count[b] * slopes[b][i] * y[i]) * P[b][i]
            J.append(row)
        F += [P[b][i] for b, i in kinks]
        J += [[self.dot(v, X[i]) for v in V[b]] for b, i in kinks]
        self.zero_near([v.mid for v in F], J, radius)
        ok = all(v.lo >= 0 for v in z[:K]) and all(v.lo > 0 for v in z[K : K + B])
        self.need("multipliers >= 0", ok, "l >= 0, sizes > 0 in the box")
        for b in range(B):
            sides = [(P[b][i] * (sign[b] * p)).lo for i, p in enumerate(pattern[b]) if p != 0]
            ok = all(v > 0 for v in sides)
            self.need("sides", ok, f"group {b} is on its side of each active sample")
        for (_, i), t in zip(kinks, z[K + B :], strict=True):
            ok = (t + z[i] * -leak).lo >= 0 <= (z[i] + t * -ONE).lo
            self.need("slopes", ok, "a slope on a kink is in [leak, 1]")
        for k in {*range(self.n)} - {*active}:
            p = [self.dot(D[b], self.X[k]) * sign[b] for b in range(B)]
            values = [Ball.between(self.phi(v.lo), self.phi(v.hi)) for v in p]
            q = (Ball(ZERO) + self.dot(list(map(mul, values, sign)), weight)) * self.y[k]
            self.need("feasible", q.lo >= 1, "y_k f(x_k) >= 1", q.lo, ONE)
        moves: list[Ball] = []
        for w, a, b, g in zip(self.W, self.a, group, share, strict=True):
            size = z[K + b] * (g * sign[b]) if b >= 0 else Ball(ZERO)
            ends = [*(D[b] if b >= 0 else w), ONE]
            moves += [size * v + -u for u, v in zip([*w, a], ends, strict=True)]
        self.near(moves, distance)

    def global_minimum(self, loss: Any, lower_bound: Any) -> None:
        """loss <= {loss}, and >= {lower_bound} for every network of any width"""
        got, rest = self.loss([Ball(v) for v in self.f]), ZERO
        lines: dict[Any, list[Any]] = {}
        self.need("loss", self.square and got.hi <= loss, "a square loss <= loss", got.hi, loss)
        for x, t in zip(self.X, self.y, strict=True):
            lead = next((v for v in x if v != 0), None)
            if lead is None:
                rest += t * t  # f(0) = 0
            else:
                lines.setdefault(tuple(v / lead for v in x), []).append((lead, t))
        M = [[ZERO] * (self.d + 1) for _ in range(self.d + 1)]
        for line, members in lines.items():  # outputs <b, x_k> + |x_k| t: t is projected out
            size2 = sum(b * b for b, _ in members)
            tilt, height = (sum(abs(m[0]) * m[i] for m in members) / size2 for i in (0, 1))
            for b, t in members:
                self.spend(self.d**2)
                row = [(b - abs(b) * tilt) * v for v in line] + [t - abs(b) * height]
                for old, u in zip(M, row, strict=True):
                    old[:] = [p + u * v for p, v in zip(old, row, strict=True)]
        for i in range(self.d):  # then b
            for below in M[i + 1 :] if M[i][i] != 0 else []:
                self.spend(self.d)
                ratio = below[i] / M[i][i]
                below[:] = [p - ratio * q for p, q in zip(below, M[i], strict=True)]
        least = (M[-1][-1] + rest) * self.kappa * HALF
        self.need("lower bound", least >= lower_bound, "infimum >= lower_bound", least, lower_bound)

    def algorithm1(self, norm2_lower: Any, norm2_upper: Any) -> None:
        """from this start Algorithm 1 jumps in this order on these samples, with its times and the
        losses of its plateaus in the bounds given; its squared norm ends in
        [{norm2_lower}, {norm2_upper}]"""
        X, order = self.X, self.whole("order", 0, len(self.a) - 1)
        unit = all(self.dot(x, v) == (x is v) for x in X for v in X)
        ok = unit and self.square and self.leak == 0
        self.need("orthonormal", ok, "<x_i, x_k> = 1 if i = k else 0, ReLU and a square loss")
        ok = all(o * o >= self.dot(w, w) > 0 for w, o in zip(self.W, self.a, strict=True))
        self.need("start", ok, "|a_j| >= |w_j| > 0")
        inner = [[self.dot(w, x) for x in X] for w in self.W]
        self.need("signs", all(all(p) for p in inner), "no <w_j, x_k> is 0")
        cones = []  # samples that pull on each neuron
        for line, o in zip(inner, self.a, strict=True):
            cones.append({k for k, p in enumerate(line) if p > 0 < o * self.y[k]})
        left, beta = {k for k in range(self.n) if self.y[k] != 0}, [Ball(-ONE)] * len(cones)
        time, norm2, bounds = Ball(ZERO), Ball(ZERO), self.array
        for i in range(len(order) + 1):
            loss = self.kappa * HALF * sum((self.y[k] ** 2 for k in left), ZERO)
            ok = bounds["loss_lower"][i] <= loss <= bounds["loss_upper"][i]
            self.need(f"plateau {i}", ok, "its loss is in the bounds")
            self.spend(self.n * len(cones))
            sizes = [sum((self.y[k] ** 2 for k in cone & left), ZERO) for cone in cones]
            if i == len(order):
                self.need("end", not any(sizes), "no neuron grows any more")
                break
            rates = [root(s) * self.kappa for s in sizes]
            waits, j = {}, order[i]
            for h, (b, v) in enumerate(zip(beta, rates, strict=True)):
                if sizes[h] > 0:
                    self.need(f"plateau {i}", b.hi < 0, f"neuron {h} is small on it")
                    waits[h] = Ball.between(-b.hi / v.hi, -b.lo / v.lo)
            self.need(f"jump {i}", j in waits, f"neuron {j} grows")
            ok = all(waits[j].hi < v.lo for h, v in waits.items() if cones[h] != cones[j])
            self.need(f"jump {i}", ok, f"neuron {j} is the first to reach size one")
            time, norm2 = time + waits[j], norm2 + root(sizes[j]) * 2
            ok = bounds["time_lower"][i] <= time.lo and time.hi <= bounds["time_upper"][i]
            self.need(f"time {i}", ok, "it is in the bounds")
            got = [ONE if k in cones[j] & left else ZERO for k in range(self.n)]
            self.need(f"samples {i}", got == bounds["fitted"][i], "those it fits")
            beta = [b + waits[j] * v for b, v in zip(beta, rates, strict=True)]
            left -= cones[j]
        ok = norm2_lower <= norm2.lo and norm2.hi <= norm2_upper and self.size["p"] == i + 1
        self.need("norm", ok, "the squared norm at the end", norm2.mid, norm2_lower)


def main(arguments: Sequence[str]) -> int:
    """Print what is found of each file; 0 when all are proved."""
    reports = [check_certificate(name) for name in arguments]
    print("\n".join(map(str, reports)))
    return 0 if reports and all(report.ok for report in reports) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
