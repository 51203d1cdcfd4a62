"""How parallel functions run: recursion, futures of whole functions, a bound on what is pending."""

from __future__ import annotations

import pytest

import linnet as ln
from linnet.engines import Threads
from linnet.futures import activation, order

ENGINES = [Threads(workers=count) for count in (1, 2, 7)]
LOG: list[object] = []


def log(x):
    LOG.append(x)
    return x


@ln.parallel
def down(n):
    if n == 0:
        return 0
    return 1 + down(n - 1)


@ln.parallel
def down_with_effects(n):
    if n == 0:
        return log(0)
    return 1 + down_with_effects(n - 1)


@ln.parallel
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES, ids=str)
def test_recursion_never_deadlocks_and_ends_where_pythons_does(engine):
    with ln.init(engine):
        assert fibonacci(9) == 34
        assert down(960) == 960
        assert down_with_effects(960) == 960
        with pytest.raises(RecursionError):
            down(5000)
        with pytest.raises(RecursionError):
            down_with_effects(5000)


@ln.parallel
def down_inside(n):
    def inner(k):
        return 0 if k == 0 else abs(inner(k - 1)) + 1

    again = lambda k: again(k - 1) + 1 if k else inner(0)  # noqa: E731
    return inner(n), again(n)


@pytest.mark.parametrize("engine", ENGINES, ids=str)
def test_functions_inside_reach_the_depth_they_reach_in_python(engine):
    with ln.init(engine):
        assert down_inside(940) == (940, 940)
        with pytest.raises(RecursionError):
            down_inside(5000)


def test_submit_gives_a_future():
    future = fibonacci.submit(8)
    assert isinstance(future, ln.Future)
    assert future.result() == 21
    futures = [fibonacci.submit(i) for i in range(6)]
    assert [each.result() for each in futures] == [0, 1, 1, 2, 3, 5]


def test_pending_calls_are_bounded():
    @ln.pure
    def nothing(x):
        return x

    seen = []

    @ln.parallel
    def program(n):
        for i in range(n):
            nothing(i)
        return n

    issue = activation.Activation.issue

    def watched(self, *args):
        seen.append(len(self.order))
        return issue(self, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(activation.Activation, "issue", watched)
        assert program(3000) == 3000
    assert max(seen) <= order.PENDING
