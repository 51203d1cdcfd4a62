"""The protocol of stateless workers, one step at a time, on any queue and ledger.

A `World` holds a queue, a ledger, a set of stored tiles and the hands of a few workers. Every step of
every worker is a call of its own, so that whoever drives it can let others act, or the worker die,
between any two. The steps are those of `workers.worker`:

    lease ─▶ begin ─▶ read, compute, write ─▶ complete a page ─▶ put the ready ─▶ … ─▶ remove the entry

A job may have a second part: the worker that runs the task which decides sees a verdict, and tells it
with the last page of children; then a seed leads to the tasks of the second part.

The answer to a step may be lost: then the worker takes it again. A client may stop the job and resume it,
while workers are in the middle of anything. Tiles that were read or written may be held in a cache of the
host.

After each step the world checks what must never be: a tile read that was not published, a tile deleted
that somebody needs or that is published, a job finished that is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, Literal, NamedTuple, TypeVar

from linnet.workers.ledger import Child, Completion, Ledger, Start
from linnet.workers.queue import Entry, Lease, Queue

LEASE = 60.0
SEED = "@1"
"""Leads to the second part of a job."""
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
    verdict: bool = False
    """Whether what it computed calls for the second part."""


class Client(NamedTuple):
    """What a client that resumes the job has in hand."""

    step: Literal["idle", "resumed", "cleared"] = "idle"
    ready: tuple[str, ...] = ()
    """What it is about to put into the queue."""


class Second(NamedTuple):
    """The second part of a job."""

    decider: str
    """The task of the first part that decides."""
    parents: Mapping[str, Sequence[str]]
    """Of each task of the second part."""
    verdicts: tuple[bool, ...] = (True,)
    """What attempts at the decider may find: several, if they need not agree."""


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
        second: Second | None = None,
        cache: bool = False,
    ) -> None:
        self.first: Mapping[str, Sequence[str]] = parents
        self.second: Second | None = second
        self.parents = parents = {**parents, **(second.parents if second is not None else {})}
        self.children = {name: [c for c, waits in parents.items() if name in waits] for name in parents}
        if second is not None:
            self.children[SEED] = [name for name, waits in second.parents.items() if not waits]
        self.ledger, self.queue = ledger, queue
        self.hands: list[Hand] = [Hand()] * workers
        self.client: Client = Client()
        self.tiles: set[Tile] = set()
        self.cached: set[Tile] | None = set() if cache else None
        """Tiles that the host holds; None: it has no cache."""
        self.forgotten: set[Tile] = set()
        """Tiles that a worker was told to delete when it died: they stay until the job is deleted."""
        self._page = page

    def start(self) -> None:
        """Make the job, with its first tasks in the queue."""
        self.ledger.create(len(self.first))
        (seed,) = self.ledger.begin([Start("@")], "client/0")
        roots = [Child(name, 0) for name, waits in self.first.items() if not waits]
        (done,) = self.ledger.complete([Completion("@", seed.token, roots, counted=False)])
        self.queue.put([Entry(name) for name in done.ready])

    # ---- the second part

    def second_counts(self) -> bool:
        """Whether it was decided that the second part is run."""
        return self.ledger.status().total > len(self.first)

    def wanted(self) -> list[str]:
        """The tasks that must be done for the job to be finished."""
        return list(self.parents if self.second_counts() else self.first)

    def verdicts(self, hand: Hand) -> tuple[bool, ...]:
        """What may be found when this worker makes its next step."""
        decides = self.second is not None and (hand.step, hand.name) == ("begun", self.second.decider)
        return self.second.verdicts if self.second is not None and decides else (False,)

    def _waits(self, name: str) -> Sequence[str]:
        """What a task waits for; the seed of the second part for the one that decides."""
        return [self.second.decider] if self.second is not None and name == SEED else self.parents[name]

    def _needs(self, name: str, child: str) -> int:
        """How many tasks a child waits for; those a seed leads to wait for that alone."""
        return 1 if name == SEED else len(self.parents[child])

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

    def advance(self, worker: int, verdict: bool | None = None) -> None:
        """The next step of a worker that has something in hand; a verdict not given is the first possible."""
        hand = self.hands[worker]
        verdict = self.verdicts(hand)[0] if verdict is None else verdict
        step = {
            "leased": self._begin,
            "begun": self._run,
            "lost": self._put_lost,
            "written": self._complete,
            "completed": self._put,
            "put": self._remove,
            "sweeping": self._delete,
        }[hand.step]
        self.hands[worker] = step(hand._replace(verdict=hand.verdict or verdict), worker)

    def advance_unheard(self, worker: int) -> None:
        """The next step of a worker, of which it does not hear that it was taken."""
        hand = self.hands[worker]
        self.advance(worker)
        self.hands[worker] = hand

    def _begin(self, hand: Hand, worker: int) -> Hand:
        start = Start(hand.name, self._waits(hand.name), extra=hand.lease is None)
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
        """Read, compute and write; or find that tiles are missing. A seed does nothing of that."""
        if hand.name == SEED:
            return hand._replace(step="written")
        reads = list(zip(self.parents[hand.name], hand.published, strict=True))
        found = [self.read(tile) for tile in reads]
        lost = [tile for tile, got in zip(reads, found, strict=True) if got is None]
        if not lost:
            assert found == reads, f"{hand} reads {found}, but was told {reads}"
            self.tiles.add((hand.name, hand.token))
            self._hold([*reads, (hand.name, hand.token)])
            return hand._replace(step="written")
        if self.ledger.published([hand.name])[0]:
            return self._dropped(hand)
        opened = {
            name: self.ledger.reopen(name, token, self.parents[name], hand.name) for name, token in lost
        }
        ready = tuple(name for name, again in opened.items() if again)
        return hand._replace(step="lost", ready=ready, late=not all(opened.values()))

    def read(self, tile: Tile) -> Tile | None:
        """What a worker gets that asks for a tile: from the cache of its host, or from the store."""
        held = self.cached is not None and tile in self.cached
        return tile if held or tile in self.tiles else None

    def _hold(self, tiles: Sequence[Tile]) -> None:
        if self.cached is not None:
            self.cached |= set(tiles)

    def _thrown_away(self, tiles: Sequence[Tile]) -> None:
        self.tiles -= set(tiles)
        if self.cached is not None:
            self.cached -= set(tiles)

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
        page = [Child(each, self._needs(hand.name, each)) for each in children[start : start + self._page]]
        last = start + self._page >= len(children)
        told = Completion(
            hand.name, hand.token, page, self._waits(hand.name), last=last, counted=hand.name != SEED
        )
        if last and hand.verdict:
            told = told._replace(chosen=[Child(SEED, 1)], total=len(self.parents))
        (done,) = self.ledger.complete([told])
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
            published = self.ledger.published([hand.name])
            assert [hand.token] != published, f"{hand} deletes the tile that is published"
            self._thrown_away([(hand.name, hand.token)])
        if hand.void and hand.lease is not None:
            self.queue.release([hand.lease])
            return Hand()
        return self._dropped(hand)

    def _delete(self, hand: Hand, worker: int) -> Hand:
        """Delete what nobody needs; results are kept."""
        self._thrown_away([tile for tile in hand.garbage if self.children[tile[0]]])
        return Hand()

    # ---- the client

    def cancel(self) -> None:
        """A client stops the job."""
        self.ledger.halt("cancelled", "by its client")

    def resume(self) -> None:
        """A client begins to resume the job, whatever its state is."""
        self.client = Client("resumed", tuple(self.ledger.resume()))

    def advance_client(self) -> None:
        """The next step of a client that resumes the job."""
        if self.client.step == "resumed":
            self.queue.clear()
            self.client = self.client._replace(step="cleared")
        else:
            self.queue.put([Entry(name) for name in self.client.ready])
            self.client = Client()

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
            assert len(hand.published) == len(self._waits(hand.name)), f"{hand} does not know all tokens"
            assert 0 not in hand.published, f"{hand} reads a tile that nobody published"

    def check_unneeded(self, told: Sequence[Tile], done: Sequence[str]) -> None:
        """Of tiles to be deleted, all children of their task are done, or another token is published."""
        published = dict(zip(self.parents, self.ledger.published(list(self.parents)), strict=True))
        for name, token in told:
            if published[name] == token:
                waiting = [child for child in self.children[name] if child not in done]
                assert not waiting, f"the tile {(name, token)} would be deleted, but {waiting} may read it"

    def check_state(self, done: Sequence[str]) -> None:
        """The job is finished when all that is wanted is done, and never more than that is."""
        wanted = self.wanted()
        assert set(done) <= set(wanted), f"{done} are done, but only {wanted} are wanted"
        assert self.ledger.status().done == len(done), "the count of done tasks is wrong"
        state = self.ledger.status().state
        assert state == "cancelled" or (state == "finished") == (len(done) == len(wanted))

    def check_finished(self) -> None:
        """The job is finished: it was decided as it had to be, and every result is there."""
        if self.second is not None:
            assert self.second_counts() in self.second.verdicts, "the second part was decided wrongly"
        names = [name for name in self.wanted() if not self.children[name]]
        for tile in zip(names, self.ledger.published(names), strict=True):
            assert tile in self.tiles, f"the job is finished, but {tile} is not stored"
