"""Evenly spaced numbers, computed from the positions of their elements, tile by tile.

The formulas are NumPy's own, so that the last bits agree: `arange` takes the difference of its
first two elements, as they are rounded, for its step; `linspace` sets its last element.
"""

from __future__ import annotations

import datetime
import math
import operator
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from linnet.arrays.elements.core import NUMPY, ArrayBase, as_node, axis_of, checked, direct, recut_as, wrap
from linnet.arrays.elements.creation import check_device, made, positions
from linnet.arrays.elements.elementwise import apply, cast, chosen
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import constant, mapped, permuted
from linnet.arrays.expression.nodes import Node
from linnet.tiles import Layout

if TYPE_CHECKING:
    from linnet.arrays.array import Array


def arange(
    start: Any = None,
    stop: Any = None,
    step: Any = 1,
    dtype: Any = None,
    *,
    device: Any = None,
    chunks: Any = "auto",
) -> Array:
    """Numbers from `start` (0 if only one is given) up to, but without, `stop`.

    Parameters
    ----------
    start, stop, step : numbers, as for Python's `range`; `step` may be a fraction
    dtype : optional; the type of the elements
    device : optional; "cpu" is the only one
    chunks : length of the tiles

    Returns
    -------
    Array with one axis

    Examples
    --------
    >>> arange(2, 8, 3).compute()
    array([2, 5])
    """
    check_device(device)
    if start is None and stop is None:
        raise TypeError("arange() requires stop to be specified.")
    if start is None:
        start = 0
    elif stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    start, stop, step = (
        np.asarray(each)[()] if isinstance(each, ArrayBase) else each for each in (start, stop, step)
    )
    if dtype is not None and np.dtype(dtype).kind in "mM":  # dates may be given as text, or as Python's
        start, stop = (
            np.asarray(each, dtype)[()] if isinstance(each, str | datetime.date) else each
            for each in (start, stop)
        )
    kinds = [np.asarray(each).dtype for each in (start, stop, step)]
    if any(kind.kind in "mM" for kind in kinds):
        return _dates(start, stop, step, dtype, chunks)
    if any(kind.kind not in "biuf" for kind in kinds):
        raise TypeError(f"arange takes integers, floats and dates, got {start!r}, {stop!r} and {step!r}")
    if step == 0:
        raise ZeroDivisionError("division by zero: arange with step 0")
    kind = np.result_type(np.int64, *kinds) if dtype is None else np.dtype(dtype)
    length = max(0, _steps(start, stop, step))
    return made(
        (length,),
        kind,
        chunks,
        lambda: np.arange(start, stop, step, dtype=kind),
        lambda layout: _ramp(start, start + step, kind, layout),
    )


def _steps(start: Any, stop: Any, step: Any) -> int:
    if all(isinstance(each, int | np.integer) for each in (start, stop, step)):
        return -((int(start) - int(stop)) // int(step))
    return math.ceil((stop - start) / step)


def _ramp(first: Any, second: Any, dtype: np.dtype[Any], layout: Layout) -> Node:
    """Numbers that begin with these two, and go on as they do."""
    index = positions(layout.boundaries[0])
    if dtype.kind in "iub":
        inner = np.dtype(np.uint64 if dtype == np.uint64 else np.int64)
        step = constant(int(second) - int(first), inner)
        grown = mapped("multiply", [cast(index, inner), step], inner)
        return cast(mapped("add", [grown, constant(int(first), inner)], inner), dtype)
    inner = np.dtype(np.float32) if dtype == np.float16 else dtype
    ends = np.array([first, second]).astype(dtype).astype(inner)
    step = ends[1] - ends[0]
    grown = mapped("multiply", [cast(index, inner), constant(step, inner)], inner)
    made = mapped("add", [grown, constant(ends[0], inner)], inner)
    if ends[0] + step != ends[1]:
        is_second = mapped("equal", [index, constant(1)], bool)
        made = chosen(is_second, constant(ends[1], inner), made, inner)
    return cast(made, dtype)


def _dates(start: Any, stop: Any, step: Any, dtype: Any, chunks: Any) -> Any:
    """`arange` of dates and time differences: of the integers that stand for them."""
    if dtype is None and np.asarray(start).dtype.kind not in "mM":
        start = np.asarray(start).astype(np.asarray(stop).dtype)[()]
    if dtype is not None:
        kind = np.dtype(dtype)
    else:
        ends = [np.asarray(each).dtype for each in (start, stop)]
        kind = ends[0] if ends[1].kind != ends[0].kind else np.promote_types(*ends)
    if kind.kind not in "mM":
        raise TypeError(f"arange of {start!r} to {stop!r} cannot be of dtype {kind}")
    if np.asarray(step).dtype.kind == "m":
        kind = np.promote_types(
            kind, np.dtype(f"{kind.kind}8[{np.datetime_data(np.asarray(step).dtype)[0]}]")
        )
    span = np.dtype(f"m8[{np.datetime_data(kind)[0]}]")
    low = int(np.asarray(start).astype(kind).astype(np.int64))
    away = int(np.asarray(step).astype(span).astype(np.int64))
    if np.asarray(stop).dtype.kind == kind.kind:
        high = int(np.asarray(stop).astype(kind).astype(np.int64))
    else:
        high = low + int(np.asarray(stop).astype(span).astype(np.int64))
    return wrap(cast(arange(low, high, away, chunks=chunks).__node__, kind))


@overload
def linspace(
    start: Any,
    stop: Any,
    num: Any = ...,
    endpoint: bool = ...,
    *,
    retstep: Literal[True],
    dtype: Any = ...,
    axis: int = ...,
    device: Any = ...,
    chunks: Any = ...,
) -> tuple[Array, Any]: ...
@overload
def linspace(
    start: Any,
    stop: Any,
    num: Any = ...,
    endpoint: bool = ...,
    retstep: Literal[False] = ...,
    dtype: Any = ...,
    axis: int = ...,
    *,
    device: Any = ...,
    chunks: Any = ...,
) -> Array: ...
def linspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
    *,
    device: Any = None,
    chunks: Any = "auto",
) -> Any:
    """`num` numbers at even steps from `start` to `stop`, which may have axes.

    Parameters
    ----------
    start, stop : numbers or arrays; the ends
    num : int; how many
    endpoint : whether `stop` is one of them
    retstep : whether to give the step, too
    dtype : optional; the type of the elements
    axis : int; where the new axis is, if the ends are arrays
    device : optional; "cpu" is the only one
    chunks : length of the tiles

    Returns
    -------
    Array; with `retstep` a tuple of it and the step

    Examples
    --------
    >>> linspace(0, 1, 5).compute()
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    check_device(device)
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    if num * max(1, *(math.prod(np.shape(each)) for each in (start, stop))) * 16 <= chunking.SMALL:
        found = direct(np.linspace, (start, stop, num, endpoint, retstep, dtype, axis), {})
        if found is not NotImplemented:
            values = found[0] if retstep else found
            cut = wrap(recut_as(values.__node__, None if chunks == "auto" else chunks))
            return (cut, found[1]) if retstep else cut
    begin, end = (_lifted(each) for each in (start, stop))
    inner = np.result_type(begin.dtype, end.dtype, 1.0)
    values, step = _spaced(cast(begin, inner), cast(end, inner), num, endpoint, inner)
    kind = inner if dtype is None else checked(np.empty(0, dtype)).dtype
    if kind.kind in "iu":
        values = mapped("floor", [values], inner)
    turned = cast(values, kind)
    place = axis_of(axis, turned.ndim)
    if place:
        turned = permuted(turned, (*range(1, place + 1), 0, *range(place + 1, turned.ndim)))
    result = wrap(recut_as(turned, chunks))
    return (result, wrap(step)) if retstep else result


def _lifted(end: Any) -> Node:
    """An end of `linspace` as a node; a Python number in the dtype it has as an array."""
    return as_node(end) if isinstance(end, ArrayBase) else as_node(np.asanyarray(end) * 1)


def _spaced(begin: Node, end: Node, num: int, endpoint: bool, dtype: np.dtype[Any]) -> tuple[Node, Node]:
    """The numbers, along a new first axis, and the step between them."""
    steps = num - 1 if endpoint else num
    delta = mapped("subtract", [end, begin], dtype)
    if steps <= 0:
        step = constant(np.nan, dtype)
    else:
        step = mapped("divide", [delta, constant(steps, dtype)], dtype)
    cut = chunking.automatic((num, *delta.shape), dtype.itemsize).boundaries[0]
    index = permuted(positions(cut), (0, *(-1,) * delta.ndim))
    place = cast(index, dtype)
    if steps <= 0:
        values: Node = mapped("multiply", [place, delta], dtype)
    else:
        values = mapped("multiply", [place, step], dtype)
        # A step too small for its dtype: the fraction of the whole first, as NumPy does.
        part = mapped("divide", [place, constant(steps, dtype)], dtype)
        flat = mapped("equal", [step, constant(0, dtype)], bool)
        if flat.ndim:
            flat = NUMPY[np.any](wrap(flat)).__node__
        values = chosen(flat, mapped("multiply", [part, delta], dtype), values, dtype)
    values = mapped("add", [values, begin], dtype)
    if endpoint and num > 1:
        is_last = mapped("equal", [index, constant(num - 1)], bool)
        values = chosen(is_last, end, values, dtype)
    return values, step


def logspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
    *,
    chunks: Any = "auto",
) -> Array:
    """Powers of `base`, their exponents at even steps.

    Parameters
    ----------
    start, stop : numbers or arrays; the exponents at the ends
    num : int; how many
    endpoint : whether `stop` is one of them
    base : number or array
    dtype : optional; the type of the elements
    axis : int; where the new axis is, if the ends are arrays
    chunks : length of the tiles

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.logspace(0, 2, 3).compute()
    array([  1.,  10., 100.])
    """
    if np.ndim(base):
        raise ValueError(f"logspace takes one base for all numbers, got one of shape {np.shape(base)}")
    exponents = linspace(start, stop, num, endpoint, axis=axis, chunks=chunks)
    values = apply(np.power, base, exponents)
    return values if dtype is None else wrap(cast(values.__node__, dtype))


def geomspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    dtype: Any = None,
    axis: int = 0,
    *,
    chunks: Any = "auto",
) -> Array:
    """Numbers whose ratios are even, from `start` to `stop`.

    Parameters
    ----------
    start, stop : numbers or arrays; the ends
    num : int; how many
    endpoint : whether `stop` is one of them
    dtype : optional; the type of the elements
    axis : int; where the new axis is, if the ends are arrays
    chunks : length of the tiles

    Returns
    -------
    Array

    Examples
    --------
    >>> geomspace(1, 1000, 4).compute()
    array([   1.,   10.,  100., 1000.])
    """
    num = operator.index(num)
    if np.ndim(start) or np.ndim(stop):
        raise ValueError(
            "geomspace takes numbers for its ends; for arrays take exp(linspace(log(a), log(b)))"
        )
    ends = np.asarray([start, stop]) * 1
    if (ends == 0).any():
        raise ValueError("Geometric sequence cannot include zero")
    kind = np.result_type(ends, 1.0) if dtype is None else np.dtype(dtype)
    first, last = ends.astype(np.promote_types(kind, np.result_type(ends, 1.0)))
    sign = np.sign(first)  # of a complex number, its direction
    logs = np.log10(first / sign), np.log10(last / sign)
    values = logspace(*logs, num, endpoint, dtype=first.dtype, chunks=chunks)
    index = positions(values.__node__.layout.boundaries[0])
    node = apply(np.multiply, values, sign).__node__
    if num > 0:
        node = chosen(mapped("equal", [index, constant(0)], bool), constant(first), node, node.dtype)
    if num > 1 and endpoint:
        node = chosen(mapped("equal", [index, constant(num - 1)], bool), constant(last), node, node.dtype)
    return wrap(cast(node, kind))


METHODS: dict[str, Any] = {}
__all__ = ["arange", "geomspace", "linspace", "logspace"]
for _name in __all__:
    NUMPY[getattr(np, _name)] = globals()[_name]
