"""The protocol of stateless workers: every way small jobs can go, and random ways of larger ones."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linnet.testing import exploration
from linnet.testing.clock import Clock
from linnet.testing.exploration import explored
from linnet.testing.model_ledger import ModelLedger
from linnet.testing.passing_time import TimedDatabase
from linnet.testing.protocol import LEASE, World
from linnet.workers.embedded import EmbeddedLedger, EmbeddedQueue
from linnet.workers.ledger import Completed

CHAIN = {"0.0": [], "0.1": ["0.0"]}
FORK = {"0.0": [], "0.1": ["0.0"], "0.2": ["0.0"]}
JOIN = {"0.0": [], "0.1": [], "0.2": ["0.0", "0.1"]}
DIAMOND = {"0.0": [], "0.1": ["0.0"], "0.2": ["0.0"], "0.3": ["0.1", "0.2"]}
FIVE = {**DIAMOND, "0.4": ["0.0", "0.3"]}


def fine(parents, workers, faults, **more):
    found = explored(parents, workers, faults, **more)
    assert found.stuck == []
    assert found.ends > 0
    return found.states


# ---- every way


def test_a_chain_with_a_fault_anywhere():
    assert fine(CHAIN, workers=2, faults=1) > 500


def test_undisturbed():
    assert fine(JOIN, workers=2, faults=0) > 50
    assert fine(FORK, workers=2, faults=0, page=10) > 50


def test_a_lost_tile():
    assert fine(CHAIN, workers=1, faults=1, losses=1) > 200


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parents", "faults", "losses"),
    [(FORK, 1, 0), (JOIN, 1, 0), (CHAIN, 2, 0), (CHAIN, 1, 1), (DIAMOND, 0, 0)],
)
def test_two_workers(parents, faults, losses):
    assert fine(parents, workers=2, faults=faults, losses=losses) > 300


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("parents", "workers", "faults", "losses"),
    [
        (CHAIN, 3, 1, 1),
        (CHAIN, 2, 3, 0),
        (CHAIN, 2, 2, 1),
        (FORK, 2, 1, 1),
        (JOIN, 2, 2, 0),
        (DIAMOND, 2, 1, 0),
        (FIVE, 2, 0, 1),
        (FIVE, 2, 1, 0),
        (FORK, 3, 1, 0),
    ],
)
def test_more_of_everything(parents, workers, faults, losses):
    assert fine(parents, workers, faults, losses=losses) > 5000


# ---- wrong ledgers are found out


class NeverAgain(ModelLedger):
    """Forgets what is ready once it was told: who dies after `complete` takes its children along."""

    def _complete(self, one):
        before = {name for name, task in self._tasks.items() if task.ready}
        done = super()._complete(one)
        return Completed(done.token, tuple(name for name in done.ready if name not in before))

    def overdue(self, seconds, limit):
        return []

    def copy(self):
        return as_class(NeverAgain, super().copy())


class Hasty(ModelLedger):
    """Throws tiles away when the first reader is done."""

    def _readers(self, name):
        return []

    def copy(self):
        return as_class(Hasty, super().copy())


class LastWins(ModelLedger):
    """Publishes whatever comes last."""

    def _complete(self, one):
        done = super()._complete(one)
        self._tasks[one.name].token = one.token
        return Completed(one.token, done.ready)

    def copy(self):
        return as_class(LastWins, super().copy())


class Counting(ModelLedger):
    """Counts completions instead of remembering who made them."""

    def _complete(self, one):
        twice = self._task(one.name).done and one.last
        done = super()._complete(one)
        if twice:
            self._running.done += 1
        return done

    def copy(self):
        return as_class(Counting, super().copy())


def as_class(kind, made):
    made.__class__ = kind
    return made


@pytest.mark.parametrize(
    ("ledger", "parents", "workers"),
    [(NeverAgain, CHAIN, 1), (Hasty, FORK, 1), (LastWins, CHAIN, 2), (Counting, CHAIN, 2)],
)
def test_a_wrong_ledger_is_found_out(monkeypatch, ledger, parents, workers):
    monkeypatch.setattr(exploration, "ModelLedger", ledger)
    try:
        found = explored(parents, workers, faults=1)
    except AssertionError:
        return
    assert found.stuck


# ---- random ways, on the embedded queue and ledger


@st.composite
def programs(draw):
    """Up to eight tasks, each waiting for some of those before it."""
    names = [f"0.{i}" for i in range(draw(st.integers(2, 8)))]
    return {name: [each for each in names[:i] if draw(st.booleans())] for i, name in enumerate(names)}


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=15)
@given(parents=programs(), data=st.data())
def test_random_ways(parents, data):
    """Workers act in any order; they die, come late, lose tiles; left alone, they finish the job."""
    random = data.draw(st.randoms(use_true_random=False))
    with tempfile.TemporaryDirectory() as folder:
        clock = Clock()
        database = TimedDatabase(Path(folder) / "job.db", clock)
        ledger, queue = EmbeddedLedger(database), EmbeddedQueue(database, most_deliveries=10**6)
        world = World(parents, ledger, queue, workers=3, page=2)
        world.start()
        for _ in range(120):
            disturb(world, clock, random)
        finish(world, clock)
        world.check_finished()
        assert ledger.status().done == len(parents)
        assert unclaimed(world, clock) == set()
        database.close()


def disturb(world, clock, random):
    """A step of somebody, or a fault."""
    worker = random.randrange(len(world.hands))
    what = random.random()
    if what < 0.8:
        act(world, worker)
    elif what < 0.87:
        world.die(worker)
    elif what < 0.93:
        clock.later(LEASE)
    elif what < 0.96:
        world.hear_of_overdue()
    elif world.tiles:
        lose(world, random.choice(sorted(world.tiles)))


def lose(world, tile):
    """A tile goes, unless it is a result: those the client looks after."""
    if world.children[tile[0]]:
        world.tiles.discard(tile)


def act(world, worker):
    """The next step of a worker, whatever it is; False if there is nothing to do."""
    if world.hands[worker].step != "idle":
        world.advance(worker)
        world.check_reads(world.hands[worker])
        return True
    leases = world.queue.lease(1, LEASE)
    if leases:
        world.take(worker, leases[0])
    else:
        world.sweep(worker)
    return world.hands[worker].step != "idle"


def finish(world, clock):
    """No more faults: the job must end; then workers only finish what they have in hand."""
    for _ in range(200 * len(world.parents)):
        over = world.ledger.status().state == "finished"
        workers = [i for i, hand in enumerate(world.hands) if not over or hand.step != "idle"]
        if over and not workers:
            return
        if sum(act(world, worker) for worker in workers) == 0:
            clock.later(LEASE)
            world.hear_of_overdue()
    raise AssertionError(f"the job does not end: {world.ledger.status()}")


def unclaimed(world, clock):
    """Tiles that were published, are no result, and are stored though nobody needs them."""
    clock.later(LEASE)
    for _ in range(2):
        world.sweep(0)
        if world.hands[0].step != "idle":
            world.advance(0)
    published = set(zip(world.parents, world.ledger.published(list(world.parents)), strict=True))
    return {tile for tile in world.tiles & published - world.forgotten if world.children[tile[0]]}
