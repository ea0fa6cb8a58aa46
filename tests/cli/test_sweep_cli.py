"""reluflow sweep as a user meets it."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples" / "sweeps"
SMALL = """
task = "align"
seeds = 3
observe = ["captured"]
[problem]
name = "xor-orbit"
[init]
m = [4, 8]
[plot]
x = "init.m"
y = ["captured"]
"""


@pytest.fixture
def here(tmp_path, monkeypatch, capsys):
    """Runs the command line in this process: (exit code, output, errors)."""
    from reluflow.cli.main import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["reluflow", "sweep", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return run


def reluflow(*arguments, cwd):
    command = [sys.executable, "-m", "reluflow.cli.main", "sweep", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd)


def test_show_folds_wide_tables_and_leaves_costs_out(tmp_path, here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    (tmp_path / "runs.toml").write_text(
        'task = "flow"\nseeds = 2\n[problem]\nname = "three-points"\n'
        "[init]\nm = [4, 8]\nscale = 1e-3\n[clock]\nt_end = 10.0\n"
    )
    assert here("runs.toml", "--workers", 0)[0] == 0
    table, _, costs = here("show", "runs.parquet")[1].partition("what the runs cost is not shown: ")
    assert costs.startswith("--of cost.")
    assert "cost." not in table
    assert max(map(len, table.splitlines())) <= 100
    asked = costs.split()[1]
    assert asked in here("show", "runs.parquet", "--of", asked)[1].splitlines()[1]


def test_run_show_plot(tmp_path, here):
    (tmp_path / "small.toml").write_text(SMALL)
    code, out, errors = here("small.toml", "--workers", 0, "--json")
    assert code == 0, errors
    counts = json.loads(out)
    assert (counts["points"], counts["ok"], counts["missing"]) == (6, 6, 0)
    assert "6 of 6 points done, 0 failed: small.parquet" in here("small.toml", "--workers", 0)[1]
    _, out, _ = here("show", "small.parquet", "--by", "init.m", "--of", "captured", "--json")
    summary = json.loads(out)["summary"]
    assert [row["init.m"] for row in summary] == [4, 8]
    assert all(row["points"] == 3 for row in summary)
    shown = here("show", "small.parquet")[1]
    assert "captured" in shown
    assert "the same in every row: points 3" in shown
    _, out, errors = here("plot", "small.parquet")
    assert out.strip() == "wrote small.png", errors
    assert (tmp_path / "small.png").stat().st_size > 5000
    code, _, errors = here(
        "plot",
        "small.parquet",
        "--x",
        "init.m",
        "--y",
        "seed",
        "--value",
        "captured",
        "--kind",
        "map",
        "-o",
        "map.svg",
    )
    assert code == 0, errors
    code, _, errors = here("plot", "small.parquet", "-o", "map.txt")
    assert code == 2
    assert "a picture is a .png, .pdf or .svg file, got map.txt" in errors
    code, _, errors = here("small.toml", "--seeds", 4)
    assert code == 2
    assert "holds another sweep (seeds differs)" in errors


def test_failed_points_exit_1_and_say_why(tmp_path):
    (tmp_path / "mine.py").write_text("def f(x):\n    return 1 / x\n")
    (tmp_path / "mine.toml").write_text('task = "mine:f"\n[settings]\nx = [0, 1]\n')
    done = reluflow("mine.toml", "--workers", 1, "-o", "t.jsonl", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "1 of 2 points done, 1 failed" in done.stdout
    assert "ZeroDivisionError" in done.stdout


def test_ready_sweeps_are_listed_and_read():
    from reluflow.sweeps.config import read_config, ready_names
    from reluflow.sweeps.grid import make_grid
    from reluflow.sweeps.tasks import resolve

    assert ready_names() == ["jump-times", "three-points-phase", "xor-capture"]
    for name in ready_names():
        config, _ = read_config(name)
        grid = make_grid(config.grid, config.seeds, config.seed, config.pair, config.shared)
        resolve(config.task).check(grid, config.observe)
        assert config.plot.x


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.stem)
def test_examples_run(path, tmp_path, here):
    small = path.read_text().replace("steps = 20_000", "steps = 20")
    for other in EXAMPLES.glob("*.py"):
        (tmp_path / other.name).write_text(other.read_text())
    (tmp_path / path.name).write_text(small)
    code, out, errors = here(path.name, "--seeds", 1, "--workers", 0)
    assert code == 0, errors + out


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        (SMALL.replace("seeds", "seedz"), (), "unknown field 'seedz', expected one of task"),
        (SMALL.replace("[init]", "[start]"), (), "unknown field 'start'"),
        (SMALL.replace("m =", "width ="), (), "unknown field 'init.width'"),
        (SMALL.replace("[4, 8]", "[]"), (), "init.m is an empty list"),
        (SMALL.replace("seeds = 3", 'seeds = "x"'), (), "field 'seeds"),
        (SMALL.replace("seeds = 3", "seeds = 0"), (), "seeds is the number of repetitions"),
        (SMALL.replace('task = "align"', ""), (), "field 'task' is missing"),
        (SMALL.replace('"align"', '"nowhere:f"'), (), "cannot import the task 'nowhere:f'"),
        (SMALL.replace('"align"', '"aline"'), (), "unknown task 'aline'"),
        (SMALL.replace("xor-orbit", "xor-orbits"), (), "unknown dataset 'xor-orbits'"),
        (SMALL + "title", (), "is not TOML"),
        (SMALL, ("--scheduler", "tcp://127.0.0.1:1"), "cannot reach a Dask scheduler"),
        (SMALL, ("--scheduler", "x", "--workers", "1"), "exclude each other"),
        (SMALL, ("-o", "small.toml/t.parquet"), "cannot write small.toml/t.parquet"),
        (SMALL, ("-o", "/proc/t.parquet"), "cannot write /proc/t.parquet"),
        (SMALL, ("-o", "t.xlsx"), "a table is a .parquet or .jsonl file"),
    ],
)
def test_bad_configs_are_one_sentence_and_exit_2(
    text, arguments, message, tmp_path, here, monkeypatch
):
    monkeypatch.setattr(importlib.import_module("reluflow.sweeps.cluster"), "CONNECT", 0.5)
    (tmp_path / "small.toml").write_text(text)
    code, out, errors = here("small.toml", *arguments)
    assert code == 2, out
    assert message in errors
    assert len(errors.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing.toml",), "cannot read nothing.toml"),
        (("show", "none.parquet"), "none.parquet does not exist"),
        (("plot", "none.parquet"), "none.parquet does not exist"),
    ],
)
def test_missing_files(arguments, message, here):
    code, _, errors = here(*arguments)
    assert code == 2
    assert message in errors
