"""Operations on long arrays that are done at once: where their results go, and who computes them.

A program of whole arrays makes and drops one after another. A result goes to the memory that one before it
had, and what takes long for each element (`exp`, `sin`, a division) is computed by as many threads as the
session has workers, each with pieces that NumPy would begin there too: the bits are the same.
"""

from __future__ import annotations

import math
import threading
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.elements.outcomes import kind_of, outcome_of
from linnet.machine import large_arrays
from linnet.machine.helping_threads import side_by_side
from linnet.session import current_engine

_LONG = 1 << 17
"""Elements from which on fresh memory takes longer than looking for some that is there."""

_SHARED = 1 << 21
"""Steps, of about the time of an addition, from which on several threads are sooner done than one."""

_PIECE = 1 << 13
"""Pieces begin at multiples of so many elements: there NumPy's buffers and vectors begin too."""

_MIDDLING = 3
"""What a division takes, against an addition,"""

_SLOW = 8
"""and what a power takes."""

_STEPS: dict[np.ufunc, int] = {
    **dict.fromkeys((np.divide, np.sqrt, np.reciprocal), _MIDDLING),
    **dict.fromkeys(
        (
            *(np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p, np.logaddexp, np.logaddexp2),
            *(np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan, np.arctan2, np.hypot, np.cbrt),
            *(np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh, np.arctanh, np.power, np.float_power),
            *(np.remainder, np.fmod, np.floor_divide),
        ),
        _SLOW,
    ),
}


def computed_anew(ufunc: np.ufunc, *operands: Any) -> Any:
    """`ufunc(*operands)`; a long result in rows goes where an array before it has been.

    >>> computed_anew(np.add, np.arange(3), 1)
    array([1, 2, 3])
    """
    arrays = [each for each in operands if type(each) is np.ndarray]
    shape = _shape(arrays)
    if math.prod(shape) < _LONG or not all(map(_in_rows, arrays)):
        return ufunc(*operands)
    kinds = tuple([kind_of(each) for each in operands])
    if any(kind is None for kind in kinds):  # the outcome depends on the number itself
        return ufunc(*operands)
    made = large_arrays.again(shape, outcome_of(ufunc, kinds)[0].dtype)
    compute_into(ufunc, operands, made)
    return made


def compute_into(ufunc: np.ufunc, operands: tuple[Any, ...], out: NDArray[Any]) -> None:
    """`ufunc(*operands, out=out)`, by several threads if that is sooner done."""
    pieces = _pieces(ufunc, operands, out)
    if len(pieces) < 2:
        ufunc(*operands, out=out)
        return
    flat = [each.reshape(-1) if type(each) is np.ndarray and each.ndim else each for each in operands]
    place = out.reshape(-1)

    def compute(piece: slice) -> None:
        parts = [each[piece] if type(each) is np.ndarray and each.ndim else each for each in flat]
        ufunc(*parts, out=place[piece])

    side_by_side([partial(compute, each) for each in pieces])


def _pieces(ufunc: np.ufunc, operands: tuple[Any, ...], out: NDArray[Any]) -> list[slice]:
    """What each thread computes; one piece, or none, if it is not worth several."""
    steps = _STEPS.get(ufunc, 1) * (_MIDDLING if out.dtype.kind == "c" else 1)
    if ufunc is np.absolute and operands[0].dtype.kind == "c":
        steps = _SLOW
    if out.size * steps < _SHARED or threading.current_thread() is not threading.main_thread():
        return []  # other threads have others beside them already
    for each in (*operands, out):
        if (
            type(each) is np.ndarray
            and each.ndim
            and not (each.shape == out.shape and each.flags.c_contiguous)
        ):
            return []
    engine = current_engine()
    if not engine.shares_memory:  # its workers are elsewhere
        return []
    length = -(-out.size // engine.workers // _PIECE) * _PIECE
    return [slice(start, start + length) for start in range(0, out.size, length)]


def _shape(arrays: list[NDArray[Any]]) -> tuple[int, ...]:
    """The shape of arrays broadcast together; none if they do not fit, which NumPy will say."""
    if not arrays:
        return ()
    shape = arrays[0].shape
    if all(each.shape == shape for each in arrays[1:]):
        return shape
    try:
        return np.broadcast_shapes(*(each.shape for each in arrays))
    except ValueError:
        return ()


def _in_rows(array: NDArray[Any]) -> bool:
    """Whether NumPy would make the result in row-major order for this operand."""
    if array.flags.c_contiguous:
        return True
    strides = [stride for stride, n in zip(array.strides, array.shape, strict=True) if n > 1]
    return all(one >= other > 0 for one, other in pairwise(strides))
