"""What is kept of a bound program from run to run, and who runs short and long tasks."""

from __future__ import annotations

import gc
import threading
import time
import weakref

import numpy as np
import pytest

from linnet.engines import Threads
from linnet.engines.task_list import TaskList
from linnet.errors import ProgramError
from linnet.kernels import kernel
from linnet.programs import In, Out, Temp, tile_program
from linnet.tiles import TiledArray

WHO: list[int] = []

kernel("scale_of")(lambda x, factor: x * factor)


@kernel("l_wait")
def wait(x):
    WHO.append(threading.get_ident())
    time.sleep(float(x[0]))
    return x + 0


@tile_program
def waits(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = l_wait(A[i])


def naps(*seconds):
    return {"A": TiledArray.from_numpy(np.array(seconds, float), 1)}


def test_calls_by_number_are_those_of_the_program():
    @tile_program
    def triangle(A: In, B: Out, S: Temp("A"), N: int):
        for i in range(N):
            for j in range(i, -1, -2):
                S[i + 1, j] = scale_of(S[0, j], 2 * i)
            if i % 2 == 0:
                B[i] = scale_of(A[i], i)

    bound = triangle.bind(N=7)
    plan = TaskList.of(bound)
    tasks = [plan.task(number) for number in range(len(plan.arrays))]
    assert sorted(tasks) == sorted(bound.tasks())
    assert [plan.call(number) for number in range(len(tasks))] == [bound.call(task) for task in tasks]


def test_an_error_in_a_scalar_names_the_task():
    @tile_program
    def divides(A: In, B: Out, N: int):
        for i in range(N):
            B[i] = scale_of(A[i], 1 / (i - 1))

    with pytest.raises(ProgramError, match=r"division by zero .* with i=1"):
        Threads(2).run(divides.bind(N=3), naps(0, 0, 0))


@pytest.mark.slow
def test_a_plan_lives_as_long_as_its_bound_program():
    bound = waits.bind(N=3)
    plan = weakref.ref(TaskList.of(bound))
    assert TaskList.of(bound) is plan()
    del bound
    gc.collect()
    assert plan() is None


def test_times_are_forgotten_when_arrays_grow():
    bound = waits.bind(N=2)
    plan = TaskList(bound)
    plan.expect(naps(0, 0))
    plan.took(0, 1e-6)
    plan.expect(naps(0, 0))
    assert plan.short(1)
    plan.expect({"A": TiledArray.from_numpy(np.zeros(2000), 1000)})
    assert not plan.short(1)


def test_one_long_time_is_not_believed_and_a_second_and_third_are():
    plan = TaskList(waits.bind(N=1))
    plan.took(0, 15e-6)
    plan.took(0, 5e-3)
    plan.took(0, 15e-6)
    assert plan.short(0)
    plan.took(0, 5e-3)
    plan.took(0, 5e-3)
    assert not plan.short(0)


@pytest.mark.slow
def test_tasks_that_were_short_and_are_long_now_run_side_by_side_all_the_same():
    engine, bound = Threads(2), waits.bind(N=12)
    for _ in range(20):
        engine.run(bound, naps(*[0] * 12))
    WHO.clear()
    begun = time.perf_counter()
    engine.run(bound, naps(*[0.05] * 12))
    assert len(set(WHO)) >= 2
    assert time.perf_counter() - begun < 0.55  # one after another: 0.6


def test_long_tasks_run_on_other_threads_than_the_callers():
    WHO.clear()
    Threads(1).run(waits.bind(N=3), naps(0.01, 0.01, 0.01))
    assert threading.get_ident() not in WHO


def test_tiny_tasks_at_the_edge_of_a_statement_do_not_hide_that_others_are_long():
    plan = TaskList(waits.bind(N=1))
    plan.took(0, 2e-6)
    for _ in range(2):
        assert plan.short(0)
        plan.took(0, 3e-4)
    assert not plan.short(0)
