# Everything a person needs is a target here; `make help` explains each.
PYTHON ?= python3
UV := .tools/bin/uv
BIN := .venv/bin
RUST_SOURCES := $(shell find ranker-rs -name '*.rs' -not -path '*/target/*') $(wildcard ranker-rs/Cargo.toml ranker-rs/crates/*/Cargo.toml ranker-rs/pyproject.toml)

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

.tools/.ready: scripts/check_tools.py
	@$(PYTHON) scripts/check_tools.py
	@$(PYTHON) -m venv .tools
	@.tools/bin/pip install --quiet --disable-pip-version-check uv==0.13.9
	@touch $@

.venv/.packages: .tools/.ready requirements/dev.txt
	@test -x $(BIN)/python || $(UV) venv --quiet --python $(PYTHON) .venv
	@echo "installing pinned packages (the first time takes about a minute)"
	@$(UV) pip sync --quiet --python .venv --require-hashes requirements/dev.txt
	@rm -f .venv/.ranker .venv/.members
	@touch $@

.venv/.ranker: .venv/.packages $(RUST_SOURCES)
	@echo "compiling the ranker"
	@cd ranker-rs && VIRTUAL_ENV=$(CURDIR)/.venv ../$(BIN)/maturin develop --release --quiet --uv --skip-install-dependencies 2>/dev/null || (cd ranker-rs && VIRTUAL_ENV=$(CURDIR)/.venv PATH=$(CURDIR)/.tools/bin:$$PATH ../$(BIN)/maturin develop --release --uv)
	@touch $@

.venv/.members: .venv/.packages pyproject.toml proto/python/pyproject.toml clients/python/pyproject.toml
	@$(UV) pip install --quiet --python .venv --no-deps -e proto/python -e clients/python -e .
	@touch $@

.PHONY: setup
setup: .venv/.packages .venv/.members .venv/.ranker ## Install everything into .venv

.PHONY: lock
lock: .tools/.ready ## Renew requirements/dev.txt from the pyproject files
	@$(UV) lock --quiet
	@$(UV) export --quiet --all-packages --all-extras --no-emit-workspace --format requirements-txt -o requirements/dev.txt
