"""Running expressions: compute to NumPy, persist to tiles, on the session's engine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from linnet.arrays import chunking
from linnet.arrays.building import each_tile, is_free, recut
from linnet.arrays.expression import Node, Source, Stored
from linnet.arrays.graph import Graph
from linnet.arrays.lowering import Lowered, lowered
from linnet.arrays.spreading import Nodes
from linnet.engines import Engine
from linnet.events import Sink
from linnet.kernels import storage
from linnet.session import current_engine
from linnet.tiles import TiledArray

TINY = 1 << 14
"""Bytes of a tile below which computing it costs less than having it computed."""


def computed(
    nodes: Sequence[Node], *, engine: Engine | None = None, events: Sink | None = None
) -> list[NDArray[Any]]:
    """The values of several nodes, what they share computed once.

    A source gives its own array; whoever hands it out to be written to makes a copy.
    """
    if all(isinstance(node, Source) for node in nodes):
        return [node.data for node in nodes]  # type: ignore[attr-defined]
    engine = current_engine() if engine is None else engine
    if engine.memory is not None:
        # Tiles of a stored array may lie in files: they are copied one by one, as the engine does it.
        nodes = [each_tile("copy", node, node.dtype) if isinstance(node, Stored) else node for node in nodes]
    where = nodes_of(engine)
    if where.count == 1:
        nodes = [_in_usual_tiles(node) for node in nodes]
    program, graph = lowered(nodes, where, engine.memory)
    places: dict[str, NDArray[Any]] = {}
    out: dict[str, TiledArray] = {}
    for node, name in zip(nodes, program.outputs, strict=True):
        if name is not None and name not in places and _count(node.grid) > 1:
            # Every tile of it will be written: zeros are needed only where it goes to a file.
            make = storage.empty if engine.memory is None else engine.zeros
            places[name] = make(node.shape, node.dtype)
            out[name] = TiledArray.over(places[name], node.layout)
    made = engine.run(program.bound, inputs_of(program, graph), out=out, events=events)
    found: list[NDArray[Any]] = []
    for node, name in zip(nodes, program.outputs, strict=True):
        if name is None:
            found.append(node.data if isinstance(node, Source) else node.tiles.to_numpy())  # type: ignore[attr-defined]
        elif name in places:
            found.append(places[name])
        else:
            (tile,) = made.tiles(name).values()
            found.append(tile)
    return found


def _in_usual_tiles(node: Node) -> Node:
    """What is made element by element from arrays in memory, if it is in tiny tiles.

    They are cut anew for nothing, and elements do not depend on the cut; a task takes as long as
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
    program, graph = lowered(nodes, nodes_of(engine), engine.memory)
    made = engine.run(program.bound, inputs_of(program, graph), events=events)
    found: list[Node] = []
    for node, name in zip(nodes, program.outputs, strict=True):
        if name is None:
            found.append(node)
        else:
            found.append(Stored(TiledArray(node.layout, node.dtype, made.tiles(name))))
    return found


def nodes_of(engine: Engine) -> Nodes:
    """The nodes that an engine runs programs on."""
    return Nodes.of(engine.cluster)


def inputs_of(program: Lowered, graph: Graph) -> dict[str, TiledArray]:
    """The arrays that a program reads, in tiles."""
    inputs: dict[str, TiledArray] = {}
    for name, number in program.inputs:
        inputs[name] = tiled(graph.entries[number].node)
    return inputs


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
