"""``python -m reluflow`` is the command line."""

from reluflow.cli.main import main

if __name__ == "__main__":
    main()
