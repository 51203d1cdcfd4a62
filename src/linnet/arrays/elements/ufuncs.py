"""Methods of ufuncs on arrays: `np.add.reduce(x)`, `np.maximum.accumulate(x)`, `np.add.outer(x, y)`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.elements import elementwise
from linnet.arrays.elements.assignment import update_at
from linnet.arrays.elements.computed_indices import known
from linnet.arrays.elements.core import ArrayBase, as_node, axes_of, axis_of, direct, names_nothing, wrap
from linnet.arrays.elements.cumulative import ASSOCIATIVE, accumulated
from linnet.arrays.elements.elementwise import cast
from linnet.arrays.elements.gather import gathered
from linnet.arrays.elements.reductions import fold_ufunc, into, without_identity
from linnet.arrays.elements.whole_axes import whole_along
from linnet.arrays.expression.builders import blocks, filled, permuted, recut, sliced
from linnet.arrays.expression.nodes import Along, Node, Operand, Piece, Source
from linnet.arrays.expression.traced import traceable
from linnet.kernels.arrays.folds import FOLDS
from linnet.tiles import Layout

_KINDS = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.logical_or: "any",
    np.logical_and: "all",
}


@traceable
def method_of(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """`ufunc.method(*inputs, **keywords)`, lazily.

    >>> from linnet.arrays.elements.creation import asarray
    >>> np.add.reduce(asarray([1, 2, 3], chunks=1)).compute()
    np.int64(6)
    """
    if method == "at":
        _at(ufunc, *inputs)
        return None
    given = dict(keywords)
    out = given.pop("out", None)
    if method == "outer" and out is None:
        return _outer(ufunc, inputs, given)
    if 0 in as_node(inputs[0]).shape:
        plain = map(_plain, inputs)
        named = {name: _plain(value) for name, value in given.items()}
        result = elementwise.wrap(as_node(getattr(ufunc, method)(*plain, **named)))
    else:
        result = direct(getattr(ufunc, method), inputs, given)
    if result is NotImplemented:
        if method == "outer":
            result = _outer(ufunc, inputs, given)
        else:
            made = {"reduce": _reduce, "accumulate": _accumulate, "reduceat": _reduceat}[method]
            result = made(ufunc, *inputs, **given)
    return result if out is None else into(result, out, f"{ufunc.__name__}.{method}")


def _plain(item: Any) -> Any:
    return np.asarray(item) if isinstance(item, ArrayBase) else item


def _reduce(
    ufunc: np.ufunc,
    x: Any,
    axis: Any = 0,
    dtype: Any = None,
    keepdims: bool = False,
    initial: Any = np._NoValue,
    where: Any = True,
) -> Any:
    _check_binary(ufunc, "reduce")
    kind = _KINDS.get(ufunc, ufunc.__name__)
    node = as_node(x)
    if kind in FOLDS and kind not in ("mean", "count", "moments", "product"):
        return fold_ufunc(x, ufunc, kind, axis, dtype, keepdims, initial, where)
    if names_nothing(axis, node.ndim):
        node, keepdims = permuted(node, (-1,)), False
    axes = axes_of(axis, node.ndim)
    if len(axes) != 1:
        raise ValueError(
            f"reduction operation '{ufunc.__name__}' is not reorderable, so at most one axis may be specified"
        )
    result = np.dtype(ufunc.reduce(np.zeros((1,), node.dtype), dtype=dtype).dtype)
    made = _in_order(ufunc, node if dtype is None else cast(node, dtype), axes[0], result, initial, where)
    kept = tuple(a for a in range(node.ndim) if keepdims or a not in axes)
    return wrap(permuted(made, kept))


def _in_order(
    ufunc: np.ufunc, node: Node, axis: int, result: np.dtype[Any], initial: Any, where: Any
) -> Node:
    """The reduction from the first element to the last, on tiles that hold the axis whole."""
    begins = initial is not np._NoValue and initial is not None
    hides = where is not True and where is not np._NoValue
    if hides and not begins:
        raise ValueError(without_identity(ufunc))
    node = whole_along(node, (axis,))
    operands, own = [node], tuple(Along(a) for a in range(node.ndim))
    accesses = [Operand(0, own)]
    if begins:
        first = np.empty((), result)
        first[()] = initial  # as NumPy converts it, or refuses
        accesses.append(Operand(len(operands), ()))
        operands.append(Source(first))
    if hides:
        mask = np.broadcast_to(wrap(cast(as_node(where), np.bool_)), node.shape)
        accesses.append(Operand(len(operands), own))
        operands.append(recut(as_node(mask), node.layout))
    layout = Layout(tuple((0, 1) if a == axis else e for a, e in enumerate(node.layout.boundaries)))
    attributes = (("ufunc", ufunc.__name__), ("axis", axis), ("begins", begins))
    return blocks(operands, (Piece("reduce_tile", tuple(accesses), attributes),), layout, result)


def _accumulate(ufunc: np.ufunc, x: Any, axis: int = 0, dtype: Any = None) -> Any:
    _check_binary(ufunc, "accumulate")
    node = as_node(x)
    if not node.ndim:
        raise TypeError("cannot accumulate on a scalar")
    return wrap(accumulated(node, ufunc, axis_of(axis, node.ndim), dtype))


def _reduceat(ufunc: np.ufunc, x: Any, indices: Any, axis: int = 0, dtype: Any = None) -> Any:
    _check_binary(ufunc, "reduceat")
    node, starts = as_node(x), known(indices)
    if not node.ndim:
        raise TypeError("cannot reduceat on a scalar")
    along = axis_of(axis, node.ndim)
    length = node.shape[along]
    if starts.ndim != 1 or starts.dtype.kind not in "iub":
        raise ValueError(f"reduceat takes a line of integers as indices, not {starts.dtype} {starts.shape}")
    wrong = (starts < 0) | (starts >= length)
    if wrong.any():
        place = int(np.argmax(wrong))
        raise IndexError(
            f"index {starts[place]} out-of-bounds in {ufunc.__name__}.reduceat [0, {length}), at {place}"
        )
    result = np.dtype(ufunc.reduce(np.zeros((1,), node.dtype), dtype=dtype).dtype)
    node = cast(node, result) if dtype is not None or ufunc in (np.add, np.multiply) else node
    if not starts.size:
        shape = tuple(0 if a == along else n for a, n in enumerate(node.shape))
        return wrap(filled(shape, 0, result))
    starts = starts.astype(np.intp)
    stops = np.append(starts[1:], length)
    stops = np.where(stops > starts, stops, starts + 1)
    if np.any(stops[:-1] != starts[1:]):  # parts that overlap, or leave something out, put behind one another
        lengths = stops - starts
        begins = np.cumsum(lengths) - lengths
        every = np.repeat(starts - begins, lengths) + np.arange(lengths.sum())
        node, starts = gathered(node, [along], [every], along), begins
    elif starts[0]:
        node = sliced(node, [slice(int(starts[0]) if a == along else None, None) for a in range(node.ndim)])
        starts = starts - starts[0]
    return wrap(_parts_reduced(node, ufunc, along, starts, result))


def _parts_reduced(
    node: Node, ufunc: np.ufunc, axis: int, starts: NDArray[np.intp], result: np.dtype[Any]
) -> Node:
    """The reduction of parts that begin at these ascending positions, the first at 0.

    Parts are cut at the edges of tiles; what comes of that is as long as there are parts and tiles, and is
    reduced again.
    """
    if ufunc.__name__ not in ASSOCIATIVE:
        return _by_tile(whole_along(node, (axis,)), ufunc, axis, starts, result)
    inner = np.asarray(node.layout.boundaries[axis][1:-1], np.intp)
    cuts = np.union1d(starts, inner)
    made = _by_tile(node, ufunc, axis, cuts, result)
    if len(cuts) == len(starts):
        return made
    return _by_tile(whole_along(made, (axis,)), ufunc, axis, np.searchsorted(cuts, starts), result)


def _by_tile(node: Node, ufunc: np.ufunc, axis: int, starts: NDArray[np.intp], result: np.dtype[Any]) -> Node:
    """The reduction of parts, none of which lies in two tiles."""
    edges = node.layout.boundaries
    ends = (0, *np.searchsorted(starts, edges[axis][1:]).tolist())
    local = starts - np.repeat(np.asarray(edges[axis][:-1], np.intp), np.diff(ends))
    layout = Layout((*edges[:axis], ends, *edges[axis + 1 :]))
    own = Operand(0, tuple(Along(a) for a in range(node.ndim)))
    piece = Piece(
        "reduceat_tile", (own, Operand(1, (Along(axis),))), (("ufunc", ufunc.__name__), ("axis", axis))
    )
    return blocks((node, Source(local, Layout((ends,)))), (piece,), layout, result)


def _at(ufunc: np.ufunc, x: Any, indices: Any, *values: Any) -> None:
    if not isinstance(x, ArrayBase):
        plain = [np.asarray(each) if isinstance(each, ArrayBase) else each for each in (indices, *values)]
        ufunc.at(x, *plain)
    elif ufunc.nout != 1 or len(values) != ufunc.nin - 1:
        raise ValueError(
            f"np.{ufunc.__name__}.at: only ufuncs of one result have it, and take an array, indices and one "
            "array for each further operand"
        )
    else:
        update_at(x, indices, ufunc, *values)


def _outer(ufunc: np.ufunc, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    _check_binary(ufunc, "outer", outputs=False)
    one, other = (as_node(each) for each in inputs)
    spread = permuted(one, (*range(one.ndim), *(-1,) * other.ndim))
    return elementwise.call(ufunc, (wrap(spread), wrap(other)), keywords)


def _check_binary(ufunc: np.ufunc, method: str, outputs: bool = True) -> None:
    if ufunc.nin != 2:
        raise ValueError(f"{method} only supported for binary functions")
    if outputs and ufunc.nout != 1:
        raise ValueError(f"{method} only supported for functions returning a single value")


METHODS: dict[str, Any] = {}
__all__ = ["method_of"]
