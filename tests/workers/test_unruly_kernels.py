"""Kernels that change what is not theirs, keep what they returned, return what cannot be stored, or never return."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import job_kernels
import numpy as np
import pytest

from linnet.errors import JobFailedError, KernelError
from linnet.tiles import TiledArray, TileKey
from linnet.workers.client import submit
from linnet.workers.end_tasks import Completions
from linnet.workers.launchers import processes
from linnet.workers.launchers.threads import WorkerThreads
from linnet.workers.spec import Options
from linnet.workers.storable_results import settled

QUICK = Options(lease=1.5, grace=0.5)


def started(program, store, tiles=12, length=100, launcher="threads", **options):
    given = {"A": TiledArray.from_numpy(np.arange(float(tiles * length)), length)}
    options.setdefault("options", QUICK)
    return submit(program.bind(N=tiles), given, store=store, launcher=launcher, **options)


# ---- memory


@pytest.mark.slow
@pytest.mark.parametrize("length", [10, 4000])
def test_an_operand_cannot_be_changed(store, length):
    """A small tile is kept by the process that wrote it, a large one in the cache of the host."""
    with (
        started(job_kernels.changing, store, length=length, workers=1) as job,
        pytest.raises(KernelError, match="read-only"),
    ):
        job.wait(150)


@pytest.mark.slow
@pytest.mark.parametrize("length", [10, 4000])
@pytest.mark.parametrize(
    "program", [job_kernels.keeping_arrays, job_kernels.keeping_views, job_kernels.keeping_read_only]
)
def test_a_kernel_may_write_again_into_what_it_returned(store, program, length):
    with started(program, store, tiles=40, length=length, workers=1) as job:
        found = job.result()["B"].to_numpy()
    assert np.array_equal(found, np.arange(40.0 * length) + 1)


KEY = TileKey("B", (0,))


def one(result, *operands):
    ((_, tile),) = settled([(KEY, result())], operands)
    assert not tile.flags.writeable
    return tile


def test_what_nobody_else_holds_is_not_copied():
    places = []

    def made(view=lambda x: x):
        whole = np.zeros((4, 6))
        places.append(whole.ctypes.data)
        return view(whole)

    for view in (lambda x: x, lambda x: x[:, ::2], lambda x: x.T, lambda x: x.reshape(-1)[:5]):
        assert one(lambda view=view: made(view)).ctypes.data == places[-1]
    whole = made()
    pairs = [(KEY, whole[:2]), (KEY, whole[2:])]
    del whole
    assert [tile.ctypes.data for _, tile in settled(pairs, [])] == [places[-1], places[-1] + 96]


def test_what_somebody_holds_is_copied():
    held = np.zeros((4, 6))
    for result in (lambda: held, lambda: held[:2], lambda: held.T, lambda: job_kernels.read_only(held)):
        assert not np.shares_memory(one(result), held)
    both = [held, held]
    assert not any(np.shares_memory(tile, held) for _, tile in settled([(KEY, each) for each in both], []))


def test_operands_are_not_copied():
    operand = job_kernels.read_only(np.zeros((4, 6)))
    assert one(lambda: operand, operand) is operand
    assert np.shares_memory(one(lambda: operand.T, operand), operand)


# ---- results that cannot be stored


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (job_kernels.masking, "returned a masked array"),
        (job_kernels.structuring, "cannot be stored"),
        (job_kernels.objecting, "a tile of dtype object cannot be stored"),
    ],
)
def test_results_that_cannot_be_stored_fail_the_job(store, program, words):
    with (
        started(program, store) as job,
        pytest.raises(KernelError, match=rf"jobs_odd(.|\n)*{words}(.|\n)*in .*B\[i\] = ") as caught,
    ):
        job.wait(150)
    assert caught.value.tiles


# ---- ends that are no ends


@pytest.mark.parametrize("ledger", ["embedded", "redis"])
@pytest.mark.parametrize(
    ("program", "words"),
    [
        (job_kernels.exiting, "raised SystemExit: 0"),
        (job_kernels.speechless, r"raised Unspeakable: \(its text cannot be made: RuntimeError\)"),
        (job_kernels.mumbling, r"raised ValueError: no text: \\udcff"),
        (job_kernels.unarguable, "raised Unarguable: "),
        (job_kernels.wordy, r"raised ValueError: x{20000}… \(1,000,000 characters in all\)"),
        (job_kernels.interrupting, "raised Interrupted: the job goes on"),
    ],
)
def test_kernels_that_exit_and_errors_without_text_fail_the_job(store, program, words, ledger, request):
    place = None if ledger == "embedded" else request.getfixturevalue("redis_server").url
    with (
        started(program, store, tiles=16, length=1, ledger=place) as job,
        pytest.raises(KernelError, match=rf"{words}(.|\n)*A\[13\](.|\n)*in .*B\[i\] = ") as caught,
    ):
        job.wait(150)
    assert caught.value.task == (0, (13,))


@pytest.mark.slow
def test_an_error_that_nobody_foresaw_fails_the_job_with_its_place(store, monkeypatch):
    def broken(self, attempt):
        if attempt.name[0] != "@":
            raise RuntimeError("a fault of ours")

    monkeypatch.setattr(Completions, "write", broken)
    with (
        started(job_kernels.sleeping, store) as job,
        pytest.raises(
            KernelError, match=r"task 0\.\d+ could not be finished: RuntimeError: a fault of ours\n"
        ),
    ):
        job.wait(150)


@pytest.mark.slow
def test_a_kernel_that_ends_the_process_as_if_all_were_well(store, launcher):
    options = Options(lease=1.0)
    with (
        started(job_kernels.vanishing, store, 16, 1, launcher, options=options) as job,
        pytest.raises(
            JobFailedError, match=r"task 0\.13 ended the process .*\(status 0\) 3 times(.|\n)*B\[i\]"
        ),
    ):
        job.wait(120)


@pytest.mark.slow
def test_a_process_that_a_kernel_forked_is_no_worker(store, launcher):
    """Neither does it fail the job, nor stay when that is over."""
    with started(job_kernels.forking, store, 16, 1, launcher) as job:
        assert np.array_equal(job.result()["B"].to_numpy(), np.arange(16.0) + 1)
        until(lambda: not launcher.pids)
        assert not [each for each in COMMANDS.glob("[0-9]*/cmdline") if job.name.encode() in commanded(each)]
        job.delete()


COMMANDS = Path("/proc")


def commanded(file):
    try:
        return file.read_bytes()
    except OSError:  # it has ended
        return b""


@pytest.mark.slow
def test_a_thread_that_a_kernel_left_behind_does_not_keep_the_process(store, launcher):
    with started(job_kernels.lingering, store, 16, 1, launcher) as job:
        assert np.array_equal(job.result()["B"].to_numpy(), np.arange(16.0) + 1)
        until(lambda: not launcher.pids)
        assert launcher.problem() is None, "the worker ended in order"
        job.delete()


# ---- kernels that do not return


@pytest.fixture
def hung(tmp_path, monkeypatch):
    """A file that is there when a kernel hangs."""
    monkeypatch.setenv("JOBS_HUNG", str(tmp_path / "hung"))
    return tmp_path / "hung"


@pytest.mark.slow
def test_a_task_has_a_limit_of_time(store, monkeypatch, hung):
    monkeypatch.setattr(WorkerThreads, "close", lambda self: None)  # it would wait for the kernel
    options = Options(lease=1.0, task_seconds=0.3)
    job = started(job_kernels.hanging, store, 14, 1, WorkerThreads(), options=options, workers=1)
    with pytest.raises(
        KernelError, match=r"task 0\.13 took longer than task_seconds=0\.3\n.*B\[i\]"
    ) as caught:
        job.wait(150)
    assert caught.value.task == (0, (13,))


@pytest.mark.slow
@pytest.mark.parametrize("end", ["limit", "cancel", "delete", "signal"])
def test_a_worker_whose_kernel_hangs_ends(store, launcher, monkeypatch, end, hung):
    options = Options(lease=1.0, task_seconds=1.0 if end == "limit" else None)
    monkeypatch.setattr(processes, "command", with_short_grace(processes.command))
    with started(job_kernels.hanging, store, 14, 1, launcher, options=options, workers=1) as job:
        until(hung.exists)
        pids = launcher.pids  # a second one, perhaps, where the first took long to begin
        if end == "limit":
            with pytest.raises(KernelError, match="took longer than"):
                job.wait(150)
        elif end == "signal":
            for pid in pids:
                os.kill(pid, signal.SIGTERM)
        else:
            getattr(job, end)()
        until(lambda: not set(pids) & set(launcher.pids))
        if end != "delete":
            job.cancel()


def with_short_grace(command):
    return lambda order, name: [*command(order, name), "--grace", "1"]


def until(happened, seconds=240):
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
