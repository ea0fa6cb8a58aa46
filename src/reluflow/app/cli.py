"""reluflow on the command line: exit 0 fine, 1 a claim fails, 2 bad input."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import typer

from reluflow.app import commands
from reluflow.app.base import app
from reluflow.errors import ReluflowError

for _module in pkgutil.iter_modules(commands.__path__):
    importlib.import_module(f"{commands.__name__}.{_module.name}")


def main() -> None:
    """Entry point: one sentence and exit 2 for bad input, no traceback."""
    try:
        raise SystemExit(app(standalone_mode=False))
    except ReluflowError as error:
        print(f"reluflow: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except typer.Abort:
        raise SystemExit(130) from None
    except Exception as error:
        if hasattr(error, "exit_code") and hasattr(error, "show"):  # usage errors of the parser
            error.show()
            raise SystemExit(2) from None
        raise


if __name__ == "__main__":
    main()
