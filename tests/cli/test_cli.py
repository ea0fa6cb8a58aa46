"""The command line as a user meets it."""

import json
import subprocess
import sys

import pytest


def reluflow(*arguments, cwd=None):
    command = [sys.executable, "-m", "reluflow.cli.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


def test_version_and_help():
    assert reluflow("--version").stdout.startswith("reluflow 0.")
    shown = reluflow("--help").stdout
    for command in ("reproduce", "datasets", "bench"):
        assert command in shown


def test_datasets_listed_as_text_and_json():
    text = reluflow("datasets").stdout
    names = json.loads(reluflow("datasets", "--json").stdout)
    assert "three-points" in names
    assert all(name in text for name in names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("reproduce", "BF25"), "unknown paper 'BF25': expected one of BF24, LLWA21"),
        (("reproduce", "BF24", "F9"), "no figure 'BF24 F9'"),
        (("bench", "speed"), "no benchmark 'speed': expected one of descend"),
        (("nonsense",), "No such command 'nonsense'"),
        (("reproduce", "--fast"), "No such option"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_2(arguments, message):
    done = reluflow(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_output_folder_that_is_a_file(tmp_path):
    (tmp_path / "taken").write_text("")
    done = reluflow("reproduce", "BF24", "F2", "--quick", "-o", str(tmp_path / "taken"))
    assert done.returncode == 2
    assert "cannot write into" in done.stderr


def test_letters_that_the_font_of_pictures_lacks_are_no_news(capsys):
    """A warning of the drawing library about each of them; our own are still said."""
    import warnings

    from matplotlib.figure import Figure

    from reluflow.cli.main import _show_warning

    figure = Figure()
    figure.text(0.5, 0.5, "温度")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = _show_warning
        figure.canvas.draw()
        warnings.warn("the checkpoint\nis old", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "reluflow: the checkpoint is old\n"
