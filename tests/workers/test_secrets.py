"""Secrets on their way to workers: nowhere but in their environment, and in files that only their owner reads."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path

import numpy as np
import pytest
from job_samples import factorisation, undisturbed

from linnet.errors import JobError
from linnet.workers.client import submit
from linnet.workers.launcher import Limits, Order
from linnet.workers.launchers.lithops import Lithops
from linnet.workers.launchers.slurm import Slurm
from linnet.workers.secrets import put_aside, take
from linnet.workers.spec import Options

PASSWORD = "hush-hush-9731"
LIMITS = Limits(timeout=30, cache=2**27)
QUICK = Options(lease=3.0, grace=0.5)


def files_with_it(*folders: Path) -> list[str]:
    """Files below these folders that hold the password."""
    files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
    return [str(path) for path in files if PASSWORD.encode() in path.read_bytes()]


def test_what_was_put_aside_is_taken_once(tmp_path, monkeypatch):
    monkeypatch.delenv("LINNET_LEDGER_PASSWORD", raising=False)
    path = put_aside({"LINNET_LEDGER_PASSWORD": PASSWORD, "PATH": "/bad"}, tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = os.environ["PATH"]
    monkeypatch.setenv("LINNET_LEDGER_PASSWORD", "")  # so that it is put back afterwards
    take(path)
    assert (os.environ["LINNET_LEDGER_PASSWORD"], os.environ["PATH"]) == (PASSWORD, before)
    assert not path.exists()
    with pytest.raises(JobError, match="cannot be read: FileNotFoundError"):
        take(path)


def test_what_others_can_read_is_not_taken(tmp_path):
    path = put_aside({"LINNET_LEDGER_PASSWORD": PASSWORD}, tmp_path)
    path.chmod(0o644)
    with pytest.raises(JobError, match="others can read it") as caught:
        take(path)
    assert PASSWORD not in str(caught.value)
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(JobError, match="cannot be read: OSError"):
        take(link)


@pytest.mark.slow
def test_slurm_is_told_no_secret(tmp_path, monkeypatch):
    """Neither its command line nor the environment, which it keeps in its own files."""
    told = tmp_path / "told.json"
    sbatch = tmp_path / "sbatch"
    sbatch.write_text(
        "#!/usr/bin/env python3\nimport json, os, sys\n"
        f"json.dump([sys.argv, dict(os.environ)], open({str(told)!r}, 'w'))\nprint(7)\n"
    )
    sbatch.chmod(0o755)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", PASSWORD + "-aws")
    launcher = Slurm(logs=tmp_path / "logs", sbatch=str(sbatch))
    launcher.start(Order("/store#job=1", ["host/1"], secrets={"LINNET_LEDGER_PASSWORD": PASSWORD}))
    assert PASSWORD not in told.read_text()
    (aside,) = (tmp_path / "logs").glob(".linnet-*")
    assert f"--secrets {aside}" in json.loads(told.read_text())[0][-1]
    assert json.loads(aside.read_text())["AWS_SECRET_ACCESS_KEY"] == PASSWORD + "-aws"
    assert stat.S_IMODE(aside.stat().st_mode) == 0o600
    (tmp_path / "scancel").write_text("#!/bin/sh\n")
    (tmp_path / "scancel").chmod(0o755)
    launcher.kill(["host/1", "host/2"])
    assert not aside.exists()


def test_what_slurm_refuses_leaves_no_secret(tmp_path):
    sbatch = tmp_path / "sbatch"
    sbatch.write_text("#!/bin/sh\necho no such partition >&2\nexit 1\n")
    sbatch.chmod(0o755)
    launcher = Slurm(logs=tmp_path / "logs", sbatch=str(sbatch))
    with pytest.raises(JobError, match="no such partition"):
        launcher.start(Order("/store#job=1", ["host/1"], secrets={"LINNET_LEDGER_PASSWORD": PASSWORD}))
    assert not files_with_it(tmp_path)


@pytest.mark.slow
def test_workers_of_slurm_log_in_and_slurm_keeps_no_secret(slurm, start_redis, tmp_path, monkeypatch):
    for name, value in slurm.environment.items():
        monkeypatch.setenv(name, value)
    server = start_redis(password=PASSWORD)
    few = factorisation(120, 30)
    with submit(
        *few,
        store=str(tmp_path / "jobs"),
        ledger=server.url,
        launcher=Slurm(logs=tmp_path / "logs"),
        workers=1,
        limits=LIMITS,
        options=QUICK,
    ) as job:
        job.wait(120)
        assert np.array_equal(job.result()["O"].to_numpy(), undisturbed(*few)["O"].to_numpy())
        assert not files_with_it(slurm.folder, tmp_path / "jobs")
        for path in map(Path, files_with_it(tmp_path / "logs")):  # of workers that have not begun
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        job.delete()


@pytest.mark.slow
@pytest.mark.needs("lithops")
def test_functions_of_this_machine_log_in_and_lithops_keeps_no_secret(start_redis, tmp_path, monkeypatch):
    import sys

    from lithops.constants import LITHOPS_TEMP_DIR

    monkeypatch.setenv("HOME", str(tmp_path))
    config = {
        "lithops": {"backend": "localhost", "storage": "localhost", "telemetry": False, "log_level": None},
        "localhost": {"runtime": sys.executable},
    }
    server = start_redis(password=PASSWORD)
    few = factorisation(120, 30)
    with submit(
        *few,
        store=str(tmp_path / "jobs"),
        ledger=server.url,
        launcher=Lithops(config=config),
        workers=1,
        limits=LIMITS,
        options=QUICK,
    ) as job:
        job.wait(120)
        assert np.array_equal(job.result()["O"].to_numpy(), undisturbed(*few)["O"].to_numpy())
        assert not files_with_it(Path(LITHOPS_TEMP_DIR) / "jobs", tmp_path)
        job.delete()


@pytest.mark.slow
def test_workers_by_hand_take_secrets_from_a_file(tmp_path):
    """The file is gone, whatever becomes of the worker."""
    import sys

    path = put_aside({"LINNET_LEDGER_PASSWORD": PASSWORD}, tmp_path)
    command = [sys.executable, "-m", "linnet.cli", "worker", f"{tmp_path}/none#job=1", "--secrets", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert "there is no job" in done.stderr
    assert PASSWORD not in done.stdout + done.stderr
    assert not path.exists()
