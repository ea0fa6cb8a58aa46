#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""The tasks of the Makefile for those who use nox: ``nox -l`` lists them."""

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"

TORCH = "torch==2.13.0"  # what the Makefile pins too


@nox.session
def lint(session: nox.Session) -> None:
    """Lint, format and types."""
    session.install("-e", ".[dev]", TORCH)
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("repo-review", "--show", "errskip", ".")


@nox.session(python=["3.11", "3.12", "3.13"])
def tests(session: nox.Session) -> None:
    """The quick tests; arguments after -- go to pytest."""
    session.install("-e", ".[dev]", TORCH)
    session.run(
        "python", "-m", "pytest", "-n", "2", "-m", "not slow and not nightly", *session.posargs
    )


@nox.session(default=False)
def slow(session: nox.Session) -> None:
    """The tests that take minutes."""
    session.install("-e", ".[dev]", TORCH)
    session.run("python", "-m", "pytest", "-m", "slow", *session.posargs)


@nox.session(default=False)
def coverage(session: nox.Session) -> None:
    """Quick and slow tests, and which lines and branches they reach."""
    session.install("-e", ".[dev]", TORCH)
    session.run("coverage", "erase")
    for marks in ("not slow and not nightly", "slow"):
        session.run("coverage", "run", "-m", "pytest", "-n", "2", "--dist", "loadfile", "-m", marks)
    session.run("coverage", "combine", "--quiet")
    session.run("coverage", "report")


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """The site, warnings as errors."""
    session.install("-e", ".[docs]", TORCH)
    session.run("sphinx-build", "-W", "--keep-going", "-b", "html", "docs", "docs/_build/html")


@nox.session(default=False)
def build(session: nox.Session) -> None:
    """Wheel and source distribution."""
    session.install("build")
    session.run("python", "-m", "build")


@nox.session(python=["3.11", "3.12", "3.13"], default=False)
def wheel(session: nox.Session) -> None:
    """The wheel in an empty environment that cannot be written to, from another folder."""
    version = str(session.python)
    session.run("python", "tests/robustness/empty_environment.py", "--pythons", version)


if __name__ == "__main__":
    nox.main()
