"""One module per command, listed in :mod:`reluflow.cli.main`."""
