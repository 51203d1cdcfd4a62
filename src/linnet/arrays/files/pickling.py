"""Arrays as data: what pickle writes of a lazy array, and what Dask knows it by.

An array is pickled as its expression. The nodes stand in a list, operands before those who read them, and
name each other by number, so that a long chain needs no deep recursion. What they are made of is data:

    arrays in memory             their elements; memory that several share goes once
    arrays in mapped files       the name of the file and the place in it
    files read by tiles          the name, as in every program
    tiles kept by an engine      their values
    functions of the user's      the name that pickle finds them by; others are refused
    tile programs                their bytes, with kernels by name

Nothing is computed for it, and nothing when it is loaded.
"""

from __future__ import annotations

import dataclasses
import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.elements.core import wrap
from linnet.arrays.expression.graph import ordered
from linnet.arrays.expression.nodes import (
    Axes,
    Blocks,
    Fold,
    Map,
    Node,
    Part,
    ProgramCall,
    Result,
    Source,
    Stored,
)
from linnet.arrays.expression.shared_memory import Memories, digest, opened
from linnet.arrays.lowering.read_files_twice import is_repeatable, repeatable
from linnet.kernels.arrays.user_functions import Name, check_portable
from linnet.programs import TileProgram
from linnet.tiles import Layout, TiledArray

_KINDS: dict[str, tuple[type[Any], str]] = {
    "map": (Map, "inputs"),
    "axes": (Axes, "operand"),
    "fold": (Fold, "operand"),
    "blocks": (Blocks, "inputs"),
    "part": (Part, "whole"),
    "call": (ProgramCall, "inputs"),
    "result": (Result, "call"),
}
"""Nodes that read others: what they are called in a pickle, and the field that has these."""

_NAMES = {kind: name for name, (kind, _) in _KINDS.items()}

_drawn: WeakKeyDictionary[Node, str] = WeakKeyDictionary()
"""Tokens of arrays whose tiles are elsewhere."""


def reduced(node: Node) -> tuple[Any, ...]:
    """What pickle writes of an array: the function that makes it again, and its arguments."""
    nodes = ordered([node])
    for each in nodes:
        if isinstance(each, Blocks):
            _check_functions(each)
    memories = Memories()
    numbers = {id(each): number for number, each in enumerate(nodes)}
    entries = [_entry(each, numbers, memories.add) for each in nodes]
    return restored, (entries, memories.packed())


def restored(entries: Sequence[tuple[Any, ...]], packed: Any) -> Any:
    """The array of a pickle."""
    arrays = opened(packed)
    nodes: list[Node] = []
    for kind, operands, *values in entries:
        if kind == "source":
            number, layout = values
            nodes.append(Source(arrays[number], layout))
        elif kind == "stored":
            layout, dtype, fill, tiles = values
            found = {index: arrays[number] for index, number in tiles}
            nodes.append(Stored(TiledArray(layout, dtype, found, fill)))
        else:
            nodes.append(_again(kind, operands, values, nodes))
    return wrap(nodes[-1])


def token(node: Node) -> Any:
    """What Dask knows an array by: the same for the same expression on the same data, in every process.

    The elements of arrays in memory are looked at, files are known by name, time and size. Tiles that an
    engine keeps elsewhere are not brought here: their token is drawn, and is theirs in this process.
    """
    from dask.base import tokenize  # pyright: ignore[reportPrivateImportUsage]

    tokens: dict[int, str] = {}
    for each in ordered([node]):
        if isinstance(each, Stored) and not isinstance(each.tiles.tiles, dict):
            tokens[id(each)] = _drawn.setdefault(each, secrets.token_hex(16))
        else:
            tokens[id(each)] = tokenize(*map(_plain, _entry(each, tokens, digest)))
    return "linnet.Array", tokens[id(node)]


def _entry(node: Node, names: Mapping[int, Any], name: Callable[[NDArray[Any]], Any]) -> tuple[Any, ...]:
    """A node as a tuple; `names` has what operands are called in it, `name` gives one to an array."""
    if isinstance(node, Source):
        return ("source", (), name(node.data), node.layout)
    if isinstance(node, Stored):
        given = node.tiles
        tiles = [(index, name(np.asarray(tile))) for index, tile in given.tiles.items()]
        return ("stored", (), given.layout, given.dtype, given.fill, tiles)
    kind = _NAMES[type(node)]
    operands = tuple(names[id(each)] for each in node.operands)
    return (kind, operands, *(getattr(node, field) for field in _own_fields(kind)), is_repeatable(node))


def _own_fields(kind: str) -> list[str]:
    """The fields of a node but its operands."""
    made, read = _KINDS[kind]
    return [field.name for field in dataclasses.fields(made) if field.name != read]


def _again(kind: str, operands: tuple[int, ...], values: list[Any], nodes: Sequence[Node]) -> Node:
    made, read = _KINDS[kind]
    *given, is_read_again = values
    inputs = tuple(nodes[number] for number in operands)
    fields = dict(zip(_own_fields(kind), given, strict=True))
    node = made(**{read: inputs if read == "inputs" else inputs[0]}, **fields)
    return repeatable(node) if is_read_again else node


def _check_functions(node: Blocks) -> None:
    for piece in node.pieces:
        for _, value in piece.attributes:
            if isinstance(value, Name):
                check_portable(value.function)


def _plain(value: Any) -> Any:
    """Data as tuples of what Dask makes tokens of."""
    if isinstance(value, Name):
        return _plain(value.function)
    if isinstance(value, TileProgram):
        return value.to_bytes()
    if isinstance(value, Layout):
        return value.boundaries
    if isinstance(value, np.dtype):
        return value.str
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [_plain(getattr(value, field.name)) for field in dataclasses.fields(value)]
        return (type(value).__name__, *fields)
    if isinstance(value, tuple | list):
        return tuple(map(_plain, value))
    return value
