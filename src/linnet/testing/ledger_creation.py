"""The part of the suite for ledgers that is about jobs that begin and are forgotten."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from linnet.errors import AddressError
from linnet.testing.ledger_steps import LedgerFixtures, ran
from linnet.workers.ledger import Ledger


class LedgerCreationSuite(LedgerFixtures):
    """Subclass this with a fixture `another`; `LedgerSuite` is all of it."""

    def test_no_job(self, another: Callable[[], Ledger]) -> None:
        with pytest.raises(AddressError, match="holds no job"):
            another().status()

    def test_a_job_of_nothing_is_finished(self, another: Callable[[], Ledger]) -> None:
        ledger = another()
        ledger.create(0)
        assert ledger.status().state == "finished"
        assert ledger.overdue(0, 5) == []

    def test_drop(self, ledger: Ledger, another: Callable[[], Ledger]) -> None:
        ledger.drop()
        ledger.close()
        with pytest.raises((AddressError, FileNotFoundError)):
            another().status()

    def test_a_job_is_not_created_where_there_is_one(
        self, ledger: Ledger, another: Callable[[], Ledger]
    ) -> None:
        ran(ledger, "@", (), ["0.1"])
        token = ran(ledger, "0.1").token
        other = another()
        for each in (ledger, other):
            with pytest.raises(AddressError, match="holds a job"):
                each.create(3)
        assert (ledger.status().total, ledger.status().done) == (10, 1)
        assert ledger.published(["0.1"]) == [token]
        other.close()

    def test_of_several_who_create_a_job_one_does(self, another: Callable[[], Ledger]) -> None:
        def create(total: int) -> int:
            ledger = another()
            try:
                ledger.create(total)
            except AddressError:
                return 0
            finally:
                ledger.close()
            return total

        with ThreadPoolExecutor(6) as pool:
            made = [total for total in pool.map(create, range(1, 7)) if total]
        assert [another().status().total] == made

    def test_after_drop_a_job_can_be_created(self, ledger: Ledger, another: Callable[[], Ledger]) -> None:
        ran(ledger, "@", (), ["0.1"])
        ledger.drop()
        ledger.close()
        new = another()
        new.create(3)
        assert (new.status().total, new.status().begun) == (3, 0)
        assert new.published(["@"]) == [0]
