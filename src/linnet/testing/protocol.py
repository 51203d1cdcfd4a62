"""The protocol of stateless workers, one step at a time, on any queue and ledger.

A `World` holds a queue, a ledger, a set of stored tiles and the hands of a few workers. Every step of
every worker is a call of its own, so that whoever drives it can let others act, or the worker die,
between any two. The steps are those of `workers.worker`:

    lease ─▶ begin ─▶ read, compute, write ─▶ complete a page ─▶ put the ready ─▶ … ─▶ remove the entry

After each step the world checks what must never be: a tile read that was not published, a tile deleted
that somebody needs, a job finished that is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, Literal, NamedTuple, TypeVar

from linnet.workers.ledger import Child, Completion, Ledger, Start
from linnet.workers.queue import Entry, Lease, Queue

LEASE = 60.0
L = TypeVar("L", bound=Ledger)
Q = TypeVar("Q", bound=Queue)
Step = Literal["idle", "leased", "begun", "lost", "written", "completed", "put", "sweeping"]
Tile = tuple[str, int]
"""A task and the token of the attempt that wrote its tile."""


class Hand(NamedTuple):
    """What one worker has in hand: everything that is lost when it dies."""

    step: Step = "idle"
    name: str = ""
    lease: Lease | None = None
    token: int = 0
    published: tuple[int, ...] = ()
    ready: tuple[str, ...] = ()
    """What it is about to put into the queue."""
    page: int = 0
    late: bool = False
    """Whether another attempt was published; or, after a loss, whether to begin again."""
    void: bool = False
    """Whether the attempt counts no more, though no other may have been published."""
    garbage: tuple[Tile, ...] = ()


class World(Generic[L, Q]):
    """A program, given as the parents of each task, and all that runs it."""

    def __init__(
        self,
        parents: Mapping[str, Sequence[str]],
        ledger: L,
        queue: Q,
        workers: int,
        *,
        page: int = 1,
    ) -> None:
        self.parents = parents
        self.children = {name: [c for c, waits in parents.items() if name in waits] for name in parents}
        self.ledger, self.queue = ledger, queue
        self.hands = [Hand()] * workers
        self.tiles: set[Tile] = set()
        self.forgotten: set[Tile] = set()
        """Tiles that a worker was told to delete when it died: they stay until the job is deleted."""
        self._page = page

    def start(self) -> None:
        """Make the job, with its first tasks in the queue."""
        self.ledger.create(len(self.parents))
        (seed,) = self.ledger.begin([Start("@")], "client/0")
        roots = [Child(name, 0) for name, waits in self.parents.items() if not waits]
        (done,) = self.ledger.complete([Completion("@", seed.token, roots, counted=False)])
        self.queue.put([Entry(name) for name in done.ready])

    # ---- the steps of a worker

    def take(self, worker: int, lease: Lease) -> None:
        """A worker has got a lease."""
        self.hands[worker] = Hand("leased", lease.name, lease)

    def begin_extra(self, worker: int, name: str) -> None:
        """A worker runs a task beside another that seems slow, without a lease."""
        self.hands[worker] = Hand("leased", name)

    def sweep(self, worker: int) -> None:
        """A worker asks which tiles nobody needs."""
        told = self.ledger.discarded(0, 100)
        self.hands[worker] = Hand("sweeping", garbage=tuple(told)) if told else Hand()

    def advance(self, worker: int) -> None:
        """The next step of a worker that has something in hand."""
        hand = self.hands[worker]
        step = {
            "leased": self._begin,
            "begun": self._run,
            "lost": self._put_lost,
            "written": self._complete,
            "completed": self._put,
            "put": self._remove,
            "sweeping": self._delete,
        }[hand.step]
        self.hands[worker] = step(hand, worker)

    def _begin(self, hand: Hand, worker: int) -> Hand:
        start = Start(hand.name, self.parents[hand.name], extra=hand.lease is None)
        (begun,) = self.ledger.begin([start], f"host/{worker}")
        if begun.state == "run":
            return hand._replace(step="begun", token=begun.token, published=begun.published)
        if begun.state == "halt" and hand.lease is not None:
            self.queue.release([hand.lease])
            return Hand()
        return self._dropped(hand)

    def _dropped(self, hand: Hand) -> Hand:
        if hand.lease is not None:
            self.queue.remove([hand.lease])
        return Hand()

    def _run(self, hand: Hand, worker: int) -> Hand:
        """Read, compute and write; or find that tiles are missing."""
        reads = list(zip(self.parents[hand.name], hand.published, strict=True))
        lost = [tile for tile in reads if tile not in self.tiles]
        if not lost:
            self.tiles.add((hand.name, hand.token))
            return hand._replace(step="written")
        if self.ledger.published([hand.name])[0]:
            return self._dropped(hand)
        opened = {
            name: self.ledger.reopen(name, token, self.parents[name], hand.name) for name, token in lost
        }
        ready = tuple(name for name, again in opened.items() if again)
        return hand._replace(step="lost", ready=ready, late=not all(opened.values()))

    def _put_lost(self, hand: Hand, worker: int) -> Hand:
        self.queue.put([Entry(name) for name in hand.ready])
        if not hand.late:
            return self._dropped(hand)
        self.ledger.forget(hand.name, hand.token)
        if hand.lease is not None:
            self.queue.release([hand.lease])
        return Hand()

    def _complete(self, hand: Hand, worker: int) -> Hand:
        """One page of children."""
        start = hand.page * self._page
        children = self.children[hand.name]
        page = [Child(each, len(self.parents[each])) for each in children[start : start + self._page]]
        last = start + self._page >= len(children)
        (done,) = self.ledger.complete(
            [Completion(hand.name, hand.token, page, self.parents[hand.name], last=last)]
        )
        return hand._replace(
            step="completed",
            ready=done.ready,
            page=-1 if last else hand.page + 1,
            late=hand.late or done.token != hand.token,
            void=hand.void or not done.token,
        )

    def _put(self, hand: Hand, worker: int) -> Hand:
        self.queue.put([Entry(name) for name in hand.ready])
        return hand._replace(step="put" if hand.page < 0 else "written", ready=())

    def _remove(self, hand: Hand, worker: int) -> Hand:
        if hand.late:
            self.tiles.discard((hand.name, hand.token))
        if hand.void and hand.lease is not None:
            self.queue.release([hand.lease])
            return Hand()
        return self._dropped(hand)

    def _delete(self, hand: Hand, worker: int) -> Hand:
        """Delete what nobody needs; results are kept."""
        self.tiles -= {tile for tile in hand.garbage if self.children[tile[0]]}
        return Hand()

    # ---- what may happen at any time

    def die(self, worker: int) -> None:
        """A worker loses all it has in hand."""
        self.forgotten |= set(self.hands[worker].garbage)
        self.hands[worker] = Hand()

    def hear_of_overdue(self) -> None:
        """Somebody puts all ready tasks into the queue again."""
        self.queue.put([Entry(name) for name in self.ledger.overdue(0, 1000)])

    # ---- what must hold

    def check_reads(self, hand: Hand) -> None:
        """A worker reads only what was published, and all of it."""
        if hand.step == "begun":
            assert len(hand.published) == len(self.parents[hand.name]), f"{hand} does not know all tokens"
            assert 0 not in hand.published, f"{hand} reads a tile that nobody published"

    def check_unneeded(self, told: Sequence[Tile], done: Sequence[str]) -> None:
        """Of tiles to be deleted, all children of their task are done, or another token is published."""
        published = dict(zip(self.parents, self.ledger.published(list(self.parents)), strict=True))
        for name, token in told:
            if published[name] == token:
                waiting = [child for child in self.children[name] if child not in done]
                assert not waiting, f"the tile {(name, token)} would be deleted, but {waiting} may read it"

    def check_finished(self) -> None:
        """The job is finished: every result is there."""
        names = [name for name, children in self.children.items() if not children]
        for tile in zip(names, self.ledger.published(names), strict=True):
            assert tile in self.tiles, f"the job is finished, but {tile} is not stored"
