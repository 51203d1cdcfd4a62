"""The protocol of stateless workers: every way small jobs can go, and random ways of larger ones."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_graphs import CHAIN, DIAMOND, EITHER, FIVE, FORK, JOIN, MORE, MUCH_MORE, NO, ONE, YES

from linnet.testing.clock import Clock
from linnet.testing.exploration import explored
from linnet.testing.passing_time import TimedDatabase
from linnet.testing.protocol import LEASE, Second, World
from linnet.workers.embedded import EmbeddedLedger, EmbeddedQueue

pytestmark = pytest.mark.slow


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


def test_an_answer_that_is_lost():
    assert fine(FORK, workers=2, faults=0, unheard=1) > 200
    assert fine(CHAIN, workers=1, faults=1, unheard=2) > 100
    assert fine(CHAIN, workers=1, faults=0, losses=1, unheard=1) > 50


def test_a_job_that_is_cancelled_and_resumed_anywhere():
    assert fine(CHAIN, workers=1, faults=0, halts=1) > 50
    assert fine(ONE, workers=2, faults=0, halts=1) > 50


def test_an_answer_that_is_lost_and_the_job_resumed_meanwhile():
    """The worker hears, when it asks again, that its attempt is of an old epoch; it was published in that."""
    assert fine(ONE, workers=1, faults=0, unheard=1, halts=1) > 50


def test_tiles_that_the_host_holds():
    assert fine(CHAIN, workers=1, faults=0, losses=1, halts=1, cache=True) > 50


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parents", "faults", "losses"),
    [
        (FORK, 1, 0),
        (CHAIN, 1, 1),
        *(
            pytest.param(*each, marks=pytest.mark.long)
            for each in [(JOIN, 1, 0), (CHAIN, 2, 0), (DIAMOND, 0, 0)]
        ),
    ],
)
def test_two_workers(parents, faults, losses):
    assert fine(parents, workers=2, faults=faults, losses=losses) > 300


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parents", "workers", "disturbed"),
    [
        (ONE, 2, {"unheard": 1, "halts": 1}),
        (CHAIN, 1, {"faults": 1, "unheard": 1, "halts": 1}),
        (CHAIN, 1, {"faults": 1, "losses": 1, "halts": 1, "cache": True}),
        (CHAIN, 1, {"faults": 1, "halts": 1}),
        (ONE, 2, {"halts": 2}),
        (JOIN, 1, {"unheard": 1, "halts": 1}),
    ],
)
def test_resumed_with_answers_lost(parents, workers, disturbed):
    assert fine(parents, workers, **{"faults": 0, **disturbed}) > 300


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("parents", "workers", "disturbed"),
    [
        (CHAIN, 1, {"faults": 1, "losses": 1, "unheard": 1, "halts": 1}),
        (CHAIN, 2, {"faults": 1, "unheard": 1, "halts": 1}),
        (CHAIN, 2, {"losses": 1, "unheard": 1, "halts": 1}),
        (CHAIN, 2, {"faults": 1, "losses": 1, "halts": 1, "cache": True}),
        (FORK, 2, {"unheard": 1, "halts": 1}),
        (JOIN, 2, {"unheard": 1, "halts": 1}),
        (CHAIN, 1, {"faults": 1, "unheard": 2, "halts": 2}),
    ],
)
def test_more_of_everything_resumed(parents, workers, disturbed):
    assert fine(parents, workers, **{"faults": 0, **disturbed}) > 5000


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


# ---- a job that may need a second part


@pytest.mark.parametrize("verdicts", [NO, YES, EITHER])
@pytest.mark.parametrize("decider", CHAIN)
def test_a_second_part_with_a_fault_anywhere(decider, verdicts):
    """Somebody decides in the middle of the first part, or at its end."""
    assert fine(CHAIN, workers=1, faults=1, second=Second(decider, MORE, verdicts)) > 50


def test_who_comes_late_does_not_decide_again():
    assert fine(ONE, workers=2, faults=1, second=Second("0.0", MORE, EITHER)) > 2000


@pytest.mark.slow
@pytest.mark.parametrize("verdicts", [NO, YES, EITHER])
@pytest.mark.parametrize("decider", CHAIN)
def test_a_second_part_with_two_workers(decider, verdicts):
    assert fine(CHAIN, workers=2, faults=1, second=Second(decider, MORE, verdicts)) > 800
    assert fine(CHAIN, workers=1, faults=1, losses=1, second=Second(decider, MORE, verdicts)) > 200


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("parents", "decider", "second", "workers", "faults", "losses"),
    [
        (ONE, "0.0", MORE, 2, 2, 0),
        (ONE, "0.0", MORE, 3, 1, 0),
        (ONE, "0.0", MUCH_MORE, 2, 1, 1),
        (CHAIN, "0.0", MORE, 2, 2, 0),
        (CHAIN, "0.0", MORE, 2, 1, 1),
        (CHAIN, "0.1", MORE, 2, 2, 0),
        (JOIN, "0.2", MORE, 2, 1, 0),
    ],
)
def test_more_of_everything_with_a_second_part(parents, decider, second, workers, faults, losses):
    assert fine(parents, workers, faults, losses=losses, second=Second(decider, second, EITHER)) > 5000


# ---- random ways, on the embedded queue and ledger


@st.composite
def programs(draw, statement=0, most=8):
    """Some tasks, each waiting for some of those before it."""
    names = [f"{statement}.{i}" for i in range(draw(st.integers(2, most)))]
    return {name: [each for each in names[:i] if draw(st.booleans())] for i, name in enumerate(names)}


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=15)
@given(parents=programs(), more=st.none() | programs(1, 4), data=st.data())
def test_random_ways(parents, more, data):
    """Workers act in any order; they die, come late, lose tiles; left alone, they finish the job."""
    second = None
    if more is not None:
        second = Second(data.draw(st.sampled_from(sorted(parents))), more, (data.draw(st.booleans()),))
    random = data.draw(st.randoms(use_true_random=False))
    with tempfile.TemporaryDirectory() as folder:
        clock = Clock()
        database = TimedDatabase(Path(folder) / "job.db", clock)
        ledger, queue = EmbeddedLedger(database), EmbeddedQueue(database, most_deliveries=10**6)
        world = World(parents, ledger, queue, workers=3, page=2, second=second)
        world.start()
        for _ in range(120):
            disturb(world, clock, random)
        finish(world, clock)
        world.check_finished()
        assert ledger.status().done == len(world.wanted())
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
