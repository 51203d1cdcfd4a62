"""Short calls that are sent to a worker together."""

from __future__ import annotations

import pickle
import threading
import time

import numpy as np
import pytest

import linnet as ln
from linnet.futures.answering import answers
from linnet.futures.places import Elsewhere, check_node
from linnet.futures.scheduler import MAY_TRAVEL, TRAVELS, Scheduler, Task
from linnet.futures.travelling import Call, Lost, apart, packed, together


def square(x):
    return len(x) if type(x) is str else x * x


def tail(x):
    return x[1:]


def long_at_seven(x):
    if x == 7:
        time.sleep(0.05)
    return x


class Carrier:
    """Makes calls on a thread of this process; `loses` says which groups are lost."""

    places, nodes, where = 1, 1, "the cluster"

    def __init__(self, loses=lambda group: False):
        self.groups = []
        self.loses = loses
        self.gate = threading.Event()

    def carry(self, name, sent, node, answered):
        self.groups.append(sent)

        def make():
            self.gate.wait(60)
            answered(Lost("its worker is gone") if self.loses(len(self.groups) - 1) else answers(sent))

        threading.Thread(target=make, daemon=True).start()

    def sizes(self):
        return [len(pickle.loads(each)) for each in self.groups]


def run(carrier, f, count, travels=MAY_TRAVEL):
    """The values of so many calls, the first of which had come back before the rest was ready."""
    runs = Scheduler(2, Elsewhere(carrier))
    tasks = [Task(f, (x,)) for x in range(count)]
    for each in tasks:
        each.travels = travels
        runs.submit(each)
    carrier.gate.set()
    for each in tasks:
        assert runs.wait(each, 60)
    assert [each.error for each in tasks] == [None] * count
    return [each.value for each in tasks]


def test_calls_that_were_seen_to_be_short_go_together():
    carrier = Carrier()
    assert run(carrier, square, 100) == [x * x for x in range(100)]
    assert carrier.sizes()[0] == 1
    assert max(carrier.sizes()) > 8
    assert sum(carrier.sizes()) == 100


def test_calls_that_may_have_effects_go_one_by_one():
    carrier = Carrier()
    run(carrier, square, 20, TRAVELS)
    assert carrier.sizes() == [1] * 20


def test_what_follows_a_long_call_is_given_back():
    carrier = Carrier()
    assert run(carrier, long_at_seven, 40) == list(range(40))
    seconds, made = apart(answers(together([_sent(long_at_seven, x) for x in (6, 7, 8)])))
    assert len(made) == 2
    assert seconds > 0.04


def _sent(f, x):
    return packed(Call(f, (x,), {}, True))[0]


def test_calls_whose_worker_was_lost_are_made_again_one_by_one():
    carrier = Carrier(loses=lambda group: group == 1)
    assert run(carrier, square, 30) == [x * x for x in range(30)]
    sizes = carrier.sizes()
    assert sizes[1] > 1
    assert sum(sizes) == 30 + sizes[1]
    assert sizes.count(1) >= sizes[1]


def test_one_that_always_loses_its_worker_is_named_and_the_others_are_made():
    carrier = Carrier()
    carrier.loses = lambda group: b"the wrong one" in carrier.groups[group]
    runs = Scheduler(2, Elsewhere(carrier))
    tasks = [Task(square, (x,)) for x in (1, 2, 3, "the wrong one", 5, 6, 7, 8)]
    for each in tasks:
        each.travels = MAY_TRAVEL
        runs.submit(each)
    carrier.gate.set()
    for each in tasks:
        assert runs.wait(each, 60)
    assert [each.value for each in tasks] == [1, 4, 9, None, 25, 36, 49, 64]
    with pytest.raises(ln.JobError, match="square was lost, 3 times"):
        raise tasks[3].error or AssertionError("no error")


def test_a_node_that_is_not_there_is_refused_in_the_words_of_the_place():
    with pytest.raises(ln.InputError, match="node=1: calls run on the cluster, whose only node is 0"):
        check_node(1, Scheduler(1, Elsewhere(Carrier())))
    two = Carrier()
    two.nodes = 2
    with pytest.raises(ln.InputError, match="node=2: calls run on the cluster, whose nodes are 0 to 1"):
        check_node(2, Scheduler(1, Elsewhere(two)))


def test_a_call_that_was_found_to_stay_here_is_not_sent_again():
    carrier = Carrier()
    runs = Scheduler(1, Elsewhere(carrier))
    gate, array = threading.Event(), np.zeros(3)
    busy, first, stays = Task(gate.wait, (60,)), Task(square, (3,)), Task(tail, (array,))
    for each in (first, stays):
        each.travels = MAY_TRAVEL
    runs.submit(busy)
    runs.submit(first)
    runs.submit(stays)
    waits = threading.Thread(target=runs.wait, args=(stays,))  # it comes first now, and is in the queue twice
    waits.start()
    while not stays.watchers:
        time.sleep(0.001)
    carrier.gate.set()
    while stays.travels:
        time.sleep(0.001)
    time.sleep(0.02)
    gate.set()
    assert runs.wait(stays, 60)
    waits.join()
    assert np.shares_memory(stays.value, array)
    assert carrier.sizes() == [1, 1]
