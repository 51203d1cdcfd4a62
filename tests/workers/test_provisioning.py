"""Workers that are started again and again: pauses, and an end with what they said."""

from __future__ import annotations

import math
from pathlib import Path

import job_kernels
import numpy as np
import pytest

import linnet
from linnet.errors import InputError, JobError, JobStoppedError
from linnet.tiles import TiledArray
from linnet.workers import provisioner
from linnet.workers.client import attach, submit
from linnet.workers.job_parts import open_parts
from linnet.workers.launcher import Limits
from linnet.workers.launchers import processes
from linnet.workers.launchers.threads import WorkerThreads
from linnet.workers.ledger import Status
from linnet.workers.provisioner import FAILURES, Trials
from linnet.workers.spec import Options, spec_key

QUICK = Options(lease=1.0, grace=0.2)


@pytest.fixture
def hasty(monkeypatch):
    """Pauses are short."""
    monkeypatch.setattr(provisioner, "FIRST_PAUSE", 0.02)


def started(store, launcher, program=job_kernels.sleeping, **options):
    given = {"A": TiledArray.from_numpy(np.arange(4.0), 1)}
    return submit(program.bind(N=4), given, store=store, launcher=launcher, options=QUICK, **options)


# ---- how long to try


def test_pauses_grow_and_end(clock):
    trials, pauses = Trials(clock=clock), []
    for number in range(FAILURES):
        assert trials.may_start()
        assert trials.verdict is None
        trials.look(Status("running"), f"worker {number} has no module")
        pause = 0.0
        while not trials.may_start():
            clock.later(0.5)
            pause += 0.5
        pauses.append(pause)
    assert pauses == [1, 2, 4, 8, 16, 32]
    assert "failed 6 times in a row, and no task was done meanwhile: worker 5 has no module" in trials.verdict


def test_a_failure_counts_once_and_not_if_tasks_are_done(clock):
    trials = Trials(clock=clock)
    for number in range(3 * FAILURES):
        for _ in range(3):
            trials.look(Status("running", done=number), f"worker {number}")
    assert trials.verdict is None


def test_what_was_before_says_nothing(clock):
    trials = Trials("worker 1 has no module", clock)
    trials.look(Status("running"), "worker 1 has no module")
    assert trials.may_start()


# ---- jobs whose workers cannot work


class Refusing(WorkerThreads):
    """A launcher that cannot start anything."""

    tried = 0

    def start(self, order):
        self.tried += 1
        raise JobError("invalid partition specified: none such")


def test_what_a_launcher_refuses_reaches_the_client(store, hasty):
    launcher = Refusing()
    with started(store, launcher) as job:
        with pytest.raises(JobStoppedError, match=r"invalid partition specified: none such\n.*resume\(\)"):
            job.wait(150)
        assert launcher.tried == FAILURES
        with attach(job.address) as other, pytest.raises(JobStoppedError, match="invalid partition"):
            other.wait(5)


def test_workers_that_cannot_begin_stop_the_job_with_what_they_said(store, hasty):
    """The specification is gone, so that no worker knows what to do."""
    with (
        started(store, None) as job,
        attach(job.address, launcher="threads", imports=["job_kernels"]) as other,
    ):
        parts = open_parts(job.address)
        kept = bytes(parts.store.get(spec_key(job.name)))
        parts.store.delete([spec_key(job.name)])
        other.provision()
        with pytest.raises(JobStoppedError, match=f"there is no job '{job.name}'.*was it deleted"):
            other.wait(150)
        assert len(parts.ledger.workers()) <= FAILURES
        parts.store.put(spec_key(job.name), [kept])
        other.resume()
        assert other.result()["B"].to_numpy().tolist() == [1, 2, 3, 4]


@pytest.mark.slow
def test_a_module_that_is_not_there_for_workers(store, hasty, monkeypatch, tmp_path):
    """What the dying process printed is in the error."""
    package = str(Path(linnet.__file__).parents[1])
    monkeypatch.setattr(processes, "environment", lambda: {"PYTHONPATH": package})
    launcher = processes.Processes(logs=tmp_path / "logs")
    with (
        started(store, launcher, workers=1) as job,
        pytest.raises(JobStoppedError, match="ended with status 1: (.|\n)*No module named 'job_kernels'"),
    ):
        job.wait(120)


# ---- what is refused at once


@pytest.mark.parametrize(
    ("name", "value"),
    [("width", 0), ("width", 1.5), ("timeout", -1), ("timeout", math.nan), ("memory", "2 GB"), ("cache", -5)],
)
def test_limits_that_cannot_be(name, value):
    with pytest.raises(InputError, match=f"^{name}={value!r}: give "):
        Limits(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lease", math.nan),
        ("lease", "15"),
        ("lease", 0),
        ("lease", math.inf),
        ("grace", -1),
        ("compression", "gz"),
    ],
)
def test_options_that_cannot_be(name, value):
    with pytest.raises(InputError, match=f"^{name}={value!r}: give "):
        Options(**{name: value})
