# Each target does its own set-up: Python 3.11, git, make and a C compiler are enough.
#
#   make demo   gate a pull request that is wrong for 513 tokens, on the CPU
#   make test   the test suite with branch coverage
#   make lint   formatting, types, layers, docstrings, and checks on the repository itself

PYTHON ?= python3.11
# Installed first and pinned: the rest of the set-up then leaves it alone.
TORCH ?= torch==2.13.0
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# One thread a process: the worker processes are the parallelism.
export OMP_NUM_THREADS ?= 1

.PHONY: help demo test lint clean

help:
	@sed -n 's/^#   //p' Makefile

demo: $(READY)
	$(BIN)/kernel-gate demo

test: $(READY)
	$(BIN)/python -m pytest --cov --cov-report=term:skip-covered $(PYTEST_ARGS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/interrogate --quiet gate
	$(BIN)/python -m pytest tests/meta

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[run,dev]'
	touch $(READY)

clean:
	rm -rf $(VENV) build dist *.egg-info .coverage kernel-gate-report
