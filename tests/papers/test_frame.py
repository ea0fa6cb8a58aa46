"""The frame of reproductions: registry, records, resuming, the page, the traces."""

import json
import os
import sys
from dataclasses import replace

import numpy as np
import pytest

from reluflow import ReluflowError
from reluflow.claims.claim import REGISTRY, Check
from reluflow.claims.run import try_check
from reluflow.claims.verdict import Status, at_most
from reluflow.papers import reproduce
from reluflow.papers import reproduce as _package_function
from reluflow.papers.catalogue import all_figures, select_figures
from reluflow.papers.figure import FIGURES, Drawn, Skipped, Spec, figure
from reluflow.papers.parts import make_figure, make_verdict
from reluflow.papers.sources import SOURCES
from reluflow.plot.render import compose, to_svg
from reluflow.plot.render import draw as draw_panel
from reluflow.plot.traces import Band, Image, Line, Panel, Picture, Points, Rule
from reluflow.report.page import Mark, Page

CALLS = []


def draw(*, size, seed=0):
    x = np.linspace(0.1, size, 50)
    panels = [
        Panel(
            [Line(x, np.sin(x), "sine"), Rule(1.0, text="one"), Rule(0.5, "y", text="half")],
            "curve",
            "x",
            "y",
            legend="best",
        ),
        Panel([Band(x, x - 1, x + 1, "band"), Points(x, x)], "band", xscale="log", equal=False),
        Panel([Points(x, x, color=["tab:red"] * 50)], "polar", polar=True, ylim=(0, 5), hole=0.3),
        Panel([Image(np.outer(x, x), (0, 1, 0, 1), levels=(-1, 0, 1), bar=True)], "contours"),
    ]
    return Drawn(
        [Picture(panels, 2), Picture(panels[:1], name="extra")],
        {"size": size, "x": x},
        ["It was drawn."],
        [at_most(size, 5, what="size")],
        "A caption.",
    )


def draw_little(*, size, seed=0):
    CALLS.append(size)
    panel = Panel([Points([1.0], [float(seed)])], "one point", axes=False)
    pictures = [Picture([panel], width=2, height=2), Picture([panel], name="extra", width=2)]
    return Drawn(pictures, {"size": size, "x": np.ones(2)}, ["It was drawn."], [at_most(size, 5)])


@pytest.fixture
def spec():
    CALLS.clear()
    return Spec("BF24", "F1", "A test", draw_little, {"quick": {"size": 3}, "full": {"size": 9}})


def test_a_figure_is_made_once(spec, tmp_path):
    (tmp_path / "panels").mkdir()
    first = make_figure(spec, tmp_path, "quick")
    assert [path.name for path in first.files] == ["bf24-f1.png", "bf24-f1-extra.png"]
    assert all(path.stat().st_size > 1000 for path in first.files)
    assert not first.resumed
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.*")}
    again = make_figure(spec, tmp_path, "quick")
    assert again.resumed
    assert CALLS == [3]
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.*")} == before
    assert again.verdicts == first.verdicts
    assert again.numbers == first.numbers
    assert not list(tmp_path.rglob("*.part"))
    # other settings, another seed, a damaged record or a lost file: made again
    make_figure(spec, tmp_path, "quick", seed=1)
    make_figure(spec, tmp_path, "full")
    make_figure(spec, tmp_path, "quick")
    assert CALLS == [3, 3, 9, 3]
    (tmp_path / "records" / "bf24-f1.json").write_text("{")
    make_figure(spec, tmp_path, "quick")
    (tmp_path / "panels" / "bf24-f1-0.svg").unlink()
    make_figure(spec, tmp_path, "quick")
    assert CALLS == [3, 3, 9, 3, 3, 3]


def test_what_must_be_seen_is_a_verdict(spec, tmp_path):
    (tmp_path / "panels").mkdir()
    assert make_figure(spec, tmp_path, "quick").verdicts[0].status is Status.HOLDS
    bad = make_figure(spec, tmp_path, "full").verdicts[0]
    assert bad.status is Status.FAILS
    assert bad.surprising


def test_a_figure_that_waits_is_made_last_and_shown_in_its_place(tmp_path, monkeypatch):
    all_figures()
    order = []

    def begin(name):
        def draw_it(*, size, seed=0):
            order.append(name)
            return draw_little(size=size, seed=seed)

        return draw_it

    for name, waits in (("F1", True), ("F2", False)):
        spec = Spec("BF24", name, "A test", begin(name), {"quick": {"size": 3}}, waits=waits)
        monkeypatch.setitem(FIGURES, ("BF24", name), spec)
    both = [FIGURES["BF24", "F1"], FIGURES["BF24", "F2"]]
    module = sys.modules["reluflow.papers.reproduce"]
    monkeypatch.setattr(module, "_select", lambda *_: (both, []))
    made = reproduce("bf24", None, tmp_path, "quick", workers=0)
    assert order == ["F2", "F1"]
    assert [figure.name for figure in made.figures] == ["F1", "F2"]


def test_long_cells_are_folded():
    html = Page("A page").table([{"measured": list("abcdefg"), "rests on": list("hij")}]).html
    assert "<div>c</div><details><summary>4 more</summary><div>d</div>" in html
    assert html.count("<details>") == 1


def test_counts_have_whole_ticks():
    panel = Panel([Points(range(3), [1, 2, 2])], "counts")
    ax = draw_panel(panel)
    for ticks in (ax.get_xticks(), ax.get_yticks()):
        assert np.array_equal(ticks, np.round(ticks))
    fractions = draw_panel(replace(panel, traces=[Points([0.0, 0.2, 0.4], [1, 2, 2])]))
    assert not np.array_equal(fractions.get_xticks(), np.round(fractions.get_xticks()))


def test_a_skipped_figure_says_why_and_is_tried_again(tmp_path):
    (tmp_path / "panels").mkdir()

    def needs_data(*, seed=0):
        raise Skipped("needs MNIST: set RELUFLOW_DATA")

    spec = Spec("MMV24", "F5", "MNIST", needs_data, {"quick": {}, "full": {}})
    made = make_figure(spec, tmp_path, "quick")
    assert made.summary == ("Skipped: needs MNIST: set RELUFLOW_DATA",)
    assert made.verdicts[0].status is Status.OUT_OF_SCOPE
    assert not made.verdicts[0].surprising
    assert not list(tmp_path.glob("records/*"))


def test_a_skipped_figure_is_out_of_scope_as_a_claim_too(monkeypatch):
    """The check registered with a figure says what the figure does where data are absent."""
    all_figures()  # both entries are put back afterwards
    monkeypatch.setitem(FIGURES, ("BF24", "F2"), FIGURES["BF24", "F2"])
    monkeypatch.setitem(REGISTRY, "BF24-F2", REGISTRY["BF24-F2"])

    def needs_data(*, seed=0):
        raise Skipped("needs MNIST: set RELUFLOW_DATA")

    needs_data.__module__ = REGISTRY["BF24-F2"].module
    figure("BF24", "F2", title="A test", quick={}, full={})(needs_data)
    verdict = try_check(REGISTRY["BF24-F2"])
    assert verdict.status is Status.OUT_OF_SCOPE
    assert not verdict.surprising
    assert "set RELUFLOW_DATA" in verdict.text()


@pytest.mark.parametrize(
    ("before", "device", "expected"),
    [(None, "cpu", "cpu"), ("cpu", None, "cpu"), ("cpu", "auto", None), (None, None, None)],
)
def test_every_process_knows_the_device(tmp_path, monkeypatch, before, device, expected):
    seen = []

    def look(*, seed=0):
        seen.append(os.environ.get("RELUFLOW_DEVICE"))
        raise Skipped("enough")

    monkeypatch.delenv("RELUFLOW_DEVICE", raising=False)
    if before:
        monkeypatch.setenv("RELUFLOW_DEVICE", before)
    all_figures()
    spec = Spec("BF24", "F2", "A test", look, {"quick": {}, "full": {}})
    monkeypatch.setitem(FIGURES, ("BF24", "F2"), spec)
    reproduce("bf24", "f2", tmp_path, "quick", workers=0, device=device)
    assert seen
    assert set(seen) == {expected}
    assert os.environ.get("RELUFLOW_DEVICE") == before


def test_a_device_that_is_unknown_or_absent_is_refused(tmp_path):
    with pytest.raises(ReluflowError, match="device must be one of cpu, cuda, auto, got 'tpu'"):
        reproduce("bf24", "f2", tmp_path / "none", "quick", device="tpu")
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        with pytest.raises(ReluflowError, match="'cuda' cannot be used here"):
            reproduce("bf24", "f2", tmp_path / "none", "quick", device="cuda")
    assert not (tmp_path / "none").exists()


def test_a_verdict_is_made_once_unless_undecided(tmp_path):
    calls = []

    def count(seed, bound):
        calls.append(bound)
        if bound < 0:
            raise ReluflowError("no bound")
        return at_most(1, bound)

    for bound in (2, -1):
        check = Check(
            "BF24-L3",
            "stated",
            str(bound),
            __name__,
            experiment=count,
            sizes={"quick": {"bound": bound}, "full": {"bound": bound}},
        )
        first, resumed = make_verdict(check, tmp_path, "quick")
        assert not resumed
        second, resumed = make_verdict(check, tmp_path, "quick")
        assert first == second
        assert resumed == (bound > 0)
    assert calls == [2, -1, -1]


def test_the_page_shows_figures_and_claims(tmp_path, monkeypatch):
    spec = Spec(
        "BF24",
        "F2",
        "A test",
        draw,
        {"quick": {"size": 3}, "full": {"size": 9}},
        claims=("BF24-A1",),
    )
    all_figures()
    monkeypatch.setitem(FIGURES, ("BF24", "F2"), spec)
    done = reproduce("bf24", "f2", tmp_path, "quick", workers=0)
    assert not done.surprising
    assert {(v.id, v.form) for v in done.verdicts} == {("BF24-A1", "stated"), ("BF24-A1", "slip")}
    html = done.page.read_text()
    assert html.count("data:image/svg+xml") == 5
    assert "BF24-A1 (slip)" in html
    assert 'class="status HOLDS"' in html
    assert "printed: " in html
    assert "meant: " in html
    # the paper is linked to, and nothing is fetched
    link = SOURCES["BF24"].link
    assert f'<a href="{link}">' in html
    assert "http" not in html.replace("http://www.w3.org", "").replace(link, "")
    again = reproduce("bf24", "f2", tmp_path, "quick", workers=0)
    assert again.figures[0].resumed
    assert not again.surprising
    assert _package_function is reproduce


def test_a_part_that_fails_is_said_and_the_others_are_made(tmp_path, monkeypatch):
    def broken(*, seed=0):
        raise ZeroDivisionError("no luck")

    all_figures()
    spec = Spec("BF24", "F2", "A test", broken, {"quick": {}, "full": {}}, claims=("BF24-A1",))
    monkeypatch.setitem(FIGURES, ("BF24", "F2"), spec)
    done = reproduce("bf24", "f2", tmp_path, "quick", workers=0)
    assert done.figures[0].summary == ("Failed: ZeroDivisionError: no luck",)
    assert [v.id for v in done.surprising] == ["BF24-F2"]
    assert len(done.verdicts) == 2
    assert "no luck" in done.page.read_text()


def test_figures_are_claims_of_the_ledger():
    for (paper, name), spec in all_figures().items():
        assert spec.id == f"{paper}-{name}"
        assert REGISTRY[spec.id].experiment is not None
        assert set(spec.sizes) == {"quick", "scaled", "full"}
    assert [spec.name for spec in select_figures("tlb26")] == ["F1", "F2", "F3", "F4", "F5", "F6"]
    with pytest.raises(ReluflowError, match="size must be one of"):
        reproduce("BF24", "F2", size="huge")


@pytest.mark.parametrize(
    ("paper", "name", "found"),
    [
        ("llwa21", "f1", ["F1L", "F1M", "F1R"]),
        ("LLWA21", "F1m", ["F1M"]),
        ("llwa21", "tab1", ["Tab1"]),
        ("mmv24", "F1", ["F1"]),  # and not F10 to F13
        ("TK24", "F1", ["F1"]),
        ("tk24", "cifar", ["CIFAR"]),
    ],
)
def test_a_number_names_the_parts_of_a_figure(paper, name, found):
    assert [spec.name for spec in select_figures(paper, name)] == found


def test_a_figure_of_every_paper():
    firsts = ["BF24-F1", "LLWA21-F1L", "LLWA21-F1M", "LLWA21-F1R", "MMV24-F1", "TK24-F1"]
    assert [spec.id for spec in select_figures(None, "F1")] == [*firsts, "TLB26-F1"]


@pytest.mark.parametrize(
    ("paper", "name", "sentence"),
    [
        ("BF24", "F9", "no figure 'BF24 F9': expected one of F1, F2, F3"),
        ("llwa21", "F", "no figure 'llwa21 F': expected one of F1L, F1M, F1R, Tab1, F2, F3, F4"),
        (
            "TK24",
            "C",
            "no figure 'TK24 C': expected one of CIFAR, F1, F2, F3, F4, F5, F6, F7, F8, F9, F10",
        ),
        ("BF24", "", "no figure 'BF24': expected one of F1, F2, F3"),
        ("BF25", None, "unknown paper 'BF25': expected one of BF24, LLWA21, MMV24, TK24, TLB26"),
        ("BF25", "F1", "unknown paper 'BF25': expected one of BF24, LLWA21, MMV24, TK24, TLB26"),
    ],
)
def test_a_refusal_lists_what_could_have_been_meant(paper, name, sentence, tmp_path):
    with pytest.raises(ReluflowError) as refused:
        reproduce(paper, name, tmp_path / "none", "quick")
    assert str(refused.value) == sentence
    assert not (tmp_path / "none").exists()


def test_svg_is_the_same_every_time_and_takes_the_colours_of_the_page():
    for panel in draw(size=3).pictures[0].panels:
        svg = to_svg(panel)
        assert svg == to_svg(panel)
        assert "currentColor" in svg
        assert "prefers-color-scheme:dark" in svg
        assert "#010203" not in svg
        assert svg.startswith("<svg")
        json.dumps(panel.to_dict())
    assert len(compose(draw(size=3).pictures[0]).axes) == 5  # four panels and a colour bar


def test_page_escapes_and_reports_what_it_cannot_write(tmp_path):
    page = Page("<b>", "sub").heading("x", 3, "a").text("1 < 2", kind="soft").points(["<i>"])
    page.table([{"s": Mark("HOLDS"), "n": 3, "f": 0.25, "t": "<u>", "b": True}]).table([])
    page.links({"here": "#a"})
    html = page.html
    for raw in ("<b>", "<i>", "<u>"):
        assert raw not in html
    assert 'class="number">0.25</td>' in html
    assert 'data-label="n"' in html  # names the value where a narrow screen hides the header
    assert page.write(tmp_path / "p.html").read_text() == html
    with pytest.raises(ReluflowError, match="cannot write"):
        page.write(tmp_path / "none" / "p.html")
