"""Datasets of the five papers with their known answers, and readers for files.

Every function returns a :class:`reluflow.Problem`; ``problem.known`` holds what is known about
it in closed form. ``load`` takes a built-in name (see ``names``) or the path of a file.
"""

from reluflow.problem.datasets.bf24 import a3c, assumption3_box, stewart, three_points
from reluflow.problem.datasets.hints import figure1_right, hinted
from reluflow.problem.datasets.llwa21 import (
    figure1_left,
    figure1_middle,
    gaussian_teacher,
    gaussian_teacher_test,
    symmetric_separable,
)
from reluflow.problem.datasets.mmv24 import separable, toy6, two_points
from reluflow.problem.datasets.mnist import mnist_digits, mnist_pair
from reluflow.problem.datasets.registry import (
    FILE_OPTIONS,
    REGISTRY,
    Dataset,
    load,
    names,
    read_csv,
    read_npz,
)
from reluflow.problem.datasets.tk24 import (
    ideal_xor,
    remaining_fixture,
    skewed_xor,
    symmetric_xor,
    xor_orbit,
)
from reluflow.problem.datasets.tlb26 import golden, orthonormal

__all__ = [
    "FILE_OPTIONS",
    "REGISTRY",
    "Dataset",
    "a3c",
    "assumption3_box",
    "figure1_left",
    "figure1_middle",
    "figure1_right",
    "gaussian_teacher",
    "gaussian_teacher_test",
    "golden",
    "hinted",
    "ideal_xor",
    "load",
    "mnist_digits",
    "mnist_pair",
    "names",
    "orthonormal",
    "read_csv",
    "read_npz",
    "remaining_fixture",
    "separable",
    "skewed_xor",
    "stewart",
    "symmetric_separable",
    "symmetric_xor",
    "three_points",
    "toy6",
    "two_points",
    "xor_orbit",
]
