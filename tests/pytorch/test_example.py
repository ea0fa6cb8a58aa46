"""The example runs, on digits that are easier than MNIST's."""

import runpy
from pathlib import Path

import pytest

pytest.importorskip("torch.nn", reason="needs torch: pip install 'reluflow[torch]'")

EXAMPLE = Path(__file__).parents[2] / "examples" / "monitor_mnist.py"


@pytest.mark.slow
def test_small_weights_align_first(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("RELUFLOW_DATA", str(folder))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path(str(EXAMPLE))
    assert (tmp_path / "monitor_mnist.png").stat().st_size > 20_000
    lines = {ax.get_title(): [line.get_ydata() for line in ax.lines] for ax in names["axes"].flat}
    for title, (alignment, size) in lines.items():
        before = alignment[size < 0.1]  # while the layer has a tenth of its largest norm
        if title.endswith("times 1"):
            assert before.size == 0, title
            assert alignment.max() < 0.5, title
        else:
            assert before.max() > 0.6, title
            assert alignment[0] < 0.3, title
