"""Workers as processes, and what can happen to them: killed, stopped, out of memory, time or disk."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import job_kernels
import numpy as np
import pytest
from job_samples import factorisation, undisturbed, until

from linnet.algorithms.gemm import accumulated_gemm
from linnet.errors import JobFailedError
from linnet.programs import Task
from linnet.tiles import TiledArray
from linnet.workers.client import attach, submit
from linnet.workers.job_parts import open_parts
from linnet.workers.launcher import Limits
from linnet.workers.names import name_of
from linnet.workers.spec import Options

pytestmark = pytest.mark.slow

QUICK = Options(lease=1.5, grace=0.5)
LIMITS = Limits(timeout=5, cache=2**26)


def numbers(n):
    return TiledArray.from_numpy(np.arange(float(n)), 1)


def started(program, launcher, store, workers=3, limits=LIMITS, options=QUICK, **sizes):
    count = sizes["N"]
    return submit(
        program.bind(**sizes),
        {"A": numbers(count)},
        store=store,
        launcher=launcher,
        workers=workers,
        limits=limits,
        options=options,
    )


def task_name(line):
    """The task of an event."""
    statement, indices = line["task"]
    return name_of(Task(statement, tuple(indices)))


def wait_for(job, done, seconds=150):
    deadline = time.monotonic() + seconds
    while job.progress().done < done:
        assert time.monotonic() < deadline, job.progress()
        time.sleep(0.01)


def hold_still(launcher, count):
    """Stop some workers, so that they have what they have; their names and process numbers."""
    held = dict(list(launcher.running.items())[:count])
    for pid in held.values():
        os.kill(pid, signal.SIGSTOP)
    return held


def under_lease(parts):
    """Names of the tasks that somebody holds."""
    database = parts.queue._database
    return {name for (name,) in database.read("SELECT name FROM queue WHERE ends > ?", (database.now(),))}


def test_most_workers_die_at_half_time(launcher, store):
    options = replace(QUICK, events=("TaskStarted",))
    with started(job_kernels.chained, launcher, store, workers=5, options=options, N=20, M=16) as job:
        parts = open_parts(job.address)  # of our own: one who is stopped in a step holds up all who write
        wait_for(job, 170)
        victims = hold_still(launcher, 4)
        leased, before = under_lease(parts), len(parts.ledger.lines(0)[0])
        for pid in victims.values():
            os.kill(pid, signal.SIGKILL)
        killed = time.monotonic()
        while len(launcher.running) < 5:
            assert time.monotonic() - killed < 120, "the pool is not back to its size"
            time.sleep(0.01)
        job.wait(150)
        assert np.array_equal(job.result()["B"].to_numpy(), np.arange(20.0) + 17)
        assert job.progress().done == 340
        # Of the work of the dead, only what they had under lease was done again.
        lines = [json.loads(line) for line in parts.ledger.lines(0)[0]]
        theirs = {task_name(line) for line in lines[:before] if line["worker"] in victims}
        again = {task_name(line) for line in lines[before:]}
        assert len(theirs) > 20
        assert theirs & again <= leased


def test_a_worker_that_was_stopped_comes_back_late(launcher, store):
    with started(job_kernels.chained, launcher, store, workers=2, N=10, M=6) as job:
        wait_for(job, 10)
        pid = launcher.pids[0]
        os.kill(pid, signal.SIGSTOP)
        board = open_parts(job.address).ledger._database
        until(lambda: board.read("SELECT 1 FROM tasks WHERE attempts > 1") or job.done(0))
        os.kill(pid, signal.SIGCONT)
        board.close()
        job.wait(150)
        assert np.array_equal(job.result()["B"].to_numpy(), np.arange(10.0) + 7)


def test_a_job_goes_on_without_its_client(store, tmp_path):
    script = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import numpy as np, job_kernels
from linnet.programs import Task
from linnet.tiles import TiledArray
from linnet.workers.client import submit
job = submit(job_kernels.chained.bind(N=10, M=5), {{"A": TiledArray.from_numpy(np.arange(10.0), 1)}}, store={store!r})
print(job.address, flush=True)
import os, signal
while job.progress().done < 5:
    pass
os.kill(os.getpid(), signal.SIGKILL)
"""
    client = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert client.returncode == -signal.SIGKILL, client.stderr
    with attach(client.stdout.strip()) as job:
        job.wait(150)
        assert np.array_equal(job.result()["B"].to_numpy(), np.arange(10.0) + 6)


def test_a_task_that_kills_its_workers_is_given_up_with_its_name(launcher, store):
    options = Options(lease=1.0)
    with started(job_kernels.killing, launcher, store, workers=2, options=options, N=20) as job:
        with pytest.raises(JobFailedError, match=r"task 0\.13 ended the process .* 3 times") as caught:
            job.wait(120)
        assert "B[i] = jobs_fatal(A[i])" in str(caught.value)
        assert "while it ran alone" in str(caught.value)


def test_a_task_during_which_workers_die_by_chance_is_not_given_up(launcher, store, tmp_path, monkeypatch):
    path = tmp_path / "fatal"
    path.write_text("3")
    monkeypatch.setenv("JOBS_FATAL", str(path))
    options = Options(lease=1.0)
    with started(job_kernels.killing_once, launcher, store, workers=2, options=options, N=20) as job:
        job.wait(120)
        assert np.array_equal(job.result()["B"].to_numpy(), np.arange(20.0) + 1)
        assert path.read_text() == "0"


def test_a_task_that_takes_far_too_long_is_also_given_to_another_worker(
    launcher, store, tmp_path, monkeypatch
):
    monkeypatch.setenv("JOBS_STUCK", str(tmp_path / "stuck"))
    with started(job_kernels.stuck, launcher, store, workers=2, N=20) as job:
        job.wait(40)  # less than the first attempt sleeps
        assert np.array_equal(job.result()["B"].to_numpy(), np.arange(20.0) + 1)


def test_memory_that_is_not_there_is_named(launcher, store):
    limits = Limits(memory=3 * 2**30, timeout=5, cache=2**20)
    with (
        started(job_kernels.eating, launcher, store, workers=1, limits=limits, N=2) as job,
        pytest.raises(JobFailedError, match=r"out of memory(.|\n)*task 0\.[01], in .*jobs_greedy\(A\[i\]\)"),
    ):
        job.wait(150)


def test_modules_are_imported_only_where_they_are_allowed(store):
    job = started(job_kernels.sleeping, None, store, N=3)
    worker = [sys.executable, "-m", "linnet.cli", "worker", job.address]
    done = subprocess.run(worker, capture_output=True, text=True, check=False, timeout=150)
    assert done.returncode == 1
    assert "start them with --allow job_kernels" in done.stderr


def test_a_worker_told_to_stop_gives_its_tasks_back(launcher, store):
    with started(job_kernels.chained, launcher, store, workers=2, N=20, M=8) as job:
        wait_for(job, 10)
        for pid in launcher.pids:
            os.kill(pid, signal.SIGTERM)
        ledger, deadline = open_parts(job.address).ledger, time.monotonic() + 120
        while sum(worker.left for worker in ledger.workers()) < 2:  # the job may end before they see it
            assert time.monotonic() < deadline, ledger.workers()
            time.sleep(0.01)
        job.wait(150)
        assert ledger.status().done == 180


def killed_at_random(job, launcher, kills, seed, pause=0.25):
    """Kill workers until the job ends; returns how many were."""
    rng = random.Random(seed)
    killed = 0
    while not job.done(pause):
        pids = launcher.pids
        if killed < kills and pids:
            os.kill(rng.choice(pids), signal.SIGKILL)
            killed += 1
    return killed


@pytest.mark.parametrize("name", ["cholesky", "gemm"])
def test_results_have_the_same_bits_whoever_is_killed(launcher, store, name):
    if name == "cholesky":
        bound, given = factorisation(480, 40)
    else:
        tiled = TiledArray.from_numpy(np.random.default_rng(0).standard_normal((480, 480)), 60)
        bound, given = accumulated_gemm.bind(M=8, N=8, K=8), {"A": tiled, "B": tiled}
    here = undisturbed(bound, given)
    with submit(bound, given, store=store, launcher=launcher, workers=3, limits=LIMITS, options=QUICK) as job:
        killed = killed_at_random(job, launcher, 8, seed=1)
        job.wait(120)
        for array in here:
            assert np.array_equal(job.result()[array].to_numpy(), here[array].to_numpy())
        left = {key.split("/")[1] for key, _ in open_parts(job.address).store.list(f"{job.folder}/")}
        assert left <= {*here, *given}
        assert killed > 0
