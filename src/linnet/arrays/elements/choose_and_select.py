"""Elements chosen by conditions: `choose`, `select`, `compress`, `extract`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.computed_indices import known, settled
from linnet.arrays.elements.core import ArrayBase, as_node, chunked, wrap, wrapped
from linnet.arrays.elements.elementwise import apply, cast, operand
from linnet.arrays.elements.indexing import indexed
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import constant, folded, mapped
from linnet.arrays.expression.nodes import Node
from linnet.arrays.lowering.evaluate import computed

if TYPE_CHECKING:
    from linnet.arrays.array import Array
from linnet.arrays.elements.take_and_put import flat_picked, stored_in, take


@chunked(np.choose, times=chunking.LINEAR)
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Array:
    """For each element the choice whose number it is.

    Parameters
    ----------
    a : array_like of integers
    choices : sequence of arrays, broadcast together
    out : array, optional; where the result goes
    mode : "raise", "wrap" or "clip"; what becomes of positions outside

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> choose(asarray([1, 0, 1], chunks=1), [[1, 2, 3], [10, 20, 30]]).compute()
    array([10,  2, 30])
    """
    index = as_node(a)
    if index.dtype.kind not in "iub":
        raise TypeError(
            f"Cannot cast array data from {index.dtype!r} to dtype('int64') according to the rule 'safe'"
        )
    options = _options(choices)
    number = len(options)
    if mode == "raise":
        low, high = extremes(index)
        if low < 0 or high >= number:
            raise ValueError("invalid entry in choice array")
        selector: Any = wrap(index)
    elif mode == "wrap":
        selector = apply(np.remainder, wrap(cast(index, np.int64)), number)
    elif mode == "clip":
        selector = apply(np.minimum, apply(np.maximum, wrap(cast(index, np.int64)), 0), number - 1)
    else:
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    nodes, dtype = _alike(options)
    shape = np.broadcast_shapes(index.shape, *(each.shape for each in nodes))
    found = nodes[-1]
    for position in range(number - 2, -1, -1):
        condition = apply(np.equal, selector, position).__node__
        found = mapped("where", [condition, nodes[position], found], dtype)
    if found.shape != shape:
        found = mapped("fill", [found], dtype, shape=shape)
    return stored_in(wrap(found), out, "choose")


def _alike(items: Sequence[Any]) -> tuple[list[Node], np.dtype[Any]]:
    """Arrays and Python scalars in their common dtype."""
    operands = [operand(each) for each in items]
    dtype = np.result_type(*(o.dtype if isinstance(o, Node) else o for o in operands))
    return [cast(o, dtype) if isinstance(o, Node) else constant(o, dtype) for o in operands], dtype


def _options(choices: Any) -> list[Any]:
    if isinstance(choices, ArrayBase):
        return [wrap(indexed(choices.__node__, place)) for place in range(choices.__node__.shape[0])]
    return list(choices)


def extremes(node: Node) -> tuple[Any, Any]:
    if not math.prod(node.shape):
        return 0, 0
    axes = tuple(range(node.ndim))
    low, high = computed([folded(node, kind, axes, node.dtype) for kind in ("min", "max")])
    return low[()], high[()]


@chunked(np.select, times=chunking.LINEAR)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Array:
    """The choice of the first condition that holds, else the default.

    Parameters
    ----------
    condlist : sequence of arrays of bool
    choicelist : sequence of arrays, as many
    default : number; where no condition holds

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> x = ln.asarray([1, 2, 3])
    >>> ln.select([x < 2, x > 2], [x, 10 * x], -1).compute()
    array([ 1, -1, 30])
    """
    conditions, choices = list(condlist), list(choicelist)
    if len(conditions) != len(choices):
        raise ValueError("list of cases must be same length as list of conditions")
    if not conditions:
        raise ValueError("select with an empty condition list is not possible")
    for number, condition in enumerate(conditions):
        if as_node(condition).dtype != bool:
            raise TypeError(f"invalid entry {number} in condlist: should be boolean ndarray")
    nodes, dtype = _alike([*choices, default])
    shape = np.broadcast_shapes(*(as_node(c).shape for c in conditions), *(n.shape for n in nodes))
    found = nodes[-1]
    for condition, choice in zip(reversed(conditions), reversed(nodes[:-1]), strict=True):
        found = mapped("where", [as_node(condition), choice, found], dtype)
    return wrap(found if found.shape == shape else mapped("fill", [found], dtype, shape=shape))


@chunked(np.compress, times=chunking.LINEAR)
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Array:
    """The slices along an axis for which the condition holds.

    Parameters
    ----------
    condition : vector of bool
    a : array_like
    axis : int, optional; None: the array is flattened
    out : array, optional; where the result goes

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.compress([True, False], [[1, 2], [3, 4]], axis=0).compute()
    array([[1, 2]])
    """
    mask = known(condition)
    if mask.ndim != 1:
        raise ValueError("condition must be a 1-d array")
    return take(a if isinstance(a, ArrayBase) else wrapped(np.asarray(a)), np.flatnonzero(mask), axis, out)


@chunked(np.extract, times=chunking.LINEAR)
def extract(condition: Any, arr: Any) -> Array:
    """The elements for which the condition holds, in row-major order.

    Parameters
    ----------
    condition : array_like of bool
    arr : array_like of the same size

    Returns
    -------
    Array with one axis

    Examples
    --------
    >>> import linnet as ln
    >>> ln.extract([True, False, True], [1, 2, 3]).compute()
    array([1, 3])
    """
    node, mask = as_node(arr), cast(as_node(condition), bool)
    if mask.shape == node.shape and node.ndim:
        return wrap(indexed(node, wrap(mask)))
    flat = np.flatnonzero(known(wrap(mask)))
    return wrap(flat_picked(node, settled(flat, math.prod(node.shape), "raise")))


def _compress_method(self: Any, condition: Any, axis: Any = None, out: Any = None) -> Array:
    return compress(condition, self, axis, out)


METHODS: dict[str, Any] = {"choose": choose, "compress": _compress_method}
__all__ = ["choose", "compress", "extract", "select"]
