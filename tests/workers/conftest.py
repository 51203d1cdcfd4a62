"""What tests of workers share: modules beside them, a place for jobs, workers as processes, a clock."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from linnet.testing.clock import Clock
from linnet.workers.launchers.processes import Processes

sys.path.insert(0, str(Path(__file__).parent))  # `job_kernels` and `job_samples` are imported by name


@pytest.fixture
def store(tmp_path):
    return str(tmp_path / "jobs")


@pytest.fixture
def launcher():
    """Starts workers as processes; those that are left at the end of the test are killed."""
    made = Processes()
    yield made
    for pid in made.pids:
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def s3(s3_server, monkeypatch):
    """A place in an S3 store, with its keys in the environment."""
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    return f"{s3_server.url}/jobs"


@pytest.fixture
def clock():
    """Time that passes when it is told to."""
    return Clock()
