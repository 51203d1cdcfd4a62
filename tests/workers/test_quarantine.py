"""A task computed in a process of its own, as workers do with one that may have killed others."""

from __future__ import annotations

from pathlib import Path

import job_kernels
import numpy as np
import pytest

from linnet.errors import JobFailedError
from linnet.testing import kernels as programs
from linnet.tiles import TiledArray, TileKey
from linnet.tiles.codec import decoded
from linnet.workers.array_specs import tile_key
from linnet.workers.attempt import Attempt
from linnet.workers.client import submit
from linnet.workers.job_parts import open_parts
from linnet.workers.launcher import Limits
from linnet.workers.names import named
from linnet.workers.quarantine import Quarantine
from linnet.workers.spec import Options

pytestmark = pytest.mark.slow

LENGTH = 4096
"""Elements of a tile."""


def attempted(store, divisor, compression=None):
    """The bytes that a task of its own process stored."""
    inputs = {
        "A": TiledArray.from_numpy(np.ones(LENGTH), LENGTH),
        "B": TiledArray.from_numpy(np.full(LENGTH, divisor), LENGTH),
    }
    options = Options(compression=compression)
    bound = programs.divided.bind(N=1)
    with submit(bound, inputs, store=store, launcher=None, options=options) as job:
        attempt = Attempt("0.0", named("0.0"), None, (), token=17)
        Quarantine(store, job.name, job.spec.bound, Limits(), job.spec.options.imports).compute(attempt)
        assert attempt.seconds > 0
        return open_parts(job.address).store.get(tile_key(job.folder, TileKey("C", (0,)), 17))


def test_tiles_are_compressed_as_the_job_asks(tmp_path):
    plain = attempted(str(tmp_path / "plain"), 4.0)
    packed = attempted(str(tmp_path / "packed"), 4.0, "zstd")
    assert len(memoryview(plain)) > 8 * LENGTH > 10 * len(memoryview(packed))
    for data in (plain, packed):
        assert np.array_equal(decoded(data, "C"), np.full(LENGTH, 0.25))


def test_an_error_of_the_kernel_is_told_as_it_is(tmp_path):
    with pytest.raises(JobFailedError, match="a divisor is 0"):
        attempted(str(tmp_path), 0.0)


@pytest.fixture
def importable(monkeypatch):
    """Let child processes find the kernels of tests, as those of workers do."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


@pytest.mark.usefixtures("importable")
@pytest.mark.parametrize("program", ["hanging", "seizing"])
def test_the_limit_of_a_task_is_for_its_kernel_not_for_its_process(tmp_path, monkeypatch, program):
    """A process takes longer to begin than the kernel may take; a kernel that hangs is ended by the system."""
    monkeypatch.setenv("JOBS_HUNG", str(tmp_path / "hung"))
    options = Options(task_seconds=0.3)
    inputs = {"A": TiledArray.from_numpy(np.arange(14.0), 1)}
    bound = getattr(job_kernels, program).bind(N=14)
    with submit(bound, inputs, store=str(tmp_path / "jobs"), launcher=None, options=options) as job:
        limit = options.task_seconds
        alone = Quarantine(
            *(str(tmp_path / "jobs"), job.name, job.spec.bound, Limits(), job.spec.options.imports),
            limit=limit,
        )
        with pytest.raises(
            JobFailedError, match=rf"KernelError: task 0\.13 took longer than task_seconds={limit}"
        ):
            alone.compute(Attempt("0.13", named("0.13"), None, (), token=17))
        assert (tmp_path / "hung").exists()


@pytest.mark.usefixtures("importable")
def test_a_quick_kernel_keeps_its_limit_though_its_process_begins_slowly(tmp_path):
    options = Options(task_seconds=0.3)
    inputs = {"A": TiledArray.from_numpy(np.arange(14.0), 1)}
    place = str(tmp_path / "jobs")
    with submit(job_kernels.exiting.bind(N=14), inputs, store=place, launcher=None, options=options) as job:
        alone = Quarantine(
            place, job.name, job.spec.bound, Limits(), job.spec.options.imports, limit=options.task_seconds
        )
        attempt = Attempt("0.1", named("0.1"), None, (), token=17)
        alone.compute(attempt)
        assert attempt.seconds > 0
