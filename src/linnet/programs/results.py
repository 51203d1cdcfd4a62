"""What a kernel returned, matched with the tiles a task writes; and what to say when it failed."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np

from linnet.errors import KernelError, LinAlgError, LinnetError, MatrixError
from linnet.programs.bound import BoundProgram
from linnet.programs.generated import Call
from linnet.programs.grammar import Task
from linnet.programs.shapes import operands
from linnet.tiles import Tile, TileKey


def matched(result: Any, outputs: int, call: Call) -> list[tuple[TileKey, Tile]]:
    """Each tile that a call writes, with its key; TypeError if the kernel returned something else."""
    if outputs == 1:
        pairs = [(call.outputs[0], result)]
    elif _is_several(result) and len(result) == outputs:
        pairs = list(zip(call.outputs, result, strict=True))
    else:
        raise TypeError(f"returned {_amount(result)}; its declaration says outputs={outputs}")
    matches: list[tuple[TileKey, Tile]] = []
    for keys, tiles in pairs:
        _match(keys, tiles, matches)
    return matches


def _match(keys: Any, tiles: Any, matches: list[tuple[TileKey, Tile]]) -> None:
    """Match an output with its tile, or a range of outputs with a list of tiles."""
    if isinstance(keys, TileKey):
        if isinstance(tiles, np.generic | int | float | complex):
            tiles = np.asarray(tiles)
        if not _is_tile(tiles):
            raise TypeError(f"returned {_amount(tiles)} for {keys}; a tile is a NumPy array")
        matches.append((keys, tiles))
    elif _is_several(tiles) and len(tiles) == len(keys):
        for key, tile in zip(keys, tiles, strict=True):
            _match(key, tile, matches)
    else:
        raise TypeError(f"returned {_amount(tiles)} for a range of {len(keys)} tiles")


def paired(operand: Any, given: Any) -> list[tuple[TileKey, Tile]]:
    """The tiles of one operand of a call, a tile or a range of them, with their keys."""
    if isinstance(operand, TileKey):
        return [(operand, given)]
    if not _is_several(operand):
        return []
    return [pair for key, tile in zip(operand, given, strict=True) for pair in paired(key, tile)]


def _is_several(result: Any) -> TypeGuard[tuple[Any, ...] | list[Any]]:
    return isinstance(result, tuple | list)


def _is_tile(result: Any) -> TypeGuard[Tile]:
    return isinstance(result, np.ndarray)


def _amount(result: Any) -> str:
    return f"{len(result)} results" if _is_several(result) else f"a {type(result).__name__}"


SAID = 20_000
"""Characters of what a kernel's error says that are kept: some say all that was in their arrays."""


def text_of(error: BaseException, most: int | None = None) -> str:
    """What an error says, as text that can be stored and sent, whatever it is made of.

    >>> text_of(ValueError("a file named \\udcff"))
    'a file named \\\\udcff'
    >>> text_of(ValueError("as long as this"), most=7)
    'as long… (15 characters in all)'
    """
    try:
        said = str(error)
    except Exception as raised:
        said = f"(its text cannot be made: {type(raised).__name__})"
    if most is not None and len(said) > most:
        said = f"{said[:most]}… ({len(said):,} characters in all)"
    return said.encode("utf-8", "backslashreplace").decode()


_OF_ARRAYS = "<expression>"
"""How the place of a statement begins that no user wrote: array expressions are lowered to such programs."""


def _plainly(call: Call, said: str) -> str:
    """What went wrong in an array expression, in words of whoever wrote it: no statement of ours."""
    function = call.attributes.get("function")
    tiles = ", ".join(map(str, operands(call.outputs)))
    tile = (
        f"while it made the tile {tiles[tiles.find('[') :]} of its result" if "[" in tiles else "on one tile"
    )
    if isinstance(function, str):
        name = function.rsplit(" #", 1)[0].rsplit(".", 1)[-1].rsplit(":", 1)[-1]
        return f"kernel {name!r} {said}\n  {tile}; it is the function given to map_blocks, or to one like it"
    return f"kernel {call.kernel!r} {said}\n  {tile}"


def failure(error: BaseException, bound: BoundProgram, task: Task, call: Call) -> LinnetError:
    """The error of a kernel, with the task, its tiles, and its line in the program."""
    where = bound.where(task)
    keys = tuple(dict.fromkeys(operands(call.args)))
    shown = ", ".join(map(repr, keys[:6])) + (f" and {len(keys) - 6} more" if len(keys) > 6 else "")
    if isinstance(error, MatrixError):
        return LinAlgError(str(error), task=task, tiles=keys, where=where)
    place = f"{call.kernel}({shown}) -> {', '.join(map(repr, call.outputs))}\n  in {where}"
    if isinstance(error, np.linalg.LinAlgError):
        return LinAlgError(f"{error}: {place}", task=task, tiles=keys, where=where)
    said = f"raised {type(error).__name__}: {text_of(error, SAID)}"
    message = f"kernel {call.kernel!r} {said}\n  at {place}"
    if where.startswith(_OF_ARRAYS):
        message = _plainly(call, said)
    return KernelError.of(
        type(error),
        message,
        task=task,
        tiles=keys,
        where=where,
    )
