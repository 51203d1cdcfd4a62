"""How arrays that are being differentiated make themselves known to the functions they are given to.

Such an array has no node that a function could build on. It raises `Traced` when it is asked for one, and the
functions of users (`chunked`, reductions, ufuncs, linear algebra, and those marked `traceable`) catch it and
take the function's rule. So arrays that are not differentiated pay nothing for it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


class Traced(BaseException):
    """Raised by an array that is being differentiated when a function looks inside it.

    Functions of users catch it and take their rule instead (`tracing.dispatch` in the room of derivatives).
    No `Exception`: code that tries something and goes another way must not swallow it.
    """

    def __init__(self, dispatch: Callable[[Traced, Any, tuple[Any, ...], dict[str, Any]], Any]) -> None:
        self.dispatch = dispatch
        self.names: list[str] = []
        """Functions that have no rule, from the inside out."""

    def apply(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The function's result by its rule; the same error again if it has none."""
        return self.dispatch(self, function, args, kwargs)


def traceable(function: F) -> F:
    """Mark a function that may have a rule of derivatives, and has no other mark (`chunked`, `linear`)."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Traced as found:
            traced = found
        return traced.apply(call, args, kwargs)

    return cast("F", call)
