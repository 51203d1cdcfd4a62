"""A ledger put right, or made anew, from what is stored: by walking back from the outputs through parents."""

from __future__ import annotations

import itertools
from collections import defaultdict

from linnet.programs import In, Out, Task
from linnet.programs.shapes import operands
from linnet.tiles import TileKey
from linnet.workers.ledger import Waiting
from linnet.workers.names import name_of
from linnet.workers.parts import Parts
from linnet.workers.results import parsed_key, published
from linnet.workers.spec import JobSpec, tile_key


def rebuild(parts: Parts, spec: JobSpec) -> None:
    """Write a ledger that knows what the store holds, and what is still to be done.

    An attempt counts if all its tiles that anybody needs are stored. Tasks that only led to such tiles
    are done: nobody will ask for theirs.
    """
    bound = spec.bound
    stored: dict[TileKey, set[int]] = defaultdict(set)
    for key, _ in parts.store.list(f"{parts.address.job}/"):
        tile, token = parsed_key(key)
        if tile is not None and token is not None:
            stored[tile].add(token)
    todo = [task for tile in _results(spec) if (task := bound.writer(tile)) is not None]
    done: dict[Task, int] = {}
    undone: dict[Task, list[Task]] = {}
    while todo:
        task = todo.pop()
        if task in done or task in undone:
            continue
        token = _token(spec, task, stored)
        if token:
            done[task] = token
        else:
            undone[task] = bound.parents(task)
            todo += undone[task]
    waiting = [
        Waiting(
            name_of(task),
            len(parents),
            [name_of(parent) for parent in parents if parent in done],
        )
        for task, parents in undone.items()
    ]
    known = [(name_of(task), token) for task, token in done.items()]
    # What an undone task leads to and nobody needs again must not be run when that one is done.
    beyond = {
        child
        for task in undone
        for child in bound.children(task)
        if child not in done and child not in undone
    }
    known += [(name_of(task), 0) for task in beyond]
    parts.ledger.restore(spec.total, known, waiting)


def repair(parts: Parts, spec: JobSpec) -> None:
    """Let tasks run again whose outputs are not in the store, though they are done."""
    there = {key for key, _ in parts.store.list(f"{parts.address.job}/")}
    written = [(tile, task) for tile in _results(spec) if (task := spec.bound.writer(tile)) is not None]
    tokens = published(parts, [name_of(task) for _, task in written])
    for (tile, task), token in zip(written, tokens, strict=True):
        if token and tile_key(parts.address.job, tile, token) not in there:
            parents = [name_of(parent) for parent in spec.bound.parents(task)]
            parts.ledger.reopen(name_of(task), token, parents, "")


def _results(spec: JobSpec) -> list[TileKey]:
    """All tiles of the outputs."""
    return [
        TileKey(name, index)
        for name, role in spec.program.arrays.items()
        if isinstance(role, Out)
        for index in itertools.product(*map(range, spec.bound.grid(name)))
    ]


def _token(spec: JobSpec, task: Task, stored: dict[TileKey, set[int]]) -> int:
    """The newest attempt at a task of which every tile that is read or wanted is stored; 0: none."""
    wanted = [
        key
        for key in operands(spec.bound.call(task).outputs)
        if isinstance(spec.program.arrays[key.array], Out | In) or spec.bound.readers(key)
    ]
    if not wanted:
        return 0
    return max((t for t in stored[wanted[0]] if all(t in stored[key] for key in wanted)), default=0)
