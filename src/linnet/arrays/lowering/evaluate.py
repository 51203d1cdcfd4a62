"""Running expressions: compute to NumPy, persist to tiles, on the session's engine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import each_tile, is_free, recut, viewed
from linnet.arrays.expression.nodes import Axes, Node, Result, Source, Stored
from linnet.arrays.lowering import on_caller_thread
from linnet.arrays.lowering.assigned_versions import with_versions
from linnet.arrays.lowering.kept_programs import lowered
from linnet.engines import Engine, Threads
from linnet.errors import BudgetError, warn_of
from linnet.events import Sink
from linnet.kernels import get as get_kernel
from linnet.machine import large_arrays
from linnet.programs import BoundProgram
from linnet.programs.grammar import fill_of
from linnet.session import current_engine
from linnet.session.work import Setting, Work, run
from linnet.tiles import TiledArray, TileKey, human
from linnet.tiles.amounts import total_memory
from linnet.workers.array_specs import Asked, InputSpec

TINY = 1 << 14
"""Bytes of a tile below which computing it costs less than having it computed."""


def computed(
    nodes: Sequence[Node],
    *,
    engine: Engine | None = None,
    events: Sink | None = None,
    place: NDArray[Any] | None = None,
) -> list[NDArray[Any]]:
    """The values of several nodes, what they share computed once.

    A source gives its own array; whoever hands it out to be written to makes a copy. What is cheap, of one
    node alone, may be computed in a `place`, which is returned then.
    """
    known = at_once(nodes)
    if known is not None:
        return known
    engine = current_engine() if engine is None else engine
    nodes = with_versions(nodes, lambda versions: _persisted(versions, engine, events))
    if engine.memory is not None:
        # Tiles of a stored array may lie in files: they are copied one by one, as the engine does it.
        nodes = [each_tile("copy", node, node.dtype) if isinstance(node, Stored) else node for node in nodes]
    if engine.cluster is None or engine.cluster.count == 1:
        nodes = [_in_usual_tiles(node) for node in nodes]
    if events is None and isinstance(engine, Threads) and engine.memory is None:
        engine.check()
        made = on_caller_thread.evaluated(nodes, Setting.of(engine), {} if place is None else {0: place})
        if made is not None:
            return made
    places: dict[str, NDArray[Any]] = {}

    def placed(work: Work) -> dict[str, TiledArray]:
        places.clear()
        out: dict[str, TiledArray] = {}
        for node, name in zip(nodes, expression.names, strict=True):
            if not isinstance(node, Source | Stored) and name not in places and _count(node.grid) > 1:
                places[name] = _room(engine, work.bound, name, node)
                out[name] = TiledArray.over(places[name], node.layout)
        return out

    expression = Arrays(nodes)
    _, outputs = run(expression, engine, out=placed, events=events)
    found: list[NDArray[Any]] = []
    for node, name in zip(nodes, expression.names, strict=True):
        if isinstance(node, Source):
            found.append(node.data)
        elif isinstance(node, Stored):
            found.append(node.tiles.to_numpy())
        elif name in places:
            found.append(places[name])
        else:
            (tile,) = outputs.left(name, node.layout, node.dtype).tiles.values()
            found.append(tile if tile.flags.c_contiguous else np.array(tile, order="C"))
    return found


class Arrays:
    """Nodes as an expression: what can be run, planned and submitted."""

    def __init__(self, nodes: Sequence[Node], arranged: Any = None) -> None:
        """`arranged` says in which tuples and lists they were given, a number for each; None: as a tuple."""
        self.nodes = nodes
        self._arranged = arranged
        self.names: tuple[str, ...] = ()
        """What the program last made calls them."""

    def lowered(self, setting: Setting) -> Work:
        """The program for a setting, and what it reads."""
        made, graph = lowered(self.nodes, setting)
        self.names = made.outputs
        inputs = {name: tiled(graph.entries[number].node) for name, number in made.inputs}
        arrays = {
            name: InputSpec(node.layout, node.dtype)
            for name, node in zip(made.outputs, self.nodes, strict=True)
            if name not in inputs
        }
        asked = Asked(arrays, named(self._arranged, made.outputs), made.conditions)
        return Work(made.bound, inputs, asked, made.conditions, made.doubt)


def named(arranged: Any, names: Sequence[str]) -> Any:
    """An arrangement of numbers as one of names, as `Asked` has it; None: a tuple of all.

    >>> named(("list", [0, 1]), ["R3", "R5"])
    ['list', [['array', 'R3'], ['array', 'R5']]]
    """
    if arranged is None:
        return ["tuple", [["array", name] for name in names]]
    if isinstance(arranged, int):
        return ["array", names[arranged]]
    if arranged[0] == "plain":
        return list(arranged)
    *kind, inside = arranged
    return [*kind, [named(each, names) for each in inside]]


def at_once(nodes: Sequence[Node]) -> list[NDArray[Any]] | None:
    """The values of arrays in memory, and of what LAPACK makes of small ones; None if there are others."""
    found: list[NDArray[Any]] = []
    results: dict[int, dict[str, NDArray[Any]]] = {}
    for node in nodes:
        if type(node) is Source:
            found.append(node.data)
            continue
        value = _straight(node, results)
        if value is None:
            return None
        found.append(value)
    return found


def _straight(node: Node, results: dict[int, dict[str, NDArray[Any]]]) -> NDArray[Any] | None:
    """One of the results of LAPACK on a small matrix, without a program; None if it is something else."""
    if type(node) is Axes:
        value = _straight(node.operand, results)
        return None if value is None else viewed(value, node.axes)
    if type(node) is not Result:
        return None
    call = node.call
    if id(call) not in results:
        recipe = call.recipe
        if recipe.kernel is None or recipe.stack is not None:
            return None
        operands: list[NDArray[Any]] = []
        for each in call.inputs:
            value = each.data if type(each) is Source else _straight(each, results)
            if value is None or value.nbytes > chunking.SMALL:
                return None
            operands.append(value)
        name, options = recipe.kernel
        made = get_kernel(name).function(*operands, **dict(options))
        several = made if len(recipe.outputs) > 1 else (made,)
        results[id(call)] = dict(zip((each for each, _ in recipe.outputs), several, strict=True))
        if recipe.condition is not None:
            warn_of(float(results[id(call)][recipe.condition][0]))
    return results[id(call)][node.name]


def _room(engine: Engine, bound: BoundProgram, name: str, node: Node) -> NDArray[Any]:
    """An array for a result. Tiles of it that no task writes hold their value."""
    fill = fill_of(bound.program.arrays[name])
    try:
        if engine.memory is not None:
            whole, clean = engine.zeros(node.shape, node.dtype), True
        elif fill is None:  # every tile of it will be written
            return large_arrays.empty(node.shape, node.dtype)
        else:
            whole, clean = large_arrays.blank(node.shape, node.dtype)
    except (MemoryError, ValueError) as error:  # NumPy has a ValueError for more than addresses reach
        raise BudgetError(_too_large(node)) from error
    if fill or not clean:
        for index in node.layout.indices():
            if bound.writer(TileKey(name, index)) is None:
                whole[node.layout.slices(index)] = fill
    return whole


def _too_large(node: Node) -> str:
    size = _count(node.shape) * node.dtype.itemsize
    return (
        f"a result of {human(size)} (shape {node.shape}, {node.dtype}) does not fit into this machine's "
        f"memory of {human(total_memory())}; take a part of it (x[...]) or a reduction, write it to a file "
        'tile by tile (ln.to_zarr, ln.to_npy), or give a budget, ln.init(memory="..."), so that large '
        "results, and what persist() keeps, lie in files"
    )


def _in_usual_tiles(node: Node) -> Node:
    """What is made element by element from arrays in memory, if it is in tiny tiles.

    Cutting them again copies nothing, and elements do not depend on the cut; a task takes as long as
    thousands of them.
    """
    count = _count(node.grid)
    tiny = min(TINY, chunking.target() // 2)
    if count == 1 or _count(node.shape) * node.dtype.itemsize >= count * tiny or not is_free(node):
        return node
    return recut(node, chunking.automatic(node.shape, node.dtype.itemsize))


def persisted(
    nodes: Sequence[Node], *, engine: Engine | None = None, events: Sink | None = None
) -> list[Node]:
    """The nodes computed and kept in tiles; what is in memory already stays as it is."""
    if all(isinstance(node, Source | Stored) for node in nodes):
        return list(nodes)
    engine = current_engine() if engine is None else engine
    return _persisted(with_versions(nodes, lambda each: _persisted(each, engine, events)), engine, events)


def _persisted(nodes: Sequence[Node], engine: Engine, events: Sink | None) -> list[Node]:
    if all(isinstance(node, Source | Stored) for node in nodes):
        return list(nodes)
    expression = Arrays(nodes)

    def checked(work: Work) -> dict[str, TiledArray]:
        """No places; an error, before anything runs, if tiles that will be made here cannot all be kept."""
        if isinstance(engine, Threads) and engine.memory is None:
            made = [
                node
                for node, name in zip(nodes, expression.names, strict=True)
                if name not in work.inputs and fill_of(work.bound.program.arrays[name]) is None
            ]
            if sum(_count(node.shape) * node.dtype.itemsize for node in made) > total_memory():
                raise BudgetError(_too_large(max(made, key=lambda node: _count(node.shape))))
        return {}

    _, made = run(expression, engine, out=checked, events=events)
    found: list[Node] = []
    for node, name in zip(nodes, expression.names, strict=True):
        if isinstance(node, Source | Stored):
            found.append(node)
        else:
            found.append(Stored(made.left(name, node.layout, node.dtype)))
    return found


def tiled(node: Node) -> TiledArray:
    """The tiles of an array that is there; those of a source are views of it that cannot be written to."""
    if isinstance(node, Stored):
        return node.tiles
    assert isinstance(node, Source)
    tiles = node.layout.views(node.data)
    for tile in tiles.values():
        tile.setflags(write=False)
    return TiledArray(node.layout, node.dtype, tiles)


def _count(grid: tuple[int, ...]) -> int:
    return math.prod(grid)
