"""Every way a small job can go: all orders of all workers' steps, with a few faults anywhere between them.

The world is that of `linnet.testing.protocol`, on the model queue and ledger, whose states are
compared and copied. Faults: a worker dies, or a client that resumes; a lease ends though its holder lives and
goes on; a task is run beside another; ready tasks are put once more. Beside them a published tile may be
lost, the answer to a step, and the job may be cancelled, or resumed while it runs. Beyond those, time passes
only when nothing else can happen: then all leases end and overdue tasks are put again.

Found are: the states, and those from which the job can end no more without further faults.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from typing import NamedTuple

from linnet.testing.model_ledger import ModelLedger
from linnet.testing.model_queue import ModelQueue
from linnet.testing.protocol import LEASE, Client, Hand, Second, Tile, World
from linnet.workers.queue import Entry

Modelled = World[ModelLedger, ModelQueue]
Change = Callable[[Modelled], None]


class Left(NamedTuple):
    """What may still go wrong."""

    faults: int = 0
    losses: int = 0
    """Of published tiles."""
    unheard: int = 0
    """Answers that are lost."""
    halts: int = 0
    """Cancellations, and resumptions of a job that runs."""


NOTHING, FAULT, LOSS, UNHEARD, HALT = Left(), Left(1), Left(0, 1), Left(0, 0, 1), Left(0, 0, 0, 1)


class Explored(NamedTuple):
    """What was found."""

    states: int
    ends: int
    """States in which the job is finished and everybody idle."""
    stuck: list[object]
    """States from which no such end can be reached without faults."""


def explored(
    parents: Mapping[str, Sequence[str]],
    workers: int,
    faults: int,
    *,
    losses: int = 0,
    unheard: int = 0,
    halts: int = 0,
    page: int = 1,
    second: Second | None = None,
    cache: bool = False,
) -> Explored:
    """Go through all states of a job, with so many faults, lost tiles, lost answers and halts.

    >>> explored({"0.0": [], "0.1": ["0.0"]}, workers=1, faults=1).stuck
    []
    """
    ledger, queue = ModelLedger(_stopped), ModelQueue(_stopped, most_deliveries=10**6)
    first = World(parents, ledger, queue, workers, page=page, second=second, cache=cache)
    first.start()
    all_left = Left(faults, losses, unheard, halts)
    known = {_key(first, all_left): 0}
    before: dict[int, list[int]] = defaultdict(list)
    ends: list[int] = []
    todo = [(first, all_left, 0)]
    while todo:
        world, left, number = todo.pop()
        if _is_end(world):
            world.check_finished()
            ends.append(number)
        for change, cost in _changes(world, left):
            after = _changed(world, change)
            rest = Left(*(have - less for have, less in zip(left, cost, strict=True)))
            key = _key(after, rest)
            if key not in known:
                known[key] = len(known)
                todo.append((after, rest, known[key]))
            if cost == NOTHING:
                before[known[key]].append(number)
    return Explored(len(known), len(ends), _stuck(known, before, ends))


def _stopped() -> float:
    return 0.0


def _changed(world: Modelled, change: Change) -> Modelled:
    after = copy(world)
    after.ledger, after.queue = world.ledger.copy(), world.queue.copy()
    after.hands, after.tiles, after.forgotten = list(world.hands), set(world.tiles), set()
    after.cached = None if world.cached is None else set(world.cached)
    change(after)
    for hand in after.hands:
        after.check_reads(hand)
    after.check_state([name for name in world.parents if after.ledger.is_done(name)])
    for name, old, new in zip(world.parents, _published(world), _published(after), strict=True):
        assert not old or new in (0, old), f"{name} was published under {old}, then under {new}"
    return after


def _published(world: Modelled) -> list[int]:
    return world.ledger.published(list(world.parents))


def _changes(world: Modelled, left: Left) -> Iterator[tuple[Change, Left]]:
    """What can happen next, each with what it takes of that which may go wrong."""
    names = world.queue.names()
    free = [name for name, leased in names.items() if not leased]
    idle = [i for i, hand in enumerate(world.hands) if hand.step == "idle"]
    for worker, hand in enumerate(world.hands):
        if hand.step != "idle":
            for verdict in world.verdicts(hand):
                yield (lambda w, i=worker, v=verdict: w.advance(i, v)), NOTHING
            if left.faults:
                yield (lambda w, i=worker: w.die(i)), FAULT
            if left.unheard:
                yield (lambda w, i=worker: w.advance_unheard(i)), UNHEARD
    if idle:
        for name in free:
            yield (lambda w, i=idle[0], n=name: _take(w, i, n)), NOTHING
        yield (lambda w, i=idle[0]: _sweep(w, i)), NOTHING
    if len(idle) == len(world.hands) and not free and world.ledger.status().state == "running":
        yield _wait, NOTHING
    if left.faults:
        yield from _faults(world, [name for name in names if name not in free], idle)
    if left.losses:
        for tile in world.tiles:
            waiting = any(not world.ledger.is_done(child) for child in world.children[tile[0]])
            if waiting:
                yield (lambda w, t=tile: _lose(w, t)), LOSS
    yield from _client(world, left)


def _faults(world: Modelled, leased: list[str], idle: list[int]) -> Iterator[tuple[Change, Left]]:
    for name in leased:
        yield (lambda w, n=name: w.queue.expire(n)), FAULT
        if idle:
            yield (lambda w, i=idle[0], n=name: w.begin_extra(i, n)), FAULT
    if world.ledger.copy().overdue(0, 1000):
        yield (lambda w: w.hear_of_overdue()), FAULT


def _client(world: Modelled, left: Left) -> Iterator[tuple[Change, Left]]:
    """What a client does that stops the job, or resumes it."""
    state = world.ledger.status().state
    if world.client.step != "idle":
        yield (lambda w: w.advance_client()), NOTHING
        if left.faults:
            yield _client_dies, FAULT
    elif state == "cancelled":
        yield (lambda w: w.resume()), NOTHING
    elif state == "running" and left.halts:
        yield (lambda w: w.cancel()), HALT
        yield (lambda w: w.resume()), HALT


def _client_dies(world: Modelled) -> None:
    world.client = Client()


def _lose(world: Modelled, tile: Tile) -> None:
    """A tile is lost in the store; a cache may have it."""
    world.tiles.discard(tile)


def _take(world: Modelled, worker: int, name: str) -> None:
    (lease,) = world.queue.put([Entry(name)], claim=1, seconds=LEASE)
    world.take(worker, lease)


def _sweep(world: Modelled, worker: int) -> None:
    world.sweep(worker)
    done = [name for name in world.parents if world.ledger.is_done(name)]
    world.check_unneeded(world.hands[worker].garbage, done)


def _wait(world: Modelled) -> None:
    """Time passes: leases end, and what was forgotten is put again."""
    for name in world.queue.names():
        world.queue.expire(name)
    world.hear_of_overdue()


def _is_end(world: Modelled) -> bool:
    idle = all(hand.step == "idle" for hand in world.hands)
    return idle and world.client.step == "idle" and world.ledger.status().state == "finished"


def _key(world: Modelled, left: Left) -> object:
    """The state, with tokens numbered by age: states that differ in nothing else are one."""
    queue = world.queue
    state, tasks, garbage = world.ledger.standing()
    cached = world.cached or set[Tile]()
    tokens = {token for _, token in (*garbage, *world.tiles, *cached)}
    for task in tasks:
        tokens |= {task.token, task.lost}
    for hand in world.hands:
        tokens |= {hand.token, *hand.published, *(token for _, token in hand.garbage)}
    rank = {token: number for number, token in enumerate(sorted({0, *tokens}))}
    epoch = world.ledger.status().epoch
    hands = tuple(sorted(_hand_key(hand, rank, queue, epoch) for hand in world.hands))
    named = tuple(task._replace(token=rank[task.token], lost=rank[task.lost]) for task in tasks)
    thrown = tuple((name, rank[token]) for name, token in garbage)
    tiles = frozenset((name, rank[token]) for name, token in world.tiles)
    held = frozenset((name, rank[token]) for name, token in cached)
    names = frozenset(queue.names().items())
    return state, named, thrown, tiles, held, hands, world.client, names, left


def _hand_key(hand: Hand, rank: Mapping[int, int], queue: ModelQueue, epoch: int) -> tuple[object, ...]:
    current = 0 if hand.lease is None else 1 + queue.is_current(hand.lease)
    published = tuple(rank[token] for token in hand.published)
    garbage = tuple((name, rank[token]) for name, token in hand.garbage)
    return (
        hand.step,
        hand.name,
        current,
        rank[hand.token],
        hand.token >> 32 == epoch,  # what is of an old epoch changes nothing
        published,
        hand.ready,
        hand.page,
        hand.late,
        hand.void,
        hand.verdict,
        garbage,
    )


def _stuck(known: Mapping[object, int], before: Mapping[int, list[int]], ends: Sequence[int]) -> list[object]:
    """States from which no end is reached."""
    good = set(ends)
    todo = list(ends)
    while todo:
        for number in before.get(todo.pop(), ()):
            if number not in good:
                good.add(number)
                todo.append(number)
    return [key for key, number in known.items() if number not in good]
