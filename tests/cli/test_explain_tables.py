"""explain on tables: horizons, unseen rows, units of the file, neurons followed, sentences once."""

import json
import math
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from reluflow import (
    Network,
    Problem,
    Trajectory,
    align,
    datasets,
    extremal_vectors,
    flow,
    initialize,
    limit,
)
from reluflow.explanation import simulate as simulation
from reluflow.explanation import stages, unseen
from reluflow.explanation.explain import Announcer, explain
from reluflow.explanation.horizon import (
    Horizon,
    compare_tolerances,
    last_located,
    step_tolerance,
)
from reluflow.explanation.page import page_of
from reluflow.explanation.settings import Settings
from reluflow.explanation.simulate import Resting, SlowDirection
from reluflow.explanation.unseen import score_unseen
from reluflow.explanation.verdict.course import _agreement, first_turns, predicted_jumps
from reluflow.explanation.verdict.reach import horizon as horizon_words
from reluflow.explanation.verdict.words import data_notes
from reluflow.landscape.estimate import estimated_directions
from reluflow.problem.tables import to_file_units, unseen_scores
from reluflow.trajectory import Status

pd = pytest.importorskip("pandas")


def fruit(n=40, seed=0):
    """A table of two classes in units of very different size."""
    rng = np.random.default_rng(seed)
    kind = np.where(np.arange(n) % 2, "pear", "fig")
    sign = np.where(kind == "pear", 1.0, -1.0)
    grams = 150.0 + 40.0 * sign + 10.0 * rng.standard_normal(n)
    density = 1.0 - 0.01 * sign + 0.01 * rng.standard_normal(n)
    return pd.DataFrame({"grams": grams, "density": density, "kind": kind})


@pytest.fixture(scope="module")
def sold():
    problem = Problem.from_table(fruit(), standardize=True, bias=1.0, holdout=0.25)
    return explain(problem, m=12, progress=False)


# ---------------------------------------------------------------------- horizon
def made_run(times, loss, **settings):
    problem = Problem(np.eye(2), [1.0, 2.0])
    net = Network(np.eye(2), np.ones(2))
    given = {"kind": "flow", "kinks": False, "rtol": 1e-3, **settings}
    run = flow(problem, net, t_end=1.0, save=[0.0, 1.0], progress=False)
    loss = np.asarray(loss, dtype=float)
    return replace(
        run,
        times=np.asarray(times, dtype=float),
        steps=np.arange(len(loss)),
        loss=loss,
        log_loss=np.log(loss),
        networks=None,
        settings=given,
    )


def test_two_tolerances_agree_until_the_losses_part():
    times = np.arange(11.0)
    fine = made_run(times, np.linspace(1.0, 0.5, 11))
    later = np.linspace(1.0, 0.5, 11) + np.where(times > 6.5, 0.02, 0.005)
    found = compare_tolerances(fine, made_run(times, later, rtol=1e-2))
    assert (found.time, found.whole) == (6.0, False)
    assert found.tolerances == (1e-3, 1e-2)
    near = np.linspace(1.0, 0.5, 11) + 0.005
    assert compare_tolerances(fine, made_run(times, near)).whole
    short = compare_tolerances(fine, made_run(times[:5], near[:5]))
    assert (short.time, short.whole) == (4.0, True)


def test_only_runs_that_pass_over_kinks_have_a_horizon():
    located = made_run([0.0, 1.0], [1.0, 0.5], kinks=True)
    assert step_tolerance(located) is None
    assert step_tolerance(made_run([0.0, 1.0], [1.0, 0.5])) == 1e-3
    change = {"position": 0.5, "rtol": 3e-3, "to": "unlocated"}
    handed = made_run([0.0, 1.0], [1.0, 0.5], kinks=True, handovers=[change])
    assert step_tolerance(handed) == 3e-3
    assert compare_tolerances(handed, handed).since == 0.5


def test_the_horizon_is_in_verdict_page_and_json(monkeypatch, tmp_path):
    monkeypatch.setattr(simulation, "_LOCATED", 0.0)
    found = explain(datasets.golden(), m=10, out=tmp_path, progress=False)
    assert found.horizon is not None
    assert found.horizon.tolerances == pytest.approx((1e-3, 1e-2))
    said = dict(found.verdict)["Horizon"]
    assert said.startswith("Kinks were not located. Runs with errors of 0.001 and 0.01 in a step")
    kept = json.loads((tmp_path / "report.json").read_text())["horizon"]
    assert kept == found.horizon.to_dict()
    page = re.sub("<[^>]*>", "", (tmp_path / "report.html").read_text())  # terms are links
    assert "Horizon: Kinks were not located" in page
    again = Trajectory.load(tmp_path / "run.nc")
    assert Horizon.of_run(again) == found.horizon


def test_a_run_that_left_another_one_agrees_before_that():
    times, losses = np.arange(9.0), np.linspace(1.0, 0.2, 9)
    change = {"position": 4.5, "rtol": 1e-3, "to": "unlocated"}
    fine = made_run(times, losses, kinks=True, handovers=[change])
    after = made_run(times[:5], losses[4:], rtol=1e-2)
    assert compare_tolerances(fine, after, began=4.0).whole
    assert compare_tolerances(fine, after, began=4.0).time == 8.0
    assert not compare_tolerances(fine, after).whole
    later = np.append(losses[4:8], 0.5)
    assert compare_tolerances(fine, made_run(times[:5], later, rtol=1e-2), began=4.0).time == 7.0
    assert last_located(fine) == 0, "no networks to go on from"
    assert last_located(replace(fine, networks=[None] * 9)) == 4


def test_tables_with_many_kinks_are_whole():
    """Landings on kinks run out: steps pass over them, to a named end, with a horizon."""
    rng = np.random.default_rng(1)
    angle = rng.uniform(0.0, 2.0 * np.pi, 60)
    y = np.where(np.arange(60) % 2, 1.0, -1.0)
    ring = np.where(y > 0, 1.0, 0.5)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    problem = Problem(ring, y, loss="logistic", bias=1.0)
    net = initialize(problem, 150, 1e-4, rng=0)
    settings = Settings(m=150, scale=1e-4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "_LANDINGS", 20)
        run = simulation.simulate(problem, net, settings, 400.0)
        changes = run.settings["handovers"]
        assert changes[0]["reason"] == "after 20 landings"
        to = [change["to"] for change in changes]  # back again where neurons slide
        assert to == ["unlocated", "located"] * (len(to) // 2) + ["unlocated"] * (len(to) % 2)
        assert run.cost["landings"] == 20 * to.count("unlocated")
        assert run.status.ok
        assert run.status.code in ("loss", "resting", "far")
        surer = simulation.with_horizon(run, net, settings, 400.0, None)
    h = Horizon.of_run(surer)
    assert h.tolerances == pytest.approx((1e-3, 1e-2))
    assert 0.0 < h.since < h.time <= run.flow_times[-1]


def test_unlocated_runs_end_by_their_loss_or_their_steps():
    problem = Problem(np.eye(2), [1.0, -1.0], loss="logistic")
    mover = SimpleNamespace(kind="located", t=3.0, log_time=1.0, cost={"steps": 50})
    mover.data, mover.f = SimpleNamespace(by_loss=True), np.array([9.0, -9.0])
    watch = simulation.Unlocatable(horizon=2.0, steps=10).watch(problem)
    assert watch.met(mover) is None, "kinks are located"
    mover.kind = "unlocated"
    assert watch.met(mover).code == "loss"
    mover.f = np.array([1.0, -1.0])
    mover.cost["steps"] = 59
    assert watch.met(mover) is None
    mover.cost["steps"], mover.log_time = 60, 0.0
    assert watch.met(mover) is None, "before the horizon"
    mover.log_time = 1.0
    status = watch.met(mover)
    assert (status.code, status.ok) == ("far", True)
    assert "10 steps that do not locate kinks led to time 2.71828" in str(status)


def test_a_horizon_before_the_end_is_said():
    e = SimpleNamespace(horizon=Horizon(120.0, False, 30.0, (1e-3, 1e-2)))
    text = horizon_words(e)
    assert text.startswith("From time 30 on kinks were not located.")
    assert "until time 120, the horizon: what comes later depends" in text
    # the coarser run may end first: agreement is claimed as far as both go, not to the end
    e = SimpleNamespace(horizon=Horizon(32.3, True, 0.0, (1e-3, 1e-2)))
    assert horizon_words(e).endswith("as far as both go, to time 32.3.")


# ---------------------------------------------------------------------- ends
def test_a_direction_is_as_far_from_its_limit_as_the_stop_says():
    X = [[1.0, 0.2], [0.8, 1.1], [1.5, -0.3], [-1.0, 0.4], [-0.7, -0.9], [-1.3, 0.1]]
    problem = Problem(X, [1.0, 1.0, 1.0, -1.0, -1.0, -1.0], loss="logistic")
    net = initialize(problem, 8, 1e-3, rng=0)
    run = flow(problem, net, clock="loss", stop=[SlowDirection(fastest=1.0)], progress=False)
    assert run.status.code == "settling"
    said = float(str(run.status).split("about ")[1].split(" of its")[0])
    late = flow(problem, run.final, clock="loss", stop=[Late(2e4)], rtol=1e-6, progress=False)
    distance = np.linalg.norm(unit(run.final) - unit(late.final))
    assert distance < said < 10.0 * distance


def unit(net):
    flat = np.concatenate([p.ravel() for p in net.scaled(-net.log_m_norm).weights()])
    return flat / np.linalg.norm(flat)


class Late:
    """A margin is reached."""

    def __init__(self, margin):
        self.margin = margin

    def met(self, mover, problem):
        late = float(np.min(problem.y * mover.f)) >= self.margin
        return Status("late", "The margin is reached.") if late else None


def test_a_loss_that_hardly_falls_ends_the_run():
    problem = Problem(np.eye(2), [1.0, 2.0])
    watch = Resting(10.0, 1e-2).watch(problem)

    def at(time, loss):
        f = problem.y - math.sqrt(2.0 * loss)  # both samples off by the same
        return watch.met(
            SimpleNamespace(
                log_time=math.log(time), t=time, f=f, data=SimpleNamespace(by_loss=False)
            )
        )

    assert at(5.0, 1.0) is None  # before its time
    assert at(10.0, 0.5) is None  # nothing to compare with
    assert at(15.0, 0.5) is None  # not yet doubled
    assert at(20.5, 0.4) is None  # it falls
    status = at(42.0, 0.399)
    assert (status.code, status.ok) == ("resting", True)


def test_separated_samples_do_not_end_by_their_loss():
    problem = Problem(np.eye(2), [1.0, -1.0], loss="logistic")
    for f, ends in (([20.0, -20.0], False), ([20.0, 0.0], True)):
        watch = Resting(1.0).watch(problem)
        mover = SimpleNamespace(f=np.array(f), t=0.0, data=SimpleNamespace(by_loss=False))
        for time in (1.0, 3.0):
            mover.log_time = math.log(time)
            status = watch.met(mover)
        assert (status is not None) is ends


# ---------------------------------------------------------------------- neurons followed
def test_as_many_neurons_are_followed_as_the_work_allows(monkeypatch):
    problem = datasets.golden()
    net = initialize(problem, 20, 1e-6, rng=0)
    landscape = stages.find_directions(problem, net)
    whole = align(problem, net, paths=False)
    monkeypatch.setattr(stages, "can_follow", lambda problem, m: False)
    joined = stages.follow_neurons(problem, net, landscape)
    for name in ("direction", "growth", "sign", "time", "log_gain", "ends", "counts"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name))
    monkeypatch.setattr(stages, "PATH_WORK", 3.0 * problem.X.size)
    few = stages.follow_neurons(problem, net, landscape)
    assert 0 < few.sign.size < 20
    np.testing.assert_array_equal(few.direction, whole.direction[: few.sign.size])
    text = first_turns(landscape, few, net.m)
    assert text.endswith(f"Of 20 neurons {few.sign.size} were followed.")
    assert "followed" not in first_turns(landscape, whole, net.m)


def test_where_no_neuron_was_followed_directions_are_said_with_how_sure_they_are():
    problem = datasets.three_points()
    exact = first_turns(extremal_vectors(problem), None, 200)
    assert exact == "Small neurons turn to one direction (all that there are)."
    found = estimated_directions(problem, initialize(problem, 64, 1e-6, rng=0))
    text = first_turns(found, None, 200)
    assert text.startswith("Small neurons turn to one direction (found; there may be more).")
    # of 64 starts some 62 % of the positive ones lead there, and no negative one anywhere
    shares = {where: float(share) for share, where in re.findall(r"([\d.]+) % to (one|none)", text)}
    assert shares["one"] == pytest.approx(62.2, abs=20.0)
    assert shares["one"] + shares["none"] == pytest.approx(100.0, abs=0.2)
    assert f"growth rate {found.values.max():.3g}" in text
    assert "negative" not in text
    assert text.endswith("(estimated).")


def test_a_process_cut_short_says_what_it_found():
    problem = Problem(np.eye(2), [2.0, 1.0])
    start = {"directions": [[1.0, -1.0], [-1.0, 1.0]], "signs": [1, 1]}
    process = limit(problem, **start, max_jumps=1)
    assert process.ending == "budget"
    assert "neurons that were followed" not in predicted_jumps(process, -15.0, 2)
    text = predicted_jumps(process, -15.0, 5)
    assert "the jumps of the 2 neurons that were followed" in text
    assert "jump 1 of" in text
    assert "Found so far, later jumps are not known" in text
    row = SimpleNamespace(close=True, simulated=1.0, jump=1)
    assert "So far the times agree" in _agreement(SimpleNamespace(rows=(row,)), whole=False)


# ---------------------------------------------------------------------- data
def test_unseen_rows_are_scored_along_the_run_and_on_plateaus(sold, tmp_path):
    found = sold.unseen
    problem = sold.problem
    assert found.end == unseen_scores(problem, sold.run.final)
    assert found.end.rows == 10
    assert len(found.times) == len(found.loss) == len(sold.run)
    middle = len(sold.run) // 2
    scores = unseen_scores(problem, sold.run.networks[middle])
    assert (found.loss[middle], found.score[middle]) == (scores.loss, scores.accuracy)
    assert found.loss[0] == pytest.approx(np.log(2.0), rel=1e-6)
    said = dict(sold.verdict)["Unseen rows"]
    assert said.startswith(
        f"On ten unseen rows the network at the end has loss {found.end.loss:.6g}"
    )
    assert f"{100 * found.end.accuracy:.1f} % right" in said
    sold.write(tmp_path)
    kept = json.loads((tmp_path / "report.json").read_text())["unseen"]
    assert kept["score"] == pytest.approx(found.score.tolist())
    page = page_of(sold).html
    assert "unseen rows on the right side" in page
    svgs = [part for part in page.split('alt="') if part.startswith("loss")]
    assert svgs


def test_unseen_rows_of_numbers_on_predicted_plateaus():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 2))
    frame = pd.DataFrame({"u": X[:, 0], "v": X[:, 1], "y": 10.0 * np.maximum(X[:, 0], 0.0)})
    problem = Problem.from_table(frame, bias=1.0, holdout=0.2)
    net = initialize(problem, 8, 1e-6, rng=0)
    process = limit(problem, net)
    run = flow(problem, net, t_end=50.0, save=[0.0, 25.0, 50.0], progress=False)
    found = score_unseen(problem, run, process)
    assert not found.classes
    assert len(found.plateaus) == process.n_jumps
    for i, scores in enumerate(found.plateaus):
        assert scores == unseen_scores(problem, process.networks[i + 1])
    observed = flow(
        problem,
        net,
        t_end=50.0,
        save=[0.0, 25.0, 50.0],
        observe=list(unseen.OBSERVED),
        states=False,
        progress=False,
    )
    again = score_unseen(problem, observed, process)
    np.testing.assert_allclose(again.loss, found.loss)
    np.testing.assert_allclose(again.score, found.score)


def test_directions_are_translated_to_the_units_of_the_file(sold):
    page = page_of(sold).html
    assert "in units of the file" in page
    raw = fruit()
    kept = sold.to_dict()["end"]["groups"]
    for group, shown in zip(sold.groups, kept, strict=True):
        units = to_file_units(sold.problem, group.direction)
        np.testing.assert_allclose(shown["file_units"]["weights"], units.weights)
        seen = raw[["grams", "density"]].to_numpy() @ np.array(shown["file_units"]["weights"])
        seen = np.sort(seen + shown["file_units"]["offset"])
        ours = np.sort(
            np.concatenate(
                [p.X @ group.direction for p in (sold.problem, sold.problem.known["unseen"])]
            )
        )
        np.testing.assert_allclose(seen, ours, atol=1e-9)


def test_the_line_on_label_and_loss_is_first(cli, tmp_path):
    fruit(12).to_csv(tmp_path / "fruit.csv", index=False)
    done = cli("explain", "fruit.csv", "--bias", "1", "--m", 4, "--holdout", 0.25, "--seconds", 1)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].startswith("Label 'kind', the last column: pear is +1, fig is -1")
    assert any(line.startswith("Columns differ in size by a factor") for line in lines[:3])
    assert any(line.startswith("Unseen rows:") for line in lines)
    document = json.loads((tmp_path / "out" / "report.json").read_text())
    assert document["notes"][0] == lines[0]
    assert lines[0].split("'")[0] in (tmp_path / "out" / "report.html").read_text()


def test_features_of_different_size_are_named_without_a_table():
    uneven = Problem([[100.0, 1.0], [200.0, -1.0]], [1.0, 2.0])
    (said,) = data_notes(uneven)
    assert said.startswith(
        "Features differ in size by a factor 158 (x0 158, x1 1 in quadratic mean)"
    )
    assert data_notes(Problem([[5.0, 1.0], [5.0, -1.0]], [1.0, 2.0])) == ()
    assert data_notes(Problem([[100.0], [200.0]], [1.0, 2.0], bias=1.0)) == ()


# ---------------------------------------------------------------------- sentences
def test_no_sentence_is_said_twice():
    heard = []
    found = explain(
        datasets.golden(), m=20, progress=False, on_sentence=lambda *part: heard.append(part)
    )
    for topic, text in found.verdict:
        assert " ".join(part for name, part in heard if name == topic) == text


def test_announcer_hands_on_what_is_new():
    heard = []
    news = Announcer(lambda topic, text: heard.append((topic, text)))
    news.announce("Jumps", "One.")
    news.announce("Jumps", "One. Two.")
    news.announce("Jumps", "One. Two.")
    assert heard == [("Jumps", "One."), ("Jumps", "Two.")]


def test_a_late_jump_does_not_blur_the_records_of_the_first():
    """Jumps at 17, 33 and 6947: records were 81 apart, and the first two seemed 70 % late."""
    problem = Problem(np.eye(2), [1.0, 2.0])
    settings, horizon = Settings(), 1.4 * 6947.0
    save = simulation._plan(problem, 200, settings, horizon, 17.0)["save"]
    times = [0.0]
    while times[-1] < horizon:
        times.append(save.after(times[-1], whole=False))
    gaps = np.diff(times)
    for jump in (17.0, 33.0, 6947.0):  # to 5 % of its time, as jumps are compared
        assert gaps[np.searchsorted(times, jump) - 1] <= 0.05 * jump
    assert len(times) <= 2 * simulation._RECORDS
    assert simulation.even_until(10.0, None) == simulation.even_until(10.0, 5.0) == 10.0
