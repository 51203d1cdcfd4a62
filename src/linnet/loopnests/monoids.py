"""What values are combined by: the monoids that `+=`, `min`, `or` and their like stand for.

A monoid of the user's own (`ln.monoid`) is a function of two values that NumPy's functions are made of. It is
tried on samples when it is registered: it must be associative, must not depend on the order, and its identity
must change nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linnet.errors import InputError


@dataclass(frozen=True, slots=True)
class Monoid:
    """An associative and commutative operation with its identity."""

    name: str
    start: Any
    """The identity as Python knows it: what `sum` and `any` start from."""
    combine: Callable[[Any, Any], Any] | None = None
    """Of a user's own: the function of two values."""


def _identity_of_minimum(dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "f":
        return dtype.type(np.inf)
    return dtype.type(True) if dtype.kind == "b" else dtype.type(np.iinfo(dtype).max)


def _identity_of_maximum(dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "f":
        return dtype.type(-np.inf)
    return dtype.type(False) if dtype.kind == "b" else dtype.type(np.iinfo(dtype).min)


def identity(monoid: Monoid, dtype: np.dtype[Any]) -> Any:
    """The identity among values of a dtype.

    >>> identity(MONOIDS["min"], np.dtype("i2"))
    np.int16(32767)
    """
    if monoid.name == "min":
        return _identity_of_minimum(dtype)
    if monoid.name == "max":
        return _identity_of_maximum(dtype)
    if monoid.name == "&":
        return dtype.type(True) if dtype.kind == "b" else dtype.type(~dtype.type(0))
    return dtype.type(monoid.start)


MONOIDS: dict[str, Monoid] = {
    "+": Monoid("+", 0),
    "*": Monoid("*", 1),
    "min": Monoid("min", np.inf),
    "max": Monoid("max", -np.inf),
    "or": Monoid("or", False),
    "and": Monoid("and", True),
    "&": Monoid("&", -1),
    "|": Monoid("|", 0),
    "^": Monoid("^", 0),
}
"""By name; `ln.monoid` adds to them."""


def monoid(name: str, combine: Callable[[Any, Any], Any], identity: Any) -> Callable[[Any, Any], Any]:
    """Register an operation of one's own for updates in loops: ``x[i] = combine(x[i], v)``.

    Parameters
    ----------
    name : str
        What it is called in `ln.einop` and in messages.
    combine : callable
        A function of two arrays (or numbers) that works element by element. It must be associative and must
        not depend on the order of its arguments; this is tried on samples.
    identity : scalar
        The value that changes nothing: ``combine(identity, v) == v``.

    Returns
    -------
    callable
        `combine`, so that it can be called in loops under its own name.

    Examples
    --------
    >>> import numpy as np
    >>> longer = monoid("longer", lambda a, b: np.hypot(a, b), 0.0)
    >>> longer(3.0, 4.0)
    np.float64(5.0)
    """
    if not name.isidentifier():
        raise InputError(f"a monoid needs a name such as 'longer', not {name!r}")
    if name in MONOIDS and MONOIDS[name].combine is not combine:
        raise InputError(f"there is a monoid {name!r} already; choose another name")
    samples = [np.float64(each) for each in (0.0, 1.0, 0.5, 2.0, 3.0)]
    for a, b, c in itertools.product(samples, repeat=3):
        if not _equal(combine(combine(a, b), c), combine(a, combine(b, c))):
            raise InputError(
                f"the monoid {name!r} is not associative: ({a} ⊕ {b}) ⊕ {c} = {combine(combine(a, b), c)}, "
                f"but {a} ⊕ ({b} ⊕ {c}) = {combine(a, combine(b, c))}"
            )
        if not _equal(combine(a, b), combine(b, a)):
            raise InputError(
                f"the monoid {name!r} depends on the order: {a} ⊕ {b} = {combine(a, b)}, "
                f"but {b} ⊕ {a} = {combine(b, a)}"
            )
    for a in samples:
        if not _equal(combine(np.float64(identity), a), a):
            raise InputError(
                f"{identity!r} is no identity of the monoid {name!r}: "
                f"combined with {a} it gives {combine(identity, a)}"
            )
    MONOIDS[name] = Monoid(name, identity, combine)
    return combine


def _equal(one: Any, other: Any) -> bool:
    return bool(np.allclose(one, other, equal_nan=True))
