"""A ledger put right, or made anew, from what is stored: by walking back from the outputs through parents."""

from __future__ import annotations

from collections import defaultdict

from linnet.programs import Task
from linnet.tiles import TileKey
from linnet.workers.attempt import Calls
from linnet.workers.ledger import Waiting
from linnet.workers.names import name_of
from linnet.workers.parts import Parts
from linnet.workers.results import attempted, output_names, published, written
from linnet.workers.spec import JobSpec, tile_key


def rebuild(parts: Parts, spec: JobSpec) -> None:
    """Write a ledger that knows what the store holds, and what is still to be done.

    An attempt counts if all its tiles that anybody needs are stored. Tasks that only led to such tiles
    are done: nobody will ask for theirs.
    """
    bound, calls = spec.bound, Calls(spec, parts.address.job)
    stored: dict[TileKey, set[int]] = defaultdict(set)
    for _, tile, token in attempted(parts):
        stored[tile].add(token)
    todo = list(written(spec, *output_names(spec)).values())
    done: dict[Task, int] = {}
    undone: dict[Task, list[Task]] = {}
    while todo:
        task = todo.pop()
        if task in done or task in undone:
            continue
        token = _token(calls, task, stored)
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
    wanted = written(spec, *output_names(spec))
    tokens = published(parts, map(name_of, wanted.values()))
    for (tile, task), token in zip(wanted.items(), tokens, strict=True):
        if token and tile_key(parts.address.job, tile, token) not in there:
            parents = [name_of(parent) for parent in spec.bound.parents(task)]
            parts.ledger.reopen(name_of(task), token, parents, "")


def _token(calls: Calls, task: Task, stored: dict[TileKey, set[int]]) -> int:
    """The newest attempt at a task of which every tile that is read or wanted is stored; 0: none."""
    wanted = [key for key in calls.written(calls.bound.call(task)) if calls.is_needed(key)]
    if not wanted:
        return 0
    return max((t for t in stored[wanted[0]] if all(t in stored[key] for key in wanted)), default=0)
