"""The part of the suite for ledgers that is about tiles: unneeded and lost ones, ledgers built from them."""

from __future__ import annotations

from collections.abc import Callable

from linnet.testing.ledger_steps import ME, LedgerFixtures, begun, chain, ran
from linnet.workers.ledger import Begun, Child, Completed, Completion, Ledger, Start, Waiting


class LedgerTilesSuite(LedgerFixtures):
    """Subclass this with a fixture `another`; `LedgerSuite` is all of it."""

    # ---- tiles nobody needs

    def test_tiles_go_when_all_children_are_done(self, ledger: Ledger) -> None:
        ran(ledger, "@", (), ["0.1"])
        token = ran(ledger, "0.1", (), ["1.0", "1.1"]).token
        ran(ledger, "1.0", ["0.1"])
        assert [name for name, _ in ledger.discarded(0, 9)] == ["1.0"]
        ran(ledger, "1.1", ["0.1"])
        told = ledger.discarded(0, 9)
        assert ("0.1", token) in told
        assert sorted(name for name, _ in told) == ["0.1", "1.1"]
        assert ledger.discarded(0, 9) == []

    def test_tiles_go_after_a_grace(self, ledger: Ledger, later: Callable[[float], None]) -> None:
        ran(ledger, "0.1", (), ["1.0"])
        later(0.6)
        ran(ledger, "1.0", ["0.1"])
        later(0.5)
        assert ledger.discarded(1, 9) == []
        later(0.6)
        assert sorted(name for name, _ in ledger.discarded(1, 9)) == ["0.1", "1.0"]

    def test_no_more_than_the_limit_is_discarded(self, ledger: Ledger) -> None:
        for i in range(5):
            ran(ledger, f"0.{i}")
        told = [ledger.discarded(0, 2) for _ in range(4)]
        assert [len(each) for each in told] == [2, 2, 1, 0]
        assert len({name for each in told for name, _ in each}) == 5

    # ---- lost tiles

    def test_a_lost_tile_is_made_again(self, ledger: Ledger) -> None:
        chain(ledger, "0.1", "1.0")
        old = begun(ledger, "1.0", ["0.1"]).published[0]
        assert ledger.reopen("0.1", old, [], "1.0")
        assert (ledger.status().done, ledger.published(["0.1"])) == (0, [0])
        assert ledger.begin([Start("1.0", ["0.1"])], ME) == [Begun("wait")]
        assert ledger.overdue(0, 9) == ["0.1"]
        again = ran(ledger, "0.1", (), ["1.0"])
        assert (again.ready, again.token != old) == (("1.0",), True)
        assert begun(ledger, "1.0", ["0.1"]).published == (again.token,)
        assert ledger.status().done == 1

    def test_a_chain_of_lost_tiles(self, ledger: Ledger) -> None:
        chain(ledger, "0.1", "1.0", "2.0", "3.0")
        tokens = ledger.published(["0.1", "1.0", "2.0"])
        ledger.discarded(0, 9)
        # The reader of each finds that the tile before it is gone, too.
        assert ledger.reopen("2.0", tokens[2], ["1.0"], "3.0")
        assert begun(ledger, "2.0", ["1.0"]).published == (tokens[1],)
        assert ledger.reopen("1.0", tokens[1], ["0.1"], "2.0")
        assert begun(ledger, "1.0", ["0.1"]).published == (tokens[0],)
        assert ledger.reopen("0.1", tokens[0], [], "1.0")
        assert ledger.status().done == 0
        assert ledger.overdue(0, 9) == ["0.1"]
        for name, parents, child in [("0.1", [], "1.0"), ("1.0", ["0.1"], "2.0"), ("2.0", ["1.0"], "3.0")]:
            assert ran(ledger, name, parents, [child]).ready == (child,)
        assert ran(ledger, "3.0", ["2.0"]).token
        assert ledger.status().done == 4
        told = ledger.discarded(0, 9)
        assert {name for name, _ in told} == {"0.1", "1.0", "2.0", "3.0"}
        assert set(zip(("0.1", "1.0", "2.0"), tokens, strict=True)) < set(told)  # and what was left of those

    def test_tiles_that_are_needed_again_are_kept(self, ledger: Ledger) -> None:
        chain(ledger, "0.1", "1.0", "2.0")
        token = ledger.published(["1.0"])[0]
        assert ledger.reopen("1.0", token, ["0.1"], "2.0")  # 0.1 was to be discarded, and is not
        told = ledger.discarded(0, 9)
        assert told == [("1.0", token)]  # what is left of the lost attempt
        ran(ledger, "1.0", ["0.1"], ["2.0"])
        assert [name for name, _ in ledger.discarded(0, 9)] == ["0.1"]

    def test_a_parent_that_is_reopened_itself(self, ledger: Ledger) -> None:
        ran(ledger, "0.1", (), ["1.0", "1.1"])
        ran(ledger, "1.0", ["0.1"], [Child("2.0", 2)])
        begun(ledger, "1.1", ["0.1"])
        source, middle = ledger.published(["0.1", "1.0"])
        assert ledger.reopen("0.1", source, [], "1.1")
        assert ledger.reopen("1.0", middle, ["0.1"], "2.0")
        assert ledger.begin([Start("1.0", ["0.1"])], ME) == [Begun("wait")]
        assert sorted(ran(ledger, "0.1", (), ["1.0", "1.1"]).ready) == ["1.0", "1.1"]
        assert ran(ledger, "1.0", ["0.1"], [Child("2.0", 2)]).ready == ()
        assert ran(ledger, "1.1", ["0.1"], [Child("2.0", 2)]).ready == ("2.0",)

    def test_two_tiles_lost_at_once(self, ledger: Ledger) -> None:
        tokens = [ran(ledger, name, (), [Child("1.0", 2)]).token for name in ("0.1", "0.2")]
        begun(ledger, "1.0", ["0.1", "0.2"])
        for name, token in zip(("0.1", "0.2"), tokens, strict=True):
            assert ledger.reopen(name, token, [], "1.0")
        assert ran(ledger, "0.1", (), [Child("1.0", 2)]).ready == ()
        assert ran(ledger, "0.2", (), [Child("1.0", 2)]).ready == ("1.0",)

    def test_reopened_by_two_readers(self, ledger: Ledger) -> None:
        old = ran(ledger, "0.1", (), ["1.0", "1.1"]).token
        assert ledger.reopen("0.1", old, [], "1.0")
        assert ledger.reopen("0.1", old, [], "1.1")
        assert ledger.status().done == 0
        new = ran(ledger, "0.1", (), ["1.0", "1.1"])
        assert new.ready == ("1.0", "1.1")
        assert not ledger.reopen("0.1", old, [], "1.0")
        assert ledger.published(["0.1"]) == [new.token]

    def test_a_late_duplicate_reopens_nothing(self, another: Callable[[], Ledger]) -> None:
        ledger = another()
        ledger.create(2)
        chain(ledger, "0.1", "1.0")
        (token,) = begun(ledger, "1.0", ["0.1"]).published
        ran(ledger, "1.0", ["0.1"])
        assert not ledger.reopen("0.1", token, [], "1.0")
        assert (ledger.status().state, ledger.published(["0.1"])) == ("finished", [token])

    def test_a_lost_result(self, another: Callable[[], Ledger]) -> None:
        ledger = another()
        ledger.create(2)
        chain(ledger, "0.1", "1.0")
        token = ran(ledger, "1.0", ["0.1"]).token
        assert ledger.reopen("1.0", token, ["0.1"], "")
        assert (ledger.status().state, ledger.status().done) == ("running", 1)
        ran(ledger, "1.0", ["0.1"])
        assert ledger.status().state == "finished"

    def test_reopened_between_two_pages(self, ledger: Ledger) -> None:
        token = begun(ledger, "0.1").token
        other = begun(ledger, "0.1").token
        first = Completion("0.1", token, [Child("1.0", 1)], last=False)
        ledger.complete([first])
        assert ledger.reopen("0.1", token, [], "1.0")
        assert ledger.status().done == 0
        again = begun(ledger, "0.1").token
        # What was begun before may have marked the reader already: it counts no more.
        late = [first, Completion("0.1", other, [Child("1.1", 1)])]
        assert ledger.complete(late) == [Completed(0), Completed(0)]
        assert ledger.complete([first._replace(token=again)]) == [Completed(again, ("1.0",))]

    # ---- a ledger built anew

    def test_restore(self, ledger: Ledger) -> None:
        ran(ledger, "9.9")
        kept = (7 << 32) + 3
        waiting = [Waiting("1.0", 1, ["0.1"]), Waiting("1.1", 2, ["0.1"]), Waiting("0.2", 0)]
        ledger.restore(5, [("0.1", kept), ("0.0", 0)], waiting)
        status = ledger.status()
        assert (status.state, status.total, status.done, status.begun) == ("running", 5, 2, 0)
        assert status.epoch > 7 + 100
        assert sorted(ledger.overdue(0, 9)) == ["0.2", "1.0"]
        assert ledger.published(["0.1", "0.0", "9.9"]) == [kept, 0, 0]
        assert begun(ledger, "1.0", ["0.1"]).published == (kept,)
        assert ledger.complete([Completion("1.0", kept)]) == [Completed(0)]
        assert ran(ledger, "0.2", (), [Child("1.1", 2)]).ready == ("1.1",)
        for name, parents in [("1.0", ["0.1"]), ("1.1", ["0.1", "0.2"])]:
            ran(ledger, name, parents)
        assert ledger.status().state == "finished"
        assert sorted(name for name, _ in ledger.discarded(0, 9)) == ["0.1", "0.2", "1.0", "1.1"]

    def test_nothing_left_to_do(self, ledger: Ledger) -> None:
        ledger.restore(3, [("2.0", 1 << 32)], [])
        assert (ledger.status().state, ledger.status().done) == ("finished", 3)

    def test_tiles_that_were_not_kept(self, ledger: Ledger) -> None:
        """A task that is done without tiles can be run again, whether or not it was listed."""
        ledger.restore(4, [("2.0", 0)], [Waiting("3.0", 2, ["1.0", "2.0"])])
        parents = ["1.0", "2.0"]
        assert begun(ledger, "3.0", parents).published == (0, 0)
        assert ledger.reopen("1.0", 0, ["0.0"], "3.0")
        assert ledger.reopen("2.0", 0, ["0.0"], "3.0")
        assert ledger.status().done == 1
        assert begun(ledger, "1.0", ["0.0"]).published == (0,)
        assert ledger.reopen("0.0", 0, [], "1.0")
        assert begun(ledger, "0.0").published == ()
        assert ran(ledger, "0.0", (), ["1.0", "2.0"]).ready == ("1.0", "2.0")
        assert ran(ledger, "1.0", ["0.0"], [Child("3.0", 2)]).ready == ()
        assert ran(ledger, "2.0", ["0.0"], [Child("3.0", 2)]).ready == ("3.0",)
        ran(ledger, "3.0", parents)
        assert (ledger.status().state, ledger.status().done) == ("finished", 4)
