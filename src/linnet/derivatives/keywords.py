"""Ufuncs with `where=`, `dtype=` and `out=` on arrays that are being differentiated."""

from __future__ import annotations

from typing import Any

import numpy as np

from linnet.arrays.elements.elementwise import call
from linnet.derivatives.names import ln
from linnet.derivatives.tracing import written


def with_keywords(ufunc: np.ufunc, items: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """`ufunc(*items, **keywords)`, by functions that have rules."""
    given = dict(keywords)
    out, condition, dtype = given.pop("out", None), given.pop("where", True), given.pop("dtype", None)
    out = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    for name in ("casting", "order", "subok"):
        given.pop(name, None)
    if given:
        raise TypeError(f"{ufunc.__name__}() got an unexpected keyword argument {next(iter(given))!r}")
    if dtype is not None:
        items = tuple(each.astype(dtype) if isinstance(each, ln.Array) else each for each in items)
    result = call(ufunc, items, {})
    if dtype is not None and result.dtype != np.dtype(dtype):
        result = result.astype(dtype)
    if condition is not True:
        result = ln.where(condition, result, 0 if out is None else out)
    return result if out is None else written(out, result, ufunc.__name__)
