"""Tables as people have them: each rule with the file it reads and the line it prints."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pandas
import pytest

from reluflow import Network, Problem, ReluflowError, datasets, initialize
from reluflow.problem.tables import notes_of, to_file_units, unseen_scores

FRUIT = "size,weight,kind\n1,2,fig\n2,1,pear\n-1,1,fig\n3,2,pear\n"
IRIS = "a,b,species\n1,2,setosa\n2,1,versicolor\n-1,1,virginica\n3,2,setosa\n2,2,virginica\n"
NUMBERS = "a,b,y\n1,2,0.5\n2,1,3\n-1,1,-2\n"


@pytest.fixture(name="write")
def _write(tmp_path):
    def write(text, name="mine.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def said(problem):
    return " ".join(notes_of(problem))


@pytest.mark.parametrize(
    ("text", "y", "first"),
    [
        (FRUIT, [-1, 1, -1, 1], "Label 'kind', the last column: pear is +1, fig is -1"),
        (FRUIT.replace("fig", "yes").replace("pear", "no"), [1, -1, 1, -1], "yes is +1, no is -1"),
        (FRUIT.replace("fig", "TRUE").replace("pear", "False"), [1, -1, 1, -1], "True is +1"),
        (FRUIT.replace("fig", "0").replace("pear", "1"), [-1, 1, -1, 1], "1 is +1, 0 is -1"),
        (FRUIT.replace("fig", "1.0").replace("pear", "-1"), [1, -1, 1, -1], "1 is +1, -1 is -1"),
    ],
)
def test_two_classes_are_mapped_and_the_loss_is_logistic(write, text, y, first):
    problem = Problem.from_table(write(text))
    assert problem.y.tolist() == y
    assert problem.loss.name == "logistic"
    assert first in notes_of(problem)[0]
    assert notes_of(problem)[0].endswith(
        "two classes, so the loss is logistic; columns as they are."
    )


def test_numbers_have_the_half_square_loss(write):
    problem = Problem.from_table(write(NUMBERS))
    assert problem.loss.name == "half_square"
    assert notes_of(problem) == (
        "Label 'y', the last column: numbers, so the loss is half_square; columns as they are.",
    )


def test_a_given_loss_stays(write):
    zero_one = FRUIT.replace("fig", "0").replace("pear", "1")
    square = Problem.from_table(write(zero_one), loss="square")
    assert square.y.tolist() == [0, 1, 0, 1], "under a square loss 0 and 1 are numbers"
    assert "numbers, loss square" in said(square)
    assert Problem.from_table(write(zero_one), loss="exponential").y.tolist() == [-1, 1, -1, 1]
    assert Problem.from_table(write(FRUIT), loss="half_square").y.tolist() == [-1, 1, -1, 1]


def test_one_class_of_signs_is_a_number(write):
    assert Problem.from_table(write("1,2,1\n2,1,1\n")).loss.name == "half_square"
    with pytest.raises(ReluflowError, match="one class only, all labels are fig: expected two"):
        Problem.from_table(write(FRUIT.replace("pear", "fig")))


@pytest.mark.parametrize("label", ["size", "weight"])
def test_label_by_name(write, label):
    text = "size,weight,kind\n1,2,5\n2,1,6\n3,1,7\n4,2,8\n"
    problem = Problem.from_table(write(text), label=label)
    column = ["size", "weight", "kind"].index(label)
    table = np.array([[1, 2, 5], [2, 1, 6], [3, 1, 7], [4, 2, 8]], dtype=float)
    np.testing.assert_array_equal(problem.y, table[:, column])
    np.testing.assert_array_equal(problem.X, np.delete(table, column, axis=1))
    assert problem.known["features"] == tuple(n for n in ("size", "weight", "kind") if n != label)
    assert notes_of(problem)[0].startswith(f"Label '{label}': numbers")


def test_label_by_position_and_without_a_header(write):
    path = write("1,2,3\n4,5,6\n")
    assert Problem.from_table(path, label=0).y.tolist() == [1, 4]
    assert Problem.from_table(path, label="2").y.tolist() == [2, 5]
    assert "Label column 2: numbers" in said(Problem.from_table(path, label="2"))


@pytest.mark.parametrize(
    ("text", "label", "message"),
    [
        (FRUIT, "sise", r"has no column 'sise': did you mean 'size'\?"),
        (FRUIT, "zzz", "has no column 'zzz': the columns are size, weight and kind"),
        ("a,a,y\n1,2,3\n", "a", "has 2 columns 'a': rename one"),
        ("1,2,3\n", "y", "has no names of columns: give the label by its number, 1 to 3, got 'y'"),
        ("1,2,3\n", 7, "has no column 7: it has 3 columns"),
    ],
)
def test_label_refusals(write, text, label, message):
    with pytest.raises(ReluflowError, match=message):
        Problem.from_table(write(text), label=label)


@pytest.mark.parametrize(
    ("sign", "name", "word"),
    [(";", "mine.csv", "semicolons"), ("\t", "mine.csv", "tabs"), ("\t", "mine.tsv", "tabs")],
)
def test_separators(write, sign, name, word):
    text = FRUIT.replace(",", sign)
    if name.endswith(".tsv"):
        text = text.replace("size", "size, weight; by hand, in kg")
    problem = Problem.from_table(write(text, name))
    np.testing.assert_array_equal(problem.X, [[1, 2], [2, 1], [-1, 1], [3, 2]])
    assert f"Columns are separated by {word}." in notes_of(problem)


def test_decimal_commas(write):
    problem = Problem.from_table(write("a;b;y\n1,5;-2;0,25\n1e1;3,25;4\n"))
    np.testing.assert_array_equal(problem.X, [[1.5, -2], [10, 3.25]])
    assert problem.y.tolist() == [0.25, 4]
    assert "Decimal commas are read as points." in notes_of(problem)


def test_quoted_cells(write):
    problem = Problem.from_table(write('"a, in cm","b",y\n"1",2,"no, really"\n3,4,yes\n'))
    assert problem.known["features"] == ("a, in cm", "b")
    assert problem.known["notes"].negative == "no, really"


@pytest.mark.parametrize("sign", [",", ";", "\t"])
def test_line_breaks_in_names_and_cells(write, sign):
    """As spreadsheets write them; a sentence that quotes them has one line."""
    text = '"a\n\nin cm",b,"y\nnow"\n1,2,"no,\nreally"\n3,4,yes\n'
    problem = Problem.from_table(write(text.replace(",", sign)))
    assert problem.known["features"] == ("a in cm", "b")
    assert problem.known["notes"].negative == f"no{sign.strip()} really"
    np.testing.assert_array_equal(problem.X, [[1, 2], [3, 4]])
    numbers = Problem.from_table(write('"a\nb",c\n1,2\n3,4\n'.replace(",", sign)))
    assert numbers.known["features"] == ("a b",)
    assert numbers.y.tolist() == [2, 4]


def test_a_quote_within_a_name_is_a_letter(write):
    problem = Problem.from_table(write('5" disk,b,y\n1,2,3\n3,4,5\n'))
    assert problem.known["features"] == ('5" disk', "b")


@pytest.mark.parametrize("index", [(0, 1, 2), (7, 3, 5), ("r1", "r2", "r3")])
@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_an_index_without_a_name_is_left_out(write, index, name):
    rows = NUMBERS.splitlines()
    text = "\n".join(f"{i},{row}" for i, row in zip((name, *index), rows, strict=True))
    problem = Problem.from_table(write(text))
    assert problem.known["features"] == ("a", "b")
    assert "first column has no name and tells the rows apart: left out as an index" in said(
        problem
    )


def test_what_pandas_and_r_write_is_read(write):
    frame = pandas.DataFrame({"a": [1.0, 2.0, 4.0], "b": [0.5, 1.0, 3.0], "y": [1.5, 2.5, 0.0]})
    plain = pandas.DataFrame(frame.to_numpy())
    for table in (frame, plain):
        problem = Problem.from_table(write(table.to_csv()))
        np.testing.assert_array_equal(problem.X, frame[["a", "b"]])
        assert "left out as an index" in said(problem)
    problem = Problem.from_table(write("a,b,y\nr1,1,2,3\nr2,4,5,6\n"))
    np.testing.assert_array_equal(problem.X, [[1, 2], [4, 5]])


def test_a_nameless_column_of_other_numbers_is_a_feature(write):
    problem = Problem.from_table(write(",b,y\n0.5,2,3\n1.5,3,4\n"))
    assert problem.known["features"] == ("column 1", "b")
    assert "index" not in said(problem)


def test_blanks_are_refused_with_count_and_remedy(write):
    text = "a,b,y\n1,,1\n2,NA,2\n,3,n/a\n4,5,6\n"
    message = (
        r"has 4 blank cells in 3 rows, the first at line 2 column 2: fill them, or leave such rows "
        r"out with drop_missing=True \(--drop-missing\)"
    )
    with pytest.raises(ReluflowError, match=message):
        Problem.from_table(write(text))
    problem = Problem.from_table(write(text), drop_missing=True)
    assert (problem.X.tolist(), problem.y.tolist()) == ([[4, 5]], [6])
    assert "3 of 4 rows have blank cells: left out." in notes_of(problem)
    with pytest.raises(ReluflowError, match="has no row without a blank cell"):
        Problem.from_table(write("a,b,y\n1,,1\n2,,2\n"), drop_missing=True)


def test_three_classes_are_refused_for_a_loss_of_one_output_with_the_ways_out(write):
    message = (
        r"has 3 classes in 'species', setosa \(2\), versicolor \(1\) and virginica \(2\), and this "
        r"loss is for one output: leave the loss out or take softmax, keep two with --classes "
        r"setosa,virginica, or set one against the rest with --one-vs-rest setosa"
    )
    with pytest.raises(ReluflowError, match=message):
        Problem.from_table(write(IRIS), loss="logistic")


@pytest.mark.parametrize("classes", ["virginica,setosa", ("virginica", "setosa")])
def test_two_classes_of_three(write, classes):
    problem = Problem.from_table(write(IRIS), classes=classes)
    assert problem.y.tolist() == [-1, 1, -1, 1]
    assert "virginica is +1, setosa is -1" in notes_of(problem)[0]
    assert "1 of 5 rows are of other classes: left out." in notes_of(problem)


def test_one_class_against_the_rest(write):
    problem = Problem.from_table(write(IRIS), one_vs_rest="versicolor")
    assert problem.y.tolist() == [-1, 1, -1, -1, -1]
    assert "versicolor is +1, the rest is -1" in notes_of(problem)[0]


def test_classes_that_are_numbers(write):
    digits = "a,b,digit\n1,2,0\n2,1,1\n3,3,2\n4,1,0\n5,1,1\n6,1,2\n"
    problem = Problem.from_table(write(digits))
    assert problem.loss.name == "half_square"
    assert (
        "Label 'digit' has 3 values, 0, 1 and 2, taken as numbers: if they are classes, say so "
        "with --loss softmax, --classes A,B or --one-vs-rest A." in notes_of(problem)
    )
    for classes in ("2,0", (2, 0), ("2", 0.0)):
        problem = Problem.from_table(write(digits), classes=classes)
        assert problem.y.tolist() == [-1, 1, -1, 1]
    with pytest.raises(ReluflowError, match=r"labels 1 and 2 for the logistic loss: .*classes 2,1"):
        Problem.from_table(write("1,2,1\n2,1,2\n"), loss="logistic")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": "a,b,c"}, "classes are two names, that of label .1 first, got 'a,b,c'"),
        ({"classes": "setosa,setosa"}, "classes are two names"),
        ({"classes": "setosa,rosa"}, "has no class 'rosa' in 'species': it has setosa, versicolor"),
        ({"one_vs_rest": "rosa"}, "has no class 'rosa' in 'species'"),
        ({"one_vs_rest": "setosa", "classes": "a,b"}, "contradict each other: give one"),
        ({"test": "a.csv", "holdout": 0.2}, "test and holdout contradict each other"),
        ({"classes": "setosa,virginica", "holdout": 1.5}, "holdout is a share of the rows between"),
        ({"classes": "setosa,virginica", "holdout": 0.01}, "leaves 4 to train on and 0 to test"),
    ],
)
def test_refusals_of_options(write, options, message):
    with pytest.raises(ReluflowError, match=message) as refusal:
        Problem.from_table(write(IRIS), **options)
    assert "\n" not in str(refusal.value)


def test_labels_that_are_no_classes(write):
    names = "".join(f"{i},{i},n{i}\n" for i in range(30))
    with pytest.raises(ReluflowError, match="has 30 different texts in 'who': expected numbers or"):
        Problem.from_table(write("a,b,who\n" + names))
    with pytest.raises(ReluflowError, match="has no label: 'y' is blank"):
        Problem.from_table(write("a,b,y\n1,2,\n3,4,\n"))


def test_labels_of_mixed_kinds_are_refused_where_they_stand(write):
    with pytest.raises(ReluflowError, match="line 3 column 3 holds 'many': expected a number"):
        Problem.from_table(write("a,b,y\n1,2,3\n1,2,many\n"))
    problem = Problem.from_table(write("a,b,y\n1,2,3\n1,2,many\n2,2,4\n"), classes="many,3")
    assert problem.y.tolist() == [-1, 1]


def test_features_of_text_are_refused_and_flags_are_numbers(write):
    with pytest.raises(ReluflowError, match="line 2 column 1 holds 'red': expected a number, drop"):
        Problem.from_table(write("a,b,y\nred,2,3\nblue,2,4\n"))
    flags = Problem.from_table(write("a,b,y\ntrue,2,3\nfalse,2,4.5\n"))
    np.testing.assert_array_equal(flags.X, [[1, 2], [0, 2]])


def test_uneven_columns_are_said_and_the_option_named(write):
    problem = Problem.from_table(write("a,b,y\n1,300,0.5\n-1,400,2\n"))
    assert (
        "Columns differ in size by a factor 354 ('b' 354, 'a' 1 in quadratic mean): neurons turn "
        "first to the large ones, whatever these say about the label; --standardize centres and "
        "scales all columns." in notes_of(problem)
    )
    assert "--standardize" not in said(Problem.from_table(write("a,b,y\n1,9,0.5\n-1,9,2\n")))


def test_standardised_columns_and_labels(write):
    text = "a,b,y\n1,300,10\n-1,400,20\n3,100,60\n"
    problem = Problem.from_table(write(text), standardize=True, bias=2.0)
    np.testing.assert_allclose(problem.X[:, :2].mean(axis=0), 0.0, atol=1e-15)
    np.testing.assert_allclose(problem.X[:, :2].std(axis=0), 1.0)
    assert problem.y.std() == pytest.approx(1.0)
    assert "columns and label centred and scaled by standard deviations" in notes_of(problem)[0]
    scaling = problem.known["scaling"]
    assert (scaling.label_mean, scaling.label_scale) == (30.0, np.std([10, 20, 60]))
    table = np.array([[1, 300], [-1, 400], [3, 100]], dtype=float)
    np.testing.assert_allclose(scaling.mean + scaling.scale * problem.X[:, :2], table)
    W = np.array([[0.3, -0.2, 0.5], [1.0, 2.0, -3.0]])
    weights, offset = to_file_units(problem, W)
    np.testing.assert_allclose(table @ weights.T + offset, problem.X @ W.T)


def test_standardised_classes_and_a_constant_column(write):
    text = "a,b,c,y\n1,5,2,no\n2,5,1,yes\n4,5,7,no\n"
    problem = Problem.from_table(write(text), standardize=True)
    assert problem.y.tolist() == [-1, 1, -1]
    assert problem.X[:, 1].tolist() == [0, 0, 0]
    assert "Constant and hence 0 after centring: 'b'." in notes_of(problem)
    assert "; columns centred and scaled" in notes_of(problem)[0]


def test_directions_of_plain_columns_stay(write):
    problem = Problem.from_table(write(NUMBERS), bias=2.0)
    weights, offset = to_file_units(problem, np.array([1.0, -1.0, 0.25]))
    assert (weights.tolist(), float(offset)) == ([1.0, -1.0], 0.5)


def test_holdout(write):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((50, 3))
    kinds = np.where(np.arange(50) < 30, "no", "yes")
    text = "a,b,c,kind\n" + "".join(
        ",".join(map(repr, row.tolist())) + f",{kind}\n"
        for row, kind in zip(rows, kinds, strict=True)
    )
    problem = Problem.from_table(write(text), holdout=0.2, standardize=True, bias=1.0)
    unseen = problem.known["unseen"]
    assert (problem.n, unseen.n) == (40, 10)
    assert [(unseen.y > 0).sum(), (problem.y > 0).sum()] == [4, 16], "of each class alike"
    assert "10 of 50 rows are held out, drawn with split_seed 0." in notes_of(problem)
    scaling = problem.known["scaling"]
    np.testing.assert_allclose(problem.X[:, :3].mean(axis=0), 0.0, atol=1e-15)
    back = np.vstack([scaling.mean + scaling.scale * p.X[:, :3] for p in (problem, unseen)])
    np.testing.assert_allclose(np.sort(back, axis=0), np.sort(rows, axis=0))
    again = Problem.from_table(write(text), holdout=0.2, split_seed=1).known["unseen"]
    assert not np.array_equal(again.y, unseen.y) or not np.array_equal(again.X, unseen.X[:, :3])


def test_unseen_rows_of_another_file(write):
    test = write("kind,weight,size\npear,5,6\nfig,7,8\n", "test.csv")
    problem = Problem.from_table(write(FRUIT), test=test, leak=0.1)
    unseen = problem.known["unseen"]
    np.testing.assert_array_equal(unseen.X, [[6, 5], [8, 7]])
    assert unseen.y.tolist() == [1, -1]
    assert unseen.leak == 0.1
    assert f"2 unseen rows are those of {test}." in notes_of(problem)
    net = Network([[1.0, 0.0]], [1.0], leak=0.1)
    scores = unseen_scores(problem, net)
    assert scores.accuracy == 0.5
    assert scores.error is None
    assert scores.loss == pytest.approx((np.log1p(np.exp(-6)) + np.log1p(np.exp(8))) / 2)
    assert scores.sentence == f"On two unseen rows: loss {scores.loss:.6g}, 50.0 % right."


def test_error_on_unseen_rows_is_in_units_of_the_file(write):
    test = write("a,b,y\n1,300,13\n3,100,64\n", "test.csv")
    text = "a,b,y\n1,300,10\n-1,400,20\n3,100,60\n"
    problem = Problem.from_table(write(text), test=test, standardize=True)
    zero = Network(np.ones((1, 2)), [0.0])
    scores = unseen_scores(problem, zero)
    assert scores.accuracy is None
    assert scores.error == pytest.approx(np.sqrt(((13 - 30) ** 2 + (64 - 30) ** 2) / 2))
    assert unseen_scores(Problem.from_table(write(text)), zero) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,species\n1,2,rosa\n", "test.csv has the class 'rosa': expected .* trained on"),
        ("a,c,species\n1,2,setosa\n", "test.csv has no column 'b': expected those of"),
        ("1,setosa\n2,setosa\n", "test.csv has 2 columns, expected 3 as in"),
        ("a,b,species\n1,,setosa\n", "test.csv has 1 blank cell in 1 row"),
    ],
)
def test_refusals_of_test_files(write, text, message):
    train = write("a,b,species\n1,2,setosa\n2,1,virginica\n")
    with pytest.raises(ReluflowError, match=message):
        Problem.from_table(train, test=write(text, "test.csv"))


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_files_of_pandas(tmp_path, suffix):
    frame = pandas.DataFrame({"a": [1, 2, 4], "b": [0.5, 1.0, 3.0], "ok": [True, False, True]})
    path = tmp_path / f"mine{suffix}"
    frame.to_parquet(path) if suffix == ".parquet" else frame.to_csv(path, index=False)
    problem = Problem.from_table(path)
    np.testing.assert_array_equal(problem.X, frame[["a", "b"]])
    assert problem.y.tolist() == [1, -1, 1]
    assert "True is +1, False is -1" in said(problem)
    assert problem.name == "mine"


def test_excel_files(tmp_path):
    pytest.importorskip("openpyxl")
    path = tmp_path / "mine.xlsx"
    pandas.DataFrame({"a": [1, 2], "kind": ["x", "y"]}).to_excel(path, index=False)
    assert Problem.from_table(path).y.tolist() == [-1, 1]


def test_excel_files_are_read_by_pandas(write, monkeypatch):
    frame = pandas.DataFrame({"a": [1, 2, 3], "kind": ["x", None, "y"]})
    monkeypatch.setattr(pandas, "read_excel", lambda path: frame)
    path = write("not looked at", "mine.xlsx")
    with pytest.raises(ReluflowError, match="1 blank cell in 1 row, the first at row 2 of 'kind'"):
        Problem.from_table(path)

    def missing(path):
        raise ImportError("Missing optional dependency 'openpyxl'.")

    monkeypatch.setattr(pandas, "read_excel", missing)
    with pytest.raises(ReluflowError, match=r"needs openpyxl .* pip install 'reluflow\[tables\]'"):
        Problem.from_table(path)


def test_broken_files_of_pandas(write):
    with pytest.raises(ReluflowError, match="is not a Parquet file that can be read"):
        Problem.from_table(write("nonsense", "mine.parquet"))


def test_frames(write):
    frame = pandas.DataFrame(
        {
            "size": pandas.array([1, 2, None], dtype="Int64"),
            "kind": pandas.Categorical(["fig", "pear", "fig"]),
        },
        index=[5, 3, 9],
    )
    with pytest.raises(
        ReluflowError, match="the table has 1 blank cell in 1 row, the first at row 3"
    ):
        Problem.from_table(frame)
    problem = Problem.from_table(frame, drop_missing=True)
    assert (problem.X.tolist(), problem.y.tolist()) == ([[1], [2]], [-1, 1])
    assert problem.name == "table"
    with pytest.raises(
        ReluflowError, match="a table is the path of a file or a data frame, got nd"
    ):
        Problem.from_table(np.eye(2))


def test_frames_need_no_pandas():
    class Frame(dict):
        columns = property(list)

    before = sys.modules.pop("pandas")
    try:
        problem = Problem.from_table(Frame(a=[1.0, 2.0], y=["no", "yes"]))
        assert "pandas" not in sys.modules
    finally:
        sys.modules["pandas"] = before
    assert problem.y.tolist() == [-1, 1]


def test_arrays_in_npz_follow_the_same_rules(tmp_path):
    path = tmp_path / "mine.npz"
    np.savez(path, X=[[1.0, 200.0], [2.0, 100.0]], y=[0, 1])
    problem = datasets.load(path)
    assert (problem.y.tolist(), problem.loss.name) == ([-1, 1], "logistic")
    assert notes_of(problem)[0].startswith("Label y: 1 is +1, 0 is -1; two classes, so the loss is")
    assert "'column" not in said(problem)
    assert "column 2 158" in said(problem)


def test_what_was_assumed_travels_with_the_problem(write):
    problem = Problem.from_table(write(FRUIT), holdout=0.5, standardize=True)
    other = pickle.loads(pickle.dumps(problem))
    assert notes_of(other) == notes_of(problem)
    net = initialize(problem, 3, rng=0)
    assert unseen_scores(other, net) == unseen_scores(problem, net)
    smooth = datasets.load(write(FRUIT), smoothing=0.1, holdout=0.5)
    assert smooth.smoothing == smooth.known["unseen"].smoothing == 0.1
