"""The threads engine: results, memory, errors, interruption, events."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import numpy as np
import pytest
import threadpoolctl

from linnet import kernels
from linnet.engines import Threads, available_cores
from linnet.errors import InputError, KernelError, LinAlgError, SingleAssignmentError
from linnet.events import (
    Events,
    JobFailed,
    JobFinished,
    JobStarted,
    Metrics,
    Progress,
    TaskFailed,
    TaskFinished,
    TaskReady,
    TaskStarted,
    TileDropped,
    TileWritten,
    WorkerStarted,
    WorkerStopped,
)
from linnet.kernels import kernel
from linnet.programs import In, Out, Temp, tile_program
from linnet.tiles import TiledArray

kernels.kernel("e_identity")(lambda x: x)
kernels.kernel("e_transpose")(lambda x: x.T)
kernels.kernel("e_twins", outputs=2)(lambda x: (lambda y: (y, y))(x + 1))
kernels.kernel("e_short", outputs=2)(lambda x: (x,))
kernels.kernel("e_text")(lambda x: "no tile")
kernels.kernel("e_scalar")(lambda x: x.sum())
kernels.kernel("e_boom")(lambda x: 1 // 0)
kernels.kernel("e_halves")(lambda x: [x[: len(x) // 2], x[len(x) // 2 :]])
kernels.kernel("e_scaled")(lambda x, factor, *, offset=0: factor * x + offset)


@kernel("e_scribble")
def scribble(x):
    x[...] = -1
    return x + 0


@kernel("e_bump", inplace=0, shape=lambda x: x)
def bump(x, *, overwrite=()):
    return np.add(x, 1, out=x if 0 in overwrite else None)


@kernel("e_sum2", inplace=0, shape=lambda x, y: x)
def sum2(x, y, *, overwrite=()):
    if 0 in overwrite:
        x += 1  # shows in y if they are one tile
        x += y
        return x
    return x + 1 + y


def matrix(rows=1, columns=3, tile=1):
    return TiledArray.from_numpy(np.arange(1.0, rows * columns + 1).reshape(rows, columns), tile)


def run(program, inputs, workers=2, events=None, **sizes):
    return Threads(workers).run(program.bind(**sizes), inputs, events=events)


@tile_program
def chains(A: In, B: Out, S: Temp("A"), N: int, M: int):
    for j in range(N):
        for i in range(M):
            S[i + 1, 0, j] = e_bump(S[i, 0, j])
        B[0, j] = copy(S[M, 0, j])


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_chains_in_place_leave_the_input_alone(workers):
    a = np.array([[1.0, 2.0, 3.0]])
    given = TiledArray.from_numpy(a, 1)
    views = TiledArray.from_numpy(a, 1, copy=False)
    for inputs in (given, views):
        out = run(chains, {"A": inputs}, workers, N=3, M=10)["B"]
        assert out.to_numpy().tolist() == [[11.0, 12.0, 13.0]]
        assert inputs.to_numpy().tolist() == [[1.0, 2.0, 3.0]]
    assert a.tolist() == [[1.0, 2.0, 3.0]]


def test_intermediate_tiles_are_dropped_and_reused():
    events, metrics, addresses = Events(), Metrics(), set()
    metrics.listen(events)

    @kernel("e_where", inplace=0)
    def where(x, *, overwrite=()):
        result = np.add(x, 1, out=x if 0 in overwrite else None)
        addresses.add(result.ctypes.data)
        return result

    @tile_program
    def chain(A: In, B: Out, S: Temp("A"), M: int):
        for i in range(M):
            S[i + 1, 0, 0] = e_where(S[i, 0, 0])
        B[0, 0] = copy(S[M, 0, 0])

    run(chain, {"A": matrix(1, 1)}, events=events, M=50)
    assert len(addresses) == 1
    assert metrics.bytes_live == 8
    assert metrics.bytes_peak <= 16
    assert metrics.tasks == 51


@tile_program
def shared(A: In, B: Out, C: Out, S: Temp):
    S[0, 0] = e_bump(A[0, 0])
    B[0, 0] = e_bump(S[0, 0])
    C[0, 0] = e_bump(S[0, 0])


@pytest.mark.parametrize("attempt", range(5))
def test_a_tile_with_other_readers_is_not_overwritten(attempt):
    out = run(shared, {"A": matrix(1, 1)})
    assert (out["B"].to_numpy().item(), out["C"].to_numpy().item()) == (3.0, 3.0)


def test_a_tile_that_is_twice_an_operand_is_not_overwritten():
    @tile_program
    def twice(A: In, B: Out, S: Temp):
        S[0, 0] = e_bump(A[0, 0])
        B[0, 0] = e_sum2(S[0, 0], S[0, 0])

    assert run(twice, {"A": matrix(1, 1)})["B"].to_numpy().item() == 5.0


def test_results_that_are_operands_are_copied():
    @tile_program
    def aliases(A: In, B: Out, C: Out, S: Temp, T: Temp):
        B[0, 0] = e_identity(A[0, 0])
        S[0, 0] = e_transpose(A[0, 0])
        C[0, 0] = e_bump(S[0, 0])
        T[0, 0] = copy(A[0, 0])
        B[0, 1] = e_transpose(T[0, 0])

    a = matrix(2, 2, 2)
    out = run(aliases, {"A": a})
    assert out["C"].to_numpy().tolist() == [[2.0, 4.0], [3.0, 5.0]]
    assert a.to_numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert not np.shares_memory(out["B"].tile((0, 0)), a.tile((0, 0)))
    out["B"].tile((0, 0))[0, 0] = 9.0  # results are the caller's


def test_two_results_in_one_memory_are_separated():
    @tile_program
    def twins(A: In, B: Out, C: Out, S: Temp, T: Temp):
        S[0, 0], T[0, 0] = e_twins(A[0, 0])
        B[0, 0] = e_bump(S[0, 0])
        C[0, 0] = e_bump(T[0, 0])

    out = run(twins, {"A": matrix(1, 1)})
    assert (out["B"].to_numpy().item(), out["C"].to_numpy().item()) == (3.0, 3.0)


def test_a_kernel_that_writes_to_its_operand_is_refused():
    @tile_program
    def bad(A: In, B: Out, S: Temp):
        S[0, 0] = e_bump(A[0, 0])
        B[0, 0] = e_scribble(S[0, 0])

    with pytest.raises(
        KernelError, match="kernel 'e_scribble' raised ValueError: assignment destination is read-only"
    ):
        run(bad, {"A": matrix(1, 1)})


def test_a_kernel_that_writes_to_an_input_is_refused():
    @tile_program
    def bad(A: In, B: Out):
        B[0, 0] = e_scribble(A[0, 0])

    a = matrix(1, 1)
    with pytest.raises(KernelError, match="read-only"):
        run(bad, {"A": a})
    assert a.to_numpy().item() == 1.0
    assert a.tile((0, 0)).flags.writeable


def test_a_tile_that_a_kernel_has_kept_is_not_overwritten():
    kept = np.zeros((1, 1))
    kernel("e_kept")(lambda x: kept)

    @tile_program
    def constants(A: In, B: Out, S: Temp, N: int):
        for i in range(N):
            S[i, 0] = e_kept(A[0, 0])
        for i in range(N):
            B[i, 0] = e_identity(S[i, 0])

    out = run(constants, {"A": matrix(1, 1)}, N=5)["B"]
    assert not out.to_numpy().any()
    assert len({tile.ctypes.data for tile in out.tiles.values()}) == 5


def test_tiles_of_several_outputs_are_dropped_one_by_one():
    @tile_program
    def fork(A: In, B: Out, S: Temp, T: Temp):
        S[0, 0], T[0, 0] = e_twins(A[0, 0])
        B[0, 0] = add(S[0, 0], S[0, 0])

    events, heard = Events(), []
    events.subscribe(heard.append, TileDropped)
    out = run(fork, {"A": matrix(1, 1)}, events=events)
    assert out["B"].to_numpy().item() == 4.0
    assert sorted(event.array for event in heard) == ["S", "T"]


def test_ranges_scalars_and_attributes():
    @tile_program
    def several(A: In, B: Out, C: Out, D: Out, S: Temp, N: int):
        B[0, 0] = sum_tiles(A[0, 0:N])
        for i in range(N):
            C[0, i] = e_scaled(A[0, i], i + 1, offset=N)
        S[0, 0:2] = e_halves(A[0, 0])
        D[0, 0] = e_bump(S[0, 1])

    a = TiledArray.from_numpy(np.arange(12.0).reshape(2, 6), 2)
    out = run(several, {"A": a}, N=3)
    whole = a.to_numpy()
    assert np.array_equal(out["B"].to_numpy(), whole[:, 0:2] + whole[:, 2:4] + whole[:, 4:6])
    assert np.array_equal(out["C"].to_numpy(), whole * [1, 1, 2, 2, 3, 3] + 3)
    assert np.array_equal(out["D"].to_numpy(), whole[1:, :2] + 1)


def test_a_number_is_a_tile_without_axes():
    @tile_program
    def total(A: In, B: Out):
        B[0, 0] = e_scalar(A[0, 0])

    out = run(total, {"A": matrix(2, 2, 2)})
    assert out.tiles("B")[0, 0] == 10.0
    with pytest.raises(InputError, match=r"B\[0, 0\] has 0 axes but 2 indices"):
        out["B"]
    with pytest.raises(KeyError, match="has no Out array 'X'; it has B"):
        out["X"]
    assert (list(out), len(out), repr(out)) == (["B"], 1, "Outputs(B)")


def test_unwritten_tiles_are_the_fill():
    @tile_program
    def lower(A: In, O: Out(fill=7), D: Out, N: int):
        for i in range(N):
            O[i, i] = e_bump(A[i, i])
        D[0, 0] = sum2(O[0, 1], A[0, 1])
        D[0, 1] = sum2(O[0, 1], A[0, 1])

    a = TiledArray.from_numpy(np.zeros((5, 5)), 3)
    out = run(lower, {"A": a}, N=2)
    expected = np.full((5, 5), 7.0)
    expected[:3, :3] = expected[3:, 3:] = 1.0
    assert np.array_equal(out["O"].to_numpy(), expected)
    assert np.array_equal(out["D"].to_numpy(), np.full((3, 4), 8.0))
    assert sorted(out.tiles("O")) == [(0, 0), (1, 1)]


def test_a_fill_whose_shape_nobody_declares():
    @tile_program
    def lower(A: In, O: Out(fill=7), D: Out):
        O[0, 0] = e_identity(A[0, 0])
        O[1, 1] = e_identity(A[0, 0])
        D[0, 0] = e_bump(O[0, 1])

    with pytest.raises(InputError, match="kernel 'e_identity' declares none; give it shape="):
        run(lower, {"A": matrix(1, 1)})


# ---- what is refused, and how errors read


def test_inputs_that_do_not_fit():
    with pytest.raises(InputError, match="chains takes the arrays A; missing: A; not known: X"):
        run(chains, {"X": matrix()}, N=3, M=1)
    with pytest.raises(
        InputError, match=r"A is a ndarray; cut it into tiles first, with TiledArray.from_numpy"
    ):
        run(chains, {"A": np.ones((1, 3))}, N=3, M=1)
    with pytest.raises(InputError, match=r"A\[0, 3\] is read, but A was given as 1×3 tiles"):
        run(chains, {"A": matrix()}, N=4, M=1)
    with pytest.raises(InputError, match="workers=0: give at least 1"):
        Threads(0)
    assert Threads().workers == available_cores()


def failing(name, outputs=1):
    kernel_name = name

    source = f"def bad(A: In, {', '.join(f'B{i}: Out' for i in range(outputs))}):\n    "
    source += ", ".join(f"B{i}[0, 0]" for i in range(outputs)) + f" = {kernel_name}(A[0, 0])\n"
    from linnet.programs import TileProgram

    return TileProgram.from_source(source)


@pytest.mark.parametrize(
    ("name", "outputs", "words"),
    [
        (
            "e_boom",
            1,
            r"kernel 'e_boom' raised ZeroDivisionError: .*\n  at e_boom\(A\[0, 0\]\) -> B0\[0, 0\]\n  in ",
        ),
        ("e_short", 2, "TypeError: returned 1 results; its declaration says outputs=2"),
        ("e_text", 1, r"TypeError: returned a str for B0\[0, 0\]; a tile is a NumPy array"),
        ("e_halves", 1, r"TypeError: returned 2 results for B0\[0, 0\]"),
    ],
)
def test_a_kernel_error_names_task_tiles_and_line(name, outputs, words):
    with pytest.raises(KernelError, match=words) as caught:
        run(failing(name, outputs), {"A": matrix(2, 2, 2)})
    assert caught.value.task == (0, ())
    assert [repr(key) for key in caught.value.tiles] == ["A[0, 0]"]
    assert f"{name}(A[0, 0])" in caught.value.where


def test_not_positive_definite_names_the_tile_and_the_line():
    from linnet.algorithms.cholesky import cholesky

    a = np.eye(6)
    a[4, 4] = -1.0
    with pytest.raises(LinAlgError) as caught:
        run(cholesky, {"A": TiledArray.from_numpy(a, 2)}, N=3)
    text = str(caught.value)
    assert (
        "the leading minor of order 1 of the tile is not positive definite: chol(S[2, 2, 2]) -> O[2, 2]"
        in text
    )
    assert "O[i, i] = chol(S[i, i, i])  with i=2" in text
    assert isinstance(caught.value, np.linalg.LinAlgError)


def test_after_an_error_the_engine_is_usable_and_nothing_is_kept():
    engine = Threads(2)
    before = threading.active_count()

    @kernel("e_late")
    def late(x, j):
        if j == 40:
            raise RuntimeError("late")
        return x + 1

    @tile_program
    def many(A: In, B: Out, N: int):
        for j in range(N):
            B[0, j] = e_late(A[0, 0], j)

    tile = np.ones((1, 1))
    given = TiledArray.from_tiles({(0, 0): tile})
    kept = weakref.ref(tile)
    with pytest.raises(KernelError, match="RuntimeError: late") as caught:
        engine.run(many.bind(N=100), {"A": given})
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert threading.active_count() == before
    del given, tile, caught
    gc.collect()
    assert kept() is None
    assert engine.run(chains.bind(N=3, M=2), {"A": matrix()})["B"].to_numpy().tolist() == [[3.0, 4.0, 5.0]]


def test_a_double_write_in_an_unproven_program_is_found():
    @tile_program
    def double(A: In, B: Out, N: int):
        for i in range(N):
            B[0, i * i % 11] = e_bump(A[0, 0])

    assert not double.proven
    run(double, {"A": matrix(1, 1)}, N=6)
    with pytest.raises(SingleAssignmentError, match=r"B\[0, 3\] is written"):
        run(double, {"A": matrix(1, 1)}, N=7)


def test_an_empty_program_has_nothing_to_do():
    out = run(chains, {"A": matrix()}, N=0, M=0)
    with pytest.raises(InputError, match="B has no tiles"):
        out["B"]


# ---- events


def test_events_tell_the_whole_story():
    events, heard = Events(), []
    events.subscribe(heard.append)
    run(chains, {"A": matrix()}, events=events, N=3, M=4)
    kinds = [type(event) for event in heard]
    assert kinds[0] is JobStarted
    assert kinds[-1] is JobFinished
    assert (
        heard[0].tasks
        == kinds.count(TaskReady)
        == kinds.count(TaskStarted)
        == kinds.count(TaskFinished)
        == 15
    )
    assert kinds.count(WorkerStarted) == kinds.count(WorkerStopped) == 2
    assert kinds.count(TileWritten) == 15
    assert kinds.count(TileDropped) == 12
    assert heard[-2 if kinds[-2] is Progress else -1].done == 15
    for task in {event.task for event in heard if isinstance(event, TaskReady)}:
        moments = [kinds.index(kind) for kind in (TaskReady, TaskStarted, TaskFinished)]
        assert moments == sorted(moments), task
    position = {(type(e), e.task): k for k, e in enumerate(heard) if hasattr(e, "task")}
    bound = chains.bind(N=3, M=4)
    for task in bound.tasks():
        assert position[TaskReady, task] < position[TaskStarted, task] < position[TaskFinished, task]
        for parent in bound.parents(task):
            assert position[TaskFinished, parent] < position[TaskReady, task]


def test_events_tell_of_failure():
    events, heard = Events(), []
    events.subscribe(heard.append, TaskFailed, JobFailed, JobFinished)
    with pytest.raises(KernelError):
        run(failing("e_boom"), {"A": matrix(1, 1)}, events=events)
    assert [type(event) for event in heard] == [TaskFailed, JobFailed]
    assert "ZeroDivisionError" in heard[0].error


# ---- the machine


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

    import scipy.linalg  # noqa: F401  its BLAS counts too

    before = [each["num_threads"] for each in threadpoolctl.threadpool_info()]
    threads = [threading.Thread(target=run, args=(one, {"A": matrix(1, 1)})) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4
    assert {count for counts in seen for count in counts} == {1}
    assert [each["num_threads"] for each in threadpoolctl.threadpool_info()] == before


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

    assert run(pair, {"A": matrix(1, 1)})["B"].shape == (1, 2)


INTERRUPTED = """
import signal, sys, threading, time
import numpy as np
from linnet.engines import Threads
from linnet.events import Events, JobCancelled, TaskFinished
from linnet.kernels import kernel
from linnet.programs import In, Out, tile_program
from linnet.tiles import TiledArray

@kernel("nap")
def nap(x, seconds):
    print("napping", flush=True)
    time.sleep(seconds)
    return x

@tile_program
def naps(A: In, B: Out, N: int, S: int):
    for j in range(N):
        B[0, j] = nap(A[0, 0], S / 10)

a = {"A": TiledArray.from_numpy(np.ones((1, 1)), 1)}
events, heard = Events(), []
events.subscribe(heard.append, JobCancelled, TaskFinished)
start = time.perf_counter()
try:
    Threads(2).run(naps.bind(N=1000, S=int(sys.argv[1])), a, events=events)
except KeyboardInterrupt:
    print("interrupted", flush=True)
else:
    print("not interrupted")
assert time.perf_counter() - start < 8, time.perf_counter() - start
assert isinstance(heard[-1], JobCancelled), heard
out = Threads(2).run(naps.bind(N=4, S=0), a)["B"].to_numpy()
assert out.tolist() == [[1.0] * 4]
print("usable", flush=True)
"""


@pytest.mark.parametrize("tenths", [1, 300])
def test_control_c_stops_at_once_and_leaves_the_process_usable(tmp_path, tenths):
    script = tmp_path / "naps.py"
    script.write_text(textwrap.dedent(INTERRUPTED))
    command = [sys.executable, str(script), str(tenths)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert first.startswith("napping"), err  # two threads print it at once
    assert process.returncode == 0, err
    assert "interrupted\n" in out
    assert out.endswith("usable\n")
