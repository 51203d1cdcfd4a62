"""The page on NumPy's functions says what the code does."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest

from linnet.arrays.coverage import IN_ONE_PLACE, REMARKS, STATES, covered, page

ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| (.*) \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def written(root: Path) -> str:
    return (root / "docs/numpy-coverage.md").read_text(encoding="utf-8")


def sections(text: str) -> dict[str, dict[str, str]]:
    """For each of NumPy's places the functions on the page, with their states."""
    parts = re.split(r"^## (\S+)$", text, flags=re.MULTILINE)[1:]
    return {
        place: {name: state for name, state, _ in ROW.findall(rows)}
        for place, rows in zip(parts[::2], parts[1::2], strict=True)
    }


def test_every_function_on_the_page_is_as_it_says(written: str):
    """Another version of NumPy has other functions; those on both sides are compared."""
    on_page = sections(written)
    for place, rows in covered().items():
        now = {row.name: row.state for row in rows}
        both = now.keys() & on_page[place].keys()
        assert len(both) > 0.9 * len(now)
        assert {name: on_page[place][name] for name in both} == {name: now[name] for name in both}


def test_the_page_is_what_the_command_writes(written: str):
    named = re.search(r"NumPy ([\w.]+)'s functions", written)
    assert named
    if named[1] == np.__version__:  # a test above compares the rest
        assert written == page(), "run: python -m linnet.arrays.coverage > docs/numpy-coverage.md"


def test_at_least_three_hundred_functions_are_chunked():
    assert sum(row.state == "chunked" for row in covered()["numpy"]) >= 300


def test_states_and_remarks_are_about_functions_there_are():
    rows = [row for each in covered().values() for row in each]
    assert {row.state for row in rows} == set(STATES)
    found = {row.name for row in rows} | {"row_stack"}  # gone from newer versions
    said_of = {name.partition(".")[0] for text in REMARKS.values() for name in text.split()}
    assert said_of <= found
    assert all(row.state == "gathering" for row in rows if row.name in IN_ONE_PLACE)


@pytest.mark.slow
def test_whoever_gathers_takes_the_keyword(root: Path):
    """A function that calls `whole_axes.gathered` or `one_tile` has `gather=`, from which the page is made."""
    for path in sorted((root / "src/linnet/arrays").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = {
            name.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "linnet.arrays.elements.whole_axes"
            for name in node.names
        } & {"gathered", "one_tile"}
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            calls = {
                node.func.id
                for node in ast.walk(function)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            }
            if calls & imported:
                taken = {each.arg for each in (*function.args.args, *function.args.kwonlyargs)}
                assert "gather" in taken, f"{path.name}: {function.name} gathers without gather="
