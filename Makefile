# make        set up .venv and run the main job
# make test   set up what the tests need and run them
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
OUT    ?= out

.PHONY: all test slow nightly mutants lint format bench clean clean-kernels
all: $(VENV)/.runtime
	$(BIN)/reluflow explain three-points -o $(OUT)

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 -m "not slow and not nightly" $(ARGS)

slow: $(VENV)/.dev
	$(BIN)/python -m pytest -m slow $(ARGS)

nightly: $(VENV)/.dev
	$(BIN)/python -m pytest -m nightly $(ARGS)

mutants: $(VENV)/.dev
	$(BIN)/python tests/mutants/run.py $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

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
	$(BIN)/python -m pip install --quiet -e ".[dev,torch]"
	touch $@ $(VENV)/.runtime $(VENV)/.torch

$(VENV)/.torch: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -e ".[torch]"
	touch $@ $(VENV)/.runtime

clean-kernels:
	find src -name '*.nb[ic]' -delete

clean: clean-kernels
	rm -rf $(VENV) $(OUT) .pytest_cache .mypy_cache .ruff_cache
