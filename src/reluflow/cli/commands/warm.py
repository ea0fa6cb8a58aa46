"""reluflow warm."""

from __future__ import annotations

import time

from reluflow.cli.base import AsJson, app, print_json
from reluflow.runtime.words import count


@app.command()
def warm(as_json: AsJson = False) -> None:
    """Compile all kernels once: for images of containers, and machines that many share.

    They are kept beside the package, or where NUMBA_CACHE_DIR says; what is there is not made
    again. Without this command each kernel is compiled when it is first needed.
    """
    from reluflow.cli.warming import JOBS, folder_of_kernels, warm_up
    from reluflow.runtime import Progress

    folder = folder_of_kernels()
    began = time.monotonic()
    with Progress(len(JOBS), "compile", overall=True) as bar:
        made = warm_up(lambda done, name: bar.update(done, time.monotonic() - began, name))
    if as_json:
        print_json({"folder": folder, "compiled": made})
    else:
        print(f"{count(made, 'kernel')} compiled now, all of them in {folder}")
