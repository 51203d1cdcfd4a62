"""Threads that are kept: runs in runs, runs side by side, fork, and the end of the interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from linnet.engines import Threads
from linnet.engines.pool import Pool
from linnet.kernels import kernel
from linnet.programs import In, Out, tile_program
from linnet.tiles import TiledArray

kernel("p_next")(lambda x: x + 1)
kernel("p_thread")(lambda x: np.array([threading.get_ident()]))


@tile_program
def following(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = p_next(A[i])


@tile_program
def whose(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = p_thread(A[i])


def pieces(count):
    return {"A": TiledArray.from_numpy(np.arange(float(count)), 1)}


def test_parked_threads_are_used_again_and_superfluous_ones_end():
    pool = Pool(kept=1)
    gate, names = threading.Semaphore(0), []

    def work():
        names.append(threading.current_thread())
        gate.acquire()

    pool.start(work)
    pool.start(work)
    gate.release(2)
    while sum(thread.is_alive() for thread in names) != 1 or len(names) != 2:
        threading.Event().wait(0.001)
    pool.start(work)
    gate.release()
    while len(names) != 3:
        threading.Event().wait(0.001)
    assert names[2] in names[:2]


def test_runs_leave_no_more_threads_than_they_need():
    engine = Threads(2)
    engine.run(following.bind(N=50), pieces(50))
    before = threading.active_count()
    for _ in range(30):
        engine.run(following.bind(N=50), pieces(50))
    assert threading.active_count() <= before + 2


def test_short_tasks_of_a_known_program_run_where_they_are_asked_for():
    engine, bound = Threads(2), whose.bind(N=4)
    for _ in range(20):
        found = engine.run(bound, pieces(4))["B"].to_numpy()
    assert set(found) == {threading.get_ident()}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_kernel_may_run_a_program(workers):
    engine = Threads(workers)

    @kernel("p_nested")
    def nested(x):
        inner = {"A": TiledArray.from_numpy(np.repeat(x, 5), 1)}
        return engine.run(following.bind(N=5), inner)["B"].to_numpy()

    @tile_program
    def outer(A: In, B: Out, N: int):
        for i in range(N):
            B[i] = p_nested(A[i])

    bound = outer.bind(N=6)
    for _ in range(3):  # on other threads first, then perhaps on this one
        found = engine.run(bound, pieces(6))["B"].to_numpy()
        assert np.array_equal(found, np.repeat(np.arange(6.0), 5) + 1)


def test_one_program_on_several_threads_at_once():
    engine, bound = Threads(2), following.bind(N=40)
    wrong = []

    def many(factor):
        for _ in range(20):
            a = np.arange(40.0) * factor
            if not np.array_equal(engine.run(bound, {"A": TiledArray.from_numpy(a, 1)})["B"], a + 1):
                wrong.append(factor)

    threads = [threading.Thread(target=many, args=(factor,)) for factor in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_kernels_see_the_settings_of_the_caller():
    kernel("p_inverse")(lambda x: 1 / x)

    @tile_program
    def inverses(A: In, B: Out, N: int):
        for i in range(N):
            B[i] = p_inverse(A[i])

    with np.errstate(divide="ignore"):  # a warning would be an error here
        found = Threads(2).run(inverses.bind(N=2), pieces(2))["B"].to_numpy()
    assert found.tolist() == [np.inf, 1.0]


def test_two_workers_run_at_once():
    barrier = threading.Barrier(2, timeout=20)

    @kernel("e_meet")
    def meet(x):
        barrier.wait()
        return x + 1

    @tile_program
    def pair(A: In, B: Out):
        B[0, 0] = e_meet(A[0, 0])
        B[0, 1] = e_meet(A[0, 0])

    assert Threads(2).run(pair.bind(), {"A": TiledArray.from_numpy(np.zeros((1, 1)), 1)})["B"].shape == (1, 2)


PROCESS = """
import os, sys, threading
import numpy as np
from linnet.engines import Threads
from linnet.kernels import kernel
from linnet.programs import In, Out, tile_program
from linnet.tiles import TiledArray
import threadpoolctl

@kernel("far")
def far(x):
    threading.Event().wait(0.002)  # long enough for threads of the pool
    return x + 1

@tile_program
def fars(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = far(A[i])

def run():
    a = TiledArray.from_numpy(np.arange(8.0), 1)
    found = Threads(2).run(fars.bind(N=8), {"A": a})["B"].to_numpy()
    assert np.array_equal(found, np.arange(8.0) + 1)

def blas():
    return [each["num_threads"] for each in threadpoolctl.threadpool_info()]
"""

FORKED = """
run()
before = blas()
child = os.fork()
run()
assert blas() == before
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0

@kernel("fork")
def fork(x):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert blas() == before, (blas(), before)
            run()
            assert blas() == before, (blas(), before)
            code = 0
        finally:
            os._exit(code)
    return np.array([os.waitpid(child, 0)[1]])

@tile_program
def forks(A: In, B: Out):
    B[0] = fork(A[0])

assert Threads(2).run(forks.bind(), {"A": TiledArray.from_numpy(np.zeros(1), 1)})["B"].to_numpy() == [0]
print("good")
"""

ENDING = """
import atexit
atexit.register(print, "good")
atexit.register(run)
run()
"""


@pytest.mark.slow
@pytest.mark.parametrize("text", [FORKED, ENDING], ids=["fork", "exit"])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_processes(tmp_path, text):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(PROCESS + text))
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "good\n", "")
