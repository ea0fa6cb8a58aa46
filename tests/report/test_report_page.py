"""Pages explain their terms, put failures first and say the same law once."""

import re
from types import SimpleNamespace

import pytest

from reluflow.claims.verdict import Hypothesis, Status, Verdict, at_most, equals
from reluflow.explanation.page import _failures
from reluflow.papers.reproduce import write_index
from reluflow.papers.sources import SOURCES
from reluflow.report.glossary import CLAIM_TERMS, GLOSSARY, TERMS, definition, mark_terms
from reluflow.report.page import Page, law_rows, verdict_rows


def anchors(html):
    return set(re.findall(r'id="(term-[^"]+)"', html))


def leads(html):
    return re.findall(r'class="term" href="#(term-[^"]+)"', html)


def test_a_term_leads_to_its_definition_once():
    page = Page("A run", "Neurons from weights of size 1", terms=True)
    page.text("Two jumps, then a plateau. The jump of a dead neuron?").definitions()
    assert leads(page.html) == [
        *("term-neuron", "term-scale", "term-jump", "term-plateau", "term-dead-neuron"),
    ]
    assert set(leads(page.html)) == anchors(page.html)
    assert GLOSSARY["plateau"] in page.html
    assert "extremal" not in page.html.partition("<dl>")[2].partition("term-plateau")[0]


def test_terms_are_found_in_tables_lists_and_captions_and_text_is_escaped():
    page = Page("A run", terms=True)
    page.points(["<b>margin</b>"]).table([{"kind": "weak min", "claims": ["KKT & more"]}])
    html = page.definitions().html
    assert (
        set(leads(html))
        == anchors(html)
        == {
            *("term-margin", "term-kind", "term-claim", "term-KKT-direction"),
        }
    )
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert "&amp; more" in html


def test_pages_without_terms_are_as_they_were():
    page = Page("A run").text("a jump").definitions()
    assert "term" not in page.html.partition("<body>")[2]


@pytest.mark.parametrize("term", [*TERMS, *CLAIM_TERMS], ids=lambda term: term.name)
def test_every_term_is_found_by_its_forms_and_says_something(term):
    assert term.says.endswith(".")
    for form in (*term.forms, *(() if "," in term.name else (term.name,))):
        marked = mark_terms(f"so {form}, then", lambda name, words: f"[{name}]", str)
        assert marked == f"so [{term.name}], then"
    assert definition(term.name) == term.says


def test_words_within_words_are_no_terms():
    for text in (
        "scaled",
        "delta_margins",
        "G(w)",
        "lambda*",
        "Gram",
        "TK24-RATE",
        "the limit is 1",
    ):
        assert mark_terms(text, lambda name, words: f"[{name}]", str) == text


def verdict(id, *comparisons, status=Status.HOLDS, given=("gradient flow",), **more):
    met = tuple(Hypothesis(name, True) for name in given)
    paper = id.split("-")[0]
    return Verdict(id, paper, f"what {id} says", "stated", status, comparisons, met, **more)


def drift(bound, measured=1e-9):
    return at_most(measured, bound, what="drift")


SIGNS = equals(0, 0, tolerance=0, what="signs")


def test_a_law_of_several_papers_is_one_row():
    rows = law_rows(
        [
            verdict("TK24-INV", drift(1e-7), SIGNS, given=("gradient flow", "balanced start")),
            verdict("BF24-A4", at_most(1, 2, what="another")),
            verdict("BF24-L1", drift(1e-8)),
            verdict("LLWA21-LB.16", drift(1e-8)),
        ]
    )
    assert [row["claim"] for row in rows] == [["TK24-INV", "BF24-L1", "LLWA21-LB.16"], "BF24-A4"]
    law = rows[0]
    assert law["measured"] == ["drift: 1e-09 <= 1e-08", "signs: 0 == 0"]  # the narrowest bound
    assert law["rests on"] == ["gradient flow", "balanced start (TK24-INV)"]
    assert [line.split(":")[0] for line in law["statement"]] == law["claim"]
    assert list(law) == list(rows[1])


def test_what_differs_in_status_number_or_only_within_a_paper_stays_apart():
    first = verdict("BF24-L1", drift(1e-8))
    for other in (
        verdict("MMV24-B1", drift(1e-10), status=Status.FAILS),
        verdict("MMV24-B1", drift(1e-8, measured=2e-9)),
        verdict("MMV24-B1", drift(1e-8), note="measured otherwise"),
        verdict("BF24-L2", drift(1e-8)),
        verdict("MMV24-A2"),
    ):
        assert law_rows([first, other]) == verdict_rows([first, other])


def test_names_of_claims_are_not_folded():
    html = Page("A page").table([{"claim": list("abcdefg"), "statement": list("abcdefg")}]).html
    assert html.count("<details>") == 1
    assert "<div>g</div></div></td><td" in html


def test_failing_claims_are_in_the_headline():
    failed = [verdict("BF24-L1", drift(1e-10), status=Status.FAILS)]
    said = _failures(failed)
    assert said == "One claim of the papers FAILS here: BF24-L1 (what BF24-L1 says)."
    assert "Two claims of the papers FAIL here" in _failures(failed * 2)


def test_a_reproduction_page_names_its_papers_and_lists_what_it_has(tmp_path):
    known = verdict("BF24-L1", drift(1e-10), status=Status.FAILS, expected=Status.FAILS)
    other = verdict("TLB26-P1", drift(1e-8))
    page = write_index(tmp_path, [], [known, other], {}, "quick").read_text()
    assert "These fail as printed, which is known: BF24-L1." in page
    for paper in ("BF24", "TLB26"):
        source = SOURCES[paper]
        for part in (source.title, source.authors, source.link, f'id="{paper}-claims"'):
            assert part in page
    targets = set(re.findall(r'href="#([^"]+)"', page))
    assert targets <= set(re.findall(r'id="([^"]+)"', page))
    figure = SimpleNamespace(
        paper="BF24", name="F9", title="t", panels=[], films=[], summary=[], verdicts=[known]
    )
    page = write_index(tmp_path, [figure], [], {}, "quick").read_text()
    assert "<h1>Reproduction of BF24</h1>" in page
    assert 'href="#BF24-F9"' in page
    assert "BF24-claims" not in page
