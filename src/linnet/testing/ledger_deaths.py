"""The part of the suite for ledgers that is about workers that die, and which task is to blame."""

from __future__ import annotations

from collections.abc import Callable

from linnet.testing.ledger_steps import ME, LedgerFixtures, begun
from linnet.workers.ledger import Ledger, Start


class LedgerDeathsSuite(LedgerFixtures):
    """Subclass this with a fixture `another`; `LedgerSuite` is all of it."""

    def test_only_a_task_that_was_computing_is_blamed(
        self, ledger: Ledger, later: Callable[[float], None]
    ) -> None:
        ledger.touch([], "there/1")
        first = begun(ledger, "0.1", worker="there/1")
        later(2 * self.silence)
        second = begun(ledger, "0.1")  # it was only reading
        assert (second.attempt, second.deaths) == (2, 0)
        ledger.computing("0.1", first.token)  # not the latest attempt
        later(2 * self.silence)
        third = begun(ledger, "0.1", worker="elsewhere/1")
        assert third.deaths == 0
        ledger.computing("0.1", third.token)
        later(2 * self.silence)
        assert begun(ledger, "0.1").deaths == 1
        assert begun(ledger, "0.1").deaths == 1

    def test_a_worker_that_lives_is_not_blamed(self, ledger: Ledger, later: Callable[[float], None]) -> None:
        token = begun(ledger, "0.1", worker="there/1").token
        ledger.computing("0.1", token)
        later(2 * self.silence)
        ledger.touch([], "there/1")
        assert begun(ledger, "0.1", worker="here/1").deaths == 0

    def test_the_caller_lives(self, ledger: Ledger) -> None:
        ledger.computing("0.1", begun(ledger, "0.1").token)
        assert begun(ledger, "0.1").deaths == 0

    def test_an_attempt_beside_another_blames_nobody(self, ledger: Ledger) -> None:
        ledger.computing("0.1", begun(ledger, "0.1", worker="there/1").token)
        (extra,) = ledger.begin([Start("0.1", extra=True)], ME)
        assert (extra.state, extra.attempt, extra.deaths) == ("run", 2, 0)

    def test_a_forgotten_attempt_is_no_death(self, ledger: Ledger) -> None:
        token = begun(ledger, "0.1", worker="there/1").token
        ledger.computing("0.1", token)
        ledger.forget("0.1", token)
        assert begun(ledger, "0.1").deaths == 0

    def test_an_old_attempt_forgets_nothing_of_a_newer(self, ledger: Ledger) -> None:
        old, new = (begun(ledger, "0.1", worker="there/1").token for _ in range(2))
        ledger.computing("0.1", new)
        ledger.forget("0.1", old)
        assert begun(ledger, "0.1").deaths == 1

    def test_deaths_add_up(self, ledger: Ledger) -> None:
        for deaths in range(4):
            found = begun(ledger, "0.1", worker=f"there/{deaths}")
            assert (found.deaths, found.attempt) == (deaths, deaths + 1)
            ledger.computing("0.1", found.token)
