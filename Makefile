# Needs Python >= 3.11 with venv, make and git; everything else goes into .venv.
.DEFAULT_GOAL := help
python := .venv/bin/python
# Two processes of tests, whatever the machine: many tests use every core themselves.
pytest := $(python) -m pytest --numprocesses=2 --dist=worksteal
export PYTHON
# Compiled modules are kept whatever the shell says: without them each process compiles a thousand files.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help:  ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | while IFS="$$(printf '\t')" read -r name text; \
	do printf '  make %-10s %s\n' "$$name" "$$text"; done

.PHONY: core dev system
core:
	@tools/install.sh core
dev:
	@tools/install.sh dev
system:
	@tools/system-packages.sh

.PHONY: demo
demo: core  ## install, then fit a model on workers most of which are killed, and verify it
	@$(python) -m linnet.cli demo

.PHONY: test test-long
test: dev system  ## install what tests need and run them
	@$(pytest)

test-long: dev system  ## also the tests that take minutes, with many more random examples
	@$(python) -m pip install --quiet --requirement tests/peers.txt
	@$(pytest) -m "long or not long" --hypothesis-profile=long --timeout=3600
	@$(pytest) --nodes=3 tests/arrays

.PHONY: coverage
coverage: dev system  ## lines and branches that the ordinary tests reach, by module; fails below the ratchet
	@$(pytest) --cov --cov-report=term

.PHONY: check lint types layers fast
check: dev  ## style, types, layers and the fast tests: under two minutes
	@$(MAKE) --no-print-directory --jobs=2 --keep-going --output-sync=target lint layers types fast
lint: dev
	@$(python) -m ruff check .
	@$(python) -m ruff format --check .
types: dev
	@$(python) -m pyright
	@$(python) -m pytest --quiet -m long tests/house/test_types.py
layers: dev
	@.venv/bin/lint-imports
fast: dev
	@$(pytest) --quiet -m "not slow and not long" --hypothesis-profile=check

.PHONY: format
format: dev  ## put the code into the house style, and write the types that users see
	@$(python) tools/stubs.py
	@$(python) -m ruff check --fix-only --quiet .
	@$(python) -m ruff format .

.PHONY: bench
benchmarks = $(shell grep -l __main__ benchmarks/*.py)
bench: dev  ## measure what docs/status.md promises (nothing else should run meanwhile)
	@tools/system-packages.sh benchmarks/scalapack/packages.txt
	@$(python) -m pip install --quiet --requirement benchmarks/requirements.txt
	@failed=0; for each in $(benchmarks); do echo "== $$each"; $(python) $$each || failed=1; done; exit $$failed

.PHONY: docs
docs: dev  ## build the documentation into docs/_build/html
	@$(python) -m sphinx -W --keep-going --quiet -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

.PHONY: dist release
dist: dev  ## build wheels and sdist into dist/, each tested in an environment of its own
	@$(python) tools/dist.py
release: dev  ## VERSION=0.1.0: changelog, version, commit and tag; DRY=--dry-run only shows them
	@$(python) tools/release.py $(if $(VERSION),$(VERSION),$(error give a version: make release VERSION=0.1.0)) $(DRY)

.PHONY: lock
lock: dev  ## refresh the locked versions from pyproject.toml
	@tools/lock.sh

.PHONY: clean
clean:  ## remove the environment and everything built
	rm -rf .venv build dist docs/_build .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
