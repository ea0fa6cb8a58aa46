"""Tables on the command line: the options that read them, and the first lines of the answer."""

import json
from pathlib import Path

import pytest

FRUIT = "size,weight,kind\n1,2,fig\n2,1,pear\n-1,1,fig\n3,2,pear\n"
IRIS = "a,b,species\n1,2,setosa\n2,1,versicolor\n-1,1,virginica\n3,2,setosa\n"
FIRST = "Label 'kind', the last column: pear is +1, fig is -1; two classes, so the loss is logistic"


@pytest.fixture(autouse=True)
def _files(cli):  # the fixture that changes into an empty folder
    Path("fruit.csv").write_text(FRUIT)
    Path("iris.csv").write_text(IRIS)
    Path("blank.csv").write_text("a,b,y\n1,2,3\n,2,4\n5,6,7\n")
    Path("scales.csv").write_text("a;b;y\n1;300;0,5\n-1;400;2\n")
    Path("tabs.tsv").write_text(FRUIT.replace(",", "\t"))
    Path("index.csv").write_text(",a,b,ok\n0,1,2,True\n1,2,1,False\n2,3,1,True\n")
    Path("digits.csv").write_text("a,b,digit\n1,2,0\n2,1,1\n3,3,0\n")
    Path("test.csv").write_text("weight,size,kind\n1,1,fig\n2,3,pear\n")


def test_predict_says_what_was_assumed_first(cli):
    done = cli("predict", "fruit.csv", "--m", 3)
    assert done.code == 0, done.err
    assert done.out.splitlines()[0] == f"{FIRST}; columns as they are."
    done = cli("predict", "fruit.csv", "--m", 3, "--json")
    assert json.loads(done.out)["notes"] == [f"{FIRST}; columns as they are."]


def test_certify_says_what_was_assumed_first(cli):
    done = cli("certify", "fruit.csv", "--standardize", "--claims", "BF24-L1")
    assert done.code == 0, done.err
    assert done.out.splitlines()[0] == (
        f"{FIRST}; columns centred and scaled by standard deviations."
    )


def test_simulate_tests_on_unseen_rows(cli):
    options = ("--m", 3, "--lr", 0.1, "--steps", 5, "--test", "test.csv")
    done = cli("simulate", "fruit.csv", *options)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[:2] == [f"{FIRST}; columns as they are.", "2 unseen rows are those of test.csv."]
    assert any(line.startswith("On two unseen rows: loss ") for line in lines)
    again = json.loads(cli("simulate", "fruit.csv", *options, "--json").out)
    assert again["made"] == "before"
    assert again["unseen"]["rows"] == 2
    assert again["notes"] == lines[:2]


def test_configuration_files_take_the_same_options(cli, tmp_path):
    folder = tmp_path / "beside"
    folder.mkdir()
    (folder / "fruit.csv").write_text(FRUIT)
    (folder / "new.csv").write_text(FRUIT)
    (folder / "run.toml").write_text(
        "[data]\nsource = 'fruit.csv'\ntest = 'new.csv'\nstandardize = true\n"
        "classes = ['fig', 'pear']\n[network]\nm = 3\n[run]\nlr = 0.1\nsteps = 2\n"
    )
    done = cli("simulate", "beside/run.toml", "--json")
    assert done.code == 0, done.err
    said = json.loads(done.out)
    assert said["notes"][0].startswith("Label 'kind', the last column: fig is +1, pear is -1")
    assert said["unseen"]["rows"] == 4


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("fruit.csv", "--label", "size"), "holds 'fig': expected a number, drop that column"),
        (("iris.csv", "--classes", "setosa,virginica"), "setosa is +1, virginica is -1"),
        (("iris.csv", "--one-vs-rest", "setosa"), "setosa is +1, the rest is -1"),
        (("blank.csv", "--drop-missing"), "1 of 3 rows have blank cells: left out."),
        (("scales.csv",), "--standardize centres and scales all columns."),
        (("scales.csv", "--standardize"), "columns and label centred and scaled by standard"),
        (("scales.csv",), "Decimal commas are read as points."),
        (("scales.csv",), "Columns are separated by semicolons."),
        (("tabs.tsv",), "Columns are separated by tabs."),
        (("index.csv",), "The first column has no name and tells the rows apart: left out as an"),
        (("index.csv",), "True is +1, False is -1; two classes, so the loss is logistic"),
        (("digits.csv",), "1 is +1, 0 is -1; two classes, so the loss is logistic"),
        (("digits.csv", "--label", "a"), "Label 'a': numbers, so the loss is half_square"),
        (("fruit.csv", "--holdout", "0.5"), "2 of 4 rows are held out, drawn with split_seed 0."),
        (("fruit.csv", "--loss", "half_square"), "fig is -1; loss half_square; columns as they"),
    ],
)
def test_options(cli, arguments, line):
    done = cli("simulate", *arguments, "--m", 2, "--lr", 0.01, "--steps", 1)
    assert line in done.out + done.err
    assert done.code == (2 if "expected" in line else 0)


@pytest.mark.parametrize("command", ["explain", "predict", "simulate", "certify"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("iris.csv", "--loss", "logistic"), "has 3 classes in 'species'"),
        (("blank.csv",), "has 1 blank cell in 1 row, the first at line 3 column 1: fill it"),
        (("fruit.csv", "--label", "sise"), "has no column 'sise': did you mean 'size'?"),
        (("fruit.csv", "--classes", "fig"), "classes are two names, that of label +1 first"),
        (("fruit.csv", "--holdout", "2"), "holdout is a share of the rows between 0 and 1"),
        (("fruit.csv", "--test", "lost.csv"), "lost.csv does not exist"),
        (("fruit.csv", "--label", "kind", "--with", "label=kind"), "--label and --with label con"),
        (("toy6", "--standardize"), "toy6 has no option 'standardize'"),
    ],
)
def test_refusals_are_one_sentence(cli, command, arguments, message):
    done = cli(command, *arguments)
    assert done.code == 2
    assert message in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert done.out == ""
