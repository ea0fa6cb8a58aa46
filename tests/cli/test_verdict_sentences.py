"""Sentences of the verdict that must not mislead: shares, clocks, sizes, poor predictions."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from reluflow import Network, Problem, flow, initialize, limit
from reluflow.claims.compare import Comparison, JumpRow, _seen, compare
from reluflow.claims.evidence import Evidence
from reluflow.explanation.end import (
    carriers,
    fitted_samples,
    groups_of,
    leading_share,
    silent_samples,
)
from reluflow.explanation.explain import explain
from reluflow.explanation.explanation import Explanation
from reluflow.explanation.page import _loss, _margins, in_real_time, page_of
from reluflow.explanation.simulate import SlowDirection
from reluflow.explanation.verdict.course import (
    _agreement,
    _seen_in_run,
    directions,
    in_flow_time,
)
from reluflow.explanation.verdict.outcome import best, end
from reluflow.explanation.verdict.sentences import sentences
from reluflow.gradientflow.mover import Snapshot
from reluflow.gradientflow.stops import Worked
from reluflow.optimum import max_margin
from reluflow.optimum.kkt import settling_rate
from reluflow.runtime.words import share
from reluflow.trajectory.save import every


@pytest.fixture(scope="module")
def large_and_small():
    return explain(Problem(np.eye(2), [1e5, 1.0]), progress=False)


@pytest.fixture(scope="module")
def separated():
    X = [[1.0, 0.2], [0.8, 1.1], [1.5, -0.3], [-1.0, 0.4], [-0.7, -0.9], [-1.3, 0.1]]
    problem = Problem(X, [1.0, 1.0, 1.0, -1.0, -1.0, -1.0], loss="logistic")
    return explain(problem, m=40, progress=False)


def test_a_small_label_beside_a_large_one(large_and_small):
    found = dict(large_and_small.verdict)
    assert large_and_small.outputs == pytest.approx([1e5, 1.0])
    assert found["In short"].endswith("fits every label.")
    assert "raises f on both samples" in found["Directions"]
    assert found["Ignored"] == "Nothing: every sample is fitted and every feature is read."


def test_a_small_label_that_is_not_fitted():
    """The loss is 1e-10 of the first one, all of it at sample 1."""
    problem = Problem(np.eye(2), [1e5, 1.0])
    one = Network([[np.sqrt(1e5), 0.0]], [np.sqrt(1e5)])
    f = problem.outputs(one)
    assert fitted_samples(problem, f).tolist() == [True, False]
    assert silent_samples(problem, f).tolist() == [False, True]
    (group,) = groups_of(problem, one)
    assert (group.active, group.edge) == ((0,), (1,))
    both = Network([[np.sqrt(1e5), 0.0], [0.0, 1.0]], [np.sqrt(1e5), 1.0])
    assert [g.active for g in groups_of(problem, both)] == [(0,), (1,)]
    assert carriers(problem, both).tolist() == [0, 1]
    assert leading_share(problem, both).tolist() == [0.5, 0.5]


def test_shares_are_never_rounded_up_to_all():
    assert share(0.156793, 0.156821) == "99.982 %"
    assert share(0.9999999, 1.0).startswith("99.9999")
    assert share(0.8175, 1.0) == "81.7 %"
    assert share(1.0, 1.0) == "100 %"
    for part in np.geomspace(1e-7, 0.5, 30):
        said = float(share(1.0 - part, 1.0).split()[0])
        assert said <= 100.0 * (1.0 - part) + 1e-12
        assert 100.0 - said == pytest.approx(100.0 * part, rel=0.11)


def test_the_share_reached_is_said_and_nothing_more(separated):
    found = dict(separated.verdict)
    top = max_margin(separated.problem).margin
    assert separated.margin < top
    for topic in ("In short", "Best possible"):
        said = float(re.search(r"([\d.]+) % of", found[topic])[1])
        assert said <= 100 * separated.margin / top
    assert "no network of any width has more" not in separated.text
    assert ": global" not in separated.text


def test_margins_of_linear_models_are_put_on_the_scale_of_networks(separated):
    gamma = max_margin(separated.problem, "linear").margin
    text = dict(separated.verdict)["Best possible"]
    assert f"{gamma:.6g} per unit of |w|" in text
    assert f"normalised margin {gamma / 4:.6g}" in text
    pair = max_margin(separated.problem, "linear").w
    net = Network([pair, -pair], [1.0, -1.0])  # the linear model as a network
    q = (separated.problem.y * separated.problem.outputs(net)).min()
    assert q / 4.0 == pytest.approx(gamma / 4)


def test_one_clock_on_the_page(separated):
    run = in_real_time(separated.run)
    assert run.settings["clock"] == "time"
    assert _loss(separated, run).xlabel == "time"
    late = _margins(separated, run)
    beyond = float(separated.run["log_time"][-1]) > np.log(1e9)
    assert late.xlabel == ("log10 of time" if beyond else "time")
    if beyond:
        assert late.xlim[1] == pytest.approx(separated.run["log_time"][-1] / np.log(10.0))
    assert "loss dt" not in page_of(separated).html
    assert in_real_time(separated.run).times == pytest.approx(separated.run.flow_times)


def test_claims_see_gradient_flow_time(separated):
    """A run on the clock of the loss was held against laws in t with its own s."""
    evidence = Evidence.of(separated.problem, separated.run, separated.net)
    assert separated.run.settings["clock"] == "loss"
    assert evidence.times.tolist() == separated.run.flow_times.tolist()
    assert separated.failed == []


def test_times_of_the_limit_are_said_in_gradient_flow_time():
    """Of a start at e^-20 the sentence that `balance_words` makes."""
    sentence = "neuron 3 would jump near time 1.25 log(1/scale) with |a| > |w|."
    assert in_flow_time(sentence, -20.0) == "neuron 3 would jump near time 25 with |a| > |w|."


def test_budgets_end_at_gradient_flow_time():
    problem = Problem([[1.0, 0.2], [-1.0, 0.4]], [1.0, -1.0], loss="logistic")
    net = initialize(problem, 4, 1e-3, rng=0)
    at_once = flow(problem, net, clock="loss", stop=[Worked(-1.0)], save=[0.0], progress=False)
    assert str(at_once.status).endswith("ended at time 0.")
    run = flow(problem, net, clock="loss", max_steps=15, save=[0.0], progress=False)
    when = float(re.search(r"ended at time ([^:]+):", str(run.status))[1])
    assert when == pytest.approx(np.exp(run.cost["log_time"]), rel=1e-4)
    assert when != pytest.approx(run.times[-1], rel=1e-2)


def row(**changes):
    given = dict(
        jump=1,
        predicted=10.0,
        simulated=10.0,
        leading=False,
        loss=0.0,
        simulated_loss=0.0,
        neurons=3,
        held=1.0,
        new=1.0,
        new_predicted=1.0,
        gap=None,
        rest=None,
    )
    return JumpRow(**{**given, **changes})


@pytest.mark.parametrize("fragile", [True, False])
def test_a_prediction_far_off_is_called_poor(fragile):
    def said(*rows):
        return _agreement(Comparison(rows, 0.0, 0.0, 1.0, fragile))

    assert "30 % later than predicted" in said(row(simulated=13.0))
    assert "The prediction is poor" in said(row(simulated=13.0))
    assert "jump 2 comes 40 % earlier" in said(row(), row(jump=2, simulated=6.0))
    assert "poor: jump 1 cannot be seen" in said(row(simulated=None))
    assert "poor" not in said(row(simulated=10.8))
    assert "agrees" in said(row(simulated=10.1))


@pytest.mark.parametrize("fragile", [True, False])
@pytest.mark.parametrize("whole", [True, False])
def test_the_limit_says_why_a_jump_comes_at_another_time(fragile, whole):
    def said(*rows):
        return _agreement(Comparison(rows, 0.0, 0.0, 1.0, fragile), whole)

    doubt = "the next candidate is 0.02 of the time later"
    text = said(row(doubt=doubt), row(jump=2, simulated=10.8, doubt="jump 1 is in doubt"))
    assert "Why times may differ from this scale: jump 2 (jump 1 is in doubt)." in text
    assert doubt not in text, "jump 1 comes when it was predicted"
    both = said(row(simulated=None, doubt=doubt), row(jump=2, simulated=13.0, doubt=doubt))
    assert f"Why times may differ from this scale: jumps 1 and 2 ({doubt})." in both
    assert "gives no reason why jump 1 should" in said(row(simulated=12.0))
    assert "differ from this scale" not in said(row(doubt=doubt))


def test_doubts_of_the_limit_reach_the_comparison():
    problem = Problem(np.eye(2), [1.02, 1.0])
    net = Network([[1e-6, -1e-6], [-1e-6, 1e-6]], [1.4142e-6, 1.4142e-6])  # one for each sample
    process = limit(problem, net)
    times = process.jump_times(log_scale=float(net.log_norms.max()))
    run = flow(problem, net, t_end=2.0 * float(times[-1]), save=every(1.0), progress=False)
    scale = float(net.log_norms.max())
    rows = compare(process, run, run.flow_times, scale, float(run.loss[-1])).rows
    assert tuple(r.doubt for r in rows) == process.doubts_at(log_scale=scale)
    assert rows[0].doubt.startswith("the next candidate is 0.0")


def test_jumps_that_overlap_are_seen_as_one():
    """The run is above the last half for as long as one looks: both jumps are one fall of it."""
    times, loss = np.arange(6.0), np.array([1.0, 1.0, 0.6, 0.3, 0.21, 0.2])
    levels = np.array([1.0, 0.25, 0.1])  # the half of the second fall is 0.175
    assert _seen(times, loss, levels, np.array([False, False]))[0][1] is None
    found, as_one = _seen(times, loss, levels, np.array([False, True]))
    assert as_one == [(1, 2), (1, 2)]
    assert found == [pytest.approx(2.0 + 0.05 / 0.3)] * 2  # where the loss is 0.55
    found, as_one = _seen(times, np.append(loss[:-1], 0.1), levels, np.array([False, True]))
    assert as_one == [None, None]  # each is seen by itself
    assert None not in found
    rows = (
        row(jump=1, predicted=5.0, simulated=5.1),
        row(jump=2, predicted=9.8, simulated=10.0, as_one=(2, 3), simulated_loss=None, held=None),
        row(jump=3, predicted=9.86, simulated=10.0, as_one=(2, 3)),
    )
    said = _seen_in_run(rows)
    assert said == (
        " In the simulation jump 1 comes at 5.1 (+2.0 %) and jumps 2 and 3, 0.06 apart as "
        "predicted, come as one at 10 (+2.0 %)."
    )
    assert Comparison(rows, 0.0, 0.0, 1.0, True).agrees  # there is no level between them
    unseen = [replace(r, simulated=None) for r in rows[1:]]
    assert "jumps 2 and 3, 0.06 apart as predicted, are not seen" in _seen_in_run(
        (rows[0], *unseen)
    )


@pytest.mark.parametrize(("second", "overlap"), [(0.9999, True), (0.8, False)])
def test_the_limit_knows_which_jumps_overlap(second, overlap):
    """Two orthonormal samples: rates y_k / 2, jumps at log(1/scale) over these."""
    problem = Problem(np.eye(2), [1.0, second])
    process = limit(problem, directions=np.array([[1.0, -1.0], [-1.0, 1.0]]), signs=[1, 1])
    apart = float(np.diff(process.jump_times(1e-6))[0])
    assert (apart * 0.5 < 1.0) == overlap
    assert process.overlaps_at(1e-6).tolist() == [False, overlap]
    said = f"it comes {apart:.2g} after jump 1, before that one is done"
    assert (said in process.doubts_at(1e-6)[1]) == overlap
    assert not process.overlaps_at(log_scale=-1e8).any()  # a smaller scale separates them


def stub(problem, net, **more):
    """What the sentences about the end of a run look at."""
    given = dict(
        problem=problem,
        net=net,
        groups=groups_of(problem, net),
        kkt=None,
        optimum=None,
        certificates=(),
        alignment=None,
        landscape=None,
        settling=None,
        silent=False,
        first_loss=1.0,
        run=SimpleNamespace(status=SimpleNamespace(code="settled", ok=True), final=net),
    )
    e = SimpleNamespace(**{**given, **more})
    e.outputs = problem.outputs(net)
    e.margins, e.unlearnt = problem.y * e.outputs, silent_samples(problem, e.outputs)
    e.margin, e.loss = float(e.margins.min()), float(problem.value(e.outputs))
    return e


def test_a_least_margin_at_rounding_level_is_zero():
    problem = Problem(np.eye(2), [1.0, 1.0], loss="logistic")
    e = stub(problem, Network([[3.0, -1e-17], [0.0, 1e-9]], [3.0, -1e-9]))
    assert e.margins.min() < 0.0
    assert "Least margin y f(x) 0 (no output on sample 1)" in end(e)
    assert "e-1" not in end(e).split(",")[0]


def test_a_slow_direction_is_called_slow():
    problem = Problem(np.eye(2), [1.0, -1.0], loss="logistic")
    net = Network([[3.0, 0.0], [0.0, 3.0]], [3.0, -3.0])
    residual = SimpleNamespace(residual=5e-3)
    slow = end(stub(problem, net, kkt=residual, settling=0.025))
    assert "settles slowly: its slowest mode falls as |theta|^-0.025" in slow
    assert "leaves 97.2 %" in slow
    assert "slowly" not in end(stub(problem, net, kkt=residual, settling=1.0))
    departs = end(stub(problem, net, kkt=residual, settling=-0.2))
    assert "training departs from it" in departs
    wide = max_margin(problem)
    assert "its limit is not global" not in best(
        stub(problem, Network([[3.0, 3.0]], [3.0]), optimum=wide, settling=0.025)
    )


def test_slow_directions_end_the_run():
    """Late in a run on three samples: the first neuron slides on a kink, sizes shift slowly."""
    X = [[-0.0211, -0.1822, 1.0], [0.8885, -1.1435, 1.0], [-0.0176, 0.0128, 1.0]]
    problem = Problem(X, [1.0, -1.0, -1.0], loss="logistic")
    W = np.array([[310.718, 239.759, 50.24], [-248.757, -199.546, 7.953]])
    a = np.array([-395.67, 319.001])
    assert settling_rate(problem, Network(W, a)) == pytest.approx(0.0252, abs=1e-4)
    mover = SimpleNamespace(cost={"steps": 100}, f=problem.outputs(Network(W, a)))
    mover.present = lambda: Snapshot(0.0, np.column_stack([W, a]), np.zeros(len(a)), 0.0)
    status = SlowDirection().met(mover, problem)
    assert status.code == "slow"
    assert status.ok
    mover.cost["steps"] = 101  # looked at now and then
    assert SlowDirection().met(mover, problem) is None
    mover.cost["steps"], mover.f = 100, mover.f / 100.0  # too early
    assert SlowDirection().met(mover, problem) is None


def test_neurons_that_are_left_out_are_accounted_for():
    problem = Problem(np.eye(2), [1.0, 1.0])
    net = Network([[1.0, 0.0], [0.0, 1.0], [0.01, 0.0], [0.0, 1e-8]], [1.0, 1.0, 0.01, 1e-8])
    growing = np.ones(4, dtype=bool)
    paths = SimpleNamespace(
        growing=growing,
        dead=~growing,
        sign=np.ones(4),
        direction=net.directions,
        time=np.ones(4),
        cosine=0.99,
    )
    text = directions(stub(problem, net, alignment=paths))
    assert "4 of 4 neurons" in text
    assert text.count("(one neuron,") == 2
    assert "Two neurons more that grow are too small to count: 0.005 % of the output" in text


def test_every_topic_can_be_said(separated):
    assert isinstance(separated, Explanation)
    assert [topic for topic, _ in sentences(separated)][:4] == [
        "In short",
        "Directions",
        "Jumps",
        "End",
    ]
