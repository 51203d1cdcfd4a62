"""What every ledger must do: a suite to subclass::

    from linnet.testing.ledgers import LedgerSuite

    class TestMine(LedgerSuite):
        @pytest.fixture
        def another(self):
            return lambda: MyLedger(...)     # one more holder of the same ledger, without a job at first

Every rule of `linnet.workers.ledger` is a test here. A suite that needs pytest is imported by tests only.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from linnet.testing.ledger_choices import LedgerChoicesSuite
from linnet.testing.ledger_creation import LedgerCreationSuite
from linnet.testing.ledger_deaths import LedgerDeathsSuite
from linnet.testing.ledger_steps import ME, begun, ran
from linnet.testing.ledger_tiles import LedgerTilesSuite
from linnet.workers.ledger import PAGE, Begun, Child, Completed, Completion, Ledger, Start


class LedgerSuite(LedgerCreationSuite, LedgerTilesSuite, LedgerDeathsSuite, LedgerChoicesSuite):
    """Subclass this with a fixture `another`."""

    # ---- the job

    def test_a_new_job(self, ledger: Ledger) -> None:
        status = ledger.status()
        assert (status.state, status.reason, status.epoch) == ("running", "", 1)
        assert (status.total, status.done, status.begun) == (10, 0, 0)
        assert (status.first, status.last, dict(status.kinds)) == (0, 0, {})
        assert status.now > 0
        assert ledger.overdue(0, 5) == ["@"]

    def test_the_last_task_finishes_the_job(self, another: Callable[[], Ledger]) -> None:
        ledger = another()
        ledger.create(2)
        ran(ledger, "@", (), ["0.1", "0.2"])
        ran(ledger, "0.1", seconds=0.5)
        status = ledger.status()
        assert (status.state, status.done) == ("running", 1)
        ran(ledger, "0.2", seconds=1.5)
        status = ledger.status()
        assert (status.state, status.done, status.begun) == ("finished", 2, 3)
        assert 0 < status.first <= status.last <= status.now
        assert status.kinds[0] == (2, pytest.approx(2.0))
        assert ledger.begin([Start("0.1")], ME)[0].state == "halt"

    # ---- beginning

    def test_tokens_differ_and_carry_the_epoch(self, ledger: Ledger) -> None:
        found = ledger.begin([Start("@"), Start("@"), Start("0.1")], ME)
        assert [each.attempt for each in found] == [1, 2, 1]
        assert len({each.token for each in found}) == 3
        assert [each.token >> 32 for each in found] == [1, 1, 1]
        assert ledger.begin([], ME) == []

    def test_parents_give_their_tokens_in_order(self, ledger: Ledger) -> None:
        ran(ledger, "@", (), ["0.1", "0.2"])
        tokens = [ran(ledger, name, (), [Child("1.0", 2)]).token for name in ("0.1", "0.2")]
        assert begun(ledger, "1.0", ["0.2", "0.1"]).published == (tokens[1], tokens[0])
        assert ledger.published(["0.1", "5.5", "0.2"]) == [tokens[0], 0, tokens[1]]

    def test_a_task_whose_parent_is_not_done_waits(self, ledger: Ledger) -> None:
        ran(ledger, "@", (), ["0.1", "0.2"])
        ran(ledger, "0.1", (), [Child("1.0", 2)])
        assert ledger.begin([Start("1.0", ["0.1", "0.2"])], ME) == [Begun("wait")]
        assert ledger.status().begun == 2
        assert ran(ledger, "0.2", (), [Child("1.0", 2)]).ready == ("1.0",)

    def test_a_done_task_is_not_begun(self, ledger: Ledger) -> None:
        ran(ledger, "0.1")
        assert ledger.begin([Start("0.1"), Start("0.2")], ME)[0] == Begun("done")

    # ---- completing

    def test_children_become_ready_when_all_is_marked(self, ledger: Ledger) -> None:
        assert ran(ledger, "0.1", (), [Child("1.0", 3), Child("1.1", 1)]).ready == ("1.1",)
        assert ran(ledger, "0.2", (), [Child("1.0", 3)]).ready == ()
        assert ran(ledger, "0.3", (), [Child("1.0", 3)]).ready == ("1.0",)

    def test_marks_are_not_counted_twice(self, ledger: Ledger) -> None:
        token = begun(ledger, "0.1").token
        for _ in range(3):
            assert ledger.complete([Completion("0.1", token, [Child("1.0", 2)])]) == [Completed(token)]
        assert ledger.status().done == 1
        assert ledger.status().kinds[0][0] == 1

    def test_a_repeated_completion_returns_ready_children_again(self, ledger: Ledger) -> None:
        token = begun(ledger, "0.1").token
        completion = Completion("0.1", token, [Child("1.0", 1), Child("1.1", 2), Child("1.2", 1)])
        assert ledger.complete([completion]) == [Completed(token, ("1.0", "1.2"))]
        ran(ledger, "1.2", ["0.1"])
        assert ledger.complete([completion]) == [Completed(token, ("1.0",))]

    def test_the_first_token_wins(self, ledger: Ledger) -> None:
        first, second = (begun(ledger, "0.1").token for _ in range(2))
        assert ledger.complete([Completion("0.1", second, [Child("1.0", 1)])]) == [
            Completed(second, ("1.0",))
        ]
        assert ledger.complete([Completion("0.1", first, [Child("1.0", 1)])]) == [Completed(second, ("1.0",))]
        assert ledger.published(["0.1"]) == [second]
        assert begun(ledger, "1.0", ["0.1"]).published == (second,)

    def test_several_completions_at_once(self, ledger: Ledger) -> None:
        one, two = (found.token for found in ledger.begin([Start("0.1"), Start("0.2")], ME))
        child = [Child("1.0", 2)]
        found = ledger.complete([Completion("0.1", one, child), Completion("0.2", two, child)])
        assert found == [Completed(one), Completed(two, ("1.0",))]
        assert ledger.complete([]) == []

    def test_marks_on_a_done_task_have_no_effect(self, ledger: Ledger) -> None:
        ran(ledger, "0.1", (), ["1.0"])
        ran(ledger, "1.0", ["0.1"])
        assert ran(ledger, "0.2", (), ["1.0"]).ready == ()
        assert ledger.begin([Start("1.0", ["0.1"])], ME) == [Begun("done")]
        assert sorted(name for name, _ in ledger.discarded(0, 10)) == ["0.1", "0.2", "1.0"]

    def test_seeds_are_not_counted(self, ledger: Ledger) -> None:
        ran(ledger, "@", (), ["@0:0:4", "0.1"])
        ran(ledger, "@0:0:4", (), ["0.2"])
        assert (ledger.status().done, dict(ledger.status().kinds)) == (0, {})
        assert ledger.begin([Start("@")], ME) == [Begun("done")]

    def test_tokens_of_an_old_epoch_change_nothing(self, ledger: Ledger) -> None:
        token = begun(ledger, "0.1").token
        ledger.resume()
        assert ledger.complete([Completion("0.1", token, [Child("1.0", 1)])]) == [Completed(0)]
        ledger.fail("0.1", token, "too late")
        assert ledger.status().state == "running"
        assert ledger.published(["0.1"]) == [0]
        assert begun(ledger, "0.1").token >> 32 == 2

    def test_what_an_old_epoch_published_is_told_again(self, ledger: Ledger) -> None:
        """The answer to a completion may be lost, and the job resumed before it is repeated."""
        completion = Completion("0.1", begun(ledger, "0.1").token, [Child("1.0", 1)])
        page = Completion("0.2", begun(ledger, "0.2").token, [Child("1.1", 2)], last=False)
        other = Completion("0.1", begun(ledger, "0.1").token, [Child("1.0", 1)])
        ledger.complete([completion, page])
        ledger.resume()
        found = ledger.complete([completion, page, page._replace(last=True), other])
        assert [each.token for each in found] == [completion.token, page.token, page.token, 0]
        assert ledger.status().done == 1
        ledger.reopen("0.1", completion.token, (), "")
        assert ledger.complete([completion]) == [Completed(0)]

    # ---- pages

    def test_a_task_is_done_with_its_last_page(self, ledger: Ledger) -> None:
        token = begun(ledger, "0.1").token
        page = Completion("0.1", token, [Child("1.0", 1)], last=False)
        assert ledger.complete([page]) == [Completed(token, ("1.0",))]
        assert ledger.status().done == 0
        # A child may run meanwhile; but should the worker die, the task is begun again.
        assert begun(ledger, "1.0", ["0.1"]).published == (token,)
        again = begun(ledger, "0.1").token
        last = Completion("0.1", again, [Child("1.1", 1)])
        assert ledger.complete([page._replace(token=again), last]) == [
            Completed(token, ("1.0",)),
            Completed(token, ("1.1",)),
        ]
        assert ledger.status().done == 1

    def test_tiles_are_kept_until_the_last_page(self, ledger: Ledger) -> None:
        token = begun(ledger, "0.1").token
        ledger.complete([Completion("0.1", token, [Child("1.0", 1)], last=False)])
        ran(ledger, "1.0", ["0.1"])
        assert [name for name, _ in ledger.discarded(0, 10)] == ["1.0"]
        ledger.complete([Completion("0.1", token)])
        assert ledger.discarded(0, 10) == [("0.1", token)]

    def test_five_thousand_children(self, ledger: Ledger) -> None:
        token = begun(ledger, "0.1").token
        children = [Child(f"1.{i}", 1 + i % 2) for i in range(5000)]
        ready: list[str] = []
        for start in range(0, 5000, PAGE):
            page = children[start : start + PAGE]
            (found,) = ledger.complete([Completion("0.1", token, page, last=start + PAGE >= 5000)])
            ready += found.ready
            assert ledger.status().done == int(start + PAGE >= 5000)
        assert ready == [f"1.{i}" for i in range(0, 5000, 2)]

    # ---- stopping and going on

    def test_a_failed_task_fails_the_job(self, ledger: Ledger) -> None:
        token = begun(ledger, "0.1").token
        ledger.fail("0.1", token, "division by zero in 0.1")
        status = ledger.status()
        assert (status.state, status.reason) == ("failed", "division by zero in 0.1")
        assert status.failed == "0.1"
        assert ledger.begin([Start("0.2"), Start("0.3")], ME) == [Begun("halt"), Begun("halt")]
        ledger.fail("0.2", token, "another")
        assert (ledger.status().reason, ledger.status().failed) == ("division by zero in 0.1", "0.1")
        ledger.resume()
        status = ledger.status()
        assert (status.state, status.reason, status.failed) == ("running", "", "")

    def test_a_done_task_cannot_fail(self, ledger: Ledger) -> None:
        token, late = begun(ledger, "0.1").token, begun(ledger, "0.1").token
        ledger.complete([Completion("0.1", token)])
        ledger.fail("0.1", late, "a duplicate failed")
        assert ledger.status().state == "running"

    @pytest.mark.parametrize("state", ["stopped", "cancelled"])
    def test_halt_and_resume(self, ledger: Ledger, state: str) -> None:
        ran(ledger, "@", (), ["0.1", "0.2"])
        token = begun(ledger, "0.1", worker="there/1").token
        ledger.computing("0.1", token)
        ledger.halt(state, "told to")  # type: ignore[arg-type]
        assert (ledger.status().state, ledger.status().reason) == (state, "told to")
        assert ledger.begin([Start("0.2")], ME) == [Begun("halt")]
        ledger.halt("stopped", "again")
        assert ledger.status().reason == "told to"
        assert sorted(ledger.resume()) == ["0.1", "0.2"]
        status = ledger.status()
        assert (status.state, status.reason, status.epoch) == ("running", "", 2)
        found = begun(ledger, "0.1")
        assert (found.attempt, found.deaths) == (1, 0)

    def test_what_was_published_stays_so_after_resume(self, ledger: Ledger) -> None:
        old = ran(ledger, "0.1", (), ["1.0"]).token
        page = begun(ledger, "0.2").token
        ledger.complete([Completion("0.2", page, [Child("1.1", 1)], last=False)])
        assert sorted(ledger.resume()) == ["0.2", "1.0", "1.1", "@"]
        assert begun(ledger, "1.0", ["0.1"]).published == (old,)
        new = begun(ledger, "0.2").token
        assert ledger.complete([Completion("0.2", new, [Child("1.1", 1)])]) == [Completed(page, ("1.1",))]

    def test_a_finished_job_stays_finished(self, another: Callable[[], Ledger]) -> None:
        ledger = another()
        ledger.create(1)
        ran(ledger, "0.1")
        ledger.halt("cancelled", "too late")
        assert ledger.status().state == "finished"
        ledger.resume()
        assert ledger.status().state == "finished"

    def test_completions_count_in_a_stopped_job(self, another: Callable[[], Ledger]) -> None:
        ledger = another()
        ledger.create(1)
        token = begun(ledger, "0.1").token
        ledger.halt("stopped", "told to")
        assert ledger.complete([Completion("0.1", token)]) == [Completed(token)]
        assert ledger.status().state == "stopped"
        ledger.resume()
        assert ledger.status().state == "finished"

    # ---- what nobody was told of

    def test_overdue_tasks_are_told_once(self, ledger: Ledger, later: Callable[[float], None]) -> None:
        ran(ledger, "@", (), ["0.1", "0.2", "0.3"])
        assert ledger.overdue(1, 10) == []
        later(1.1)
        assert len(ledger.overdue(1, 2)) == 2
        assert len(ledger.overdue(1, 2)) == 1
        assert ledger.overdue(1, 2) == []
        later(1.1)
        assert sorted(ledger.overdue(1, 9)) == ["0.1", "0.2", "0.3"]

    def test_what_was_heard_of_is_not_overdue(self, ledger: Ledger, later: Callable[[float], None]) -> None:
        ran(ledger, "@", (), ["0.1", "0.2", "0.3", Child("1.0", 2)])
        later(0.6)
        begun(ledger, "0.1")
        ledger.touch(["0.2", "1.0", "7.7"], ME)
        later(0.6)
        assert ledger.overdue(1, 9) == ["0.3"]

    def test_done_and_waiting_tasks_are_not_overdue(self, ledger: Ledger) -> None:
        ran(ledger, "@", (), ["0.1"])
        ran(ledger, "0.1", (), [Child("1.0", 2)])
        assert ledger.overdue(0, 9) == []

    def test_stragglers(self, ledger: Ledger, later: Callable[[float], None]) -> None:
        for i in range(4):
            ran(ledger, f"0.{i}", (), seconds=0.1)
        begun(ledger, "0.8")
        begun(ledger, "0.9")
        begun(ledger, "1.0")  # of which nobody knows how long they take
        begun(ledger, "@0")
        assert ledger.stragglers(2, 0.3, 9) == []
        later(0.5)
        assert ledger.stragglers(9, 0.3, 9) == []
        assert ledger.stragglers(2, 0.3, 1) == ["0.8"]
        ledger.begin([Start("0.8", extra=True)], ME)
        later(0.5)
        assert ledger.stragglers(2, 0.3, 9) == ["0.9"]
        assert ledger.stragglers(2, 0.3, 9) == []

    def test_what_is_not_under_way_does_not_straggle(
        self, ledger: Ledger, later: Callable[[float], None]
    ) -> None:
        ran(ledger, "@", (), ["0.1", "0.2", "0.3"])
        ran(ledger, "0.1", (), seconds=0.01)
        ledger.forget("0.2", begun(ledger, "0.2").token)
        later(0.5)
        assert ledger.stragglers(2, 0.1, 9) == []

    # ---- workers

    def test_workers_come_and_go(self, ledger: Ledger, later: Callable[[float], None]) -> None:
        assert ledger.touch([], "host.a/1").state == "running"
        later(0.2)
        ledger.touch([], "b/2")
        assert [(each.name, each.host) for each in ledger.workers(60)] == [
            ("host.a/1", "host.a"),
            ("b/2", "b"),
        ]
        later(0.4)
        ledger.touch([], "b/2")
        (alive,) = ledger.workers(0.3)
        assert alive.name == "b/2"
        assert alive.started < alive.beat
        ledger.leave("b/2")
        assert ledger.workers(60)[0].name == "host.a/1"
        assert [(each.name, each.left) for each in ledger.workers()] == [("host.a/1", False), ("b/2", True)]
        ledger.touch([], "b/2")
        assert [each.left for each in ledger.workers(60)] == [False, False]

    def test_what_workers_count_is_kept(self, ledger: Ledger) -> None:
        ledger.touch([], ME, {"tasks": 3, "bytes": 1.5})
        ledger.touch([], ME, {"tasks": 4, "read": 2**40})
        ledger.leave(ME)
        ledger.leave("nobody/1")
        (found,) = ledger.workers()
        assert dict(found.facts) == {"tasks": 4, "read": 2**40}

    def test_a_worker_that_died_is_told_apart_from_one_that_left(self, ledger: Ledger) -> None:
        for name in ("a/1", "b/2", "c/3"):
            ledger.touch([], name)
        ledger.leave("a/1")
        ledger.leave("a/1", died=True)  # seen to have ended, after it said goodbye
        ledger.leave("b/2", died=True)
        found = {each.name: (each.left, each.died) for each in ledger.workers()}
        assert found == {"a/1": (True, False), "b/2": (True, True), "c/3": (False, False)}
        assert [each.name for each in ledger.workers(60)] == ["c/3"]
        ledger.touch([], "b/2")  # it did not
        assert [(each.name, each.died) for each in ledger.workers(60)] == [("b/2", False), ("c/3", False)]

    def test_a_worker_that_left_is_silent(self, ledger: Ledger) -> None:
        ledger.touch([], "there/1")
        ledger.computing("0.1", begun(ledger, "0.1", worker="there/1").token)
        ledger.leave("there/1")
        assert begun(ledger, "0.1").deaths == 1

    def test_lines_come_in_order(self, ledger: Ledger) -> None:
        assert ledger.lines(0) == ([], 0)
        ledger.log([])
        ledger.log(["one", "two"])
        first, place = ledger.lines(0)
        ledger.log([f"line {i} of many, with ümlauts" for i in range(1500)])
        assert first == ["one", "two"]
        page, place = ledger.lines(place)
        rest, place = ledger.lines(place)
        assert [len(page), len(rest)] == [1000, 500]
        assert page + rest == [f"line {i} of many, with ümlauts" for i in range(1500)]
        assert ledger.lines(place) == ([], place)

    # ---- many holders

    def test_two_holders_see_the_same(self, ledger: Ledger, another: Callable[[], Ledger]) -> None:
        other = another()
        with ledger.grouped():
            token = begun(ledger, "0.1").token
            ledger.complete([Completion("0.1", token, [Child("1.0", 1)])])
        assert other.status().done == 1
        assert begun(other, "1.0", ["0.1"], worker="there/2").published == (token,)
        other.close()

    def test_one_publisher_of_many(self, ledger: Ledger, another: Callable[[], Ledger]) -> None:
        """Eight threads complete the same forty parents of one child at once."""
        parents = [f"0.{i}" for i in range(40)]

        def work(number: int) -> list[Completed]:
            mine = another()
            found = [
                mine.complete([Completion(each, begun(mine, each).token, [Child("1.0", 40)], last=False)])[0]
                for each in parents[number:] + parents[:number]
            ]
            mine.close()
            return found

        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(work, range(8)))
        published = ledger.published(parents)
        for number, found in enumerate(answers):
            assert [each.token for each in found] == published[number:] + published[:number]
        assert any("1.0" in each.ready for found in answers for each in found)
        assert ledger.overdue(0, 99).count("1.0") == 1

    def test_the_address_is_told(self, ledger: Ledger) -> None:
        assert "://" in ledger.url
        assert ledger.url in repr(ledger)

    def test_closing_twice(self, another: Callable[[], Ledger]) -> None:
        ledger = another()
        ledger.close()
        ledger.close()
