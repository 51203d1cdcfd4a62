"""Arrays cut into several, and rows as arrays of their own."""

from __future__ import annotations

import itertools
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import as_node, axis_of, chunked, wrap
from linnet.arrays.expression.builders import permuted

if TYPE_CHECKING:
    from linnet.arrays.array import Array
from linnet.arrays.elements.join_and_split import part_of


@chunked(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Parts of an array along an axis: so many, of about equal length, or cut at these positions.

    Parameters
    ----------
    ary : Array
    indices_or_sections : int, how many parts; or the positions at which to cut
    axis : int

    Returns
    -------
    list of Arrays

    Examples
    --------
    >>> import linnet as ln
    >>> [part.compute().tolist() for part in ln.array_split([1, 2, 3, 4, 5], 2)]
    [[1, 2, 3], [4, 5]]
    """
    node = as_node(ary)
    place = axis_of(axis, node.ndim)
    length = node.shape[place]
    if hasattr(indices_or_sections, "__len__"):
        cuts = [0, *(int(each) for each in indices_or_sections), length]
    else:
        count = operator.index(indices_or_sections)
        if count <= 0:
            raise ValueError("number sections must be larger than 0.")
        each, longer = divmod(length, count)
        cuts = [k * each + min(k, longer) for k in range(count + 1)]
    return [wrap(part_of(node, place, low, high)) for low, high in itertools.pairwise(cuts)]


@chunked(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Parts of an array along an axis: so many, of equal length, or cut at these positions.

    Parameters
    ----------
    ary : Array
    indices_or_sections : int, how many parts, which must be of equal length; or the positions at which to cut
    axis : int

    Returns
    -------
    list of Arrays

    Examples
    --------
    >>> import linnet as ln
    >>> [part.compute().tolist() for part in ln.split([1, 2, 3, 4], [1, 3])]
    [[1], [2, 3], [4]]
    """
    node = as_node(ary)
    if not hasattr(indices_or_sections, "__len__"):
        length = node.shape[axis_of(axis, node.ndim)]
        if length % operator.index(indices_or_sections):
            raise ValueError(
                "array split does not result in an equal division: "
                f"{length} elements along axis {axis} into {indices_or_sections} parts"
            )
    return array_split(wrap(node), indices_or_sections, axis)


def _needs(ary: Any, least: int, name: str) -> Any:
    array = wrap(as_node(ary))
    if array.ndim < least:
        raise ValueError(f"{name} only works on arrays of {least} or more dimensions")
    return array


@chunked(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Parts of an array side by side.

    Parameters
    ----------
    ary : Array
    indices_or_sections : int, how many parts; or the columns at which to cut

    Returns
    -------
    list of Arrays; vectors are cut along their only axis

    Examples
    --------
    >>> import linnet as ln
    >>> [part.compute().tolist() for part in ln.hsplit(ln.asarray([[1, 2], [3, 4]]), 2)]
    [[[1], [3]], [[2], [4]]]
    """
    array = _needs(ary, 1, "hsplit")
    return split(array, indices_or_sections, 1 if array.ndim > 1 else 0)


@chunked(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Parts of an array one below another.

    Parameters
    ----------
    ary : Array with at least two axes
    indices_or_sections : int, how many parts; or the rows at which to cut

    Returns
    -------
    list of Arrays

    Examples
    --------
    >>> import linnet as ln
    >>> [part.compute().tolist() for part in ln.vsplit(ln.asarray([[1, 2], [3, 4]]), 2)]
    [[[1, 2]], [[3, 4]]]
    """
    return split(_needs(ary, 2, "vsplit"), indices_or_sections, 0)


@chunked(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Parts of an array along its third axis.

    Parameters
    ----------
    ary : Array with at least three axes
    indices_or_sections : int, how many parts; or the positions along the third axis at which to cut

    Returns
    -------
    list of Arrays

    Examples
    --------
    >>> import linnet as ln
    >>> [part.shape for part in ln.dsplit(ln.ones((2, 2, 4)), 2)]
    [(2, 2, 2), (2, 2, 2)]
    """
    return split(_needs(ary, 3, "dsplit"), indices_or_sections, 2)


def _unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """What `unstack` does, on NumPy's arrays."""
    return tuple(np.moveaxis(np.asarray(x), axis, 0))


@chunked(*([np.unstack] if hasattr(np, "unstack") else []), small=_unstack)
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The arrays along an axis, without it.

    Parameters
    ----------
    x : array_like with at least one axis
    axis : int; the axis that goes

    Returns
    -------
    tuple of Arrays, as many as the axis is long

    Examples
    --------
    >>> import linnet as ln
    >>> first, second = ln.unstack([[1, 2], [3, 4]])
    >>> second.compute()
    array([3, 4])
    """
    node = as_node(x)
    if not node.ndim:
        raise ValueError("Input array must be at least 1-d.")
    place = axis_of(axis, node.ndim)
    order = tuple(a for a in range(node.ndim) if a != place)
    parts = [part_of(node, place, k, k + 1) for k in range(node.shape[place])]
    return tuple(wrap(permuted(part, order)) for part in parts)


METHODS: dict[str, Any] = {}
__all__ = ["array_split", "dsplit", "hsplit", "split", "unstack", "vsplit"]
