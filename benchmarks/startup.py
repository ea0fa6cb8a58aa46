"""What ``import reluflow`` costs, in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

MODULES = ("reluflow", "numpy")
TRIES = 5
WANTED = 0.5  # seconds
_CODE = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


def import_seconds(module: str) -> float:
    """Least wall-clock time of the import, one interpreter for each try."""
    command = [sys.executable, "-c", _CODE.format(module)]
    return min(
        float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        for _ in range(TRIES)
    )


def run(console: Callable[[str], object] = print) -> list[dict[str, Any]]:
    """Print the time, with that of NumPy beside it, and return both as rows."""
    rows = [{"name": f"import {name}", "seconds": import_seconds(name)} for name in MODULES]
    rows[0]["asked"] = WANTED
    first, second = (row["seconds"] for row in rows)
    console(f"import reluflow: {first:.3f} s (wanted < {WANTED:g}); import numpy: {second:.3f} s")
    return rows


if __name__ == "__main__":
    run()
