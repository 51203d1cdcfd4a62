"""What every queue must do: a suite to subclass::

    from linnet.testing.queues import QueueSuite

    class TestMine(QueueSuite):
        @pytest.fixture
        def another(self):
            return lambda: MyQueue(...)     # one more holder of the same queue, empty at first

A suite that needs pytest is imported by tests only.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from linnet.workers.queue import Entry, Lease, Queue


def drained(queue: Queue, seconds: float = 60) -> list[Lease]:
    """Leases of everything that can be leased now."""
    found: list[Lease] = []
    while more := queue.lease(10, seconds):
        found += more
    return found


def names(leases: list[Lease]) -> list[str]:
    """The tasks of leases, in order."""
    return [lease.name for lease in leases]


class QueueSuite:
    """Subclass this with a fixture `another`, and with what is true of the queue."""

    moment: float = 0.2
    """The shortest lease the queue can tell from none, in seconds."""
    many: int = 240
    """Tasks that are many for the queue."""
    most_deliveries: int = 3
    """After how many deliveries the queues of `another` set a task aside."""

    @pytest.fixture
    def another(self) -> Callable[[], Queue]:
        """Opens the queue under test; called again, for one more holder."""
        pytest.fail("a subclass of QueueSuite gives the fixture `another`")

    @pytest.fixture
    def queue(self, another: Callable[[], Queue]) -> Queue:
        """The queue under test, empty."""
        return another()

    @pytest.fixture
    def later(self) -> Callable[[float], None]:
        """Lets seconds pass for the queue."""
        return time.sleep

    # ---- in and out

    def test_what_is_put_is_leased_once(self, queue: Queue) -> None:
        assert queue.lease(5, 60) == []
        assert queue.put([Entry("0.1"), Entry("0.2"), Entry("@")]) == []
        leases = drained(queue)
        assert sorted(names(leases)) == ["0.1", "0.2", "@"]
        assert [lease.deliveries for lease in leases] == [1, 1, 1]
        assert len({lease.receipt for lease in leases}) == 3
        assert queue.lease(5, 60) == []

    def test_no_more_than_the_limit(self, queue: Queue) -> None:
        queue.put([Entry(f"0.{i}") for i in range(7)])
        assert len(queue.lease(3, 60)) <= 3
        assert queue.lease(0, 60) == []

    def test_put_nothing(self, queue: Queue) -> None:
        assert queue.put([]) == []
        assert queue.put([], claim=3, seconds=60) == []
        assert queue.size() == (0, 0, 0)

    def test_many_at_once(self, queue: Queue) -> None:
        queue.put([Entry(f"0.{i}") for i in range(self.many)])
        leases = drained(queue)
        assert sorted(names(leases)) == sorted(f"0.{i}" for i in range(self.many))
        queue.remove(leases)
        assert queue.size() == (0, 0, 0)

    def test_a_removed_task_can_be_put_again(self, queue: Queue) -> None:
        queue.put([Entry("0.1")])
        queue.remove(drained(queue))
        queue.put([Entry("0.1")])
        (lease,) = drained(queue)
        assert lease.deliveries == 1

    # ---- leases

    def test_a_lease_ends(self, queue: Queue, later: Callable[[float], None]) -> None:
        queue.put([Entry("0.1")])
        (first,) = queue.lease(1, self.moment)
        assert queue.lease(1, 60) == []
        later(2 * self.moment)
        (second,) = queue.lease(1, 60)
        assert (second.name, second.deliveries) == ("0.1", 2)
        assert second.receipt != first.receipt

    def test_an_old_receipt_does_nothing(self, queue: Queue, later: Callable[[float], None]) -> None:
        queue.put([Entry("0.1")])
        (first,) = queue.lease(1, self.moment)
        later(2 * self.moment)
        (second,) = queue.lease(1, 60)
        queue.remove([first])
        queue.release([first])
        assert queue.lease(1, 60) == []
        assert queue.renew([first, second], 60) == [False, True]
        queue.remove([second])
        assert queue.size() == (0, 0, 0)

    def test_renewed_leases_go_on(self, queue: Queue, later: Callable[[float], None]) -> None:
        queue.put([Entry("0.1"), Entry("0.2")])
        leases = queue.lease(2, 3 * self.moment)
        assert queue.renew(leases, 60) == [True, True]
        later(4 * self.moment)
        assert queue.lease(2, 60) == []
        assert queue.renew([], 60) == []

    def test_renewing_can_shorten(self, queue: Queue, later: Callable[[float], None]) -> None:
        queue.put([Entry("0.1")])
        leases = queue.lease(1, 60)
        queue.renew(leases, self.moment)
        later(2 * self.moment)
        assert names(queue.lease(1, 60)) == ["0.1"]

    def test_released_tasks_come_back_uncounted(self, queue: Queue) -> None:
        queue.put([Entry("0.1")])
        for _ in range(3 * self.most_deliveries):
            (lease,) = queue.lease(1, 60)
            assert lease.deliveries == 1
            queue.release([lease])
        assert queue.dead() == []

    def test_a_released_lease_is_over(self, queue: Queue) -> None:
        queue.put([Entry("0.1")])
        (first,) = queue.lease(1, 60)
        queue.release([first])
        (second,) = queue.lease(1, 60)
        queue.release([first])
        queue.remove([first])
        assert queue.renew([first], 60) == [False]
        assert queue.renew([second], 60) == [True]

    def test_removing_twice(self, queue: Queue) -> None:
        queue.put([Entry("0.1"), Entry("0.2")])
        leases = drained(queue)
        queue.remove(leases[:1])
        queue.remove(leases[:1])
        assert queue.renew(leases, 60) == [False, True]

    # ---- claims

    def test_claimed_tasks_are_the_callers(self, queue: Queue) -> None:
        claimed = queue.put([Entry("0.1"), Entry("0.2"), Entry("0.3")], claim=2, seconds=60)
        assert set(names(claimed)) <= {"0.1", "0.2"}
        others = drained(queue)
        assert sorted(names(claimed + others)) == ["0.1", "0.2", "0.3"]
        queue.remove(claimed + others)
        assert queue.size() == (0, 0, 0)

    def test_what_others_hold_is_not_claimed(self, queue: Queue) -> None:
        queue.put([Entry("0.1")])
        held = queue.lease(1, 60)
        claimed = queue.put([Entry("0.1"), Entry("0.2")], claim=2, seconds=60)
        assert "0.1" not in names(claimed)
        assert queue.renew(held, 60) == [True]

    def test_claims_end_as_leases_do(self, queue: Queue, later: Callable[[float], None]) -> None:
        queue.put([Entry("0.1")], claim=1, seconds=self.moment)
        later(2 * self.moment)
        assert names(queue.lease(1, 60)) == ["0.1"]

    # ---- sizes, dead letters

    def test_sizes(self, queue: Queue, later: Callable[[float], None]) -> None:
        queue.put([Entry(f"0.{i}") for i in range(5)])
        leases = queue.lease(1, self.moment) + queue.lease(1, 60)
        assert queue.size() == (3, 2, 0)
        later(2 * self.moment)
        assert queue.size() == (4, 1, 0)
        queue.remove(leases[1:])
        assert queue.size() == (4, 0, 0)

    def test_delivered_too_often(self, queue: Queue, later: Callable[[float], None]) -> None:
        queue.put([Entry("0.1", 5), Entry("0.2", 0)])
        held: list[Lease] = []
        for delivery in range(1, self.most_deliveries + 1):
            held = queue.lease(1, self.moment)
            assert [(lease.name, lease.deliveries) for lease in held] == [("0.1", delivery)]
            later(2 * self.moment)
        # The dead one does not stand in the way of the next.
        assert names(queue.lease(1, 60)) == ["0.2"]
        assert queue.dead() == ["0.1"]
        assert queue.size() == (0, 1, 1)
        # Whoever had it last, and comes back late, changes nothing.
        queue.remove(held)
        queue.release(held)
        assert queue.dead() == ["0.1"]
        assert queue.size() == (0, 1, 1)
        assert queue.lease(5, 60) == []

    def test_clear(self, queue: Queue, later: Callable[[float], None]) -> None:
        queue.put([Entry(f"0.{i}") for i in range(4)])
        (held,) = queue.lease(1, 60)
        queue.clear()
        assert queue.size() == (0, 0, 0)
        assert queue.dead() == []
        queue.put([Entry(held.name)])
        (again,) = drained(queue)
        queue.remove([held])
        queue.release([held])
        assert queue.renew([held, again], 60) == [False, True]

    def test_dropping_it_twice(self, another: Callable[[], Queue]) -> None:
        queue = another()
        queue.put([Entry("0.1"), Entry("0.2")])
        queue.lease(1, 60)
        queue.drop()
        queue.drop()

    def test_a_queue_may_be_cleared_again_at_once(self, queue: Queue) -> None:
        for _ in range(3):
            queue.put([Entry("0.1"), Entry("0.2"), Entry("0.3")])
            queue.clear()
            assert queue.lease(10, 5) == []

    def test_a_queue_that_somebody_dropped_is_there_again_after_clear(
        self, queue: Queue, another: Callable[[], Queue]
    ) -> None:
        """As a client does that resumes a job."""
        queue.put([Entry("0.1")])
        another().drop()
        queue.clear()
        queue.put([Entry("0.2")])
        assert [lease.name for lease in drained(queue)] == ["0.2"]

    # ---- many holders

    def test_grouped_steps_are_all_there(self, queue: Queue, another: Callable[[], Queue]) -> None:
        other = another()
        with queue.grouped():
            queue.put([Entry("0.1"), Entry("0.2")])
            leases = queue.lease(1, 60)
            queue.remove(leases)
        assert len(drained(other)) == 1
        other.close()

    def test_each_task_to_one_holder(self, queue: Queue, another: Callable[[], Queue]) -> None:
        """Threads put, lease and remove at once: nothing is lost, nothing is held twice."""
        tasks, count = self.many // 4, 4
        holding: set[str] = set()
        handled: Counter[str] = Counter()
        lock = threading.Lock()

        def work(number: int) -> None:
            mine = another()
            mine.put([Entry(f"{number}.{i}", i % 3) for i in range(tasks)])
            empty = 0
            while empty < 3:
                leases = mine.lease(2, 60)
                empty = 0 if leases else empty + 1
                with lock:
                    taken = {lease.name for lease in leases}
                    assert not taken & holding
                    holding.update(taken)
                with lock:
                    holding.difference_update(taken)
                    handled.update(taken)
                mine.remove(leases)
            mine.close()

        with ThreadPoolExecutor(count) as pool:
            list(pool.map(work, range(count)))
        rest = drained(queue)
        handled.update(names(rest))
        queue.remove(rest)
        assert handled == Counter({f"{n}.{i}": 1 for n in range(count) for i in range(tasks)})
        assert queue.size() == (0, 0, 0)

    def test_the_address_is_told(self, queue: Queue) -> None:
        assert "://" in queue.url
        assert queue.url in repr(queue)

    def test_closing_twice(self, another: Callable[[], Queue]) -> None:
        queue = another()
        queue.close()
        queue.close()


class ExactQueueSuite(QueueSuite):
    """For queues with exact priorities, in which a task that is put twice is there once."""

    def test_higher_priorities_first(self, queue: Queue) -> None:
        queue.put([Entry("0.1", -4), Entry("0.2", 7), Entry("0.3", 0), Entry("0.4", 2**40)])
        queue.put([Entry("0.5", 3)])
        assert names([queue.lease(1, 60)[0] for _ in range(5)]) == ["0.4", "0.2", "0.5", "0.3", "0.1"]

    def test_nothing_is_left_of_a_dropped_queue(self, another: Callable[[], Queue]) -> None:
        queue = another()
        queue.put([Entry("0.1"), Entry("0.2")])
        (held,) = queue.lease(1, 60)
        queue.drop()
        again = another()
        assert again.size() == (0, 0, 0)
        assert again.renew([held], 60) == [False]

    def test_a_task_that_is_there_stays_as_it_is(self, queue: Queue) -> None:
        queue.put([Entry("0.1"), Entry("0.1"), Entry("0.2")])
        (lease, other) = drained(queue)
        queue.put([Entry("0.1"), Entry("0.2")])
        assert queue.lease(5, 60) == []
        assert queue.renew([lease, other], 60) == [True, True]
        queue.remove([lease, other])
        assert queue.size() == (0, 0, 0)
