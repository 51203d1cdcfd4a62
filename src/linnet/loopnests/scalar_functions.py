"""Functions of numbers that loops may call: Python's, those of `math`, and NumPy's and ours.

Python's functions give Python's numbers, which take part in arithmetic as NumPy's rules for them say (they do
not widen anything); NumPy's give NumPy's.
"""

from __future__ import annotations

import builtins
import math
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class Known:
    """How a function is computed on arrays."""

    ufunc: np.ufunc | str
    """NumPy's function, or a word of `vectors`."""
    plain: str = ""
    """"f", "i" or "b": the result is a Python number of that kind."""
    arguments: int = 1


_MATH = {
    "sqrt": np.sqrt, "exp": np.exp, "expm1": np.expm1, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "fabs": np.fabs, "degrees": np.degrees, "radians": np.radians, "cbrt": np.cbrt,
    "log": np.log,
}  # fmt: skip
_KNOWN: dict[Any, Known] = {getattr(math, name): Known(ufunc, "f") for name, ufunc in _MATH.items()}
_KNOWN |= {
    math.atan2: Known(np.arctan2, "f", 2),
    math.hypot: Known(np.hypot, "f", 2),
    math.pow: Known(np.power, "f", 2),
    math.fmod: Known(np.fmod, "f", 2),
    math.copysign: Known(np.copysign, "f", 2),
    math.floor: Known(np.floor, "i"),
    math.ceil: Known(np.ceil, "i"),
    math.trunc: Known(np.trunc, "i"),
    math.isnan: Known(np.isnan, "b"),
    math.isinf: Known(np.isinf, "b"),
    math.isfinite: Known(np.isfinite, "b"),
    builtins.abs: Known("abs"),
    builtins.float: Known("float"),
    builtins.int: Known("int"),
    builtins.bool: Known("bool"),
    builtins.min: Known("min", arguments=2),
    builtins.max: Known("max", arguments=2),
    builtins.pow: Known("pow", arguments=2),
}


def known_function(function: Any, arguments: int) -> Known | None:
    """How loops compute a function; None if they do not know it.

    >>> known_function(math.sqrt, 1)
    Known(ufunc=<ufunc 'sqrt'>, plain='f', arguments=1)
    """
    from linnet.loopnests.monoids import MONOIDS

    try:
        found = _KNOWN.get(function)
    except TypeError:  # not hashable: no function
        return None
    if found is None and isinstance(function, np.ufunc) and function.nout == 1 and function.signature is None:
        found = Known(function, arguments=function.nin)
    if found is None:
        found = _ours(function)
    if found is None and any(each.combine is function for each in MONOIDS.values()):
        found = Known("combine", arguments=2)
    return found if found is not None and found.arguments == arguments else None


def _ours(function: Any) -> Known | None:
    """A function of ours that stands for a ufunc, by its name."""
    if not str(getattr(function, "__module__", "")).startswith("linnet.arrays"):
        return None
    ufunc = getattr(np, getattr(function, "__name__", ""), None)
    if isinstance(ufunc, np.ufunc) and ufunc.nout == 1 and ufunc.signature is None:
        return Known(ufunc, arguments=ufunc.nin)
    return Known("where", arguments=3) if getattr(function, "__name__", "") == "where" else None
