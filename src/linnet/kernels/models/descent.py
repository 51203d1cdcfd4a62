"""Coordinate descent on a quadratic function with an l1 penalty: exact zeros.

The loop over coordinates cannot be vectorised, since each step needs the gradient that the step before left.
It is compiled where a compiler was there (`compiled/descent.c`); the Python here takes the same steps.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from linnet.kernels import compiled
from linnet.machine.libraries import loaded

Vector = NDArray[np.float64]
_LIBRARY = Path(compiled.__file__).with_name("descent.so")


@functools.cache
def _library() -> ctypes.CDLL | None:
    found = loaded(_LIBRARY)
    if found is not None:
        pointer, integer = ctypes.c_void_p, ctypes.c_int64
        found.linnet_descend.argtypes = (*(pointer,) * 4, integer, integer, ctypes.c_double)
        found.linnet_descend.restype = integer
    return found


def descend(q: Vector, c: Vector, l1: Vector, w: Vector, tol: float, most: int = 10_000) -> int:
    """Minimise `wᵀQw/2 - cᵀw + Σ l1·|w|` in place, from `w`; returns how many sweeps it took.

    It ends when no step of a sweep changes an element of the gradient by more than `tol`.

    >>> w = np.zeros(2)
    >>> _ = descend(np.eye(2), np.array([3.0, 0.5]), np.ones(2), w, 1e-12)
    >>> w
    array([2., 0.])
    """
    q = np.ascontiguousarray(q, np.float64)
    l1 = np.ascontiguousarray(l1, np.float64)
    gradient = q @ w - c
    library = _library()
    if library is None:
        return descend_in_python(q, l1, w, gradient, tol, most)
    pointers = [each.ctypes.data for each in (q, l1, w, gradient)]
    return int(library.linnet_descend(*pointers, len(w), most, tol))


def descend_in_python(q: Vector, l1: Vector, w: Vector, gradient: Vector, tol: float, most: int) -> int:
    """The same without a compiler.

    >>> w = np.zeros(1)
    >>> descend_in_python(np.eye(1), np.ones(1), w, np.array([-3.0]), 1e-12, 100), w
    (3, array([2.]))
    """
    sweeps, everything = 0, True
    while sweeps < most:
        places = range(len(w)) if everything else np.flatnonzero(w)
        largest = max((_step(q, l1, w, gradient, int(j)) for j in places), default=0.0)
        sweeps += 1
        if largest > tol:
            everything = False
        elif everything:
            break
        else:
            everything = True
    return sweeps


def _step(q: Vector, l1: Vector, w: Vector, gradient: Vector, j: int) -> float:
    curve, old, new = q[j, j], w[j], 0.0
    if curve > 0:
        z = curve * old - gradient[j]
        new = np.sign(z) * max(abs(z) - l1[j], 0.0) / curve
    moved = new - old
    if moved:
        w[j] = new
        gradient += moved * q[j]
    return float(abs(moved) * curve)
