"""The verdict says PROVED of what is proved, and of nothing else."""

from types import SimpleNamespace

import pytest

from reluflow.explanation.verdict.sentences import proofs
from reluflow.optimum.checker import KINDS


def found(**grades):
    return SimpleNamespace(
        certificates=[
            SimpleNamespace(
                kind=kind.replace("_", "-"),
                grade=grade,
                claim={"distance": 2.0e-7} if grade == "PROVED" else {"residual": 1e-3},
            )
            for kind, grade in grades.items()
        ]
    )


def test_the_two_words():
    text = proofs(found(stationary="PROVED", kkt_margin="CHECKED"))
    proved, checked = text.split(" CHECKED ")
    assert (
        proved
        == "PROVED (in exact arithmetic): an exact stationary point near the end (within 2.1e-07)."
    )
    assert checked == "(numerical only): an exact KKT point of the margin near the end."


@pytest.mark.parametrize("kind", KINDS)
def test_checked_is_never_called_proved(kind):
    assert "PROVED" not in proofs(found(**{kind: "CHECKED"}))
    assert "proved" not in proofs(found(**{kind: "CHECKED"})).lower()


def test_nothing_to_say():
    assert proofs(found()) == ""
