# Needs Python 3.11, pip, make and a C compiler. Everything goes into $(VENV); nothing else is installed.
VENV ?= .venv
PYTHON ?= $(shell command -v python3.11 || command -v python3)
ARGS ?=
BIN = $(VENV)/bin
READY = $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help install demo test check fix docs .venv

help: ## list what there is to do
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(READY) ## half a minute of traffic past what two simulated engines hold, then the cost report
	$(BIN)/spillgate demo $(ARGS)

test: $(READY) ## run the tests; ARGS="-k name" for some of them
	$(BIN)/python -m pytest $(ARGS)

check: $(READY) ## style, types and the walls between rooms
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict gateway
	$(BIN)/lint-imports

fix: $(READY) ## put style right where a machine can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY) ## renew the tables in docs/ that are made from the program
	$(BIN)/python -m gateway.config.reference docs/configuration.md
	$(BIN)/python -m gateway.reports.reference docs/cost-model.md

install: $(READY) ## make the virtual environment, or bring it up to date

.venv: $(READY)

# Every package is pinned and checked against its hash; the project itself is linked, not copied.
$(READY): requirements-dev.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@
