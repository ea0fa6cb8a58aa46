"""Points of a sweep: which, in what order, and with which random numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reluflow.errors import ReluflowError
from reluflow.sweeps.grid import make_grid, read_field, seeds_of


def points(grid):
    return [grid.point(i) for i in range(len(grid))]


def test_cross_product_repetitions_fastest():
    grid = make_grid({"init": {"m": [1, 2]}, "kind": ["a", "b", "c"], "n": 4}, seeds=2)
    assert len(grid) == 12
    found = [(p.settings["init.m"], p.settings["kind"], p.seed) for p in points(grid)]
    assert found == [(m, k, s) for m in (1, 2) for k in "abc" for s in (0, 1)]
    assert all(p.settings["n"] == 4 for p in points(grid))
    assert [p.index for p in points(grid)] == list(range(12))
    assert len({p.id for p in points(grid)}) == 12


def test_paired_fields_vary_together():
    grid = make_grid({"a": [1, 2], "b": [5, 6, 7], "c": [3, 4]}, pair=[["a", "c"]])
    found = {(p.settings["a"], p.settings["c"], p.settings["b"]) for p in points(grid)}
    assert found == {(a, a + 2, b) for a in (1, 2) for b in (5, 6, 7)}


@pytest.mark.parametrize(
    ("spec", "values"),
    [
        ({"from": 1, "to": 9, "step": 4}, [1, 5, 9]),
        ({"from": 0.0, "to": 1.0, "num": 3}, [0.0, 0.5, 1.0]),
        ({"from": 1e-4, "to": 1.0, "num": 3, "log": True}, [1e-4, 1e-2, 1.0]),
        ({"from": 1, "to": 10, "num": 20, "log": True}, list(range(1, 11))),
        ({"from": 0.1, "to": 0.5, "step": 0.2}, [0.1, 0.3, 0.5]),
        (np.array([1, 3]), [1, 3]),
        (range(3), [0, 1, 2]),
    ],
)
def test_ranges(spec, values):
    swept, found = read_field("f", spec)
    assert swept
    assert found == pytest.approx(values)
    assert all(type(f) is type(v) for f, v in zip(found, values, strict=True))


def test_a_list_as_one_value():
    assert read_field("f", {"value": [1, 2]}) == (False, [[1, 2]])


@pytest.mark.parametrize(
    ("grid", "options", "words"),
    [
        ({"a": []}, {}, "a is an empty list"),
        ({"a": {"from": 2, "to": 1, "step": 1}}, {}, "a is an empty range"),
        ({"a": {"from": 2, "to": 1, "num": 0}}, {}, "a is an empty range"),
        ({"a": {"from": -1, "to": 1, "num": 3, "log": True}}, {}, "must be positive"),
        ({"a": {"from": 1, "to": 2, "count": 3}}, {}, "a is not a range"),
        ({"a": [1, 1]}, {}, "a lists 1 twice"),
        ({"a": object()}, {}, "a holds object"),
        ({"seed": 1}, {}, "cannot be called 'seed'"),
        ({"a": [1, 2], "b": [1]}, {"pair": [["a", "b"]]}, "equally many values, got a 2, b 1"),
        ({"a": [1, 2], "b": 1}, {"pair": [["a", "b"]]}, "pair names 'b'"),
        ({"a": [1]}, {"shared": ["b"]}, "shared names 'b'"),
        ({"a": [1]}, {"seeds": 0}, "at least 1"),
        ({"a": [1]}, {"seeds": [1, 1]}, "different numbers"),
        ({"a": [1]}, {"root": -1}, "seed must be a whole number"),
    ],
)
def test_bad_grids_are_one_sentence(grid, options, words):
    with pytest.raises(ReluflowError, match=words) as caught:
        make_grid(grid, **options)
    assert "\n" not in str(caught.value)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(-5, 50), min_size=1, max_size=5, unique=True),
    st.lists(st.floats(-3, 3), min_size=1, max_size=4, unique_by=repr),
    st.integers(1, 4),
)
def test_random_numbers_do_not_depend_on_the_rest_of_the_grid(ms, scales, seeds):
    """A point draws the same whatever else is swept, and in whatever order."""
    whole = make_grid({"m": ms, "s": scales}, seeds)
    turned = make_grid({"s": scales[::-1], "m": ms[::-1]}, seeds)
    draws = {(p.settings["m"], repr(p.settings["s"]), p.seed): p.draw for p in points(whole)}
    for p in points(turned):
        assert draws[p.settings["m"], repr(p.settings["s"]), p.seed] == p.draw
    alone = make_grid({"m": ms[0], "s": scales[0]}, [seeds - 1]).point(0)
    assert draws[ms[0], repr(scales[0]), seeds - 1] == alone.draw


def test_streams_differ_between_points_and_roots():
    grid = make_grid({"m": list(range(50))}, seeds=4)
    first = [int(seeds_of(r, p.draw).generate_state(1)[0]) for r in (0, 1) for p in points(grid)]
    assert len(set(first)) == len(first)


def test_whole_floats_are_the_same_setting():
    assert make_grid({"s": 1}).point(0).draw == make_grid({"s": 1.0}).point(0).draw


def test_shared_fields_keep_the_draw():
    grid = make_grid({"m": [1, 2], "s": [0.1, 0.2]}, 2, shared=["s"])
    draws = {}
    for p in points(grid):
        draws.setdefault((p.settings["m"], p.seed), set()).add(p.draw)
    assert [len(v) for v in draws.values()] == [1] * 4
    assert len(set.union(*draws.values())) == 4
    assert len({p.id for p in points(grid)}) == 8
