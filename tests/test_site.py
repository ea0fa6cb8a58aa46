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
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
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
    runpy.run_path(str(script), run_name="__main__")
    import matplotlib.pyplot as plt

    plt.close("all")


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
def test_readme_prints_the_numbers_it_shows(block, tmp_path, monkeypatch):
    """A number in the comment behind a print is in what that line prints, to its last digit."""
    monkeypatch.chdir(tmp_path)
    printed = {}

    def note(*args, **_):
        line = sys._getframe(1).f_lineno
        printed[line] = printed.get(line, "") + " ".join(map(str, args))

    exec(compile(BLOCKS[block], "README.md", "exec"), {"print": note})
    for line, numbers in promised(BLOCKS[block]).items():
        # words such as "two" and percentages that were rounded by hand are not compared
        seen = [value for value, _ in numbers_of(printed[line])]
        for value, unit in numbers:
            assert any(
                abs(value - s) <= unit * 1.001 or abs(value - 100 * s) <= unit for s in seen
            ), (
                value,
                printed[line],
            )


def test_numbers_are_read_as_printed():
    assert numbers_of("0.175, 62,409 growing, 1e-3") == [
        (0.175, pytest.approx(5e-4)),
        (62409.0, 0.5),
        (0.001, pytest.approx(5e-4)),
    ]
