"""What is left when a job has ended: workers that kernels keep, ledgers that they keep, late tiles, reports."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import threading
import time
import warnings
from contextlib import contextmanager
from html import unescape

import job_kernels
import numpy as np
import pytest

import linnet.workers.worker
from linnet.errors import InputError, JobError, StoreError
from linnet.tiles import TiledArray
from linnet.workers import crew
from linnet.workers.client import attach, submit
from linnet.workers.embedded import HeldLedgerError
from linnet.workers.end_tasks import Completions
from linnet.workers.job_parts import open_parts
from linnet.workers.launchers.processes import Processes
from linnet.workers.launchers.threads import WorkerThreads
from linnet.workers.ledger import Status, WorkerInfo
from linnet.workers.provisioner import Policy, Sample
from linnet.workers.report import Report
from linnet.workers.spec import Options

pytestmark = pytest.mark.slow

QUICK = Options(lease=1.5, grace=0.5)


def started(program, store, tiles=12, launcher="threads", **options):
    given = {"A": TiledArray.from_numpy(np.arange(10.0 * tiles), 10)}
    options.setdefault("options", QUICK)
    return submit(program.bind(N=tiles), given, store=store, launcher=launcher, **options)


def until(happened, seconds=120):
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


# ---- late tiles


@pytest.mark.parametrize("ledger", ["embedded", "redis"])
def test_who_writes_after_the_job_was_deleted_leaves_nothing(store, tmp_path, ledger, request, monkeypatch):
    place = None if ledger == "embedded" else request.getfixturevalue("redis_server").url
    launcher = WorkerThreads()
    real, deleted = Completions.write, threading.Event()

    def late(self, attempt):
        if attempt.name[0] != "@" and not deleted.is_set():
            job.delete()
            deleted.set()
        real(self, attempt)

    monkeypatch.setattr(Completions, "write", late)
    workers = Policy(most=1, least=1, silence=0.1)
    job = started(job_kernels.sleeping, store, launcher=launcher, ledger=place, workers=workers)
    until(deleted.is_set)
    for thread in launcher._threads:
        thread.join(60)
    left = [path for path in (tmp_path / "jobs").rglob("*") if path.is_file() and ".caches" not in path.parts]
    assert left == []


def test_a_lost_ledger_is_no_reason_to_delete_tiles(store, monkeypatch):
    """What a worker wrote may be all that a ledger is built anew from."""
    launcher = WorkerThreads()
    real, lost = Completions.write, threading.Event()

    def late(self, attempt):
        real(self, attempt)
        if attempt.name[0] != "@" and not lost.is_set():
            self._ledger.drop()
            lost.set()

    monkeypatch.setattr(Completions, "write", late)
    job = started(job_kernels.sleeping, store, launcher=launcher, workers=1)
    until(lost.is_set)
    job._crew.stop()
    for thread in launcher._threads:
        thread.join(60)
    with attach(job.address, launcher="threads", imports=["job_kernels"]) as again:
        written = [key for key, _ in open_parts(again.address).store.list(f"{again.folder}/B/")]
        assert written
        again.resume()
        assert np.array_equal(again.result()["B"].to_numpy(), np.arange(120.0) + 1)


# ---- workers that kernels keep


@pytest.mark.slow
@pytest.mark.parametrize("end", ["limit", "cancel"])
def test_a_worker_ends_whose_kernel_lets_no_thread_run(store, launcher, monkeypatch, tmp_path, end):
    """It keeps the interpreter's lock: neither signals nor its own threads reach it."""
    monkeypatch.setenv("JOBS_HUNG", str(tmp_path / "hung"))
    monkeypatch.setattr(crew, "LAST", 1.0)
    options = Options(lease=1.0, task_seconds=1.0 if end == "limit" else None)
    given = {"A": TiledArray.from_numpy(np.arange(14.0), 1)}
    with submit(
        job_kernels.seizing.bind(N=14), given, store=store, launcher=launcher, workers=1, options=options
    ) as job:
        until((tmp_path / "hung").exists)
        first = launcher.pids
        if end == "cancel":
            job.cancel()
        until(lambda: not set(first) & set(launcher.pids))
        job.cancel()
    until(lambda: not launcher.pids)


@contextmanager
def held(store, job):
    """Another process, so to say, has the lock of the ledger."""
    with open(f"{store}/.boards/{job.name}.lock", "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def test_who_keeps_the_ledger_is_named_and_nobody_waits_for_ever(store, monkeypatch):
    monkeypatch.setattr(crew, "_ANSWER", 0.3)
    monkeypatch.setattr("linnet.workers.client._ANSWER", 0.3)
    job = started(job_kernels.sleeping, store, launcher=None)
    words = rf"process {os.getpid()} has the ledger of the job.* does not give it back.*kill it"
    with held(store, job):
        for call in (job.cancel, job.resume, job.delete, lambda: attach(job.address)):
            with pytest.raises(HeldLedgerError, match=words):
                call()
        assert job.progress().state == "running"
        with pytest.raises(TimeoutError):
            job.wait(0.1)
    job.delete()


def test_who_waits_is_told_who_keeps_the_ledger(store, monkeypatch):
    for name, value in (("_ANSWER", 0.2), ("_STUCK", 0.0), ("_PERIOD", 0.05)):
        monkeypatch.setattr(crew, name, value)
    job = started(job_kernels.sleeping, store, launcher=None)
    with (
        held(store, job),
        attach_when_held(job, Policy(most=1, least=1, silence=0.1)) as other,
        pytest.raises(JobError, match=r"no worker is alive: process \d+ has the ledger"),
    ):
        other.wait(150)
    job.delete()


@contextmanager
def attach_when_held(job, policy):
    """The same job, seen to by this process; opening it again would need the ledger."""
    job._crew._launcher = WorkerThreads()
    job._crew._imports = ["job_kernels"]
    job._crew.policy = policy
    job.provision()
    yield job
    job._crew.stop()


def test_workers_that_keep_the_ledger_are_killed_by_who_cancels(store, monkeypatch):
    monkeypatch.setattr(crew, "_ANSWER", 0.3)
    killed = []

    class Holding(WorkerThreads):
        def kill(self, names):
            killed.extend(names)
            fcntl.flock(file, fcntl.LOCK_UN)

    job = started(job_kernels.sleeping, store, launcher=None)
    job._crew._launcher, job._crew._names = Holding(), ["host/1"]
    with open(f"{store}/.boards/{job.name}.lock", "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        job.cancel()
    assert killed == ["host/1"]
    assert job.progress().state == "cancelled"
    job.delete()


# ---- launchers that fail in their own ways


class Broken(WorkerThreads):
    """It raises what launchers raise that call programs and libraries of others."""

    def start(self, order):
        raise KeyError("no such runtime")


def test_whatever_a_launcher_raises_reaches_the_client(store, monkeypatch):
    monkeypatch.setattr("linnet.workers.provisioner.FIRST_PAUSE", 0.01)
    monkeypatch.setattr(crew, "_PERIOD", 0.01)
    with (
        started(job_kernels.sleeping, store, launcher=Broken()) as job,
        pytest.raises(JobError, match=r"workers failed 6 times in a row.*KeyError: 'no such runtime'"),
    ):
        job.wait(150)


def test_an_error_in_seeing_to_workers_reaches_the_client(store, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("a fault of ours")

    for name, value in (("provision", broken), ("_STUCK", 0.0), ("_PERIOD", 0.01)):
        monkeypatch.setattr(crew, name, value)
    with (
        started(job_kernels.sleeping, store) as job,
        pytest.raises(JobError, match="no worker is alive: ZeroDivisionError: a fault of ours"),
    ):
        job.wait(150)


# ---- tasks that take far too long


def test_a_task_that_takes_far_longer_than_its_kind_is_told_of(store, monkeypatch, tmp_path):
    monkeypatch.setenv("JOBS_HELD", str(tmp_path / "held"))
    monkeypatch.setattr(linnet.workers.worker, "_FAR", (2.0, 0.05))
    monkeypatch.setattr(crew, "_SLOW", 0.0)
    given = {"A": TiledArray.from_numpy(np.arange(14.0), 1)}
    options = Options(lease=0.4)
    job = submit(
        job_kernels.held_up.bind(N=14), given, store=store, launcher="threads", workers=1, options=options
    )
    words = r"task 0\.13 is in its kernel for \d+ s, far longer than others of its kind(.|\n)*B\[i\]"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        until(lambda: bool(job.done() or caught))
        (tmp_path / "held").touch()  # it goes on
        job.wait(150)
    assert len(caught) == 1, "it is told once"
    assert re.search(words, str(caught[0].message))
    assert not any("slow" in name for name in job.facts())
    assert np.array_equal(job.result()["B"].to_numpy(), np.arange(14.0) + 1)


# ---- reports


def rows(path, title):
    """The rows of a table of a report."""
    (table,) = re.findall(rf"<h2>{title}</h2>\s*<table>(.*?)</table>", path.read_text(), re.DOTALL)
    return [
        [unescape(re.sub("<[^>]*>", "", cell)) for cell in re.findall("<t[dh]>(.*?)</t[dh]>", row)]
        for row in table.split("<tr>")[1:]
    ]


def number(text):
    return int(text.replace(",", ""))


@pytest.mark.parametrize("ledger", ["embedded", "redis"])
def test_the_counts_of_a_report_add_up(store, tmp_path, ledger, request):
    place = None if ledger == "embedded" else request.getfixturevalue("redis_server").url
    given = {"A": TiledArray.from_numpy(np.arange(10.0), 1)}
    with submit(
        job_kernels.chained.bind(N=10, M=3), given, store=store, launcher="threads", ledger=place, workers=2
    ) as job:
        job.wait(150)
        job.report(tmp_path / "report.html")
        kernels = json.loads((tmp_path / "report.json").read_text())["jobs"][0]["kernels"]
        _, *workers, of_all = rows(tmp_path / "report.html", "Workers")
        assert number(of_all[1]) == 40
        assert sum(each["tasks"] for each in kernels) == 40
        assert sum(number(row[1]) for row in workers) == 40
        assert {row[-1] for row in workers if number(row[1])} == {"left"}, "healthy workers told their last"
        assert {each["name"] for each in kernels} == {"jobs_sleepy (makes S)", "jobs_sleepy (makes B)"}
        job.delete()


@pytest.mark.slow
def test_a_killed_worker_is_shown_as_killed_and_the_counts_add_up(store, launcher, tmp_path):
    with started(job_kernels.sleeping, store, tiles=60, launcher=launcher, workers=1) as job:
        until(lambda: job.progress().done >= 10)
        os.kill(launcher.pids[0], signal.SIGKILL)
        job.wait(120)
        job.report(tmp_path / "report.html")
    _, *workers, of_all = rows(tmp_path / "report.html", "Workers")
    assert number(of_all[1]) == sum(number(row[1]) for row in workers) == 60
    assert "was killed, or crashed" in {row[-1] for row in workers}


def report(store, status, workers, looks=()):
    job = started(job_kernels.sleeping, store, launcher=None)
    made = Report(job.address, job.spec, status, workers, looks)
    job.delete()
    return made


def page(store, status, workers):
    return report(store, status, workers).html()


def test_what_a_report_tells_of_workers_and_repeated_tasks(store):
    status = Status("running", total=12, done=5, now=100.0, kinds={0: (7, 0.1)})
    workers = [
        WorkerInfo("h/1", beat=99.9, facts={"tasks": 3.0, "slow:0.1": 9.0}),
        WorkerInfo("h/2", beat=10.0, facts={"tasks": 2.0}),
        WorkerInfo("h/3", beat=99.9),
        WorkerInfo("h/4", beat=10.0, left=True, died=True, facts={"tasks": 1.0}),
    ]
    told = page(store, status, workers)
    for words in ("at work", "fell silent", "begins", "was killed, or crashed", "told by nobody</td><td>1<"):
        assert words in told
    assert "done again</td><td>2 tasks, whose tiles were lost" in told
    rebuilt = Status("finished", total=12, done=12, now=100.0, kinds={0: (4, 0.1)})
    told = page(store, rebuilt, [WorkerInfo("h/1", left=True, facts={"tasks": 9.0}), WorkerInfo("h/2")])
    assert "done before</td><td>8 tasks, before the ledger was built anew" in told
    assert "told before</td><td>-5<" in told
    assert "did not begin" in told


def test_a_report_is_data_a_page_and_marks(store, tmp_path):
    options = Options(events=("TaskFinished",))
    with started(job_kernels.sleeping, store, tiles=6, launcher="threads", workers=1, options=options) as job:
        mark = job.mark("something happened")
        job.wait(100)
        data = job.report(marks=[mark]).data()
        job.report(tmp_path / "page.html", notes=[("a label", "a text")])
    (shown,) = data["jobs"]
    assert (shown["done"], shown["state"], sum(each["tasks"] for each in shown["kernels"])) == (
        6,
        "finished",
        6,
    )
    assert len(shown["spans"]) == 6
    assert shown["marks"][0][1] == "something happened"
    assert json.loads((tmp_path / "page.json").read_text())["notes"] == [["a label", "a text"]]


def test_curves_of_a_report_go_forward_and_end_with_the_job(store):
    """Workers come long before the first task here, and somebody looks long after the last."""
    status = Status(
        "finished", total=4, done=4, begun=5, now=100.0, first=20.0, last=22.0, kinds={0: (4, 0.1)}
    )
    looks = [
        Sample(at, 1, 0, workers, done) for at, workers, done in ((12.0, 1, 0), (21.0, 1, 2), (90.0, 0, 4))
    ]
    workers = [WorkerInfo("h/1", started=11.0, beat=22.0)]
    (job,) = report(store, status, workers, looks).data()["jobs"]
    assert [sample[0] for sample in job["samples"]] == [1.0, 10.0, 11.0]
    assert [sample[1] for sample in job["samples"]] == [0, 2, 4]
    assert job["log"][0][0] == 0
    assert job["workers"] == 1
    (unseen,) = report(store, status, workers, looks[2:]).data()["jobs"]
    assert (unseen["workers"], len(unseen["samples"])) == (1, 1), "nobody looked while it ran"


# ---- what cannot be meant


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"workers": "3"}, "workers='3': give a number of at least 1"),
        ({"workers": (1, 2, 3)}, "give a number of at least 1, or"),
        ({"workers": 2.0}, "workers=2.0: give a number"),
        ({"workers": True}, "workers=True: give a number"),
        ({"limits": "much"}, "limits='much': give linnet.workers.launcher.Limits"),
        ({"options": "quick"}, "options='quick': give linnet.workers.spec.Options"),
        ({"files": "/data"}, "files='/data': give a list of roots"),
        ({"store": 3}, "store=3: give a directory"),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused_before_anything_is_stored(store, tmp_path, given, words):
    with pytest.raises(InputError, match=re.escape(words)):
        started(job_kernels.sleeping, **{"store": store, **given})
    assert not (tmp_path / "jobs").exists() or not list((tmp_path / "jobs").rglob("*.sqlite"))


def test_a_name_where_names_are_expected_is_refused():
    with pytest.raises(InputError, match="imports='os': give a list of names of modules"):
        Options(imports="os")
    with pytest.raises(InputError, match="imports='os'"):
        attach("/nowhere#job=1", imports="os")


def test_held_ledgers_are_stores_that_fail():
    assert issubclass(HeldLedgerError, StoreError)
    assert isinstance(Processes(), crew.Killing)
