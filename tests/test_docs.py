"""Docstrings, README and the code they speak of agree."""

import doctest
import importlib
import inspect
import pkgutil
import re
import tomllib
from pathlib import Path

import pytest
from numpydoc.docscrape import NumpyDocString
from numpydoc.validate import validate

import reluflow
import reluflow.estimators
import reluflow.plot
import reluflow.torch

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(reluflow.__path__, "reluflow.")
    if not module.name.startswith("reluflow.kernels")
)
# everything that is importable from these, and the losses
PUBLIC = [
    f"{module.__name__}.{name}"
    for module in (reluflow, reluflow.plot, reluflow.estimators, reluflow.datasets)
    for name in module.__all__
    if callable(getattr(module, name))
] + [
    f"reluflow.losses.{name}"
    for name, thing in vars(reluflow.losses).items()
    if inspect.isclass(thing) and issubclass(thing, reluflow.Loss)
]
LEFT_OUT = set(
    tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["numpydoc_validation"]["checks"]
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    if name.startswith("reluflow.torch."):
        pytest.importorskip("torch")
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", PUBLIC)
def test_docstrings_are_numpydoc(name):
    hold_to_numpydoc(name)


def test_docstrings_of_the_pytorch_side_are_numpydoc():
    pytest.importorskip("torch")
    for name in reluflow.torch.__all__:
        hold_to_numpydoc(f"reluflow.torch.{name}")


def hold_to_numpydoc(name):
    """Every check of numpydoc but those that pyproject.toml leaves out with a reason."""
    found = [code for code, _ in validate(name)["errors"]]
    thing = pkgutil.resolve_name(name)
    if inspect.isclass(thing) and "PR01" in found and fields_are_documented(thing):
        found.remove("PR01")  # results, which users do not make, list attributes instead
    assert set(found) <= LEFT_OUT, (name, set(found) - LEFT_OUT)


def fields_are_documented(thing):
    """Whether every argument of a class is documented by it or a base, as such or as attribute."""
    told = set()
    for base in inspect.getmro(thing):
        text = NumpyDocString(inspect.cleandoc(base.__doc__ or ""))
        for row in text["Parameters"] + text["Attributes"]:
            # without a type numpydoc takes several names for one
            told |= {part.strip() for part in f"{row.name}, {row.type}".split(",")}
    return {name for name in inspect.signature(thing).parameters if name[0] != "_"} <= told


def test_the_validation_of_docstrings_can_fail():
    class Bare:
        """A class.

        Attributes
        ----------
        x, y : float
        """

        def __init__(self, x, y, z):
            pass

    assert not fields_are_documented(Bare)
    assert "PR01" not in LEFT_OUT
    assert "PR02" not in LEFT_OUT


def test_every_public_name_is_in_the_reference():
    page = (ROOT / "docs/reference/api.rst").read_text()
    listed = set(re.findall(r"^   (\w+)$", page, flags=re.M))
    assert listed >= {name.rpartition(".")[2] for name in PUBLIC} | set(reluflow.torch.__all__)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#:]+)[^):]*\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist_and_name_files_that_exist(page):
    import typer

    from reluflow.cli.main import app

    known = set(typer.main.get_command(app).commands)
    for line in re.findall(r"(?:^ {4}|`)reluflow +([a-z][^`#\n]*)", page.read_text(), flags=re.M):
        assert line.split()[0] in known, line
        for word in line.split():
            if word.startswith("examples/"):
                assert (ROOT / word).is_file(), line


def test_terms_of_reports_are_in_the_glossary_of_the_site():
    from reluflow.report.glossary import GLOSSARY

    page = (ROOT / "docs/glossary.md").read_text()
    told = set(re.findall(r"^(\S.*)\n  \S", page, flags=re.M))
    assert set(GLOSSARY) <= told, set(GLOSSARY) - told


def test_the_page_on_adding_things_runs():
    from reluflow.claims.claim import REGISTRY
    from reluflow.claims.verdict import Status
    from reluflow.papers.figure import FIGURES

    before, drawn = set(REGISTRY), set(FIGURES)
    page = (ROOT / "docs/adding.md").read_text()
    made = {"__name__": "adding"}
    try:
        for block in re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL):
            exec(compile(block, "adding.md", "exec"), made)
        assert set(REGISTRY) - before == {"KEY-L1", "KEY-F1"}
        check = REGISTRY["KEY-L1"]
        evidence = check.example(seed=0, **check.sizes["quick"])
        assert not evidence.missing(check.needs)
        assert all(test(evidence).ok for test in check.given)
        assert check.check(evidence).status is Status.HOLDS
        (look,) = FIGURES["KEY", "F1"].make(**check.sizes["quick"]).seen
        assert look.status is Status.HOLDS
        problem = made["right_angle"]()
        assert reluflow.max_G(problem).value == pytest.approx(problem.known["rate"], rel=1e-12)
    finally:
        for registry, known in ((REGISTRY, before), (FIGURES, drawn)):
            for key in set(registry) - known:
                del registry[key]


def paper_rows():
    rows = re.findall(r"^\| ([A-Z]+\d\d) \|(.*)\|$", (ROOT / "README.md").read_text(), flags=re.M)
    return {paper: [cell.strip() for cell in cells.split("|")] for paper, cells in rows}


def test_readme_counts_claims_and_names_figures():
    from reluflow.claims.ledger import PAPERS
    from reluflow.papers.catalogue import select_figures

    rows = paper_rows()
    assert set(rows) == set(PAPERS)
    for paper, (_, claims, figures, *_) in rows.items():
        assert int(claims) == len(reluflow.ledger(paper)), paper
        named = set(re.findall(r"\b(F\d+[A-Z]?|Tab1|CIFAR(?!-))\b", figures))
        for first, last in re.findall(r"F(\d+) to F(\d+)", figures):
            named |= {f"F{k}" for k in range(int(first), int(last) + 1)}
        assert named == {spec.name for spec in select_figures(paper)}, paper


def named(title):
    """What stands between backquotes in a section of docs/files.md."""
    text = (ROOT / "docs/files.md").read_text()
    body = re.split(r"^#+ ", text.partition(f"# {title}")[2], maxsplit=1, flags=re.M)[0]
    body = re.sub(r"```.*?```", "", body, flags=re.DOTALL)
    return set(re.findall(r"`([^`]+)`", body))


def test_settings_are_documented():
    from reluflow.cli import config
    from reluflow.sweeps.config import Config, Plot
    from reluflow.trajectory.observables import OBSERVABLES

    told = named("Settings of `simulate`")
    for part in (config.Data, config.Neurons, config.Run, config.Save):
        assert set(part.model_fields) <= told, part
    assert {f"[{name}]" for name in config.Config.model_fields} <= told
    assert set(OBSERVABLES) <= told
    told = named("Settings of `sweep`")
    sections = {"problem", "init", "clock", "settings", "plot"}
    assert {f"[{name}]" for name in sections} <= told
    assert (set(Config.model_fields) - sections) | set(Plot.model_fields) <= told


def test_settings_that_are_shown_are_taken(tmp_path):
    from reluflow.cli.config import read_config
    from reluflow.sweeps.config import read_config as read_sweep

    text = (ROOT / "docs/files.md").read_text()
    shown = [tmp_path / f"{k}.toml" for k in range(2)]
    for path, block in zip(shown, re.findall(r"```toml\n(.*?)```", text, re.DOTALL), strict=True):
        path.write_text(block)
    assert read_config(shown[0]).run.steps == 200_000
    assert read_sweep(shown[1])[0] == read_sweep(ROOT / "examples/sweeps/widths.toml")[0]


def test_every_example_is_listed_and_every_configuration_is_taken():
    from reluflow.cli.config import read_config
    from reluflow.sweeps.config import read_config as read_sweep

    text = (ROOT / "docs/files.md").read_text()
    for path in (ROOT / "examples").rglob("*.*"):
        if path.suffix in (".csv", ".toml", ".py"):
            assert f"(../{path.relative_to(ROOT).as_posix()})" in text, path
    for path in (ROOT / "examples").glob("*.toml"):
        read_config(path)
    for path in (ROOT / "examples/sweeps").glob("*.toml"):
        read_sweep(path)


def test_written_fields_are_documented(tmp_path):
    from reluflow.claims.verdict import Hypothesis, Status, Verdict, at_most
    from reluflow.cli.config import read_config
    from reluflow.cli.simulation import simulate
    from reluflow.sweeps.grid import RESERVED

    asked = {"data": {"source": "golden"}, "network": {"m": 3}, "run": {"t_end": 1.0}}
    done = simulate(read_config(None, asked), tmp_path / "run.nc", progress=False)
    stored = {re.sub("^observable_.*", "observable_NAME", str(n)) for n in done.run.dataset}
    told = named("`simulate`: one run.nc")
    assert set(done.to_dict()) | stored | set(done.run.dataset.attrs) - {"format"} <= told
    verdict = Verdict("A", "P", "", "stated", Status.HOLDS, (at_most(1, 2),), (Hypothesis("h", 1),))
    fields = verdict.to_dict()
    inner = set(fields["comparisons"][0]) | set(fields["hypotheses"][0])
    assert set(fields) | inner <= named("`certify`, `claims --run`: verdicts")
    assert set(RESERVED) <= named("`sweep`: one table")


@pytest.mark.slow
def test_readme_quotes_explain_and_its_fields_are_documented():
    told = reluflow.explain(reluflow.datasets.three_points()).to_dict()
    said = " ".join(part["text"] for part in told["verdict"])
    text = (ROOT / "README.md").read_text()
    quote = " ".join(re.findall(r"^> (.*)$", text, flags=re.M))
    parts = [part.strip() for part in quote.split("[...]")]
    assert len(parts) == 2
    for part in parts:
        assert part in said
    assert set(told) <= named("`explain`: report.html")


def test_changelog_and_citation_carry_the_version():
    first = re.search(r"^## \[(.*?)\]", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)
    assert first[1] == reluflow.__version__
    assert f"version: {reluflow.__version__}" in (ROOT / "CITATION.cff").read_text()
