"""The notebooks of the course run from the first cell to the last."""

from pathlib import Path

import pytest

BOOKS = sorted((Path(__file__).parents[1] / "examples/course").glob("*.ipynb"))


def test_there_are_six():
    assert len(BOOKS) == 6


@pytest.mark.slow
@pytest.mark.parametrize("book", BOOKS, ids=lambda path: path.stem)
def test_notebook_runs(book):
    """Cells assert the answers of the exercises."""
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    nbclient.NotebookClient(nbformat.read(book, 4), timeout=300).execute()


@pytest.mark.parametrize("book", BOOKS, ids=lambda path: path.stem)
def test_notebook_is_kept_without_outputs(book):
    """What a cell prints is not kept: it would not be true for long."""
    nbformat = pytest.importorskip("nbformat")
    for cell in nbformat.read(book, 4).cells:
        assert cell.cell_type != "code" or (not cell.outputs and cell.execution_count is None)
