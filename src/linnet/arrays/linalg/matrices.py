"""What all of linear algebra shares: operands as matrices, recipes as lazy arrays, NumPy's arrays at once.

A function of linear algebra is written once, for lazy arrays. `linear` makes it take NumPy's arrays too: they
become lazy ones, and what comes out is computed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np

from linnet.algorithms.recipe import Recipe
from linnet.algorithms.tuning import goes_whole, square_cut, tile_side
from linnet.algorithms.whole import whole
from linnet.arrays.elements.core import NUMPY, ArrayBase, as_node, wrap
from linnet.arrays.elements.elementwise import apply
from linnet.arrays.elements.whole_axes import budget, whole_along
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import permuted, recut
from linnet.arrays.expression.chunking import automatic
from linnet.arrays.expression.nodes import Node, ProgramCall, Result, Source, Stored
from linnet.arrays.expression.operands import borrowed
from linnet.arrays.expression.traced import Traced
from linnet.arrays.linalg.small_matrices import shortcut
from linnet.arrays.lowering.evaluate import computed
from linnet.engines import Engine
from linnet.errors import InputError, LinAlgError
from linnet.events import Sink
from linnet.machine.fortran import promote
from linnet.session import current_engine, init
from linnet.tiles import Layout, TiledArray, human

F = TypeVar("F", bound=Callable[..., Any])

_place: ContextVar[tuple[int, ...] | None] = ContextVar("place in a stack", default=None)
"""Which matrix of a stack is being worked on."""


# ---- what users call


def linear(*numpy_functions: Any, called: str | None = None) -> Callable[[F], F]:
    """Mark a function on lazy arrays that stands for these of NumPy's, and takes NumPy's arrays as well.

    For these it computes at once, on the session's engine or the one given as `engine=`; what happens on the
    way is sent to `events=`. One lazy array among the operands makes the result lazy. Users know it as
    `called`, if not by its own name.
    """

    def mark(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, engine: Engine | None = None, events: Sink | None = None, **options: Any) -> Any:
            if options.get("tile") is not None:
                options["tile"] = tile_side(options["tile"])
            try:
                if engine is None and events is None and _place.get() is None:
                    found = shortcut(function, args, options)
                    if found is not NotImplemented:
                        return found
                if not _has_ours(args) and not _has_ours(tuple(options.values())):
                    with borrowed(), nullcontext() if engine is None else init(engine):
                        return evaluated(function(*args, **options), events)
                refuse_engine(called or function.__name__, engine, events)
                return function(*args, **options)
            except Traced as raised:
                traced = raised
            return traced.apply(call, args, options)

        for each in numpy_functions:
            NUMPY[each] = call
        return cast("F", call)

    return mark


def refuse_engine(name: str, engine: Any, events: Any) -> None:
    """Lazy arrays run when they are asked for: not where they are made."""
    if engine is not None or events is not None:
        raise InputError(
            f"{name} was given an ln.Array together with {'engine=' if engine is not None else 'events='}: "
            "it is lazy, and runs when asked for; choose the engine with `with ln.init(...):` around "
            "compute(), and leave these out"
        )


def _has_ours(items: tuple[Any, ...]) -> bool:
    return any(
        isinstance(item, ArrayBase) or (type(item) is tuple and _has_ours(item)) for item in items
    ) or any(_has_ours(tuple(item)) for item in items if isinstance(item, tuple) and hasattr(item, "_fields"))


def evaluated(result: Any, events: Sink | None = None) -> Any:
    """Lazy arrays, alone or in a (named) tuple, as NumPy's."""
    several = result if isinstance(result, tuple) else (result,)
    lazy = [each for each in several if isinstance(each, ArrayBase)]
    nodes = [each.__node__ for each in lazy]
    values = iter(
        value[()] if not value.shape else value.copy() if isinstance(node, Source) else value
        for node, value in zip(nodes, computed(nodes, events=events), strict=True)
    )
    made = [next(values) if isinstance(each, ArrayBase) else each for each in several]
    if not isinstance(result, tuple):
        return made[0]
    return type(result)(*made) if hasattr(result, "_fields") else tuple(made)


# ---- operands


def operand(a: Any) -> Any:
    """An operand as a lazy array: ours as they are, those in tiles in these, others as NumPy has them."""
    if isinstance(a, ArrayBase):
        return a
    if isinstance(a, TiledArray):
        return wrap(Stored(_filled(a)))
    return wrap(as_node(a))


def _filled(a: TiledArray) -> TiledArray:
    """An array in tiles with those that only have a value."""
    if a.fill is None:
        return a
    tiles = {index: a.tile(index) for index in a.layout.indices()}
    return TiledArray(a.layout, a.dtype, tiles)


def matrices(a: Any, name: str = "a") -> Any:
    """A matrix or a stack of them, in a dtype that BLAS knows: integers become float64."""
    array = operand(a)
    if array.ndim < 2:
        raise LinAlgError(
            f"{name} must be a matrix or a stack of matrices, got an array of shape {array.shape}; "
            "give it at least two axes"
        )
    return floating(array)


def floating(array: Any, *others: Any) -> Any:
    """An array in the dtype in which BLAS computes with it, and with others. Durations count as integers."""
    dtypes = [each.dtype for each in (array, *others)]
    dtype = promote(*(np.dtype(np.int64) if each.kind == "m" else each for each in dtypes))
    return array if array.dtype == dtype else array.astype(dtype)


def need_square(a: Any, what: str) -> None:
    """Refuse matrices that are not square."""
    if a.shape[-1] != a.shape[-2]:
        raise LinAlgError(f"{what} takes a square matrix, got {a.shape[-2]}×{a.shape[-1]}")


def need_room_for_square(side: int, itemsize: int, what: str, instead: str) -> None:
    """Refuse a square result of a tall matrix that is too large, before anybody makes room for it.

    `what` it is has a place for the side.
    """
    needed, room = side * side * itemsize, 2 * budget()
    if needed > room:
        raise LinAlgError(
            f"{what.format(side)} is {side:,}×{side:,}: {human(needed)}, and there is room "
            f"for {human(room)}; {instead}"
        )


def adjoint(a: Any) -> Any:
    """The conjugate transpose."""
    return apply(np.conjugate, a.mT) if a.dtype.kind == "c" else a.mT


# ---- how they are cut


def is_own(node: Node) -> bool:
    """Whether somebody has said how the array is to be cut."""
    if isinstance(node, Source) and node._layout is None:
        return False
    return node.layout != automatic(node.shape, node.dtype.itemsize)


def is_whole(a: Any, tile: int | None, *, spectral: bool = False) -> bool:
    """Whether LAPACK takes the matrix, or each in the stack, whole."""
    node = a.__node__
    grid = node.grid[-2:] if is_own(node) else (1, 1)
    if tile is not None or 0 in a.shape:
        return 0 in a.shape
    memory = current_engine().memory
    return goes_whole(a.shape[-2:], a.itemsize, grid, own=True, spectral=spectral, memory=memory)


def in_tiles(node: Node, layout: Layout) -> Node:
    """A matrix in other tiles; those of one in memory, or in a mapped file, are views of it."""
    return Source(node.data, layout) if isinstance(node, Source) else recut(node, layout)


def cut(a: Any, kind: str, tile: int | None) -> Node:
    """A matrix in square tiles for an algorithm: its own if these suit, unless `tile` says otherwise."""
    node = a.__node__
    layout = square_cut(
        node.layout, node.dtype, kind, tile=tile, own=is_own(node), memory=current_engine().memory
    )
    return in_tiles(node, layout)


def cut_like_rows(b: Any, matrix: Node) -> Node:
    """A right side whose rows are cut as those of a square matrix, its columns by the height of these."""
    rows = matrix.layout.boundaries[0]
    width = rows[1] if rows[1] else 1
    columns = Layout.regular((b.shape[1],), width).boundaries[0]
    return in_tiles(b.__node__, Layout((rows, columns)))


# ---- recipes


def made(recipe: Recipe, *nodes: Node) -> dict[str, Any]:
    """The results of a recipe on these operands, as lazy arrays by name."""
    place = _place.get()
    call = ProgramCall(recipe if place is None else replace(recipe, stack=place), nodes)
    return {
        name: wrap(Result(call, name, each.layout.shape, np.dtype(each.dtype), each.layout))
        for name, each in recipe.outputs
    }


def factored(
    stack: Any,
    tile: int | None,
    kind: str,
    recipe: Callable[[Layout, Any], Recipe],
    name: str,
    *,
    spectral: bool = False,
) -> dict[str, Any]:
    """The results of a recipe for a matrix, or each in a stack; `lapack.<name>` gives them for whole ones."""
    if is_whole(stack, tile, spectral=spectral):
        return by_lapack(name, recipe(chunking.whole(stack.shape[-2:]), stack.dtype), stack)
    if stack.ndim > 2:
        return over_stack(lambda each: factored(each, tile, kind, recipe, name, spectral=spectral), stack)
    matrix = cut(stack, kind, tile)
    return made(recipe(matrix.layout, matrix.dtype), matrix)


def by_lapack(name: str, like: Recipe, *arrays: Any, **options: Any) -> dict[str, Any]:
    """The results of a recipe, made by `lapack.<name>` of whole matrices, or stacks of them."""
    first = arrays[0].__node__
    nodes = [whole_along(first, (first.ndim - 2, first.ndim - 1))]
    leading = nodes[0].layout.boundaries[:-2]
    nodes += [
        recut(each.__node__, Layout((*leading, *((0, n) for n in each.shape[-2:])))) for each in arrays[1:]
    ]
    return made(whole(name, Layout(leading), len(nodes), like, **options), *nodes)


def number(result: Any) -> Any:
    """Results with a last axis of one without it."""
    return wrap(permuted(result.__node__, tuple(range(result.ndim - 1))))


# ---- stacks of matrices that are not small


def over_stack(function: Callable[..., Any], *stacks: Any) -> Any:
    """A function on each of the matrices in stacks of one length; its results, perhaps by name, stacked."""
    from linnet.arrays.elements.join_and_split import stack
    from linnet.arrays.elements.shapes import reshape

    batch = stacks[0].shape[:-2]
    results: list[Any] = []
    for index in np.ndindex(*batch):
        token = _place.set(index)
        try:
            results.append(function(*(each[index] for each in stacks)))
        finally:
            _place.reset(token)
    if not results:  # what it would make of a matrix tells the shapes
        like = function(*(operand(np.zeros(each.shape[-2:], each.dtype)) for each in stacks))
        if not isinstance(like, dict):
            return _empty(batch, like)
        return {name: _empty(batch, each) for name, each in cast("dict[str, Any]", like).items()}
    if not isinstance(results[0], dict):
        return reshape(stack(results), (*batch, *results[0].shape))
    return {
        name: reshape(stack([each[name] for each in results]), (*batch, *like.shape))
        for name, like in results[0].items()
    }


def _empty(batch: tuple[int, ...], like: Any) -> Any:
    """A stack without matrices of results like this one."""
    return operand(np.empty((*batch, *like.shape), like.dtype))
