"""reluflow on the command line: exit 0 fine, 1 a claim fails, 2 bad input."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from typing import Any, NoReturn

import typer

from reluflow.cli.base import Interrupted, app
from reluflow.cli.commands import (  # noqa: F401  each registers its command
    bench,
    certify,
    claims,
    datasets,
    explain,
    predict,
    probe,
    reproduce,
    simulate,
    studio,
    sweep,
    warm,
)
from reluflow.errors import ReluflowError

_INTERRUPTED = 130  # exit code of who was ended by Ctrl-C, as shells have it


def main() -> None:
    """Entry point: one sentence and exit 2 for bad input, no traceback."""
    _collect_rarely()
    warnings.showwarning = _show_warning
    sys.unraisablehook = _send_again
    try:
        code = app(prog_name="reluflow", standalone_mode=False)
        sys.stdout.flush()  # a reader that has gone is met here, not when Python ends
        if code == _INTERRUPTED:  # the parser has met Ctrl-C, and says nothing
            raise KeyboardInterrupt
        raise SystemExit(code)
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # the parser met it and exits with 1
            _leave_quietly()
        raise
    except ReluflowError as error:
        _refuse(error)
    except (typer.Abort, KeyboardInterrupt) as stopped:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # one more, as of `_send_again`, is no news
        next_step = f": {stopped}" if isinstance(stopped, Interrupted) else ""
        print(f"reluflow: interrupted{next_step}", file=sys.stderr)
        raise SystemExit(_INTERRUPTED) from None
    except BrokenPipeError:  # the reader has seen enough: `reluflow datasets | head`
        _leave_quietly()
    except OSError as error:
        where = f" {error.filename}" if error.filename else ""
        _refuse(f"cannot read or write{where}: {error.strerror or error}")
    except MemoryError:
        _refuse("memory ran out: use fewer neurons, samples or records")
    except Exception as error:
        if hasattr(error, "exit_code") and hasattr(error, "format_message"):
            if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help itself
                print(error.format_message(), file=sys.stderr)
                raise SystemExit(2) from None
            _refuse(_usage(error))
        raise


def _collect_rarely() -> None:
    """Look for garbage less often, and not at all at the end.

    Imports and records make some hundred thousand objects that stay until the process ends, in
    hardly any cycles: going through them again and again is a quarter of a short command's time.
    """
    import atexit
    import gc

    gc.set_threshold(100_000, 20, 20)
    atexit.register(gc.freeze)


def _send_again(ignored: sys.UnraisableHookArgs) -> None:
    """Ctrl-C once more, where it met a callback whose exceptions Python prints and drops.

    There are such callbacks in imports, which go on all through a command.
    """
    if issubclass(ignored.exc_type, KeyboardInterrupt):
        again = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(ignored)


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    """A warning as one sentence; those of libraries are not for who calls a command."""
    text = " ".join(str(message).split())
    # a letter that the font of pictures lacks is a box there, and itself on the page
    if issubclass(category, UserWarning) and not text.startswith("Glyph "):
        print("reluflow: " + text, file=sys.stderr)


def _usage(error: Any) -> str:
    """A usage error of the parser as one sentence."""
    command = error.ctx.command_path if getattr(error, "ctx", None) else "reluflow"
    return f"{error.format_message().rstrip('.')}: see `{command} --help`"


def _leave_quietly() -> NoReturn:
    """The reader of the output has seen enough, as in `reluflow datasets | head`."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(0) from None


def _refuse(why: object) -> NoReturn:
    print("reluflow: " + " ".join(str(why).split()), file=sys.stderr)
    raise SystemExit(2) from None


if __name__ == "__main__":
    main()
