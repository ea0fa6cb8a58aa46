"""What a progress bar says of time."""

import pytest

from reluflow.runtime import Progress


def bar_after(samples, total=100, **options):
    """The text beside a bar after reports of (elapsed, done)."""
    with Progress(total, "test", show=True, **options) as bar:
        for elapsed, done in samples:
            bar.update(done, elapsed)
        return bar.clock()


def steady(pace, until, step=0.5):
    return [(k * step, pace * k * step) for k in range(1, int(until / step) + 1)]


def test_no_estimate_before_there_is_ground_for_one():
    assert bar_after([(1.5, 50)]) == "0 s so far"  # half done within two seconds
    assert bar_after([(20.0, 2)]) == "0 s so far"  # too little done
    assert bar_after(steady(1.0, 20.0), even=False) == "0 s so far"


def test_a_steady_pace_gives_the_time_left():
    assert bar_after(steady(1.0, 20.0)) == "about 80 s left"
    assert bar_after(steady(0.1, 100.0)) == "about 15 min left"


def test_what_was_stored_before_does_not_count_as_quick_work():
    # sixty parts at once, then ten in twenty seconds: the thirty that are left take sixty
    samples = [(0.01, 60.0), *((2.0 * k, 60.0 + k) for k in range(1, 11))]
    said = bar_after(samples)
    assert said.startswith("about ")
    assert float(said.split()[1]) == pytest.approx(60.0, rel=0.1)


def test_reports_without_number_are_thinned():
    with Progress(1e6, "test", show=True) as bar:
        for k in range(100_000):
            bar.update(k, 1.0 + k * 1e-3)
        assert len(bar._past) < 1000
