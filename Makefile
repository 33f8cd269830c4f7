# Every target sets up what it needs in .venv; only make and Python 3.11 or later must be there.

PYTHON ?= python3
ARGS ?=

BIN := .venv/bin

# Tests and workers start many processes, which find modules compiled.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint docs bench bench-compare clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.installed-run ## Protect a made-up survey and show what happened
	$(BIN)/sdc-dask demo $(ARGS)

test: .venv/.installed-test ## Run the tests and the examples of the docstrings
	$(BIN)/python -m pytest -n auto $(ARGS)

test-all: .venv/.installed-test ## Run all tests, the long ones too
	$(BIN)/python -m pytest -n auto -m "" $(ARGS)

lint: .venv/.installed-dev ## Check style, format and types
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

docs: .venv/.installed-dev ## Build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

bench: .venv/.installed-bench ## Run the benchmarks, e.g. make bench ARGS=--quick
	$(BIN)/python benchmarks/blocking.py $(ARGS)
	$(BIN)/python benchmarks/kernels.py $(ARGS)
	$(BIN)/python benchmarks/methods.py $(ARGS)
	$(BIN)/python benchmarks/rank_swap.py $(ARGS)
	$(BIN)/python benchmarks/suppression.py $(ARGS)
	$(BIN)/python benchmarks/paper_tables.py $(ARGS)
	$(BIN)/python benchmarks/attack_tables.py $(ARGS)
	$(BIN)/python benchmarks/without_common.py $(ARGS)
	$(BIN)/python benchmarks/series_tables.py $(ARGS)
	$(BIN)/python benchmarks/refinement.py $(ARGS)
	$(BIN)/python benchmarks/mixed.py $(ARGS)
	$(BIN)/python benchmarks/end_to_end.py $(ARGS)
	$(BIN)/python benchmarks/scaling.py $(ARGS)

bench-compare: .venv/.installed-bench ## Show two runs side by side, e.g. ARGS=refinement
	$(BIN)/python benchmarks/compare.py $(ARGS)

clean: ## Remove the environment, caches and builds
	rm -rf .venv build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.installed-run: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or later is needed; '$(PYTHON)' is older or missing." \
	    "Run make PYTHON=/path/to/python3.11." >&2; exit 1; }
	$(PYTHON) -m venv .venv || { rm -rf .venv; exit 1; }
