"""The site's scripts run, and the README prints the numbers that it shows."""

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted(
    [*(ROOT / "docs/tutorials").glob("tutorial_*.py"), *(ROOT / "docs/gallery").glob("plot_*.py")]
)
README = ROOT / "README.md"
FENCED = re.compile(r"```python\n(.*?)```", flags=re.DOTALL)
PAGES = [README, ROOT / "docs/start.md"]
BLOCKS = [block for page in PAGES for block in FENCED.findall(page.read_text())]
NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(?:e-?\d+)?")


def test_there_is_a_gallery():
    names = [path.name for path in SCRIPTS]
    assert sum(name.startswith("plot_") for name in names) >= 15
    assert sum(name.startswith("tutorial_") for name in names) >= 8


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script_runs(script, tmp_path, monkeypatch):
    """Each in a folder of its own, without a display."""
    import matplotlib

    matplotlib.use("Agg")
    if "torch" in script.read_text():
        pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    text, printed = script.read_text(), Printed()
    runpy.run_path(str(script), init_globals={"print": printed}, run_name="__main__")
    import matplotlib.pyplot as plt

    plt.close("all")
    compare(text, printed)


class Printed(dict):
    """Stands for ``print``: what each line of a script has printed."""

    def __call__(self, *args, **_):
        line = sys._getframe(1).f_lineno
        self[line] = self.get(line, "") + " ".join(map(str, args)) + "\n"


def numbers_of(text):
    """Numbers in a text as (value, half a unit of the last digit)."""
    found = []
    for match in NUMBER.findall(text):
        plain = match.replace(",", "").rstrip(".")
        mantissa, _, power = plain.partition("e")
        digits = len(mantissa.partition(".")[2])
        found.append((float(plain), 0.5 * 10.0 ** (int(power or 0) - digits)))
    return found


def promised(block):
    """Line number -> numbers in the comment behind a print."""
    lines = {}
    for number, line in enumerate(block.splitlines(), start=1):
        match = re.match(r"\s*print\(.*\)\s+# (.*)$", line)
        if match:
            lines[number] = numbers_of(match[1])
    return lines


@pytest.mark.slow
@pytest.mark.parametrize("block", range(len(BLOCKS)))
def test_pages_print_the_numbers_they_show(block, tmp_path, monkeypatch):
    """A number in the comment behind a print is in what that line prints, to its last digit."""
    monkeypatch.chdir(tmp_path)
    if "torch" in BLOCKS[block]:
        pytest.importorskip("torch")
    printed = Printed()
    exec(compile(BLOCKS[block], "page", "exec"), {"print": printed})
    compare(BLOCKS[block], printed)


def compare(text, printed):
    """A number in the comment behind a print is in what that line printed."""
    for line, numbers in promised(text).items():
        # words such as "two" and percentages that were rounded by hand are not compared
        seen = [value for value, _ in numbers_of(printed[line])]
        for value, unit in numbers:
            assert any(
                abs(value - s) <= unit * 1.001 or abs(value - 100 * s) <= unit for s in seen
            ), (
                value,
                printed[line],
            )


TUTORIALS = [path for path in SCRIPTS if path.name.startswith("tutorial_")]


@pytest.mark.parametrize("text", [*BLOCKS, *(path.read_text() for path in TUTORIALS)])
def test_every_print_says_which_numbers_to_expect(text):
    lines = [n for n, line in enumerate(text.splitlines(), 1) if line.lstrip().startswith("print(")]
    assert set(promised(text)) == set(lines)
    assert all(promised(text).values())


def test_every_block_of_the_readme_is_run():
    """Fenced blocks are Python; commands are indented, and tests/test_docs.py knows them."""
    text = README.read_text()
    fences = re.findall(r"^```(\w*)$", text, flags=re.M)
    assert fences == ["python", ""] * len(FENCED.findall(text))
    assert len(fences) >= 8


def test_a_number_that_is_not_printed_is_noticed():
    text = "print(x)  # 0.25 and 7"
    compare(text, {1: "x is 0.2500001, seven: 7"})
    with pytest.raises(AssertionError):
        compare(text, {1: "x is 0.26, seven: 7"})
    with pytest.raises(AssertionError):
        compare(text, {1: "x is 0.25"})


def test_numbers_are_read_as_printed():
    assert numbers_of("0.175, 62,409 growing, 1e-3") == [
        (0.175, pytest.approx(5e-4)),
        (62409.0, 0.5),
        (0.001, pytest.approx(5e-4)),
    ]


def test_links_that_lead_nowhere_are_found(tmp_path, monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(str(ROOT / "docs/_extensions"))
    from internal_links import broken_links

    (tmp_path / "below").mkdir()
    (tmp_path / "index.html").write_text(
        '<h1 id="top"><a href="#top"></a><a href="below/page.html#here"></a>'
        '<a href="https://elsewhere.org/x"></a><img src="none.png"><a href="#none"></a>'
        '<a href="below/page.html#there"></a><a href="below/other.html"></a>'
    )
    (tmp_path / "below/page.html").write_text('<p id="here"><a href="../index.html#top"></a>')
    found = {link for _, link in broken_links(tmp_path)}
    assert found == {"none.png", "#none", "below/page.html#there", "below/other.html"}
