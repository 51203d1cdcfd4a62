"""Functions on tiles whose axes have names: `blockwise`, and arrays cut alike along axes of one name."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.elements.core import ArrayBase, as_node, recut_as, wrap
from linnet.arrays.expression.nodes import Access, Along, At, Node, Number, Operand, Span
from linnet.arrays.functions.map_blocks import called, probed, told_dtype
from linnet.errors import InputError
from linnet.kernels.arrays.user_functions import Wrapper
from linnet.tiles import Layout
from linnet.tiles.layout import from_sizes

if TYPE_CHECKING:
    from linnet.arrays.array import Array


def blockwise(
    func: Callable[..., Any],
    out_ind: Iterable[Any],
    *args: Any,
    adjust_chunks: dict[Any, Any] | None = None,
    new_axes: dict[Any, Any] | None = None,
    align_arrays: bool = True,
    concatenate: bool | None = None,
    dtype: Any = None,
    meta: Any = None,
    **kwargs: Any,
) -> Array:
    """A function on tiles whose axes are named: a tile of the result for each place along `out_ind`.

    Arrays and the names of their axes alternate: `x, "ij", y, "jk"`; what has None for names is passed as it
    is. Along names that the result lacks a function gets all tiles: nested lists of them, or one array
    with `concatenate=True`. `new_axes` has lengths of names that no array has, `adjust_chunks` lengths
    that the function changes (a function of the length, one number, or all lengths). Arrays are
    cut alike along axes of one name; with `align_arrays=False` they stay as they are, and tiles at the
    same place belong together.

    Parameters
    ----------
    func : callable
        The function on tiles.
    out_ind : iterable
        Names of the axes of the result.
    args
        Arrays and the names of their axes, by turns.
    adjust_chunks : dict, optional
        Lengths that the function changes, by the name of the axis.
    new_axes : dict, optional
        Lengths of axes that no array has.
    align_arrays : bool
        Whether arrays are cut alike along axes of one name.
    concatenate : bool, optional
        Whether tiles along axes that the result lacks are put together to one array.
    dtype, meta : optional
        The dtype of the result, or an array that has it.
    kwargs
        Passed to the function.

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> x = asarray(np.arange(4.0).reshape(2, 2), chunks=1)
    >>> total = lambda tile: tile.sum(axis=1)
    >>> blockwise(total, "i", x, "ij", concatenate=True).compute()
    array([1., 5.])
    """
    out = tuple(out_ind)
    if len(set(out)) != len(out):
        raise InputError(f"the result has axes {out}: each name once")
    cuts, arrays = unified(args) if align_arrays else _by_place(args)
    names = [None if each is None else tuple(each) for _, each in _pairs(args)]
    cuts.update({name: _lengths(size) for name, size in (new_axes or {}).items()})
    missing = [name for name in out if name not in cuts]
    if missing:
        raise InputError(f"axes {missing} of the result belong to no array; give their lengths in new_axes")
    changes = adjust_chunks or {}
    layout = Layout(tuple(from_sizes(_adjusted(cuts[name], changes.get(name), name)) for name in out))
    nodes = [as_node(each) for each, axes in zip(arrays, names, strict=True) if axes is not None]
    operands: list[Operand | Number] = []
    for which, axes in enumerate(axes for axes in names if axes is not None):
        operands.append(Operand(which, tuple(_accesses(nodes[which], axes, out))))

    joined = [
        tuple(place for place, name in enumerate(axes) if name not in out) if concatenate else ()
        for axes in (axes or () for axes in names)
    ]
    others = tuple(each if axes is None else None for each, axes in zip(arrays, names, strict=True))
    tiles = tuple(axes is not None for axes in names)
    call = _OnNests(func, others, tiles, tuple(joined), kwargs)
    kind = told_dtype(dtype, meta)
    if kind is None:
        kind = _kind(call, nodes, names, out)
    return wrap(called(call, nodes, operands, layout, kind))


@dataclass(frozen=True, eq=False)
class _OnNests(Wrapper):
    """A function with all its arguments but tiles."""

    others: tuple[Any, ...]
    """The arguments that are no tiles, each at its place."""
    tiles: tuple[bool, ...]
    """Which arguments are tiles."""
    joined: tuple[tuple[int, ...], ...]
    """Along which axes each has several that become one."""
    kwargs: dict[str, Any]

    def __call__(self, *tiles: Any) -> Any:
        rest = iter(tiles)
        given = [
            side_by_side(next(rest), axes) if is_tile and axes else next(rest) if is_tile else other
            for other, is_tile, axes in zip(self.others, self.tiles, self.joined, strict=True)
        ]
        return self.function(*given, **self.kwargs)


def unify_chunks(*args: Any) -> tuple[dict[Any, tuple[int, ...]], list[Array]]:
    """Arrays cut alike along axes of the same name, wherever one of them is cut; the cuts, and the arrays.

    Parameters
    ----------
    args
        Arrays and the names of their axes, by turns.

    Returns
    -------
    tuple of a dict and a list
        The lengths of tiles by the name of the axis, and the arrays.

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> x, y = asarray(np.arange(6), chunks=4), asarray(np.arange(6), chunks=3)
    >>> unify_chunks(x, "i", y, "i")[0]
    {'i': (3, 1, 2)}
    """
    return unified(args)


def side_by_side(nest: Any, axes: Sequence[int]) -> NDArray[Any]:
    """A block of tiles as one array; its lists lie along these axes, the outermost along the first.

    >>> side_by_side([np.zeros((1, 2)), np.ones((1, 2))], [0]).shape
    (2, 2)
    """
    if not isinstance(nest, list | tuple):
        return nest
    parts = [side_by_side(each, axes[1:]) for each in nest]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=axes[0])


def _pairs(args: Sequence[Any]) -> list[tuple[Any, Any]]:
    if len(args) % 2:
        raise InputError("arrays and the names of their axes alternate: x, 'ij', y, 'jk', ...")
    return [(args[place], args[place + 1]) for place in range(0, len(args), 2)]


def unified(args: Sequence[Any]) -> tuple[dict[Any, tuple[int, ...]], list[Any]]:
    """Arrays cut alike along axes of the same name, and these cuts."""
    pairs = [(each, None if names is None else tuple(names)) for each, names in _pairs(args)]
    cuts: dict[Any, list[tuple[int, ...]]] = {}
    for array, names in pairs:
        for name, lengths in zip(names or (), _chunks(array) if names else (), strict=True):
            cuts.setdefault(name, []).append(lengths)
    found = {name: _agreed(name, each) for name, each in cuts.items()}
    arrays = [
        array if names is None else wrap(recut_as(as_node(array), _wanted(array, names, found)))
        for array, names in pairs
    ]
    return found, arrays


def _chunks(array: Any) -> tuple[tuple[int, ...], ...]:
    return array.chunks if isinstance(array, ArrayBase) else tuple((n,) for n in np.shape(array))  # type: ignore[attr-defined]


def _agreed(name: Any, cuts: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The common cut of axes of one name; those of length 1 are broadcast."""
    long = [each for each in cuts if sum(each) != 1] or cuts
    lengths = sorted({sum(each) for each in long})
    if len(lengths) > 1:
        raise ValueError(f"axes named {name!r} have lengths {lengths}")
    return common(long)


def _wanted(array: Any, names: tuple[Any, ...], found: dict[Any, tuple[int, ...]]) -> tuple[Any, ...]:
    shape = np.shape(array) if not isinstance(array, ArrayBase) else as_node(array).shape
    return tuple(
        found[name] if sum(found[name]) == length else (length,)
        for name, length in zip(names, shape, strict=True)
    )


def _by_place(args: Sequence[Any]) -> tuple[dict[Any, tuple[int, ...]], list[Any]]:
    """Arrays as they are; along axes of one name they have as many tiles, or one."""
    cuts: dict[Any, tuple[int, ...]] = {}
    for array, names in _pairs(args):
        for name, lengths in zip(names or (), _chunks(array) if names else (), strict=True):
            if len(lengths) > len(cuts.get(name, ())):
                cuts[name] = lengths
    for array, names in _pairs(args):
        for name, lengths in zip(names or (), _chunks(array) if names else (), strict=True):
            if len(lengths) not in (1, len(cuts[name])):
                raise InputError(
                    f"axes named {name!r} lie in {len(lengths)} and {len(cuts[name])} tiles; rechunk one "
                    "of them, or give align_arrays=True"
                )
    found = [a if n is None or isinstance(a, ArrayBase) else _whole(a) for a, n in _pairs(args)]
    return cuts, found


def _whole(array: Any) -> Any:
    return wrap(recut_as(as_node(array), -1))


def _accesses(node: Node, axes: tuple[Any, ...], out: tuple[Any, ...]) -> list[Access]:
    return [
        Span(0, node.grid[place])
        if name not in out
        else Along(out.index(name))
        if node.grid[place] > 1
        else At(0)
        for place, name in enumerate(axes)
    ]


def _lengths(size: Any) -> tuple[int, ...]:
    return (int(size),) if hasattr(size, "__index__") else tuple(size)


def _adjusted(lengths: tuple[int, ...], change: Any, name: Any) -> tuple[int, ...]:
    """Lengths of tiles of the result."""
    if change is None:
        return lengths
    if isinstance(change, int):
        return (change,) * len(lengths)
    found: tuple[Any, ...] = tuple(map(change, lengths)) if callable(change) else tuple(change)
    if len(found) != len(lengths):
        raise InputError(f"adjust_chunks has {found} for axis {name!r}, which lies in {len(lengths)} tiles")
    return found


def _kind(
    call: Callable[..., Any], nodes: Sequence[Node], names: Sequence[Any], out: tuple[Any, ...]
) -> np.dtype[Any]:
    """What comes of tiles of ones; along names that the result lacks, of a list of one."""
    samples: list[Any] = []
    for node, axes in zip(nodes, (axes for axes in names if axes is not None), strict=True):
        sample: Any = np.ones((1,) * node.ndim, node.dtype)
        for name in axes:
            sample = sample if name in out else [sample]
        samples.append(sample)
    return np.asarray(probed(call, samples, "blockwise")).dtype


def common(cuts: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Lengths of chunks cut wherever one of several axes is.

    >>> common([(4, 2), (3, 3)])
    (3, 1, 2)
    """
    edges = sorted({edge for sizes in cuts for edge in itertools.accumulate(sizes, initial=0)})
    return tuple(b - a for a, b in itertools.pairwise(edges)) or (0,)


METHODS: dict[str, Any] = {}
__all__ = ["blockwise", "unify_chunks"]
