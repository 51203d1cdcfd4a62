"""Jobs that read and write files: workers use what their operator named, whatever the job says."""

from __future__ import annotations

import os
from dataclasses import replace

import job_kernels
import numpy as np
import pytest

import linnet as ln
from linnet.errors import InputError, JobError
from linnet.workers.files import check_files, places
from linnet.workers.job_parts import open_parts
from linnet.workers.serving import serve
from linnet.workers.spec import spec_key

X = np.arange(24.0).reshape(4, 6)


@pytest.fixture
def data(tmp_path):
    """A folder with a file."""
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "x.npy", X)
    return tmp_path / "data"


def doubled(path, store, **options):
    return ln.submit(ln.from_npy(path, chunks=2) * 2, store=store, **options)


def test_a_job_may_use_its_own_files(data, store):
    with doubled(data / "x.npy", store, launcher="threads") as job:
        assert np.array_equal(job.result().compute(), 2 * X)
        assert places(job.spec.program) == [str(data / "x.npy")]


@pytest.mark.slow
def test_processes_are_told_which_files_they_may_use(data, store):
    with doubled(data / "x.npy", store, workers=1) as job:
        assert np.array_equal(job.result().compute(), 2 * X)


def test_workers_use_no_files_unless_they_are_told(data, store, tmp_path):
    other = tmp_path / "data2"
    other.mkdir()
    with doubled(data / "x.npy", store, launcher=None) as job:
        for files in ((), [str(other)], [str(data / "x")], ["https://host/"]):
            with pytest.raises(JobError, match=r"wants its workers to use .*x\.npy, .*--allow-files ROOT"):
                serve(job.address, files=files)
            with pytest.raises(JobError, match="not allowed"):
                ln.attach(job.address, workers=1, launcher="threads", files=files)
        with ln.attach(job.address, workers=1, launcher="threads", files=[str(data)]) as workers:
            assert np.array_equal(workers.result().compute(), 2 * X)


def test_files_that_submit_was_told_are_those_that_count(data, store):
    with pytest.raises(JobError, match=r"\(allowed: nothing\)"):
        doubled(data / "x.npy", store, launcher="threads", files=())


def test_links_are_resolved_first(data, store, tmp_path):
    (tmp_path / "open").mkdir()
    os.symlink(data / "x.npy", tmp_path / "open" / "link.npy")
    os.symlink(data, tmp_path / "open" / "folder")
    for name in ("link.npy", "folder/x.npy", "../data/x.npy"):
        with doubled(f"{tmp_path}/open/{name}", store, launcher=None) as job:
            with pytest.raises(JobError, match="not allowed"):
                serve(job.address, files=[str(tmp_path / "open")])
            check_files(job.spec.program, [str(data)])
            job.delete()


def test_a_job_that_was_changed_gets_no_further(data, store, tmp_path):
    """Somebody who may write to the store puts another file into the job."""
    np.save(tmp_path / "secret.npy", X)
    with (
        doubled(tmp_path / "secret.npy", store, launcher=None) as hostile,
        doubled(data / "x.npy", store, launcher=None) as job,
    ):
        body = replace(hostile.spec, identity=job.spec.identity).to_bytes()
        open_parts(job.address).store.put(spec_key(job.name), [body])
        with pytest.raises(JobError, match=r"use .*secret\.npy, which is not allowed"):
            serve(job.address, files=places(job.spec.program))


@pytest.mark.parametrize(
    ("place", "root", "fits"),
    [
        ("https://host/data/x.npy", "https://host/data", True),
        ("https://host/data/x.npy", "https://HOST/data/", True),
        ("https://host/database/x.npy", "https://host/data", False),
        ("https://host/data/../secret", "https://host/data", False),
        ("https://host/data/%2e%2e/secret", "https://host/data", False),
        ("https://host.evil/data/x.npy", "https://host", False),
        ("https://host:8443/data/x.npy", "https://host", False),
        ("http://host/data/x.npy", "https://host/data", False),
        ("http://169.254.169.254/latest", "https://host/data", False),
        ("http://169.254.169.254/latest", "http://169.254.169.254", True),
        ("s3://bucket/x", "s3://bucket", True),
        ("s3://bucket2/x", "s3://bucket", False),
        ("file:///data/x.npy", "/data", True),
        ("file:///data/%2e%2e/etc/passwd", "/data", False),
        ("/etc/passwd", "/", True),
    ],
)
def test_what_is_under_a_root(monkeypatch, place, root, fits):
    monkeypatch.setattr("linnet.workers.files.places", lambda program: [place])
    if fits:
        check_files(job_kernels.sleeping, [root])
        return
    with pytest.raises(JobError, match="not allowed"):
        check_files(job_kernels.sleeping, [root])


@pytest.mark.parametrize("root", ["https://", "https:///data", "https://me:secret@host/data"])
def test_roots_name_a_host(root):
    with pytest.raises(InputError, match="no host or bucket"):
        check_files(job_kernels.sleeping, [root])
