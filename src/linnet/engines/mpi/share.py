"""What one rank does in a plan: its tasks, the tiles it fetches and from whom, the tiles it hands on.

Every rank works this out for itself, from the same plan, so nobody has to be told. A run that goes on from
tiles that were written down is the same plan, with the tasks left out that are not needed any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linnet.planning.accounting import Transfers
from linnet.planning.placement import Placement
from linnet.planning.workload import Workload
from linnet.programs import In, Out
from linnet.tiles import TiledArray, TileKey

Numbers = NDArray[np.int64]
STORE = -1
"""Where tiles come from that were written down by an earlier run."""


@dataclass(frozen=True, slots=True)
class Left:
    """What is left of a program to be done."""

    active: NDArray[np.bool_]
    """Of each task, whether it must run."""
    loads: Numbers
    """Tiles that are read from where they were written down."""


@dataclass(frozen=True, slots=True)
class Moves:
    """Tiles that go from a rank to another, in columns."""

    tile: Numbers
    source: Numbers
    target: Numbers
    need: Numbers
    """The place, in the order of all tasks, of the first task that waits for it: at the target, or at a
    rank that has it from there."""


@dataclass(frozen=True, slots=True)
class Coming:
    """A tile that a rank fetches."""

    tile: int
    source: int
    need: int
    """As in `Moves`."""
    bytes: int
    """What the plan expects."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one rank does."""

    tasks: list[int]
    """Its tasks, the most urgent first."""
    place: list[int]
    """Of each of them, its place in the order of all tasks."""
    waiting: list[int]
    """Of each of them, how many tiles it reads that tasks, or other ranks, must give first."""
    readers: Mapping[int, list[int]]
    """For each tile, which of the tasks (their places in `tasks`) read it here."""
    coming: list[Coming]
    """Tiles it fetches, the first needed first."""
    going: Mapping[int, frozenset[int]]
    """For each tile that others fetch from here, who."""
    results: frozenset[int]
    """Tiles of outputs that it makes, or loads."""
    brought: frozenset[int]
    """Tiles of outputs that tasks of rank 0 fetch from others: it has them without being sent them."""
    uses: Mapping[int, int]
    """For each tile, how often it is needed here: to be read, and to be sent to others' tasks."""
    keys: Mapping[int, TileKey]
    """The names of these tiles."""
    numbers: Mapping[TileKey, int]
    """The numbers of these names."""


def moves(
    work: Workload,
    order: Numbers,
    placement: Placement,
    moved: Transfers,
    inputs: Mapping[str, TiledArray],
    left: Left,
) -> Moves:
    """All that moves in a plan: the transfers it counts, inputs from rank 0 to their homes, and loaded tiles.

    What rank 0 has in memory anyway is not sent to it.
    """
    tile, source, target = (column.astype(np.int64) for column in (moved.tile, moved.source, moved.target))
    given = _given(work, inputs)
    there = given | (work.producer >= 0) | (work.given_homes >= 0)
    wanted = there[tile] & ~(given[tile] & (target == 0))
    tile, source, target = tile[wanted], source[wanted], target[wanted]
    first = np.flatnonzero(given & (placement.homes > 0))
    tile = np.concatenate([left.loads, first, tile])
    source = np.concatenate([np.full(len(left.loads), STORE), np.zeros(len(first), np.int64), source])
    target = np.concatenate([placement.homes[tile[: len(tile) - len(target)]].astype(np.int64), target])
    need = _needs(work, order, placement, (tile, source, target), left.active)
    kept = (need < work.count) | (source == STORE)
    return Moves(tile[kept], source[kept], target[kept], need[kept])


def _given(work: Workload, inputs: Mapping[str, TiledArray]) -> NDArray[np.bool_]:
    """Which tiles are inputs that lie in the memory of rank 0."""
    roles = work.bound.program.arrays
    found = np.zeros(work.tiles, bool)
    for array, name in enumerate(work.names):
        if isinstance(roles[name], In):
            indices, first = work.tile_index[array], work.first[array]
            grid = np.array(inputs[name].layout.grid, np.int64)
            found[first : first + len(indices)] = ((indices >= 0) & (indices < grid)).all(axis=1)
    return found & (work.given_homes < 0)


def _needs(
    work: Workload,
    tasks: Numbers,
    placement: Placement,
    rows: tuple[Numbers, Numbers, Numbers],
    active: NDArray[np.bool_],
) -> Numbers:
    tile, source, target = rows
    place = np.empty(work.count, np.int64)
    place[tasks] = np.arange(work.count)
    place[~active] = work.count
    ranks = 1 + max(int(each.max(initial=0)) for each in (placement.nodes, placement.homes))
    tiles = np.repeat(np.arange(work.tiles, dtype=np.int64), np.diff(work.reader_start))
    codes = tiles * ranks + placement.nodes[work.reader]
    order = np.argsort(codes, kind="stable")
    pairs, firsts = np.unique(codes[order], return_index=True)
    earliest = (
        np.minimum.reduceat(place[work.reader][order], firsts) if len(firsts) else np.zeros(0, np.int64)
    )
    mine = tile * ranks + target
    need = _looked_up(pairs, earliest, mine, work.count)
    # Whoever hands a tile on needs it for those it hands it to: follow each tree to its root.
    by_code = np.argsort(mine, kind="stable")
    parent = _looked_up(mine[by_code], by_code, np.where(source < 0, -1, tile * ranks + source), -1)
    some = np.flatnonzero(parent >= 0)
    while True:
        before = need.copy()
        np.minimum.at(need, parent[some], need[some])
        if np.array_equal(before, need):
            return need


def _looked_up(keys: Numbers, values: Numbers, asked: Numbers, missing: int) -> Numbers:
    """The values of keys, which are sorted."""
    if not len(keys):
        return np.full(len(asked), missing, np.int64)
    found = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    return np.where(keys[found] == asked, values[found], missing)


def share(
    work: Workload, order: Numbers, placement: Placement, moving: Moves, left: Left, rank: int
) -> Share:
    """The part of a rank in a plan."""
    places = np.flatnonzero((placement.nodes[order] == rank) & left.active[order])
    ordered = order[places]
    tasks: list[int] = ordered.tolist()
    coming, going = _coming(work, moving, rank), _going(moving, rank)
    fetched = {each.tile for each in coming}
    readers: dict[int, list[int]] = {}
    waiting: list[int] = []
    producer = work.producer
    for number, task in enumerate(tasks):
        missing = 0
        for tile in work.reads(task).tolist():
            readers.setdefault(tile, []).append(number)
            missing += bool(tile in fetched or producer[tile] >= 0)
        waiting.append(missing)
    uses = {tile: len(found) for tile, found in readers.items()}
    for tile, targets in going.items():
        uses[tile] = uses.get(tile, 0) + len(targets)
    written = {tile for task in tasks for tile in work.writes(task).tolist()}
    outputs = outputs_of(work)
    results = frozenset(tile for tile in written | fetched if outputs[tile] and placement.homes[tile] == rank)
    at_zero = moving.tile[moving.target == 0]
    brought = frozenset(at_zero[outputs[at_zero]].tolist())
    keys = {tile: work.key(tile) for tile in written | set(uses) | fetched}
    numbers = {key: tile for tile, key in keys.items()}
    return Share(
        tasks, places.tolist(), waiting, readers, coming, going, results, brought, uses, keys, numbers
    )


def _coming(work: Workload, moving: Moves, rank: int) -> list[Coming]:
    rows = np.flatnonzero(moving.target == rank)
    rows = rows[np.argsort(moving.need[rows], kind="stable")]
    columns = (moving.tile[rows], moving.source[rows], moving.need[rows], work.tile_bytes[moving.tile[rows]])
    return [Coming(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _going(moving: Moves, rank: int) -> dict[int, frozenset[int]]:
    rows = np.flatnonzero(moving.source == rank)
    found: dict[int, set[int]] = {}
    for tile, target in zip(moving.tile[rows].tolist(), moving.target[rows].tolist(), strict=True):
        found.setdefault(tile, set()).add(target)
    return {tile: frozenset(targets) for tile, targets in found.items()}


def outputs_of(work: Workload) -> NDArray[np.bool_]:
    """Which tiles belong to outputs."""
    roles = work.bound.program.arrays
    outputs = np.array([isinstance(roles[name], Out) for name in work.names], bool)
    return outputs[work.tile_array] if len(outputs) else np.zeros(0, bool)
