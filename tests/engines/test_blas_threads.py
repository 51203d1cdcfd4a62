"""How many threads BLAS has while a program runs."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import scipy.linalg.cython_lapack  # noqa: F401  its BLAS is loaded before anybody counts
import threadpoolctl
from engine_samples import matrix, run

from linnet import kernels, linalg
from linnet.engines import Threads
from linnet.kernels import kernel
from linnet.machine.blas_threads import Library, belongs_to_process
from linnet.programs import In, Out, tile_program
from linnet.tiles import TiledArray

SEEN: list[int] = []


def look(x):
    SEEN.append(
        min(lib["num_threads"] for lib in threadpoolctl.threadpool_info() if lib["user_api"] == "blas")
    )
    return x + 0


kernel("t_large", flops=lambda x: 1e9, shape=lambda x: x)(lambda x: look(x))
kernel("t_small", flops=lambda x: 1e3, shape=lambda x: x)(lambda x: look(x))
kernel("t_sure", flops=lambda x: 1e9, shape=lambda x: x, thread_invariant=True)(lambda x: look(x))
kernel("t_odd", flops=lambda: 1e9, shape=lambda x: x)(lambda x: look(x))


@tile_program
def large(A: In, B: Out):
    B[0] = t_large(A[0])


@tile_program
def small(A: In, B: Out):
    B[0] = t_small(A[0])


@tile_program
def sure(A: In, B: Out):
    B[0] = t_sure(A[0])


@tile_program
def odd(A: In, B: Out):
    B[0] = t_odd(A[0])


@tile_program
def many(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = t_large(A[0])


def threads_seen(program, engine, **sizes):
    SEEN.clear()
    engine.run(program.bind(**sizes), {"A": TiledArray.from_numpy(np.zeros(1), 1)})
    return list(SEEN)


@pytest.mark.parametrize(
    ("program", "deterministic", "expected"),
    [(large, False, 3), (small, False, 1), (large, True, 1), (sure, True, 3), (odd, False, 1)],
)
def test_a_large_task_that_runs_alone_gets_all_threads(program, deterministic, expected):
    before = threadpoolctl.threadpool_info()
    # as many workers as threads are wanted; only one of them finds work
    assert threads_seen(program, Threads(3, deterministic=deterministic)) == [expected]
    assert threadpoolctl.threadpool_info() == before


def test_tasks_side_by_side_have_one_thread_each():
    seen = threads_seen(many, Threads(2), N=6)
    assert seen[:4] == [1] * 4
    assert set(seen) <= {1, 2}


@pytest.mark.slow
def test_deterministic_results_have_the_same_bits_on_any_number_of_workers():
    x = np.random.default_rng(0).standard_normal((1100, 1100))
    a = x @ x.T + 1100 * np.eye(1100)
    results = [linalg.cholesky(a, tile=500, engine=Threads(n, deterministic=True)) for n in (1, 2, 4)]
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def test_blas_is_limited_while_tasks_run_and_given_back_after():
    seen = []

    @kernel("e_blas")
    def blas(x):
        seen.append(
            [each["num_threads"] for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"]
        )
        return x + 1

    @tile_program
    def one(A: In, B: Out):
        B[0, 0] = e_blas(A[0, 0])

    before = [each["num_threads"] for each in threadpoolctl.threadpool_info()]
    threads = [threading.Thread(target=run, args=(one, {"A": matrix(1, 1)})) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4
    assert {count for counts in seen for count in counts} == {1}
    assert [each["num_threads"] for each in threadpoolctl.threadpool_info()] == before


def test_a_limit_that_belongs_to_the_thread_is_told_from_one_of_the_process():
    own, whole = threading.local(), [4]

    def set_own(count):
        own.count = count

    def set_whole(count):
        whole[0] = count

    assert not belongs_to_process(lambda: getattr(own, "count", 4), set_own)
    assert belongs_to_process(lambda: whole[0], set_whole)
    assert whole == [4]


def test_the_last_of_several_runs_gives_the_limit_back():
    count = [3]
    library = Library(lambda: count[0], lambda threads: count.__setitem__(0, threads), shared=True)
    seen = []
    for step in (library.hold, library.hold, library.let_go, library.let_go, library.let_go):
        step()
        seen.append(count[0])
    assert seen == [1, 1, 1, 3, 3]


def test_another_thread_that_limits_blas_does_not_get_in_the_way():
    # threadpoolctl lets only that thread change OpenBLAS
    ready, over = threading.Event(), threading.Event()

    def hold():
        with threadpoolctl.threadpool_limits(2, user_api="blas"):
            ready.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    ready.wait()
    try:
        assert threads_seen(small, Threads(2)) == [1]
        counts = {lib["num_threads"] for lib in threadpoolctl.threadpool_info() if lib["user_api"] == "blas"}
        assert counts == {2}
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("name", ["gemm", "gemm_add", "trsm", "syrk", "chol"])
def test_kernels_whose_bits_change_with_the_threads_of_blas_do_not_claim_otherwise(name):
    # compared on 1 to 4 threads of OpenBLAS, over shapes and dtypes: none of them keeps its bits
    assert not kernels.get(name).thread_invariant
