"""Functions of the user's for some of the elements: `piecewise`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import ArrayBase, as_node, chunked, wrap
from linnet.arrays.functions.map_blocks import map_blocks

if TYPE_CHECKING:
    from linnet.arrays.array import Array


@chunked(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Array:
    """For each element the function of the first condition from behind that holds; else one more, or 0.

    The functions get the elements of one tile that they are for.

    Parameters
    ----------
    x : array_like
    condlist : list of array_like of bool
    funclist : list of callables or numbers
        One for each condition, and perhaps one for all other elements.
    args, kw
        Passed to the functions.

    Returns
    -------
    Array, of the dtype of `x`

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> x = asarray(np.arange(-2, 3), chunks=2)
    >>> piecewise(x, [x < 0, x > 1], [lambda t: -t, 7, 0]).compute()
    array([2, 1, 0, 0, 7])
    """
    node = as_node(x)
    conditions = [as_node(each, bool) for each in _conditions(condlist, node.ndim)]
    count = len(conditions)
    if len(funclist) not in (count, count + 1):
        raise ValueError(f"with {count} condition(s), either {count} or {count + 1} functions are expected")
    for each in conditions:
        if each.shape != node.shape:
            raise IndexError(f"a condition of shape {each.shape} for an array of shape {node.shape}")
    chosen = _Chosen(tuple(funclist), args, kw)
    return map_blocks(chosen, wrap(node), *map(wrap, conditions), dtype=node.dtype)


@dataclass(frozen=True, eq=False)
class _Chosen:
    """`np.piecewise` of a tile and its conditions."""

    functions: tuple[Any, ...]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __call__(self, tile: Any, *masks: Any) -> Any:
        conditions = [mask.astype(bool) for mask in masks]
        return np.piecewise(tile, conditions, list(self.functions), *self.args, **self.kwargs)


def _conditions(condlist: Any, rank: int) -> list[Any]:
    """The conditions of `piecewise`: one, or the entries of a list or of an array's first axis."""
    if np.isscalar(condlist):
        return [condlist]
    single = hasattr(condlist, "ndim") and condlist.ndim == 1
    several = len(condlist) and isinstance(condlist[0], list | np.ndarray | ArrayBase) and not single
    return list(condlist) if several or not rank else [condlist]


METHODS: dict[str, Any] = {}
__all__ = ["piecewise"]
