"""The part of the suite for ledgers that is about choices: tasks called for by the results of another."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from linnet.testing.ledger_steps import ME, LedgerFixtures, begun, ran
from linnet.workers.ledger import Begun, Child, Completed, Completion, Ledger, Start, Waiting

SEED = [Child("@1", 1)]


def chose(
    ledger: Ledger, name: str, token: int = 0, parents: Sequence[str] = (), *, last: bool = True
) -> Completed:
    """A task whose results call for a second part; the job has four tasks then."""
    token = token or begun(ledger, name).token
    (found,) = ledger.complete([Completion(name, token, (), parents, last=last, chosen=SEED, total=4)])
    return found


class LedgerChoicesSuite(LedgerFixtures):
    """Subclass this with a fixture `another`; `LedgerSuite` is all of it."""

    @pytest.fixture
    def two(self, another: Callable[[], Ledger]) -> Ledger:
        """A ledger with a job of two tasks, which are ready; `0.2` decides whether there are two more."""
        ledger = another()
        ledger.create(2)
        ran(ledger, "@", (), ["0.1", "0.2"])
        return ledger

    def test_a_choice_comes_with_the_last_task(self, two: Ledger) -> None:
        ran(two, "0.1")
        assert chose(two, "0.2").ready == ("@1",)
        status = two.status()
        assert (status.state, status.total, status.done) == ("running", 4, 2)
        assert two.overdue(0, 9) == ["@1"]  # whoever chose may have died
        ran(two, "@1", ["0.2"], ["1.0"])
        ran(two, "1.0", (), ["1.1"])
        ran(two, "1.1", ["1.0"])
        status = two.status()
        assert (status.state, status.total, status.done) == ("finished", 4, 4)
        assert "0.2" in [name for name, _ in two.discarded(0, 9)]

    def test_without_a_choice_the_job_ends(self, two: Ledger) -> None:
        ran(two, "0.1")
        ran(two, "0.2")
        assert (two.status().state, two.status().total) == ("finished", 2)

    def test_what_was_not_chosen_waits(self, two: Ledger) -> None:
        assert two.begin([Start("@1", ["0.2"])], ME) == [Begun("wait")]

    def test_who_comes_late_chooses_nothing(self, two: Ledger) -> None:
        first, late = (begun(two, "0.2").token for _ in range(2))
        two.complete([Completion("0.2", first)])
        assert chose(two, "0.2", late) == Completed(first)
        assert (two.status().total, two.overdue(0, 9)) == (2, ["0.1"])

    def test_a_page_before_the_last_chooses_nothing(self, two: Ledger) -> None:
        token = begun(two, "0.2").token
        assert chose(two, "0.2", token, last=False).ready == ()
        assert two.status().total == 2
        assert chose(two, "0.2", token).ready == ("@1",)
        assert two.status().total == 4

    def test_a_choice_stays(self, two: Ledger) -> None:
        token = chose(two, "0.2").token
        assert two.reopen("0.2", token, [], "")
        assert two.status().total == 4
        assert two.begin([Start("@1", ["0.2"])], ME) == [Begun("wait")]
        two.halt("stopped", "for a while")
        assert sorted(two.resume()) == ["0.1", "0.2", "@1"]
        assert chose(two, "0.2").ready == ("@1",)
        assert (two.status().total, two.status().done) == (4, 1)
        ran(two, "@1", ["0.2"], ["1.0"])

    def test_a_choice_of_a_stopped_job(self, two: Ledger) -> None:
        ran(two, "0.1")
        token = begun(two, "0.2").token
        two.halt("stopped", "for a while")
        assert chose(two, "0.2", token).ready == ("@1",)
        assert two.resume() == ["@1"]
        assert two.status().state == "running"

    def test_a_ledger_built_before_the_choice(self, two: Ledger) -> None:
        two.restore(2, [("0.1", 1 << 32)], [Waiting("0.2", 1, ["0.1"])], 1)
        assert (two.status().total, two.status().done) == (2, 1)
        (known,) = two.begin([Start("0.0")], ME)
        assert known == Begun("done")
        token = begun(two, "0.2", ["0.1"]).token
        assert chose(two, "0.2", token, ["0.1"]).ready == ("@1",)
        assert ran(two, "@1", ["0.2"], ["1.0"]).ready == ("1.0",)
        assert two.begin([Start("1.1", ["1.0"])], ME) == [Begun("wait")]
        assert ran(two, "1.0", (), ["1.1"]).ready == ("1.1",)
        ran(two, "1.1", ["1.0"])
        assert (two.status().state, two.status().done) == ("finished", 4)
