"""``python -m reluflow`` and the command ``reluflow``."""

import sys


def main() -> None:
    """The command line; Ctrl-C is one sentence while it is being imported, too."""
    try:
        from reluflow.cli.main import main as run
    except KeyboardInterrupt:
        print("reluflow: interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    run()


if __name__ == "__main__":
    main()
