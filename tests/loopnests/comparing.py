"""A function of loops against itself as plain Python."""

from __future__ import annotations

import copy
import types
import warnings
from typing import Any

import numpy as np

import linnet as ln


def plain(function: Any, *args: Any) -> tuple[Any, list[Any]]:
    """Result and arguments of the plain function, with NumPy in the place of Linnet."""
    given = copy.deepcopy(list(args))
    serial = function.serial
    names = dict(serial.__globals__)
    space = types.SimpleNamespace(
        **{name: getattr(np, name) for name in dir(np) if not name.startswith("__")}
    )
    space.grid, space.wavefront = ln.grid, ln.wavefront
    names["ln"] = space
    again = types.FunctionType(
        serial.__code__, names, serial.__name__, serial.__defaults__, serial.__closure__
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return again(*given), given


def same(function: Any, *args: Any, chunks: Any = None, rtol: float = 1e-10, exact: bool = False) -> Any:
    """Compare result, dtypes and arguments with the plain run; for arrays of NumPy's and in tiles."""
    expected, after = plain(function, *args)
    got = None
    for cut in (None, 2 if chunks is None else chunks):
        given = [
            ln.asarray(each.copy(), chunks=cut) if cut is not None and isinstance(each, np.ndarray) else copy.deepcopy(each)
            for each in args
        ]  # fmt: skip
        got = function(*given)
        equal(got, expected, rtol, exact)
        equal(given, after, rtol, exact)
    return got


def equal(got: Any, expected: Any, rtol: float = 1e-10, exact: bool = False) -> None:
    if isinstance(expected, tuple | list):
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            equal(one, other, rtol, exact)
        return
    if expected is None or isinstance(expected, str):
        assert got == expected
        return
    found, wanted = np.asarray(got), np.asarray(expected)
    assert found.shape == wanted.shape
    if isinstance(expected, np.ndarray | np.generic):
        assert found.dtype == wanted.dtype
    if exact or wanted.dtype.kind in "iub":
        np.testing.assert_array_equal(found, wanted)
    else:
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=1e-12)
