"""The schedule as a state machine: no threads, no tiles."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from linnet.planning.schedule import Ranking, Schedule, finishing, in_order, longest_paths, waiting


def graph(count, edges):
    """CSR of a graph; edges are (from, to)."""
    children = [sorted({b for a, b in edges if a == task}) for task in range(count)]
    child = np.array([c for each in children for c in each], np.int64)
    start = np.cumsum([0] + [len(each) for each in children])
    degree = np.bincount(child, minlength=count)
    return SimpleNamespace(child_start=start, child=child, in_degree=degree), children


@st.composite
def acyclic(draw):
    count = draw(st.integers(0, 60))
    order = draw(st.permutations(range(count)))
    pairs = st.tuples(st.integers(0, max(0, count - 1)), st.integers(0, max(0, count - 1)))
    edges = draw(st.lists(pairs, max_size=150)) if count else []
    return count, {(order[min(a, b)], order[max(a, b)]) for a, b in edges if a != b}


def brute_height(children):
    known = {}

    def height(task):
        if task not in known:
            known[task] = 1 + max((height(c) for c in children[task]), default=0)
        return known[task]

    return [height(task) for task in range(len(children))]


@given(acyclic())
def test_longest_paths(made):
    arrays, children = graph(*made)
    assert longest_paths(arrays).tolist() == brute_height(children)


def test_longest_paths_on_wide_and_narrow_levels():
    wide = [(0, task) for task in range(1, 101)] + [(task, 101) for task in range(1, 101)]
    tail = [(101, 102), (102, 103)]
    arrays, children = graph(104, wide + tail)
    assert longest_paths(arrays).tolist() == brute_height(children)


@given(acyclic(), st.data())
def test_every_task_runs_once_and_after_its_parents(made, data):
    count, edges = made
    arrays, children = graph(count, edges)
    schedule = Schedule(arrays)
    running, done = [], []
    while not schedule.finished:
        assert not schedule.stuck
        if schedule.ready and (not running or data.draw(st.booleans())):
            task = schedule.take()
            assert all(a in done for a, b in edges if b == task)
            assert schedule.children(task) == len(children[task])
            running.append(task)
        else:
            task = running.pop(data.draw(st.integers(0, len(running) - 1)))
            done.append(task)
            expected = [c for c in children[task] if all(a in done for a, b in edges if b == c)]
            assert sorted(schedule.finish(task)) == expected
        assert (schedule.running, schedule.done) == (len(running), len(done))
    assert sorted(done) == list(range(count))
    assert schedule.ready == 0


def test_the_longest_way_goes_first():
    arrays, _ = graph(5, [(0, 4), (2, 3), (3, 4)])
    schedule = Schedule(arrays)
    assert schedule.waiting() == [2, 0, 1]
    assert schedule.next == 2
    assert [schedule.take(), schedule.take(), schedule.take(), schedule.ready] == [2, 0, 1, 0]


def test_a_cycle_is_seen():
    arrays, _ = graph(3, [(0, 1), (1, 2), (2, 1)])
    schedule = Schedule(arrays)
    schedule.finish(schedule.take())
    assert schedule.stuck
    assert not schedule.finished


@given(acyclic())
def test_in_the_order_that_finishes_parents_come_first(made):
    arrays, children = graph(*made)
    order = finishing(arrays).tolist()
    assert sorted(order) == list(range(len(children)))
    place = {task: at for at, task in enumerate(order)}
    assert all(place[task] < place[child] for task, below in enumerate(children) for child in below)


def test_what_is_started_is_finished_first():
    arrays, _ = graph(6, [(0, 2), (1, 3), (2, 4), (3, 5)])
    assert finishing(arrays).tolist() == [0, 2, 4, 1, 3, 5]
    schedule = Schedule(arrays, Ranking(arrays, sparing=True))
    schedule.finish(schedule.take())
    assert schedule.take() == 2


def test_tasks_on_a_cycle_come_last():
    arrays, _ = graph(3, [(0, 1), (1, 0)])
    assert finishing(arrays).tolist() == [2, 0, 1]


def test_short_ways_are_finished_before_others_are_begun():
    """Sixty times two tasks, one after the other; then the same beside a long way."""
    pairs = [(task, 60 + task) for task in range(60)]
    arrays, _ = graph(120, pairs)
    order = in_order(arrays)
    assert waiting(arrays, np.argsort(-longest_paths(arrays), kind="stable")) == 60
    assert waiting(arrays, order) == 1
    assert order[:4].tolist() == [0, 60, 1, 61]
    long, _ = graph(141, pairs + [(task, task + 1) for task in range(120, 140)])
    assert waiting(long, in_order(long)) >= 60


@given(acyclic())
def test_results_that_wait(made):
    arrays, children = graph(*made)
    order = in_order(arrays).tolist()
    done, most = set(), 0
    for task in order:
        done.add(task)
        most = max(most, sum(any(c not in done for c in children[each]) for each in done))
    assert waiting(arrays, np.array(order, np.int64)) == most
