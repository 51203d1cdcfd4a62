"""Sessions: which engine is current where, who closes engines, and how engines are found."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint

import pytest

from linnet.engines import Threads
from linnet.errors import EngineClosedError, InputError
from linnet.session import current_engine, engine_names, finding, init, make_engine, session
from linnet.testing import kernels as programs
from linnet.tiles import TiledArray


@pytest.fixture(autouse=True)
def _no_session_left():
    yield
    for each in session._of_process:
        each.close()
    assert current_engine() is session._default or session._default is None


def run(engine):
    """Anything at all."""
    engine.run(programs.doubled.bind(N=1), {"B": TiledArray.from_numpy([1.0], 1)})


def in_a_thread(function, *arguments):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *arguments).result(timeout=30)


def test_threads_are_the_default_and_one_engine():
    assert isinstance(current_engine(), Threads)
    assert current_engine() is current_engine()
    assert in_a_thread(current_engine) is current_engine()


# ---- of the process


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


def test_a_plain_session_is_that_of_all_threads():
    outer = init(workers=1)
    assert in_a_thread(current_engine) is outer.engine
    inner = in_a_thread(init, Threads(2))
    assert current_engine() is inner.engine
    inner.close()
    assert current_engine() is outer.engine


# ---- of a context


def test_a_with_block_is_not_seen_by_other_threads():
    process = init(workers=3)
    with init(workers=1) as block:
        assert current_engine() is block.engine
        assert in_a_thread(current_engine) is process.engine
        assert in_a_thread(contextvars.copy_context().run, current_engine) is block.engine
    assert current_engine() is process.engine


def test_a_plain_session_does_not_change_a_with_block():
    with init(workers=1) as block:
        process = init(workers=2)
        assert current_engine() is block.engine
        assert in_a_thread(current_engine) is process.engine
    assert current_engine() is process.engine


def test_a_session_that_is_entered_later_leaves_the_process():
    plain = init(workers=2)
    assert in_a_thread(current_engine) is plain.engine
    with plain:
        assert current_engine() is plain.engine
        assert in_a_thread(current_engine) is not plain.engine
    assert current_engine() is not plain.engine


def test_blocks_of_several_threads_at_once():
    outer = init(Threads(2))
    seen = []

    def change(engine):
        for _ in range(200):
            with init(engine):
                seen.append(current_engine() is engine)
                with init(outer.engine):
                    seen.append(current_engine() is outer.engine)
                seen.append(current_engine() is engine)

    threads = [threading.Thread(target=change, args=(Threads(1),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True] * 2400
    assert current_engine() is outer.engine


def test_blocks_of_tasks_of_one_loop():
    async def one(engine, other):
        with init(engine):
            await asyncio.sleep(0.001)
            assert current_engine() is engine
            assert await asyncio.to_thread(current_engine) is engine
            with init(other):
                await asyncio.sleep(0.001)
                assert current_engine() is other
            assert current_engine() is engine

    async def several():
        await asyncio.gather(*(one(Threads(1), Threads(2)) for _ in range(20)))

    asyncio.run(several())


def test_generators_that_end_in_any_order():
    def block(engine):
        with init(engine):
            yield current_engine()

    engines = [Threads(1) for _ in range(3)]
    begun = [block(engine) for engine in engines]
    assert [next(each) for each in begun] == engines
    begun[1].close()
    assert current_engine() is engines[2]
    begun[2].close()
    assert current_engine() is engines[0]
    begun[0].close()
    assert current_engine() not in engines


@pytest.mark.slow
def test_a_generator_that_ends_in_another_context():
    def block():
        with init(workers=1) as own:
            yield own.engine

    begun = block()
    engine = next(begun)
    assert current_engine() is engine
    in_a_thread(begun.close)
    assert current_engine() is not engine
    for _ in range(50):  # what has ended is not kept
        begun = block()
        next(begun)
        in_a_thread(begun.close)
    with init(workers=1):
        assert len(session.chosen.get()) == 1


def test_a_block_that_ended_is_passed_over_in_a_copy_of_its_context():
    process = init(workers=3)
    with init(workers=1):
        copy = contextvars.copy_context()
    assert copy.run(current_engine) is process.engine


def test_closing_inside_the_block():
    process = init(workers=3)
    with init(workers=1) as block:
        block.close()
        assert current_engine() is process.engine
    assert current_engine() is process.engine


def test_a_session_has_one_block():
    with init(workers=1) as block:
        with (
            pytest.raises(InputError, match=r"Session\(Threads\(workers=1\)\) has a with block already"),
            block,
        ):
            pass
        assert current_engine() is block.engine
    with pytest.raises(InputError, match=r"Session\(Threads\(workers=1\)\) was closed; begin another"), block:
        pass


# ---- who closes engines


def test_a_session_closes_the_engine_it_made():
    with init(workers=1) as block:
        run(block.engine)
    with pytest.raises(EngineClosedError, match=r"Threads\(workers=1\) was closed and runs nothing any more"):
        run(block.engine)
    plain = init(workers=2)
    run(plain.engine)
    plain.close()
    with pytest.raises(EngineClosedError, match=r"Threads\(workers=2\) was closed"):
        run(plain.engine)


def test_a_session_leaves_an_engine_open_that_it_was_given():
    engine = Threads(1)
    with init(engine):
        run(engine)
    init(engine).close()
    run(engine)
    engine.close()
    engine.close()
    with init(engine), pytest.raises(EngineClosedError, match="make another one, with ln.init"):
        run(current_engine())


def test_an_engine_that_another_thread_was_given_before_the_block_is_not_closed_under_it():
    plain = init(workers=1)
    engine = in_a_thread(current_engine)  # about to be used there
    with plain:
        pass
    run(engine)


@pytest.mark.slow
def test_closed_sessions_are_let_go_of():
    ended = init(workers=1)
    ended.close()
    with init(workers=2) as block:
        pass
    for each in (ended, block):
        assert not [kept for kept in gc.get_referrers(each.engine) if kept is session._of_process]
        assert each not in session._of_process
        assert each not in session.chosen.get()


AT_EXIT = """
    import atexit, os, sys
    from linnet.engines import Threads
    from linnet.session import finding, init, session

    class Loud(Threads):
        def __init__(self, name, **options):
            super().__init__(1)
            self.name = name
            atexit.register(print, "library of", name)

        def close(self):
            print("closed", self.name, flush=True)

    session.make_engine = lambda name, **options: Loud(name)
    first, second = init("first"), init("second")
    init(Loud("given"))
    kept = init("block").__enter__()
    init("ended").close()
    if os.fork() == 0:
        sys.exit()  # its engines are those of its parent
    os.wait()
    print("end", flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_at_exit_engines_that_sessions_made_are_closed_the_latest_first():
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(AT_EXIT)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    parent = ended.stdout[ended.stdout.index("end\n") :].splitlines()
    assert parent == [
        "end",
        "library of ended",
        "closed block",
        "library of block",
        "library of given",
        "closed second",
        "library of second",
        "closed first",
        "library of first",
    ]
    child = ended.stdout[: ended.stdout.index("end\n")].splitlines()
    assert [line for line in child if line.startswith("closed")] == ["closed ended"]


# ---- how engines are found


@pytest.mark.slow
def test_unknown_engines_and_options_are_refused():
    with pytest.raises(InputError, match="no engine named 'thread'; did you mean 'threads'"):
        init("thread")
    with pytest.raises(
        InputError, match="engine 'threads' has no option 'colour' .its options are: workers, "
    ):
        init("threads", colour="red")
    with pytest.raises(InputError, match="engine 'threads' has no option 'worker'; did you mean 'workers'"):
        init(worker=2)
    with pytest.raises(InputError, match="engine 'simulated' has no option 'clustr'; did you mean 'cluster'"):
        init("simulated", clustr=3)
    with pytest.raises(InputError, match="workers=0: give at least 1"):
        init(workers=0)


@pytest.mark.parametrize("engine", [None, 3, Threads])
def test_what_is_no_engine_is_refused_at_once(engine):
    with pytest.raises(InputError, match=r'engine=.*: give the name of one \("dask", .*\), or an engine'):
        init(engine)
    assert not session._of_process


@pytest.mark.parametrize("name", ["threads", "stateless", "ray", "dask", "simulated"])
@pytest.mark.parametrize("workers", [2.5, "2", True, -1])
def test_workers_are_counted_in_whole_numbers(name, workers):
    with pytest.raises(InputError, match=f"workers={workers!r}: give at least [01], a whole number"):
        init(name, workers=workers)
    assert not session._of_process


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
