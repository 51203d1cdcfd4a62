"""Workers that are started again and again: pauses, and an end with what they said."""

from __future__ import annotations

import math
import re
import time
from pathlib import Path

import job_kernels
import numpy as np
import pytest
from job_samples import until

import linnet
from linnet.errors import InputError, JobError, JobStoppedError
from linnet.tiles import TiledArray
from linnet.workers import crew, provisioner
from linnet.workers.client import attach, submit
from linnet.workers.job_parts import open_parts
from linnet.workers.launcher import Limits, Order
from linnet.workers.launchers import processes
from linnet.workers.launchers.threads import WorkerThreads
from linnet.workers.ledger import Status
from linnet.workers.provisioner import FAILURES, Policy, Trials, provision
from linnet.workers.spec import Options, spec_key

QUICK = Options(lease=1.0, grace=0.2)


@pytest.fixture
def hasty(monkeypatch):
    """Pauses are short."""
    monkeypatch.setattr(provisioner, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(crew, "_PERIOD", 0.05)


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


@pytest.mark.slow
def test_what_a_launcher_refuses_reaches_the_client(store, hasty):
    launcher = Refusing()
    with started(store, launcher) as job:
        with pytest.raises(JobStoppedError, match=r"invalid partition specified: none such\n.*resume\(\)"):
            job.wait(150)
        assert launcher.tried == FAILURES
        with attach(job.address) as other, pytest.raises(JobStoppedError, match="invalid partition"):
            other.wait(5)


@pytest.mark.slow
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
    monkeypatch.setattr(provisioner, "FAILURES", 2)
    package = str(Path(linnet.__file__).parents[1])
    monkeypatch.setattr(processes, "environment", lambda: {"PYTHONPATH": package})
    launcher = processes.Processes(logs=tmp_path / "logs")
    with (
        started(store, launcher, workers=1) as job,
        pytest.raises(JobStoppedError, match="ended with status 1: (.|\n)*No module named 'job_kernels'"),
    ):
        job.wait(120)


# ---- workers that take long to come


class Slow(WorkerThreads):
    """A launcher whose workers do not come as long as nobody lets them."""

    def __init__(self):
        super().__init__()
        self.ordered = []
        self.gone = []

    def start(self, order):
        self.ordered += order.names

    def coming(self):
        return [name for name in self.ordered if name not in self.gone]


@pytest.mark.slow
def test_nobody_is_started_in_the_place_of_workers_that_are_on_their_way(store):
    """Else a busy machine gets busier, a full cluster more jobs, and a fleet more servers."""
    launcher, policy = Slow(), Policy(most=2, least=2, silence=0.05)

    def looked():
        time.sleep(2 * policy.silence)
        return provision(parts, launcher, policy, Limits()).started

    with started(store, None) as job:
        parts = open_parts(job.address)
        assert [looked() for _ in range(4)] == [2, 0, 0, 0]
        first, second = launcher.ordered
        parts.ledger.touch([], first, {"tasks": 0.0})  # it began, and is silent since
        assert [looked() for _ in range(3)] == [1, 0, 0]
        launcher.gone = [second]
        assert [looked() for _ in range(3)] == [1, 0, 0]
        parts.ledger.leave(launcher.ordered[-1])
        assert looked() == 1
        parts.close()


def test_processes_are_on_their_way_until_they_end_or_their_time_is_over(monkeypatch):
    monkeypatch.setattr(processes, "command", lambda order, name: ["sleep", "30"])
    launcher = processes.Processes()
    launcher.start(Order("", ["host/1", "host/2"]))
    assert launcher.coming() == ["host/1", "host/2"]
    launcher.kill(["host/1"])
    until(lambda: launcher.ended() == ["host/1"])
    assert launcher.coming() == ["host/2"]
    monkeypatch.setattr(processes, "_START", 0.0)
    launcher.start(Order("", ["host/3"], Limits(cold_start=60.0)))
    launcher.start(Order("", ["host/4"]))
    assert launcher.coming() == ["host/2", "host/3"]
    launcher.kill(["host/2", "host/3", "host/4"])
    launcher.close()


# ---- what is refused at once


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("width", 0),
        ("width", 1.5),
        ("width", 10**9),
        ("width", True),
        ("timeout", -1),
        ("timeout", math.nan),
        ("cold_start", math.inf),
        ("store_delay", 1e308),
        ("runtime", math.inf),
        ("runtime", "60"),
        ("memory", "2 GB"),
        ("memory", 1e9),
        ("memory", 2**80),
        ("cache", -5),
        ("cache", 0.5),
    ],
)
def test_limits_that_cannot_be(name, value):
    with pytest.raises(InputError, match=f"^{re.escape(f'{name}={value!r}')}: give "):
        Limits(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lease", math.nan),
        ("lease", "15"),
        ("lease", 0),
        ("lease", math.inf),
        ("lease", 1e308),
        ("lease", True),
        ("grace", -1),
        ("grace", math.inf),
        ("task_seconds", math.inf),
        ("task_seconds", 0),
        ("delete", "no"),
        ("delete", 0),
        ("delete", None),
        ("blas", None),
        ("imports", "my_kernels"),
        ("events", [1]),
        ("compression", "gz"),
    ],
)
def test_options_that_cannot_be(name, value):
    with pytest.raises(InputError, match=f"^{re.escape(f'{name}={value!r}')}: give "):
        Options(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [("least", -1), ("most", 0), ("most", 2.0), ("factor", math.nan), ("silence", math.inf), ("silence", 0)],
)
def test_policies_that_cannot_be(name, value):
    with pytest.raises(InputError, match=f"^{re.escape(f'{name}={value!r}')}: give "):
        Policy(**{"least": 0, name: value})
