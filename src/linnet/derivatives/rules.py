"""What a rule is, and where rules are kept: one for each function of users.

A rule is asked when a function is called on arrays that are being differentiated. It says, for each
operand, a pair of linear maps at this place: `push` takes a small change of the operand to that of the
result (forward), `pull` a weight on the result to that on the operand (reverse). Both are written in
functions of users, so they are lazy and can be differentiated in their turn. Some functions need no maps:
their derivative is zero wherever it exists, or they are written as a composition of others.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

Map = Callable[[Any], Any]
F = TypeVar("F", bound=Callable[..., Any])


class Linear(NamedTuple):
    """A derivative with respect to one operand, at one place."""

    push: Map
    """A change of the operand as a change of the result; a tuple, if there are several results."""
    pull: Map
    """A weight on the result as a weight on the operand. Of several results: a tuple, None for those that
    nothing depends on."""


NOTHING = Linear(lambda t: None, lambda g: None)
"""Of an operand on which the result does not depend."""


@dataclass(frozen=True)
class Rule:
    """How a function is differentiated."""

    name: str
    kind: str
    """"maps", "zero" or "composition"."""
    make: Callable[..., Any]
    """Maps: given the result and the arguments, the `Linear` of each operand by name. Composition: the
    function in other words. Zero: the function itself."""
    text: str
    """The rule in a line, for the table in the documentation."""
    names: tuple[str, ...] = ()
    """Names of the arguments of `maps`, in their order; the last one may stand for all that follow."""
    many: str | None = None
    """The argument that takes all further operands."""
    own_value: bool = False
    """Of compositions: only the derivative is that of the other words; the value, its dtype and its errors
    are the function's own."""


RULES: dict[Any, Rule] = {}
"""By the function at the bottom of its wrappers; ufuncs by NumPy's own."""


def root(function: Any) -> Any:
    """The function inside all wrappers."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return function


def named(function: Any) -> str:
    """A function as users know it."""
    module = getattr(root(function), "__module__", "") or ""
    name = getattr(function, "__name__", str(function)).lstrip("_")
    if module.startswith("linnet.arrays.linalg."):
        return f"linalg.{name}"
    return f"fft.{name}" if module.startswith("linnet.arrays.functions.fourier") else name


def maps(*functions: Any, text: str) -> Callable[[F], F]:
    """Mark a function that gives the linear maps of these functions: `make(result, *arguments)`."""

    def mark(make: F) -> F:
        parameters = list(inspect.signature(make).parameters.values())[1:]
        names = tuple(each.name for each in parameters if each.kind is not each.VAR_KEYWORD)
        many = next((each.name for each in parameters if each.kind is each.VAR_POSITIONAL), None)
        for each in functions:
            RULES[root(each)] = Rule(named(each), "maps", make, text, names, many)
        return make

    return mark


def composition(*functions: Any, text: str, own_value: bool = False) -> Callable[[F], F]:
    """Mark a function that says these functions in other words, each of which has a rule.

    Where the words do not give the value in all its details (NaN, dtypes, empty axes), `own_value` takes it
    from the function.
    """

    def mark(make: F) -> F:
        for each in functions:
            RULES[root(each)] = Rule(named(each), "composition", make, text, own_value=own_value)
        return make

    return mark


def zero(*functions: Any, text: str = "zero, where it exists") -> None:
    """The derivative of these functions is zero, or they do not look at values at all."""
    for each in functions:
        RULES[root(each)] = Rule(named(each), "zero", each, text)


def ufunc_named(name: str) -> np.ufunc:
    """NumPy's ufunc of a name."""
    return getattr(np, name)


Derivatives = Mapping[str, Linear | list[Linear]]
"""What rules with maps give."""
