"""reluflow studio."""

from __future__ import annotations

from typing import Annotated

import typer

from reluflow.cli.base import DataName, app
from reluflow.errors import ReluflowError


@app.command()
def studio(
    data: DataName = "three-points",
    port: Annotated[int, typer.Option("--port", help="Port; any free one by default.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")] = False,
) -> None:
    """Open a page where data, prediction and training meet.

    The server listens on this computer alone and ends with Ctrl-C. The first line printed is the
    address of the page.
    """
    try:
        from reluflow.studio.server import serve
    except ImportError as error:
        raise ReluflowError(
            f"the studio needs {error.name}, which is not installed: pip install 'reluflow[studio]'"
        ) from None
    from reluflow.studio.opening import opening_data

    first = opening_data(data)

    def ready(address: str) -> None:
        print(address, flush=True)
        print("The page is for this computer only. Ctrl-C ends it.", flush=True)
        if not no_open:
            import webbrowser

            webbrowser.open(address)

    serve(first, port, ready)
