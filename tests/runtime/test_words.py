"""Numbers as they stand in a sentence."""

from reluflow.runtime.words import percent


def test_percentages_that_round_to_nothing_have_no_sign():
    assert percent(0.013) == "+1.3 %"
    assert percent(-0.013) == "-1.3 %"
    assert percent(-1e-6) == percent(1e-6) == percent(0.0) == "0.0 %"
