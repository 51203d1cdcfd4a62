"""Operands by the names that NumPy has for them.

Functions here name their operands as the array API standard does, or take them by their places alone;
`np.sum(a=x)` and `np.moveaxis(x, source=0, destination=1)` must work all the same.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any, TypeVar, cast

from linnet.arrays.expression.traced import Traced

F = TypeVar("F", bound=Callable[..., Any])

_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


class Names:
    """Which of NumPy's names stand for which places of a function of ours."""

    __slots__ = ("_ours", "_places", "_theirs")

    def __init__(self, ours: Callable[..., Any], theirs: Any) -> None:
        self._ours, self._theirs = ours, theirs
        self._places: dict[str, int] | None = None
        """Found when first needed: most calls name no operand."""

    def placed(
        self, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Arguments with operands that were named as NumPy names them in their places.

        >>> Names(lambda x, /, axis=None: x, lambda a, axis=None: a).placed((), {"a": 1, "axis": 0})
        ((1,), {'axis': 0})
        """
        if self._places is None:
            self._places = self._found()
        if self._places.keys().isdisjoint(keywords):
            return args, keywords
        found = dict(enumerate(args))
        rest = dict(keywords)
        for name in self._places.keys() & keywords.keys():
            place = self._places[name]
            if place in found:
                raise TypeError(f"{self._ours.__name__}() got multiple values for argument {name!r}")
            found[place] = rest.pop(name)
        if sorted(found) != list(range(len(found))):
            return args, keywords  # something before it is missing, which the function itself says
        return tuple(found[place] for place in range(len(found))), rest

    def _found(self) -> dict[str, int]:
        try:
            theirs = inspect.signature(self._theirs).parameters.values()
        except (TypeError, ValueError):  # written in C, without a signature
            return {}
        ours = inspect.signature(self._ours).parameters.values()
        known = {each.name for each in ours if each.kind in _BY_NAME}
        places = sum(each.kind in _BY_PLACE for each in ours)
        named = [each.name for each in theirs if each.kind in _BY_NAME and each.kind in _BY_PLACE]
        return {name: place for place, name in enumerate(named[:places]) if name not in known}


def named_as(theirs: Any) -> Callable[[F], F]:
    """Mark a function that also takes its operands by the names that NumPy's function has for them."""

    def mark(function: F) -> F:
        names = Names(function, theirs)

        @functools.wraps(function)
        def call(*args: Any, **keywords: Any) -> Any:
            if keywords:
                args, keywords = names.placed(args, keywords)
            try:
                return function(*args, **keywords)
            except Traced as found:
                traced = found
            return traced.apply(call, args, keywords)

        return cast("F", call)

    return mark
