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
	@echo "installing pinned packages: about a minute the first time"
	@$(UV) pip sync --quiet --python .venv --require-hashes requirements/dev.txt
	@rm -f .venv/.ranker .venv/.members
	@touch $@

.venv/.ranker: .venv/.packages $(RUST_SOURCES)
	@echo "compiling the ranker: about a minute the first time"
	@cd ranker-rs && VIRTUAL_ENV=$(CURDIR)/.venv PATH=$(CURDIR)/.tools/bin:$$PATH $(CURDIR)/$(BIN)/maturin develop --release --quiet --uv
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

.PHONY: run
run: setup ## Serve on embedded defaults: ./.pillion, Unix socket ./.pillion/pillion.sock
	@$(BIN)/pillion serve

.PHONY: test
test: lint types rust-test py-test ## Everything that must hold: lint, types, Rust and Python tests

.PHONY: check
check: lint types ## The fast part: lint, types and the tests that take seconds
	@$(BIN)/pytest -q -m "not slow"

.PHONY: lint
lint: setup ## ruff, import contracts, clippy, rustfmt, buf, generated code is fresh
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/lint-imports --no-logo > .lint-imports.log || (cat .lint-imports.log; exit 1)
	@$(BIN)/buf lint proto
	@$(BIN)/python scripts/gen.py --check
	@$(BIN)/python scripts/gen_sync_client.py --check
	@$(BIN)/python benchmarks/report.py --check
	@cd ranker-rs && cargo fmt --all --check && cargo clippy --quiet --workspace --all-targets -- -D warnings

.PHONY: types
types: setup ## mypy (strict) and pyright
	@$(BIN)/mypy
	@$(BIN)/pyright

.PHONY: rust-test
rust-test: setup ## The ranker's Rust tests
	@cd ranker-rs && cargo test --quiet --package ranker-core

.PHONY: py-test
py-test: setup ## The Python tests
	@$(BIN)/pytest -q

.PHONY: fuzz
fuzz: setup ## The fuzzers that `make test` runs briefly, with 2,000 examples each or more
	@HYPOTHESIS_PROFILE=thorough $(BIN)/pytest -q tests/fuzz

.PHONY: gen
gen: setup ## Write generated code: stubs of the contract, the blocking client
	@$(BIN)/python scripts/gen.py
	@$(BIN)/python scripts/gen_sync_client.py

.PHONY: format
format: setup ## Format Python and Rust
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .
	@cd ranker-rs && cargo fmt

.PHONY: demo
demo: setup ## Play the story of a passport deadline through a real server
	@$(BIN)/pillion demo

.PHONY: histories
histories: setup ## Kill a server at work 200 times, check the histories (needs Go), keep the run
	@$(BIN)/python tests/linearizability/run.py --kills 200 --keep
	@$(BIN)/python benchmarks/report.py

.PHONY: bench
bench: setup ## Measure, beside floors, and keep the runs under benchmarks/runs
	@$(BIN)/python benchmarks/load/search_latency.py --keep
	@$(BIN)/python benchmarks/load/get_latency.py --keep
	@$(BIN)/python benchmarks/load/open_loop.py --keep
	@$(BIN)/python benchmarks/load/import_memory.py --keep
	@$(BIN)/python benchmarks/load/cas_contention.py --keep
	@$(BIN)/python benchmarks/quality/locomo.py --keep || test $$? -eq 3
	@$(BIN)/pytest -q benchmarks/micro/test_ranker.py benchmarks/micro/test_storage.py benchmarks/micro/test_conversion.py benchmarks/micro/test_calls.py --benchmark-only --benchmark-json=.benchmarks.json
	@$(BIN)/python benchmarks/keep_micro.py .benchmarks.json
	@$(BIN)/pytest -q benchmarks/micro/test_index.py
	@$(BIN)/python benchmarks/report.py

.PHONY: bench-peers
bench-peers: setup ## Measure beside other products, installed into ~/.cache/pillion-peers; keep the run
	@$(BIN)/python benchmarks/peers/run.py --keep
	@$(BIN)/python benchmarks/report.py

.PHONY: wheels
wheels: setup ## Build the wheels of all distributions into dist/
	@rm -rf dist
	@for member in . proto/python clients/python ranker-rs; do $(UV) build --quiet --wheel --python .venv --out-dir dist $$member || exit 1; done
	@ls dist

.PHONY: test-wheels
test-wheels: wheels ## Install the wheels into an empty environment and run the README's quick start
	@$(BIN)/python scripts/try_wheels.py

.PHONY: clean
clean: ## Remove everything that was built, and the environments
	@rm -rf .venv .tools dist build ranker-rs/target .pytest_cache .mypy_cache .ruff_cache .hypothesis
