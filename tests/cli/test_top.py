"""Jobs of stateless workers from the command line: watched with `top`, given workers with `provision`."""

from __future__ import annotations

import importlib
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from linnet.cli import top
from linnet.cli.app import app
from linnet.errors import AddressError, InputError, JobCancelledError, JobError, KernelError
from linnet.testing import kernels as programs
from linnet.tiles import TiledArray
from linnet.workers.client import submit
from linnet.workers.job_parts import reopened
from linnet.workers.spec import Options

pytestmark = pytest.mark.slow

QUICK = Options(lease=1.0, grace=0.2)
ALLOW = ["--allow", "linnet.testing.kernels"]


def invoke(*arguments):
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def store(tmp_path):
    return str(tmp_path / "jobs")


def slow(store, count, launcher=None):
    given = {"A": TiledArray.from_numpy(np.ones(1), 1)}
    return submit(programs.slow.bind(N=count), given, store=store, launcher=launcher, options=QUICK)


def test_one_look_tells_tasks_kernels_and_workers(store):
    with slow(store, 20) as job:
        before = invoke("top", job.address, "--once")
        assert (
            before.output
            == "slow: running, 0 of 20 tasks, 1 ready, 0 under way, 0 workers, 0.0 s, 0.0 tasks/s\n"
        )
    with slow(store, 20, "threads") as job:
        job.wait(60)
        while job.progress().workers:  # they see within a moment that the job is over
            time.sleep(0.02)
        after = invoke("top", job.address, "--once")
    assert after.exit_code == 0
    for words in ("slow: finished, 20 of 20 tasks, 0 ready", "testing_nap", "ms a task", "left"):
        assert words in after.output


def test_lines_until_the_end(store):
    with slow(store, 60, "threads") as job:
        found = invoke("top", job.address, "--every", "0.1")
    said = found.output.splitlines()
    assert found.exit_code == 0
    assert len(said) > 1
    assert said[-1].startswith("slow: finished, 60 of 60 tasks")


def test_a_terminal_shows_a_live_view(store, capsys):
    with slow(store, 40, "threads") as job:
        last = top._live(*reopened(job.address), every=0.1)
    assert last.status.state == "finished"
    assert last.status.seconds > 0
    shown = capsys.readouterr().out
    assert "slow: finished, 40 of 40 tasks" in " ".join(shown.split())
    assert "worker" in shown


def test_a_job_that_ends_badly_ends_top_with_its_error(store):
    inputs = {name: TiledArray.from_numpy(np.zeros(4), 1) for name in ("A", "B")}
    with submit(programs.divided.bind(N=4), inputs, store=store, launcher="threads", options=QUICK) as job:
        found = invoke("top", job.address)
        assert isinstance(found.exception, KernelError)
        assert "reason: KernelError: " in invoke("top", job.address, "--once").output
    with slow(store, 40) as job:
        threading.Timer(0.3, job.cancel).start()
        assert isinstance(invoke("top", job.address, "--every", "0.1").exception, JobCancelledError)


def test_what_is_no_job_is_said(store):
    found = invoke("top", f"{store}#job=none").exception
    assert isinstance(found, AddressError)
    assert "there is no job 'none'" in str(found)
    assert isinstance(invoke("provision", "nothing").exception, AddressError)
    with slow(store, 2) as job:
        found = invoke("provision", job.address, "--launcher", "thread").exception
        assert isinstance(found, InputError)
        assert "did you mean 'threads'" in str(found)


def test_silent_workers_are_told_from_those_that_left(store):
    with slow(store, 2) as job:
        parts, spec = reopened(job.address)
        for name in ("here", "gone", "lost"):
            parts.ledger.touch([], name, {"tasks": 3.0, "bytes_read": 2e6})
        parts.ledger.leave("gone")
        seen = top.look(parts, spec)
        assert seen.alive == 2
        later = top.Look(
            spec, type(seen.status)("running", now=seen.status.now + 60), seen.size, seen.workers
        )
        rows = {row[0]: row[1:] for row in later.busiest()}
        assert rows["gone"] == ["3", "2.0 MB", "0 bytes", "left"]
        assert rows["lost"][-1] == "silent for 60 s"
        parts.close()


def test_provision_keeps_workers_there_until_the_end(store):
    with slow(store, 30) as job:
        options = ["--workers", "2", "--launcher", "threads", "--timeout", "1", *ALLOW]
        found = invoke("provision", job.address, *options)
        assert found.exit_code == 0, found.exception
        assert found.output.startswith("finished: 30 of 30 tasks")
        assert job.done()


def test_provision_once_starts_what_is_missing(store):
    with slow(store, 200) as job:
        options = ["--workers", "2", "--most", "3", "--launcher", "threads", "--once", *ALLOW]
        found = invoke("provision", job.address, *options)
        assert found.output == "2 workers started, 2 in all; the job is running\n"
        job.wait(60)
        found = invoke("provision", job.address, *options)
        assert found.output.startswith("0 workers started")
        assert "the job is finished" in found.output


def test_provision_lets_a_job_import_nothing_unasked(store, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "workers"))
    job_kernels = importlib.import_module("job_kernels")
    given = {"A": TiledArray.from_numpy(np.arange(3.0), 1)}
    with submit(job_kernels.sleeping.bind(N=3), given, store=store, launcher=None, options=QUICK) as job:
        found = invoke("provision", job.address, "--launcher", "threads").exception
        assert isinstance(found, JobError)
        assert "start them with --allow job_kernels" in str(found)
        options = ["--launcher", "threads", "--allow", "job_kernels", "--timeout", "1"]
        assert invoke("provision", job.address, *options).exit_code == 0
        assert np.array_equal(job.result()["B"].to_numpy(), np.arange(3.0) + 1)
