"""The table in the documentation says every rule, and every line of it is tested."""

# ruff: noqa: SIM905

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from derivative_cases import CASES

import linnet as ln
from linnet.derivatives.rules import RULES
from linnet.derivatives.table import rows, table, without, zeros

PAGE = Path(__file__).parents[2] / "docs" / "derivatives.md"


def test_the_page_has_the_table():
    assert PAGE.read_text(encoding="utf-8").endswith(table()), "write it: python -m linnet.derivatives.table"


def test_every_line_of_the_table_is_tested():
    tested = {name for name, *_ in CASES}
    same = {
        "ascontiguousarray",
        "asfortranarray",
        "asanyarray",
        "asarray_chkfinite",
        "require",
    }  # those of asarray
    assert set(rows()) - tested - same == set()


@pytest.mark.parametrize("name", ["ascontiguousarray", "asfortranarray", "asanyarray", "asarray_chkfinite"])
def test_conversions_that_change_nothing(name: str):
    function = getattr(ln, name)
    np.testing.assert_array_equal(ln.grad(lambda x: ln.sum(function(x) ** 2))(np.ones(3)), 2 * np.ones(3))


ONE = """floor ceil rint trunc sign round around fix isfinite isinf isnan signbit spacing logical_not isposinf isneginf
    isreal iscomplex all any argmax argmin nanargmax nanargmin argsort count_nonzero zeros_like ones_like""".split()


@pytest.mark.parametrize("name", ONE)
def test_derivatives_that_are_zero(name: str):
    function: Any = getattr(ln, name)
    x = np.array([0.3, -1.2, 2.7])
    gradient = ln.grad(lambda x: ln.sum(x * ln.sum(function(x))))(x)
    np.testing.assert_allclose(gradient, np.full(3, np.sum(np.asarray(function(ln.asarray(x)), float))))
    assert name in zeros() or name in ("around", "sign")  # around is round; sign turns with complex numbers


def test_no_function_has_a_rule_and_none():
    assert not set(without()) & set(rows())
    assert all(rule.kind in ("maps", "composition", "zero") for rule in RULES.values())
