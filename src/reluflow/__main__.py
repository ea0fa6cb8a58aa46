"""``python -m reluflow`` and the command ``reluflow``."""

import signal
import sys
from types import FrameType
from typing import Any


def main() -> None:
    """The command line; Ctrl-C is one sentence while it is being imported, too."""
    pressed = _watch_ctrl_c()
    try:
        from reluflow.cli.main import main as run

        run()
    except (KeyboardInterrupt, Exception) as error:
        # libraries may turn Ctrl-C into an error of their own, as pydantic does in making a class
        if not (pressed or isinstance(error, KeyboardInterrupt)):
            raise
        print("reluflow: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    finally:
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # it has ended, with what it has said
        _forget_ctrl_c()


def _watch_ctrl_c() -> list[int]:
    """A list with one item more whenever Ctrl-C is pressed, which is otherwise as before.

    C code that imports NumPy prints the exception of a failed import and raises another one.
    """
    pressed: list[int] = []
    show = sys.excepthook

    def show_others(kind: type[BaseException], *rest: Any) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            show(kind, *rest)

    def note(number: int, frame: FrameType | None) -> None:
        pressed.append(number)
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, note)
        sys.excepthook = show_others
    return pressed


def _forget_ctrl_c() -> None:
    """Let the exit code be the one that is given, though Ctrl-C met the code of a string.

    Python marks a KeyboardInterrupt that leaves the code of a string (`exec` in namedtuple and
    dataclass, all through imports) as one that nobody caught. If it was caught further out,
    ``python -m`` still ends by the signal (-2 to who started it) whatever exit code it was given.
    The next code of a string that ends well takes the mark away.
    """
    exec("")


if __name__ == "__main__":
    main()
