"""Where the real MNIST files are, if anywhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def mnist_folder() -> Path:
    """Folder with the MNIST files: RELUFLOW_DATA, or shared/data beside the repository."""
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "data"
    for root in filter(None, (os.environ.get("RELUFLOW_DATA"), beside)):
        for folder in (Path(root), Path(root) / "mnist"):
            if (folder / "train-images-idx3-ubyte.gz").is_file():
                return folder
    pytest.skip("MNIST files not found: set RELUFLOW_DATA to the folder that has them")
