"""Operations on arrays four times the memory budget stay within it, in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys

import budget_cases
import pytest

ALLOWED = 1.1 * budget_cases.BUDGET + 2 * 4e6
"""What the threads engine promises: a tenth more, and 4 MB for each of two workers."""

FIRST = (
    "gram",
    "many_chunks",
    "mask",
    "mttkrp",
    "permutation",
    "persisted",
    "picked_rows",
    "quantile",
    "rechunk",
    "sort_repeats",
    "standardise",
    "svd_tall",
)
"""Run with every `make test`; the others, with `make test-long`."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("budget")


def check(name, folder):
    command = [sys.executable, budget_cases.__file__, name, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    numbers = json.loads(done.stdout)
    assert numbers["right"]
    assert numbers["peak"] <= ALLOWED, f"{numbers['peak'] / 1e6:.0f} MB of {ALLOWED / 1e6:.0f}"


@pytest.mark.sample(4)
@pytest.mark.slow
@pytest.mark.parametrize("name", FIRST)
def test_within_the_budget(name, folder):
    check(name, folder)


@pytest.mark.long
@pytest.mark.parametrize("name", sorted({*budget_cases.CASES} - {*FIRST}))
def test_all_others_are_within_it_too(name, folder):
    check(name, folder)
