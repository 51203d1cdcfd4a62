"""Questions to isl, the integer set library: is there a point, and which comes first?

A context of our own with a limit: a question that isl cannot answer soon has no answer (None), and whoever
asks takes the safe side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import islpy as isl

MAX_OPERATIONS = 2_000_000
"""isl gives up beyond this many steps."""

_CONTEXT = isl.Context()


def _read(variables: Sequence[str], conditions: Iterable[str]) -> isl.Set:
    _CONTEXT.set_max_operations(MAX_OPERATIONS)
    _CONTEXT.reset_operations()
    where = " and ".join(conditions) or "0 = 0"
    return isl.Set.read_from_str(_CONTEXT, f"{{ [{', '.join(variables)}] : {where} }}")


def is_empty(variables: Sequence[str], conditions: Iterable[str]) -> bool | None:
    """Whether no integers meet the conditions; None if isl gives up.

    >>> is_empty(["x"], ["2*x = 3"])
    True
    """
    try:
        return bool(_read(variables, conditions).is_empty())
    except isl.Error:
        return None


def first_point(variables: Sequence[str], conditions: Iterable[str]) -> dict[str, int] | None:
    """The integers that meet the conditions and come first in the order of numbers; None if there are none.

    >>> first_point(["x", "y"], ["3 <= x < 6", "y = 2*x", "y < 10"])
    {'x': 3, 'y': 6}
    """
    try:
        found = _read(variables, conditions)
        if found.is_empty():
            return None
        point = found.lexmin().sample_point()
        values = [point.get_coordinate_val(isl.dim_type.set, k).to_python() for k in range(len(variables))]
    except isl.Error:
        return None
    return {name: int(value) for name, value in zip(variables, values, strict=True)}
