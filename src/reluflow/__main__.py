"""``python -m reluflow`` and the command ``reluflow``."""

import sys


def main() -> None:
    """The command line; Ctrl-C is one sentence while it is being imported, too."""
    try:
        from reluflow.cli.main import main as run

        run()
    except KeyboardInterrupt:
        print("reluflow: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    finally:
        _forget_ctrl_c()


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
