"""The page in a real Chromium: what a reader does, and the numbers that come of it."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import reluflow as rf

pytestmark = pytest.mark.slow
START = {"m": 40, "scale": 1e-4, "seed": 1}


def fragment(settings, b=None):
    """Settings as they stand in the page's address."""
    import base64

    text = json.dumps({"a": settings, "b": b})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def open_page(page, studio, settings=None, b=None):
    """Open the page and wait for its first run."""
    more = "" if settings is None else f"&s={fragment(settings, b)}"
    page.goto("about:blank")
    page.goto(f"{studio.address}{more}")
    page.locator(".rf-column-A .rf-run", has_text="Simulated").wait_for()


def built_in(name):
    return {"data": {"source": "built-in", "name": name}, "start": START}


def jump_times(page, side="A"):
    cells = page.locator(f".rf-column-{side} td[data-time]")
    return [float(cell.get_attribute("data-time")) for cell in cells.all()]


def end_loss(page, side="A"):
    return float(page.locator(f".rf-column-{side} .rf-run").get_attribute("data-loss"))


def reading(page):
    """Time and losses beside the clock."""
    return [
        float(v)
        for v in re.findall(r"[\d.]+(?:e-?\d+)?", page.locator(".rf-reading").text_content())
    ]


def drag_point(page, from_share, to_share):
    """Drag between places given as shares of the data picture."""
    box = page.locator(".rf-column-A .rf-data canvas").bounding_box()
    at = [
        (box["x"] + sx * box["width"], box["y"] + sy * box["height"])
        for sx, sy in (from_share, to_share)
    ]
    page.mouse.move(*at[0])
    page.mouse.down()
    for k in range(1, 9):
        page.mouse.move(*(at[0][i] + k / 8 * (at[1][i] - at[0][i]) for i in range(2)))
        page.wait_for_timeout(40)
    page.mouse.up()


def place_of_point(page, problem, k):
    """Where point k of a one-dimensional set is drawn, as shares of the picture."""
    box = page.locator(".rf-column-A .rf-data canvas").bounding_box()
    w, h = box["width"], box["height"]
    low, high = min(0.0, problem.y.min()), max(0.0, problem.y.max())
    room = 0.35 * (high - low)
    low, high = low - room, high + room
    x = problem.X[:, 0]
    x0, x1 = x.min() - 0.35 * np.ptp(x), x.max() + 0.35 * np.ptp(x)
    px = 46 + (w - 58) * (x[k] - x0) / (x1 - x0)
    py = 20 + (h - 54) * (high - problem.y[k]) / (high - low)
    return px / w, py / h


def test_dragging_a_point_moves_the_predicted_jump(page, studio):
    open_page(page, studio, built_in("three-points"))
    problem = rf.datasets.three_points()
    before, silent = jump_times(page), end_loss(page)
    drag_point(page, place_of_point(page, problem, 0), (0.2, 0.2))
    page.locator(f'.rf-run:not([data-loss="{silent}"])').first.wait_for()
    after = jump_times(page)
    assert len(before) == len(after) == 1
    assert before[0] != after[0]
    # what is shown is the library's own prediction for the points in the address
    state = state_of(page)
    rows = np.array(state["a"]["data"]["rows"])
    moved = rf.Problem(rows[:, :-1], rows[:, -1], bias=1.0)
    net = rf.initialize(moved, START["m"], scale=START["scale"], rng=START["seed"])
    process = rf.limit(moved, net)
    assert after == process.jump_times(log_scale=float(net.log_norms.max())).tolist()
    assert np.array_equal(rows[1:], np.column_stack([problem.X[:, 0], problem.y])[1:])
    assert end_loss(page) == rf.flow(moved, net).loss[-1]


def state_of(page):
    """The settings in the page's address."""
    import base64

    packed = re.search(r"[#&]s=([\w-]+)", page.url)[1]
    return json.loads(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)))


def test_playing_to_the_end_shows_the_loss_of_flow(page, studio):
    open_page(page, studio, built_in("three-points"))
    page.get_by_label("Speed").select_option("4")
    page.get_by_role("button", name="Play").click()
    page.get_by_role("button", name="Pause").wait_for()
    page.get_by_role("button", name="Play").wait_for()  # it stops by itself
    problem = rf.datasets.three_points()
    net = rf.initialize(problem, START["m"], scale=START["scale"], rng=START["seed"])
    run = rf.flow(problem, net)
    time, loss = reading(page)
    assert loss == float(f"{run.loss[-1]:.6g}")
    assert time == float(f"{run.times[-1]:.4g}")
    assert end_loss(page) == run.loss[-1]
    page.get_by_role("button", name="Rewind").click()
    assert reading(page) == [0.0, float(f"{problem.loss_of(net):.6g}")]


def test_two_settings_share_one_clock(page, studio):
    open_page(page, studio, built_in("three-points"))
    page.get_by_label("Compare with").select_option(label="A | B: leak 0.1")
    page.locator(".rf-column-B .rf-run", has_text="Simulated").wait_for()
    problem = rf.datasets.three_points()
    for side, leak in (("A", 0.0), ("B", 0.1)):
        each = problem.replace(leak=leak)
        net = rf.initialize(each, START["m"], scale=START["scale"], rng=START["seed"])
        assert end_loss(page, side) == rf.flow(each, net).loss[-1]
    page.get_by_label("Time", exact=True).press("End")
    _, a, b = reading(page)
    assert [a, b] == [float(f"{end_loss(page, side):.6g}") for side in "AB"]
    assert a != b
    assert state_of(page)["b"] == {"leak": 0.1}


def test_upload_of_a_table_and_of_a_bad_one(page, studio, tmp_path):
    good, bad = tmp_path / "fruit.csv", tmp_path / "bad.csv"
    good.write_text("size,weight,kind\n1,2,fig\n2,1,fig\n-1,-1,pear\n-2,-1,pear\n1,-2,pear\n")
    bad.write_text("size,weight,kind\n1,2,fig\n2,much,pear\n")
    open_page(page, studio, built_in("three-points"))
    before = end_loss(page)
    page.get_by_text("Paste or upload a table").click()
    page.get_by_label("File").set_input_files(bad)
    refused = page.locator('[data-field="data.text"] .rf-refused')
    refused.wait_for()
    assert "bad.csv line 3 column 2 holds 'much'" in refused.text_content()
    page.get_by_label("File").set_input_files(good)
    page.locator(".rf-notes li", has_text="pear is +1, fig is -1").wait_for()
    page.locator(f'.rf-run:not([data-loss="{before}"])').first.wait_for()
    assert refused.is_hidden()
    problem = rf.Problem.from_table(good)
    net = rf.initialize(problem, START["m"], scale=START["scale"], rng=START["seed"])
    process = rf.limit(problem, net)
    assert jump_times(page) == process.jump_times(log_scale=float(net.log_norms.max())).tolist()


def download(page, kind):
    page.locator("summary", has_text="Export").click()
    with page.expect_download() as waiting:
        page.locator(f'[data-file="{kind}"]').click()
    page.locator("summary", has_text="Export").click()
    return waiting.value


def test_exported_files_are_those_of_the_run(page, studio, tmp_path, capsys):
    open_page(page, studio, built_in("toy6"))
    shown = end_loss(page)
    download(page, "nc").save_as(tmp_path / "run.nc")
    run = rf.Trajectory.load(tmp_path / "run.nc")
    assert run.loss[-1] == shown
    assert np.array_equal(run.problem.X, rf.datasets.toy6().X)
    download(page, "csv").save_as(tmp_path / "curves.csv")
    table = np.genfromtxt(tmp_path / "curves.csv", delimiter=",", names=True)
    assert np.array_equal(table["loss"], run.loss)
    assert np.array_equal(table["time"], run.times)
    download(page, "py").save_as(tmp_path / "same.py")
    names = {}
    exec(compile((tmp_path / "same.py").read_text(), "same.py", "exec"), names)
    assert names["run"].loss[-1] == shown
    assert "JumpProcess" in capsys.readouterr().out


def test_pictures_are_saved_as_png_and_svg(page, studio, tmp_path):
    open_page(page, studio, built_in("three-points"))
    for kind, head in (("PNG", b"\x89PNG"), ("SVG", b"<svg")):
        with page.expect_download() as waiting:
            page.get_by_label(f"Save picture Loss as {kind}").first.click()
        waiting.value.save_as(tmp_path / kind)
        content = (tmp_path / kind).read_bytes()
        assert content.startswith(head)
        assert len(content) > 2000


def test_the_colours_of_neurons_are_named_in_their_picture(page, studio, tmp_path):
    open_page(page, studio, built_in("three-points"))
    with page.expect_download() as waiting:
        page.get_by_label("Save picture Neurons as SVG").first.click()
    waiting.value.save_as(tmp_path / "neurons.svg")
    marks = re.findall(
        r'<circle[^>]*fill="(#\w+)"[^>]*/><text[^>]*>(\w+) output<',
        (tmp_path / "neurons.svg").read_text(),
    )
    assert [name for _, name in marks] == ["positive", "negative"]
    assert len({colour for colour, _ in marks}) == 2


def test_the_address_brings_everything_back(page, studio):
    settings = {
        "data": {"source": "points", "rows": [[-1.0, 0.5], [0.5, 1.0], [1.0, -0.25]]},
        "bias": 1,
        "loss": "square",
        "start": {"m": 7, "scale": 1e-3, "seed": 3, "kind": "sphere", "signs": "+1"},
    }
    open_page(page, studio, settings)
    first = end_loss(page)
    page.get_by_label("Seed").fill("4")
    page.get_by_label("Seed").press("Enter")
    page.locator(f'.rf-run:not([data-loss="{first}"])').first.wait_for()
    second = end_loss(page)
    page.reload()
    page.locator(".rf-run", has_text="Simulated").first.wait_for()
    assert end_loss(page) == second
    assert page.get_by_label("Seed").input_value() == "4"
    page.get_by_label("Seed").fill("5")
    page.get_by_label("Seed").press("Enter")
    page.locator(f'.rf-run:not([data-loss="{second}"])').first.wait_for()
    page.go_back()
    page.locator(f'.rf-run[data-loss="{second}"]').first.wait_for()
    assert page.get_by_label("Seed").input_value() == "4"
    page.go_forward()
    page.locator(f'.rf-run:not([data-loss="{second}"])').first.wait_for()
    assert page.get_by_label("Seed").input_value() == "5"


def test_a_long_run_can_be_cancelled(page, studio):
    open_page(page, studio, built_in("three-points"))
    before = end_loss(page)
    page.get_by_role("spinbutton", name="Neurons").fill("200000")
    page.get_by_role("spinbutton", name="Neurons").press("Enter")
    page.locator(".rf-words", has_text="of 200,000 neurons").wait_for()
    page.get_by_role("button", name="Simulate").click()
    page.locator(".rf-work:not(.rf-idle) .rf-note", has_text="time").wait_for()
    page.get_by_role("button", name="Cancel").click()
    page.locator(".rf-work.rf-idle").wait_for(state="attached")
    assert end_loss(page) == before  # no new run came
    page.get_by_role("spinbutton", name="Neurons").fill("30")
    page.get_by_role("spinbutton", name="Neurons").press("Enter")
    page.locator(f'.rf-run:not([data-loss="{before}"])').first.wait_for()
    assert math.isclose(end_loss(page), before, rel_tol=1e-6)  # the same line, whatever the width


def test_a_refused_number_is_said_beside_its_field(page, studio):
    open_page(page, studio, built_in("three-points"))
    page.get_by_role("spinbutton", name="Neurons").fill("0")
    page.get_by_role("spinbutton", name="Neurons").press("Enter")
    refused = page.locator('[data-field="start.m"] .rf-refused')
    refused.wait_for()
    assert "greater than or equal to 1, got 0" in refused.text_content()


def test_points_move_by_keyboard(page, studio):
    open_page(page, studio, built_in("three-points"))
    before = jump_times(page)
    page.locator(".rf-column-A .rf-data canvas").focus()
    page.keyboard.press("]")
    page.keyboard.press("Shift+ArrowUp")
    page.locator(f'td[data-time]:not([data-time="{before[0]}"])').first.wait_for()
    rows = state_of(page)["a"]["data"]["rows"]
    assert rows[0][1] > rf.datasets.three_points().y[0]
    page.keyboard.press("a")
    page.keyboard.press("Delete")
    assert len(state_of(page)["a"]["data"]["rows"]) == 3


def test_everything_has_a_name_for_screen_readers(page, studio):
    open_page(page, studio, built_in("three-points"))
    missing = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, textarea, canvas, summary")]
        .filter((el) => !(el.ariaLabel || el.labels?.length || el.textContent.trim()))
        .map((el) => el.outerHTML.slice(0, 120))"""
    )
    assert missing == []


def test_the_answer_is_that_of_explain(page, studio):
    settings = {**built_in("three-points"), "start": {"m": 20, "scale": 1e-4, "seed": 0}}
    open_page(page, studio, settings)
    page.get_by_role("button", name="Explain this").click()
    page.locator(".rf-answer th", has_text="certificate").wait_for()
    found = rf.explain(rf.datasets.three_points(), m=20, scale=1e-4, seed=0, progress=False)
    shown = [
        page.locator(".rf-verdict article").nth(i).inner_text() for i in range(len(found.verdict))
    ]
    for text, (topic, said) in zip(shown, found.verdict, strict=True):
        assert topic in text
        assert said in text
    page.locator(".rf-verdict button", has_text="extremal vector").click()
    assert page.locator(".rf-glossary dt", has_text="extremal vector").is_visible()


@pytest.mark.parametrize("data", ["three-points", "xor", "golden", "pears.csv"])
def test_numbers_are_those_of_the_command_line(page, studio, data, tmp_path):
    """`reluflow predict` and `reluflow simulate` in processes of their own, digit for digit."""
    settings = built_in(data)
    source = data
    if data.endswith(".csv"):
        source = str(tmp_path / data)
        rows = ["ripe,large,kind", "1.2,0.3,pear", "0.4,1.1,pear", "-1.3,0.2,fig", "0.1,-0.9,fig"]
        Path(source).write_text("\n".join(rows) + "\n")
        settings["data"] = {"source": "table", "name": data, "text": Path(source).read_text()}
    open_page(page, studio, settings)
    start = ["--m", "40", "--scale", "1e-4", "--seed", "1", "--json"]
    predicted = command("predict", source, *start)
    assert jump_times(page) == predicted["jump_times"]
    losses = [float(c.get_attribute("data-loss")) for c in page.locator("td[data-loss]").all()]
    assert losses == [row["loss"] for row in predicted["process"]["jumps"]]
    script = download(page, "py")
    script.save_as(tmp_path / "same.py")
    end = re.search(r"t_end=([\d.e+]+)", (tmp_path / "same.py").read_text())
    more = ["--t-end", end[1]] if end else []
    made = command("simulate", source, "-o", tmp_path / "run.nc", *start, *more)
    assert end_loss(page) == made["loss"]


def command(*arguments):
    """What a command prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "reluflow", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)
