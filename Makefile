# make        set up .venv and run the main job
# make test   set up what the tests need and run them
# make test PYTHON=python3.13   the same with another interpreter, in an environment of its own
PYTHON ?= python3
VENV   := $(if $(filter python3 python,$(notdir $(PYTHON))),.venv,.venv-$(notdir $(PYTHON)))
BIN    := $(VENV)/bin
OUT    ?= out
TORCH  := torch==2.13.0

# the site, in docs/_build/html: checks of the papers, tutorials and gallery are run (five minutes of
# one core); links within the site are checked
.PHONY: all docs test coverage slow nightly chaos wheel mutants lint format bench clean clean-kernels
all: $(VENV)/.runtime
	$(BIN)/reluflow explain three-points -o $(OUT)

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 -m "not slow and not nightly" $(ARGS)

# quick and slow tests, and the lines and branches of the package that they reach, kernels left out;
# fails below 90 %; sources that are gone are those of mutants, which tests copy elsewhere
coverage: $(VENV)/.dev
	$(BIN)/python -m coverage erase
	$(BIN)/python -m coverage run -m pytest -n 2 -m "not slow and not nightly" $(ARGS)
	$(BIN)/python -m coverage run -m pytest -n 2 --dist loadfile -m slow $(ARGS)
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report --ignore-errors

slow: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow $(ARGS)

nightly: $(VENV)/.dev
	$(BIN)/python -m pytest -m nightly $(ARGS)

chaos: $(VENV)/.dev
	$(BIN)/python tests/chaos/chaos.py $(ARGS)

# builds the wheel and runs it in an empty environment of every Python of the machine
wheel: $(VENV)/bin/python
	$(BIN)/python tests/robustness/empty_environment.py $(ARGS)

mutants: $(VENV)/.dev
	$(BIN)/python tests/mutants/run.py $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/repo-review --show errskip .

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.torch
	$(BIN)/reluflow bench

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -e .
	touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -e ".[dev,torch]" "$(TORCH)"
	touch $@ $(VENV)/.runtime $(VENV)/.torch

$(VENV)/.torch: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -e ".[torch]" "$(TORCH)"
	touch $@ $(VENV)/.runtime

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -e ".[docs,torch]" "$(TORCH)"
	touch $@ $(VENV)/.runtime $(VENV)/.torch

clean-kernels:
	find src -name '*.nb[ic]' -delete

clean: clean-kernels
	rm -rf .venv .venv-* $(OUT) .pytest_cache .mypy_cache .ruff_cache
