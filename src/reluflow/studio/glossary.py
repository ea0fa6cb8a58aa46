"""Terms that the page uses, each in a sentence or two."""

GLOSSARY: dict[str, str] = {
    "scale": "Size of the initial weights. The smaller it is, the longer the network stays silent "
    "and the more clearly it learns one thing after another.",
    "early alignment": "While all weights are small the outputs stay near 0: neurons hardly grow "
    "but turn, each to a direction in which the samples pull it most.",
    "landscape": "G(w) = sum_k c_k relu(<w, x_k>), c_k the pull of sample k on a silent network. "
    "Neurons with positive output weight climb it, those with negative output weight descend.",
    "extremal vector": "A direction in which small neurons neither turn up nor down: a critical "
    "point of the landscape on the sphere. There a neuron grows like exp(|G| t).",
    "dead neuron": "A neuron that no sample activates: it never moves again.",
    "plateau": "A stretch of time in which the loss hardly changes: the network rests near a "
    "stationary point while the next neurons grow unseen.",
    "jump": "The short time in which a neuron, or a group that points the same way, grows from "
    "next to nothing to its full size and the loss falls.",
    "limit process": "What training tends to as the scale goes to 0: a staircase of plateaus with "
    "jumps between them. It is computed without training; at a given scale its times are "
    "accurate up to terms that vanish beside log(1/scale).",
    "stationary point": "Weights at which the gradient vanishes: training ends there, whether or "
    "not a better network exists.",
    "global minimum": "A network that no network of any width betters.",
    "margin": "For two classes, the least y f(x) over the samples, over the squared size of all "
    "weights. Training with logistic or exponential loss makes it grow.",
    "least norm": "Of all networks that fit the data, the one with the smallest weights.",
    "certificate": "A statement with the numbers that prove it: a separate checker repeats each "
    "step in exact arithmetic.",
    "exact, found, estimated": "Exact: all there is, by a complete enumeration. Found: by a search "
    "that may have missed some. Estimated: right at leading order.",
}
