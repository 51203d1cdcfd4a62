"""Operations on arrays four times the memory budget stay within it, in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys

import budget_cases
import pytest

ALLOWED = 1.1 * budget_cases.BUDGET + 2 * 4e6
"""What the threads engine promises: a tenth more, and 4 MB for each of two workers."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("budget")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chain", "chain_summed", "axpy", "normals", "cumsum", "assigned", "unique"])
def test_within_the_budget(name, folder):
    command = [sys.executable, budget_cases.__file__, name, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    numbers = json.loads(done.stdout)
    assert numbers["right"]
    assert numbers["peak"] <= ALLOWED, f"{numbers['peak'] / 1e6:.0f} MB of {ALLOWED / 1e6:.0f}"
