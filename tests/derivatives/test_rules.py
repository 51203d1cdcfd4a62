"""Every rule: forward against differences, reverse against forward, in one tile and in several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from derivative_cases import CASES

import linnet as ln

STEP = 1e-6


def drawn(shapes: tuple[Any, ...], seed: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    found: list[Any] = []
    for each in shapes:
        if each and each[0] == "range":
            found.append(rng.uniform(*each[2], size=each[1]))
        else:
            found.append(rng.uniform(-1, 1, size=each))
    return found


def cut(values: list[Any], tiles: bool) -> list[Any]:
    return [ln.asarray(x, chunks=2 if tiles and x.ndim else None) for x in values]


@pytest.mark.parametrize("tiles", [False, True], ids=["one tile", "several"])
@pytest.mark.parametrize(
    "number", range(len(CASES)), ids=[f"{k}-{name}" for k, (name, *_) in enumerate(CASES)]
)
def test_forward_and_reverse_rules_agree_with_differences(number: int, tiles: bool):
    _, function, shapes = CASES[number]
    values = drawn(shapes, 0)
    changes = drawn(tuple(np.shape(x) for x in values), 1)
    arguments = cut(values, tiles)
    value, tangent = ln.jvp(function, tuple(arguments), tuple(changes))
    same, pull = ln.vjp(function, *arguments)
    plain = function(*arguments)
    value, same, plain = ln.compute(value, same, plain)
    np.testing.assert_allclose(value, plain, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(same, plain, rtol=1e-12, atol=1e-13)
    tangent = np.asarray(tangent)
    weight = np.random.default_rng(2).uniform(-1, 1, size=value.shape)
    pulled = [np.asarray(each) for each in pull(weight)]
    assert [each.shape for each in pulled] == [x.shape for x in values]
    assert tangent.shape == value.shape
    one = np.sum(tangent * weight)
    other = sum(np.sum(w * t) for w, t in zip(pulled, changes, strict=True))
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)
    near = [
        np.asarray(function(*cut([x + sign * STEP * t for x, t in zip(values, changes, strict=True)], False)))
        for sign in (1, -1)
    ]
    np.testing.assert_allclose(tangent, (near[0] - near[1]) / (2 * STEP), rtol=2e-6, atol=5e-7)
