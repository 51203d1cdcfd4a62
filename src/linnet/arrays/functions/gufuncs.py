"""Functions of the user's on lines and on core dimensions: `apply_along_axis`, `apply_gufunc`, `vectorize`.

A generalised function works on the last axes of its operands (its core) and is repeated over the
others. Cores are made whole in every tile, so that one call does a tile; the other axes stay cut.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import ArrayBase, as_node, axis_of, chunked, wrap
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import blocks, part, permuted, recut
from linnet.arrays.expression.nodes import Access, Along, At, Entry, Node, Number, Operand, Piece
from linnet.arrays.functions.gufunc_signatures import (
    Core,
    check_whole,
    core_axes,
    parsed,
    turned,
    turned_back,
)
from linnet.arrays.functions.map_blocks import called, map_blocks, probed, sizes_of
from linnet.errors import InputError
from linnet.kernels.arrays.user_functions import Wrapper, held
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries

if TYPE_CHECKING:
    from linnet.arrays.array import Array

# ---- line by line


def along_axis(
    function: Callable[..., Any], axis: int, node: Node, shape: tuple[int, ...], dtype: Any
) -> Node:
    """A function on every line along an axis, that gives arrays of this shape."""
    old = node.layout.boundaries
    node = recut(node, Layout((*old[:axis], (0, node.shape[axis]), *old[axis + 1 :])))
    layout = Layout((*old[:axis], *((0, length) for length in shape), *old[axis + 1 :]))
    lines = _Lines(function, axis, shape, dtype)
    extra = len(shape) - 1
    access = tuple(
        At(0) if each == axis else Along(each if each < axis else each + extra) for each in range(node.ndim)
    )
    return called(lines, (node,), [Operand(0, access)], layout, dtype)


@dataclass(frozen=True, eq=False)
class _Lines(Wrapper):
    """A function on every line of a tile."""

    axis: int
    shape: tuple[int, ...]
    """Of what the function gives for a line."""
    dtype: Any

    def __call__(self, tile: Any) -> Any:
        before, behind = tile.shape[: self.axis], tile.shape[self.axis + 1 :]
        if 0 in (*before, *behind):  # no line; lines of no elements are lines
            return np.empty((*before, *self.shape, *behind), self.dtype)
        return np.apply_along_axis(self.function, self.axis, tile)


@chunked(np.apply_along_axis)
def apply_along_axis(
    func1d: Callable[..., Any],
    axis: int,
    arr: Any,
    *args: Any,
    dtype: Any = None,
    shape: Any = None,
    **kwargs: Any,
) -> Array:
    """A function on every line along an axis.

    What it returns is learnt by calling it on a line of ones, unless `dtype` and `shape` say it.

    Parameters
    ----------
    func1d : function of a vector
    axis : int
    arr : array_like
    args, kwargs : further arguments of the function
    dtype, shape : optional; of what it gives; by default it is tried on a small vector

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.apply_along_axis(np.sort, 1, ln.asarray([[3, 1], [2, 4]])).compute()
    array([[1, 3],
           [2, 4]])
    """
    node = as_node(arr)
    place = axis_of(axis, node.ndim)
    if any(length == 0 for each, length in enumerate(node.shape) if each != place):
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    function = functools.partial(func1d, **kwargs) if kwargs else func1d
    line = functools.partial(_with_arguments, function, args) if args else function
    if dtype is None or shape is None:
        made = np.asarray(probed(line, [np.ones(node.shape[place], node.dtype)], "apply_along_axis"))
        dtype, shape = made.dtype if dtype is None else dtype, made.shape if shape is None else shape
    return wrap(along_axis(line, place, node, tuple(shape), np.dtype(dtype)))


def _with_arguments(function: Callable[..., Any], args: tuple[Any, ...], line: Any) -> Any:
    return function(line, *args)


@chunked(np.apply_over_axes)
def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Array:
    """A function of an array and an axis, over one axis after another.

    Parameters
    ----------
    func : function of an array and an axis
    a : Array
    axes : int or sequence of int

    Returns
    -------
    Array with as many axes

    Examples
    --------
    >>> import linnet as ln
    >>> ln.apply_over_axes(ln.sum, ln.asarray([[1, 2], [3, 4]]), [0, 1]).compute()
    array([[10]])
    """
    result = wrap(as_node(a))
    rank = result.ndim
    for axis in (axes,) if hasattr(axes, "__index__") else axes:
        place = axis_of(axis, max(rank, 1))  # NumPy's reductions take axis 0 of a number
        made = func(result, place)
        if made.ndim != rank:
            made = wrap(as_node(made)).reshape(*made.shape[:place], 1, *made.shape[place:])
        if made.ndim != rank:
            raise ValueError("function is not returning an array of the correct shape")
        result = made
    return result


# ---- generalised functions


def apply_gufunc(
    func: Callable[..., Any],
    signature: str,
    *args: Any,
    axes: Sequence[Any] | None = None,
    axis: int | None = None,
    keepdims: bool = False,
    output_dtypes: Any = None,
    output_sizes: dict[str, int] | None = None,
    vectorize: bool | None = None,
    allow_rechunk: bool = True,
    meta: Any = None,
    **kwargs: Any,
) -> Any:
    """A function on the last axes of arrays, as its signature names them, repeated over the others.

    The function is given tiles and repeats itself over their first axes as ufuncs do, or is made
    to with `vectorize=True`. Lengths that only results have are told in `output_sizes`.

    `axes` has an entry for each array and each result, the axes its core is on (for results without
    cores they may be left out); `axis` is short for the one axis of all cores; `keepdims` leaves the
    axes of the cores in results that have none, with length 1: all as for NumPy's generalised ufuncs.
    Cores that lie in several tiles are put together; `allow_rechunk=False` refuses them.

    Parameters
    ----------
    func : callable
        The function on tiles.
    signature : str
        The axes of its operands and results by name, as in "(i,j),(j)->(i)".
    args : array_like
        The operands.
    axes : sequence, optional
        For each operand and result, the axes that its core is on.
    axis : int, optional
        The one axis of all cores.
    keepdims : bool
        Whether axes of cores stay, with length 1.
    output_dtypes : optional
        The dtype of each result; without them the function is tried on a small example.
    output_sizes : dict, optional
        Lengths of axes that only results have.
    vectorize : bool, optional
        Whether to call the function once for each core.
    allow_rechunk : bool
        Whether cores that lie in several tiles are put together.
    meta : optional
        An array of the dtype of the result, in place of `output_dtypes`.
    kwargs
        Passed to the function.

    Returns
    -------
    Array, or a tuple of them if the signature has several results

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> x = asarray(np.arange(6.0).reshape(3, 2), chunks=1)
    >>> apply_gufunc(lambda t: t.mean(-1), "(i)->()", x).compute()
    array([0.5, 2.5, 4.5])
    >>> apply_gufunc(lambda t: t.mean(-1), "(i)->()", x, axis=0, keepdims=True).compute()
    array([[2., 3.]])
    """
    inputs, outputs = parsed(signature)
    if len(args) != len(inputs):
        raise ValueError(f"signature {signature!r} takes {len(inputs)} arrays, got {len(args)}")
    if keepdims and (any(outputs) or len({len(core) for core in inputs}) > 1):
        raise ValueError(
            f"keepdims=True is for cores of the same rank and results without cores, not for {signature!r}"
        )
    where = core_axes(axes, axis, inputs, outputs, keepdims, signature)
    nodes = [turned(as_node(each), place) for each, place in zip(args, where[: len(args)], strict=True)]
    if not allow_rechunk:
        check_whole(args, nodes, inputs)
    kinds = output_dtypes
    if kinds is None and meta is not None:
        kinds = [each.dtype for each in (meta if isinstance(meta, tuple | list) else (meta,))]
    function = functools.partial(func, **kwargs) if kwargs else func
    if vectorize:
        function = np.vectorize(function, signature=signature)
    found = _repeated(function, signature, nodes, kinds, dict(output_sizes or {}))
    if keepdims:
        found = [permuted(each, (*range(each.ndim), *(-1,) * len(inputs[0]))) for each in found]
    found = [turned_back(each, place) for each, place in zip(found, where[len(args) :], strict=True)]
    return wrap(found[0]) if len(found) == 1 else tuple(map(wrap, found))


def as_gufunc(signature: str | None = None, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that makes a function of tiles one of arrays; `options` are those of `apply_gufunc`.

    Parameters
    ----------
    signature : str, optional
        The axes of operands and results by name, as in "(i)->()".
    options
        Those of `apply_gufunc`.

    Returns
    -------
    callable
        A decorator.

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> @as_gufunc("(i)->()", output_dtypes=float)
    ... def middle(t):
    ...     return t.mean(-1)
    >>> middle(asarray(np.arange(6.0).reshape(3, 2), chunks=1), axis=0).compute()
    array([2., 3.])
    """
    if signature is None:
        raise TypeError("as_gufunc needs a signature, such as '(i),(i)->()'")
    parsed(signature)

    def decorate(function: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return apply_gufunc(function, signature, *args, **{**options, **kwargs})

        return call

    return decorate


def _repeated(
    function: Callable[..., Any], signature: str, nodes: list[Node], kinds: Any, sizes: dict[str, int]
) -> list[Node]:
    """A function on the last axes, with a node for each of its results."""
    inputs, outputs = parsed(signature)
    for node, core in zip(nodes, inputs, strict=True):
        _measured(node, core, sizes, signature)
    kinds = _kinds(function, nodes, inputs, sizes, kinds, len(outputs))
    loop = _loop_edges(nodes, inputs)
    whole = [_whole_cores(node, core, loop) for node, core in zip(nodes, inputs, strict=True)]
    missing = {name for core in outputs for name in core} - set(sizes)
    if missing:
        raise ValueError(f"lengths of {sorted(missing)} are not known; give output_sizes=")
    results = [tuple(sizes[name] for name in core) for core in outputs]
    arguments = [_access(which, n, c, loop) for which, (n, c) in enumerate(zip(whole, inputs, strict=True))]
    if len(outputs) == 1:
        layout = Layout((*loop, *((0, length) for length in results[0])))
        return [called(function, whole, arguments, layout, kinds[0])]
    return _several(function, whole, arguments, loop, results, kinds)


def _measured(node: Node, core: Core, sizes: dict[str, int], signature: str) -> None:
    if node.ndim < len(core):
        raise ValueError(f"an array of shape {node.shape} has fewer axes than {core} of {signature!r}")
    for name, length in zip(core, node.shape[node.ndim - len(core) :], strict=True):
        if sizes.setdefault(name, length) != length:
            raise ValueError(f"axis {name!r} of {signature!r} has lengths {sizes[name]} and {length}")


def _kinds(
    function: Callable[..., Any],
    nodes: Sequence[Node],
    cores: list[Core],
    sizes: dict[str, int],
    given: Any,
    count: int,
) -> list[np.dtype[Any]]:
    if given is not None:
        kinds = [np.dtype(each) for each in (given if isinstance(given, tuple | list) else (given,))]
        if len(kinds) != count:
            raise ValueError(f"output_dtypes names {len(kinds)} dtypes for {count} results")
        return kinds
    samples = [
        np.ones((1,) * (n.ndim - len(c)) + tuple(sizes[name] for name in c), n.dtype)
        for n, c in zip(nodes, cores, strict=True)
    ]
    made = probed(function, samples, "apply_gufunc")
    return [np.asarray(each).dtype for each in (made if count > 1 else (made,))]


def _loop_edges(nodes: Sequence[Node], cores: list[Core]) -> list[Boundaries]:
    """Cuts of the axes the function is repeated over: of the operand with most elements along each."""
    loops = [n.shape[: n.ndim - len(c)] for n, c in zip(nodes, cores, strict=True)]
    shape = np.broadcast_shapes(*loops)
    order = sorted(range(len(nodes)), key=lambda k: -int(np.prod(nodes[k].shape, dtype=object)))
    edges: list[Boundaries] = []
    for back in range(len(shape), 0, -1):
        length = shape[-back]
        which = next(k for k in order if len(loops[k]) >= back and loops[k][-back] == length)
        node, core = nodes[which], len(cores[which])
        cut = node.layout
        if any(len(e) > 2 for e in cut.boundaries[node.ndim - core :]):
            # A core that becomes whole leaves less room to the other axes.
            wanted = ("auto",) * (node.ndim - core) + (-1,) * core
            cut = chunking.normalized(wanted, node.shape, node.dtype)
        edges.append(cut.boundaries[node.ndim - core - back])
    return edges


def _whole_cores(node: Node, core: Core, loop: list[Boundaries]) -> Node:
    first = node.ndim - len(core)
    offset = len(loop) - first
    edges = [
        loop[axis + offset] if axis < first and loop[axis + offset][-1] == length else (0, length)
        for axis, length in enumerate(node.shape)
    ]
    return recut(node, Layout(tuple(edges)))


def _access(which: int, node: Node, core: Core, loop: list[Boundaries]) -> Operand:
    offset = len(loop) - (node.ndim - len(core))
    access: tuple[Access, ...] = tuple(
        Along(axis + offset) if node.grid[axis] > 1 else At(0) for axis in range(node.ndim)
    )
    return Operand(which, access)


def _several(
    function: Callable[..., Any],
    nodes: list[Node],
    arguments: list[Operand],
    loop: list[Boundaries],
    results: list[tuple[int, ...]],
    kinds: list[np.dtype[Any]],
) -> list[Node]:
    """Several results of one call: tiles of one rank, their missing core axes of length 1."""
    depth = max(map(len, results))
    call = _OfOneRank(function, tuple(depth - len(core) for core in results))
    rank = len(loop) + depth
    layouts = [
        Layout((*loop, *((0, length) for length in r), *((0, 1),) * (depth - len(r)))) for r in results
    ]
    lengths: list[Number] = [
        Entry(axis, sizes_of(edges)) for layout in layouts for axis, edges in enumerate(layout.boundaries)
    ]
    attributes = (("function", held(call)), ("rank", rank), ("dtype", tuple(kind.str for kind in kinds)))
    piece = Piece("call", (*arguments, *lengths), attributes)
    whole = blocks(nodes, (piece,), layouts[0], kinds[0], parts=len(results))
    found: list[Node] = []
    for number, (layout, kind, core) in enumerate(zip(layouts, kinds, results, strict=True)):
        kept = tuple(range(len(loop) + len(core)))
        found.append(permuted(part(whole, number, kind, layout), kept))
    return found


@dataclass(frozen=True, eq=False)
class _OfOneRank(Wrapper):
    """A function whose results get axes of length 1 behind their own."""

    added: tuple[int, ...]
    """How many, for each result."""

    def __call__(self, *tiles: Any) -> Any:
        made = [np.asarray(each) for each in self.function(*tiles)]
        return [
            each.reshape((*each.shape, *(1,) * count)) for each, count in zip(made, self.added, strict=True)
        ]


class vectorize:
    """A Python function of numbers as a function of arrays, as `np.vectorize`; tile by tile.

    >>> from linnet.arrays.elements.creation import asarray
    >>> clipped = vectorize(lambda a, b: a if a > b else b)
    >>> clipped(asarray([1, 5, 3], chunks=2), 2).compute()
    array([2, 5, 3])
    """

    def __init__(
        self,
        pyfunc: Callable[..., Any],
        otypes: Any = None,
        doc: str | None = None,
        excluded: Any = None,
        cache: bool = False,
        signature: str | None = None,
    ) -> None:
        self.pyfunc = pyfunc
        self.signature = signature
        self._plain = np.vectorize(pyfunc, otypes, doc, excluded, cache, signature)
        self._otypes = otypes
        self.__doc__ = doc or pyfunc.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        kinds = None if self._otypes is None else [np.dtype(each) for each in self._otypes]
        if self.signature is not None:
            return apply_gufunc(self._plain, self.signature, *args, output_dtypes=kinds, **kwargs)
        if kinds is not None and len(kinds) > 1:
            raise InputError("vectorize with several results needs a signature, such as '(),()->(),()'")
        given = [
            each if isinstance(each, ArrayBase) or np.ndim(each) == 0 else wrap(as_node(each))
            for each in args
        ]
        return map_blocks(self._plain, *given, dtype=None if kinds is None else kinds[0], **kwargs)


METHODS: dict[str, Any] = {}
__all__ = ["apply_along_axis", "apply_gufunc", "apply_over_axes", "as_gufunc", "vectorize"]
