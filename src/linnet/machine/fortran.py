"""BLAS and LAPACK called without the interpreter lock.

`scipy.linalg.blas` and most of `scipy.linalg.lapack` hold the lock for the whole call,
so two Python threads would take turns. SciPy also publishes the bare function pointers
for Cython users; ctypes calls those, and ctypes lets go of the lock. That needs no
compiler, and uses the BLAS that SciPy already brings.

SciPy is imported at the first call, not at `import linnet`: it takes longer than
everything else together.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linnet.errors import BlasUnavailableError
from linnet.machine import large_arrays

Matrix = NDArray[Any]

_PREFIX = {"f": "s", "d": "d", "F": "c", "D": "z"}


@functools.cache
def routine(name: str, code: str) -> Callable[..., None]:
    """The routine `name` (as `gemm`) for the dtype of that character code.

    It takes addresses and ctypes references only, as Fortran does. The calling thread
    does not hold the interpreter lock while it runs.
    """
    modules = [importlib.import_module(f"scipy.linalg.cython_{library}") for library in ("blas", "lapack")]
    symbol = _PREFIX[code] + name
    capsules = (module.__pyx_capi__[symbol] for module in modules if symbol in module.__pyx_capi__)
    capsule: Any = next(capsules, None)
    if capsule is None:
        where = " or ".join(module.__name__ for module in modules)
        raise BlasUnavailableError(f"SciPy does not offer {symbol} in {where}; upgrade SciPy")
    signature = _capsule_name(capsule)
    # 64-bit integers would make every size and leading dimension wrong without any error.
    if "int *" not in signature.decode() or not signature.startswith(b"void ("):
        raise BlasUnavailableError(
            f"{symbol} has the signature {signature.decode()!r}; expected void (..., int *, ...)"
        )
    arguments = signature.count(b",") + 1
    prototype = ctypes.CFUNCTYPE(None, *([ctypes.c_void_p] * arguments))
    return prototype(_capsule_pointer(capsule, signature))


def _capsule_name(capsule: object) -> bytes:
    function = ctypes.pythonapi.PyCapsule_GetName
    function.restype = ctypes.c_char_p
    function.argtypes = [ctypes.py_object]
    return function(capsule)


def _capsule_pointer(capsule: object, name: bytes) -> int:
    function = ctypes.pythonapi.PyCapsule_GetPointer
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return function(capsule, name)


def integer(value: int) -> Any:
    """A reference to a Fortran integer."""
    return ctypes.byref(ctypes.c_int(value))


@functools.cache
def scalar(value: float, code: str) -> Any:
    """A reference to a Fortran scalar (complex: with no imaginary part) of that dtype."""
    real = ctypes.c_float if code in "fF" else ctypes.c_double
    if code in "FD":
        return ctypes.byref((real * 2)(value, 0.0))
    return ctypes.byref(real(value))


def address(array: Matrix) -> int:
    """The address of the first element."""
    return array.__array_interface__["data"][0]


def is_fortran(array: Matrix) -> bool:
    """Whether BLAS can take this matrix as it lies: columns contiguous, at a fixed distance."""
    rows, columns = array.shape
    step, stride = array.strides
    item = array.itemsize
    return (
        (rows <= 1 or step == item)
        and (columns <= 1 or (stride % item == 0 and stride >= item * max(1, rows)))
        and array.flags.aligned
        and array.dtype.isnative
    )


def leading(array: Matrix) -> Any:
    """A reference to the leading dimension of a matrix for which `is_fortran` holds."""
    rows, columns = array.shape
    return integer(array.strides[1] // array.itemsize if columns > 1 else max(1, rows))


def blas_dtype(*tiles: Matrix) -> np.dtype[Any]:
    """The dtype in which BLAS computes with these tiles.

    >>> blas_dtype(np.zeros(1, "f4"), np.zeros(1, "i8"))
    dtype('float64')
    >>> blas_dtype(np.zeros(1, "f4"), np.zeros(1, "c8"))
    dtype('complex64')
    """
    first = tiles[0].dtype
    if first.char in _PREFIX and first.isnative and all(tile.dtype is first for tile in tiles):
        return first
    return promote(*(tile.dtype for tile in tiles))


def promote(*dtypes: DTypeLike) -> np.dtype[Any]:
    """The smallest of the four BLAS dtypes that holds these; integers count as float64."""
    common = np.result_type(*{np.dtype(each) for each in dtypes})  # result_type takes at most 64
    if common.char in _PREFIX:
        return common.newbyteorder("=")
    if common.kind in "biu":
        return np.dtype(np.float64)
    if common.kind == "f" and common.itemsize < 4:
        return np.dtype(np.float32)
    raise TypeError(
        f"tiles of dtype {common} cannot go to BLAS; "
        "convert the array to float32, float64, complex64 or complex128"
    )


def owned(tile: Matrix, dtype: np.dtype[Any], mine: bool) -> Matrix:
    """The tile as a Fortran-ordered matrix that may be overwritten: itself if `mine`, else a copy."""
    if mine and tile.dtype == dtype and tile.flags.writeable and is_fortran(tile):
        return tile
    return np.array(tile, dtype=dtype, order="F")


def workspace(tile: Matrix, dtype: np.dtype[Any], mine: bool) -> Matrix:
    """The tile as a matrix that may be overwritten, lying as it does: itself if `mine`, else a copy.

    Rows are copied as rows and columns as columns: a transposing copy costs ten times as much.

    >>> a = np.zeros((2, 3))
    >>> workspace(a, a.dtype, mine=True) is a, workspace(a.T, a.dtype, mine=False).strides
    (True, (8, 24))
    """
    if mine and tile.dtype == dtype and tile.flags.writeable and (is_fortran(tile) or is_fortran(tile.T)):
        return tile
    by_columns = abs(tile.strides[0]) <= abs(tile.strides[1])
    return np.array(tile, dtype=dtype, order="F" if by_columns else "C")


def placed(
    shape: tuple[int, int], dtype: np.dtype[Any], into: Matrix | None, *, by_columns: bool = False
) -> Matrix:
    """Where a result goes: `into` an array of its form that lies by rows (or columns), or a new one.

    If it lay the other way round, other bits might come out.

    >>> whole = np.zeros((4, 4))
    >>> placed((2, 2), whole.dtype, whole[:2, :2]).base is whole, placed((2, 2), whole.dtype, None).base
    (True, None)
    """
    if into is None or into.shape != shape or into.dtype != dtype:
        return np.empty(shape, dtype, order="F" if by_columns else "C")
    fits = is_fortran(into if by_columns else into.T)
    return into if fits else placed(shape, dtype, None, by_columns=by_columns)


def readable(tile: Matrix, dtype: np.dtype[Any]) -> Matrix:
    """The tile as a Fortran-ordered matrix of that dtype, copied only if it is not one already."""
    if tile.dtype == dtype and is_fortran(tile):
        return tile
    return np.array(tile, dtype=dtype, order="F")


def by_columns(rows: int, columns: int, dtype: np.dtype[Any]) -> Matrix:
    """A Fortran-ordered matrix, not set, whose columns do not get into one another's way in the cache.

    >>> by_columns(128, 2, np.dtype(np.float64)).strides
    (8, 1088)
    """
    return np.empty((columns, rows + large_arrays.spare(rows, dtype)), dtype).T[:rows]


def stacked(tiles: Sequence[Matrix], dtype: np.dtype[Any]) -> Matrix:
    """Tiles on top of one another, Fortran-ordered."""
    whole = by_columns(sum(len(tile) for tile in tiles), tiles[0].shape[1], dtype)
    start = 0
    for tile in tiles:
        whole[start : start + len(tile)] = tile
        start += len(tile)
    return whole


def operand(tile: Matrix, dtype: np.dtype[Any]) -> tuple[bytes, Matrix]:
    """The tile for `gemm`, with the operation it needs: a C-ordered tile is a transposed one."""
    if tile.dtype == dtype:
        if is_fortran(tile):
            return b"N", tile
        if is_fortran(tile.T):
            return b"T", tile.T
    return b"N", np.array(tile, dtype=dtype, order="F")


def conjugate_operand(tile: Matrix, dtype: np.dtype[Any]) -> tuple[bytes, Matrix]:
    """The conjugate of the tile, for `gemm`: BLAS knows it only together with a transpose."""
    if dtype.kind == "f":
        return operand(tile, dtype)
    if tile.dtype == dtype and is_fortran(tile.T):
        return b"C", tile.T
    return b"N", np.array(tile.conj(), dtype=dtype, order="F")


def adjoint_operand(tile: Matrix, dtype: np.dtype[Any]) -> tuple[bytes, Matrix]:
    """The conjugate transpose of the tile, for `gemm`."""
    if tile.dtype == dtype and not is_fortran(tile) and dtype.kind == "f" and is_fortran(tile.T):
        return b"N", tile.T
    return b"C", readable(tile, dtype)


def multiply_into(
    result: Matrix,
    left: tuple[bytes, Matrix],
    right: tuple[bytes, Matrix],
    inner: int,
    alpha: float,
    beta: float,
) -> None:
    """`result ← alpha·op(left)·op(right) + beta·result`, where `result` is Fortran-ordered."""
    rows, columns = result.shape
    code = result.dtype.char
    (op_a, a), (op_b, b) = left, right
    routine("gemm", code)(
        op_a, op_b, integer(rows), integer(columns), integer(inner), scalar(alpha, code),
        address(a), leading(a), address(b), leading(b), scalar(beta, code), address(result), leading(result),
    )  # fmt: skip
