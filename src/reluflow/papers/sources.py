"""Title, authors and address of the five papers."""

from __future__ import annotations

from typing import NamedTuple


class Source(NamedTuple):
    """Where to read a paper."""

    title: str
    authors: str
    link: str


SOURCES = {
    "BF24": Source(
        "Early alignment in two-layer networks training is a two-edged sword",
        "Etienne Boursier, Nicolas Flammarion",
        "https://arxiv.org/abs/2401.10791",
    ),
    "TLB26": Source(
        "Mildly overparameterized ReLU networks on orthogonal data: incremental learning and "
        "implicit bias",
        "J. Town, B. Lewis and others",
        "https://arxiv.org/abs/2605.27097",
    ),
    "MMV24": Source(
        "Early neuron alignment in two-layer ReLU networks with small initialization",
        "Hancheng Min, Enrique Mallada, René Vidal",
        "https://arxiv.org/abs/2307.12851",
    ),
    "LLWA21": Source(
        "Gradient descent on two-layer nets: margin maximization and simplicity bias",
        "Kaifeng Lyu, Zhiyuan Li, Runzhe Wang, Sanjeev Arora",
        "https://arxiv.org/abs/2110.13905",
    ),
    "TK24": Source(
        "Simplicity bias of two-layer networks beyond linearly separable data",
        "Nikita Tsoy, Nikola Konstantinov",
        "https://arxiv.org/abs/2405.17299",
    ),
}
