"""Random steps on a queue and on the model of one: they must answer alike.

    class Machine(QueueMachine):
        def opened(self):
            return MyQueue(...)         # empty; sets tasks aside after MOST_DELIVERIES
        def pass_time(self, seconds):
            ...                         # for that queue

    TestMine = Machine.TestCase

For queues with exact priorities in which a task is at most once.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from linnet.testing.clock import Clock
from linnet.testing.model_queue import ModelQueue
from linnet.workers.queue import Entry, Lease, Queue

MOST_DELIVERIES = 3
NAMES = [f"0.{i}" for i in range(6)]
PRIORITIES = {name: 10 * i for i, name in enumerate(NAMES)}
"""All different, so that the order is certain."""


class QueueMachine(RuleBasedStateMachine):
    """Subclass this with `opened` and `pass_time`."""

    def __init__(self) -> None:
        super().__init__()
        self.clock: Clock = Clock()
        self.model: ModelQueue = ModelQueue(self.clock, most_deliveries=MOST_DELIVERIES)
        self.real: Queue = self.opened()
        self.leases: list[tuple[Lease, Lease]] = []
        """Of the model and of the queue, current or not."""

    def opened(self) -> Queue:
        """An empty queue to be tested."""
        raise AssertionError("a subclass of QueueMachine says how a queue is opened")

    def pass_time(self, seconds: float) -> None:
        """Let time pass for the queue of `opened`."""
        raise AssertionError("a subclass of QueueMachine says how time passes")

    def teardown(self) -> None:
        self.real.clear()
        self.real.close()

    def leased(self, expected: list[Lease], found: list[Lease]) -> None:
        assert [(each.name, each.deliveries) for each in found] == [
            (each.name, each.deliveries) for each in expected
        ]
        self.leases += zip(expected, found, strict=True)

    def pick(self, data: st.DataObject) -> tuple[Lease, Lease]:
        return data.draw(st.sampled_from(self.leases))

    @rule(names=st.lists(st.sampled_from(NAMES), max_size=4), claim=st.integers(0, 3))
    def put(self, names: list[str], claim: int) -> None:
        entries = [Entry(name, PRIORITIES[name]) for name in names]
        self.leased(
            self.model.put(entries, claim=claim, seconds=200),
            self.real.put(entries, claim=claim, seconds=200),
        )

    @rule(limit=st.integers(0, 3), seconds=st.sampled_from([150, 450]))
    def lease(self, limit: int, seconds: float) -> None:
        self.leased(self.model.lease(limit, seconds), self.real.lease(limit, seconds))

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), seconds=st.sampled_from([150, 450]))
    def renew(self, data: st.DataObject, seconds: float) -> None:
        modelled, real = self.pick(data)
        assert self.real.renew([real], seconds) == self.model.renew([modelled], seconds)

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        modelled, real = self.pick(data)
        self.model.release([modelled])
        self.real.release([real])

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        modelled, real = self.pick(data)
        self.model.remove([modelled])
        self.real.remove([real])

    @rule(seconds=st.sampled_from([100, 300]))
    def later(self, seconds: float) -> None:
        self.clock.later(seconds)
        self.pass_time(seconds)

    @rule()
    def clear(self) -> None:
        self.model.clear()
        self.real.clear()

    @invariant()
    def same(self) -> None:
        assert self.real.size() == self.model.size()
        assert self.real.dead() == self.model.dead()
