"""Operands count as read when a function is called, and what is written into later does not change derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linnet as ln

X = np.array([1.0, 2.0, 3.0])


def _multiplied_in_place(x: Any) -> Any:
    z = ln.full(3, 2.0)
    z *= x
    return ln.sum(z)


def _divided_in_place(x: Any) -> Any:
    z = ln.full(3, 2.0)
    z *= x
    z **= 2
    z /= x
    z -= x
    return ln.sum(z)


def _operand_of_ours(x: Any) -> Any:
    w = ln.asarray([2.0, 2.0, 2.0])
    y = x * w
    w[0] = 100
    return ln.sum(y)


def _operand_of_numpy(x: Any) -> Any:
    w = np.full(3, 2.0)
    y = x * w
    w[0] = 100
    return ln.sum(y)


def _buffer_used_again(x: Any) -> Any:
    buffer, total = np.zeros(3), 0
    for k in (0.5, 1.5):
        buffer[:] = k
        total = total + ln.sum(x * buffer)
    return total


def _checkpointed(x: Any) -> Any:
    w = ln.full(3, 2.0)
    y = ln.checkpoint(lambda x, w: x * w)(x, w)
    w[0] = 100
    return ln.sum(y)


@ln.custom_vjp
def _product(x: Any, w: Any) -> Any:
    return x * w


_product.defvjp(lambda x, w: (x * w, (x, w)), lambda kept, g: (g * kept[1], g * kept[0]))


def _with_a_rule_of_its_own(x: Any) -> Any:
    w = ln.full(3, 2.0)
    y = _product(x, w)
    w[0] = 100
    return ln.sum(y)


@pytest.mark.parametrize(
    ("function", "factor"),
    [
        (_multiplied_in_place, 2),
        (_divided_in_place, 3),
        (_operand_of_ours, 2),
        (_operand_of_numpy, 2),
        (_buffer_used_again, 2),
        (_checkpointed, 2),
        (_with_a_rule_of_its_own, 2),
    ],
)
def test_operands_that_change_afterwards(function: Any, factor: float):
    np.testing.assert_allclose(ln.grad(function)(X), np.full(3, float(factor)))
    np.testing.assert_allclose(ln.jvp(function, (X,), (X,))[1], factor * X.sum())


def test_indices_that_change_afterwards():
    places = np.array([0, 1])
    _, pull = ln.vjp(lambda x: ln.sum(x[places] ** 2), X)
    places[:] = 2
    np.testing.assert_array_equal(pull(1.0)[0], [2, 4, 0])

    def listed(x: Any) -> Any:
        order = [0, 1]
        y = x[order]
        order[0] = 2
        return ln.sum(y)

    np.testing.assert_array_equal(ln.grad(listed)(X), [1, 1, 0])


@pytest.mark.parametrize("make", [np.array, ln.asarray], ids=["numpy", "linnet"])
def test_arguments_that_change_before_weights_come_back(make: Any):
    x = make([1.0, 2.0, 3.0])
    _, pull = ln.vjp(lambda x: ln.sum(x**3), x)
    x[0] = 10
    np.testing.assert_array_equal(pull(1.0)[0], [3, 12, 27])


@pytest.mark.parametrize(
    "write",
    [
        lambda x, z: np.take(x, [0, 0, 1], None, z),
        lambda x, z: np.dot(np.array([[1.0, 1, 0], [1, 0, 0], [0, 0, 0]]), x, z),
        lambda x, z: np.sum(ln.stack([x * np.array([2.0, 1, 0]), 0 * x]), 0, None, z),
        lambda x, z: np.median(ln.stack([x * np.array([2.0, 1, 0])]), 0, z),
        lambda x, z: np.multiply(x, np.array([2.0, 1, 0]), z),
    ],
    ids=["take", "dot", "sum", "median", "multiply"],
)
def test_results_are_written_where_they_should_go_without_its_name(write: Any):
    def function(x: Any) -> Any:
        z = ln.zeros(3)
        write(x, z)
        return ln.sum(z)

    np.testing.assert_array_equal(ln.grad(function)(X), [2, 1, 0])
