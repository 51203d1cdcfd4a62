"""Element-wise operations by name: the vocabulary of fused kernels.

A program says "sin", never a function: this table is the only way from a name to code. It holds
NumPy's universal functions of one result, each result of those with several ("modf.0",
"divmod.1"), and the few functions NumPy works out element by element without being universal
("where", "clip", "round", ...). SciPy's universal functions are found under "special.", and SciPy
is imported when the first of them is asked for.

Every operation returns memory of its own, never a view of an operand, and can write into a
buffer, so that a chain of them needs no memory but a few buffers.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.errors import UnknownKernelError
from linnet.kernels.arrays.selection import selected, selected_into
from linnet.records import record

Tile = NDArray[Any]


@record(eq=False)
class Operation:
    """A function of elements."""

    name: str
    """The name steps call it by."""
    function: Callable[..., Any]
    """From operands to a result in memory of its own."""
    into: Callable[..., Any]
    """The same, into the array that follows the operands."""
    least: int
    """The smallest number of operands."""
    most: int
    """The largest number of operands."""
    overlaps: bool = True
    """Whether the array written to may be one of the operands, if it has their dtype."""


def operation(name: str) -> Operation:
    """The operation of that name.

    >>> operation("hypot").function(3.0, 4.0)
    np.float64(5.0)
    >>> operation("special.expit").function(0.0)
    np.float64(0.5)
    """
    found = OPERATIONS.get(name)
    if found is None and name.startswith("special."):
        found = _special(name)
    if found is None:
        near = difflib.get_close_matches(name, OPERATIONS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UnknownKernelError(
            f"no element-wise operation is named {name!r}{hint} (expected a universal function of NumPy, "
            "or of scipy.special as 'special.name'; several results as 'name.0', 'name.1')"
        )
    return found


@functools.lru_cache(maxsize=256)
def cast(dtype: str) -> Operation:
    """The conversion to a dtype, as `astype` does it; of complex numbers to real ones, the real part.

    >>> cast("int8").function(np.array([1.5, -2.5]))
    array([ 1, -2], dtype=int8)
    """
    target = np.dtype(dtype)
    narrows = target.kind not in "cb"

    def real(x: Any) -> Any:
        # NumPy would warn, in Python, that the imaginary part goes.
        return x.real if narrows and x.dtype.kind == "c" else x

    def into(x: Any, out: Tile) -> None:
        np.copyto(out, real(x), casting="unsafe")

    return Operation("cast", lambda x: real(x).astype(target), into, 1, 1, overlaps=False)


def _of_ufunc(name: str, ufunc: np.ufunc) -> dict[str, Operation]:
    """The operations a universal function gives: one for each of its results."""
    if ufunc.nout == 1:
        into = _by_keyword(ufunc) if ufunc in (np.maximum, np.minimum) else ufunc
        return {name: Operation(name, ufunc, into, ufunc.nin, ufunc.nin)}
    return {f"{name}.{which}": _one_result(f"{name}.{which}", ufunc, which) for which in range(ufunc.nout)}


def _by_keyword(ufunc: np.ufunc) -> Callable[..., Any]:
    """For the two whose third argument NumPy fears is a mistake."""
    return lambda x, y, out: ufunc(x, y, out=out)


def _one_result(name: str, ufunc: np.ufunc, which: int) -> Operation:
    def function(*operands: Any) -> Any:
        return ufunc(*operands)[which]

    def into(*operands: Any) -> None:
        places: list[Tile | None] = [None] * ufunc.nout
        places[which] = operands[-1]
        ufunc(*operands[:-1], out=tuple(places))

    return Operation(name, function, into, ufunc.nin, ufunc.nin)


def _copied(name: str, function: Callable[..., Any], least: int = 1, most: int = 1) -> Operation:
    """An operation that can only return its result; its buffer gets a copy."""

    def fresh(*operands: Any) -> Any:
        return np.array(function(*operands))

    def into(*operands: Any) -> None:
        np.copyto(operands[-1], function(*operands[:-1]))

    return Operation(name, fresh, into, least, most)


def _after(x: Any, other: Any) -> Any:
    """The first operand, once the second is there: what is computed from it again is computed late."""
    return np.array(np.broadcast_to(x, np.broadcast_shapes(np.shape(x), np.shape(other))))


def _after_into(x: Any, other: Any, out: Tile) -> None:
    np.copyto(out, x)


def _round_into(x: Any, *rest: Any) -> None:
    np.copyto(rest[-1], _round(x, *rest[:-1]))


def _round(x: Any, decimals: Any = 0) -> Any:
    # Operands get the axes of the result, each of length 1.
    made = np.round(x, np.asarray(decimals).item())
    # Older versions of NumPy give integers back as they are.
    return made.copy() if made is x else made


def _whole_number(x: Any) -> Any:
    """The number without its fraction, as an integer of 64 bits; what has no such integer is an error."""
    if x.dtype.kind == "c":
        raise TypeError("int(x) of a complex x: take its real part first")
    if x.dtype.kind in "iub" and x.dtype.itemsize < 8:
        return x.astype(np.int64)
    if x.dtype.kind == "f" and not np.isfinite(x).all():
        raise ValueError("int(x) of an x that is not finite: cannot convert infinity or nan to an integer")
    beyond = x >= 2**63 if x.dtype.kind == "u" else (x >= 2.0**63) | (x < -(2.0**63))
    if x.dtype != np.int64 and beyond.any():
        raise OverflowError("int(x) of an x beyond 64 bits, which no array of integers holds")
    return x.astype(np.int64)


def _table() -> dict[str, Operation]:
    table: dict[str, Operation] = {}
    for name, ufunc in vars(np).items():
        if isinstance(ufunc, np.ufunc) and ufunc.signature is None:
            table.update(_of_ufunc(name, ufunc))
    table["where"] = Operation("where", selected, selected_into, 3, 3, overlaps=False)
    table["after"] = Operation("after", _after, _after_into, 2, 2)
    table["clip"] = Operation("clip", np.clip, np.clip, 3, 3)
    table["whole_number"] = _copied("whole_number", _whole_number)
    for name in ("real", "imag", "angle", "i0", "sinc", "fix"):
        table[name] = _copied(name, getattr(np, name))
    for name in ("round", "around"):
        # The number of decimals is an operand of no axes, if it is given.
        table[name] = Operation(name, _round, _round_into, 1, 2)
    return table


def _special(name: str) -> Operation | None:
    """A universal function of scipy.special, or None if there is none of that name."""
    from scipy import special

    plain = name.removeprefix("special.").partition(".")[0]
    ufunc = None if plain.startswith("_") else getattr(special, plain, None)
    if not isinstance(ufunc, np.ufunc) or ufunc.signature is not None:
        return None
    OPERATIONS.update(_of_ufunc(f"special.{plain}", ufunc))
    return OPERATIONS.get(name)


OPERATIONS: dict[str, Operation] = _table()
"""The operations known by name; those of scipy.special are added as they are asked for. "cast" is
not here: it needs a dtype, see `cast`."""
