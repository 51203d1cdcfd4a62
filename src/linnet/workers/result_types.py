"""What the results of jobs become: arrays of the rooms above, and their classes of named tuples.

Rooms above say so when they are imported; that takes nothing of workers but this module.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any, TypeVar

from linnet.tiles import TiledArray

_makers: list[Callable[[TiledArray], Any]] = []
_kinds: dict[tuple[str, tuple[str, ...]], Any] = {}


def arrays_by(maker: Callable[[TiledArray], Any]) -> None:
    """Say what results of a job become: rooms above make arrays of them."""
    _makers[:] = [maker]


Kind = TypeVar("Kind", bound=type[Any])


def arranged_in(kind: Kind) -> Kind:
    """Let results that were asked for in a class of named tuples be given in it; returns the class."""
    _kinds[kind.__name__, tuple(kind._fields)] = kind
    return kind


def as_array(tiles: TiledArray) -> Any:
    """A result as the rooms above want it; the tiles themselves, if none of them is imported."""
    return _makers[0](tiles) if _makers else tiles


def named_tuple(name: str, fields: list[str]) -> Any:
    """The class of named tuples of that name and these fields; a new one, if this process knows none."""
    known = _kinds.get((name, tuple(fields)))
    return namedtuple(name, fields, rename=True) if known is None else known  # pyright: ignore[reportUntypedNamedTuple]
