"""What notebooks show: of every object a table, sentences and a picture, all text escaped."""

import base64
import os
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from reluflow import (
    Network,
    Problem,
    align,
    certify,
    datasets,
    every,
    explain,
    extremal_vectors,
    flow,
    initialize,
    limit,
    max_margin,
    min_norm,
)

LINE = datasets.three_points()
NET = initialize(LINE, 10, scale=1e-3, rng=0)


class Balance(HTMLParser):
    """Fails on a tag that is closed in the wrong place."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag != "img":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        assert tag == "img"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def html_of(what):
    html = what._repr_html_()
    parser = Balance()
    parser.feed(html)
    assert parser.open == []
    return html


def picture(html):
    data = re.search(r"data:image/svg\+xml;base64,([^']+)'", html)[1]
    return base64.b64decode(data).decode()


def test_a_problem_shows_names_classes_and_samples():
    problem = Problem(
        np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]]),
        [1.0, -1.0, 1.0],
        loss="logistic",
        name="<fruit>",
        feature_names=["length", "<b>width"],
        label_names=["fig", "pear"],
    )
    html = html_of(problem)
    assert "Problem: &lt;fruit&gt;" in html
    assert "length and &lt;b&gt;width" in html
    assert "2 pear, 1 fig" in html
    svg = picture(html)
    assert "pear" in svg
    assert 'fill="var(--paper)"' in svg


@pytest.mark.parametrize("d", [1, 2, 5])
def test_samples_of_any_dimension_and_number_are_drawn(d):
    rng = np.random.default_rng(0)
    problem = Problem(rng.normal(size=(3000, d)), rng.normal(size=3000))
    svg = picture(html_of(problem))
    assert svg.count(") scale(") == 600
    assert "600 of 3000 samples" in svg


def test_a_run_shows_its_course_and_its_status():
    run = flow(LINE, NET, t_end=20.0, save=every(0.5))
    html = html_of(run)
    assert "The flow reached time 20." in html
    assert "41" in html
    assert "loss" in picture(html)
    assert "img" not in html_of(flow(LINE, NET, t_end=0.0))  # one record is no curve


def test_a_process_shows_jumps_and_staircase():
    html = html_of(limit(LINE, NET))
    assert "time / log(1/scale)" in html
    assert "predicted loss, scale to 0" in picture(html)


def test_landscape_alignment_network_and_margins_are_tables():
    assert "critical points of G (all)" in html_of(extremal_vectors(LINE))
    assert "Early alignment of ten neurons" in html_of(align(LINE, NET))
    assert "<td style='text-align:left'>10</td>" in html_of(NET)
    assert "exp(-1000" in html_of(Network(np.eye(2), np.ones(2), -1000.0))
    xor = datasets.symmetric_xor()
    for found in (max_margin(xor), max_margin(xor, model="linear"), min_norm(LINE)):
        assert "status" in html_of(found)


def test_verdicts_are_a_list_and_a_table():
    verdicts = certify(LINE, NET, claims="BF24-L1")
    assert isinstance(verdicts, list)
    assert "BF24-L1" in html_of(verdicts)


@pytest.mark.slow
def test_an_explanation_shows_its_verdict():
    found = explain(LINE, m=20, scale=1e-4, seconds=10.0, progress=False)
    html = html_of(found)
    for topic, _ in found.verdict:
        assert f"<th style='text-align:left'>{topic}</th>" in html
    assert "predicted jump" in picture(html)
    assert found.plot().get_title().startswith("The network of 20 neurons")


@pytest.mark.slow
def test_a_notebook_shows_problem_run_process_and_explanation():
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient").NotebookClient
    cells = [
        "from reluflow import datasets, every, explain, flow, initialize, limit\n"
        "problem = datasets.three_points(); problem",
        "net = initialize(problem, 20, scale=1e-4, rng=0)\n"
        "run = flow(problem, net, t_end=40.0, save=every(0.5)); run",
        "limit(problem, net)",
        "explain(problem, m=20, scale=1e-4, seconds=10.0, progress=False)",
        "run.plot(process=limit(problem, net))",
    ]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    folder = os.environ.get("RELUFLOW_NOTEBOOK")  # where to keep it, to be looked at
    client(book, timeout=300, kernel_name="python3").execute()
    for cell in book.cells[:4]:
        assert "img" in cell.outputs[-1]["data"]["text/html"]
    assert "image/png" in book.cells[4].outputs[-1]["data"]
    if folder:
        nbformat.write(book, f"{folder}/shown.ipynb")
