"""Coarser arrays: neighbouring elements, so many along each axis, reduced to one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import as_node, axis_of, wrap
from linnet.arrays.expression.builders import recut, sliced
from linnet.arrays.expression.nodes import Along, Operand
from linnet.arrays.functions.map_blocks import called, probed
from linnet.errors import InputError
from linnet.kernels.arrays.user_functions import Wrapper
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries

if TYPE_CHECKING:
    from linnet.arrays.array import Array


def coarsen(
    reduction: Callable[..., Any], x: Any, axes: Mapping[int, int], trim_excess: bool = False, **kwargs: Any
) -> Array:
    """A reduction over neighbours: `axes` says for each axis how many of them become one.

    The reduction is called as `reduction(tile, axis=axes, **kwargs)`, as `np.mean` is. Elements left over
    at the end of an axis are refused, or left out with `trim_excess=True`.

    Parameters
    ----------
    reduction : callable
        Called as `reduction(tile, axis=axes, **kwargs)`.
    x : array_like
    axes : mapping of int to int
        For each axis, how many neighbours become one element.
    trim_excess : bool
        Whether elements left over at the end of an axis are left out.
    kwargs
        Passed to the reduction.

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> coarsen(np.sum, asarray(np.arange(6), chunks=3), {0: 2}).compute()
    array([1, 5, 9])
    """
    node = as_node(x)
    factors = [1] * node.ndim
    for axis, factor in axes.items():
        if not hasattr(factor, "__index__") or factor < 1:
            raise InputError(f"axes={dict(axes)!r}: so many neighbours become one along an axis, at least 1")
        factors[axis_of(axis, node.ndim)] = int(factor)
    left = [length % factor for length, factor in zip(node.shape, factors, strict=True)]
    if any(left):
        if not trim_excess:
            raise ValueError(
                f"a shape of {node.shape} is no multiple of {tuple(factors)}; give trim_excess=True to leave "
                "out what is left over at the ends"
            )
        node = sliced(node, [slice(0, n - k) for n, k in zip(node.shape, left, strict=True)])
    fine = tuple(map(_multiples, node.layout.boundaries, factors))
    node = recut(node, Layout(fine))
    coarse = _Coarse(reduction, tuple(factors), kwargs)
    kind = np.asarray(probed(coarse, [np.ones(factors, node.dtype)], "coarsen")).dtype
    layout = Layout(tuple(tuple(e // f for e in edges) for edges, f in zip(fine, factors, strict=True)))
    access = tuple(Along(axis) for axis in range(node.ndim))
    return wrap(called(coarse, (node,), [Operand(0, access)], layout, kind))


@dataclass(frozen=True, eq=False)
class _Coarse(Wrapper):
    """A reduction over neighbours in a tile."""

    factors: tuple[int, ...]
    kwargs: dict[str, Any]

    def __call__(self, tile: Any) -> Any:
        lengths = [n // factor for n, factor in zip(tile.shape, self.factors, strict=True)]
        parts = itertools.chain.from_iterable(zip(lengths, self.factors, strict=True))
        axes = tuple(range(1, 2 * tile.ndim, 2))
        return self.function(tile.reshape(tuple(parts)), axis=axes, **self.kwargs)


def _multiples(edges: Boundaries, factor: int) -> Boundaries:
    """Cuts at the multiples of a number next below."""
    return (0, *sorted({edge // factor * factor for edge in edges} - {0, edges[-1]}), edges[-1])


METHODS: dict[str, Any] = {}
__all__ = ["coarsen"]
