"""Every way a small job can go: all orders of all workers' steps, with a few faults anywhere between them.

The world is that of `linnet.testing.protocol`, on the model queue and ledger, whose states are
compared and copied. Faults: a worker dies; a lease ends though its holder lives and goes on; a task
is run beside another; ready tasks are put once more; a published tile is lost. Beyond those, time passes
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
from linnet.testing.protocol import LEASE, Hand, World
from linnet.workers.queue import Entry

Modelled = World[ModelLedger, ModelQueue]
Change = Callable[[Modelled], None]


class Explored(NamedTuple):
    """What was found."""

    states: int
    ends: int
    """States in which the job is finished and everybody idle."""
    stuck: list[object]
    """States from which no such end can be reached without faults."""


def explored(
    parents: Mapping[str, Sequence[str]], workers: int, faults: int, *, losses: int = 0, page: int = 1
) -> Explored:
    """Go through all states of a job.

    >>> explored({"0.0": [], "0.1": ["0.0"]}, workers=1, faults=1).stuck
    []
    """
    first = World(
        parents, ModelLedger(_stopped), ModelQueue(_stopped, most_deliveries=10**6), workers, page=page
    )
    first.start()
    known = {_key(first, faults, losses): 0}
    before: dict[int, list[int]] = defaultdict(list)
    ends: list[int] = []
    todo = [(first, faults, losses, 0)]
    while todo:
        world, faults_left, losses_left, number = todo.pop()
        if _is_end(world):
            world.check_finished()
            ends.append(number)
        for change, fault, loss in _changes(world, faults_left, losses_left):
            after = _changed(world, change)
            left = faults_left - fault, losses_left - loss
            key = _key(after, *left)
            if key not in known:
                known[key] = len(known)
                todo.append((after, *left, known[key]))
            if not fault and not loss:
                before[known[key]].append(number)
    return Explored(len(known), len(ends), _stuck(known, before, ends))


def _stopped() -> float:
    return 0.0


def _changed(world: Modelled, change: Change) -> Modelled:
    after = copy(world)
    after.ledger, after.queue = world.ledger.copy(), world.queue.copy()
    after.hands, after.tiles, after.forgotten = list(world.hands), set(world.tiles), set()
    change(after)
    for hand in after.hands:
        after.check_reads(hand)
    done = [name for name in world.parents if after.ledger.is_done(name)]
    assert after.ledger.status().done == len(done), "the count of done tasks is wrong"
    for name, old, new in zip(world.parents, _published(world), _published(after), strict=True):
        assert not old or new in (0, old), f"{name} was published under {old}, then under {new}"
    assert (after.ledger.status().state == "finished") == (len(done) == len(world.parents))
    return after


def _published(world: Modelled) -> list[int]:
    return world.ledger.published(list(world.parents))


def _changes(world: Modelled, faults: int, losses: int) -> Iterator[tuple[Change, int, int]]:
    """What can happen next, each with the faults and losses it takes."""
    names = world.queue.names()
    free = [name for name, leased in names.items() if not leased]
    idle = [i for i, hand in enumerate(world.hands) if hand.step == "idle"]
    for worker, hand in enumerate(world.hands):
        if hand.step != "idle":
            yield (lambda w, i=worker: w.advance(i)), 0, 0
            if faults:
                yield (lambda w, i=worker: w.die(i)), 1, 0
    if idle:
        for name in free:
            yield (lambda w, i=idle[0], n=name: _take(w, i, n)), 0, 0
        yield (lambda w, i=idle[0]: _sweep(w, i)), 0, 0
    if len(idle) == len(world.hands) and not free and world.ledger.status().state == "running":
        yield _wait, 0, 0
    if faults:
        yield from _faults(world, [name for name in names if name not in free], idle)
    if losses:
        for tile in world.tiles:
            waiting = any(not world.ledger.is_done(child) for child in world.children[tile[0]])
            if waiting:
                yield (lambda w, t=tile: w.tiles.discard(t)), 0, 1


def _faults(world: Modelled, leased: list[str], idle: list[int]) -> Iterator[tuple[Change, int, int]]:
    for name in leased:
        yield (lambda w, n=name: w.queue.expire(n)), 1, 0
        if idle:
            yield (lambda w, i=idle[0], n=name: w.begin_extra(i, n)), 1, 0
    if world.ledger.copy().overdue(0, 1000):
        yield (lambda w: w.hear_of_overdue()), 1, 0


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
    return idle and world.ledger.status().state == "finished"


def _key(world: Modelled, faults: int, losses: int) -> object:
    """The state, with tokens numbered by age: states that differ in nothing else are one."""
    queue = world.queue
    state, tasks, garbage = world.ledger.standing()
    tokens = {token for _, token in (*garbage, *world.tiles)}
    for task in tasks:
        tokens |= {task.token, task.lost}
    for hand in world.hands:
        tokens |= {hand.token, *hand.published, *(token for _, token in hand.garbage)}
    rank = {token: number for number, token in enumerate(sorted({0, *tokens}))}
    hands = tuple(sorted(_hand_key(hand, rank, queue) for hand in world.hands))
    named = tuple(task._replace(token=rank[task.token], lost=rank[task.lost]) for task in tasks)
    thrown = tuple((name, rank[token]) for name, token in garbage)
    tiles = frozenset((name, rank[token]) for name, token in world.tiles)
    return state, named, thrown, tiles, hands, frozenset(queue.names().items()), faults, losses


def _hand_key(hand: Hand, rank: Mapping[int, int], queue: ModelQueue) -> tuple[object, ...]:
    current = 0 if hand.lease is None else 1 + queue.is_current(hand.lease)
    published = tuple(rank[token] for token in hand.published)
    garbage = tuple((name, rank[token]) for name, token in hand.garbage)
    return (
        hand.step,
        hand.name,
        current,
        rank[hand.token],
        published,
        hand.ready,
        hand.page,
        hand.late,
        hand.void,
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
