# Two commands matter: `make demo` and `make test`. Each sets up what it needs in .venv; nothing else is touched.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PY     := $(BIN)/python
PIP    := $(PY) -m pip --disable-pip-version-check --quiet

# .venv is made anew when the Python or the folder is another one: the stamp's name says which ones it was made for.
MADE_FOR := $(shell { pwd; $(PYTHON) -c 'import sys; print(sys.version, sys.base_prefix)'; } 2>/dev/null | cksum | cut -d' ' -f1)
VENV_MADE := $(VENV)/.made-$(MADE_FOR)
RUN_READY := $(VENV)/.ready-run
DEV_READY := $(VENV)/.ready-dev
BUILT_FROM := pyproject.toml hatch_build.py grammar/ksp.lark engine/ksp/syntax/table.py engine/ksp/__init__.py

# Runs a command in silence; if it fails, shows what it said.
define quietly
@echo "$(1)"; said=$$($(2) 2>&1) || { printf '%s\n' "$$said"; echo "make: $(1): failed"; exit 1; }
endef

.DEFAULT_GOAL := help
.SUFFIXES:
.PHONY: help demo test lint types layers check-format unit parity format wheel clean

help:
	@echo "make demo     schedule the cluster in examples/ with policies/default.ksp"
	@echo "make test     linters, types, layer contracts and all tests"
	@echo "make lint     the same without the tests"
	@echo "make parity   compare decisions with those that kube-scheduler made; FILE=... names others than the sample"
	@echo "make format   put the code into its standard form"
	@echo "make wheel    build dist/ksp_scheduler-*.whl"
	@echo "make clean    remove what these made, .venv too"
	@echo
	@echo "PYTHON=python3.12 make ... takes another Python (3.11 or later)."

demo: $(RUN_READY)
	@$(BIN)/ksp demo

test: lint unit

unit: $(DEV_READY)
	@echo "pytest"
	@$(PY) -m pytest -q

parity: $(DEV_READY)
	@$(PY) -m tests.golden.agreement $(if $(FILE),"$(FILE)")

lint: $(DEV_READY)
	$(call quietly,ruff check,$(BIN)/ruff check .)
	$(call quietly,ruff format --check,$(BIN)/ruff format --check .)
	$(call quietly,mypy --strict,$(PY) -m mypy --strict)
	$(call quietly,lint-imports,$(BIN)/lint-imports)

format: $(DEV_READY)
	$(call quietly,ruff check --fix,$(BIN)/ruff check --fix-only .)
	$(call quietly,ruff format,$(BIN)/ruff format .)

wheel: $(VENV_MADE)
	$(call quietly,building the wheel,$(PIP) wheel --no-deps --wheel-dir dist .)
	@ls dist/*.whl

clean:
	@rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@rm -f engine/ksp/syntax/grammar.table
	@find engine tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV_MADE):
	@command -v $(PYTHON) >/dev/null || { \
	  echo "$(PYTHON) is not installed. On Debian or Ubuntu: apt install python3 python3-venv"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "ksp needs Python 3.11 or later, and $(PYTHON) is $$($(PYTHON) --version 2>&1)."; \
	  echo "Install a later one, then: make PYTHON=python3.11 ..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "Python's venv module is missing. On Debian or Ubuntu: apt install python3-venv"; exit 1; }
	@rm -rf $(VENV)
	$(call quietly,making $(VENV),$(PYTHON) -m venv $(VENV))
	@touch $@

$(RUN_READY): $(VENV_MADE) $(BUILT_FROM)
	$(call quietly,installing ksp into $(VENV),$(PIP) install -e .)
	@touch $@

$(DEV_READY): $(VENV_MADE) $(BUILT_FROM)
	$(call quietly,installing ksp and what its tests need into $(VENV),$(PIP) install -e '.[dev]')
	@touch $@ $(RUN_READY)
