"""Cumulative functions: each tile goes on from the totals of the tiles before it.

Two passes over the data: totals of tiles, an array as long as there are tiles, which is
accumulated; then each tile, starting from its predecessors' total. Nothing of the size of the
data is kept between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import as_node, axis_of, names_nothing, wrap
from linnet.arrays.elements.elementwise import apply, cast, chosen, constant
from linnet.arrays.elements.reductions import reduction
from linnet.arrays.elements.whole_axes import whole_along
from linnet.arrays.expression.builders import blocks, concatenated, each_tile, filled, permuted, recut
from linnet.arrays.expression.nodes import Along, At, Entry, Node, Operand, Piece
from linnet.kernels.arrays.folds import FOLDS
from linnet.tiles import Layout

if TYPE_CHECKING:
    from linnet.arrays.array import Array

ASSOCIATIVE = {"add", "multiply", "maximum", "minimum", "logical_and", "logical_or"} | set(FOLDS)
"""Names of ufuncs that may take their operands in any grouping."""


def accumulated(node: Node, ufunc: np.ufunc, axis: int, dtype: Any = None) -> Node:
    """`ufunc.accumulate` along an axis."""
    if dtype is not None and np.dtype(dtype).kind == "m":  # spans keep their unit, whatever is asked for
        node, dtype = node if node.dtype.kind == "m" else cast(node, dtype), None
    result = np.dtype(ufunc.accumulate(np.zeros((1,), node.dtype), dtype=dtype).dtype)
    name = ufunc.__name__
    if name not in ASSOCIATIVE:
        node = node if dtype is None else cast(node, dtype)
        return each_tile("accumulate_tile", whole_along(node, (axis,)), result, ufunc=name, axis=axis)
    node = cast(node, result)
    if 0 in node.shape:
        return node
    attributes = (("ufunc", name), ("axis", axis))
    edges = node.layout.boundaries
    count = len(edges[axis]) - 1
    if count == 1:
        return each_tile("accumulate_tile", node, result, ufunc=name, axis=axis)
    by_tile = Layout((*edges[:axis], tuple(range(count + 1)), *edges[axis + 1 :]))
    together = Layout((*edges[:axis], (0, count), *edges[axis + 1 :]))
    before = _before(node, result, name, axis, by_tile, together)
    own = tuple(Along(a) for a in range(node.ndim))
    shared = tuple(At(0) if a == axis else Along(a) for a in range(node.ndim))
    low = tuple(1 if a == axis else 0 for a in range(node.ndim))
    high = tuple(1 if a == axis else n for a, n in enumerate(node.grid))
    place = Entry(axis, tuple(range(-1, count - 1)))
    pieces = (
        Piece("accumulate_tile", (Operand(0, own),), attributes, (0,) * node.ndim, high),
        Piece("accumulate_from", (Operand(0, own), Operand(1, shared), place), attributes, low, node.grid),
    )
    return blocks((node, before), pieces, node.layout, result)


def _before(node: Node, result: Any, name: str, axis: int, by_tile: Layout, together: Layout) -> Node:
    """The totals of all tiles up to each along the axis."""
    if name != "multiply" or result.kind not in "fc":
        totals = each_tile("reduce_tile", node, result, by_tile, ufunc=name, axis=axis)
        return each_tile("accumulate_tile", recut(totals, together), result, ufunc=name, axis=axis)
    wide = np.result_type(result, np.complex128 if result.kind == "c" else np.float64)
    pair = ((0, 2),)
    tile = Operand(0, tuple(Along(a + 1) for a in range(node.ndim)))
    states = blocks(
        (node,),
        (Piece("product_tile", (tile,), (("axis", axis),)),),
        Layout(pair + by_tile.boundaries),
        wide,
    )
    together_states = recut(states, Layout(pair + together.boundaries))
    own = Operand(0, (At(0), *(Along(a) for a in range(node.ndim))))
    piece = Piece("running_products", (own,), (("axis", axis), ("dtype", result.str)))
    return blocks((together_states,), (piece,), together, result)


def _along(x: Any, axis: Any) -> tuple[Node, int]:
    """The array and the axis to go along; without one, over all elements."""
    node = as_node(x)
    if axis is None or names_nothing(axis, node.ndim):
        node = node if node.ndim == 1 else wrap(node).reshape((-1,)).__node__
        return node, 0
    return node, axis_of(axis, node.ndim)


@reduction(np.cumsum, out_at=3)
def cumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Array:
    """Running sums along an axis, or over all elements.

    Parameters
    ----------
    a : array_like
    axis : int, optional; the axis along which to add; None: all elements in row-major order
    dtype : optional; the type to add in, and of the result
    out : array, optional; where the result goes

    Returns
    -------
    Array of the shape of `a`, or with one axis if `axis` is None

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> cumsum(asarray([1, 2, 3, 4], chunks=2)).compute()
    array([ 1,  3,  6, 10])
    """
    return _running(a, np.add, axis, dtype)


@reduction(np.cumprod, out_at=3)
def cumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Array:
    """Running products along an axis, or over all elements.

    Parameters
    ----------
    a : array_like
    axis : int, optional; the axis along which to multiply; None: all elements in row-major order
    dtype : optional; the type to multiply in, and of the result
    out : array, optional; where the result goes

    Returns
    -------
    Array of the shape of `a`, or with one axis if `axis` is None

    Examples
    --------
    >>> import linnet as ln
    >>> ln.cumprod([2, 3, 4]).compute()
    array([ 2,  6, 24])
    """
    return _running(a, np.multiply, axis, dtype)


def _running(a: Any, ufunc: np.ufunc, axis: Any, dtype: Any) -> Any:
    node, along = _along(a, axis)
    return wrap(accumulated(node, ufunc, along, dtype))


def _standard(
    x: Any, ufunc: np.ufunc, identity: int, axis: int | None, dtype: Any, include_initial: bool
) -> Any:
    node = as_node(x)
    if not node.ndim:
        node = permuted(node, (-1,))  # as NumPy does
    if axis is None:
        if node.ndim != 1:
            raise ValueError(
                f"axis must be given for an array with {node.ndim} axes; only one axis needs no naming"
            )
        axis = 0
    along = axis_of(axis, node.ndim)
    made = accumulated(node, ufunc, along, dtype)
    if include_initial:
        shape = tuple(1 if a == along else n for a, n in enumerate(made.shape))
        made = concatenated([filled(shape, identity, made.dtype), made], along, made.dtype)
    return wrap(made)


@reduction(np.cumulative_sum)
def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Array:
    """Running sums along an axis; with `include_initial` they start with 0.

    Parameters
    ----------
    x : array_like
    axis : int; may be left out if there is only one
    dtype : optional; the type to add in, and of the result
    out : array, optional; where the result goes
    include_initial : whether a zero comes first, so that the result is longer by one

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.cumulative_sum([1, 2, 3], include_initial=True).compute()
    array([0, 1, 3, 6])
    """
    return _standard(x, np.add, 0, axis, dtype, include_initial)


@reduction(np.cumulative_prod)
def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Array:
    """Running products along an axis; with `include_initial` they start with 1.

    Parameters
    ----------
    x : array_like
    axis : int; may be left out if there is only one
    dtype : optional; the type to multiply in, and of the result
    out : array, optional; where the result goes
    include_initial : whether a one comes first, so that the result is longer by one

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.cumulative_prod([2, 3, 4], include_initial=True).compute()
    array([ 1,  2,  6, 24])
    """
    return _standard(x, np.multiply, 1, axis, dtype, include_initial)


@reduction(np.nancumsum, out_at=3)
def nancumsum(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Array:
    """Running sums in which NaN counts as 0.

    Parameters
    ----------
    a : array_like
    axis : int, optional; the axis along which to add; None: all elements in row-major order
    dtype : optional; the type to add in, and of the result
    out : array, optional; where the result goes

    Returns
    -------
    Array without NaN

    Examples
    --------
    >>> import linnet as ln
    >>> ln.nancumsum([1.0, ln.nan, 2.0]).compute()
    array([1., 1., 3.])
    """
    return cumsum(_replaced(a, 0), axis, dtype)


@reduction(np.nancumprod, out_at=3)
def nancumprod(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Array:
    """Running products in which NaN counts as 1.

    Parameters
    ----------
    a : array_like
    axis : int, optional; the axis along which to multiply; None: all elements in row-major order
    dtype : optional; the type to multiply in, and of the result
    out : array, optional; where the result goes

    Returns
    -------
    Array without NaN

    Examples
    --------
    >>> import linnet as ln
    >>> ln.nancumprod([2.0, ln.nan, 3.0]).compute()
    array([2., 2., 6.])
    """
    return cumprod(_replaced(a, 1), axis, dtype)


def _replaced(a: Any, value: int) -> Any:
    node = as_node(a)
    if node.dtype.kind not in "fc":
        return a
    return wrap(chosen(apply(np.isnan, wrap(node)).__node__, constant(value, node.dtype), node, node.dtype))


METHODS: dict[str, Any] = {"cumprod": cumprod, "cumsum": cumsum}
__all__ = [
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "nancumprod",
    "nancumsum",
]
