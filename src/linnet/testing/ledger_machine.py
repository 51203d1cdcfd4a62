"""Random steps on a ledger and on the model of one: they must answer alike, whatever comes in which order.

    class Machine(LedgerMachine):
        def opened(self):
            return MyLedger(...)        # new, and with a silence of SILENCE seconds
        def pass_time(self, seconds):
            ...                         # for that ledger

    TestMine = Machine.TestCase

Programs are small random graphs; attempts die, come late, are repeated; tiles are lost; the job is stopped,
resumed and rebuilt.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from linnet.testing.clock import Clock
from linnet.testing.model_ledger import ModelLedger
from linnet.workers.ledger import Child, Completion, Ledger, Start, Waiting

SILENCE = 450.0
"""Long beside the seconds that really pass in a test."""
WORKERS = ("a/1", "b/2")


class LedgerMachine(RuleBasedStateMachine):
    """Subclass this with `opened` and `pass_time`."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.model = ModelLedger(self.clock, silence=SILENCE)
        self.real = self.opened()
        self.attempts: list[tuple[str, int, tuple[int, ...]]] = []

    def opened(self) -> Ledger:
        """A new ledger to be tested."""
        raise AssertionError("a subclass of LedgerMachine says how a ledger is opened")

    def pass_time(self, seconds: float) -> None:
        """Let time pass for the ledger of `opened`."""
        raise AssertionError("a subclass of LedgerMachine says how time passes")

    def teardown(self) -> None:
        self.real.drop()
        self.real.close()

    # ---- the program

    @initialize(edges=st.lists(st.lists(st.booleans(), min_size=7, max_size=7), min_size=2, max_size=7))
    def program(self, edges: list[list[bool]]) -> None:
        """Task j waits for task i < j where row j says so."""
        self.names = [f"{j % 3}.{j}" for j in range(len(edges))]
        self.waits = {
            name: [self.names[i] for i in range(j) if edges[j][i]] for j, name in enumerate(self.names)
        }
        self.both("create", len(self.names))

    def children(self, name: str) -> list[Child]:
        """Those that wait for a task; the seed `@` stands before those that wait for nobody."""
        if name == "@":
            return [Child(each, 0) for each, waits in self.waits.items() if not waits]
        return [Child(each, len(waits)) for each, waits in self.waits.items() if name in waits]

    def both(self, step: str, *arguments: Any) -> Any:
        """The answer of both; they must agree."""
        expected = getattr(self.model, step)(*arguments)
        found = getattr(self.real, step)(*arguments)
        assert found == expected, f"{step}{arguments}: {found}, expected {expected}"
        return expected

    def unordered(self, step: str, *arguments: Any) -> None:
        """The same where the order is free."""
        expected = sorted(getattr(self.model, step)(*arguments))
        found = sorted(getattr(self.real, step)(*arguments))
        assert found == expected, f"{step}{arguments}: {found}, expected {expected}"

    def pick(self, data: st.DataObject, label: str, *, seeds: bool = True) -> str:
        return data.draw(st.sampled_from([*self.names, *(["@"] if seeds else [])]), label)

    # ---- attempts

    @rule(data=st.data(), worker=st.sampled_from(WORKERS), extra=st.booleans(), count=st.integers(1, 3))
    def begin(self, data: st.DataObject, worker: str, extra: bool, count: int) -> None:
        names = [self.pick(data, "begun") for _ in range(count)]
        starts = [Start(name, self.waits.get(name, ()), extra) for name in names]
        for name, begun in zip(names, self.both("begin", starts, worker), strict=True):
            if begun.state == "run":
                self.attempts.append((name, begun.token, begun.published))

    @precondition(lambda self: self.attempts)
    @rule(data=st.data())
    def computing(self, data: st.DataObject) -> None:
        name, token, _ = data.draw(st.sampled_from(self.attempts))
        self.both("computing", name, token)

    @precondition(lambda self: self.attempts)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        name, token, _ = data.draw(st.sampled_from(self.attempts))
        self.both("forget", name, token)

    @precondition(lambda self: self.attempts)
    @rule(data=st.data(), count=st.integers(1, 2), whole=st.booleans())
    def complete(self, data: st.DataObject, count: int, whole: bool) -> None:
        """Attempts of any age, perhaps repeated; or a first page only."""
        chosen = [data.draw(st.sampled_from(self.attempts)) for _ in range(count)]
        pages = [
            Completion(
                name, token, self.children(name)[: None if whole else 1], self.waits.get(name, ()),
                last=whole, counted=name != "@", seconds=0.5,
            )
            for name, token, _ in chosen
        ]  # fmt: skip
        self.both("complete", pages)

    @precondition(lambda self: self.attempts)
    @rule(data=st.data())
    def fail(self, data: st.DataObject) -> None:
        name, token, _ = data.draw(st.sampled_from(self.attempts))
        self.both("fail", name, token, f"{name} failed")
        self.unordered("resume")

    @precondition(lambda self: any(published for _, _, published in self.attempts))
    @rule(data=st.data())
    def reopen(self, data: st.DataObject) -> None:
        """An attempt, perhaps a late one, misses a tile."""
        readers = [each for each in self.attempts if each[2]]
        name, _, published = data.draw(st.sampled_from(readers))
        parent, token = data.draw(st.sampled_from(list(zip(self.waits[name], published, strict=True))))
        self.both("reopen", parent, token, self.waits[parent], name)

    # ---- the job

    @rule(state=st.sampled_from(["stopped", "cancelled"]))
    def halt_and_resume(self, state: str) -> None:
        self.both("halt", state, "told to")
        self.unordered("resume")

    @rule(data=st.data())
    def rebuild(self, data: st.DataObject) -> None:
        """The ledger is lost; some of the tasks that were done are known from their tiles."""
        done = {name: self.model.published([name])[0] for name in self.names if self.is_done(name)}
        listed = [name for name in done if data.draw(st.booleans(), f"{name} is listed")]
        kept = [(name, done[name] if data.draw(st.booleans(), "kept") else 0) for name in listed]
        waiting = [
            Waiting(name, len(waits), [each for each in waits if each in done])
            for name, waits in self.waits.items()
            if name not in done
        ]
        self.both("restore", len(self.names), kept, waiting)

    def is_done(self, name: str) -> bool:
        (begun,) = self.model.copy().begin([Start(name)], "nobody")
        return begun.state == "done"

    # ---- time, idle workers

    @rule(seconds=st.sampled_from([100, 300, 700]))
    def later(self, seconds: float) -> None:
        self.clock.later(seconds)
        self.pass_time(seconds)

    @rule(worker=st.sampled_from(WORKERS), data=st.data())
    def touch(self, worker: str, data: st.DataObject) -> None:
        names = [self.pick(data, "touched")]
        assert self.real.touch(names, worker).state == self.model.touch(names, worker).state

    @rule(worker=st.sampled_from(WORKERS))
    def leave(self, worker: str) -> None:
        self.both("leave", worker)

    @rule(seconds=st.sampled_from([50, 250, 10_000]))
    def overdue(self, seconds: float) -> None:
        self.unordered("overdue", seconds, 100)

    @rule(least=st.sampled_from([50, 250]))
    def stragglers(self, least: float) -> None:
        self.unordered("stragglers", 2.0, least, 100)

    @rule(grace=st.sampled_from([50, 250]))
    def discarded(self, grace: float) -> None:
        self.unordered("discarded", grace, 100)

    # ---- always

    @invariant()
    def same(self) -> None:
        found, expected = self.real.status(), self.model.status()
        for field in ("state", "reason", "failed", "epoch", "total", "done", "begun"):
            assert getattr(found, field) == getattr(expected, field), f"{field}: {found}, expected {expected}"
        assert {kind: tasks for kind, (tasks, _) in found.kinds.items()} == {
            kind: tasks for kind, (tasks, _) in expected.kinds.items()
        }
        assert self.real.published(self.names) == self.model.published(self.names)
        assert 0 <= expected.done <= expected.total
