"""The lower bounds in pyproject.toml are true: the package works at them."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

# Tests that exercise every dependency through our own code, and are quick.
CHOSEN = ("tests/tiles", "tests/events", "tests/kernels", "tests/programs", "tests/engines", "tests/cli")
RUNNERS = ("pytest", "pytest-timeout", "hypothesis")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_package_works_at_its_lowest_versions(fresh, root: Path):
    there = fresh()
    runners = [f"{name}=={importlib.metadata.version(name)}" for name in RUNNERS]
    there.install("--resolution", "lowest-direct", f"{root}[plot]", *runners)
    installed = there.python("-c", "import linnet, numpy; print(linnet.__file__, numpy.__version__)")
    assert str(there.path) in installed
    said = there.python(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow and not long", *CHOSEN, cwd=root
    )
    assert " passed" in said
