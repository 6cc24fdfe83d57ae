# `make` alone says what there is. Everything runs in .venv, which scripts/setup creates and keeps up to date.

BIN := .venv/bin
# One file's tests stay together in one process, so that what a file starts is not started twice. Files are begun in the order of
# tests/conftest.py: the slowest first, so that no process waits for another in the end. Three processes on two cores, because tests
# of leases, timeouts and servers wait a lot.
export PYTEST_ARGS ?= -n 3 --dist loadfile --no-loadscope-reorder --max-worker-restart 0
# Tests start hundreds of processes, which would compile what they import each time where PYTHONDONTWRITEBYTECODE is set.
COMPILE := $(BIN)/python -m compileall -q src tests examples

.DEFAULT_GOAL := help
.PHONY: help run ui test quick lint docs bench prove mutate fuzz clean
.NOTPARALLEL:

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

run: ## Run the example workflow
	@scripts/setup core
	PYTHONPATH=. $(BIN)/stepwell run examples.orders:OrderWorkflow --input order_id=7

ui: ## Build the web UI into the package, if its sources have changed; WHAT=screenshots writes pictures of every page
	@scripts/setup dev
	@scripts/ui $(or $(WHAT),build)

test: lint ui ## Run every check and every test (PYTEST_ARGS='-n 0 -k fence' for some)
	@$(COMPILE)
	@echo '== tests'
	$(BIN)/pytest $(PYTEST_ARGS)

quick: lint ## Run every check and the tests that say most, within a minute
	@$(COMPILE)
	@echo '== tests that say most'
	$(BIN)/pytest $(PYTEST_ARGS) @tests/quick.txt

lint: ## Run the checks alone: style, format, types, import rules
	@scripts/setup dev
	@echo '== style'
	$(BIN)/ruff check .
	@echo '== format'
	$(BIN)/ruff format --check .
	@echo '== types'
	$(BIN)/mypy
	@echo '== imports'
	$(BIN)/lint-imports --no-logo
	@echo '== web UI'
	@scripts/ui check

docs: ## Build the pages and the reference of every public name into build/site, and check their links
	@scripts/setup docs
	$(BIN)/mkdocs build --quiet --strict
	@echo build/site/index.html

bench: ## Run the benchmarks (WHAT=ui for one)
	@scripts/setup dev
	@scripts/ui build
	$(BIN)/python -m bench $(WHAT)

prove: ## Check the promises in simulated worlds (about 10 minutes); WHAT=help lists longer proofs, such as WHAT=chaos MINUTES=10
	@scripts/prove $(or $(WHAT),simulation)

mutate: ## Plant small bugs and see whether a test notices (SEED=7 COUNT=30 ROOM=stores/redis ONLY=core/kernel/healing.py)
	@scripts/setup dev
	$(BIN)/python -m tests.mutation --seed $(or $(SEED),1) --count $(or $(COUNT),30) $(if $(ROOM),--room $(ROOM)) $(if $(ONLY),--only $(ONLY)) $(MUTATE_ARGS)

fuzz: ## Try what strangers may write on readers, patterns, templates, /read, manifests and more (SECONDS=300 SEED=1 ONLY=template)
	@scripts/setup dev
	$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),300) --seed $(or $(SEED),1) $(if $(ONLY),--only $(ONLY))

clean: ## Remove the environment, caches, build output and local runs
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .mutation .stepwell build dist bench/out
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
