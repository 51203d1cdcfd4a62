"""Sessions: which engine is current, and how engines are found."""

from __future__ import annotations

import contextlib
import threading
from importlib.metadata import EntryPoint

import pytest

from linnet.engines import Threads
from linnet.errors import InputError
from linnet.session import current_engine, engine_names, finding, init, make_engine


@pytest.fixture(autouse=True)
def _no_session_left():
    yield
    from linnet.session import session

    session._sessions.clear()


def test_threads_are_the_default_and_one_engine():
    assert isinstance(current_engine(), Threads)
    assert current_engine() is current_engine()


def test_the_latest_session_is_current_until_it_ends():
    first = init(workers=3)
    with init(workers=1) as second:
        assert current_engine() is second.engine
        with contextlib.suppress(ZeroDivisionError), init(workers=2) as third:
            assert current_engine() is third.engine
            raise ZeroDivisionError
        assert current_engine() is second.engine
    assert current_engine() is first.engine
    first.close()
    first.close()
    assert current_engine() is not first.engine


def test_a_session_may_end_before_a_later_one():
    first, second = init(workers=1), init(workers=2)
    first.close()
    assert current_engine() is second.engine
    second.close()
    assert current_engine() not in (first.engine, second.engine)


def test_an_engine_may_be_given():
    engine = Threads(1)
    with init(engine):
        assert current_engine() is engine
    with pytest.raises(TypeError, match=r"init was given an engine, Threads\(workers=1\), and also workers"):
        init(engine, workers=2)


def test_all_threads_see_one_session_and_may_change_it():
    engines = [Threads(1) for _ in range(4)]
    seen: list[object] = []

    def change(engine):
        for _ in range(200):
            with init(engine):
                seen.append(current_engine())

    threads = [threading.Thread(target=change, args=(engine,)) for engine in engines]
    with init(Threads(2)) as outer:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert current_engine() is outer.engine
    assert len(seen) == 800


def test_unknown_engines_and_options_are_refused():
    with pytest.raises(InputError, match="no engine named 'thread'; did you mean 'threads'"):
        init("thread")
    with pytest.raises(InputError, match="engine 'threads' does not take these options: .*'colour'"):
        init("threads", colour="red")
    with pytest.raises(InputError, match="workers=0: give at least 1"):
        init(workers=0)


class Other:
    """An engine from elsewhere."""

    def __init__(self, workers=None, queue="none"):
        self.workers, self.queue = workers, queue

    def run(self, bound, inputs, *, events=None):
        raise AssertionError("not run here")


def test_engines_are_found_through_entry_points(monkeypatch):
    point = EntryPoint("other", f"{__name__}:Other", finding.GROUP)
    monkeypatch.setattr(EntryPoint, "load", lambda self: Other)
    monkeypatch.setattr(finding, "entry_points", lambda group: [point] if group == finding.GROUP else [])
    assert engine_names() == ("dask", "mpi", "other", "ray", "simulated", "stateless", "threads")
    made = make_engine("other", workers=5, queue="q")
    assert isinstance(made, Other)
    assert (made.workers, made.queue) == (5, "q")
