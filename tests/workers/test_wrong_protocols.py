"""Ledgers, workers and caches that are wrong on purpose: going through every way of small jobs finds them out."""

from __future__ import annotations

import pytest
from small_graphs import CHAIN, EITHER, FORK, MORE, ONE, YES

from linnet.testing import exploration
from linnet.testing.exploration import explored
from linnet.testing.model_ledger import ModelLedger
from linnet.testing.protocol import SEED, Second, World
from linnet.workers.ledger import Completed


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


class EndsTooSoon(ModelLedger):
    """Finishes the job with the first part."""

    def _complete(self, one):
        return super()._complete(one._replace(total=0))

    def copy(self):
        return as_class(EndsTooSoon, super().copy())


class DecidesLater(ModelLedger):
    """Learns of the second part when that begins, not when it was decided."""

    def _complete(self, one):
        if one.name == SEED:
            self._running.total = max(self._running.total, 2)
        return super()._complete(one._replace(total=0))

    def copy(self):
        return as_class(DecidesLater, super().copy())


class OnlyTells(ModelLedger):
    """Tells who decided what was chosen, but does not remember it."""

    def _complete(self, one):
        done = super()._complete(one._replace(chosen=()))
        return Completed(done.token, (*done.ready, *(name for name, _ in one.chosen)))

    def copy(self):
        return as_class(OnlyTells, super().copy())


class AllDecide(ModelLedger):
    """Follows every attempt at a decision, not only the one that made the task done."""

    def _complete(self, one):
        return super()._complete(one._replace(children=[*one.children, *one.chosen]))

    def copy(self):
        return as_class(AllDecide, super().copy())


class Denies(ModelLedger):
    """Takes a completion of an old epoch for one that never counted, though it was published."""

    def _complete(self, one):
        return super()._complete(one) if one.token >> 32 == self._running.epoch else Completed(0)

    def copy(self):
        return as_class(Denies, super().copy())


class ResumesByWord(ModelLedger):
    """Tells who resumes what is ready, and relies on that it is put into the queue."""

    def resume(self):
        told = super().resume()
        for name in told:
            self._tasks[name].ready = False
        return told

    def copy(self):
        return as_class(ResumesByWord, super().copy())


class SameEpoch(ModelLedger):
    """Resumes without a new epoch, and gives the tokens of the old one again."""

    def resume(self):
        told = super().resume()
        self._running.epoch -= 1
        self._running.sequence = 1
        return told

    def copy(self):
        return as_class(SameEpoch, super().copy())


class CancelledLoses(ModelLedger):
    """Lets tasks be done while the job is cancelled, but marks none of their children."""

    def _complete(self, one):
        cancelled = self._running.state == "cancelled"
        return super()._complete(one._replace(children=[]) if cancelled else one)

    def copy(self):
        return as_class(CancelledLoses, super().copy())


class CancelledIsFinished(ModelLedger):
    """Takes a cancelled job for one that has ended, and forgets what is ready."""

    def halt(self, state, reason):
        super().halt(state, reason)
        for task in self._tasks.values():
            task.ready = False

    def resume(self):
        self._running.epoch += 1
        self._running.state = "running"
        return []

    def copy(self):
        return as_class(CancelledIsFinished, super().copy())


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ledger", "parents", "verdicts"),
    [(EndsTooSoon, ONE, YES), (DecidesLater, ONE, YES), (OnlyTells, ONE, YES), (AllDecide, CHAIN, EITHER)],
)
def test_a_ledger_that_decides_wrongly_is_found_out(monkeypatch, ledger, parents, verdicts):
    monkeypatch.setattr(exploration, "ModelLedger", ledger)
    try:
        found = explored(parents, workers=2, faults=1, second=Second("0.0", MORE, verdicts))
    except AssertionError:
        return
    assert found.stuck


@pytest.mark.parametrize(
    ("ledger", "parents", "workers", "disturbed"),
    [
        (Denies, ONE, 1, {"unheard": 1, "halts": 1}),
        (ResumesByWord, ONE, 1, {"faults": 1, "halts": 1}),
        (CancelledLoses, CHAIN, 1, {"halts": 1}),
        (CancelledIsFinished, ONE, 1, {"halts": 1}),
        (Counting, ONE, 1, {"unheard": 1}),
        (LastWins, ONE, 2, {"unheard": 1, "faults": 1}),
        pytest.param(SameEpoch, CHAIN, 2, {"losses": 1, "halts": 1}, marks=pytest.mark.slow),
    ],
)
def test_a_ledger_wrong_in_cancelling_resuming_or_lost_answers_is_found_out(
    monkeypatch, ledger, parents, workers, disturbed
):
    monkeypatch.setattr(exploration, "ModelLedger", ledger)
    try:
        found = explored(parents, workers, **{"faults": 0, **disturbed})
    except AssertionError:
        return
    assert found.stuck


def test_a_worker_that_does_not_ask_again_is_found_out(monkeypatch):
    """It takes a step whose answer was lost for one that was not taken, and goes on with another task."""

    def gives_up(world, worker):
        world.advance(worker)
        hand = world.hands[worker]
        if hand.lease is not None and hand.step != "idle":
            world.queue.remove([hand.lease])
        world.hands[worker] = type(hand)()

    def never(world):
        """Nobody looks for what was forgotten."""

    monkeypatch.setattr(World, "advance_unheard", gives_up)
    monkeypatch.setattr(World, "hear_of_overdue", never)
    assert explored(CHAIN, workers=1, faults=0, unheard=1).stuck


def test_a_cache_that_is_not_asked_for_the_token_after_a_resume_is_found_out(monkeypatch):
    """Tiles of an old epoch are held, and read in place of those that were made again."""

    def oldest(world, tile):
        held = sorted(each for each in world.cached if each[0] == tile[0])
        return held[0] if held else (tile if tile in world.tiles else None)

    monkeypatch.setattr(World, "read", oldest)
    with pytest.raises(AssertionError, match="but was told"):
        explored(CHAIN, workers=2, faults=1, halts=1, cache=True)


def test_a_cache_that_takes_one_attempt_for_another_is_found_out(monkeypatch):
    def any_attempt(world, tile):
        found = [each for each in sorted(world.cached) if each[0] == tile[0]]
        return found[0] if found else (tile if tile in world.tiles else None)

    monkeypatch.setattr(World, "read", any_attempt)
    with pytest.raises(AssertionError, match="but was told"):
        explored(CHAIN, workers=2, faults=1, cache=True)
