"""Several arrays in tuples, lists and named tuples: taken apart, and put together again as they were."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from linnet.arrays.elements.core import ArrayBase
from linnet.workers.result_types import arranged_in


def leaves(what: Any) -> list[Any]:
    """All that is in nested tuples and lists, in order; anything else is itself.

    >>> leaves((1, [2, (3,)]))
    [1, 2, 3]
    """
    if not isinstance(what, _SEVERAL):
        return [what]
    found: list[Any] = []
    for item in what:  # pyright: ignore[reportUnknownVariableType]
        if isinstance(item, _SEVERAL):
            found += leaves(item)
        else:
            found.append(item)
    return found


def rebuilt(what: Any, values: Sequence[Any]) -> Any:
    """The same tuples and lists around other values.

    >>> rebuilt((1, [2, (3,)]), "abc")
    ('a', ['b', ('c',)])
    """
    return _rebuilt(what, iter(values))


def _rebuilt(what: Any, values: Iterator[Any]) -> Any:
    if not isinstance(what, _SEVERAL):
        return next(values)
    parts = [_rebuilt(each, values) if isinstance(each, _SEVERAL) else next(values) for each in what]  # pyright: ignore
    if isinstance(what, list):
        return parts
    return type(what)(*parts) if hasattr(what, "_fields") else tuple(parts)  # pyright: ignore


_SEVERAL = (tuple, list)
PLAIN = (bool, int, float, str, type(None))
"""What may stand beside arrays in a named tuple: it is what it is."""


def arrays_in(what: Any, function: str) -> list[Any]:
    """The lazy arrays in nested tuples and lists; TypeError for anything else in them but plain values."""
    found = [each for each in leaves(what) if not isinstance(each, PLAIN)]
    for each in found:
        if not isinstance(each, ArrayBase):
            raise TypeError(
                f"{function} takes arrays, and tuples and lists of them, not {type(each).__name__}"
            )
    return found


def arrangement(what: Any) -> Any:
    """In which tuples and lists things are, by number: data that can be stored.

    >>> arrangement([b"an array", (b"another", True)])
    ('list', [0, ('tuple', [1, ('plain', True)])])
    """
    return _arranged(what, itertools.count())


def _arranged(what: Any, numbers: Iterator[int]) -> Any:
    if isinstance(what, PLAIN):
        return "plain", what
    if not isinstance(what, tuple | list):
        return next(numbers)
    inside = [_arranged(each, numbers) for each in what]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(what, list):
        return "list", inside
    fields = getattr(what, "_fields", None)  # pyright: ignore[reportUnknownArgumentType]
    if fields is None:
        return "tuple", inside
    kind: Any = arranged_in(type(what))  # pyright: ignore[reportUnknownArgumentType]
    return "named", kind.__name__, list(fields), inside
