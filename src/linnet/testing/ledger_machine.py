"""Random steps on a ledger and on the model of one: they must answer alike, whatever comes in which order.

    class Machine(LedgerMachine):
        def opened(self):
            return MyLedger(...)        # new, and with a silence of SILENCE seconds
        def pass_time(self, seconds):
            ...                         # for that ledger

    TestMine = Machine.TestCase

Programs are small random graphs; attempts die, come late, are repeated; tiles are lost; the job is stopped,
resumed and rebuilt. One task may call for a second part, of two tasks.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from linnet.testing.clock import Clock
from linnet.testing.model_ledger import ModelLedger
from linnet.workers.ledger import EVERY_STATEMENT, Child, Completion, Ledger, Start, Waiting

SILENCE = 450.0
"""Long beside the seconds that really pass in a test."""
WORKERS = ("a/1", "b/2")
STATEMENTS = 3
"""Of the first part of a program; the only statement of the second comes after them."""
SEED, SECOND = "@3", {"3.0": [], "3.1": ["3.0"]}


class LedgerMachine(RuleBasedStateMachine):
    """Subclass this with `opened` and `pass_time`."""

    def __init__(self) -> None:
        super().__init__()
        self.clock: Clock = Clock()
        self.model: ModelLedger = ModelLedger(self.clock, silence=SILENCE)
        self.real: Ledger = self.opened()
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

    @initialize(
        edges=st.lists(st.lists(st.booleans(), min_size=7, max_size=7), min_size=2, max_size=7),
        decider=st.integers(0, 6),
    )
    def program(self, edges: list[list[bool]], decider: int) -> None:
        """Task j waits for task i < j where row j says so."""
        self.first: list[str] = [f"{j % STATEMENTS}.{j}" for j in range(len(edges))]
        self.decider: str = self.first[decider % len(edges)]
        self.waits: dict[str, list[str]] = {
            name: [self.first[i] for i in range(j) if edges[j][i]] for j, name in enumerate(self.first)
        }
        self.waits |= {**SECOND, SEED: [self.decider]}
        self.both("create", len(self.first))

    @property
    def names(self) -> list[str]:
        """The tasks of the job, as far as that is decided."""
        return [*self.first, *(SECOND if self.model.status().total > len(self.first) else ())]

    def children(self, name: str) -> list[Child]:
        """Those that wait for a task; the seed `@` stands before those that wait for nobody."""
        if name == "@":
            return [Child(each, 0) for each in self.first if not self.waits[each]]
        if name == SEED:
            return [Child(each, 1) for each, waits in SECOND.items() if not waits]
        return [Child(each, len(self.waits[each])) for each in self.names if name in self.waits[each]]

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
        return data.draw(st.sampled_from([*self.names, *(["@", SEED] if seeds else [])]), label)

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
    @rule(data=st.data(), count=st.integers(1, 2), whole=st.booleans(), more=st.booleans())
    def complete(self, data: st.DataObject, count: int, whole: bool, more: bool) -> None:
        """Attempts of any age, perhaps repeated; or a first page only. One may call for the second part."""
        chosen = [data.draw(st.sampled_from(self.attempts)) for _ in range(count)]
        pages = [
            Completion(
                name, token, self.children(name)[: None if whole else 1], self.waits.get(name, ()),
                last=whole, counted=name[0] != "@", seconds=0.5,
            )
            for name, token, _ in chosen
        ]  # fmt: skip
        if more:
            call = {"chosen": [Child(SEED, 1)], "total": len(self.first) + len(SECOND)}
            pages = [page._replace(**call) if page.name == self.decider else page for page in pages]
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
            for name, waits in ((name, self.waits[name]) for name in self.names)
            if name not in done
        ]
        decided = len(self.names) > len(self.first)
        self.both("restore", len(self.names), kept, waiting, EVERY_STATEMENT if decided else STATEMENTS)

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

    @rule(worker=st.sampled_from(WORKERS), died=st.booleans())
    def leave(self, worker: str, died: bool) -> None:
        self.real.leave(worker, died=died)
        self.model.leave(worker, died=died)
        ends = [
            {each.name: (each.left, each.died) for each in of.workers()} for of in (self.real, self.model)
        ]
        assert ends[0] == ends[1]

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
