"""Methods of ufuncs on arrays: `np.add.reduce(x)`, `np.maximum.accumulate(x)`, `np.add.outer(x, y)`."""

from __future__ import annotations

from typing import Any

import numpy as np

from linnet.arrays import elementwise
from linnet.arrays.building import each_tile, permuted
from linnet.arrays.core import as_node, axes_of, axis_of, direct, wrap
from linnet.arrays.cumulative import accumulated
from linnet.arrays.elementwise import cast
from linnet.arrays.reductions import fold_ufunc, into
from linnet.arrays.wholes import whole_along
from linnet.kernels.folds import FOLDS

_KINDS = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.logical_or: "any",
    np.logical_and: "all",
}


def method_of(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """`ufunc.method(*inputs, **keywords)`, lazily.

    >>> from linnet.arrays.creation import asarray
    >>> np.add.reduce(asarray([1, 2, 3], chunks=1)).compute()
    np.int64(6)
    """
    if method not in ("reduce", "accumulate", "outer"):
        raise TypeError(
            f"np.{ufunc.__name__}.{method} does not work on arrays in tiles: it changes or reads single "
            "elements in turn; use reduce, accumulate, outer, or assign with x[index] = value"
        )
    given = dict(keywords)
    out = given.pop("out", None)
    if method == "outer" and out is None:
        return _outer(ufunc, inputs, given)
    if 0 in as_node(inputs[0]).shape:
        plain = [np.asarray(each) for each in inputs]
        result = elementwise.wrap(as_node(getattr(ufunc, method)(*plain, **given)))
    else:
        result = direct(getattr(ufunc, method), inputs, given)
    if result is NotImplemented:
        made = {"reduce": _reduce, "accumulate": _accumulate, "outer": _outer}[method]
        result = made(ufunc, inputs, given) if method == "outer" else made(ufunc, *inputs, **given)
    return result if out is None else into(result, out, f"{ufunc.__name__}.{method}")


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
    if kind in FOLDS and kind not in ("mean", "count", "moments"):
        return fold_ufunc(x, ufunc, kind, axis, dtype, keepdims, initial, where)
    axes = axes_of(axis, node.ndim)
    if len(axes) != 1:
        raise ValueError(
            f"reduction operation '{ufunc.__name__}' is not reorderable, so at most one axis may be specified"
        )
    if where is not True or (initial is not np._NoValue and initial is not None):
        raise TypeError(f"np.{ufunc.__name__}.reduce on arrays in tiles takes no where= or initial=")
    result = np.dtype(ufunc.reduce(np.zeros((1,), node.dtype), dtype=dtype).dtype)
    node = whole_along(node if dtype is None else cast(node, dtype), axes)
    shortened = tuple((0, 1) if a in axes else e for a, e in enumerate(node.layout.boundaries))
    made = each_tile(
        "reduce_tile", node, result, type(node.layout)(shortened), ufunc=ufunc.__name__, axis=axes[0]
    )
    kept = tuple(a for a in range(node.ndim) if keepdims or a not in axes)
    return wrap(permuted(made, kept))


def _accumulate(ufunc: np.ufunc, x: Any, axis: int = 0, dtype: Any = None) -> Any:
    _check_binary(ufunc, "accumulate")
    node = as_node(x)
    if not node.ndim:
        raise TypeError("cannot accumulate on a scalar")
    return wrap(accumulated(node, ufunc, axis_of(axis, node.ndim), dtype))


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
