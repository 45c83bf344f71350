# make setup: what the others need.  make demo: the whole product in a minute.
# make test: linters, then every test.   make bench: the speeds, as ratios.
SHELL := /bin/bash
BIN := $(CURDIR)/.venv/bin
ROOT := $(if $(filter 0,$(shell id -u)),,sudo -E)

.PHONY: setup demo lint test bench clean

setup:
	@.ci/setup

demo: setup
	@$(ROOT) $(BIN)/yolo-slurm devcluster run -- bash demo/run.sh

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@# It looks for ultralytics, which writes its settings file when it is found.
	@YOLO_CONFIG_DIR=$(CURDIR)/.mypy_cache $(BIN)/lint-imports --no-cache > .importlinter.log || { cat .importlinter.log; exit 1; }
	@rm -f .importlinter.log

test: lint
	@$(ROOT) $(BIN)/pytest

bench: setup
	@$(ROOT) $(BIN)/python bench/run.py

clean:
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
