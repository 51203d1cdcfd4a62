#!/bin/sh
# Writes requirements-core.lock and requirements-dev.lock from pyproject.toml: exact versions for
# every platform and Python >= 3.11, without any registry's address.
set -eu
cd "$(dirname "$0")/.."
compile() {
    .venv/bin/python -m uv pip compile --quiet --upgrade --universal --python-version 3.11 \
        --no-annotate --no-header pyproject.toml "$@"
}
compile --output-file requirements-core.lock
# The core comes at the same versions in both.
compile --all-extras --group dev --constraint requirements-core.lock --output-file requirements-dev.lock
