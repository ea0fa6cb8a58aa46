"""The public pictures: what they show, on whose axes, and what each mark is called."""

import numpy as np
import pytest
from matplotlib.figure import Figure

import reluflow
from reluflow import (
    Network,
    Problem,
    ReluflowError,
    align,
    datasets,
    descend,
    every,
    flow,
    initialize,
    limit,
    max_margin,
    plot,
)

LINE = datasets.three_points()
XOR = datasets.symmetric_xor()


@pytest.fixture(scope="module")
def run():
    return flow(LINE, initialize(LINE, 20, scale=1e-3, rng=0), t_end=30.0, save=every(0.5))


@pytest.fixture(scope="module")
def process():
    return limit(LINE, initialize(LINE, 20, scale=1e-3, rng=0))


@pytest.fixture(scope="module")
def classes():
    return descend(XOR, initialize(XOR, 12, scale=0.1, rng=0), lr=0.1, steps=200)


def legend(ax):
    return ax.get_legend_handles_labels()[1]


def test_every_name_is_listed_takes_ax_and_is_documented():
    import inspect

    names = [name for name in dir(plot) if name in plot.__all__]
    assert set(names) == set(plot.__all__)
    assert {"loss", "sizes", "neurons", "function", "boundary", "landscape"} <= set(names)
    assert {"jumps", "alignment", "margins", "verdict", "animate"} <= set(names)
    for name in names:
        function = getattr(plot, name)
        assert function.__doc__
        assert name in plot.__doc__
        if name != "animate":
            assert "ax" in inspect.signature(function).parameters, name


@pytest.mark.parametrize(
    ("draw", "projection"),
    [
        (lambda run, process, classes, ax: plot.loss(run, process, ax=ax), None),
        (lambda run, process, classes, ax: plot.sizes(run, process, ax=ax), None),
        (lambda run, process, classes, ax: plot.neurons(run, ax=ax), "polar"),
        (lambda run, process, classes, ax: plot.function(run, ax=ax), None),
        (lambda run, process, classes, ax: plot.boundary(classes, ax=ax), None),
        (lambda run, process, classes, ax: plot.landscape(LINE, ax=ax), None),
        (lambda run, process, classes, ax: plot.jumps(process, run, ax=ax), None),
        (lambda run, process, classes, ax: plot.exponents(process, run, ax=ax), None),
        (lambda run, process, classes, ax: plot.alignment(run, ax=ax), None),
        (lambda run, process, classes, ax: plot.margins(classes, ax=ax), None),
    ],
)
def test_drawn_on_the_axes_given(run, process, classes, draw, projection):
    ax = Figure().add_subplot(projection=projection)
    assert draw(run, process, classes, ax) is ax
    assert ax.has_data()


def test_objects_choose_their_usual_picture(run, process, classes):
    assert run.plot(process=process).get_ylabel() == "loss"
    assert "predicted jump" in legend(run.plot(process=process))
    assert process.plot().get_xlabel() == "time / log(1/scale)"
    assert run.final.plot().name == "polar"
    assert LINE.plot().get_xlabel() == "x"
    assert align(LINE, run.networks[0]).plot().get_ylabel() == "growth rate of log|w|"


def test_an_explanation_is_drawn_with_its_first_sentence_and_the_predicted_jump():
    found = reluflow.explain(LINE, m=20, scale=1e-3)
    ax = plot.verdict(found)
    assert found.verdict[0][1].startswith(" ".join(ax.get_title().split()).rstrip("."))
    assert "predicted jump" in legend(ax)
    (predicted,) = found.process.jump_times(log_scale=float(found.net.log_norms.max()))
    upright = [line.get_xdata() for line in ax.lines if len(set(line.get_xdata())) == 1]
    assert any(x[0] == pytest.approx(predicted) for x in upright)
    assert found.plot().get_title() == ax.get_title()


def test_few_records_are_marked_and_said():
    short = flow(LINE, initialize(LINE, 5, scale=1e-3, rng=0), t_end=3.0)
    ax = plot.loss(short)
    assert ax.get_title() == "loss at 2 records: save= of the run sets how many"
    assert len(ax.collections[0].get_offsets()) == 2


def test_neurons_name_every_mark(run):
    named = legend(plot.neurons(run))
    assert {"sample", "hyperplane of a sample", "inner circle: size 0"} <= set(named)
    assert {"path of a neuron", "positive output"} <= set(named)


def test_paths_of_neurons_are_those_of_the_records(run):
    ax = plot.neurons(run)
    largest = int(np.argmax(run.final.log_norms))
    W = run.networks.weights()[0][:, largest]
    angle, radius = ax.lines[0].get_data()
    assert np.allclose(radius, np.linalg.norm(W, axis=1), rtol=1e-12)
    assert np.allclose(np.cos(angle), W[:, 0] / radius, atol=1e-12)


def test_more_dimensions_are_projected_and_said():
    net = Network(np.diag([3.0, 2.0, 1e-3]), np.array([1.0, -1.0, 1.0]))
    ax = plot.neurons(net)
    assert ax.get_title() == "projected from 3 dimensions\non two leading directions"
    radius = ax.collections[0].get_offsets()[:, 1]
    assert np.allclose(sorted(radius), [0.0, 2.0, 3.0], atol=1e-9)


def test_names_of_the_data_stand_on_the_axes():
    problem = Problem(
        XOR.X[:, :2],
        XOR.y,
        loss="logistic",
        feature_names=["length", "width"],
        label_names=["fig", "pear"],
    )
    ax = plot.boundary(Network(np.eye(2), np.ones(2)), problem)
    assert ax.get_xlabel() == "length (circles: pear, squares: fig)"
    assert ax.get_ylabel() == "width"
    assert {"fig", "pear"} <= set(legend(ax))


def test_a_hyperplane_is_drawn_as_the_network_it_is():
    problem = Problem(np.array([[1.0, 0.2], [-1.0, 0.1]]), [1.0, -1.0], loss="logistic")
    net = initialize(problem, 6, scale=0.1, rng=0)
    run = descend(problem, net, lr=0.1, steps=300)
    svm = max_margin(problem, model="linear")
    best = max_margin(problem)
    ax = plot.margins(run, {"SVM": svm, "network": best})
    levels = {line.get_label(): line.get_ydata()[0] for line in ax.lines}
    assert levels["SVM"] == pytest.approx(svm.margin / 4)
    assert levels["network"] == pytest.approx(best.margin)
    pair = Network(np.stack([svm.w, -svm.w]), np.array([1.0, -1.0]))  # w relu(w x) - w relu(-w x)
    worst = float(np.min(problem.y * problem.outputs(pair)))
    assert levels["SVM"] == pytest.approx(worst / pair.norm2)


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda run: plot.loss(LINE), "run must be a Trajectory, got Problem: give what flow"),
        (lambda run: plot.loss(run, run), "process must be a JumpProcess, got Trajectory"),
        (lambda run: plot.function(run.final), "a network alone has no samples"),
        (lambda run: plot.boundary(run), "a decision boundary needs two features"),
        (lambda run: plot.landscape(run), "problem must be a Problem, got Trajectory"),
        (lambda run: plot.verdict(run), "explanation must be an Explanation, got Trajectory"),
        (lambda run: plot.margins(run), "margins need labels -1 and .1"),
    ],
)
def test_wrong_objects_are_refused_in_a_sentence(run, ask, sentence):
    with pytest.raises(ReluflowError, match=sentence):
        ask(run)


def test_names_people_try_exist_or_say_what_to_use(run):
    net = run.final
    assert np.array_equal(net.predict(LINE.X), net(LINE.X))
    for where, name, sentence in (
        (reluflow, "animate", "use reluflow.plot.animate"),
        (reluflow, "limt", "did you mean 'limit'"),
        (run, "losses", "use .loss"),
        (net, "forward", "call the network"),
        (net, "predic", "did you mean .predict"),
        (LINE, "columns_", "no attribute 'columns_'"),
    ):
        with pytest.raises(AttributeError, match=sentence):
            getattr(where, name)


def test_the_network_at_a_time_and_its_weights(run):
    t = 0.5 * float(run.times[3] + run.times[4])
    W, a = run.at(t).weights()
    stacked = run.networks.weights()
    assert np.array_equal(W, stacked[0][3])
    assert np.array_equal(a, stacked[1][3])
    assert np.array_equal(run.at(float(run.times[-1])).weights()[0], run.final.weights()[0])
    with pytest.raises(ReluflowError, match=r"no record at time 1e\+09"):
        run.at(1e9)


def test_score_is_accuracy_or_r2(classes, run):
    assert classes.final.score(XOR) == np.mean(classes.final(XOR.X) * XOR.y > 0)
    f = run.final(LINE.X)
    r2 = 1 - np.sum((f - LINE.y) ** 2) / np.sum((LINE.y - LINE.y.mean()) ** 2)
    assert run.final.score(LINE) == pytest.approx(r2)


def test_several_outputs_are_drawn_or_refused_in_one_sentence(tmp_path):
    """Sizes take the colour of the output a neuron adds most to; signs there are none."""
    from reluflow.plot.curves import log_norms_panel, write_curves

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((8, 2)), rng.standard_normal((8, 3))
    problem = Problem(X, y)
    made = flow(problem, initialize(problem, 6, 1e-2, rng=0), t_end=2.0, save=every(0.5))
    most = np.argmax(np.abs(made.final.a), axis=1)
    named = {line.label for line in log_norms_panel(made).traces if line.label}
    assert named == {f"mostly output {k}" for k in most}
    assert [path.name for path in write_curves(made, tmp_path)] == ["curves.png"]
    for call in (
        lambda: plot.neurons(made),
        lambda: plot.function(made),
        lambda: plot.boundary(made.final, problem),
        lambda: plot.animate(made, tmp_path / "run.gif"),
    ):
        with pytest.raises(ReluflowError, match="is for one output") as caught:
            call()
        assert "\n" not in str(caught.value)
    ones = Problem(X, np.sign(y))  # no class of two labels, though all of them are -1 or +1
    made = flow(ones, initialize(ones, 6, 1e-2, rng=0), t_end=0.5)
    assert [path.name for path in write_curves(made, tmp_path)] == ["curves.png"]
