"""A ledger put right, or made anew, from what is stored: by walking back from the outputs through parents."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from linnet.errors import DamagedTileError, MissingTileError
from linnet.programs import Task
from linnet.tiles import TileKey
from linnet.tiles.codec import decoded
from linnet.workers.array_specs import tile_key
from linnet.workers.attempt import Calls
from linnet.workers.job_parts import Parts
from linnet.workers.ledger import EVERY_STATEMENT, Waiting
from linnet.workers.names import name_of
from linnet.workers.results import attempted, kept_names, published, second_counts, written
from linnet.workers.second_parts import calls_for_more
from linnet.workers.spec import JobSpec
from linnet.workers.store import Store

_READERS = 8
"""Outputs that are read at a time."""


def rebuild(parts: Parts, spec: JobSpec) -> None:
    """Write a ledger that knows what the store holds, and what is still to be done.

    An attempt counts if all its tiles that anybody needs are stored. Tasks that only led to such tiles
    are done: nobody will ask for theirs. The second part of a job counts if a stored tile calls for it;
    otherwise none of its tasks is done, and whether it is run is still to be decided, or was.
    """
    bound, calls = spec.bound, Calls(spec, parts.folder)
    stored: dict[TileKey, set[int]] = defaultdict(set)
    for _, tile, token in attempted(parts):
        stored[tile].add(token)
    done: dict[Task, int] = {}
    if spec.gate is not None and (token := _calling(parts, spec, stored[spec.gate.tile])):
        done[spec.gate.decider(bound)] = token
    second = bool(done)
    todo = list(written(spec, *kept_names(spec, second=second)).values())
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
    if spec.gate is None or second:
        parts.ledger.restore(spec.total, known, waiting, EVERY_STATEMENT)
    else:
        parts.ledger.restore(spec.first_total, known, waiting, spec.gate.statement)


def repair(parts: Parts, spec: JobSpec) -> None:
    """Let tasks run again whose outputs are not in the store, or are damaged, though they are done.

    To know that, all outputs that are there are read, a few at a time.
    """
    there = {key for key, _ in parts.store.list(f"{parts.folder}/")}
    wanted = written(spec, *kept_names(spec, second=second_counts(parts, spec)))
    tokens = published(parts, map(name_of, wanted.values()))
    done = [(tile, task, token) for (tile, task), token in zip(wanted.items(), tokens, strict=True) if token]

    def is_sound(one: tuple[TileKey, Task, int]) -> bool:
        key = tile_key(parts.folder, one[0], one[2])
        return key in there and _is_sound(parts.store, key)

    with ThreadPoolExecutor(_READERS, "outputs") as pool:
        left = iter(done)
        while few := list(islice(left, 8 * _READERS)):
            sound = pool.map(is_sound, few)
            for (_, task, token), whole in zip(few, sound, strict=True):
                if not whole:
                    parents = [name_of(parent) for parent in spec.bound.parents(task)]
                    parts.ledger.reopen(name_of(task), token, parents, "")


def _is_sound(store: Store, key: str) -> bool:
    try:
        decoded(store.get(key), key)
    except (MissingTileError, DamagedTileError):
        return False
    return True


def _calling(parts: Parts, spec: JobSpec, tokens: set[int]) -> int:
    """The newest attempt at what decides whose stored tile calls for the second part; 0: none does.

    Tokens of tiles that cannot be read are taken out: these decide nothing, and are made again.
    """
    assert spec.gate is not None
    for token in sorted(tokens, reverse=True):
        key = tile_key(parts.folder, spec.gate.tile, token)
        try:
            if calls_for_more(decoded(parts.store.get(key), key)):
                return token
        except (MissingTileError, DamagedTileError):
            tokens.discard(token)
    return 0


def _token(calls: Calls, task: Task, stored: dict[TileKey, set[int]]) -> int:
    """The newest attempt at a task of which every tile that is read or wanted is stored; 0: none."""
    wanted = [key for key in calls.written(calls.bound.call(task)) if calls.is_needed(key)]
    if not wanted:
        return 0
    return max((t for t in stored[wanted[0]] if all(t in stored[key] for key in wanted)), default=0)
