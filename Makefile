# Each target does its own set-up: Python 3.11, git, make and a C compiler are enough.
#
#   make demo         gate a pull request that is wrong for 513 tokens, on the CPU
#   make test         the test suite with branch coverage
#   make test-action  the action for real: a Docker Engine, a workflow runner, GitHub's API description
#   make lint         formatting, types, layers, docstrings, workflows, and the repository itself

PYTHON ?= python3.11
# Installed first and pinned: the rest of the set-up then leaves it alone.
TORCH ?= torch==2.13.0
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# One thread a process: the worker processes are the parallelism.
export OMP_NUM_THREADS ?= 1

# What the linters of others look at.
ACTIONS := action.yml docker/action.yml
WORKFLOWS := $(wildcard .github/workflows/*.yml examples/workflows/*.yml)
FORMS := $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
# The libraries among the scripts are read where they are sourced.
SCRIPTS := .ci/run $(filter-out %/lib.sh %/docker.sh,$(wildcard .github/*.sh gate/action/*.sh tests/action/*.sh))

.PHONY: help demo test test-action lint lint-action clean

help:
	@sed -n 's/^#   //p' Makefile

demo: $(READY)
	$(BIN)/kernel-gate demo

test: $(READY)
	$(BIN)/python -m pytest --cov --cov-report=term:skip-covered $(PYTEST_ARGS)

test-action: $(READY)
	PATH="$(abspath $(BIN)):$$PATH" tests/action/prepare.sh $(BIN)/python -m pytest tests/action $(PYTEST_ARGS)

lint: $(READY) lint-action
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/interrogate --quiet gate
	$(BIN)/python -m pytest tests/meta

# zizmor at its strictest; a finding is mended, or explained in the line that it is about.
lint-action: $(READY)
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions $(ACTIONS)
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows $(WORKFLOWS)
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms $(FORMS)
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/actionlint -config-file .github/actionlint.yaml -shellcheck $(BIN)/shellcheck $(WORKFLOWS)
	$(BIN)/zizmor --offline --no-progress --persona pedantic $(ACTIONS) .github/dependabot.yml $(WORKFLOWS)
	$(BIN)/shellcheck -x $(SCRIPTS)
	$(BIN)/hadolint Dockerfile

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[run,dev]'
	touch $(READY)

clean:
	rm -rf $(VENV) build dist *.egg-info .coverage kernel-gate-report
