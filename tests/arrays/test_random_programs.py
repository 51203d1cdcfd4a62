"""Programs at random, on NumPy's arrays and on ours in tiles: the same shapes, dtypes and values, or both refuse.

`make test-long` runs 100,000 of them, other ones every time, and `make test` a few hundred that are always the
same. What is different is told as a command that runs the program again.
"""

from __future__ import annotations

import secrets
import warnings

import numpy as np
import pytest
from array_families import FAMILIES
from array_programs import Call, Dice, Family, difference, differences
from hypothesis import settings
from numpy.typing import NDArray

pytestmark = pytest.mark.slow

MANY = 100_000
PROGRAMS = {"long": -(-MANY // len(FAMILIES)), "ci": 20}
"""How many programs of each family a profile runs."""


@pytest.mark.parametrize("family", FAMILIES, ids=lambda each: each.__name__)
def test_programs(family: Family) -> None:
    profile = settings.get_current_profile_name()
    seed = secrets.randbelow(1 << 32) if profile == "long" else 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = differences(family, FAMILIES[family], seed, PROGRAMS.get(profile, 3))
    assert not found, "python tests/arrays/array_programs.py " + "\n".join(found)


def test_a_program_is_the_same_again() -> None:
    one, other = (Dice("7 sets 3") for _ in range(2))
    assert str(one.cut(one.array())) == str(other.cut(other.array()))


def test_what_is_different_is_told() -> None:
    def wrong(dice: Dice, a: NDArray[np.float64]) -> Call:
        return Call(lambda x: x + (0 if isinstance(x, np.ndarray) else 1), name="plus nothing")

    found = difference(wrong, {"dtypes": ("f8",), "shape": (3,)}, 1, 2)
    assert found is not None
    assert "--seed 1 --family wrong --number 2" in found
    assert "plus nothing(x)" in found
    assert "Mismatched elements: " in found


def test_operands_that_change_are_told() -> None:
    def wrong(dice: Dice, a: NDArray[np.float64]) -> Call:
        def change(x: object) -> object:
            if not isinstance(x, np.ndarray):
                x[:] = 5  # type: ignore[index]
            return 0

        return Call(change)

    found = difference(wrong, {"dtypes": ("f8",), "shape": (3,)}, 1, 2)
    assert found is not None
    assert "Arrays are not equal" in found
