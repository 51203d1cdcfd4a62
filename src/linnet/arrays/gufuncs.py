"""Functions of the user's on lines and on core dimensions: `apply_along_axis`, `apply_gufunc`, `vectorize`.

A generalised function works on the last axes of its operands (its core) and is repeated over the
others. Cores are made whole in every tile, so that one call does a tile; the other axes stay cut.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linnet.arrays import chunking
from linnet.arrays.blockwise import called, map_blocks, probed, sizes_of
from linnet.arrays.building import blocks, part, permuted, recut
from linnet.arrays.core import as_node, axis_of, chunked, wrap
from linnet.arrays.expression import Access, Along, At, Entry, Node, Number, Operand, Piece
from linnet.errors import InputError
from linnet.kernels.callables import held
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries

Core = tuple[str, ...]
_CORE = re.compile(r"\(([^()]*)\)")

# ---- line by line


def along_axis(
    function: Callable[..., Any], axis: int, node: Node, shape: tuple[int, ...], dtype: Any
) -> Node:
    """A function on every line along an axis, that gives arrays of this shape."""
    old = node.layout.boundaries
    node = recut(node, Layout((*old[:axis], (0, node.shape[axis]), *old[axis + 1 :])))
    layout = Layout((*old[:axis], *((0, length) for length in shape), *old[axis + 1 :]))

    def lines(tile: Any) -> Any:
        if not tile.size:
            return np.empty((*tile.shape[:axis], *shape, *tile.shape[axis + 1 :]), dtype)
        return np.apply_along_axis(function, axis, tile)

    extra = len(shape) - 1
    access = tuple(
        At(0) if each == axis else Along(each if each < axis else each + extra) for each in range(node.ndim)
    )
    return called(lines, (node,), [Operand(0, access)], layout, dtype)


@chunked(np.apply_along_axis)
def apply_along_axis(
    func1d: Callable[..., Any],
    axis: int,
    arr: Any,
    *args: Any,
    dtype: Any = None,
    shape: Any = None,
    **kwargs: Any,
) -> Any:
    """A function on every line along an axis.

    What it returns is learnt by calling it on a line of ones, unless `dtype` and `shape` say it.
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
def apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    """A function of an array and an axis, over one axis after another."""
    result = wrap(as_node(a))
    rank = result.ndim
    for axis in (axes,) if hasattr(axes, "__index__") else axes:
        place = axis_of(axis, rank)
        made = func(result, place)
        if made.ndim != rank:
            made = wrap(as_node(made)).reshape(*made.shape[:place], 1, *made.shape[place:])
        if made.ndim != rank:
            raise ValueError("function is not returning an array of the correct shape")
        result = made
    return result


# ---- generalised functions


def parsed(signature: str) -> tuple[list[Core], list[Core]]:
    """The cores of operands and of results.

    >>> parsed("(i,j),(j)->(i)")
    ([('i', 'j'), ('j',)], [('i',)])
    """
    text = re.sub(r"\s+", "", signature)
    sides = text.split("->")
    if len(sides) != 2 or any(_CORE.sub("", side).strip(",") for side in sides):
        raise ValueError(f"signature {signature!r} is not of the form '(i,j),(j)->(i)'")
    cores = [[tuple(name for name in core.split(",") if name) for core in _CORE.findall(s)] for s in sides]
    return cores[0], cores[1]


def apply_gufunc(
    func: Callable[..., Any],
    signature: str,
    *args: Any,
    output_dtypes: Any = None,
    output_sizes: dict[str, int] | None = None,
    vectorize: bool = False,
    **kwargs: Any,
) -> Any:
    """A function on the last axes of arrays, as its signature names them, repeated over the others.

    The function is given tiles and repeats itself over their first axes as ufuncs do, or is made
    to with `vectorize=True`. Lengths that only results have are told in `output_sizes`.

    >>> from linnet.arrays.creation import asarray
    >>> x = asarray(np.arange(6.0).reshape(3, 2), chunks=1)
    >>> apply_gufunc(lambda t: t.mean(-1), "(i)->()", x).compute()
    array([0.5, 2.5, 4.5])
    """
    inputs, outputs = parsed(signature)
    if len(args) != len(inputs):
        raise ValueError(f"signature {signature!r} takes {len(inputs)} arrays, got {len(args)}")
    nodes = [as_node(each) for each in args]
    sizes = dict(output_sizes or {})
    for node, core in zip(nodes, inputs, strict=True):
        _measured(node, core, sizes, signature)
    function = functools.partial(func, **kwargs) if kwargs else func
    if vectorize:
        function = np.vectorize(function, signature=signature)
    kinds = _kinds(function, nodes, inputs, sizes, output_dtypes, len(outputs))
    loop = _loop_edges(nodes, inputs)
    whole = [_whole_cores(node, core, loop) for node, core in zip(nodes, inputs, strict=True)]
    missing = {name for core in outputs for name in core} - set(sizes)
    if missing:
        raise ValueError(f"lengths of {sorted(missing)} are not known; give output_sizes=")
    results = [tuple(sizes[name] for name in core) for core in outputs]
    arguments = [_access(which, n, c, loop) for which, (n, c) in enumerate(zip(whole, inputs, strict=True))]
    if len(outputs) == 1:
        layout = Layout((*loop, *((0, length) for length in results[0])))
        return wrap(called(function, whole, arguments, layout, kinds[0]))
    return tuple(_several(function, whole, arguments, loop, results, kinds))


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
) -> list[Any]:
    """Several results of one call: tiles of one rank, their missing core axes of length 1."""
    depth = max(map(len, results))

    def call(*tiles: Any) -> Any:
        made = [np.asarray(each) for each in function(*tiles)]
        return [
            each.reshape(*each.shape, *(1,) * (depth - len(r))) for each, r in zip(made, results, strict=True)
        ]

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
    found: list[Any] = []
    for number, (layout, kind, core) in enumerate(zip(layouts, kinds, results, strict=True)):
        kept = tuple(range(len(loop) + len(core)))
        found.append(wrap(permuted(part(whole, number, kind, layout), kept)))
    return found


class vectorize:
    """A Python function of numbers as a function of arrays, as `np.vectorize`; tile by tile.

    >>> from linnet.arrays.creation import asarray
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
        return map_blocks(self._plain, *args, dtype=None if kinds is None else kinds[0], **kwargs)


METHODS: dict[str, Any] = {}
__all__ = ["apply_along_axis", "apply_gufunc", "apply_over_axes", "vectorize"]
