"""The front end's files: plain modules, small, joined into one script."""

import re

import pytest

from reluflow.playback.bundle import bundle, read_static, static_names

MODULES = [name for name in static_names() if name.endswith(".js")]


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_small_and_fetch_nothing_from_elsewhere(name):
    text = read_static(name)
    assert text.startswith("//"), "the first line says what the module is about"
    assert text.count("\n") < 300
    assert not re.search(r"https?://(?!www\.w3\.org)", text)
    assert "innerHTML" not in text
    assert "eval(" not in text


@pytest.mark.parametrize("entry", ["studio", "replay"])
def test_the_bundle_is_one_module_with_a_default_export(entry):
    text = bundle(entry)
    assert not re.search(r"^import ", text, re.MULTILINE)
    assert re.findall(r"^export .*", text, re.MULTILINE) == [f"export default m_{entry}.default;"]
    order = re.findall(r"^const (m_\w+) = \(\(\) => \{$", text, re.MULTILINE)
    assert len(order) == len(set(order))
    for i, name in enumerate(order):
        body = text[text.index(f"const {name} = (") :].split("\n})();")[0]
        used = set(re.findall(r"\} = (m_\w+);", body))
        assert used <= set(order[:i]), f"{name} comes before what it needs"


def test_the_page_has_neither_inline_scripts_nor_styles():
    text = read_static("index.html")
    assert not re.search(r"<script(?![^>]*src=)", text)
    assert "style=" not in text
    assert "<style" not in text
