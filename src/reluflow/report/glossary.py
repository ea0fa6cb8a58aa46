"""Terms that reports and the studio use, each in a sentence or two, and where a text uses them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from reluflow.claims.verdict import Status


@dataclass(frozen=True)
class Term:
    """A term, what it means, and the forms in which a text has it beside its name.

    A form with a capital letter is looked for as it is written, others in any case; a plural with
    s is found too.
    """

    name: str
    says: str
    forms: tuple[str, ...] = ()


TERMS = (
    Term(
        "neuron",
        "One unit j of the hidden layer. It adds a_j relu(<w_j, x>) to the output f(x): w_j are "
        "its weights, a_j is its output weight.",
    ),
    Term(
        "direction",
        "w/|w|, where the weights of a neuron point: what the neuron reads of a sample.",
    ),
    Term("leak", "Slope of the activation max(z, leak z) on its negative side; 0 for ReLU."),
    Term(
        "gradient flow",
        "Gradient descent with steps so small that time is continuous. A step of size lr takes "
        "time lr.",
    ),
    Term(
        "scale",
        "Size of the initial weights. The smaller it is, the longer the network stays silent "
        "and the more clearly it learns one thing after another.",
        ("weights of size",),
    ),
    Term(
        "silent network",
        "One whose outputs are next to 0 beside the labels, as they are while all weights are "
        "small.",
        ("silent",),
    ),
    Term(
        "pull",
        "c_k, minus the derivative of the loss by the output on sample k: how strongly the sample "
        "asks for a larger output.",
    ),
    Term(
        "early alignment",
        "While all weights are small the outputs stay near 0: neurons hardly grow but turn, each "
        "to a direction in which the samples pull it most.",
        ("alignment",),
    ),
    Term(
        "landscape",
        "G(w) = sum_k c_k relu(<w, x_k>), c_k the pull of sample k on a silent network. Neurons "
        "with positive output weight climb it, those with negative output weight descend.",
        ("G",),
    ),
    Term(
        "extremal vector",
        "A direction in which small neurons neither turn up nor down: a critical point of the "
        "landscape on the sphere. There a neuron grows like exp(|G| t).",
        ("critical direction",),
    ),
    Term(
        "kind",
        "Of an extremal vector. At a max neurons with positive output weight gather, at a min "
        "those with negative one, and a saddle lets most of them pass. Weak: G is 0 on a whole "
        "face around it. Flat: G is 0 all around, neurons there stay as they are.",
        ("weak min", "weak max"),
    ),
    Term(
        "growth rate",
        "While a neuron is small its size is exp(rate x time) times a constant; at an extremal "
        "vector the rate is |G|.",
        ("rate",),
    ),
    Term(
        "dead neuron",
        "A neuron that no sample activates: it never moves again.",
        ("dead", "die", "dies"),
    ),
    Term(
        "dormant neuron",
        "A neuron that is still small: it turns and grows, but does not change the output yet.",
        ("dormant",),
    ),
    Term(
        "plateau",
        "A stretch of time in which the loss hardly changes: the network rests near a stationary "
        "point while the next neurons grow unseen.",
    ),
    Term(
        "jump",
        "The short time in which a neuron, or a group that points the same way, grows from next "
        "to nothing to its full size and the loss falls. Its time is when half of the fall is "
        "done.",
    ),
    Term(
        "limit process",
        "What training tends to as the scale goes to 0: a staircase of plateaus with jumps "
        "between them. It is computed without training; at a given scale its times are accurate "
        "up to terms that vanish beside log(1/scale).",
        ("limit of small scales", "The limit leaves open", "Predicted without training"),
    ),
    Term(
        "kink",
        "A hyperplane <w, x_k> = 0, where the activation on sample k bends; a neuron that meets "
        "it crosses it or slides along it.",
    ),
    Term(
        "horizon",
        "The time from which two runs with different error tolerances part: what comes later "
        "depends on details below the tolerance.",
    ),
    Term(
        "stationary point",
        "Weights at which the gradient vanishes: training ends there, whether or not a better "
        "network exists.",
        ("stationary",),
    ),
    Term(
        "spurious end",
        "A stationary point at which training stops although other networks have a smaller loss.",
        ("spurious",),
    ),
    Term(
        "local minimum",
        "Weights that no small change betters. One more neuron, or a large change, may.",
        ("local minima",),
    ),
    Term("global minimum", "A network that no network of any width betters.", ("global",)),
    Term(
        "saddle",
        "A stationary point that some small changes better and others worsen. Plateaus are near "
        "saddles.",
    ),
    Term(
        "least-squares",
        "The linear function of the features with the smallest mean squared error.",
        ("least squares",),
    ),
    Term(
        "interpolator",
        "A network that fits every label exactly.",
        ("interpolate", "interpolates"),
    ),
    Term(
        "least norm",
        "Of all networks that fit the data, the one with the smallest weights. The squared norm "
        "of a network is |W|^2 + |a|^2.",
        ("squared norm",),
    ),
    Term(
        "margin",
        "For two classes, the least y f(x) over the samples; for several, by how much at least the "
        "output of the right class exceeds every other one. Normalised: over the squared size of "
        "all weights. Training with logistic, exponential or softmax loss makes it grow.",
        ("normalised margin",),
    ),
    Term(
        "KKT direction",
        "A direction of all weights that meets the first-order (Karush-Kuhn-Tucker) conditions of "
        "the largest margin. Training with margin losses tends to one, not always to the best.",
        ("KKT",),
    ),
    Term(
        "weight decay",
        "A penalty on the squared weights, or their shrinking by a share in every step.",
    ),
    Term(
        "certificate",
        "A statement with the numbers that prove it, as a file. PROVED: a separate checker "
        "repeats each step in exact arithmetic. CHECKED: numerical only.",
        ("PROVED", "CHECKED"),
    ),
    Term(
        "exact, found, estimated",
        "Exact: all there is, by a complete enumeration. Found: by a search that may have missed "
        "some. Estimated: right at leading order, without a bound of the error.",
        ("found", "estimated"),
    ),
)
# words and letters of the papers in the table of theorems
CLAIM_TERMS = (
    *(Term(status.name, status.value) for status in Status),
    Term(
        "claim",
        "Paper and number: L is a lemma, T a theorem, P a proposition, C a corollary, A an "
        "assumption, Def a definition, E an equation. (repaired): as it holds, where print and "
        "meaning part; the ledger (`reluflow claims ID`) says why.",
    ),
    Term("a_j, w_j", "Output weight and weights of neuron j.", ("a_j", "w_j")),
    Term("balanced", "|a_j| = |w_j| for every neuron.", ("balancedness",)),
    Term("dominated start", "|a_j| >= |w_j| for every neuron at the start.", ("dominated",)),
    Term("lambda", "The scale of the start in BF24."),
    Term("D*", "The sum of c_k x_k over all samples: the direction in which all of them pull."),
    Term("mu", "The mean of y_k x_k over all samples; mubar is its direction.", ("mubar",)),
    Term("q_min", "The least y_k f(x_k) over all samples, not normalised.", ("q_min",)),
    Term("w*", "The hyperplane of largest margin, as a unit vector."),
    Term("eps", "A small number of the statement: the scale in MMV24, an exponent in BF24."),
    Term("X_max, W_max", "The largest |x_k|; the largest |w_j| at scale 1.", ("X_max", "W_max")),
    Term("sigma", "The scale of a Gaussian start in LLWA21 and TK24.", ("sigma_max",)),
    Term("OLS", "Ordinary least squares: the best linear function of the features."),
    Term(
        "branching",
        "At a kink that pushes away to both sides a path has no unique continuation.",
        ("non-branching",),
    ),
    Term("D_max", "The largest growth rate, the maximum of |G|."),
    Term("tau", "The end of early alignment in BF24: a multiple of log(1/lambda)."),
    Term("S_dead", "The weights that no sample activates.", ("S_dead",)),
    Term("theta", "All weights of the network.", ("theta",)),
    Term(
        "Clarke subgradient",
        "The gradient where there is one; at a kink any mixture of the gradients beside it.",
    ),
    Term(
        "Assumption",
        "Of the paper that the claim is from, with its number there; the words before it say what "
        "is asked.",
    ),
)
GLOSSARY = {term.name: term.says for term in TERMS}
_BY_NAME = {term.name: term for term in (*TERMS, *CLAIM_TERMS)}


def definition(name: str) -> str:
    """What a term means, by its name."""
    return _BY_NAME[name].says


def mark_terms(text: str, mark: Callable[[str, str], str], plain: Callable[[str], str]) -> str:
    """A text whose terms have passed through ``mark`` and whose rest through ``plain``.

    Parameters
    ----------
    text : str
        Plain text, not yet escaped.
    mark : callable
        Takes the name of a term and the words by which the text has it.
    plain : callable
        Takes what stands between terms.

    Examples
    --------
    >>> mark_terms("two jumps", lambda name, words: f"[{name}: {words}]", str)
    'two [jump: jumps]'
    """
    made, at = [], 0
    for found in _pattern().finditer(text):
        made += [plain(text[at : found.start()]), mark(_name_of(found[0]), found[0])]
        at = found.end()
    return "".join([*made, plain(text[at:])])


def _forms(term: Term) -> tuple[str, ...]:
    return (*term.forms, *(() if "," in term.name else (term.name,)))


@cache
def _pattern() -> re.Pattern[str]:
    """Any form of any term as a whole word, the longest first."""
    forms = sorted({f for term in _BY_NAME.values() for f in _forms(term)}, key=len, reverse=True)
    ways = [
        re.escape(form) if form != form.lower() else f"(?i:{re.escape(form)}s?)" for form in forms
    ]
    return re.compile(rf"(?<![\w*^-])(?:{'|'.join(ways)})(?![\w*^(])")


@cache
def _name_of(words: str) -> str:
    """Name of the term of which ``words`` is a form."""
    names = {form: term.name for term in _BY_NAME.values() for form in _forms(term)}
    low = words.lower()
    return next(names[form] for form in (words, low, low.removesuffix("s")) if form in names)
