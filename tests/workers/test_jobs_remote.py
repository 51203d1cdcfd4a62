"""Jobs on real servers: Redis or Valkey as queue and ledger, an S3 store, Slurm and Lithops as launchers."""

from __future__ import annotations

import os
import signal
import time
from contextlib import closing

import numpy as np
import pytest
from job_samples import factorisation, undisturbed

import linnet as ln
from linnet.workers.client import attach, submit
from linnet.workers.job_parts import open_parts
from linnet.workers.launcher import Limits
from linnet.workers.launchers.lithops import Lithops
from linnet.workers.launchers.slurm import Slurm
from linnet.workers.spec import Options
from linnet.workers.store import open_store

pytestmark = pytest.mark.slow

QUICK = Options(lease=2.0, grace=0.5)
LIMITS = Limits(timeout=5, cache=2**26)


def given():
    return factorisation(240, 30)


@pytest.fixture(scope="module")
def expected():
    return undisturbed(*given())["O"].to_numpy()


def test_redis_and_s3_with_workers_killed(redis_server, s3, launcher, expected):
    with submit(
        *given(),
        store=s3,
        ledger=redis_server.url,
        launcher=launcher,
        workers=3,
        limits=LIMITS,
        options=QUICK,
    ) as job:
        killed = 0
        while not job.done(0.4):
            pids = launcher.pids
            if killed < 4 and len(pids) > 1 and job.progress().done > 10 * killed:
                os.kill(pids[killed % len(pids)], signal.SIGKILL)
                killed += 1
        job.wait(120)
        assert killed > 0
        assert np.array_equal(job.result()["O"].to_numpy(), expected)
        left = {key.split("/")[1] for key, _ in open_parts(job.address).store.list(f"{job.folder}/")}
        assert left == {"A", "O"}
        job.delete()
        assert not list(open_store(s3).list(job.name))
        assert not [key for key in redis_server.client().keys("*") if job.name.encode() in key]


def test_passwords_and_tls_work_and_stay_secret(start_redis, tmp_path, expected, launcher):
    server = start_redis(password="hush-hush", tls=True)
    with submit(
        *given(),
        store=str(tmp_path / "jobs"),
        ledger=server.url,
        launcher=launcher,
        limits=LIMITS,
        options=QUICK,
    ) as job:
        assert "hush" not in job.address
        assert "hush" not in repr(job)
        job.wait(150)
        assert np.array_equal(job.result()["O"].to_numpy(), expected)
        for pid in launcher.pids:
            with open(f"/proc/{pid}/cmdline") as line:
                assert "hush" not in line.read()
    with pytest.raises(ln.LinnetError) as caught:
        attach(job.address.replace("hush", "")).progress()
    assert "hush" not in str(caught.value)


def test_a_server_that_is_restarted_loses_nothing(start_redis, tmp_path, expected, launcher):
    server = start_redis(persist=True)
    bound, inputs = given()
    with submit(
        bound,
        inputs,
        store=str(tmp_path / "jobs"),
        ledger=server.url,
        launcher=launcher,
        limits=LIMITS,
        options=QUICK,
    ) as job:
        while job.progress().done < 20:
            time.sleep(0.01)
        server.kill()
        time.sleep(1)
        server.start()
        job.wait(150)
        assert np.array_equal(job.result()["O"].to_numpy(), expected)


def test_workers_as_slurm_jobs(slurm, tmp_path, monkeypatch, expected):
    for name, value in slurm.environment.items():
        monkeypatch.setenv(name, value)
    launcher = Slurm(logs=tmp_path / "logs")
    with submit(
        *given(),
        store=str(tmp_path / "jobs"),
        launcher=launcher,
        workers=3,
        limits=LIMITS,
        options=QUICK,
    ) as job:
        while job.progress().done < 10:
            time.sleep(0.05)
        node = next(node for node, state in slurm.states().items() if state in ("allocated", "mixed"))
        slurm.preempt(node)
        try:
            job.wait(120)
        finally:
            slurm.give_back(node)
        assert np.array_equal(job.result()["O"].to_numpy(), expected)
        assert len(launcher.jobs) >= 3


def test_tasks_in_sqs(moto_server, tmp_path, monkeypatch):
    for name, value in moto_server.environment.items():
        monkeypatch.setenv(name, value)
    places = {"store": str(tmp_path / "jobs"), "queue": "sqs://us-east-1/jobs"}
    few = factorisation(120, 30)
    with submit(*few, launcher="threads", limits=LIMITS, options=QUICK, **places) as job:
        job.wait(120)
        here = undisturbed(*few)["O"].to_numpy()
        assert np.array_equal(job.result()["O"].to_numpy(), here)
        with closing(moto_server.client("sqs")) as client:
            assert len(client.list_queues(QueueNamePrefix=f"jobs-{job.name}")["QueueUrls"]) == 4
            job.delete()
            assert "QueueUrls" not in client.list_queues(QueueNamePrefix=f"jobs-{job.name}")


@pytest.mark.needs("lithops")
def test_workers_as_functions_of_lithops(tmp_path, expected, monkeypatch):
    import sys

    config = {
        "lithops": {"backend": "localhost", "storage": "localhost", "telemetry": False, "log_level": None},
        "localhost": {"runtime": sys.executable},
    }
    monkeypatch.setenv("HOME", str(tmp_path))
    launcher = Lithops(config=config)
    with submit(
        *given(), store=str(tmp_path / "jobs"), launcher=launcher, limits=LIMITS, options=QUICK
    ) as job:
        job.wait(120)
        assert np.array_equal(job.result()["O"].to_numpy(), expected)
